//! Batch normalization over samples and places, channel by channel; sums are in double precision and of one fixed order.

use super::float::Float;
use super::parallel::{self, Shared};

/// Sizes of the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channels {
    /// Samples.
    pub(crate) samples: usize,
    /// Channels.
    pub(crate) channels: usize,
    /// Elements of a channel of a sample.
    pub(crate) places: usize,
}

impl Channels {
    /// Where the elements of a channel of each sample begin.
    fn starts(self, channel: usize) -> impl Iterator<Item = usize> {
        (0..self.samples).map(move |sample| (sample * self.channels + channel) * self.places)
    }

    /// Elements of a channel, at least one so that it can be divided by.
    fn count(self) -> f64 {
        (self.samples * self.places).max(1) as f64
    }

    /// Runs `body` for every channel.
    fn each(self, body: impl Fn(usize) + Sync + Send) {
        parallel::indices(self.channels, self.samples * self.places, body);
    }
}

/// The saved statistics of each channel, and what is added to the variance.
pub(crate) struct Stats<'a, T> {
    /// Mean.
    pub(crate) mean: &'a [T],
    /// Variance of the elements.
    pub(crate) var: &'a [T],
    /// Added to the variance.
    pub(crate) epsilon: f64,
}

impl<T: Float> Stats<'_, T> {
    fn of(&self, channel: usize) -> (f64, f64) {
        (self.mean[channel].wide(), 1.0 / (self.var[channel].wide() + self.epsilon).sqrt())
    }
}

/// `y = (x - mean) / sqrt(var + epsilon) w + b` with the statistics of `x`.
pub(crate) fn batch_norm<T: Float>(
    sizes: Channels,
    x: &[T],
    (w, b): (&[T], &[T]),
    epsilon: f64,
    y: &mut [T],
    (mean, var): (&mut [T], &mut [T]),
) {
    let (y, mean, var) = (Shared::new(y), Shared::new(mean), Shared::new(var));
    let n = sizes.places;
    sizes.each(|channel| {
        let rows = || sizes.starts(channel).map(|start| &x[start..start + n]);
        let m = rows().map(|x| sum(x, |x| x)).sum::<f64>() / sizes.count();
        let v = rows().map(|x| sum(x, |x| (x - m) * (x - m))).sum::<f64>() / sizes.count();
        let factor = w[channel].wide() / (v + epsilon).sqrt();
        let shift = b[channel].wide();
        for (start, x) in sizes.starts(channel).zip(rows()) {
            // SAFETY: every channel has its own places and statistics.
            let y = unsafe { y.range(start, n) };
            y.iter_mut().zip(x).for_each(|(y, x)| *y = T::of((x.wide() - m) * factor + shift));
        }
        // SAFETY: as above.
        unsafe {
            mean.set(channel, T::of(m));
            var.set(channel, T::of(v));
        }
    });
}

/// Gradient of the data.
pub(crate) fn input_grad<T: Float>(sizes: Channels, x: &[T], w: &[T], stats: &Stats<'_, T>, dy: &[T], dx: &mut [T]) {
    let dx = Shared::new(dx);
    let n = sizes.places;
    sizes.each(|channel| {
        let (m, r) = stats.of(channel);
        let (db, dw) = sums(sizes, channel, x, dy, (m, r));
        let (mean_dy, mean_product) = (db / sizes.count(), dw / sizes.count());
        let factor = w[channel].wide() * r;
        for start in sizes.starts(channel) {
            // SAFETY: every channel has its own places.
            let dx = unsafe { dx.range(start, n) };
            for ((dx, x), dy) in dx.iter_mut().zip(&x[start..start + n]).zip(&dy[start..start + n]) {
                *dx = T::of(factor * (dy.wide() - mean_dy - (x.wide() - m) * r * mean_product));
            }
        }
    });
}

/// Gradients of the scale and the shift.
pub(crate) fn param_grad<T: Float>(
    sizes: Channels,
    x: &[T],
    stats: &Stats<'_, T>,
    dy: &[T],
    (dw, db): (&mut [T], &mut [T]),
) {
    let (dw, db) = (Shared::new(dw), Shared::new(db));
    sizes.each(|channel| {
        let (shift, scale) = sums(sizes, channel, x, dy, stats.of(channel));
        // SAFETY: every channel has its own elements.
        unsafe {
            dw.set(channel, T::of(scale));
            db.set(channel, T::of(shift));
        }
    });
}

/// `average = average momentum + x (1 - momentum)`.
pub(crate) fn running_average<T: Float>(momentum: f64, average: &mut [T], x: &[T]) {
    let (keep, take) = (T::of(momentum), T::of(1.0 - momentum));
    average.iter_mut().zip(x).for_each(|(average, &x)| *average = *average * keep + x * take);
}

/// The sums over a channel of `dy` and of `dy` times the normalized data.
fn sums<T: Float>(sizes: Channels, channel: usize, x: &[T], dy: &[T], (m, r): (f64, f64)) -> (f64, f64) {
    let n = sizes.places;
    let of = |start: usize| {
        let (x, dy) = (&x[start..start + n], &dy[start..start + n]);
        (sum(dy, |dy| dy), product_sum(x, dy, m) * r)
    };
    sizes.starts(channel).map(of).fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d))
}

/// Running totals of a sum, so that the processor need not wait for each addition.
const LANES: usize = 8;

/// The sum of `f` over the elements, in one fixed order.
fn sum<T: Float>(x: &[T], f: impl Fn(f64) -> f64) -> f64 {
    let mut totals = [0.0; LANES];
    for group in x.chunks(LANES) {
        totals.iter_mut().zip(group).for_each(|(total, x)| *total += f(x.wide()));
    }
    totals.iter().sum()
}

/// The sum of `dy (x - m)`, in one fixed order.
fn product_sum<T: Float>(x: &[T], dy: &[T], m: f64) -> f64 {
    let mut totals = [0.0; LANES];
    for (x, dy) in x.chunks(LANES).zip(dy.chunks(LANES)) {
        totals.iter_mut().zip(x).zip(dy).for_each(|((total, x), dy)| *total += dy.wide() * (x.wide() - m));
    }
    totals.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::{Channels, batch_norm, running_average};

    /// Truth by hand: channel 0 is 1, 3, 5, 7 (mean 4, variance 5), channel 1 is constant, so that only the shift is left.
    #[test]
    fn channels_are_normalized_by_themselves() {
        let sizes = Channels { samples: 2, channels: 2, places: 2 };
        let x = [1.0, 3.0, 0.1, 0.1, 5.0, 7.0, 0.1, 0.1f32];
        let (mut y, mut mean, mut var) = ([0.0; 8], [0.0; 2], [0.0; 2]);
        batch_norm(sizes, &x, (&[2.0, 3.0], &[0.5, 0.25]), 4.0, &mut y, (&mut mean, &mut var));
        assert_eq!((mean, var), ([4.0, 0.1], [5.0, 0.0]));
        let expected = [1.0f64, 3.0, 5.0, 7.0].map(|x| ((x - 4.0) / 3.0 * 2.0 + 0.5) as f32);
        assert_eq!([y[0], y[1], y[4], y[5]], expected);
        assert_eq!([y[2], y[3], y[6], y[7]], [0.25; 4]);
    }

    #[test]
    fn averages_keep_what_momentum_says() {
        let mut average = [1.0f64, -2.0];
        running_average(0.75, &mut average, &[3.0, 2.0]);
        assert_eq!(average, [1.5, -1.0]);
    }
}

//! Convolutions as matrix products of the weights with the elements of all windows, sample by sample.

use super::float::Float;
use super::matmul::{Matrix, Store, product};
use super::parallel::{self, Shared};
use super::window::Windows;
use gemm::Parallelism;
use std::borrow::Cow;
use std::ops::Range;

/// Elements of windows that lie side by side in memory at a time, for each task.
const COLUMNS: usize = 1 << 21;

/// The sizes of a convolution.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    /// Samples.
    pub(crate) samples: usize,
    /// Channels of the data.
    pub(crate) channels: usize,
    /// Channels of the result.
    pub(crate) filters: usize,
    /// Runs of channels that are convolved by themselves.
    pub(crate) groups: usize,
    /// The windows.
    pub(crate) windows: Windows,
}

impl Convolution {
    /// Channels of the data and of the result in a group.
    fn group(&self) -> (usize, usize) {
        (self.channels / self.groups, self.filters / self.groups)
    }

    /// The data's elements of one group of one sample.
    fn data(&self) -> usize {
        self.group().0 * self.windows.n_elements()
    }

    /// Numbers of a window over the channels of a group: the width of the weights' matrix.
    fn width(&self) -> usize {
        self.group().0 * self.windows.n_taps()
    }

    /// Windows in parts, so that the elements of a part do not fill the memory.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let all = self.windows.n_windows();
        let part = if self.windows.is_identity() { all } else { COLUMNS / self.width().max(1) };
        let part = part.max(1);
        (0..all).step_by(part).map(move |start| start..(start + part).min(all))
    }

    /// Whether nothing would be gained by samples or groups running beside one another.
    fn is_single(&self) -> bool {
        self.samples * self.groups == 1
    }

    /// How one of the products may use threads.
    fn within(&self, alone: bool) -> Parallelism {
        if alone { Parallelism::Rayon(0) } else { Parallelism::None }
    }
}

/// `y = conv(x, w)`.
pub(crate) fn convolve<T: Float>(of: &Convolution, x: &[T], w: &[T], y: &mut [T]) {
    let (_, filters) = of.group();
    let (places, width, data) = (of.windows.n_windows(), of.width(), of.data());
    let y = Shared::new(y);
    parallel::indices(of.samples * of.groups, filters * places * width, |task| {
        let group = task % of.groups;
        let x = &x[task * data..][..data];
        let w = Matrix::new(&w[group * filters * width..][..filters * width], width, false);
        // SAFETY: every sample and group has its own range of the result.
        let y = unsafe { y.range(task * filters * places, filters * places) };
        for part in of.parts() {
            let columns = columns(of, x, &part);
            let operands = (w, Matrix::new(&columns, part.len(), false));
            let sizes = (filters, part.len(), width);
            let y = &mut y[part.start..];
            product(sizes, y, places, operands, (T::ONE, Store::Replace), of.within(of.is_single()));
        }
    });
}

/// Gradient of the data.
pub(crate) fn input_grad<T: Float>(of: &Convolution, w: &[T], dy: &[T], dx: &mut [T]) {
    let (channels, filters) = of.group();
    let (places, width, data) = (of.windows.n_windows(), of.width(), of.data());
    let (elements, taps) = (of.windows.n_elements(), of.windows.n_taps());
    let dx = Shared::new(dx);
    parallel::indices(of.samples * of.groups, filters * places * width, |task| {
        let group = task % of.groups;
        let w = Matrix::new(&w[group * filters * width..][..filters * width], width, true);
        let dy = &dy[task * filters * places..][..filters * places];
        // SAFETY: every sample and group has its own range of the result.
        let dx = unsafe { dx.range(task * data, data) };
        let parallelism = of.within(of.is_single());
        if of.windows.is_identity() {
            let operands = (w, Matrix::new(dy, places, false));
            product((width, places, filters), dx, places, operands, (T::ONE, Store::Replace), parallelism);
            return;
        }
        dx.fill(T::ZERO);
        for part in of.parts() {
            let n = part.len();
            let mut columns = vec![T::ZERO; width * n];
            let operands = (w, Matrix::new(&dy[part.start..], places, false));
            product((width, n, filters), &mut columns, n, operands, (T::ONE, Store::Replace), parallelism);
            for channel in 0..channels {
                let dx = &mut dx[channel * elements..][..elements];
                for tap in 0..taps {
                    let row = &columns[(channel * taps + tap) * n..][..n];
                    of.windows.lines_within(tap, &part, |line| {
                        let row = &row[line.window - part.start..][..line.len];
                        row.iter().enumerate().for_each(|(i, &value)| dx[line.element + i * line.step] += value);
                    });
                }
            }
        }
    });
}

/// Gradient of the weights, summed over the samples in ascending order.
pub(crate) fn weight_grad<T: Float>(of: &Convolution, x: &[T], dy: &[T], dw: &mut [T]) {
    let (_, filters) = of.group();
    let (places, width, data) = (of.windows.n_windows(), of.width(), of.data());
    let dw = Shared::new(dw);
    parallel::indices(of.groups, of.samples * filters * places * width, |group| {
        // SAFETY: every group has its own range of the result.
        let dw = unsafe { dw.range(group * filters * width, filters * width) };
        dw.fill(T::ZERO);
        for sample in 0..of.samples {
            let task = sample * of.groups + group;
            let x = &x[task * data..][..data];
            let dy = &dy[task * filters * places..][..filters * places];
            for part in of.parts() {
                let columns = columns(of, x, &part);
                let dy = Matrix::new(&dy[part.start..], places, false);
                let operands = (dy, Matrix::new(&columns, part.len(), true));
                let sizes = (filters, width, part.len());
                product(sizes, dw, width, operands, (T::ONE, Store::Add), of.within(of.groups == 1));
            }
        }
    });
}

/// The elements of these windows of one group of one sample: a row for each channel and place in the window, a column for
/// each window.
fn columns<'x, T: Float>(of: &Convolution, x: &'x [T], part: &Range<usize>) -> Cow<'x, [T]> {
    if of.windows.is_identity() {
        return x.into();
    }
    let (elements, taps, n) = (of.windows.n_elements(), of.windows.n_taps(), part.len());
    let mut columns = vec![T::ZERO; of.width() * n];
    parallel::rows(&mut columns, n, |first, rows| {
        for (i, row) in rows.chunks_exact_mut(n).enumerate() {
            let (channel, tap) = ((first + i) / taps, (first + i) % taps);
            let x = &x[channel * elements..][..elements];
            of.windows.lines_within(tap, part, |line| {
                let row = &mut row[line.window - part.start..][..line.len];
                if line.step == 1 {
                    row.copy_from_slice(&x[line.element..][..line.len]);
                } else {
                    row.iter_mut().enumerate().for_each(|(i, value)| *value = x[line.element + i * line.step]);
                }
            });
        }
    });
    columns.into()
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Convolution, Windows, convolve, input_grad, weight_grad};

    /// Sizes at which the windows are taken in several parts; the truth is the definition, element by element.
    #[test]
    fn parts_of_windows_add_up() {
        let (kernel, dim, low) = (1500, 3000, 700);
        let count = dim + low - kernel + 1;
        let windows = Windows {
            dims: vec![dim],
            kernel: vec![kernel],
            counts: vec![count],
            strides: vec![1],
            low: vec![low],
            high: vec![0],
            dilations: vec![1],
        };
        let of = Convolution { samples: 1, channels: 1, filters: 1, groups: 1, windows };
        assert!(kernel * count > COLUMNS && of.parts().count() > 1);
        let values = |n: usize, k: usize| -> Vec<f64> { (0..n).map(|i| (i * k % 17) as f64 - 8.0).collect() };
        let (x, w, dy) = (values(dim, 5), values(kernel, 7), values(count, 3));
        let (mut y, mut dx, mut dw) = (vec![0.0; count], vec![0.0; dim], vec![0.0; kernel]);
        convolve(&of, &x, &w, &mut y);
        input_grad(&of, &w, &dy, &mut dx);
        weight_grad(&of, &x, &dy, &mut dw);
        let (mut want_y, mut want_dx, mut want_dw) = (vec![0.0; count], vec![0.0; dim], vec![0.0; kernel]);
        for o in 0..count {
            for k in 0..kernel {
                let Some(i) = (o + k).checked_sub(low) else { continue };
                want_y[o] += x[i] * w[k];
                want_dx[i] += dy[o] * w[k];
                want_dw[k] += dy[o] * x[i];
            }
        }
        // Sums of whole numbers are exact.
        assert!(y == want_y && dx == want_dx && dw == want_dw);
    }
}

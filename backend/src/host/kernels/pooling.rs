//! Pooling: the largest element or the mean of every window, channel by channel, and the gradients.

use super::float::Float;
use super::parallel;
use super::window::Windows;

/// `y` is the largest element of each window.
pub(crate) fn max_pool<T: Float>(windows: &Windows, x: &[T], y: &mut [T]) {
    each_channel(windows.n_windows(), y, |channel, y| {
        largest(windows, &x[channel * windows.n_elements()..], y, None);
    });
}

/// The gradient of each window goes to its largest element, the first of equal ones.
pub(crate) fn max_pool_grad<T: Float>(windows: &Windows, x: &[T], dy: &[T], dx: &mut [T]) {
    let places = windows.n_windows();
    each_channel(windows.n_elements(), dx, |channel, dx| {
        let mut y = vec![T::ZERO; places];
        let mut at = vec![usize::MAX; places];
        largest(windows, &x[channel * windows.n_elements()..], &mut y, Some(&mut at));
        dx.fill(T::ZERO);
        for (&at, &dy) in at.iter().zip(&dy[channel * places..]) {
            if at != usize::MAX {
                dx[at] += dy;
            }
        }
    });
}

/// The largest element of each window of a channel, and where it stands. A NaN is larger than all that comes before it.
fn largest<T: Float>(windows: &Windows, x: &[T], y: &mut [T], mut at: Option<&mut [usize]>) {
    y.fill(T::NEG_INFINITY);
    windows.elements(|window, element| {
        let found = x[element];
        // An infinite first element counts too.
        let is_first = at.as_ref().is_some_and(|at| at[window] == usize::MAX);
        if found > y[window] || found.is_nan() || is_first {
            y[window] = found;
            if let Some(at) = &mut at {
                at[window] = element;
            }
        }
    });
}

/// `y` is the mean of each window; added positions count with `pads`.
pub(crate) fn average_pool<T: Float>(windows: &Windows, pads: bool, x: &[T], y: &mut [T]) {
    let counts = windows.counted(pads);
    each_channel(windows.n_windows(), y, |channel, y| {
        let x = &x[channel * windows.n_elements()..];
        y.fill(T::ZERO);
        windows.elements(|window, element| y[window] += x[element]);
        for (y, &count) in y.iter_mut().zip(&counts) {
            *y /= T::of(count.max(1) as f64);
        }
    });
}

/// The gradient of each window is shared by its elements.
pub(crate) fn average_pool_grad<T: Float>(windows: &Windows, pads: bool, dy: &[T], dx: &mut [T]) {
    let counts = windows.counted(pads);
    each_channel(windows.n_elements(), dx, |channel, dx| {
        let dy = &dy[channel * windows.n_windows()..];
        let share = |window: usize| dy[window] / T::of(counts[window].max(1) as f64);
        dx.fill(T::ZERO);
        windows.elements(|window, element| dx[element] += share(window));
    });
}

/// Runs `body` for every channel's piece of `out`, `width` elements each.
fn each_channel<T: Float>(width: usize, out: &mut [T], body: impl Fn(usize, &mut [T]) + Sync) {
    if width == 0 {
        return;
    }
    parallel::rows(out, width, |first, group| {
        for (i, piece) in group.chunks_exact_mut(width).enumerate() {
            body(first + i, piece);
        }
    });
}

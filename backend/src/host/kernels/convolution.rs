//! Convolutions as matrix products of the weights with the elements of all windows, sample by sample.

use super::float::Float;
use super::matmul::{Matrix, Store, product};
use super::parallel::{self, Shared};
use super::window::Windows;
use gemm::Parallelism;

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
        let w = &w[group * filters * width..][..filters * width];
        // SAFETY: every sample and group has its own range of the result.
        let y = unsafe { y.range(task * filters * places, filters * places) };
        let columns = columns(of, x);
        let operands = (Matrix::new(w, width, false), Matrix::new(&columns, places, false));
        let parallelism = of.within(of.is_single());
        product((filters, places, width), y, places, operands, (T::ONE, Store::Replace), parallelism);
    });
}

/// Gradient of the data.
pub(crate) fn input_grad<T: Float>(of: &Convolution, w: &[T], dy: &[T], dx: &mut [T]) {
    let (channels, filters) = of.group();
    let (places, width, data) = (of.windows.n_windows(), of.width(), of.data());
    let dx = Shared::new(dx);
    parallel::indices(of.samples * of.groups, filters * places * width, |task| {
        let group = task % of.groups;
        let w = &w[group * filters * width..][..filters * width];
        let dy = &dy[task * filters * places..][..filters * places];
        // SAFETY: every sample and group has its own range of the result.
        let dx = unsafe { dx.range(task * data, data) };
        let operands = (Matrix::new(w, width, true), Matrix::new(dy, places, false));
        let sizes = (width, places, filters);
        let parallelism = of.within(of.is_single());
        if of.windows.is_identity() {
            product(sizes, dx, places, operands, (T::ONE, Store::Replace), parallelism);
            return;
        }
        let mut columns = vec![T::ZERO; width * places];
        product(sizes, &mut columns, places, operands, (T::ONE, Store::Replace), parallelism);
        dx.fill(T::ZERO);
        let (elements, taps) = (of.windows.n_elements(), of.windows.n_taps());
        for channel in 0..channels {
            let dx = &mut dx[channel * elements..][..elements];
            for tap in 0..taps {
                let row = &columns[(channel * taps + tap) * places..][..places];
                of.windows.lines(tap, |line| {
                    for i in 0..line.len {
                        dx[line.element + i * line.step] += row[line.window + i];
                    }
                });
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
            let columns = columns(of, &x[task * data..][..data]);
            let dy = &dy[task * filters * places..][..filters * places];
            let operands = (Matrix::new(dy, places, false), Matrix::new(&columns, places, true));
            product((filters, width, places), dw, width, operands, (T::ONE, Store::Add), of.within(of.groups == 1));
        }
    });
}

/// The elements of all windows of one group of one sample: a row for each channel and place in the window, a column for
/// each window.
fn columns<'x, T: Float>(of: &Convolution, x: &'x [T]) -> std::borrow::Cow<'x, [T]> {
    if of.windows.is_identity() {
        return x.into();
    }
    let (elements, taps, places) = (of.windows.n_elements(), of.windows.n_taps(), of.windows.n_windows());
    let mut columns = vec![T::ZERO; of.width() * places];
    parallel::rows(&mut columns, places, |first, rows| {
        for (i, row) in rows.chunks_exact_mut(places).enumerate() {
            let (channel, tap) = ((first + i) / taps, (first + i) % taps);
            let x = &x[channel * elements..][..elements];
            of.windows.lines(tap, |line| {
                let row = &mut row[line.window..][..line.len];
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

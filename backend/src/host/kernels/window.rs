//! Sliding windows over the spatial axes of one channel, as convolutions and pooling walk them.

use super::walk::strides;
use std::ops::Range;

/// The windows of an operator over row-major channels; every list has one entry per spatial axis.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// Positions of a channel.
    pub(crate) dims: Vec<usize>,
    /// Elements of a window.
    pub(crate) kernel: Vec<usize>,
    /// Windows.
    pub(crate) counts: Vec<usize>,
    /// Positions from one window to the next.
    pub(crate) strides: Vec<usize>,
    /// Positions added before the first.
    pub(crate) low: Vec<usize>,
    /// Positions added behind the last.
    pub(crate) high: Vec<usize>,
    /// Positions from one element of a window to the next.
    pub(crate) dilations: Vec<usize>,
}

/// A run of windows along the last axis, and the elements of a channel that stand at one place in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The first of the windows.
    pub(super) window: usize,
    /// The element of the channel in the first window.
    pub(super) element: usize,
    /// How many windows.
    pub(super) len: usize,
    /// From one window's element to the next one's.
    pub(super) step: usize,
}

impl Windows {
    /// Positions of a channel.
    pub(super) fn n_elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Windows of a channel.
    pub(super) fn n_windows(&self) -> usize {
        self.counts.iter().product()
    }

    /// Elements of a window.
    pub(super) fn n_taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Whether every window is one element and every element one window, in order.
    pub(super) fn is_identity(&self) -> bool {
        self.kernel.iter().all(|&size| size == 1) && self.dims == self.counts && self.strides.iter().all(|&s| s == 1)
    }

    /// Visits the windows whose element number `tap` (in row-major order) lies inside the channel, as lines in ascending order.
    pub(super) fn lines(&self, tap: usize, mut visit: impl FnMut(Line)) {
        let rank = self.dims.len();
        let (own, places) = (strides(&self.dims), strides(&self.counts));
        let mut rest = tap;
        // Along each axis the range of windows, and the position of the element in the first of them.
        let mut ranges = vec![(0, 0, 0); rank];
        for axis in (0..rank).rev() {
            let offset = rest % self.kernel[axis] * self.dilations[axis];
            rest /= self.kernel[axis];
            let (low, stride) = (self.low[axis], self.strides[axis]);
            let first = low.saturating_sub(offset).div_ceil(stride);
            let end = match (self.dims[axis] + low).checked_sub(offset + 1) {
                Some(last) if self.dims[axis] > 0 => (last / stride + 1).min(self.counts[axis]),
                Some(_) | None => 0,
            };
            if first >= end {
                return;
            }
            ranges[axis] = (first, end, first * stride + offset - low);
        }
        let mut at: Vec<usize> = ranges.iter().map(|&(first, _, _)| first).collect();
        let last = rank - 1;
        let (_, end, _) = ranges[last];
        loop {
            let mut line = Line { window: 0, element: 0, len: end - ranges[last].0, step: self.strides[last] };
            for (axis, &(first, _, position)) in ranges.iter().enumerate() {
                line.window += at[axis] * places[axis] as usize;
                line.element += (position + (at[axis] - first) * self.strides[axis]) * own[axis] as usize;
            }
            visit(line);
            let Some(axis) = (0..last).rev().find(|&axis| at[axis] + 1 < ranges[axis].1) else { return };
            at[axis] += 1;
            for later in axis + 1..last {
                at[later] = ranges[later].0;
            }
        }
    }

    /// As [`lines`](Self::lines), of these windows only.
    pub(super) fn lines_within(&self, tap: usize, windows: &Range<usize>, mut visit: impl FnMut(Line)) {
        self.lines(tap, |line| {
            let skipped = windows.start.saturating_sub(line.window).min(line.len);
            let end = windows.end.saturating_sub(line.window).min(line.len);
            if skipped < end {
                visit(Line {
                    window: line.window + skipped,
                    element: line.element + skipped * line.step,
                    len: end - skipped,
                    step: line.step,
                });
            }
        });
    }

    /// Visits every window with every element of the channel that lies in it, by ascending place in the window.
    pub(super) fn elements(&self, mut visit: impl FnMut(usize, usize)) {
        for tap in 0..self.n_taps() {
            self.lines(tap, |line| (0..line.len).for_each(|i| visit(line.window + i, line.element + i * line.step)));
        }
    }

    /// For each window how many of its elements count: those inside the channel, and with `pads` those in the added
    /// positions too, but never those beyond.
    pub(super) fn counted(&self, pads: bool) -> Vec<usize> {
        let mut all = vec![1];
        for (axis, &count) in self.counts.iter().enumerate() {
            let (low, dim) = (self.low[axis], self.dims[axis]);
            let range = if pads { 0..low + dim + self.high[axis] } else { low..low + dim };
            let of_window = |window: usize| {
                let start = window * self.strides[axis];
                (0..self.kernel[axis]).filter(|tap| range.contains(&(start + tap * self.dilations[axis]))).count()
            };
            let along: Vec<usize> = (0..count).map(of_window).collect();
            all = all.iter().flat_map(|outer| along.iter().map(move |inner| outer * inner)).collect();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::Windows;

    /// Truth: the definition, position by position.
    #[test]
    fn lines_visit_what_lies_inside() {
        for (dims, kernel, strides, low, dilations) in [
            ([5, 7], [3, 3], [1, 1], [1, 1], [1, 1]),
            ([5, 7], [3, 2], [2, 3], [2, 0], [1, 2]),
            ([1, 4], [2, 1], [1, 2], [1, 0], [2, 1]),
            ([4, 4], [2, 2], [3, 3], [0, 1], [1, 1]),
        ] {
            let high = [1, 0];
            let counts: Vec<usize> = (0..2)
                .map(|a| (dims[a] + low[a] + high[a] - (kernel[a] - 1) * dilations[a] - 1) / strides[a] + 1)
                .collect();
            let [dims, kernel, strides, low, high, dilations] =
                [dims, kernel, strides, low, high, dilations].map(|list| list.to_vec());
            let windows = Windows { dims, kernel, counts, strides, low, high, dilations };
            for tap in 0..windows.n_taps() {
                let mut found = Vec::new();
                windows.lines(tap, |line| {
                    found.extend((0..line.len).map(|i| (line.window + i, line.element + i * line.step)));
                });
                let place = [tap / windows.kernel[1], tap % windows.kernel[1]];
                let mut expected = Vec::new();
                for window in 0..windows.n_windows() {
                    let at = [window / windows.counts[1], window % windows.counts[1]];
                    let position = |a: usize| {
                        (at[a] * windows.strides[a] + place[a] * windows.dilations[a])
                            .checked_sub(windows.low[a])
                            .filter(|&position| position < windows.dims[a])
                    };
                    if let (Some(row), Some(col)) = (position(0), position(1)) {
                        expected.push((window, row * windows.dims[1] + col));
                    }
                }
                assert_eq!(found, expected, "{windows:?}, tap {tap}");
            }
        }
    }
}

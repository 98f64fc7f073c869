//! Sliding windows: how convolutions and pooling cut the spatial axes of their operand.

/// The windows of an operator, one entry per spatial axis in every list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows<'a> {
    /// Positions from one window to the next.
    pub(super) strides: &'a [u64],
    /// Positions added before the first.
    pub(super) low: &'a [u64],
    /// Positions added behind the last.
    pub(super) high: &'a [u64],
    /// Positions from one element of a window to the next.
    pub(super) dilations: &'a [u64],
    /// Whether a last window may reach beyond the added positions.
    pub(super) ceil: bool,
}

impl Windows<'_> {
    /// How many windows there are along each axis.
    pub(super) fn count(&self, dims: &[u64], kernel: &[u64]) -> Result<Vec<u64>, String> {
        let lists = [
            ("kernel", kernel),
            ("strides", self.strides),
            ("low", self.low),
            ("high", self.high),
            ("dilations", self.dilations),
        ];
        for (name, list) in lists {
            if list.len() != dims.len() {
                return Err(format!("expected {} numbers in `{name}`, found {list:?}", dims.len()));
            }
        }
        for (name, list) in [lists[0], lists[1], lists[4]] {
            if list.contains(&0) {
                return Err(format!("expected numbers of 1 or more in `{name}`, found {list:?}"));
            }
        }
        (0..dims.len())
            .map(|axis| {
                let found = self.along(axis, dims[axis], kernel[axis]);
                found.ok_or_else(|| {
                    format!(
                        "a window of {} does not fit into {} positions on axis {}",
                        kernel[axis],
                        dims[axis],
                        axis + 2
                    )
                })
            })
            .collect()
    }

    /// The windows along one axis; `None` where not even one fits.
    fn along(&self, axis: usize, dim: u64, kernel: u64) -> Option<u64> {
        let (stride, low) = (self.strides[axis], self.low[axis]);
        let extent = (kernel - 1).checked_mul(self.dilations[axis])?.checked_add(1)?;
        let padded = dim.checked_add(low)?.checked_add(self.high[axis])?;
        let steps = padded.checked_sub(extent)?;
        if !self.ceil {
            return Some(steps / stride + 1);
        }
        // A window must begin before the positions added behind the last.
        let count = steps.div_ceil(stride) + 1;
        let begins = (count - 1).checked_mul(stride)?;
        Some(if count > 1 && begins >= dim.checked_add(low)? { count - 1 } else { count })
    }
}

#[cfg(test)]
mod tests {
    use super::Windows;

    /// Truth: the formulas of PyTorch's `Conv2d` and of its `pooling_output_shape`, worked out by hand.
    #[test]
    fn windows_are_counted_as_in_pytorch() {
        for (dim, kernel, stride, pads, dilation, ceil, expected) in [
            (32, 7, 2, (3, 3), 1, false, Some(16)),
            (16, 3, 2, (1, 1), 1, false, Some(8)),
            (10, 3, 1, (0, 0), 4, false, Some(2)),
            (8, 3, 1, (0, 0), 4, false, None),
            (6, 2, 4, (0, 0), 1, false, Some(2)),
            (7, 2, 2, (0, 0), 1, false, Some(3)),
            (7, 2, 2, (0, 0), 1, true, Some(4)),
            // The third window would begin behind the last element.
            (5, 1, 3, (0, 1), 1, true, Some(2)),
        ] {
            let lists = [[stride], [pads.0], [pads.1], [dilation]];
            let [strides, low, high, dilations] = &lists;
            let windows = Windows { strides, low, high, dilations, ceil };
            assert_eq!(windows.count(&[dim], &[kernel]).ok(), expected.map(|n| vec![n]), "{dim} {kernel} {stride}");
        }
    }
}

//! Attributes of sliding windows, which convolutions and pooling share.

use crate::onnx::call::{Call, Fail};
use crate::onnx::code;

/// The windows of a node, one entry per spatial axis in every list.
pub(super) struct Windows {
    /// Size.
    pub(super) kernel: Vec<u64>,
    /// Positions from one window to the next.
    pub(super) strides: Vec<u64>,
    /// Positions added before the first.
    pub(super) low: Vec<u64>,
    /// Positions added behind the last.
    pub(super) high: Vec<u64>,
    /// Positions from one element of a window to the next.
    pub(super) dilations: Vec<u64>,
}

impl Windows {
    /// The windows of a node over axes of these dimensions.
    pub(super) fn read(call: &Call<'_>, dims: &[u64], kernel: Vec<u64>) -> Result<Self, Fail> {
        let n = dims.len();
        if kernel.len() != n {
            return Err(bad(format!("its windows {kernel:?} have not one size for each of {n} axes")));
        }
        let strides = list(call, "strides", n, 1)?;
        let dilations = list(call, "dilations", n, 1)?;
        if strides.contains(&0) || dilations.contains(&0) || kernel.contains(&0) {
            return Err(bad(format!(
                "windows {kernel:?}, strides {strides:?} and dilations {dilations:?} must be positive"
            )));
        }
        let auto_pad = call.string("auto_pad", "NOTSET")?;
        let (low, high) = match auto_pad.as_str() {
            "NOTSET" | "" => {
                let pads = list(call, "pads", 2 * n, 0)?;
                (pads[..n].to_vec(), pads[n..].to_vec())
            }
            "VALID" => (vec![0; n], vec![0; n]),
            "SAME_UPPER" | "SAME_LOWER" => {
                let added = |axis: usize| {
                    let extent = (kernel[axis] - 1).saturating_mul(dilations[axis]).saturating_add(1);
                    let steps = dims[axis].div_ceil(strides[axis]).saturating_sub(1);
                    steps.saturating_mul(strides[axis]).saturating_add(extent).saturating_sub(dims[axis])
                };
                let added: Vec<u64> = (0..n).map(added).collect();
                let less = added.iter().map(|added| added / 2).collect();
                let more = added.iter().map(|added| added.div_ceil(2)).collect();
                if auto_pad == "SAME_UPPER" { (less, more) } else { (more, less) }
            }
            other => return Err(bad(format!("its attribute `auto_pad` is `{other}`"))),
        };
        Ok(Self { kernel, strides, low, high, dilations })
    }
}

/// A list of numbers that are not negative, or a number for each entry.
pub(super) fn list(call: &Call<'_>, name: &str, n: usize, default: u64) -> Result<Vec<u64>, Fail> {
    let Some(given) = call.ints(name)?.filter(|given| !given.is_empty()) else { return Ok(vec![default; n]) };
    let read: Option<Vec<u64>> = given.iter().map(|&number| u64::try_from(number).ok()).collect();
    match read {
        Some(read) if read.len() == n => Ok(read),
        Some(_) => Err(bad(format!("its attribute `{name}` needs {n} numbers, found {given:?}"))),
        None => Err(Fail::form(format!("negative numbers in `{name}`, found {given:?}"))),
    }
}

fn bad(message: String) -> Fail {
    Fail::new(code::BAD_ATTRIBUTE, message)
}

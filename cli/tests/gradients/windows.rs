//! Convolution, pooling and batch normalization against PyTorch (`testdata/goldens/windows`, made by
//! `testdata/scripts/windows.py`): values, and gradients where PyTorch's convention matters.

use crate::operators::{cases, failures};

/// The cases of the golden.
pub(crate) const GOLDEN: &str = include_str!("../../../testdata/goldens/windows/golden.json");

#[test]
fn values_and_gradients_are_pytorchs() {
    assert_eq!(cases(GOLDEN).len(), 26);
    let failures = failures(GOLDEN);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

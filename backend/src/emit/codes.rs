//! The codes of everything that can go wrong when plans are read and outputs are written.

/// The file is no plan in either form.
pub(super) const NOT_A_PLAN: &str = "E0701";
/// The file ends too early.
pub(super) const TRUNCATED: &str = "E0702";
/// The plan is of a format that this version does not know.
pub(super) const UNKNOWN_FORMAT: &str = "E0703";
/// Something in the plan means nothing where it stands.
pub(super) const BAD_PLAN: &str = "E0704";
/// The file is larger than any plan.
pub(super) const TOO_LARGE: &str = "E0705";
/// The output cannot be written.
pub(super) const UNWRITABLE: &str = "E0706";

/// Every code of this module with its meaning in one line, in order.
pub const EMIT_CODES: [(&str, &str); 6] = [
    (NOT_A_PLAN, "the file is no plan, neither plan.json nor plan.pb"),
    (TRUNCATED, "the plan's file ends too early"),
    (UNKNOWN_FORMAT, "the plan is of a format that this version does not know"),
    (BAD_PLAN, "something in the plan means nothing where it stands"),
    (TOO_LARGE, "the file is larger than any plan"),
    (UNWRITABLE, "an output cannot be written"),
];

//! The codes of everything that can be wrong with the text form of a graph.

/// A character that starts no token.
pub(super) const BAD_CHARACTER: &str = "E0201";
/// A quoted text without end or with an unknown escape.
pub(super) const BAD_TEXT: &str = "E0202";
/// Another token than what must stand there.
pub(super) const UNEXPECTED: &str = "E0203";
/// A number that does not fit or is malformed.
pub(super) const BAD_NUMBER: &str = "E0204";
/// A role, phase or element type that does not exist.
pub(super) const UNKNOWN_WORD: &str = "E0205";
/// An operator that does not exist, or attributes that it does not take.
pub(super) const BAD_OPERATOR: &str = "E0206";
/// Constant data with the wrong number of elements.
pub(super) const BAD_LITERAL: &str = "E0207";
/// Numbers of values or nodes with gaps, repetitions, or out of order.
pub(super) const BAD_NUMBERING: &str = "E0208";
/// Another number of types than of results.
pub(super) const RESULT_COUNT: &str = "E0209";
/// More errors than are worth reporting.
pub(super) const TOO_MANY: &str = "E0210";

/// Every code of this module with its meaning in one line, in order.
pub const TEXT_CODES: [(&str, &str); 10] = [
    (BAD_CHARACTER, "a character has no meaning in the text form"),
    (BAD_TEXT, "a quoted text has no end or an unknown escape"),
    (UNEXPECTED, "something else was expected where this stands"),
    (BAD_NUMBER, "a number is malformed or does not fit"),
    (UNKNOWN_WORD, "a role, phase or element type does not exist"),
    (BAD_OPERATOR, "the operator does not exist or does not take these attributes"),
    (BAD_LITERAL, "constant data does not have as many elements as its type"),
    (BAD_NUMBERING, "values or nodes are numbered with gaps, repetitions, or out of order"),
    (RESULT_COUNT, "a node does not have as many types as results"),
    (TOO_MANY, "there are more errors than are worth reporting"),
];

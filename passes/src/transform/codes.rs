//! The codes of everything that transforms have to say.

use crate::verifying::{BROKEN_INPUT, BROKEN_PASS};

/// No loss is given and the model has none.
pub(super) const MISSING_LOSS: &str = "E0401";
/// Several outputs could be the loss.
pub(super) const AMBIGUOUS_LOSS: &str = "E0402";
/// The loss specification names something that the model does not have.
pub(super) const UNKNOWN_OUTPUT: &str = "E0403";
/// The loss specification does not fit the output it names.
pub(super) const UNFIT_LOSS: &str = "E0404";
/// A loss specification that cannot be read.
pub(super) const BAD_LOSS_SPEC: &str = "E0405";
/// Which loss was attached without being asked.
pub(super) const ASSUMED_LOSS: &str = "N0406";
/// The loss of the model is a mean of unknown weight.
pub(super) const MEAN_LOSS: &str = "N0407";
/// The graph to be differentiated has no loss.
pub(super) const NO_LOSS: &str = "E0501";
/// An operator between a trained parameter and the loss has no gradient rule.
pub(super) const NOT_DIFFERENTIABLE: &str = "E0502";
/// No parameter is trained.
pub(super) const NOTHING_TO_TRAIN: &str = "E0503";
/// A trained parameter does not influence the loss.
pub(super) const UNUSED_PARAMETER: &str = "W0504";
/// Names of the model collide with names that the update graph gives.
pub(super) const NAME_TAKEN: &str = "E0505";

/// Every code of transforms with its meaning in one line, in order.
pub const TRANSFORM_CODES: [(&str, &str); 14] = [
    (MISSING_LOSS, "no loss is given and the model computes none"),
    (AMBIGUOUS_LOSS, "several outputs of the model could be the loss"),
    (UNKNOWN_OUTPUT, "`--loss` names something that is not a float output of the model"),
    (UNFIT_LOSS, "`--loss` asks for a loss that does not fit the output or the inputs of the model"),
    (BAD_LOSS_SPEC, "`--loss` is not of the form `cross-entropy:NAME`, `mse:NAME` or `sum:NAME`"),
    (ASSUMED_LOSS, "a loss was attached by the shape of the model alone"),
    (MEAN_LOSS, "the model's own loss is averaged over micro-batches with equal weights"),
    (NO_LOSS, "a graph without a loss cannot be differentiated"),
    (NOT_DIFFERENTIABLE, "the gradient of a trained parameter would have to pass an operator that has none"),
    (NOTHING_TO_TRAIN, "no parameter of the model is trained"),
    (UNUSED_PARAMETER, "the loss does not depend on a trained parameter"),
    (NAME_TAKEN, "a parameter has a name that the update graph needs for something else"),
    (BROKEN_PASS, "a pass left a graph that breaks a rule of the verifier: a bug of trainc"),
    (BROKEN_INPUT, "the graph that a pipeline starts from breaks a rule of the verifier"),
];

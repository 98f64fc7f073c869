//! Which operators have a gradient rule.

use trainc_ir::Op;

/// Operators that no gradient can pass: gradients themselves, updates, and what nobody knows.
const WITHOUT: [&str; 28] = [
    "tanh_grad",
    "sigmoid_grad",
    "relu_grad",
    "gelu_grad",
    "silu_grad",
    "layer_norm_input_grad",
    "layer_norm_param_grad",
    "rms_norm_input_grad",
    "rms_norm_param_grad",
    "softmax_grad",
    "max_pool_grad",
    "batch_norm_input_grad",
    "batch_norm_param_grad",
    "running_average",
    "log_softmax_grad",
    "attention_grad",
    "attention_mask_grad",
    "rope_grad",
    "dropout_grad",
    "cross_entropy_grad",
    "accumulate",
    "adamw",
    "sgd_momentum",
    "sgd",
    "opaque",
    "constant",
    "argmax",
    "not",
];

/// Results of these are integers or bools, which have no gradient.
const DISCRETE: [&str; 10] = ["is_nan", "and", "or", "xor", "eq", "ne", "lt", "le", "gt", "ge"];

/// Whether differentiation has a rule that passes a gradient through the operator of this spelling.
pub fn has_gradient(spelling: &str) -> bool {
    let known = Op::spellings().any(|(_, name)| name == spelling);
    known && !WITHOUT.contains(&spelling) && !DISCRETE.contains(&spelling)
}

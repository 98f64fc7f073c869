//! Losses that the user asks for by the name of an output.

use super::{Terms, codes, extend, integer_data, is_integer, is_label_name};
use trainc_ir::op::{Elementwise, Literal, Loss, Movement, ReduceKind, Reduction};
use trainc_ir::{DType, Diagnostic, Diagnostics, Graph, GraphBuilder, InputRole, OutputRole, Place, Type, ValueId};

/// Labels of this value do not count (PyTorch's default).
const IGNORE: i64 = -100;
const TYPED: &str = "the shapes were checked before";

/// Cross-entropy over the last axis of an output.
///
/// Logits `[batch, positions, classes]` of a model whose one integer input is `[batch, positions]` are a language
/// model's: position `i` predicts the input at `i + 1`, and the last position predicts nothing. Logits are never copied:
/// the labels are shifted. Otherwise labels are an input of the logits' shape without the last axis.
pub(super) fn cross_entropy(graph: &mut Graph, name: &str, notes: &mut Vec<Diagnostic>) -> Result<Terms, Diagnostics> {
    let logits = output(graph, name)?;
    let shape = graph.ty(logits).shape.clone();
    let Some((&classes, lead)) = shape.split_last().filter(|(_, lead)| !lead.is_empty()) else {
        let message = format!("cross-entropy needs logits of rank 2 or more, but `{name}` is {}", graph.ty(logits));
        return Err(unfit(name, message).into());
    };
    let labels = match next_tokens(graph, lead) {
        Some(tokens) if lead[1] > 1 => extend(graph, |b| shifted(b, tokens)),
        Some(_) => {
            let message = format!("`{name}` has one position per sample, so there is no next token to predict");
            return Err(unfit(name, message).into());
        }
        None => {
            let (labels, given) = labels(graph, Type::new(DType::I64, lead));
            if lead.len() > 1 {
                let input = &graph.input_of(labels).expect("labels are an input").name;
                let message = format!("`{name}` is compared with `{input}` position by position: nothing is shifted");
                let why = if given { "the model has this input" } else { "the model has no one token input" };
                notes.push(Diagnostic::note(codes::ASSUMED_LOSS, message).with_note(why));
            }
            labels
        }
    };
    let rows = lead.iter().product();
    Ok(extend(graph, |b| {
        let logits = reshape(b, logits, vec![rows, classes]);
        let labels = reshape(b, labels, vec![rows]);
        let out = b.add(Loss::CrossEntropy { ignore_index: IGNORE }, &[logits, labels]).expect(TYPED);
        Terms { sum: out[0], count: out[1] }
    }))
}

/// The one integer input of shape `[batch, positions]`, where the logits have such positions.
pub(super) fn next_tokens(graph: &Graph, lead: &[u64]) -> Option<ValueId> {
    let mut inputs = integer_data(graph);
    let only = inputs.next().filter(|_| inputs.next().is_none())?;
    (lead.len() == 2 && graph.ty(only.value).shape == lead).then_some(only.value)
}

fn shifted(b: &mut GraphBuilder, tokens: ValueId) -> ValueId {
    let ty = b.ty(tokens).clone();
    let tokens = if matches!(ty.dtype, DType::I64 | DType::I32) {
        tokens
    } else {
        b.one(Elementwise::Cast { to: DType::I64 }, &[tokens]).expect(TYPED)
    };
    let (batch, positions) = (ty.shape[0], ty.shape[1]);
    let slice = Movement::Slice { starts: vec![0, 1], ends: vec![batch as i64, positions as i64], steps: vec![1, 1] };
    let next = b.one(slice, &[tokens]).expect(TYPED);
    let none = b.constant(Literal::splat_i64(Type::new(b.ty(tokens).dtype, [batch, 1]), IGNORE));
    b.one(Movement::Concat { axis: 1 }, &[next, none]).expect(TYPED)
}

/// Sum of squared differences to labels of the output's type.
pub(super) fn mse(graph: &mut Graph, name: &str) -> Result<Terms, Diagnostics> {
    let prediction = output(graph, name)?;
    let ty = graph.ty(prediction).clone();
    let elements = ty.elements();
    let (labels, _) = labels(graph, ty);
    Ok(extend(graph, |b| {
        let difference = b.one(Elementwise::Sub, &[prediction, labels]).expect(TYPED);
        let difference = wide(b, difference);
        let square = b.one(Elementwise::Mul, &[difference, difference]).expect(TYPED);
        terms(b, square, elements)
    }))
}

/// The sum of an output, as one term.
pub(super) fn sum(graph: &mut Graph, name: &str) -> Result<Terms, Diagnostics> {
    let value = output(graph, name)?;
    Ok(extend(graph, |b| terms(b, value, 1)))
}

/// The sum of all elements of a value, in at least single precision, and a constant count.
pub(super) fn terms(b: &mut GraphBuilder, value: ValueId, count: u64) -> Terms {
    let value = wide(b, value);
    let axes: Vec<u64> = (0..b.ty(value).rank() as u64).collect();
    let sum = if axes.is_empty() {
        value
    } else {
        b.one(Reduction::Reduce { kind: ReduceKind::Sum, axes, keep: false }, &[value]).expect(TYPED)
    };
    Terms { sum, count: b.constant(Literal::splat_i64(Type::scalar(DType::I64), count as i64)) }
}

fn wide(b: &mut GraphBuilder, value: ValueId) -> ValueId {
    match b.ty(value).dtype {
        DType::F16 | DType::BF16 => b.one(Elementwise::Cast { to: DType::F32 }, &[value]).expect(TYPED),
        DType::F32 | DType::F64 => value,
        DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => unreachable!("outputs were checked: floats"),
    }
}

pub(super) fn reshape(b: &mut GraphBuilder, value: ValueId, shape: Vec<u64>) -> ValueId {
    if b.ty(value).shape == shape {
        return value;
    }
    b.one(Movement::Reshape { shape }, &[value]).expect(TYPED)
}

/// The labels input of this shape: the model's own where it has one (then `true`), else a new one.
fn labels(graph: &mut Graph, ty: Type) -> (ValueId, bool) {
    let fits = |graph: &Graph, value: ValueId| {
        let found = graph.ty(value);
        found.shape == ty.shape && if ty.dtype.is_float() { found.dtype == ty.dtype } else { is_integer(graph, value) }
    };
    let is_data = |role: InputRole| matches!(role, InputRole::Data | InputRole::Label);
    let own = (0..graph.inputs.len()).find(|&i| {
        let input = &graph.inputs[i];
        is_data(input.role) && is_label_name(&input.name) && fits(graph, input.value)
    });
    if let Some(i) = own {
        graph.inputs[i].role = InputRole::Label;
        return (graph.inputs[i].value, true);
    }
    let mut name = "labels".to_owned();
    while graph.input(&name).is_some() {
        name.push('_');
    }
    (extend(graph, |b| b.input(name, InputRole::Label, ty)), false)
}

/// The float output of this name.
fn output(graph: &Graph, name: &str) -> Result<ValueId, Diagnostics> {
    let floats = || graph.outputs.iter().filter(|o| graph.ty(o.value).dtype.is_float());
    if let Some(output) = floats().find(|o| o.name == name) {
        return Ok(output.value);
    }
    let message = match graph.output(name) {
        Some(output) => format!("`{name}` is {} and not a float output", graph.ty(output.value)),
        None => format!("the model has no output `{name}`"),
    };
    let has_own = graph.outputs.iter().any(|output| output.role == OutputRole::LossSum);
    let help = if has_own {
        "leave out `--loss` to train with the loss that the model computes, or name a float output"
    } else {
        "name one of them in `--loss`"
    };
    let names: Vec<_> = floats().map(|o| format!("`{}` ({})", o.name, graph.ty(o.value))).collect();
    Err(vec![
        Diagnostic::error(codes::UNKNOWN_OUTPUT, message)
            .with_note(format!("float outputs of the model: {}", names.join(", ")))
            .with_help(help),
    ])
}

/// A loss that does not fit the output.
struct Unfit(Diagnostic);

impl From<Unfit> for Diagnostics {
    fn from(Unfit(diagnostic): Unfit) -> Self {
        vec![diagnostic]
    }
}

fn unfit(name: &str, message: String) -> Unfit {
    let place = Place::Model { kind: "output", name: name.to_owned() };
    Unfit(
        Diagnostic::error(codes::UNFIT_LOSS, message)
            .at(place, "the output that `--loss` names")
            .with_help(format!("use `--loss mse:{name}` or `--loss sum:{name}`, or name another output")),
    )
}

//! Lowering: the indexed model and its bindings become a graph of the IR, node by node, in execution order.

use super::bind::Bound;
use super::call::{Call, Fail, Operand};
use super::code;
use super::constant::{Const, MAX_ELEMENTS};
use super::emit::SMALL_CONSTANT;
use super::finish::{self, Roles};
use super::index::{IndexedModel, canonical_domain, captures, node_name};
use super::ops;
use super::shared;
use super::survey;
use onnx_protobuf::{GraphProto, NodeProto, TensorProto};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use trainc_ir::op::Literal;
use trainc_ir::{Diagnostic, Diagnostics, GraphBuilder, InputRole, Lowered, Origin, OutputRole, Place, Type, ValueId};

/// Deepest nesting of functions and subgraphs.
pub(super) const MAX_DEPTH: usize = 64;

/// Most nodes that inlining and unrolling may visit, whatever the size of the model, and more for each of its own: a
/// small file does not make a huge graph.
const MAX_NODES: usize = 100_000;
const MAX_COPIES: usize = 64;

/// Elements of large constants that are worked out, whatever the size of the file, and more for each of its bytes.
const MAX_KNOWN: usize = 1 << 21;
const MAX_KNOWN_PER_BYTE: usize = 64;

/// The state of one lowering.
pub(super) struct Lower<'a> {
    pub(super) model: &'a IndexedModel,
    pub(super) bound: &'a Bound,
    pub(super) builder: GraphBuilder,
    /// Large constants that are in the graph already.
    pub(super) literals: HashMap<Literal, ValueId>,
    /// Mean losses that came from a loss operator: the sum and the count that they are made of.
    pub(super) losses: BTreeMap<ValueId, (ValueId, ValueId)>,
    /// Roles found on the way.
    pub(super) roles: Roles,
    /// The next value of each running average, by its name.
    pub(super) updated: BTreeMap<String, ValueId>,
    /// Running averages that several nodes update.
    pub(super) shared_averages: BTreeSet<String>,
    /// Batch normalizations by stored statistics so far.
    pub(super) n_frozen: u64,
    /// Dropouts so far.
    pub(super) n_sites: u64,
    pub(super) diagnostics: Vec<Diagnostic>,
    frames: Vec<Frame>,
    origin: Option<Origin>,
    n_visited: usize,
    /// How many may be.
    max_visited: usize,
    /// Elements of large constants that have been worked out.
    pub(super) n_known: usize,
    /// After how many no more are.
    pub(super) max_known: usize,
}

/// The names of one graph or function body.
#[derive(Default)]
struct Frame {
    values: HashMap<String, Operand>,
    /// Results that no rule computes, with what to say where one is used.
    missing: HashMap<String, String>,
    /// Prefix of node names.
    scope: String,
    /// Operator set versions of a function body; `None` for those of the model.
    opsets: Option<BTreeMap<String, i64>>,
    /// Whether names that are not here are looked up in the enclosing frame.
    sees_outer: bool,
}

/// Lowers the model with bound inputs.
pub(super) fn lower(model: &IndexedModel, bound: &Bound, name: &str) -> Result<Lowered, Diagnostics> {
    let live = live_nodes(model);
    let survey = survey::unsupported(model, bound, &live);
    if survey.iter().any(Diagnostic::is_error) {
        return Err(survey);
    }
    let mut lower = Lower {
        model,
        bound,
        builder: GraphBuilder::new(name),
        literals: HashMap::new(),
        losses: BTreeMap::new(),
        roles: Roles::default(),
        updated: BTreeMap::new(),
        shared_averages: BTreeSet::new(),
        n_frozen: 0,
        n_sites: 0,
        diagnostics: survey,
        frames: vec![Frame::default()],
        origin: None,
        n_visited: 0,
        max_visited: MAX_NODES + MAX_COPIES * model.n_nodes(),
        n_known: 0,
        max_known: MAX_KNOWN + MAX_KNOWN_PER_BYTE * model.raw.file.as_slice().len(),
    };
    let mut problems = lower.inputs(&live);
    if problems.is_empty() {
        let graph = &model.raw.proto.graph;
        let nodes = model.graph.order.iter().filter(|&&position| live[position]);
        for &position in nodes {
            if let Err(problem) = lower.node(&graph.node[position], position) {
                problems.push(problem);
                break;
            }
        }
    }
    if problems.is_empty() {
        problems = lower.outputs();
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let graph = finish::finish(&lower.builder.finish(), &lower.roles);
    let problems = finish::shared_averages(&graph, lower.shared_averages);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut diagnostics = lower.diagnostics;
    diagnostics.extend(finish::frozen_statistics(lower.n_frozen));
    diagnostics.extend(shared::shared_vectors(model, &graph));
    let tables = finish::frequency_tables(&graph);
    let graph = finish::as_buffers(graph, &tables, &mut diagnostics);
    Ok(Lowered { graph, diagnostics })
}

/// Whether an output depends on the node.
fn live_nodes(model: &IndexedModel) -> Vec<bool> {
    let nodes = &model.raw.proto.graph.node;
    let mut live = vec![false; nodes.len()];
    let mark = |live: &mut Vec<bool>, name: &str| {
        if let Some(&position) = model.graph.producer.get(name) {
            live[position] = true;
        }
    };
    for output in &model.graph.outputs {
        mark(&mut live, &output.name);
    }
    for &position in model.graph.order.iter().rev() {
        if live[position] {
            for name in nodes[position].input.iter().map(String::as_str).chain(captures(&nodes[position])) {
                mark(&mut live, name);
            }
        }
    }
    live
}

impl Lower<'_> {
    /// Adds the inputs that live nodes and outputs use.
    fn inputs(&mut self, live: &[bool]) -> Diagnostics {
        let nodes = &self.model.raw.proto.graph.node;
        let mut used: std::collections::HashSet<&str> =
            self.model.graph.outputs.iter().map(|output| output.name.as_str()).collect();
        for node in nodes.iter().zip(live).filter(|&(_, &live)| live).map(|(node, _)| node) {
            used.extend(node.input.iter().map(String::as_str).chain(captures(node)));
        }
        for input in &self.model.graph.inputs {
            if let Some(ty) = self.bound.types.get(&input.name)
                && used.contains(input.name.as_str())
            {
                let value = self.builder.input(input.name.clone(), InputRole::Data, ty.clone());
                self.define(&input.name, value.into());
            }
        }
        Vec::new()
    }

    fn outputs(&mut self) -> Diagnostics {
        let mut problems = Vec::new();
        let mut has_loss = false;
        for output in &self.model.graph.outputs {
            let found = self.lookup(&output.name).and_then(|operand| self.value(&operand));
            match found {
                Ok(value) => match self.losses.get(&value) {
                    Some(&(sum, count)) if !has_loss => {
                        has_loss = true;
                        self.builder.output("loss_sum", OutputRole::LossSum, sum);
                        self.builder.output("loss_count", OutputRole::LossCount, count);
                    }
                    Some(_) | None => self.builder.output(output.name.clone(), OutputRole::Prediction, value),
                },
                Err(fail) => {
                    let text = format!("output `{}`: {}", output.name, fail.message);
                    problems.push(Diagnostic::error(fail.code, text));
                }
            }
        }
        for (name, &value) in &self.updated {
            if self.model.graph.outputs.iter().any(|output| output.name == *name) {
                let text = format!("output `{name}` is a running average, which training updates");
                problems.push(Diagnostic::error(code::UNSUPPORTED_FORM, text));
            }
            self.builder.output(name.clone(), OutputRole::Updated, value);
        }
        problems
    }

    /// Lowers one node and defines its results.
    fn node(&mut self, node: &NodeProto, position: usize) -> Result<(), Diagnostic> {
        let own_name = node_name(node, position);
        let name = format!("{}{own_name}", self.frame().scope);
        let outer = self.origin.replace(Origin { name: name.clone() });
        self.builder.set_origin(self.origin.clone());
        self.n_visited += 1;
        let result = if self.n_visited > self.max_visited {
            let most = self.max_visited;
            Err(Fail::new(code::FUNCTION_DEPTH, format!("more than {most} nodes after inlining and unrolling")))
        } else {
            self.results(node, &name)
        };
        let results = result.map_err(|fail| self.at_node(&fail, &name, &node.op_type))?;
        self.origin = outer;
        self.builder.set_origin(self.origin.clone());
        let mut results = results.into_iter();
        for (slot, output) in node.output.iter().enumerate() {
            let result = results.next();
            let n_known = result.as_ref().and_then(Operand::known).map_or(0, |known| known.data.len());
            self.n_known += if n_known > SMALL_CONSTANT { n_known } else { 0 };
            match result {
                _ if output.is_empty() => {}
                Some(result) => self.define(output, result),
                None => {
                    let text = format!("the use of result {slot} of node `{name}` ({})", node.op_type);
                    self.frame_mut().missing.insert(output.clone(), text);
                }
            }
        }
        Ok(())
    }

    fn results(&mut self, node: &NodeProto, name: &str) -> Result<Vec<Operand>, Fail> {
        let inputs = node
            .input
            .iter()
            .map(|input| if input.is_empty() { Ok(None) } else { self.lookup(input).map(Some) })
            .collect::<Result<Vec<_>, _>>()?;
        let domain = canonical_domain(&node.domain);
        let call = Call { node, opset: self.opset(domain), inputs };
        if let Some(rule) = ops::rule(domain, &node.op_type) {
            return rule(self, &call);
        }
        let key = (domain.to_owned(), node.op_type.clone(), node.overload.clone());
        match self.model.functions.get(&key) {
            Some(&function) => ops::inline_function(self, &call, function, name),
            None => survey::opaque(self, &call),
        }
    }

    fn at_node(&self, fail: &Fail, name: &str, op: &str) -> Diagnostic {
        let touches =
            |value: u64| fail.message.split(|c: char| !c.is_ascii_digit()).any(|number| number.parse() == Ok(value));
        let blamed: Vec<_> = self.bound.places.iter().filter(|place| place.value > 1 && touches(place.value)).collect();
        let is_shape = fail.code == code::BAD_SHAPE;
        let code = if is_shape && !blamed.is_empty() { code::IMPOSSIBLE_BINDING } else { fail.code };
        let mut diagnostic = Diagnostic::error(code, format!("node `{name}` ({op}): {}", fail.message))
            .at(Place::Model { kind: "node", name: name.to_owned() }, "at this node");
        if fail.code == code::UNSUPPORTED_FORM {
            diagnostic = diagnostic.with_help(
                "export the model in another form: without fused operators, without past inputs, or at another opset",
            );
        }
        if is_shape && let Some(bound) = self.bound.describe() {
            diagnostic = diagnostic.with_note(format!("the inputs are bound as {bound}"));
        }
        if let Some(place) = blamed.first().filter(|_| code == code::IMPOSSIBLE_BINDING) {
            let (input, axis, symbol, value) = (&place.input, place.axis, &place.symbol, place.value);
            diagnostic = diagnostic
                .with_note(format!("`{symbol}` (axis {axis} of input `{input}`) is bound to {value}"))
                .with_help(format!("bind another number with --bind {symbol}=N"));
        }
        diagnostic
    }

    /// Lowers a body (function or subgraph) in a frame of its own and returns the values of its outputs.
    pub(super) fn body(&mut self, body: Body<'_>) -> Result<Vec<Operand>, Fail> {
        if self.frames.len() > MAX_DEPTH {
            return Err(Fail::new(code::FUNCTION_DEPTH, format!("bodies are nested more than {MAX_DEPTH} deep")));
        }
        let scope = format!("{}{}/", self.frame().scope, body.scope);
        let (values, missing) = (body.arguments, HashMap::new());
        self.frames.push(Frame { values, missing, scope, opsets: body.opsets, sees_outer: body.sees_outer });
        let result = self.body_in_frame(body.nodes, body.order, body.initializers, &body.outputs);
        self.frames.pop();
        result
    }

    fn body_in_frame(
        &mut self,
        nodes: &[NodeProto],
        order: &[usize],
        initializers: &[TensorProto],
        outputs: &[&str],
    ) -> Result<Vec<Operand>, Fail> {
        for tensor in initializers {
            let value = self.tensor(tensor)?;
            self.define(&tensor.name, value);
        }
        for &position in order {
            self.node(&nodes[position], position).map_err(|problem| Fail::new(problem.code, problem.message))?;
        }
        outputs.iter().map(|name| self.lookup(name)).collect()
    }

    fn frame(&self) -> &Frame {
        self.frames.last().expect("the frame of the model's graph is never popped")
    }

    /// Version of an operator domain where the node stands.
    pub(super) fn opset(&self, domain: &str) -> i64 {
        for frame in self.frames.iter().rev() {
            if let Some(opsets) = &frame.opsets {
                return opsets.get(domain).copied().unwrap_or(1);
            }
        }
        self.model.raw.opset(domain).unwrap_or(1)
    }

    fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the frame of the model's graph is never popped")
    }

    fn define(&mut self, name: &str, value: Operand) {
        self.frame_mut().values.insert(name.to_owned(), value);
    }

    /// The value of a name where the node stands.
    pub(super) fn lookup(&mut self, name: &str) -> Result<Operand, Fail> {
        let mut depth = self.frames.len();
        while depth > 0 {
            let frame = &self.frames[depth - 1];
            if let Some(value) = frame.values.get(name) {
                return Ok(value.clone());
            }
            if let Some(what) = frame.missing.get(name) {
                return Err(Fail::form(what.clone()));
            }
            if depth > 1 && !frame.sees_outer {
                break;
            }
            depth -= 1;
        }
        if depth == 0
            && let Some(&position) = self.model.graph.initializers.get(name)
        {
            let value = self.initializer(&self.model.raw.proto.graph.initializer[position])?;
            self.frames[0].values.insert(name.to_owned(), value.clone());
            return Ok(value);
        }
        let text = match self.model.graph.inputs.iter().find(|input| input.name == name) {
            Some(_) => format!("input `{name}` has no type"),
            None => format!("value `{name}` is not produced by any node"),
        };
        Err(Fail::new(code::MISSING_VALUE, text))
    }

    /// An initializer of the model: a parameter, a buffer, or a constant.
    fn initializer(&mut self, proto: &TensorProto) -> Result<Operand, Fail> {
        let weight = self.model.raw.weight(proto).map_err(|problem| Fail::new(problem.code, problem.message))?;
        let ty = weight.ty().clone();
        let is_weight =
            if ty.elements() > 1 { !is_lifted_constant(weight.name(), &ty) } else { is_module_path(weight.name()) };
        if ty.dtype.is_float() && is_weight {
            return Ok(self.builder.input(weight.name(), InputRole::Parameter, ty).into());
        }
        if weight.has_data() && ty.elements() <= MAX_ELEMENTS {
            match self.tensor(proto) {
                Err(fail) if fail.code == code::EXTERNAL_DATA => {
                    let text = format!("{}; it is taken as an input of the model", fail.message);
                    self.diagnostics.push(Diagnostic::warning(fail.code, text));
                }
                known => return known,
            }
        }
        Ok(self.builder.input(weight.name(), InputRole::Buffer, ty).into())
    }

    /// A constant tensor of the model.
    pub(super) fn tensor(&mut self, proto: &TensorProto) -> Result<Operand, Fail> {
        let to_fail = |problem: Diagnostic| Fail::new(problem.code, problem.message);
        let weight = self.model.raw.weight(proto).map_err(to_fail)?;
        let known = Const::from_bytes(weight.ty(), &weight.read_bytes().map_err(to_fail)?);
        let name = &proto.name;
        let large = || Fail::form(format!("constant `{name}` of type {} is too large to be a constant", weight.ty()));
        Ok(known.ok_or_else(large)?.into())
    }
}

/// A function body or subgraph to be lowered in place.
pub(super) struct Body<'b> {
    /// Its nodes.
    pub(super) nodes: &'b [NodeProto],
    /// Their execution order.
    pub(super) order: &'b [usize],
    /// Its own constants.
    pub(super) initializers: &'b [TensorProto],
    /// Values of its inputs.
    pub(super) arguments: HashMap<String, Operand>,
    /// Names of its outputs.
    pub(super) outputs: Vec<&'b str>,
    /// What its node names are prefixed with.
    pub(super) scope: String,
    /// Its own operator set versions.
    pub(super) opsets: Option<BTreeMap<String, i64>>,
    /// Whether it sees the names of where it stands.
    pub(super) sees_outer: bool,
}

/// Names of subgraph outputs.
pub(super) fn output_names(graph: &GraphProto) -> Vec<&str> {
    graph.output.iter().map(|output| output.name.as_str()).collect()
}

/// Whether a one-element float is a weight by its name: exporters name weights by their module path (`head.bias`),
/// and the numbers of the program otherwise (`val_9`, `/encoder/Constant_output_0`, `onnx::Mul_12`).
fn is_module_path(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    name.contains('.') && !name.contains(['/', ':']) && last.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Whether PyTorch's exporter made the name for a tensor that it found in the program, not among the weights.
/// `val_9` is a weight all the same where it holds matrices: the exporter transposes those of linear layers ahead of
/// time and names them anew. Masks and tables have a dimension of 1.
fn is_lifted_constant(name: &str, ty: &Type) -> bool {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_matrix = matches!(ty.rank(), 2 | 3) && !ty.shape.contains(&1);
    // Where positions are known, tables of rotary embeddings and masks are computed ahead of time (`unsqueeze_14`).
    let operator = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    let is_table = ty.rank() > 2 && ty.shape.contains(&1);
    (numbered("val_") && !is_matrix)
        || (is_table && TABLE_OPERATORS.contains(&operator))
        || name.contains("lifted_tensor")
        || name.contains("_tensor_constant")
}

/// What masks and tables end with.
const TABLE_OPERATORS: [&str; 20] = [
    "unsqueeze",
    "where",
    "expand",
    "cos",
    "sin",
    "cat",
    "stack",
    "index",
    "repeat_interleave",
    "mul",
    "div",
    "add",
    "sub",
    "rsub",
    "masked_fill",
    "slice",
    "full",
    "view",
    "clone",
    "to_copy",
];

#[cfg(test)]
mod tests {
    use super::is_lifted_constant;
    use trainc_ir::{DType, Type};

    #[test]
    fn tables_computed_ahead_of_time_are_no_weights() {
        // Names and shapes of a LLaMA and a ViT that PyTorch exported for a fixed number of positions.
        let lifted = |name: &str, shape: &[u64]| is_lifted_constant(name, &Type::new(DType::F32, shape));
        assert!(lifted("unsqueeze_14", &[1, 1, 16, 16]));
        assert!(lifted("where", &[2, 1, 16, 16]));
        assert!(lifted("val_7", &[16]));
        assert!(!lifted("val_113", &[64, 32]));
        assert!(!lifted("m.vit.embeddings.cls_token", &[1, 1, 32]));
        assert!(!lifted("scale", &[1, 1, 32]));
        assert!(!lifted("mul", &[32, 32]));
    }
}

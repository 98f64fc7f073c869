//! The indexed model: names resolved, nodes in execution order, initializers told from inputs.

use super::code;
use super::element;
use super::read::RawModel;
use onnx_protobuf::tensor_shape_proto::dimension;
use onnx_protobuf::{FunctionProto, GraphProto, NodeProto, TypeProto, ValueInfoProto, type_proto};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use trainc_ir::{DType, Diagnostic, Diagnostics, Place};

/// A model with its top-level graph and function table indexed.
#[derive(Debug)]
pub(super) struct IndexedModel {
    pub(super) raw: RawModel,
    pub(super) graph: IndexedGraph,
    /// Position in `ModelProto::functions` by (domain, name, overload).
    pub(super) functions: BTreeMap<(String, String, String), usize>,
}

impl IndexedModel {
    /// Nodes of the graph, of its subgraphs and of all functions.
    pub(super) fn n_nodes(&self) -> usize {
        let functions = self.raw.proto.functions.iter().map(|function| count(&function.node));
        count(&self.raw.proto.graph.node) + functions.sum::<usize>()
    }
}

fn count(nodes: &[NodeProto]) -> usize {
    let inner = |node: &NodeProto| subgraphs(node).map(|graph| count(&graph.node)).sum::<usize>();
    nodes.iter().map(|node| 1 + inner(node)).sum()
}

/// Names and order of one graph; positions are those of the graph's message.
#[derive(Debug, Default)]
pub(super) struct IndexedGraph {
    /// Node positions in an order in which every value is produced before it is used.
    pub(super) order: Vec<usize>,
    /// Node position by the name of a value that it produces.
    pub(super) producer: HashMap<String, usize>,
    /// Position in `GraphProto::initializer` by name.
    pub(super) initializers: HashMap<String, usize>,
    /// Inputs that are not initializers.
    pub(super) inputs: Vec<Declared>,
    /// Outputs.
    pub(super) outputs: Vec<Declared>,
    /// Declared types of inner values: hints, never an authority.
    pub(super) hints: HashMap<String, Declared>,
}

/// A value's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    /// Its name.
    pub(super) name: String,
    /// Element type, or the words for why there is none.
    pub(super) dtype: Result<DType, String>,
    /// Dimensions; `None` where not even the rank is declared.
    pub(super) dims: Option<Vec<Dim>>,
}

/// A declared dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dim {
    /// A number.
    Fixed(u64),
    /// A name: any string, `batch.0` and `?` included.
    Symbol(String),
    /// Neither.
    Unknown,
}

/// Indexes a parsed model.
pub(super) fn index_model(raw: RawModel) -> Result<IndexedModel, Diagnostics> {
    let graph = index_graph(&raw.proto.graph, &|_| false)?;
    if graph.outputs.is_empty() {
        return Err(vec![Diagnostic::error(code::NO_GRAPH, "the model's graph has no outputs")]);
    }
    let mut outputs = HashSet::new();
    let repeated = graph.outputs.iter().filter(|output| !outputs.insert(output.name.as_str()));
    let problems: Diagnostics = repeated.map(|output| duplicate("output", &output.name)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut functions = BTreeMap::new();
    for (position, function) in raw.proto.functions.iter().enumerate() {
        functions.insert(function_key(function), position);
    }
    Ok(IndexedModel { raw, graph, functions })
}

/// Indexes a graph; `outer` says which names an enclosing scope provides.
pub(super) fn index_graph(graph: &GraphProto, outer: &dyn Fn(&str) -> bool) -> Result<IndexedGraph, Diagnostics> {
    let mut problems = Vec::new();
    let mut indexed = IndexedGraph::default();
    for (position, initializer) in graph.initializer.iter().enumerate() {
        if indexed.initializers.insert(initializer.name.clone(), position).is_some() {
            problems.push(duplicate("initializer", &initializer.name));
        }
    }
    let mut defined: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    defined.extend(graph.sparse_initializer.iter().map(|sparse| sparse.values.name.as_str()));
    for input in &graph.input {
        if indexed.initializers.contains_key(&input.name) {
            continue;
        }
        if !defined.insert(&input.name) {
            problems.push(duplicate("input", &input.name));
        }
        indexed.inputs.push(declared(input));
    }
    for (position, node) in graph.node.iter().enumerate() {
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            if !defined.insert(output) {
                let earlier = indexed.producer.get(output).map(|&earlier| &graph.node[earlier]);
                if earlier.is_some_and(|earlier| is_same_constant(earlier, node)) {
                    continue;
                }
                problems.push(duplicate("value", output));
            }
            indexed.producer.insert(output.clone(), position);
        }
    }
    let known = |name: &str| name.is_empty() || defined.contains(name) || outer(name);
    for (position, node) in graph.node.iter().enumerate() {
        for (slot, input) in node.input.iter().enumerate().filter(|(_, input)| !known(input)) {
            problems.push(missing(node, position, &format!("input {slot}"), input));
        }
        for name in captures(node).into_iter().filter(|name| !known(name)) {
            problems.push(missing(node, position, "a subgraph", name));
        }
    }
    for output in &graph.output {
        if !known(&output.name) {
            let text = format!("output `{}` is not produced by any node", output.name);
            problems.push(Diagnostic::error(code::MISSING_VALUE, text));
        }
    }
    indexed.outputs = graph.output.iter().map(declared).collect();
    indexed.hints = graph.value_info.iter().map(|info| (info.name.clone(), declared(info))).collect();
    if problems.is_empty() {
        match execution_order(&graph.node, &indexed.producer) {
            Ok(order) => indexed.order = order,
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(indexed) } else { Err(problems) }
}

/// Key of a function in [`IndexedModel::functions`].
pub(super) fn function_key(function: &FunctionProto) -> (String, String, String) {
    (canonical_domain(&function.domain).to_owned(), function.name.clone(), function.overload.clone())
}

/// The default domain has two spellings.
pub(super) fn canonical_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// How messages name a node: by its own name, else by its position.
pub(super) fn node_name(node: &NodeProto, position: usize) -> String {
    if node.name.is_empty() { format!("#{position}") } else { node.name.clone() }
}

/// A declaration as it stands in the model.
pub(super) fn declared(info: &ValueInfoProto) -> Declared {
    let (dtype, dims) = declared_type(&info.type_);
    Declared { name: info.name.clone(), dtype, dims }
}

fn declared_type(proto: &TypeProto) -> (Result<DType, String>, Option<Vec<Dim>>) {
    let tensor = match &proto.value {
        Some(type_proto::Value::TensorType(tensor)) => tensor,
        Some(type_proto::Value::SequenceType(_)) => return (Err("a sequence".into()), None),
        Some(type_proto::Value::MapType(_)) => return (Err("a map".into()), None),
        Some(type_proto::Value::OptionalType(_)) => return (Err("an optional".into()), None),
        Some(type_proto::Value::SparseTensorType(_)) => return (Err("a sparse tensor".into()), None),
        Some(_) | None => return (Err("no type".into()), None),
    };
    let dtype = element::dtype(tensor.elem_type).map_err(|found| format!("element type {found}"));
    let dims = tensor.shape.as_ref().map(|shape| shape.dim.iter().map(|dim| dimension(dim.value.as_ref())).collect());
    (dtype, dims)
}

fn dimension(value: Option<&dimension::Value>) -> Dim {
    match value {
        Some(dimension::Value::DimValue(value)) => u64::try_from(*value).map_or(Dim::Unknown, Dim::Fixed),
        Some(dimension::Value::DimParam(name)) if !name.is_empty() => Dim::Symbol(name.clone()),
        Some(_) | None => Dim::Unknown,
    }
}

/// Names that a node's subgraphs take from outside, in order of first use.
pub(super) fn captures(node: &NodeProto) -> Vec<&str> {
    let mut free = Vec::new();
    for graph in subgraphs(node) {
        let mut defined: HashSet<&str> = HashSet::new();
        defined.extend(graph.input.iter().map(|input| input.name.as_str()));
        defined.extend(graph.initializer.iter().map(|tensor| tensor.name.as_str()));
        defined.extend(graph.node.iter().flat_map(|node| &node.output).map(String::as_str));
        let inner = graph.node.iter().flat_map(|node| node.input.iter().map(String::as_str).chain(captures(node)));
        let used = inner.chain(graph.output.iter().map(|output| output.name.as_str()));
        for name in used {
            if !name.is_empty() && !defined.contains(name) && !free.contains(&name) {
                free.push(name);
            }
        }
    }
    free
}

/// The graphs among a node's attributes.
pub(super) fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

/// The file's order where it is an execution order, else the order nearest to it.
fn execution_order(nodes: &[NodeProto], producer: &HashMap<String, usize>) -> Result<Vec<usize>, Diagnostic> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut waits: Vec<usize> = vec![0; nodes.len()];
    for (position, node) in nodes.iter().enumerate() {
        for name in node.input.iter().map(String::as_str).chain(captures(node)) {
            if let Some(&from) = producer.get(name) {
                users[from].push(position);
                waits[position] += 1;
            }
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        waits.iter().enumerate().filter(|&(_, &n)| n == 0).map(|(position, _)| Reverse(position)).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(position)) = ready.pop() {
        order.push(position);
        for &user in &users[position] {
            waits[user] -= 1;
            if waits[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    if order.len() == nodes.len() {
        return Ok(order);
    }
    let stuck: Vec<String> =
        (0..nodes.len()).filter(|&i| waits[i] > 0).map(|i| format!("`{}`", node_name(&nodes[i], i))).collect();
    let text = format!("{} nodes depend on each other in a circle or on such nodes", stuck.len());
    let shown = stuck[..stuck.len().min(5)].join(", ");
    Err(Diagnostic::error(code::CYCLE, text).with_note(format!("the first of them: {shown}")))
}

/// Some optimizers write one constant several times under one name, which every runtime accepts.
fn is_same_constant(a: &NodeProto, b: &NodeProto) -> bool {
    a.op_type == "Constant" && b.op_type == "Constant" && a.attribute == b.attribute
}

fn duplicate(kind: &'static str, name: &str) -> Diagnostic {
    let text = format!("{kind} `{name}` is defined twice in one graph");
    Diagnostic::error(code::DUPLICATE_NAME, text).at(Place::Model { kind, name: name.to_owned() }, "defined again here")
}

fn missing(node: &NodeProto, position: usize, slot: &str, value: &str) -> Diagnostic {
    let name = node_name(node, position);
    let text = format!("{slot} of node `{name}` ({}) is value `{value}`, which nothing produces", node.op_type);
    Diagnostic::error(code::MISSING_VALUE, text)
        .at(Place::Model { kind: "node", name }, format!("uses `{value}`"))
        .with_help("the model is incomplete or was edited: export it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        let strings = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        NodeProto { op_type: op.into(), input: strings(inputs), output: strings(outputs), ..Default::default() }
    }

    fn graph(nodes: Vec<NodeProto>) -> GraphProto {
        let value = |name: &str| ValueInfoProto { name: name.into(), ..Default::default() };
        GraphProto { node: nodes, input: vec![value("x")], output: vec![value("y")], ..Default::default() }
    }

    fn codes(graph: &GraphProto) -> Vec<&'static str> {
        index_graph(graph, &|_| false).unwrap_err().iter().map(|problem| problem.code).collect()
    }

    #[test]
    fn nodes_out_of_order_are_sorted_stably() {
        let nodes = vec![
            node("Add", &["a", "b"], &["y"]),
            node("Relu", &["x"], &["b"]),
            node("Neg", &["x"], &["a"]),
            node("Abs", &["b"], &["unused"]),
        ];
        assert_eq!(index_graph(&graph(nodes), &|_| false).unwrap().order, [1, 2, 0, 3]);
    }

    #[test]
    fn faults_are_told_apart() {
        assert_eq!(codes(&graph(vec![node("Relu", &["z"], &["y"])])), [code::MISSING_VALUE]);
        assert_eq!(codes(&graph(vec![node("Relu", &["x"], &["w"])])), [code::MISSING_VALUE]);
        let twice = vec![node("Relu", &["x"], &["y"]), node("Neg", &["x"], &["y"])];
        assert_eq!(codes(&graph(twice)), [code::DUPLICATE_NAME]);
        let circle = vec![node("Relu", &["y"], &["a"]), node("Neg", &["a"], &["y"])];
        assert_eq!(codes(&graph(circle)), [code::CYCLE]);
    }

    #[test]
    fn a_subgraph_counts_as_a_use_of_what_it_captures() {
        let mut branch = node("If", &["x"], &["y"]);
        let body = GraphProto { node: vec![node("Neg", &["late"], &["out"])], ..graph(vec![]) };
        branch.attribute.push(onnx_protobuf::AttributeProto { g: Some(body).into(), ..Default::default() });
        let mut body_output = branch.clone();
        body_output.attribute[0].g.mut_or_insert_default().output[0].name = "out".into();
        let nodes = vec![body_output, node("Relu", &["x"], &["late"])];
        assert_eq!(index_graph(&graph(nodes), &|_| false).unwrap().order, [1, 0]);
    }

    #[test]
    fn an_input_that_is_an_initializer_is_an_initializer() {
        let mut graph = graph(vec![node("Relu", &["w"], &["y"])]);
        graph.input.push(ValueInfoProto { name: "w".into(), ..Default::default() });
        graph.initializer.push(onnx_protobuf::TensorProto { name: "w".into(), ..Default::default() });
        let indexed = index_graph(&graph, &|_| false).unwrap();
        assert_eq!(indexed.inputs.len(), 1);
        assert!(indexed.initializers.contains_key("w"));
    }
}

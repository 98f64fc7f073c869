//! The printer: graphs to text, always in the same way, however broken they are.

use super::lex::quote;
use super::value::print_attr;
use crate::graph::{Graph, Input, InputRole, Node, NodeId, Output, OutputRole, ValueId};
use crate::training::{Phase, TrainingGraph};
use crate::verify::Entity;
use std::fmt::Write;

/// Texts to print as comments below the line of an entity.
type Notes<'a> = &'a dyn Fn(Entity) -> Vec<String>;

/// The words for phases.
pub(crate) const PHASES: [(Phase, &str); 5] = [
    (Phase::Forward, "forward"),
    (Phase::InputGrad, "input_grad"),
    (Phase::WeightGrad, "weight_grad"),
    (Phase::Recompute, "recompute"),
    (Phase::Update, "update"),
];

/// The text form of a graph.
pub fn print(graph: &Graph) -> String {
    print_with(graph, |_| Vec::new())
}

/// The text form of a graph with comments below the lines of its entities.
pub fn print_with(graph: &Graph, notes: impl Fn(Entity) -> Vec<String>) -> String {
    let mut printer = Printer { out: String::new(), indent: 0, notes: &notes };
    printer.graph(graph, None);
    printer.out
}

/// The text form of a training graph.
pub fn print_training(training: &TrainingGraph) -> String {
    print_training_with(training, |_, _| Vec::new())
}

/// The text form of a training graph with comments below the lines of its entities; the callback is told whether an
/// entity is one of the update graph.
pub fn print_training_with(training: &TrainingGraph, notes: impl Fn(bool, Entity) -> Vec<String>) -> String {
    let step = |entity| notes(false, entity);
    let update = |entity| notes(true, entity);
    let mut printer = Printer { out: String::new(), indent: 0, notes: &step };
    printer.training(training, &update);
    printer.out
}

struct Printer<'a> {
    out: String,
    indent: usize,
    notes: Notes<'a>,
}

macro_rules! put {
    ($printer:expr, $($arg:tt)*) => {
        write!($printer.out, $($arg)*).expect("writing to a string does not fail")
    };
}

impl<'a> Printer<'a> {
    fn start(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    fn end(&mut self, entity: Entity) {
        self.out.push('\n');
        for note in (self.notes)(entity) {
            self.start();
            // A note is one line, so that it stays a comment.
            put!(self, "; {}\n", note.replace(['\n', '\r'], " "));
        }
    }

    fn quoted(&mut self, text: &str) {
        quote(&mut self.out, text);
    }

    fn separated<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (i, it) in items.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            item(self, it);
        }
    }

    /// The step of a training graph numbers its nodes and says their phases and anchors.
    fn graph(&mut self, graph: &Graph, step: Option<&TrainingGraph>) {
        self.start();
        self.out.push_str("graph ");
        self.quoted(&graph.name);
        self.out.push_str(" {");
        self.indent += 1;
        self.end(Entity::Graph);
        for (i, input) in graph.inputs.iter().enumerate() {
            self.input(graph, input);
            self.end(Entity::Input(i));
        }
        for (id, node) in graph.nodes.iter() {
            self.start();
            if step.is_some() {
                put!(self, "{id}: ");
            }
            self.node(graph, node);
            if let Some(step) = step {
                self.schedule(step, id);
            }
            if let Some(origin) = &graph.origins[id] {
                self.out.push_str("  @ ");
                self.quoted(&origin.name);
            }
            self.end(Entity::Node(id));
        }
        for (i, output) in graph.outputs.iter().enumerate() {
            self.output(output);
            self.end(Entity::Output(i));
        }
        self.indent -= 1;
        self.start();
        self.out.push_str("}\n");
    }

    fn input(&mut self, graph: &Graph, input: &Input) {
        self.start();
        let role = spelling(&InputRole::ALL, input.role);
        put!(self, "{} = input {role} ", input.value);
        self.quoted(&input.name);
        self.out.push_str(" : ");
        self.ty(graph, input.value);
    }

    fn output(&mut self, output: &Output) {
        self.start();
        put!(self, "output {} ", spelling(&OutputRole::ALL, output.role));
        self.quoted(&output.name);
        put!(self, " {}", output.value);
    }

    fn node(&mut self, graph: &Graph, node: &Node) {
        self.separated(&node.outputs, |p, value| put!(p, "{value}"));
        if !node.outputs.is_empty() {
            self.out.push_str(" = ");
        }
        self.out.push_str(node.op.spelling());
        self.out.push('(');
        self.separated(&node.inputs, |p, value| put!(p, "{value}"));
        self.out.push(')');
        for (name, attr) in node.op.attrs() {
            put!(self, " {name}=");
            print_attr(&mut self.out, &attr);
        }
        if !node.outputs.is_empty() {
            self.out.push_str(" : ");
            self.separated(&node.outputs, |p, &value| p.ty(graph, value));
        }
    }

    fn schedule(&mut self, step: &TrainingGraph, node: NodeId) {
        let (phase, anchor) = (step.phases[node], step.anchors[node]);
        if phase != Phase::Forward || anchor.is_some() {
            put!(self, "  #{}", spelling(&PHASES, phase));
        }
        if let Some(anchor) = anchor {
            put!(self, " {anchor}");
        }
    }

    fn ty(&mut self, graph: &Graph, value: ValueId) {
        match graph.values.get(value) {
            Some(value) => put!(self, "{}", value.ty),
            None => self.out.push('?'),
        }
    }

    fn training(&mut self, training: &TrainingGraph, update: Notes<'a>) {
        self.out.push_str("training {\n");
        self.indent += 1;
        self.start();
        put!(self, "forward {}\n", training.forward_nodes);
        self.graph(&training.step, Some(training));
        for (id, parameter) in training.parameters.iter() {
            self.start();
            put!(self, "{id} = param ");
            self.quoted(&parameter.name);
            put!(self, " {} [", parameter.input);
            self.separated(&parameter.contributions, |p, c| put!(p, "{} of {}", c.value, c.user));
            self.out.push(']');
            self.end(Entity::Parameter(id));
        }
        self.notes = update;
        self.graph(&training.update, None);
        self.indent -= 1;
        self.out.push_str("}\n");
    }
}

/// The word for one of several choices.
pub(crate) fn spelling<T: PartialEq + Copy>(choices: &[(T, &'static str)], choice: T) -> &'static str {
    choices.iter().find(|(c, _)| *c == choice).expect("every choice has a spelling").1
}

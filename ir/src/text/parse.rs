//! The parser of graphs: one line at a time, so that one error does not hide those of the next lines.

use super::codes;
use super::cursor::{Cursor, Failure, id_in};
use super::lex::Token;
use super::print::PHASES;
use super::value::parse_attr;
use crate::diag::{Diagnostics, Place};
use crate::graph::{Def, Graph, Input, InputRole, Node, NodeId, Origin, Output, OutputRole, Value, ValueId};
use crate::id::{Id, SideTable};
use crate::op::{Attr, Op};
use crate::ty::Type;
use crate::verify::{Entity, Verified, VerifyError, verify};
use std::ops::Range;

/// Where the entities of a graph stand in the text that it was read from.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    graph: Range<usize>,
    inputs: Vec<Range<usize>>,
    nodes: Vec<Range<usize>>,
    outputs: Vec<Range<usize>>,
    pub(super) parameters: Vec<Range<usize>>,
}

impl SourceMap {
    /// The bytes of the entity, those of the graph's head for what has no line.
    pub fn range(&self, entity: Entity) -> Range<usize> {
        let range = match entity {
            Entity::Graph => None,
            Entity::Input(i) => self.inputs.get(i),
            Entity::Node(id) => self.nodes.get(id.index()),
            Entity::Output(i) => self.outputs.get(i),
            Entity::Parameter(id) => self.parameters.get(id.index()),
        };
        range.unwrap_or(&self.graph).clone()
    }
}

/// Reads the text form of a graph and verifies it.
///
/// # Errors
/// Everything that is wrong with the text, or else everything that is wrong with the graph.
pub fn parse(file: &str, source: &str) -> Result<Verified, Diagnostics> {
    let (graph, map) = read(file, source)?;
    verify(graph).map_err(|(_, errors)| errors.iter().map(|error| locate(error, file, &map)).collect())
}

/// Reads the text form of a graph that need not be valid.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn read(file: &str, source: &str) -> Result<(Graph, SourceMap), Diagnostics> {
    let mut cursor = Cursor::new(file, source);
    cursor.skip_newlines();
    let parsed = Draft::parse(&mut cursor, false);
    cursor.finish(parsed).map(|draft| (draft.graph, draft.map))
}

/// What the verifier found, at its place in the text.
pub(super) fn locate(error: &VerifyError, file: &str, map: &SourceMap) -> crate::Diagnostic {
    let Range { start, end } = map.range(error.at);
    let mut diagnostic = error.to_diagnostic();
    if let Some(label) = diagnostic.labels.first_mut() {
        label.place = Place::Source { file: file.to_owned(), start, end };
    }
    diagnostic
}

/// A graph while it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) graph: Graph,
    pub(super) map: SourceMap,
    /// Phase and anchor of each node, where the node says them.
    pub(super) schedules: Vec<Option<(crate::Phase, Option<NodeId>)>>,
    definitions: Vec<(ValueId, Value)>,
}

impl Draft {
    /// Parses from the word `graph` to the closing brace's line.
    pub(super) fn parse(cursor: &mut Cursor<'_>, in_training: bool) -> Result<Self, Failure> {
        let start = cursor.start();
        let mut draft = Self::default();
        cursor.keyword("graph")?;
        draft.graph.name = cursor.text("the name of the graph in quotes")?;
        draft.map.graph = cursor.since(start);
        let errors = cursor.n_errors();
        cursor.lines(|cursor| draft.line(cursor, in_training))?;
        // A line with an error may have defined values.
        if cursor.n_errors() == errors
            && let Err(error) = draft.number(cursor)
        {
            cursor.report(error)?;
        }
        Ok(draft)
    }

    fn line(&mut self, cursor: &mut Cursor<'_>, in_training: bool) -> Result<(), Failure> {
        let start = cursor.start();
        if cursor.is_word("output") {
            cursor.take();
            let role = cursor.choice("role of an output", &OutputRole::ALL)?;
            let name = cursor.text("the name of the output in quotes")?;
            let value = cursor.value()?;
            self.graph.outputs.push(Output { name, role, value });
            self.map.outputs.push(cursor.since(start));
            return Ok(());
        }
        let mut results = Vec::new();
        let first = cursor.range();
        let mut word = cursor.word("`output`, a value such as `v0`, or an operator")?;
        if cursor.is_mark(':') {
            self.check_label(cursor, first, word)?;
            cursor.take();
            word = cursor.word("a value such as `v0`, or an operator")?;
        }
        if !cursor.is_mark('(') {
            let value = id_in(word, ValueId::PREFIX);
            results.push(value.ok_or_else(|| cursor.unexpected("`(` after the operator"))?);
            while cursor.accept(',') {
                results.push(cursor.value()?);
            }
            cursor.mark('=')?;
            if cursor.is_word("input") && results.len() == 1 {
                return self.input(cursor, start, results[0]);
            }
            word = cursor.word("an operator")?;
        }
        self.node(cursor, start, results, word, in_training)
    }

    /// `n3:` before a node must be the number that it gets anyway.
    fn check_label(&self, cursor: &Cursor<'_>, at: Range<usize>, word: &str) -> Result<(), Failure> {
        let expected = self.graph.nodes.next_id();
        if id_in(word, NodeId::PREFIX) == Some(expected) {
            return Ok(());
        }
        let message = format!("nodes are numbered in order: expected `{expected}`, found `{word}`");
        Err(cursor.error(codes::BAD_NUMBERING, at, message, "here"))
    }

    fn input(&mut self, cursor: &mut Cursor<'_>, start: usize, value: ValueId) -> Result<(), Failure> {
        cursor.keyword("input")?;
        let role = cursor.choice("role of an input", &InputRole::ALL)?;
        let name = cursor.text("the name of the input in quotes")?;
        cursor.mark(':')?;
        let ty = cursor.ty()?;
        self.definitions.push((value, Value { ty, def: Def::Input(self.graph.inputs.len()) }));
        self.graph.inputs.push(Input { name, role, value });
        self.map.inputs.push(cursor.since(start));
        Ok(())
    }

    /// A node from its opening parenthesis on.
    fn node(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: usize,
        outputs: Vec<ValueId>,
        spelling: &str,
        in_training: bool,
    ) -> Result<(), Failure> {
        let id = self.graph.nodes.next_id();
        cursor.mark('(')?;
        let inputs = cursor.list(')', Cursor::value)?;
        let mut attrs: Vec<(&str, Attr)> = Vec::new();
        while let &Token::Word(name) = cursor.peek() {
            cursor.take();
            cursor.mark('=')?;
            attrs.push((name, parse_attr(cursor)?));
        }
        let op = Op::from_attrs(spelling, attrs.iter().map(|(name, attr)| (*name, attr)))
            .map_err(|message| cursor.error(codes::BAD_OPERATOR, cursor.since(start), message, "in this node"))?;
        let types = if cursor.accept(':') { types(cursor)? } else { Vec::new() };
        if types.len() != outputs.len() {
            let message = format!("the numbers of results ({}) and types ({}) differ", outputs.len(), types.len());
            return Err(cursor.error(codes::RESULT_COUNT, cursor.since(start), message, "in this node"));
        }
        let schedule = if in_training { schedule(cursor)? } else { None };
        if cursor.accept('@') {
            let name = cursor.text("the name of the node in the source model in quotes")?;
            self.graph.origins.set(id, Some(Origin { name }));
        }
        for (index, (&value, ty)) in outputs.iter().zip(types).enumerate() {
            self.definitions.push((value, Value { ty, def: Def::Result { node: id, index } }));
        }
        self.graph.nodes.push(Node { op, inputs, outputs });
        self.schedules.push(schedule);
        self.map.nodes.push(cursor.since(start));
        Ok(())
    }

    /// Puts the values in the order of their numbers. Of several definitions of one value the first counts here, inputs
    /// before results as they are printed; the verifier reports the others.
    fn number(&mut self, cursor: &Cursor<'_>) -> Result<(), Failure> {
        let mut values = SideTable::new(None);
        let mut count = 0;
        let most = self.graph.inputs.len() + self.result_count();
        let mut definitions = std::mem::take(&mut self.definitions);
        definitions.sort_by_key(|(_, value)| matches!(value.def, Def::Result { node: _, index: _ }));
        for (id, value) in definitions {
            if id.index() >= most {
                return Err(self.gap(cursor, &format!("{id} is defined, but there are only {most} values")));
            }
            count = count.max(id.index() + 1);
            values[id].get_or_insert(value);
        }
        for id in (0..count).map(ValueId::from_index) {
            let Some(value) = values[id].take() else {
                return Err(self.gap(cursor, &format!("{id} is not defined, but v{} is", count - 1)));
            };
            self.graph.values.push(value);
        }
        Ok(())
    }

    fn result_count(&self) -> usize {
        self.graph.nodes.values().map(|node| node.outputs.len()).sum()
    }

    fn gap(&self, cursor: &Cursor<'_>, message: &str) -> Failure {
        let error = cursor.error(codes::BAD_NUMBERING, self.map.graph.clone(), message, "in this graph");
        Box::new(error.with_help("number the values v0, v1, v2 and so on"))
    }
}

/// The types after a colon; nothing else of a node starts with a word.
fn types(cursor: &mut Cursor<'_>) -> Result<Vec<Type>, Failure> {
    let mut types = vec![cursor.ty()?];
    while cursor.accept(',') {
        types.push(cursor.ty()?);
    }
    Ok(types)
}

/// `#phase` with the anchor after it.
fn schedule(cursor: &mut Cursor<'_>) -> Result<Option<(crate::Phase, Option<NodeId>)>, Failure> {
    if !cursor.accept('#') {
        return Ok(None);
    }
    let phase = cursor.choice("phase", &PHASES)?;
    let anchor = if matches!(cursor.peek(), Token::Word(_)) { Some(cursor.node()?) } else { None };
    Ok(Some((phase, anchor)))
}

//! The parser of training graphs: the step, the parameters, the update.

use super::codes;
use super::cursor::{Cursor, Failure};
use super::parse::{Draft, SourceMap, locate};
use crate::diag::Diagnostics;
use crate::id::{SideTable, Table};
use crate::training::{Contribution, Parameter, ParameterId, Phase, TrainingGraph};
use crate::verify::{Part, VerifiedTraining, verify_training};

/// Reads the text form of a training graph and verifies it.
///
/// # Errors
/// Everything that is wrong with the text, or else everything that is wrong with the graphs.
pub fn parse_training(file: &str, source: &str) -> Result<VerifiedTraining, Diagnostics> {
    let (training, [step, update]) = read_training(file, source)?;
    verify_training(training).map_err(|(_, errors)| {
        let map = |part| if part == Part::Update { &update } else { &step };
        errors.iter().map(|error| locate(error, file, map(error.part))).collect()
    })
}

/// Reads the text form of a training graph that need not be valid. The places are those of the step, with the
/// parameters, and of the update.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn read_training(file: &str, source: &str) -> Result<(TrainingGraph, [SourceMap; 2]), Diagnostics> {
    let mut cursor = Cursor::new(file, source);
    cursor.skip_newlines();
    let parsed = training(&mut cursor);
    cursor.finish(parsed)
}

fn training(cursor: &mut Cursor<'_>) -> Result<(TrainingGraph, [SourceMap; 2]), Failure> {
    cursor.keyword("training")?;
    cursor.mark('{')?;
    cursor.newline()?;
    cursor.keyword("forward")?;
    let at = cursor.range();
    let count = cursor.unsigned("the number of forward nodes")?;
    let forward_nodes = usize::try_from(count).map_err(|_| {
        cursor.error(codes::BAD_NUMBER, at, format!("{count} is more nodes than fit in memory"), "here")
    })?;
    cursor.newline()?;
    let mut step = Draft::parse(cursor, true)?;
    let mut phases = SideTable::new(Phase::Forward);
    let mut anchors = SideTable::new(None);
    for (node, schedule) in step.graph.nodes.ids().zip(&step.schedules) {
        if let Some((phase, anchor)) = schedule {
            phases.set(node, *phase);
            anchors.set(node, *anchor);
        }
    }
    let mut parameters = Table::new();
    while !cursor.is_word("graph") {
        let start = cursor.start();
        let expected: ParameterId = parameters.next_id();
        let id: ParameterId = cursor.id(ParameterId::PREFIX, "a parameter such as `w0`, or `graph`")?;
        if id != expected {
            let message = format!("parameters are numbered in order: expected `{expected}`, found `{id}`");
            return Err(cursor.error(codes::BAD_NUMBERING, cursor.since(start), message, "here"));
        }
        parameters.push(parameter(cursor)?);
        step.map.parameters.push(cursor.since(start));
        cursor.newline()?;
    }
    let update = Draft::parse(cursor, false)?;
    cursor.mark('}')?;
    cursor.newline()?;
    let training = TrainingGraph { step: step.graph, forward_nodes, phases, anchors, parameters, update: update.graph };
    Ok((training, [step.map, update.map]))
}

/// A parameter after its number: `= param "wte" v1 [v40 of n3, v77 of n9]`.
fn parameter(cursor: &mut Cursor<'_>) -> Result<Parameter, Failure> {
    cursor.mark('=')?;
    cursor.keyword("param")?;
    let name = cursor.text("the name of the parameter in quotes")?;
    let input = cursor.value()?;
    cursor.mark('[')?;
    let contributions = cursor.list(']', |cursor| {
        let value = cursor.value()?;
        cursor.keyword("of")?;
        Ok(Contribution { value, user: cursor.node()? })
    })?;
    Ok(Parameter { name, input, contributions })
}

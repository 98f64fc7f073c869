//! The commands of `.ir` files.
//!
//! - `parse`: reads the text and prints it again. The text need not be a valid graph.
//! - `verify`: reads and verifies.
//! - `transform PASS [OPTION]`: runs one pass. `loss` takes a loss as `--loss` does; `differentiate` and `optimizer`
//!   print the training graph.
//!
//! A text that starts with the word `training` is a training graph.

use std::fmt::Write;
use std::path::Path;
use trainc_ir::id::Table;
use trainc_ir::text::{parse, parse_training, print, print_training, read, read_training};
use trainc_ir::{Diagnostic, Diagnostics, Graph, Place, TrainingGraph, verify, verify_training};
use trainc_passes::transform::{LossSpec, OptimizerConfig, Step, Trainable, differentiate, optimizer};
use trainc_passes::{Pass, TrainingOptions};

/// The line above the expected block.
const EXPECT: &str = "; expect:";

/// What the file should be: its input with what its command has to say now.
pub(crate) fn rewrite(path: &Path, text: &str) -> Result<String, String> {
    let first = text.lines().next().unwrap_or("");
    let command = first.strip_prefix("; test: ").ok_or("the first line must be `; test: COMMAND`")?;
    let input = input_of(text);
    let is_training = input.lines().any(|line| line.starts_with("training"));
    let mut words = command.split_whitespace();
    let block = match (words.next(), is_training) {
        (Some("parse"), false) => reprint(&input),
        (Some("parse"), true) => reprint_training(&input),
        (Some("verify"), false) => parse("input.ir", &input).map(|_| String::new()),
        (Some("verify"), true) => parse_training("input.ir", &input).map(|_| String::new()),
        (Some("transform"), _) => {
            let pass = words.next().ok_or("`transform` takes the name of a pass")?;
            if path.parent().and_then(Path::file_name).is_none_or(|folder| folder != pass) {
                return Err(format!("a test of the pass `{pass}` stands in the folder of its name"));
            }
            transform(pass, words.next(), &input)?
        }
        _ => return Err(format!("there is no command `{command}`")),
    };
    Ok(match block {
        Ok(block) if block.is_empty() => input,
        Ok(block) => format!("{input}{EXPECT}\n{block}"),
        Err(errors) => annotate(&input, &errors),
    })
}

/// The file without what a command has written into it.
fn input_of(text: &str) -> String {
    let is_ours = |line: &&str| {
        let line = line.trim_start();
        ["; error[", "; warning[", "; note["].iter().any(|start| line.starts_with(start))
    };
    text.lines()
        .take_while(|line| *line != EXPECT)
        .filter(|line| !is_ours(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Puts every error below the line that it points to, those without a line at the end.
fn annotate(input: &str, errors: &[Diagnostic]) -> String {
    let line_of = |error: &Diagnostic| match error.labels.first().map(|label| &label.place) {
        Some(Place::Source { file: _, start, end: _ }) => input[..*start].matches('\n').count(),
        Some(Place::Model { .. } | Place::Entity(_)) | None => usize::MAX,
    };
    let mut out = String::new();
    for (i, line) in input.lines().enumerate() {
        writeln!(out, "{line}").expect("writing to a string does not fail");
        let indent = &line[..line.len() - line.trim_start().len()];
        for error in errors.iter().filter(|error| line_of(error) == i) {
            writeln!(out, "{indent}; {error}").expect("writing to a string does not fail");
        }
    }
    let lines = input.lines().count();
    let rest: Vec<_> = errors.iter().filter(|error| line_of(error) >= lines).cloned().collect();
    if !rest.is_empty() {
        write!(out, "{EXPECT}\n{}", described(&rest)).expect("writing to a string does not fail");
    }
    out
}

/// Diagnostics without a line of the input, in full.
fn described(diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let mut lines = vec![diagnostic.to_string()];
        for label in &diagnostic.labels {
            let place = match &label.place {
                Place::Source { .. } => "the text".to_owned(),
                Place::Model { kind, name } => format!("{kind} {name:?}"),
                Place::Entity(id) => id.clone(),
            };
            lines.push(format!("  at {place}: {}", label.text));
        }
        lines.extend(diagnostic.notes.iter().map(|note| format!("  note: {note}")));
        lines.extend(diagnostic.help.iter().map(|help| format!("  help: {help}")));
        out.extend(lines.iter().map(|line| format!("; {line}\n")));
    }
    out
}

fn reprint(input: &str) -> Result<String, Diagnostics> {
    let (graph, _) = read("input.ir", input)?;
    let text = print(&graph);
    assert_eq!(read("output.ir", &text).map(|(graph, _)| graph), Ok(graph), "{text}");
    Ok(text)
}

fn reprint_training(input: &str) -> Result<String, Diagnostics> {
    let (training, _) = read_training("input.ir", input)?;
    let text = print_training(&training);
    assert_eq!(read_training("output.ir", &text).map(|(training, _)| training), Ok(training), "{text}");
    Ok(text)
}

/// The graph after a pass, or its errors in full; the outer error is a mistake in the test.
fn transform(name: &str, option: Option<&str>, input: &str) -> Result<Result<String, Diagnostics>, String> {
    let graph = match parse("input.ir", input) {
        Ok(graph) => graph.into_inner(),
        Err(errors) => return Ok(Err(errors)),
    };
    let mut notes = Vec::new();
    let printed = match name {
        "differentiate" => {
            differentiate(graph, &Trainable::default(), &mut notes).map(|step| print_training(&without_update(step)))
        }
        "optimizer" => {
            let config = optimizer_of(option)?;
            let step = differentiate(graph, &Trainable::default(), &mut notes);
            step.and_then(|step| optimizer(step, &config)).map(|training| {
                let training = verify_training(training).unwrap_or_else(|(_, errors)| panic!("{errors:?}"));
                print_training(&training)
            })
        }
        _ => {
            let loss =
                option.map_or(Ok(LossSpec::default()), str::parse).map_err(|error: Diagnostic| error.to_string())?;
            let options = TrainingOptions { loss, ..TrainingOptions::default() };
            let pass = trainc_passes::pass(name, &options).ok_or_else(|| format!("there is no pass `{name}`"))?;
            run(pass.as_ref(), graph, &mut notes)
        }
    };
    let notes = described(&notes);
    Ok(Ok(match printed {
        Ok(text) => notes + &text,
        Err(errors) => notes + &described(&errors),
    }))
}

/// Runs the pass; what it leaves must be valid.
fn run(pass: &dyn Pass, mut graph: Graph, notes: &mut Vec<Diagnostic>) -> Result<String, Diagnostics> {
    pass.run(&mut graph, notes)?;
    let graph = verify(graph).unwrap_or_else(|(_, errors)| panic!("`{}` broke the graph: {errors:?}", pass.name()));
    Ok(print(&graph))
}

fn without_update(step: Step) -> TrainingGraph {
    let Step { graph, forward_nodes, phases, anchors, parameters } = step;
    let parameters: Table<_, _> = parameters;
    TrainingGraph { step: graph, forward_nodes, phases, anchors, parameters, update: Graph::default() }
}

fn optimizer_of(option: Option<&str>) -> Result<OptimizerConfig, String> {
    match option {
        None | Some("adamw") => Ok(OptimizerConfig::default()),
        Some("sgd") => Ok(OptimizerConfig::Sgd),
        Some("momentum") => Ok(OptimizerConfig::SgdMomentum { momentum: 0.9 }),
        Some(other) => Err(format!("there is no optimizer `{other}`")),
    }
}

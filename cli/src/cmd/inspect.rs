//! `trainc inspect`: the operators and blocks of a model, or its IR.

use super::fused;
use crate::args::{Emit, InspectArgs};
use crate::output::Output;
use crate::passes::Watch;
use crate::table::{Align, Table};
use std::collections::BTreeMap;
use trainc::units::{bytes, count, rounded};
use trainc::{
    BAD_OPTION, CANNOT_READ, CONFLICTING_OPTIONS, Failure, Forward, ModelOptions, PLAN_JSON, PLAN_PB, check, is_plan,
    join_units, prepare, prepare_forward, prepare_until,
};
use trainc_backend::{current_file, plan_to_json};
use trainc_ir::text::{print, print_training};
use trainc_ir::{Diagnostic, Graph, InputRole, OutputRole};
use trainc_passes::analysis::blocks::{Blocks, blocks};
use trainc_passes::transform::fusions;

/// Inspects a model, or the model of a plan.
pub(crate) fn run(args: &InspectArgs, output: Output) -> Result<(), Failure> {
    let of_plan = is_plan(args.model.path());
    if of_plan {
        plan_without_options(args)?;
    }
    let checked = if of_plan { Some(check(args.model.path(), None)?) } else { None };
    let options = match &checked {
        Some(checked) => checked.options.clone(),
        None => args.model.options()?,
    };
    let mut watch = Watch::new(&args.passes, output)?;
    match (&args.stop_after, args.emit) {
        (Some(stop), _) => {
            let forward = prepare_until(&options, stop, &mut |event| watch.event(event))?;
            output.diagnostics(&forward.notes);
            output.asked(&print(&forward.graph));
        }
        (None, Some(Emit::Ir)) => {
            let forward = prepare_forward(&options, &mut |event| watch.event(event))?;
            output.diagnostics(&forward.notes);
            output.asked(&print(&forward.graph));
        }
        (None, Some(Emit::Training)) => {
            let prepared = prepare(&options, &mut |event| watch.event(event))?;
            output.diagnostics(&prepared.notes);
            output.asked(&print_training(prepared.training.graph()));
        }
        (None, Some(Emit::Plan)) => match &checked {
            Some(checked) => output.asked(&plan_to_json(checked.plan.plan())),
            None => return Err(Failure::usage(no_plan())),
        },
        (None, Some(Emit::TorchSchedule)) => {
            let message = "an order of work is made with a plan";
            let help = "use `trainc compile --emit torch-schedule`, or `trainc simulate --uniform` for equal stages";
            return Err(Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help)));
        }
        (None, None) => {
            let forward = tables(&options, output, &mut watch)?;
            output.diagnostics(&forward.notes);
        }
    }
    watch.finish();
    Ok(())
}

/// Refuses folders that hold no plan, and options of a model where a plan has its own.
fn plan_without_options(args: &InspectArgs) -> Result<(), Failure> {
    let path = args.model.path();
    if path.is_dir() && [PLAN_JSON, PLAN_PB].iter().all(|name| !current_file(path, name).exists()) {
        let message = format!("the folder `{}` is no model, and holds no plan", path.display());
        let help = "give an ONNX file, or the folder that `trainc compile` wrote";
        return Err(Failure::input(Diagnostic::error(CANNOT_READ, message).with_help(help)));
    }
    let given = args.model.given();
    if given.is_empty() {
        return Ok(());
    }
    let message =
        format!("`{}` cannot be given with a plan, which keeps those it was compiled with", given.join("`, `"));
    let help = "leave them out, or give the model in place of the plan";
    Err(Failure::usage(Diagnostic::error(CONFLICTING_OPTIONS, message).with_help(help)))
}

fn no_plan() -> Diagnostic {
    Diagnostic::error(CONFLICTING_OPTIONS, "a model has no plan before it is compiled")
        .with_help("give the folder that `trainc compile` wrote, or use `trainc compile --emit plan`")
}

fn tables(options: &ModelOptions, output: Output, watch: &mut Watch<'_>) -> Result<Forward, Failure> {
    let before = prepare_until(options, "0", &mut |_| {})?;
    let forward = prepare_forward(options, &mut |event| watch.event(event))?;
    let blocks = blocks(&forward.graph, forward.graph.nodes.len());
    if output.is_json() {
        output.object(&object(&before.graph, &forward.graph, &blocks));
    } else {
        let mut sections = vec![head(&forward.graph), units(&forward.graph, &blocks)];
        sections.extend(fused::section(&fusions(&forward.graph)));
        sections.push(operators(&before.graph, &forward.graph));
        output.report(&sections.join("\n"));
    }
    Ok(forward)
}

fn head(graph: &Graph) -> String {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left), ("", Align::Left)]);
    for input in graph.inputs.iter().filter(|input| matches!(input.role, InputRole::Data | InputRole::Label)) {
        table.row(["input".to_owned(), input.name.clone(), graph.ty(input.value).to_string()]);
    }
    for out in graph.outputs.iter().filter(|out| out.role != OutputRole::Updated) {
        table.row(["output".to_owned(), out.name.clone(), graph.ty(out.value).to_string()]);
    }
    let parameters = graph.inputs.iter().filter(|input| input.role == InputRole::Parameter);
    let (mut n, mut elements, mut size) = (0, 0, 0);
    for input in parameters {
        let ty = graph.ty(input.value);
        (n, elements, size) = (n + 1, elements + ty.elements(), size + ty.bytes());
    }
    let averages = match graph.outputs.iter().filter(|out| out.role == OutputRole::Updated).count() {
        0 => String::new(),
        n => format!(", {n} running averages"),
    };
    let parameters = format!("{n} parameters of {} elements, {}{averages}", rounded(elements), bytes(size));
    let lines = table.print();
    let lines = lines.split_once('\n').map_or("", |(_, lines)| lines);
    format!("{}: {} operators, {parameters}\n{lines}", graph.name, count(graph.nodes.len() as u64))
}

/// What a unit or class is made of.
fn parameter_bytes(graph: &Graph, blocks: &Blocks, unit: usize) -> u64 {
    let mut parameters = BTreeMap::new();
    for &node in &blocks.units[unit].nodes {
        for &value in &graph.nodes[node].inputs {
            if graph.input_of(value).is_some_and(|input| input.role == InputRole::Parameter) {
                parameters.insert(value, graph.ty(value).bytes());
            }
        }
    }
    parameters.values().sum()
}

fn units(graph: &Graph, blocks: &Blocks) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[("unit", Left), ("class", Left), ("operators", Right), ("parameters", Right)]);
    let mut at = 0;
    while at < blocks.units.len() {
        let class = blocks.units[at].class;
        let same = |unit: &&trainc_passes::analysis::blocks::Unit| class.is_some() && unit.class == class;
        let n = blocks.units[at..].iter().take_while(same).count().max(1);
        let names: Vec<String> = blocks.units[at..at + n].iter().map(|unit| unit.name.clone()).collect();
        let each = if n > 1 { " each" } else { "" };
        table.row([
            join_units(&names),
            class.map(|class| blocks.classes[class].name.clone()).unwrap_or_default(),
            format!("{}{each}", blocks.units[at].nodes.len()),
            format!("{}{each}", bytes(parameter_bytes(graph, blocks, at))),
        ]);
        at += n;
    }
    let free = graph.nodes.ids().filter(|&node| blocks.free[node]).count();
    let free = match free {
        0 => String::new(),
        1 => "  1 operator that depends on no parameter runs wherever it is needed\n".to_owned(),
        n => format!("  {n} operators that depend on no parameter run wherever they are needed\n"),
    };
    format!("Units, between which a pipeline may be cut\n{}{free}", table.print())
}

/// How often each operator occurs in both graphs.
fn counts(before: &Graph, after: &Graph) -> BTreeMap<&'static str, (u64, u64)> {
    let mut counts: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    for node in before.nodes.values() {
        counts.entry(node.op.spelling()).or_default().0 += 1;
    }
    for node in after.nodes.values() {
        counts.entry(node.op.spelling()).or_default().1 += 1;
    }
    counts
}

fn operators(before: &Graph, after: &Graph) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[("operator", Left), ("read", Right), ("fused", Right)]);
    for (name, (read, fused)) in counts(before, after) {
        let shown = |n: u64| if n == 0 { "-".to_owned() } else { count(n) };
        table.row([name.to_owned(), shown(read), shown(fused)]);
    }
    table.row(["all".to_owned(), count(before.nodes.len() as u64), count(after.nodes.len() as u64)]);
    format!("Operators, as read from the model and after folding and fusion\n{}", table.print())
}

fn object(before: &Graph, after: &Graph, blocks: &Blocks) -> serde_json::Value {
    let operators: BTreeMap<_, _> = counts(before, after)
        .into_iter()
        .map(|(name, (read, fused))| (name, serde_json::json!({ "read": read, "fused": fused })))
        .collect();
    let unit = |(index, unit): (usize, &trainc_passes::analysis::blocks::Unit)| {
        serde_json::json!({
            "name": unit.name,
            "class": unit.class,
            "operators": unit.nodes.len(),
            "parameter_bytes": parameter_bytes(after, blocks, index),
        })
    };
    let units: Vec<_> = blocks.units.iter().enumerate().map(unit).collect();
    let fusions = fused::object(&fusions(after));
    serde_json::json!({ "model": after.name, "units": units, "operators": operators, "fusions": fusions })
}

//! `trainc simulate --uniform`: schedules of equal stages side by side, or one of them in PyTorch's form.

use crate::args::ScheduleArgs;
use crate::cmd::stages;
use crate::output::Output;
use crate::table::{Align, Table};
use trainc::{BAD_OPTION, CONFLICTING_OPTIONS, Failure};
use trainc_ir::Diagnostic;
use trainc_passes::schedule::{Costs, Generator, Ratio, ScheduleKind, Shape, StageTiming, Timing, simulate};

/// A schedule and what comes of it.
struct Row {
    kind: ScheduleKind,
    shape: Shape,
    timing: Timing,
}

/// Compares schedules, or writes one.
pub(crate) fn run(args: &ScheduleArgs, output: Output) -> Result<(), Failure> {
    if let Some(file) = &args.stages {
        return stages::run(file, args.emit.is_some(), output);
    }
    let shape = shape(args.uniform.as_deref().unwrap_or_default())?;
    let kind = args.schedule.as_deref().map(str::parse).transpose().map_err(|error| bad(&error))?;
    if let Some(kind) = kind.filter(|_| args.emit.is_some()) {
        let schedule = ScheduleKind::generate(&kind, &shape).map_err(|error| bad(&error))?;
        output.asked(&schedule.to_torch_csv());
        return Ok(());
    }
    if args.emit.is_some() {
        let message = "`--emit` writes one schedule, and `--uniform` alone compares all";
        return Err(Failure::usage(
            Diagnostic::error(CONFLICTING_OPTIONS, message).with_help("name one, as in `--schedule interleaved`"),
        ));
    }
    let kinds: Vec<(ScheduleKind, Shape)> = match kind {
        Some(kind) => vec![(kind, shape)],
        None => ScheduleKind::ALL.map(|kind| (kind, fitting(kind, shape))).to_vec(),
    };
    let rows: Vec<Row> = kinds.into_iter().map(|(kind, shape)| row(kind, shape)).collect::<Result<_, _>>()?;
    output.report(&table(&rows, &shape));
    rows.iter().for_each(|row| output.object(&object(row)));
    Ok(())
}

/// Three numbers.
fn shape(text: &str) -> Result<Shape, Failure> {
    let numbers: Option<Vec<u64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[ranks, loops, micro_batches]) => {
            let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
            Ok(Shape { ranks: size(ranks), loops: size(loops), micro_batches })
        }
        _ => Err(Failure::usage(
            Diagnostic::error(
                BAD_OPTION,
                format!("`--uniform {text}` does not have the form RANKS,LOOPS,MICRO_BATCHES"),
            )
            .with_help(
                "write three numbers, as in `--uniform 8,4,32` for 8 ranks with 4 stages each and 32 micro-batches",
            ),
        )),
    }
}

fn bad(error: &dyn std::error::Error) -> Failure {
    Failure::usage(Diagnostic::error(BAD_OPTION, error.to_string()))
}

/// The shape with as many stages per rank as the kind can have.
fn fitting(kind: ScheduleKind, shape: Shape) -> Shape {
    match kind {
        ScheduleKind::GPipe | ScheduleKind::OneFOneB | ScheduleKind::ZbH1 => Shape { loops: 1, ..shape },
        ScheduleKind::ZbV => Shape { loops: 2, ..shape },
        ScheduleKind::Interleaved | ScheduleKind::BreadthFirst { contiguous: _ } => shape,
    }
}

fn row(kind: ScheduleKind, shape: Shape) -> Result<Row, Failure> {
    let schedule = kind.generate(&shape).map_err(|error| bad(&error))?;
    let timing = simulate(&schedule, &Costs::uniform(shape.n_stages())).map_err(|error| bad(&error))?;
    Ok(Row { kind, shape, timing })
}

impl Row {
    /// Stages of the first rank.
    fn stages(&self) -> &[StageTiming] {
        self.timing.ranks.first().map_or(&[], |rank| &rank.stages)
    }

    /// The mean of a number over the stages of the first rank.
    fn per_stage(&self, of: fn(&StageTiming) -> u64) -> Ratio {
        let stages = self.stages();
        Ratio::new(stages.iter().map(|stage| u128::from(of(stage))).sum(), stages.len() as u128)
    }

    /// A time in the unit of one rank's forward.
    fn time(&self, time: u64) -> Ratio {
        Ratio::new(time.into(), self.shape.loops as u128)
    }

    fn transfers(&self) -> Ratio {
        let most = self.timing.ranks.iter().map(|rank| rank.activations_sent).max().unwrap_or(0);
        Ratio::new(most.into(), self.shape.micro_batches.into())
    }

    fn switches(&self) -> u64 {
        self.timing.ranks.first().map_or(0, |rank| rank.switches)
    }
}

fn table(rows: &[Row], shape: &Shape) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("schedule", Left),
        ("stages", Right),
        ("step", Right),
        ("bubble", Right),
        ("kept", Right),
        ("sent", Right),
        ("gathers: each use", Right),
        ("one stage", Right),
        ("one a way", Right),
        ("reduces", Right),
        ("switches", Right),
        ("slack", Left),
    ]);
    for row in rows {
        let slack: Vec<String> = row.stages().iter().map(|stage| row.time(stage.slack_ps).to_string()).collect();
        table.row([
            row.kind.to_string(),
            row.shape.loops.to_string(),
            row.time(row.timing.makespan_ps).to_string(),
            row.timing.bubble().to_string(),
            row.timing.peak_micro_batches().to_string(),
            row.transfers().to_string(),
            row.per_stage(|stage| stage.gathers_each_use).to_string(),
            row.per_stage(|stage| stage.gathers_one).to_string(),
            row.per_stage(|stage| stage.gathers_two).to_string(),
            row.per_stage(|stage| stage.reduces).to_string(),
            row.switches().to_string(),
            slack.join(", "),
        ]);
    }
    format!(
        "{} ranks, {} micro-batches; a rank's layers take 1 forward and 2 backward\n\n{}\n{}",
        shape.ranks,
        shape.micro_batches,
        table.print(),
        "  bubble: idle over busy time. kept: the most micro-batches of a rank's layers. sent: per micro-batch and rank.\n  \
         gathers and reduces: per layer on rank 0, with weights gathered for each use, for as long as the rank stays\n  \
         with a stage, or for one stage each way. slack: work of rank 0 behind the last gradient of each of its stages.\n"
    )
}

fn object(row: &Row) -> serde_json::Value {
    let number = |ratio: Ratio| ratio.numerator() as f64 / ratio.denominator() as f64;
    serde_json::json!({
        "schedule": row.kind.to_string(),
        "ranks": row.shape.ranks,
        "stages_per_rank": row.shape.loops,
        "micro_batches": row.shape.micro_batches,
        "step": number(row.time(row.timing.makespan_ps)),
        "bubble": number(row.timing.bubble()),
        "kept_micro_batches": number(row.timing.peak_micro_batches()),
        "sent_per_micro_batch": number(row.transfers()),
        "gathers_each_use": number(row.per_stage(|stage| stage.gathers_each_use)),
        "gathers_one_stage": number(row.per_stage(|stage| stage.gathers_one)),
        "gathers_one_stage_each_way": number(row.per_stage(|stage| stage.gathers_two)),
        "reduces": number(row.per_stage(|stage| stage.reduces)),
        "switches": row.switches(),
        "slack": row.stages().iter().map(|stage| number(row.time(stage.slack_ps))).collect::<Vec<_>>(),
    })
}

//! `trainc simulate --stages`: the best order of work for unequal stages, beside the fixed schedules.

use crate::output::Output;
use crate::table::{Align, Table};
use std::path::Path;
use trainc::units::percent;
use trainc::{BAD_STAGES, Failure, read_stages};
use trainc_ir::Diagnostic;
use trainc_passes::schedule::{Found, FoundBy, SearchOptions, Timing, Unequal, search, simulate};

/// Searches an order, and prints it where that is asked for.
pub(crate) fn run(file: &Path, emit: bool, output: Output) -> Result<(), Failure> {
    let problem = read_stages(file)?;
    let bad = |error: &dyn std::error::Error| {
        Failure::input(Diagnostic::error(BAD_STAGES, format!("`{}`: {error}", file.display())))
    };
    let found = search(&problem, &SearchOptions::default()).map_err(|error| bad(&error))?;
    if emit {
        output.asked(&found.schedule.to_torch_csv());
        return Ok(());
    }
    let timing = simulate(&found.schedule, &problem.costs).map_err(|error| bad(&error))?;
    output.report(&format!("{}\n{}", schedules(&problem, &found), ranks(&problem, &timing)));
    output.object(&object(&found, &timing));
    Ok(())
}

fn schedules(problem: &Unequal, found: &Found) -> String {
    let mut table = Table::new(&[("schedule", Align::Left), ("step", Align::Right), ("", Align::Left)]);
    for (kind, makespan) in &found.fixed {
        let (step, note) = makespan.map_or(("-".to_owned(), "does not fit"), |step| (step.to_string(), ""));
        table.row([kind.to_string(), step, note.to_owned()]);
    }
    let by = match found.by {
        FoundBy::Fixed(kind) => kind.to_string(),
        FoundBy::OneByOne => "one micro-batch after the other".to_owned(),
        FoundBy::List => "by a greedy rule".to_owned(),
        FoundBy::Beam => "among many orders side by side".to_owned(),
        FoundBy::Exact => "by branch and bound".to_owned(),
        FoundBy::Local => "by exchanges".to_owned(),
    };
    table.row(["found".to_owned(), found.makespan_ps.to_string(), by]);
    let proof = if found.is_optimal() {
        "no order takes less".to_owned()
    } else {
        let gap = percent(found.makespan_ps - found.lower_bound_ps, found.makespan_ps);
        format!("no order takes less than {}: at most {gap} could be gained", found.lower_bound_ps)
    };
    let split = if problem.split { "backwards may be split" } else { "backwards stay whole" };
    format!(
        "{} stages on {} ranks, {} micro-batches; {split}\n\n{}\n  {proof}\n",
        problem.rank_of.len(),
        problem.room_bytes.len(),
        problem.micro_batches,
        table.print()
    )
}

fn ranks(problem: &Unequal, timing: &Timing) -> String {
    use Align::Right;
    let mut table = Table::new(&[("rank", Right), ("busy", Right), ("idle", Right), ("keeps", Right), ("room", Right)]);
    for (rank, (of, &room)) in timing.ranks.iter().zip(&problem.room_bytes).enumerate() {
        table.row([
            rank.to_string(),
            of.busy_ps.to_string(),
            format!("{} ({})", of.idle_ps, percent(of.idle_ps, timing.makespan_ps)),
            of.peak_bytes.to_string(),
            if room == u64::MAX { "-".to_owned() } else { room.to_string() },
        ]);
    }
    table.print()
}

fn object(found: &Found, timing: &Timing) -> serde_json::Value {
    let fixed =
        found.fixed.iter().map(|(kind, makespan)| serde_json::json!({"schedule": kind.to_string(), "step": makespan}));
    let order = |works: &Vec<_>| works.iter().map(ToString::to_string).collect::<Vec<String>>();
    let ranks = timing.ranks.iter().zip(&found.schedule.ranks).map(|(of, works)| {
        serde_json::json!({"busy": of.busy_ps, "idle": of.idle_ps, "keeps": of.peak_bytes, "order": order(works)})
    });
    serde_json::json!({
        "step": found.makespan_ps,
        "lower_bound": found.lower_bound_ps,
        "fixed": fixed.collect::<Vec<_>>(),
        "ranks": ranks.collect::<Vec<_>>(),
    })
}

//! The printed table: a line per step, a column per size, and how the time per node grows.

use crate::measure::Row;
use std::fmt::Write;
use std::time::Duration;

/// Renders the runs of one shape.
pub(crate) fn render(runs: &[(usize, Vec<Row>)]) -> String {
    let mut out = String::from("| step |");
    for (nodes, _) in runs {
        write!(out, " {nodes} nodes: time | ns/node | peak B/node |").expect("writing to a string does not fail");
    }
    if runs.len() > 1 {
        out.push_str(" growth per node and decade |");
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(3 * runs.len() + usize::from(runs.len() > 1)));
    out.push('\n');
    let steps = runs.iter().map(|(_, rows)| rows).max_by_key(|rows| rows.len()).map_or(&[][..], |rows| rows);
    for step in steps {
        write!(out, "| {} |", step.name).expect("writing to a string does not fail");
        let mut per_node = Vec::new();
        for (nodes, rows) in runs {
            let Some(row) = rows.iter().find(|row| row.name == step.name) else {
                out.push_str(" - | - | - |");
                continue;
            };
            let ns = row.time.as_nanos() as f64 / *nodes as f64;
            per_node.push((*nodes as f64, ns.max(1.0)));
            write!(out, " {} | {ns:.0} | {:.0} |", time(row.time), row.peak as f64 / *nodes as f64)
                .expect("writing to a string does not fail");
        }
        if let ([(n, first), .., (m, last)], true) = (&per_node[..], runs.len() > 1) {
            write!(out, " {:.2} |", (last / first).powf(1.0 / (m / n).log10()))
                .expect("writing to a string does not fail");
        }
        out.push('\n');
    }
    for (nodes, rows) in runs {
        if let Some(slowest) = rows.iter().max_by_key(|row| row.time) {
            let total: Duration = rows.iter().map(|row| row.time).sum();
            writeln!(out, "slowest of {nodes} nodes: {} with {} of {}", slowest.name, time(slowest.time), time(total))
                .expect("writing to a string does not fail");
        }
    }
    out
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.2} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

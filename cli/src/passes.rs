//! What the user sees of passes: graphs printed after them, and how long each took.

use crate::args::PassArgs;
use crate::output::Output;
use std::fmt::Write;
use std::time::{Duration, Instant};
use trainc::{Failure, Progress, known_pass};
use trainc_ir::text::print;
use trainc_passes::PassEvent;

/// Watches a pipeline for the user.
pub(crate) struct Watch<'a> {
    args: &'a PassArgs,
    output: Output,
    started: Instant,
    times: Vec<(String, Duration)>,
}

impl<'a> Watch<'a> {
    /// A watch.
    ///
    /// # Errors
    /// A name that no pass has.
    pub(crate) fn new(args: &'a PassArgs, output: Output) -> Result<Self, Failure> {
        args.print_after.iter().try_for_each(|name| known_pass(name))?;
        Ok(Self { args, output, started: Instant::now(), times: Vec::new() })
    }

    /// To be told of everything that happens.
    pub(crate) fn event(&mut self, event: PassEvent<'_>) {
        match event {
            PassEvent::Before { name: _, position } => {
                if position == 1 {
                    self.done("read");
                }
                self.started = Instant::now();
            }
            PassEvent::After { name, position, changed: _, graph } => {
                self.done(&format!("{position} {name}"));
                if self.args.print_after.iter().any(|wanted| wanted == name) {
                    self.output.asked_beside(&format!("; after pass {position}, {name}\n{}", print(graph)));
                }
                self.started = Instant::now();
            }
        }
    }

    /// To be told how a compilation goes on.
    pub(crate) fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Pass(event) => self.event(event),
            Progress::Done(name) => self.done(name),
        }
    }

    /// Something took the time since the last mark.
    fn done(&mut self, name: &str) {
        self.times.push((name.to_owned(), self.started.elapsed()));
        self.started = Instant::now();
    }

    /// Prints the times, if asked to.
    pub(crate) fn finish(self) {
        if !self.args.time_passes {
            return;
        }
        self.output.asked_beside(&report(&self.times));
    }
}

/// A line per step in order, and the slowest of them.
fn report(times: &[(String, Duration)]) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mut text = String::new();
    for (name, time) in times {
        writeln!(text, "{:>10.3} ms  {name}", ms(*time)).expect("writing to a string does not fail");
    }
    if let Some((name, slowest)) = times.iter().max_by_key(|(_, time)| *time) {
        let total: Duration = times.iter().map(|(_, time)| *time).sum();
        let share = 100.0 * slowest.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        let total = ms(total);
        writeln!(text, "{total:>10.3} ms  in all; the slowest is `{name}` with {share:.0} %")
            .expect("writing to a string does not fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::report;
    use std::time::Duration;

    #[test]
    fn the_report_names_the_slowest_step() {
        let times =
            [("read", 10), ("1 fold", 70), ("2 fuse", 20)].map(|(n, ms)| (n.to_owned(), Duration::from_millis(ms)));
        let text = report(&times);
        assert_eq!(text.lines().last(), Some("   100.000 ms  in all; the slowest is `1 fold` with 70 %"));
        assert_eq!(text.lines().count(), 4);
        assert_eq!(report(&[]), "");
    }
}

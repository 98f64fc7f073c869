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
        let mut text = String::new();
        for (name, time) in &self.times {
            writeln!(text, "{:>10.3} ms  {name}", time.as_secs_f64() * 1e3).expect("writing to a string does not fail");
        }
        self.output.asked_beside(&text);
    }
}

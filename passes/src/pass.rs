//! The contract of a pass and the driver that runs a list of them.

use crate::verifying;
use trainc_ir::{Diagnostic, Diagnostics, Graph};

/// Valid graph in, valid graph out.
pub trait Pass {
    /// Its name: the file it is written in, the folder of its golden files, and what the command line calls it.
    fn name(&self) -> &'static str;

    /// Transforms the graph. What the user should know besides goes to `notes`.
    ///
    /// # Errors
    /// What in the graph or the options stands in the way, all of it; the graph is of no use then.
    fn run(&self, graph: &mut Graph, notes: &mut Vec<Diagnostic>) -> Result<Changed, Diagnostics>;
}

/// Whether a pass has changed the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The graph is another one.
    Yes,
    /// The graph is as it was.
    No,
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Self {
        if changed { Self::Yes } else { Self::No }
    }
}

/// What an observer of a pipeline is told.
#[derive(Clone, Copy, Debug)]
pub enum PassEvent<'a> {
    /// The pass starts now.
    Before {
        /// Its name.
        name: &'static str,
        /// Its position in the pipeline, from 1.
        position: usize,
    },
    /// The pass is done.
    After {
        /// Its name.
        name: &'static str,
        /// Its position in the pipeline, from 1.
        position: usize,
        /// Whether it changed the graph.
        changed: Changed,
        /// The graph as it is now; not verified yet.
        graph: &'a Graph,
    },
}

/// Where a pipeline ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopAfter {
    /// After this many passes.
    Count(usize),
    /// After the first pass of this name.
    Name(String),
}

impl StopAfter {
    /// Reads a number of passes or the name of one.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Count)
    }
}

/// Runs passes one after the other, verifying the graph before the first and after each.
pub struct Driver<'o> {
    observer: &'o mut dyn FnMut(PassEvent<'_>),
    stop_after: Option<StopAfter>,
    position: usize,
    stopped: Option<&'static str>,
}

impl std::fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("stop_after", &self.stop_after).field("position", &self.position).finish()
    }
}

impl<'o> Driver<'o> {
    /// A driver that tells `observer` before and after every pass.
    pub fn new(observer: &'o mut dyn FnMut(PassEvent<'_>), stop_after: Option<StopAfter>) -> Self {
        let stopped = (stop_after == Some(StopAfter::Count(0))).then_some("input");
        Self { observer, stop_after, position: 0, stopped }
    }

    /// Verifies the graph that the first pass will get.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn start(&self, graph: &mut Graph) -> Result<(), Diagnostics> {
        verifying::input(graph)
    }

    /// Where the pipeline was stopped, if it was: nothing runs any more.
    pub fn stopped(&self) -> Option<&'static str> {
        self.stopped
    }

    /// Runs one pass, unless the pipeline was stopped before.
    ///
    /// # Errors
    /// What the pass reports, or how it broke the graph.
    pub fn pass(
        &mut self,
        pass: &dyn Pass,
        graph: &mut Graph,
        notes: &mut Vec<Diagnostic>,
    ) -> Result<Changed, Diagnostics> {
        if self.stopped.is_some() {
            return Ok(Changed::No);
        }
        self.before(pass.name());
        let changed = pass.run(graph, notes)?;
        self.after(pass.name(), changed, graph)?;
        Ok(changed)
    }

    /// Announces a step that is not a pass over one graph.
    pub(crate) fn before(&mut self, name: &'static str) {
        self.position += 1;
        (self.observer)(PassEvent::Before { name, position: self.position });
    }

    /// Ends what [`before`](Self::before) announced: tells the observer, verifies the graph, and stops here if asked to.
    pub(crate) fn after(&mut self, name: &'static str, changed: Changed, graph: &mut Graph) -> Result<(), Diagnostics> {
        (self.observer)(PassEvent::After { name, position: self.position, changed, graph });
        verifying::output(name, graph)?;
        let stops = match &self.stop_after {
            Some(StopAfter::Count(count)) => self.position >= *count,
            Some(StopAfter::Name(wanted)) => wanted == name,
            None => false,
        };
        if stops {
            self.stopped = Some(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::op::Elementwise;
    use trainc_ir::{DType, GraphBuilder, InputRole, OutputRole, Type};

    fn graph() -> Graph {
        let mut b = GraphBuilder::new("g");
        let x = b.input("x", InputRole::Data, Type::scalar(DType::F32));
        let y = b.one(Elementwise::Exp, &[x]).unwrap();
        b.output("y", OutputRole::Prediction, y);
        b.finish()
    }

    /// Gives the first result another type than its operator does.
    struct Breaker;

    impl Pass for Breaker {
        fn name(&self) -> &'static str {
            "breaker"
        }

        fn run(&self, graph: &mut Graph, _notes: &mut Vec<Diagnostic>) -> Result<Changed, Diagnostics> {
            let value = graph.outputs[0].value;
            graph.values[value].ty = Type::scalar(DType::F64);
            Ok(Changed::Yes)
        }
    }

    struct Nothing;

    impl Pass for Nothing {
        fn name(&self) -> &'static str {
            "nothing"
        }

        fn run(&self, _graph: &mut Graph, _notes: &mut Vec<Diagnostic>) -> Result<Changed, Diagnostics> {
            Ok(Changed::No)
        }
    }

    #[test]
    fn a_pass_that_breaks_the_graph_is_named() {
        let mut ignore = |_: PassEvent<'_>| {};
        let mut driver = Driver::new(&mut ignore, None);
        let mut graph = graph();
        driver.start(&mut graph).unwrap();
        let errors = driver.pass(&Breaker, &mut graph, &mut Vec::new()).unwrap_err();
        assert_eq!(errors[0].code, verifying::BROKEN_PASS);
        assert!(errors[0].message.contains("`breaker`"), "{}", errors[0]);
        let errors = driver.start(&mut graph).unwrap_err();
        assert_eq!(errors[0].code, verifying::BROKEN_INPUT);
    }

    #[test]
    fn nothing_runs_after_the_stop() {
        for (stop, ran) in [
            (None, 3),
            (Some(StopAfter::parse("0")), 0),
            (Some(StopAfter::parse("2")), 2),
            (Some(StopAfter::parse("nothing")), 1),
            (Some(StopAfter::parse("other")), 3),
        ] {
            let (mut starts, mut ends) = (0, Vec::new());
            let mut observe = |event: PassEvent<'_>| match event {
                PassEvent::Before { .. } => starts += 1,
                PassEvent::After { name, position, changed, graph: _ } => ends.push((name, position, changed)),
            };
            let mut driver = Driver::new(&mut observe, stop.clone());
            let mut graph = graph();
            for _ in 0..3 {
                driver.pass(&Nothing, &mut graph, &mut Vec::new()).unwrap();
            }
            assert_eq!(driver.stopped().is_some(), ran < 3, "{stop:?}");
            assert_eq!(starts, ran, "{stop:?}");
            let expected: Vec<_> = (1..=ran).map(|i| ("nothing", i, Changed::No)).collect();
            assert_eq!(ends, expected, "{stop:?}");
        }
    }
}

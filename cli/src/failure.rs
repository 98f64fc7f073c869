//! Why a job ended early: whose fault it is, and everything there is to say about it.

use std::fmt;
use std::path::Path;
use trainc_ir::{Diagnostic, Diagnostics};

/// A problem with a file that is read.
pub const CANNOT_READ: &str = "E1001";
/// Standard output cannot be written, or the way from a folder to its model.
pub const CANNOT_WRITE: &str = "E1002";
/// An option whose value cannot be read.
pub const BAD_OPTION: &str = "E1003";
/// Options that contradict each other or the model.
pub const CONFLICTING_OPTIONS: &str = "E1004";
/// The plan was made from another model.
pub const OTHER_MODEL: &str = "E1005";
/// The model's training graph is not the one that was compiled.
pub const OTHER_GRAPH: &str = "E1006";
/// A run failed.
pub const RUN_FAILED: &str = "E1007";
/// No such pass.
pub const UNKNOWN_PASS: &str = "E1008";
/// No such code.
pub const UNKNOWN_CODE: &str = "E1009";
/// The header of a plan says something that no option can.
pub const BAD_HEADER: &str = "E1010";
/// A bug.
pub const INTERNAL_ERROR: &str = "E1011";

/// Weights that are initialized because their file is not there.
pub const MISSING_WEIGHTS: &str = "N1012";
/// The plan files of a folder hold different plans.
pub const DIFFERENT_PLANS: &str = "E1013";

/// The cluster is not the one that the plan was made for.
pub const OTHER_CLUSTER: &str = "N1014";
/// The plan cannot be replayed on the cluster.
pub const NOT_REPLAYED: &str = "E1015";
/// Two plans differ in a way that a condition forbids.
pub const CONDITION_HOLDS: &str = "E1016";
/// The command line cannot be read.
pub const BAD_COMMAND_LINE: &str = "E1017";
/// More threads were asked for than help.
pub const TOO_MANY_THREADS: &str = "W1018";
/// A file does not describe pipeline stages.
pub const BAD_STAGES: &str = "E1019";
/// A profile has times of blocks, but none of the blocks of a plan.
pub const NOT_MEASURED: &str = "W1020";

/// Every code of this crate with its meaning in one line, in order.
pub const COMMAND_CODES: [(&str, &str); 20] = [
    (CANNOT_READ, "a file cannot be read: check the path and its permissions"),
    (CANNOT_WRITE, "standard output cannot be written, or no path leads from the output folder to the model"),
    (BAD_OPTION, "the value of an option cannot be read: the message says what is expected"),
    (CONFLICTING_OPTIONS, "two options contradict each other, or an option contradicts the model"),
    (OTHER_MODEL, "the plan was compiled from another model: give the right one with --model, or compile again"),
    (OTHER_GRAPH, "the model and the plan's header give another training graph than the plan is for: compile again"),
    (RUN_FAILED, "the run of a plan failed: the message says which data, weight or operator is at fault"),
    (UNKNOWN_PASS, "no pass has this name: the message lists those that exist"),
    (UNKNOWN_CODE, "no diagnostic has this code: `trainc explain` lists all of them"),
    (BAD_HEADER, "the header of a plan holds an option that cannot be read: compile the model again"),
    (INTERNAL_ERROR, "trainc came to a state that should not exist: a bug that is worth a report"),
    (
        MISSING_WEIGHTS,
        "the file that should hold weights of the model is not there: they are drawn with the seed instead",
    ),
    (DIFFERENT_PLANS, "plan.json and plan.pb of a folder hold different plans: compile the model again"),
    (OTHER_CLUSTER, "the plan was made for another cluster than the one it is replayed on"),
    (NOT_REPLAYED, "the plan cannot be replayed on the cluster: the message says which part of them does not match"),
    (CONDITION_HOLDS, "two plans differ more than a condition of `trainc diff --fail-if` allows"),
    (
        BAD_COMMAND_LINE,
        "the command line cannot be read: a command, option or value is missing, misspelled or of the wrong form",
    ),
    (
        TOO_MANY_THREADS,
        "more threads were asked for than the machine can use; fewer are taken, and the results are the same",
    ),
    (
        BAD_STAGES,
        "a file does not describe pipeline stages as docs/schedules.md says, or no order of work fits its memory",
    ),
    (
        NOT_MEASURED,
        "a profile has times of blocks for a GPU type, but none of the plan's blocks and micro-batch: those are modelled",
    ),
];

/// What kind of failure it is, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The model, the cluster, the plan or another input is at fault.
    Input,
    /// The options are at fault.
    Usage,
    /// No plan fits the cluster.
    Infeasible,
    /// A bug of trainc.
    Internal,
}

/// A job that could not be done.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Whose fault it is.
    pub kind: FailureKind,
    /// What to say about it, at least one of them an error.
    pub diagnostics: Diagnostics,
}

impl Failure {
    /// A failure of this kind for one reason.
    pub fn new(kind: FailureKind, diagnostic: Diagnostic) -> Self {
        Self { kind, diagnostics: vec![diagnostic] }
    }

    /// The input is at fault.
    pub fn input(diagnostic: Diagnostic) -> Self {
        Self::new(FailureKind::Input, diagnostic)
    }

    /// An option is at fault.
    pub fn usage(diagnostic: Diagnostic) -> Self {
        Self::new(FailureKind::Usage, diagnostic)
    }
}

/// What is said of a file that cannot be read; `what` is in it.
pub(crate) fn unreadable(what: &str, file: &Path, why: &dyn fmt::Display) -> Diagnostic {
    Diagnostic::error(CANNOT_READ, format!("cannot read the {what} `{}`: {why}", file.display()))
}

impl From<Diagnostics> for Failure {
    /// The input is at fault, unless a pass broke its graph.
    fn from(diagnostics: Diagnostics) -> Self {
        let broken = diagnostics.iter().any(|d| matches!(d.code, "E0590" | "E0591"));
        Self { kind: if broken { FailureKind::Internal } else { FailureKind::Input }, diagnostics }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic].into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<String> = self.diagnostics.iter().map(ToString::to_string).collect();
        f.write_str(&errors.join("\n"))
    }
}

impl std::error::Error for Failure {}

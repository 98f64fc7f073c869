//! Diagnostics: what every reader, check and pass says to the user, rendered in one place by the command line.

use serde::Serialize;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing needs doing.
    Note,
    /// Likely not what the user meant; the work goes on.
    Warning,
    /// The work cannot go on.
    Error,
}

/// What a label points at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A byte range of a text file (a cluster description, text IR).
    Source {
        /// The file as the user named it.
        file: String,
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// An entity of the user's model by its own name (a node, an input, an initializer).
    Model {
        /// What it is: `node`, `input`, `initializer`...
        kind: &'static str,
        /// Its name in the model.
        name: String,
    },
    /// An entity of trainc's own forms by its printed id (`v7`, `n3`, a plan's `rank 1`).
    Entity(String),
}

/// One place and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What: lower case, no final dot.
    pub text: String,
}

/// One message: lower case, no final dot; it names the entity, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable code, explained by `trainc explain CODE`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The headline.
    pub message: String,
    /// Places, the primary one first.
    pub labels: Vec<Label>,
    /// Facts that help to understand it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

/// Every diagnostic of a failed step, at least one of them an error.
pub type Diagnostics = Vec<Diagnostic>;

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    /// A note.
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message.into())
    }

    fn new(severity: Severity, code: &'static str, message: String) -> Self {
        Self { code, severity, message, labels: Vec::new(), notes: Vec::new(), help: None }
    }

    /// Adds a label.
    #[must_use]
    pub fn at(mut self, place: Place, text: impl Into<String>) -> Self {
        self.labels.push(Label { place, text: text.into() });
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether this stops the work.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}[{}]: {}", self.code, self.message)
    }
}

impl std::error::Error for Diagnostic {}

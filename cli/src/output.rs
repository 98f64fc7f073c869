//! The only place that writes to the terminal: standard output, standard error, and what is shown on which.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is where everything is printed")]

use crate::args::{MessageFormat, TalkArgs};
use crate::render::{Style, render};
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use trainc_ir::{Diagnostic, Severity};

/// Where a command talks to its user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    quiet: bool,
    format: MessageFormat,
    style: Style,
    terminal: bool,
}

impl Output {
    /// Output as the user asked for it; colours only on a terminal whose user has nothing against them.
    pub(crate) fn new(talk: &TalkArgs) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let style = if terminal && !set("NO_COLOR") && !dumb { Style::Colours } else { Style::Plain };
        Self { quiet: talk.quiet, format: talk.message_format, style, terminal }
    }

    /// Whether results are to be printed as JSON.
    pub(crate) fn is_json(self) -> bool {
        self.format == MessageFormat::Json
    }

    /// Whether progress may be shown.
    pub(crate) fn shows_progress(self) -> bool {
        self.terminal && !self.quiet && !self.is_json()
    }

    /// A report for people.
    pub(crate) fn report(self, text: &str) {
        if !self.quiet && !self.is_json() {
            self.print(text);
        }
    }

    /// A result that other programs read, one JSON object.
    pub(crate) fn object(self, object: &serde_json::Value) {
        if !self.quiet && self.is_json() {
            self.print(&format!("{object}\n"));
        }
    }

    /// What was asked for explicitly, printed whatever the format.
    pub(crate) fn asked(self, text: &str) {
        self.print(text);
    }

    /// What was asked for explicitly, beside the result.
    pub(crate) fn asked_beside(self, text: &str) {
        // Nothing can be said where not even this can be printed.
        let _ = put(&mut std::io::stderr().lock(), text);
    }

    /// Warnings of a model whose notes were read when it was compiled.
    pub(crate) fn warnings(self, diagnostics: &[Diagnostic]) {
        let warnings: Vec<Diagnostic> = diagnostics.iter().filter(|d| d.severity > Severity::Note).cloned().collect();
        self.diagnostics(&warnings);
    }

    /// Diagnostics.
    pub(crate) fn diagnostics(self, diagnostics: &[Diagnostic]) {
        let shown = diagnostics.iter().filter(|d| !self.quiet || d.severity == Severity::Error);
        for diagnostic in shown {
            let text = match self.format {
                MessageFormat::Human => render(diagnostic, self.style),
                MessageFormat::Json => json_line(diagnostic),
            };
            // Nothing can be said where not even this can be printed.
            let _ = put(&mut std::io::stderr().lock(), &text);
        }
    }

    /// Prints to standard output, and ends the program where that cannot be done.
    fn print(self, text: &str) {
        if let Err(error) = put(&mut std::io::stdout().lock(), text) {
            self.diagnostics(&[cannot_print(&error)]);
            #[allow(clippy::exit, reason = "whatever else is printed has the same fate")]
            std::process::exit(1);
        }
    }
}

/// Writes all of it. A reader that has gone away (`trainc .. | head`) wants no more, so that is the end of the program.
fn put(stream: &mut dyn Write, text: &str) -> std::io::Result<()> {
    let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    #[allow(clippy::exit, reason = "there is nobody left to talk to")]
    if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
    written
}

/// Whether the command line, which cannot be read as a whole, asks for JSON.
pub(crate) fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.take_while(|argument| argument != "--").collect();
    let apart = arguments.windows(2).any(|pair| pair[0] == "--message-format" && pair[1] == "json");
    apart || arguments.iter().any(|argument| argument == "--message-format=json")
}

/// What clap says of a command line that it cannot read, or of a question for help.
pub(crate) fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if error.use_stderr() && json {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let mut parts = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        let message = parts.next().unwrap_or_default();
        let mut diagnostic = Diagnostic::error(trainc::BAD_COMMAND_LINE, message.trim_end_matches('.').to_owned());
        diagnostic.notes = parts.filter(|part| !part.is_empty() && !part.starts_with("For more information")).collect();
        let diagnostic = diagnostic.with_help("`trainc --help` and `trainc COMMAND --help` list commands and options");
        // Nothing can be said where not even this can be printed.
        let _ = put(&mut std::io::stderr().lock(), &json_line(&diagnostic));
        return ExitCode::from(2);
    }
    match error.print() {
        Ok(()) if error.use_stderr() => ExitCode::from(2),
        Err(failed) if !error.use_stderr() && failed.kind() != ErrorKind::BrokenPipe => {
            let _ = put(&mut std::io::stderr().lock(), &render(&cannot_print(&failed), Style::Plain));
            ExitCode::from(1)
        }
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

/// The diagnostic as a line of JSON.
fn json_line(diagnostic: &Diagnostic) -> String {
    serde_json::to_string(diagnostic).expect("a diagnostic holds texts and numbers only") + "\n"
}

/// What is said where standard output cannot be written.
fn cannot_print(error: &std::io::Error) -> Diagnostic {
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    Diagnostic::error(trainc::CANNOT_WRITE, format!("cannot write to standard output: {why}"))
        .with_help("the result is not complete: free some space, or send it elsewhere")
}

/// The message and place of the last panic.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps panics from printing by themselves; with `RUST_BACKTRACE` they still do.
pub(crate) fn silence_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        let payload = info.payload();
        let message = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let message = message.unwrap_or("a panic without a message");
        if let Ok(mut last) = PANIC.lock() {
            last.get_or_insert(format!("{message}{place}"));
        }
    }));
}

/// What the first panic said.
pub(crate) fn take_panic() -> Option<String> {
    PANIC.lock().ok()?.take()
}

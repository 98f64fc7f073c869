//! Diagnostics as people read them, with the lines of the source they are about.

use std::fmt::Write;
use trainc_ir::{Diagnostic, Label, Place, Severity};

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Text only.
    Plain,
    /// ANSI colours.
    Colours,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

const BOLD: &str = "1";
const FRAME: &str = "1;34";

/// The diagnostic as text, with an empty line after it.
pub(crate) fn render(diagnostic: &Diagnostic, style: Style) -> String {
    // A pipe has been read already, and cannot be read again.
    let is_file = |file: &str| std::fs::metadata(file).is_ok_and(|of| of.is_file());
    render_with(diagnostic, style, &|file| is_file(file).then(|| std::fs::read_to_string(file).ok()).flatten())
}

/// The same, with the texts of files from elsewhere.
fn render_with(diagnostic: &Diagnostic, style: Style, text_of: &dyn Fn(&str) -> Option<String>) -> String {
    let (name, colour) = match diagnostic.severity {
        Severity::Error => ("error", "1;31"),
        Severity::Warning => ("warning", "1;33"),
        Severity::Note => ("note", "1;36"),
    };
    let head = style.paint(colour, &format!("{name}[{}]", diagnostic.code));
    let mut out = format!("{head}{}\n", style.paint(BOLD, &format!(": {}", diagnostic.message)));
    let texts: Vec<Option<String>> = diagnostic.labels.iter().map(|label| snippet_text(label, text_of)).collect();
    let width = diagnostic.labels.iter().zip(&texts).map(|(label, text)| number_width(label, text.as_deref())).max();
    let margin = " ".repeat(width.unwrap_or(0).max(1));
    for (label, text) in diagnostic.labels.iter().zip(&texts) {
        push_label(&mut out, label, text.as_deref(), style, &margin);
    }
    for (word, text) in diagnostic.notes.iter().map(|n| ("note", n)).chain(diagnostic.help.iter().map(|h| ("help", h)))
    {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let sign = style.paint(FRAME, "=");
        line(&mut out, &format!("{margin} {sign} {}: {first}", style.paint(BOLD, word)));
        for rest in lines {
            line(&mut out, &format!("{margin}         {rest}"));
        }
    }
    out.push('\n');
    out
}

fn snippet_text(label: &Label, text_of: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    match &label.place {
        Place::Source { file, start, end } => {
            text_of(file).filter(|text| start <= end && text.get(*start..*end).is_some())
        }
        Place::Model { kind: _, name: _ } | Place::Entity(_) => None,
    }
}

fn number_width(label: &Label, text: Option<&str>) -> usize {
    match (&label.place, text) {
        (Place::Source { file: _, start, end: _ }, Some(text)) => position(text, *start).line.to_string().len(),
        _ => 1,
    }
}

/// A place in a text: line and column from 1, and the line itself.
struct Position<'t> {
    line: usize,
    column: usize,
    text: &'t str,
    start: usize,
}

fn position(text: &str, offset: usize) -> Position<'_> {
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
    let line = text[..start].matches('\n').count() + 1;
    let column = text[start..offset].chars().count() + 1;
    Position { line, column, text: text[start..end].trim_end_matches('\r'), start }
}

/// Characters of a line that are shown; files for machines can have all in one line.
const LONGEST_LINE: usize = 160;

/// The part of a line around a column, and the column in it.
fn window(text: &str, column: usize) -> (String, usize) {
    // No line is walked to its end only to see that it is short.
    if text.chars().nth(LONGEST_LINE).is_none() {
        return (text.to_owned(), column);
    }
    let skipped = column.saturating_sub(LONGEST_LINE / 2);
    let mut part: String = text.chars().skip(skipped).take(LONGEST_LINE).collect();
    let mut column = column - skipped;
    if text.chars().nth(skipped + LONGEST_LINE).is_some() {
        part.push_str("...");
    }
    if skipped > 0 {
        part.insert_str(0, "...");
        column += 3;
    }
    (part, column)
}

fn push_label(out: &mut String, label: &Label, text: Option<&str>, style: Style, margin: &str) {
    let arrow = style.paint(FRAME, "-->");
    match (&label.place, text) {
        (Place::Source { file, start, end }, Some(text)) => {
            let at = position(text, *start);
            line(out, &format!("{margin}{arrow} {file}:{}:{}", at.line, at.column));
            let bar = style.paint(FRAME, "|");
            line(out, &format!("{margin} {bar}"));
            let number = style.paint(FRAME, &format!("{:>width$} |", at.line, width = margin.len()));
            let (shown, column) = window(at.text, at.column - 1);
            line(out, &format!("{number} {}", shown.replace('\t', " ")));
            let before = " ".repeat(column);
            let marked = &text[*start..(*end).min(at.start + at.text.len()).max(*start)];
            let most = shown.chars().count().saturating_sub(column).max(1);
            let marks = style.paint("1;31", &"^".repeat(marked.chars().take(most).count().max(1)));
            line(out, &format!("{margin} {bar} {before}{marks} {}", label.text));
        }
        (Place::Source { file, start, end: _ }, None) => {
            line(out, &format!("{margin}{arrow} {file}, byte {start}: {}", label.text));
        }
        (Place::Model { kind, name }, _) => line(out, &format!("{margin}{arrow} {kind} `{name}`: {}", label.text)),
        (Place::Entity(entity), _) => line(out, &format!("{margin}{arrow} {entity}: {}", label.text)),
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{}", text.trim_end()).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(diagnostic: &Diagnostic, source: Option<&str>, expected: &str) {
        let text = render_with(diagnostic, Style::Plain, &|_| source.map(str::to_owned));
        assert_eq!(text, expected.to_owned() + "\n", "\n{text}");
    }

    fn at(start: usize, end: usize) -> Place {
        Place::Source { file: "c.toml".to_owned(), start, end }
    }

    #[test]
    fn of_a_very_long_line_only_what_is_around_the_place_is_shown() {
        let line: String = ('a'..='z').cycle().take(1000).collect();
        let (shown, column) = window(&line, 500);
        assert_eq!((shown.len(), shown.chars().nth(column)), (166, line.chars().nth(500)));
        assert_eq!(window(&line, 3), (line[..160].to_owned() + "...", 3));
        assert_eq!(window(&line, 999).0, "...".to_owned() + &line[919..]);
        assert_eq!(window("short", 5), ("short".to_owned(), 5));
    }

    #[test]
    fn the_marks_stand_below_what_they_mean() {
        let source = "name = \"x\"\n\tgpu = \"µ100\"\n";
        let start = source.find("\"µ").unwrap();
        let end = source.len() - 1;
        let diagnostic = Diagnostic::error("E0307", "no GPU type `µ100`")
            .at(at(start, end), "not in the catalogue")
            .with_note("one\ntwo")
            .with_help("try `A100`");
        check(
            &diagnostic,
            Some(source),
            "error[E0307]: no GPU type `µ100`
 --> c.toml:2:8
  |
2 |  gpu = \"µ100\"
  |        ^^^^^^ not in the catalogue
  = note: one
          two
  = help: try `A100`
",
        );
    }

    #[test]
    fn places_without_a_text_are_named() {
        let diagnostic = Diagnostic::warning("W1", "odd")
            .at(Place::Model { kind: "node", name: "/h/MatMul".to_owned() }, "this one")
            .at(Place::Entity("rank 1".to_owned()), "here")
            .at(at(3, 9), "gone");
        check(
            &diagnostic,
            None,
            "warning[W1]: odd\n --> node `/h/MatMul`: this one\n --> rank 1: here\n --> c.toml, byte 3: gone\n",
        );
    }

    #[test]
    fn spans_beyond_the_text_or_over_lines_do_no_harm() {
        for (start, end) in [(0, 99), (99, 100), (5, 2)] {
            let text = render_with(&Diagnostic::error("E1", "x").at(at(start, end), "y"), Style::Plain, &|_| {
                Some("ab".to_owned())
            });
            assert!(text.contains(&format!("byte {start}")), "{text}");
        }
        let two = render_with(&Diagnostic::error("E1", "x").at(at(1, 5), "y"), Style::Plain, &|_| {
            Some("abc\ndef".to_owned())
        });
        assert!(two.contains("\n  |  ^^ y\n"), "{two}");
        let end =
            render_with(&Diagnostic::error("E1", "x").at(at(4, 4), "y"), Style::Plain, &|_| Some("abc\n".to_owned()));
        assert!(end.contains("c.toml:2:1") && end.contains("  | ^ y"), "{end}");
    }
}

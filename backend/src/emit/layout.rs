//! The line layout of `plan.json`: one instruction, buffer or kernel per line, so that a difference is a few lines.

use serde_json::ser::{CompactFormatter, Formatter};
use std::io::{self, Write};

/// Lists with one element per line, where their parent is laid out in lines.
const LISTS: [&str; 14] = [
    "inputs",
    "groups",
    "ranks",
    "communicators",
    "kernels",
    "segments",
    "programs",
    "parameters",
    "formals",
    "body",
    "buffers",
    "frames",
    "streams",
    "blocks",
];
/// Lists whose elements are laid out in lines themselves.
const TALL: [&str; 2] = ["segments", "programs"];

/// How a container is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// One member per line.
    Lines,
    /// On one line, but a list `body` in it has one element per line.
    Open,
    /// On one line.
    Line,
}

/// Lays out the JSON form of a plan.
#[derive(Debug, Default)]
pub(super) struct PlanFormatter {
    containers: Vec<(Style, String)>,
    /// The key that was read last, and whether a key is being read.
    key: String,
    in_key: bool,
    indent: usize,
}

impl PlanFormatter {
    fn top(&self) -> Option<(Style, &str)> {
        self.containers.last().map(|(style, name)| (*style, name.as_str()))
    }

    fn open<W: Write + ?Sized>(&mut self, writer: &mut W, style: Style, name: String, brace: &[u8]) -> io::Result<()> {
        self.containers.push((style, name));
        if style == Style::Lines {
            self.indent += 1;
        }
        writer.write_all(brace)
    }

    fn close<W: Write + ?Sized>(&mut self, writer: &mut W, brace: &[u8]) -> io::Result<()> {
        if let Some((Style::Lines, _)) = self.containers.pop() {
            self.indent -= 1;
            self.line(writer)?;
        }
        writer.write_all(brace)
    }

    fn line<W: Write + ?Sized>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        writer.write_all(" ".repeat(self.indent).as_bytes())
    }

    fn separate<W: Write + ?Sized>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        match self.top() {
            Some((Style::Lines, _)) => self.line(writer),
            Some((Style::Open | Style::Line, _)) | None if first => Ok(()),
            Some((Style::Open | Style::Line, _)) | None => writer.write_all(b" "),
        }
    }
}

impl Formatter for PlanFormatter {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        let key = std::mem::take(&mut self.key);
        let style = match self.top() {
            Some((Style::Lines, _)) if LISTS.contains(&key.as_str()) => Style::Lines,
            Some((Style::Open, _)) if key == "body" => Style::Lines,
            Some(_) | None => Style::Line,
        };
        self.open(writer, style, key, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.key.clear();
        self.separate(writer, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        let key = std::mem::take(&mut self.key);
        let style = match self.top() {
            None => Style::Lines,
            Some((Style::Lines, list)) if key.is_empty() && TALL.contains(&list) => Style::Lines,
            Some((Style::Lines, list)) if key.is_empty() && list == "body" => Style::Open,
            Some((Style::Lines, _)) if key == "prediction" || key == "header" => Style::Lines,
            Some((Style::Open, _)) if key == "loop" => Style::Open,
            Some(_) => Style::Line,
        };
        self.open(writer, style, key, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.key.clear();
        self.in_key = true;
        self.separate(writer, first)
    }

    fn end_object_key<W: Write + ?Sized>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.in_key = false;
        Ok(())
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if self.in_key {
            self.key.push_str(fragment);
        }
        CompactFormatter.write_string_fragment(writer, fragment)
    }
}

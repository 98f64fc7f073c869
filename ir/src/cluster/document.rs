//! A TOML text whose tables are read key by key, collecting every fault with its place.

use super::codes;
use super::suggest::nearest;
use crate::diag::{Diagnostic, Diagnostics, Place};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes that a text may have.
const LONGEST_TEXT: usize = 4000;
/// Faults of a file that are told one by one.
const MOST_FAULTS: usize = 50;

/// The text being read and the faults found so far.
pub(super) struct Document<'i> {
    file: &'i str,
    faults: RefCell<Diagnostics>,
}

/// A value and the bytes it stands at.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// One table of the document; remembers which keys were asked for.
pub(super) struct Section<'d, 'i> {
    document: &'d Document<'i>,
    what: String,
    /// Where the table is.
    pub(super) span: Range<usize>,
    entries: &'d DeTable<'i>,
    known: RefCell<Vec<&'static str>>,
}

/// Parses the text; a syntax error is the only fault then.
pub(super) fn parse<'i>(file: &'i str, text: &'i str) -> Result<(Document<'i>, Spanned<DeTable<'i>>), Diagnostics> {
    let document = Document { file, faults: RefCell::default() };
    match DeTable::parse(text) {
        Ok(root) => Ok((document, root)),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            let message = error.message().lines().next().unwrap_or("syntax error").trim_end_matches('.');
            document.fault(codes::NOT_TOML, format!("`{file}` is not valid TOML"), span, message);
            Err(document.faults.into_inner())
        }
    }
}

impl<'i> Document<'i> {
    /// The whole document as a section.
    pub(super) fn root<'d>(&'d self, root: &'d Spanned<DeTable<'i>>) -> Section<'d, 'i> {
        self.section(String::new(), 0..0, root.get_ref())
    }

    fn section<'d>(&'d self, what: String, span: Range<usize>, entries: &'d DeTable<'i>) -> Section<'d, 'i> {
        Section { document: self, what, span, entries, known: RefCell::default() }
    }

    /// Records an error at `span`.
    pub(super) fn fault(&self, code: &'static str, message: String, span: Range<usize>, label: impl Into<String>) {
        self.push(Diagnostic::error(code, message).at(self.place(span), label));
    }

    /// Records an error made by the caller.
    pub(super) fn push(&self, diagnostic: Diagnostic) {
        self.faults.borrow_mut().push(diagnostic);
    }

    /// The place of these bytes.
    pub(super) fn place(&self, span: Range<usize>) -> Place {
        Place::Source { file: self.file.to_owned(), start: span.start, end: span.end }
    }

    /// Adds advice to the fault recorded last.
    pub(super) fn help(&self, help: &str) {
        if let Some(fault) = self.faults.borrow_mut().last_mut() {
            fault.help = Some(help.to_owned());
        }
    }

    /// How many faults were found so far.
    pub(super) fn n_faults(&self) -> usize {
        self.faults.borrow().len()
    }

    /// The candidates for a suggestion; none where this fault will not be told any more.
    pub(super) fn suggestions<'a>(&self, all: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
        all.take(if self.tells_more() { usize::MAX } else { 0 })
    }

    /// Whether a further fault would be told.
    pub(super) fn tells_more(&self) -> bool {
        self.n_faults() < MOST_FAULTS
    }

    /// Whether nothing was wrong so far.
    pub(super) fn is_clean(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// What was wrong, in the order of the text.
    pub(super) fn into_faults(self) -> Diagnostics {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| match fault.labels.first().map(|label| &label.place) {
            Some(Place::Source { start, .. }) => *start,
            Some(Place::Model { .. } | Place::Entity(_)) | None => 0,
        });
        faults.dedup();
        if faults.len() > MOST_FAULTS {
            let more = faults.len() - MOST_FAULTS;
            faults.truncate(MOST_FAULTS);
            if let Some(last) = faults.last_mut() {
                last.notes.push(format!("{more} more faults in this file are not shown"));
            }
        }
        faults
    }
}

impl<'d, 'i> Section<'d, 'i> {
    /// The document this is a part of.
    pub(super) fn document(&self) -> &'d Document<'i> {
        self.document
    }

    /// How messages call this section.
    pub(super) fn name_it(&mut self, what: String) {
        self.what = what;
    }

    /// `` ` in group `a100` `` or nothing for the root.
    pub(super) fn inside(&self) -> String {
        if self.what.is_empty() { String::new() } else { format!(" in {}", self.what) }
    }

    fn get(&self, key: &'static str) -> Option<At<&'d DeValue<'i>>> {
        self.known.borrow_mut().push(key);
        let value = self.entries.get(key)?;
        Some(At { value: value.get_ref(), span: value.span() })
    }

    /// Whether the key is there, and where its value is.
    pub(super) fn has(&self, key: &'static str) -> Option<Range<usize>> {
        self.get(key).map(|found| found.span)
    }

    fn wrong_type(&self, key: &str, expected: &str, found: &At<&DeValue<'_>>) {
        let message = format!("`{key}`{} must be {expected}, found {}", self.inside(), kind(found.value));
        self.document.fault(codes::WRONG_TYPE, message, found.span.clone(), format!("expected {expected}"));
    }

    /// Records that a key is missing.
    pub(super) fn missing(&self, key: &str, help: &str) {
        let message = format!("`{key}` is missing{}", self.inside());
        let diagnostic = Diagnostic::error(codes::MISSING_KEY, message);
        let diagnostic = diagnostic.at(self.document.place(self.span.clone()), format!("`{key}` belongs here"));
        self.document.push(diagnostic.with_help(help));
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &'static str) -> Option<At<&'d str>> {
        let found = self.get(key)?;
        match found.value {
            DeValue::String(text) if !text.trim().is_empty() => {
                self.plain(key, text, &found.span).then(|| At { value: text.as_ref(), span: found.span.clone() })
            }
            DeValue::String(_) => {
                let message = format!("`{key}`{} is empty", self.inside());
                self.document.fault(codes::WRONG_TYPE, message, found.span, "expected a text");
                None
            }
            _ => {
                self.wrong_type(key, "a text", &found);
                None
            }
        }
    }

    /// Whether the text can stand in a line of another format; a fault where not.
    fn plain(&self, key: &str, text: &str, span: &Range<usize>) -> bool {
        let plain = !text.chars().any(char::is_control) && text.len() <= LONGEST_TEXT;
        if !plain {
            let message =
                format!("`{key}`{} holds a line break or another control character, or is too long", self.inside());
            let label = format!("expected one line of at most {LONGEST_TEXT} bytes");
            self.document.fault(codes::BAD_TEXT, message, span.clone(), label);
        }
        plain
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, key: &'static str) -> Option<At<bool>> {
        let found = self.get(key)?;
        let DeValue::Boolean(value) = found.value else {
            self.wrong_type(key, "true or false", &found);
            return None;
        };
        Some(At { value: *value, span: found.span })
    }

    /// A whole number within `range`.
    pub(super) fn count(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<At<u64>> {
        let found = self.get(key)?;
        let DeValue::Integer(integer) = found.value else {
            self.wrong_type(key, "a whole number", &found);
            return None;
        };
        let value = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
        match value.and_then(|value| u64::try_from(value).ok()).filter(|value| range.contains(value)) {
            Some(value) => Some(At { value, span: found.span }),
            None => {
                self.out_of_range(key, &integer.to_string(), found.span, range.start(), range.end());
                None
            }
        }
    }

    /// A number within `range` times `scale`, rounded to a whole one.
    pub(super) fn scaled(&self, key: &'static str, range: RangeInclusive<f64>, scale: f64) -> Option<At<u64>> {
        let found = self.get(key)?;
        self.scaled_value(key, &found, &range, scale).map(|value| At { value, span: found.span })
    }

    /// A list of exactly two such numbers.
    pub(super) fn scaled_pair(
        &self,
        key: &'static str,
        range: &RangeInclusive<f64>,
        scale: f64,
    ) -> Option<At<(u64, u64)>> {
        let found = self.get(key)?;
        let DeValue::Array(items) = found.value else {
            self.wrong_type(key, "a list of two numbers", &found);
            return None;
        };
        let (Some(low), Some(high), None) = (items.first(), items.get(1), items.get(2)) else {
            self.wrong_type(key, "a list of two numbers", &found);
            return None;
        };
        let number = |item: &'d Spanned<DeValue<'i>>| {
            self.scaled_value(key, &At { value: item.get_ref(), span: item.span() }, range, scale)
        };
        let value = (number(low)?, number(high)?);
        Some(At { value, span: found.span })
    }

    /// A list of pairs of whole numbers: the first of each within one range, the second within another.
    pub(super) fn count_pairs(
        &self,
        key: &'static str,
        first: RangeInclusive<u64>,
        second: RangeInclusive<u64>,
    ) -> Option<At<Vec<(u64, u64)>>> {
        let found = self.get(key)?;
        let expected = "a list of pairs of whole numbers";
        let number = |item: &DeValue<'_>| match item {
            DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok(),
            _ => None,
        };
        let pair = |item: &'d Spanned<DeValue<'i>>| match item.get_ref() {
            DeValue::Array(pair) if pair.len() == 2 => number(pair[0].get_ref()).zip(number(pair[1].get_ref())),
            _ => None,
        };
        let DeValue::Array(items) = found.value else {
            self.wrong_type(key, expected, &found);
            return None;
        };
        let mut pairs = Vec::new();
        for item in items.iter() {
            let Some((a, b)) = pair(item) else {
                self.wrong_type(key, expected, &found);
                return None;
            };
            for (value, range) in [(a, &first), (b, &second)] {
                if !range.contains(&value) {
                    self.out_of_range(key, &value.to_string(), item.span(), range.start(), range.end());
                    return None;
                }
            }
            pairs.push((a, b));
        }
        Some(At { value: pairs, span: found.span })
    }

    fn scaled_value(
        &self,
        key: &str,
        found: &At<&DeValue<'_>>,
        range: &RangeInclusive<f64>,
        scale: f64,
    ) -> Option<u64> {
        let (spelled, value) = match found.value {
            DeValue::Integer(integer) => {
                let value = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
                (integer.to_string(), value.map(|value| value as f64))
            }
            DeValue::Float(float) => (float.to_string(), float.as_str().parse::<f64>().ok()),
            _ => {
                self.wrong_type(key, "a number", found);
                return None;
            }
        };
        match value.filter(|value| range.contains(value)) {
            // The caller's range keeps the product far below 2^63; a product and a rounding are exact IEEE operations.
            Some(value) => Some((value * scale).round() as u64),
            None => {
                self.out_of_range(key, &spelled, found.span.clone(), range.start(), range.end());
                None
            }
        }
    }

    fn out_of_range<T: std::fmt::Display>(&self, key: &str, found: &str, span: Range<usize>, least: T, most: T) {
        let message = format!("`{key}`{} must be from {least} to {most}, found {found}", self.inside());
        self.document.fault(codes::OUT_OF_RANGE, message, span, "out of range");
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &'static str) -> Option<At<Vec<At<&'d str>>>> {
        let found = self.get(key)?;
        let DeValue::Array(items) = found.value else {
            self.wrong_type(key, "a list of texts", &found);
            return None;
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) => texts.push(At { value: text.as_ref(), span: item.span() }),
                value => {
                    self.wrong_type(key, "a list of texts", &At { value, span: item.span() });
                    return None;
                }
            }
        }
        Some(At { value: texts, span: found.span })
    }

    /// A table of texts.
    pub(super) fn text_table(&self, key: &'static str) -> BTreeMap<String, String> {
        let Some(found) = self.get(key) else { return BTreeMap::new() };
        let DeValue::Table(entries) = found.value else {
            self.wrong_type(key, "a table", &found);
            return BTreeMap::new();
        };
        let mut texts = BTreeMap::new();
        for (name, value) in entries.iter() {
            match value.get_ref() {
                DeValue::String(text) => {
                    let shown: String = name.get_ref().chars().filter(|c| !c.is_control()).take(60).collect();
                    let label = format!("{key}.{shown}");
                    if self.plain(&label, name.get_ref(), &name.span()) && self.plain(&label, text, &value.span()) {
                        texts.insert(name.get_ref().to_string(), text.to_string());
                    }
                }
                other => self.wrong_type(
                    &format!("{key}.{}", name.get_ref()),
                    "a text",
                    &At { value: other, span: value.span() },
                ),
            }
        }
        texts
    }

    /// The table under `key`.
    pub(super) fn table(&self, key: &'static str) -> Option<Section<'d, 'i>> {
        let found = self.get(key)?;
        let DeValue::Table(entries) = found.value else {
            self.wrong_type(key, "a table", &found);
            return None;
        };
        let what = format!("`[{key}]`{}", self.inside());
        Some(self.document.section(what, found.span, entries))
    }

    /// The tables under `[[key]]`.
    pub(super) fn tables(&self, key: &'static str) -> Vec<Section<'d, 'i>> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let DeValue::Array(items) = found.value else {
            self.wrong_type(key, "a list of tables", &found);
            let outer = self.what.trim_matches(['`', '[', ']']);
            let path = if outer.is_empty() { key.to_owned() } else { format!("{outer}.{key}") };
            self.document.help(&format!("begin each of them with `[[{path}]]`, in two pairs of brackets"));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (i, item) in items.iter().enumerate() {
            match item.get_ref() {
                DeValue::Table(entries) => {
                    let what = format!("`[[{key}]]` {}", i + 1);
                    sections.push(self.document.section(what, item.span(), entries));
                }
                value => self.wrong_type(key, "a table", &At { value, span: item.span() }),
            }
        }
        sections
    }

    /// Records every key that nobody asked for.
    pub(super) fn finish(self) {
        let known = self.known.take();
        for name in self.entries.keys() {
            let key = name.get_ref().as_ref();
            if known.contains(&key) {
                continue;
            }
            let message = format!("unknown key `{key}`{}", self.inside());
            let diagnostic = Diagnostic::error(codes::UNKNOWN_KEY, message);
            let diagnostic = diagnostic.at(self.document.place(name.span()), "means nothing here");
            let mut keys = known.clone();
            keys.sort_unstable();
            keys.dedup();
            self.document.push(match nearest(key, keys.iter().copied()) {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic.with_help(format!("known keys here: {}", keys.join(", "))),
            });
        }
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

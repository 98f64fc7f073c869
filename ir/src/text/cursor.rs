//! What all parsers of the text form share: one token of lookahead, and errors that name what was expected.

use super::codes;
use super::lex::{Lexer, Token};
use crate::diag::{Diagnostic, Diagnostics, Place};
use crate::graph::{NodeId, ValueId};
use crate::id::Id;
use crate::ty::{DType, Shape, Type};
use std::ops::Range;

/// A syntax error.
pub(super) type Failure = Box<Diagnostic>;

/// After so many errors the rest of a text is not read.
const MAX_ERRORS: usize = 64;

/// A position in the token stream.
#[derive(Debug)]
pub(super) struct Cursor<'s> {
    file: &'s str,
    lexer: Lexer<'s>,
    token: Token<'s>,
    range: Range<usize>,
    end: usize,
    errors: Diagnostics,
}

impl<'s> Cursor<'s> {
    pub(super) fn new(file: &'s str, source: &'s str) -> Self {
        let mut lexer = Lexer::new(source);
        let (token, range) = lexer.next();
        Self { file, lexer, token, range, end: 0, errors: Vec::new() }
    }

    /// The next token.
    pub(super) fn peek(&self) -> &Token<'s> {
        &self.token
    }

    /// Where the next token starts.
    pub(super) fn start(&self) -> usize {
        self.range.start
    }

    /// The bytes of the next token.
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The bytes from `start` to the end of the last token that was taken.
    pub(super) fn since(&self, start: usize) -> Range<usize> {
        start..self.end.max(start)
    }

    /// Takes the next token.
    pub(super) fn take(&mut self) -> Token<'s> {
        self.end = self.range.end;
        let (token, range) = self.lexer.next();
        self.range = range;
        std::mem::replace(&mut self.token, token)
    }

    /// An error at some bytes.
    pub(super) fn error(
        &self,
        code: &'static str,
        at: Range<usize>,
        message: impl Into<String>,
        label: &str,
    ) -> Failure {
        let place = Place::Source { file: self.file.to_owned(), start: at.start, end: at.end };
        Box::new(Diagnostic::error(code, message).at(place, label))
    }

    /// The next token is not what must stand there.
    pub(super) fn unexpected(&self, expected: &str) -> Failure {
        if let Token::Bad(code, message) = &self.token {
            return self.error(code, self.range(), message.clone(), "here");
        }
        let message = format!("expected {expected}, found {}", self.token.describe());
        self.error(codes::UNEXPECTED, self.range(), message, "here")
    }

    pub(super) fn is_mark(&self, mark: char) -> bool {
        self.token == Token::Mark(mark)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.token == Token::Word(word)
    }

    /// Takes the mark where it stands next.
    pub(super) fn accept(&mut self, mark: char) -> bool {
        let found = self.is_mark(mark);
        if found {
            self.take();
        }
        found
    }

    pub(super) fn mark(&mut self, mark: char) -> Result<(), Failure> {
        if self.accept(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    pub(super) fn word(&mut self, expected: &str) -> Result<&'s str, Failure> {
        let &Token::Word(word) = self.peek() else {
            return Err(self.unexpected(expected));
        };
        self.take();
        Ok(word)
    }

    /// Takes this very word.
    pub(super) fn keyword(&mut self, keyword: &str) -> Result<(), Failure> {
        if !self.is_word(keyword) {
            return Err(self.unexpected(&format!("`{keyword}`")));
        }
        self.take();
        Ok(())
    }

    pub(super) fn text(&mut self, expected: &str) -> Result<String, Failure> {
        if !matches!(self.peek(), Token::Text(_)) {
            return Err(self.unexpected(expected));
        }
        match self.take() {
            Token::Text(text) => Ok(text),
            _ => unreachable!("the token was looked at"),
        }
    }

    /// Takes one of several words, or says which there are.
    pub(super) fn choice<T: Copy>(&mut self, what: &str, choices: &[(T, &str)]) -> Result<T, Failure> {
        let range = self.range();
        let word = self.word(what)?;
        match choices.iter().find(|(_, spelling)| *spelling == word) {
            Some((choice, _)) => Ok(*choice),
            None => {
                let known: Vec<_> = choices.iter().map(|(_, spelling)| *spelling).collect();
                let error = self.error(codes::UNKNOWN_WORD, range, format!("there is no {what} `{word}`"), "here");
                Err(Box::new(error.with_help(format!("use one of {}", known.join(", ")))))
            }
        }
    }

    /// Takes a number that is not negative.
    pub(super) fn unsigned(&mut self, expected: &str) -> Result<u64, Failure> {
        let &Token::Number(number) = self.peek() else {
            return Err(self.unexpected(expected));
        };
        let value = number.parse().map_err(|_| {
            let message = format!("expected {expected} below 2^64, found `{number}`");
            self.error(codes::BAD_NUMBER, self.range(), message, "here")
        })?;
        self.take();
        Ok(value)
    }

    /// Takes an id such as `v7`.
    pub(super) fn id<I: Id>(&mut self, prefix: &str, expected: &str) -> Result<I, Failure> {
        let id = match self.peek() {
            Token::Word(word) => id_in(word, prefix),
            _ => None,
        };
        let id = id.ok_or_else(|| self.unexpected(expected))?;
        self.take();
        Ok(id)
    }

    pub(super) fn value(&mut self) -> Result<ValueId, Failure> {
        self.id(ValueId::PREFIX, "a value such as `v0`")
    }

    pub(super) fn node(&mut self) -> Result<NodeId, Failure> {
        self.id(NodeId::PREFIX, "a node such as `n0`")
    }

    /// Takes a type: `f32[2,3]`.
    pub(super) fn ty(&mut self) -> Result<Type, Failure> {
        let dtypes = DType::ALL.map(|dtype| (dtype, dtype.name()));
        let dtype = self.choice("element type", &dtypes)?;
        self.mark('[')?;
        let shape: Shape = self.list(']', |cursor| cursor.unsigned("a dimension"))?;
        Ok(Type { dtype, shape })
    }

    /// Takes items separated by commas up to the closing mark, which is taken too.
    pub(super) fn list<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut items = Vec::new();
        if self.accept(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.accept(close) {
                return Ok(items);
            }
            if !self.accept(',') {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// Takes the end of a line and all empty lines after it.
    pub(super) fn newline(&mut self) -> Result<(), Failure> {
        if !matches!(self.peek(), Token::Newline | Token::End) {
            return Err(self.unexpected("the end of the line"));
        }
        self.skip_newlines();
        Ok(())
    }

    pub(super) fn skip_newlines(&mut self) {
        while self.token == Token::Newline {
            self.take();
        }
    }

    /// Parses lines up to the closing brace and its line's end. A line with an error is reported and left out.
    pub(super) fn lines(&mut self, mut line: impl FnMut(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        self.mark('{')?;
        self.newline()?;
        while !self.is_mark('}') {
            if self.token == Token::End {
                return Err(self.unexpected("`}`"));
            }
            if let Err(error) = line(self).and_then(|()| self.newline()) {
                self.report(error)?;
                while !matches!(self.peek(), Token::Newline | Token::End) {
                    self.take();
                }
                self.skip_newlines();
            }
        }
        self.take();
        self.newline()
    }

    /// How many errors were reported.
    pub(super) fn n_errors(&self) -> usize {
        self.errors.len()
    }

    /// Keeps an error and goes on, unless there are too many.
    #[expect(clippy::boxed_local, reason = "syntax errors travel in boxes")]
    pub(super) fn report(&mut self, error: Failure) -> Result<(), Failure> {
        self.errors.push(*error);
        if self.errors.len() < MAX_ERRORS {
            return Ok(());
        }
        let message = format!("the first {MAX_ERRORS} errors are reported; the rest of the text was not read");
        Err(self.error(codes::TOO_MANY, self.range(), message, "reading stopped here"))
    }

    /// What was parsed, if there was no error and nothing follows.
    pub(super) fn finish<T>(mut self, parsed: Result<T, Failure>) -> Result<T, Diagnostics> {
        let parsed = parsed.and_then(|parsed| match self.peek() {
            Token::End => Ok(parsed),
            _ => Err(self.unexpected("the end of the text")),
        });
        match parsed {
            Ok(parsed) if self.errors.is_empty() => Ok(parsed),
            Ok(_) => Err(self.errors),
            Err(error) => {
                self.errors.push(*error);
                Err(self.errors)
            }
        }
    }
}

/// The id spelled `word`: the prefix and a number without leading zeros that fits.
pub(super) fn id_in<I: Id>(word: &str, prefix: &str) -> Option<I> {
    let digits = word.strip_prefix(prefix)?;
    let index: u32 = digits.parse().ok().filter(|&index| index < u32::MAX)?;
    (index.to_string() == digits).then(|| I::from_index(index as usize))
}

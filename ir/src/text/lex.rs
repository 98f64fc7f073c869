//! Splits the text form into tokens.

use super::codes;
use std::ops::Range;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'s> {
    /// Letters, digits and underscores, starting with a letter or an underscore.
    Word(&'s str),
    /// What starts with a digit or a minus, not yet interpreted: `12`, `-0.5e-7`, `0xff`, `-inf`.
    Number(&'s str),
    /// A quoted text, its escapes resolved.
    Text(String),
    /// One of `( ) [ ] { } < > = : , @ #`.
    Mark(char),
    /// The end of a line.
    Newline,
    /// The end of the text.
    End,
    /// What is no token: its code and what is wrong.
    Bad(&'static str, String),
}

impl Token<'_> {
    /// What it is called in messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Mark(mark) => format!("`{mark}`"),
            Self::Newline => "the end of the line".to_owned(),
            Self::End => "the end of the text".to_owned(),
            Self::Bad(_, message) => message.clone(),
        }
    }
}

/// Reads tokens one at a time.
#[derive(Debug)]
pub(super) struct Lexer<'s> {
    source: &'s str,
    position: usize,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, position: 0 }
    }

    fn peek(&self) -> Option<char> {
        self.source[self.position..].chars().next()
    }

    fn skip_while(&mut self, accept: impl Fn(char) -> bool) {
        let rest = &self.source[self.position..];
        self.position += rest.find(|c| !accept(c)).unwrap_or(rest.len());
    }

    /// The next token and its bytes.
    pub(super) fn next(&mut self) -> (Token<'s>, Range<usize>) {
        self.skip_while(|c| matches!(c, ' ' | '\t' | '\r'));
        if self.peek() == Some(';') {
            self.skip_while(|c| c != '\n');
        }
        let start = self.position;
        let Some(first) = self.peek() else {
            return (Token::End, start..start);
        };
        self.position += first.len_utf8();
        let token = match first {
            '\n' => Token::Newline,
            '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '=' | ':' | ',' | '@' | '#' => Token::Mark(first),
            '"' => self.text(),
            'a'..='z' | 'A'..='Z' | '_' => {
                self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
                Token::Word(&self.source[start..self.position])
            }
            '0'..='9' | '-' => {
                self.number(start);
                Token::Number(&self.source[start..self.position])
            }
            other => Token::Bad(codes::BAD_CHARACTER, format!("the character {other:?} means nothing here")),
        };
        (token, start..self.position)
    }

    /// A number goes on over letters, digits and dots, and over a sign after an exponent's `e`.
    fn number(&mut self, start: usize) {
        loop {
            self.skip_while(|c| c.is_ascii_alphanumeric() || c == '.');
            let so_far = &self.source[start..self.position];
            let exponent = so_far.ends_with(['e', 'E']) && !so_far.starts_with("0x");
            if !exponent || !matches!(self.peek(), Some('+' | '-')) {
                return;
            }
            self.position += 1;
        }
    }

    fn text(&mut self) -> Token<'s> {
        let mut text = String::new();
        loop {
            let from = self.position;
            self.skip_while(|c| !matches!(c, '"' | '\\' | '\n'));
            text.push_str(&self.source[from..self.position]);
            match self.peek() {
                Some('"') => {
                    self.position += 1;
                    return Token::Text(text);
                }
                Some('\\') => {
                    self.position += 1;
                    match self.escape() {
                        Some(c) => text.push(c),
                        None => return Token::Bad(codes::BAD_TEXT, "unknown escape in a quoted text".to_owned()),
                    }
                }
                Some(_) | None => {
                    return Token::Bad(codes::BAD_TEXT, "the quoted text does not end on its line".to_owned());
                }
            }
        }
    }

    /// The character after a backslash: `\n \r \t \\ \"` or `\u{1f600}`.
    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        match c {
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            '\\' | '"' => Some(c),
            'u' => {
                let rest = self.source[self.position..].strip_prefix('{')?;
                let digits = &rest[..rest.find('}')?];
                let valid = digits.len() <= 6 && digits.bytes().all(|b| b.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok().filter(|_| valid)?;
                self.position += digits.len() + 2;
                char::from_u32(code)
            }
            _ => None,
        }
    }
}

/// Writes a text in quotes so that [`Lexer`] reads it back.
pub(super) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' | '"' => out.extend(['\\', c]),
            c if c.is_control() => out.extend(format!("\\u{{{:x}}}", c as u32).chars()),
            c => out.push(c),
        }
    }
    out.push('"');
}

//! Attributes and constant data: printing and parsing side by side.

use super::codes;
use super::cursor::{Cursor, Failure};
use super::element::{element_bytes, element_text, real_text, real_value};
use super::lex::{Token, quote};
use crate::op::{Attr, Literal, LiteralData};
use std::fmt::Write;

/// Prints an attribute's value.
pub(super) fn print_attr(out: &mut String, attr: &Attr) {
    match attr {
        Attr::Bool(value) => write!(out, "{value}"),
        Attr::Int(value) => write!(out, "{value}"),
        Attr::Real(value) => write!(out, "{}", real_text(*value)),
        Attr::Word(word) => write!(out, "{word}"),
        Attr::Text(text) => {
            quote(out, text);
            Ok(())
        }
        Attr::Ints(values) => {
            let values: Vec<_> = values.iter().map(ToString::to_string).collect();
            write!(out, "[{}]", values.join(","))
        }
        Attr::Types(types) => {
            let types: Vec<_> = types.iter().map(ToString::to_string).collect();
            write!(out, "[{}]", types.join(","))
        }
        Attr::Literal(literal) => {
            print_literal(out, literal);
            Ok(())
        }
    }
    .expect("writing to a string does not fail");
}

/// Parses an attribute's value.
pub(super) fn parse_attr(cursor: &mut Cursor<'_>) -> Result<Attr, Failure> {
    match cursor.peek() {
        Token::Text(_) => cursor.text("a text").map(Attr::Text),
        Token::Number(number) => {
            let attr = match number.strip_prefix('-').unwrap_or(number).bytes().all(|b| b.is_ascii_digit()) {
                true => number.parse().ok().map(Attr::Int),
                false => real_value(number).map(Attr::Real),
            };
            let attr = attr.ok_or_else(|| bad_number(cursor, "an attribute takes", number))?;
            cursor.take();
            Ok(attr)
        }
        Token::Word(word) => {
            let attr = match *word {
                "true" => Attr::Bool(true),
                "false" => Attr::Bool(false),
                "inf" | "nan" => Attr::Real(real_value(word).expect("both are real numbers")),
                word => Attr::Word(word.to_owned()),
            };
            cursor.take();
            Ok(attr)
        }
        Token::Mark('<') => parse_literal(cursor).map(Attr::Literal),
        Token::Mark('[') => {
            cursor.take();
            if matches!(cursor.peek(), Token::Word(_)) {
                return cursor.list(']', Cursor::ty).map(Attr::Types);
            }
            cursor.list(']', signed).map(Attr::Ints)
        }
        Token::Mark(_) | Token::Newline | Token::End | Token::Bad(..) => {
            Err(cursor.unexpected("the value of an attribute"))
        }
    }
}

fn signed(cursor: &mut Cursor<'_>) -> Result<i64, Failure> {
    let Token::Number(number) = cursor.peek() else {
        return Err(cursor.unexpected("a whole number"));
    };
    let value = number.parse().map_err(|_| bad_number(cursor, "a list takes", number))?;
    cursor.take();
    Ok(value)
}

fn bad_number(cursor: &Cursor<'_>, what: &str, number: &str) -> Failure {
    let message = format!("`{number}` is not a number that {what}");
    cursor.error(codes::BAD_NUMBER, cursor.range(), message, "here")
}

/// Prints constant data: numbers where the data has the size that its type says, else bytes.
fn print_literal(out: &mut String, literal: &Literal) {
    let size = literal.ty.dtype.bytes() as usize;
    let (form, data, elements) = match &literal.data {
        LiteralData::Splat(data) => ("splat", data, Some(1)),
        LiteralData::Dense(data) => ("dense", data, literal.ty.checked_elements()),
    };
    write!(out, "<{} {form}", literal.ty).expect("writing to a string does not fail");
    if elements.and_then(|n| n.checked_mul(size as u64)) == Some(data.len() as u64) {
        for element in data.chunks_exact(size) {
            out.push(' ');
            out.push_str(&element_text(literal.ty.dtype, element));
        }
    } else {
        out.push_str(" bytes");
        for byte in data {
            write!(out, " {byte}").expect("writing to a string does not fail");
        }
    }
    out.push('>');
}

fn parse_literal(cursor: &mut Cursor<'_>) -> Result<Literal, Failure> {
    let start = cursor.start();
    cursor.mark('<')?;
    let ty = cursor.ty()?;
    let splat = cursor.choice("form of constant data", &[(true, "splat"), (false, "dense")])?;
    let raw = cursor.is_word("bytes");
    if raw {
        cursor.take();
    }
    let mut data = Vec::new();
    let mut count = 0u64;
    while !cursor.accept('>') {
        let word = match *cursor.peek() {
            Token::Number(word) | Token::Word(word) => word,
            Token::Text(_) | Token::Mark(_) | Token::Newline | Token::End | Token::Bad(..) => {
                return Err(cursor.unexpected("a number or `>`"));
            }
        };
        let bytes = if raw { word.parse().ok().map(|byte| vec![byte]) } else { element_bytes(ty.dtype, word) };
        let bytes = bytes.ok_or_else(|| {
            let message = format!("`{word}` is no {}", if raw { "byte" } else { ty.dtype.name() });
            cursor.error(codes::BAD_NUMBER, cursor.range(), message, "here")
        })?;
        data.extend(bytes);
        count += 1;
        cursor.take();
    }
    let expected = if splat { Some(1) } else { ty.checked_elements() };
    if !raw && Some(count) != expected {
        let expected = match (splat, expected) {
            (true, _) => "a splat has 1 element".to_owned(),
            (false, Some(n)) => format!("{ty} has {n} elements"),
            (false, None) => format!("{ty} has more elements than can be written"),
        };
        let message = format!("{expected}, found {count}");
        return Err(cursor.error(codes::BAD_LITERAL, cursor.since(start), message, "here"));
    }
    let data = if splat { LiteralData::Splat(data) } else { LiteralData::Dense(data) };
    Ok(Literal { ty, data })
}

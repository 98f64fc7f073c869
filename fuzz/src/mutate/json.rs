//! Changes of JSON documents: values replaced, moved, repeated and removed.

use super::Rng;
use serde_json::{Number, Value};

/// One change of a document, or `None` where the input is none.
pub(super) fn change(input: &[u8], other: &[u8], tokens: &[&str], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut document: Value = serde_json::from_slice(input).ok()?;
    let n_values = count(&document);
    let wanted = rng.below(n_values);
    let donor = match rng.below(3) {
        0 => serde_json::from_slice(other).ok(),
        _ => None,
    };
    let donor = donor.as_ref().unwrap_or(&document);
    let taken = rng.below(count(donor));
    let taken = find(donor, &mut { taken }).cloned()?;
    let chosen = find_mut(&mut document, &mut { wanted })?;
    *chosen = match (rng.below(4), chosen.take()) {
        (0, _) => taken,
        (_, Value::Number(_)) if rng.below(4) == 0 => Value::Number(Number::from(rng.edge() as i64)),
        (_, Value::Number(_)) => Value::Number(Number::from(rng.edge())),
        (_, Value::String(text)) => Value::String(words(&text, tokens, rng)),
        (_, Value::Bool(flag)) => Value::Bool(!flag),
        (_, Value::Null) => taken,
        (_, Value::Array(mut items)) => {
            let at = rng.below(items.len() + 1);
            match rng.below(3) {
                0 if at < items.len() => drop(items.remove(at)),
                1 if at < items.len() => items.push(items[at].clone()),
                _ => items.insert(at, taken),
            }
            Value::Array(items)
        }
        (_, Value::Object(mut fields)) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            if !names.is_empty() {
                let name = rng.pick(&names).clone();
                if rng.below(2) == 0 { drop(fields.remove(&name)) } else { drop(fields.insert(name, taken)) }
            }
            Value::Object(fields)
        }
    };
    serde_json::to_vec(&document).ok()
}

/// Another text: a token, or the same with another number in it.
fn words(text: &str, tokens: &[&str], rng: &mut Rng) -> String {
    if !tokens.is_empty() && rng.below(3) == 0 {
        return (*rng.pick(tokens)).to_owned();
    }
    let digits: Vec<usize> = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
    if digits.is_empty() {
        return format!("{text}{}", rng.edge());
    }
    let start = *rng.pick(&digits);
    let end = text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| start + length);
    format!("{}{}{}", &text[..start], rng.edge(), &text[end..])
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn count(value: &Value) -> usize {
    1 + children(value).into_iter().map(count).sum::<usize>()
}

/// The value of this number in the order in which they are written.
fn find<'a>(value: &'a Value, number: &mut usize) -> Option<&'a Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    children(value).into_iter().find_map(|child| find(child, number))
}

fn find_mut<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|child| find_mut(child, number)),
        Value::Object(fields) => fields.values_mut().find_map(|child| find_mut(child, number)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

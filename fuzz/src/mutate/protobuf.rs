//! Changes of protobuf messages: fields replaced, moved, repeated and removed, with the lengths around them kept right.

use super::Rng;

/// A field of a message.
#[derive(Clone, Debug)]
struct Field {
    number: u64,
    value: Value,
}

/// What a field holds. Whether bytes are a message is not written in them: what can be read as one counts as one.
#[derive(Clone, Debug)]
enum Value {
    Varint(u64),
    Fixed(Vec<u8>, u64),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// Deeper messages are bytes.
const MAX_DEPTH: usize = 24;

/// One change of a message, or `None` where the input is none.
pub(super) fn change(input: &[u8], other: &[u8], tokens: &[&str], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut fields = read(input, 0)?;
    let donor = if rng.below(3) == 0 { read(other, 0)? } else { fields.clone() };
    let taken = rng.below(count(&donor));
    let taken = find(&donor, &mut { taken }).cloned()?;
    let chosen = rng.below(count(&fields));
    alter(&mut fields, &mut { chosen }, &taken, tokens, rng)?;
    let mut out = Vec::new();
    write(&fields, &mut out);
    Some(out)
}

fn alter(fields: &mut Vec<Field>, chosen: &mut usize, taken: &Field, tokens: &[&str], rng: &mut Rng) -> Option<()> {
    let mut at = 0;
    while at < fields.len() {
        if *chosen > 0 {
            *chosen -= 1;
            if let Value::Message(inner) = &mut fields[at].value
                && alter(inner, chosen, taken, tokens, rng).is_some()
            {
                return Some(());
            }
            at += 1;
            continue;
        }
        match rng.below(8) {
            0 => drop(fields.remove(at)),
            1 => fields.insert(at, fields[at].clone()),
            2 => fields.insert(at, taken.clone()),
            3 => fields[at].number = 1 + rng.below(26) as u64,
            4 => fields[at].value = taken.value.clone(),
            5 if at > 0 => fields.swap(at, at - 1),
            _ => match &mut fields[at].value {
                Value::Varint(number) => *number = rng.edge(),
                Value::Fixed(bytes, _) => {
                    let edge = rng.edge().to_le_bytes();
                    bytes.iter_mut().zip(edge).for_each(|(byte, new)| *byte = new);
                }
                Value::Bytes(bytes) => {
                    let other = rng.edge().to_le_bytes();
                    *bytes = match rng.below(4) {
                        0 if !tokens.is_empty() => rng.pick(tokens).as_bytes().to_vec(),
                        1 => packed(rng),
                        _ => super::bytes::change(bytes, &other, tokens, rng),
                    };
                }
                Value::Message(inner) if tokens.is_empty() || rng.below(2) == 0 => inner.push(taken.clone()),
                message @ Value::Message(_) => *message = Value::Bytes(rng.pick(tokens).as_bytes().to_vec()),
            },
        }
        return Some(());
    }
    None
}

/// A few numbers as a packed field holds them.
fn packed(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1 + rng.below(4) {
        varint(rng.edge(), &mut out);
    }
    out
}

fn count(fields: &[Field]) -> usize {
    fields.iter().map(|field| 1 + if let Value::Message(inner) = &field.value { count(inner) } else { 0 }).sum()
}

fn find<'a>(fields: &'a [Field], number: &mut usize) -> Option<&'a Field> {
    for field in fields {
        if *number == 0 {
            return Some(field);
        }
        *number -= 1;
        if let Value::Message(inner) = &field.value
            && let Some(found) = find(inner, number)
        {
            return Some(found);
        }
    }
    None
}

fn read(bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        let number = tag >> 3;
        if number == 0 || number >= 1 << 29 {
            return None;
        }
        let value = match tag & 7 {
            0 => Value::Varint(take_varint(&mut rest)?),
            1 => Value::Fixed(take(&mut rest, 8)?.to_vec(), 1),
            5 => Value::Fixed(take(&mut rest, 4)?.to_vec(), 5),
            2 => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                let inner = take(&mut rest, length)?;
                let message = if depth < MAX_DEPTH && !inner.is_empty() { read(inner, depth + 1) } else { None };
                message.map_or_else(|| Value::Bytes(inner.to_vec()), Value::Message)
            }
            _ => return None,
        };
        fields.push(Field { number, value });
    }
    Some(fields)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Appends a number in the form that tags, lengths and numbers have.
pub(crate) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write(fields: &[Field], out: &mut Vec<u8>) {
    for Field { number, value } in fields {
        let wire = match value {
            Value::Varint(_) => 0,
            Value::Fixed(_, wire) => *wire,
            Value::Bytes(_) | Value::Message(_) => 2,
        };
        varint(number << 3 | wire, out);
        match value {
            Value::Varint(number) => varint(*number, out),
            Value::Fixed(bytes, _) => out.extend_from_slice(bytes),
            Value::Bytes(bytes) => {
                varint(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
            Value::Message(inner) => {
                let mut message = Vec::new();
                write(inner, &mut message);
                varint(message.len() as u64, out);
                out.extend_from_slice(&message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{read, write};

    #[test]
    fn messages_are_written_as_they_were_read() {
        // Field 7 with a message of a varint and a text, then a fixed number.
        let bytes = [0x3a, 7, 0x08, 0x96, 0x01, 0x12, 2, 0xff, 0xff, 0x0d, 1, 2, 3, 4];
        let fields = read(&bytes, 0).unwrap();
        assert_eq!(fields.len(), 2);
        let mut out = Vec::new();
        write(&fields, &mut out);
        assert_eq!(out, bytes);
    }
}

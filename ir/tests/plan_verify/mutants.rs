//! Broken plans by the thousand: every number, reference, list and choice of a plan's JSON form, changed in every way
//! that a person or a wrong pass might change it.

use serde_json::{Map, Value, json};

/// A place in a document: keys and positions from the top.
#[derive(Clone, Debug)]
enum Key {
    Field(String),
    Position(usize),
}

/// A change at a place.
#[derive(Clone, Debug)]
enum Change {
    /// Another value.
    Set(Value),
    /// Without an element of a list.
    Drop(usize),
    /// With an element of a list twice.
    Repeat(usize),
    /// With two elements of a list in each other's place.
    Swap(usize, usize),
    /// Without a field.
    Unset(String),
    /// With another name for a field.
    Rename(String, &'static str),
}

/// A change of a document.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    path: Vec<Key>,
    change: Change,
}

impl Mutant {
    /// What is changed, for people.
    pub(crate) fn describe(&self) -> String {
        let keys = self.path.iter().map(|key| match key {
            Key::Field(name) => format!(".{name}"),
            Key::Position(index) => format!("[{index}]"),
        });
        format!("{}: {:?}", keys.collect::<String>(), self.change)
    }

    /// The changed document.
    pub(crate) fn apply(&self, document: &Value) -> Value {
        let mut changed = document.clone();
        let mut place = &mut changed;
        for key in &self.path {
            place = match key {
                Key::Field(name) => &mut place[name.as_str()],
                Key::Position(index) => &mut place[*index],
            };
        }
        match (&self.change, place) {
            (Change::Set(value), place) => *place = value.clone(),
            (Change::Drop(index), Value::Array(list)) => {
                list.remove(*index);
            }
            (Change::Repeat(index), Value::Array(list)) => list.insert(*index, list[*index].clone()),
            (Change::Swap(a, b), Value::Array(list)) => list.swap(*a, *b),
            (Change::Unset(name), Value::Object(fields)) => {
                fields.remove(name);
            }
            (Change::Rename(from, to), Value::Object(fields)) => {
                if let Some(value) = fields.remove(from) {
                    fields.insert((*to).to_owned(), value);
                }
            }
            (change, place) => panic!("{change:?} does not fit {place}"),
        }
        changed
    }
}

/// All mutants of a plan's JSON form, apart from its header and what is for people only.
pub(crate) fn mutants(document: &Value) -> Vec<Mutant> {
    let mut found = Vec::new();
    walk(document, &mut Vec::new(), &mut found);
    found
}

const FOR_PEOPLE: [&str; 6] = ["header", "blocks", "units", "breakdown", "events", "recompute"];

fn walk(value: &Value, path: &mut Vec<Key>, found: &mut Vec<Mutant>) {
    let mut add = |change| found.push(Mutant { path: path.clone(), change });
    match value {
        Value::Null => {}
        Value::Bool(flag) => add(Change::Set(json!(!flag))),
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                for other in [number + 1, number - 1, 2 * number + 7, 0, 1_000_000_000_000_000_000] {
                    if other != number {
                        add(Change::Set(json!(other)));
                    }
                }
            } else if let Some(number) = number.as_f64() {
                add(Change::Set(json!(number * 0.5)));
            }
        }
        Value::String(text) => texts(text).into_iter().for_each(|other| add(Change::Set(json!(other)))),
        Value::Array(list) => {
            for index in 0..list.len() {
                add(Change::Drop(index));
                add(Change::Repeat(index));
                for other in index + 1..list.len().min(index + 4) {
                    if list[index] != list[other] {
                        add(Change::Swap(index, other));
                    }
                }
            }
            for (index, element) in list.iter().enumerate() {
                path.push(Key::Position(index));
                walk(element, path, found);
                path.pop();
            }
        }
        Value::Object(fields) => {
            choices(fields).into_iter().for_each(add);
            for (name, element) in fields.iter().filter(|(name, _)| !FOR_PEOPLE.contains(&name.as_str())) {
                path.push(Key::Field(name.clone()));
                walk(element, path, found);
                path.pop();
            }
        }
    }
}

fn choices(fields: &Map<String, Value>) -> Vec<Change> {
    const ACTIONS: [&str; 4] = ["send", "recv", "all_reduce", "broadcast"];
    let mut changes: Vec<_> = fields.keys().map(|name| Change::Unset(name.clone())).collect();
    for name in fields.keys().filter(|name| ACTIONS.contains(&name.as_str())) {
        changes.extend(ACTIONS.iter().filter(|other| *other != name).map(|other| Change::Rename(name.clone(), other)));
    }
    changes
}

/// Other texts like this one: every number in it one more and one less, every index another, every word another.
fn texts(text: &str) -> Vec<String> {
    const WORDS: [(&str, &str); 13] = [
        ("f32", "i32"),
        ("i64", "f32"),
        ("read", "write"),
        ("write", "update"),
        ("update", "read"),
        ("parameter", "saved"),
        ("state", "gradient"),
        ("gradient", "saved"),
        ("data", "scalar"),
        ("matmul", "add"),
        ("accumulate", "add"),
        ("dropout", "dropout_grad"),
        ("sgd_momentum", "sgd"),
    ];
    let mut others = Vec::new();
    let digits = text
        .char_indices()
        .filter(|(at, c)| c.is_ascii_digit() && !text[..*at].ends_with(|before: char| before.is_ascii_digit()));
    for (start, _) in digits {
        let end = text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| start + length);
        if let Ok(number) = text[start..end].parse::<u32>() {
            others.push(format!("{}{}{}", &text[..start], number + 1, &text[end..]));
            if number > 0 {
                others.push(format!("{}{}{}", &text[..start], number - 1, &text[end..]));
            }
        }
    }
    if let Some((before, _)) = text.split_once('[') {
        let indices = ["[i]", "[i+1]", "[i-1]", "[2i]", "[2]", ""];
        others.extend(indices.iter().map(|index| format!("{before}{index}")).filter(|other| other != text));
    } else if text.starts_with(['b', 'e']) && text[1..].parse::<u32>().is_ok() {
        others.extend(["[1]", "[i]", "[-1]"].iter().map(|index| format!("{text}{index}")));
    } else if text.starts_with('i') || text.parse::<i64>().is_ok() {
        others.extend(["i", "i+1", "i-1", "0", "1", "2"].iter().map(|other| (*other).to_owned()));
        others.retain(|other| other != text);
    }
    let swapped = WORDS.iter().filter(|(from, _)| text.starts_with(from));
    others.extend(swapped.map(|(from, to)| text.replacen(from, to, 1)));
    others.push(format!("{text}x"));
    others
}

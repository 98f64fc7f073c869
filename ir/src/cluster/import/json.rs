//! Tells the JSON of schedulers apart, and reads it.

use super::gather::Gathering;
use super::{kubernetes, slurm_json};
use crate::cluster::codes;
use crate::diag::{Diagnostic, Diagnostics, Place};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Everything that may stand at the top: what schedulers print is told apart by it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    kind: Option<String>,
    items: Option<Vec<ItemHead>>,
    sinfo: Option<Skipped>,
    nodes: Option<Skipped>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ItemHead {
    kind: Option<String>,
}

type Skipped = serde::de::IgnoredAny;

#[derive(Debug, Deserialize)]
struct NodeList {
    items: Vec<kubernetes::Node>,
}

#[derive(Debug, Deserialize)]
struct Rows {
    sinfo: Vec<slurm_json::Row>,
}

#[derive(Debug, Deserialize)]
struct Nodes {
    nodes: Vec<slurm_json::Node>,
}

/// Takes the GPUs of what the text describes.
pub(super) fn read(file: &str, text: &str, gathering: &mut Gathering<'_>) -> Result<(), Diagnostics> {
    if text.trim_start().starts_with('[') {
        return Err(vec![wrong(file, "a list")]);
    }
    let head: Head = parsed(file, text)?;
    let items = head.items.as_deref().unwrap_or_default();
    let foreign = items.iter().filter_map(|item| item.kind.as_deref()).find(|kind| *kind != "Node");
    match head.kind.as_deref() {
        Some("Node") => {
            let node: kubernetes::Node = parsed(file, text)?;
            kubernetes::nodes(vec![node], gathering);
        }
        Some("NodeList" | "List") if foreign.is_none() && head.items.is_some() => {
            let list: NodeList = parsed(file, text)?;
            kubernetes::nodes(list.items, gathering);
        }
        Some(kind) => {
            let kind = foreign.filter(|_| kind == "List").unwrap_or(kind);
            let kind: String = kind.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(vec![wrong(file, &format!("of the kind `{kind}`"))]);
        }
        None if head.sinfo.is_some() => {
            let rows: Rows = parsed(file, text)?;
            slurm_json::rows(rows.sinfo, gathering);
        }
        None if head.nodes.is_some() => {
            let nodes: Nodes = parsed(file, text)?;
            slurm_json::nodes(nodes.nodes, gathering);
        }
        None => return Err(vec![wrong(file, "JSON without `items`, `sinfo` or `nodes`")]),
    }
    Ok(())
}

fn parsed<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Diagnostics> {
    serde_json::from_str(text).map_err(|error| vec![fault(file, text, &error)])
}

fn wrong(file: &str, what: &str) -> Diagnostic {
    let message = format!("`{file}` is no list of nodes: it is {what}");
    let help = "give the output of `kubectl get nodes -o json` or of `sinfo --json`";
    Diagnostic::error(codes::WRONG_FILE, message).with_help(help)
}

fn fault(file: &str, text: &str, error: &serde_json::Error) -> Diagnostic {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
    let before: usize = lines.sum();
    let mut start = (before + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let place = Place::Source { file: file.to_owned(), start, end: start };
    let (what, help) = match error.classify() {
        Category::Eof => ("it ends too early", "was it cut off while it was written or copied?"),
        Category::Syntax | Category::Io => ("it cannot be read", "give it as `kubectl` or `sinfo` printed it"),
        Category::Data => {
            ("a value has another type than schedulers print", "give it as `kubectl` or `sinfo` printed it")
        }
    };
    // The place says where; serde repeats it at the end.
    let reason = error.to_string();
    let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
    let message = format!("`{file}` is not the JSON of a scheduler: {what}");
    Diagnostic::error(codes::NOT_JSON, message).at(place, one_line(reason)).with_help(help)
}

fn one_line(reason: &str) -> String {
    reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

//! Reads `slurm.conf` and `gres.conf`, and what `scontrol show nodes` prints, which has the same form.

use super::gather::Gathering;
use super::gres;
use super::hostlist;
use super::slurm::{self, Machine};
use crate::cluster::codes;
use crate::diag::{Diagnostic, Place};
use std::collections::BTreeMap;

/// One line of a configuration: its keys in lower case.
type Entry<'t> = BTreeMap<String, &'t str>;

/// GPUs that `gres.conf` speaks of.
#[derive(Clone, Debug)]
struct Device {
    kind: Option<String>,
    count: u64,
}

/// What all files say.
#[derive(Default)]
struct Read<'t> {
    /// Nodes of `slurm.conf` by name, each with its position.
    nodes: Vec<(String, Entry<'t>)>,
    known: BTreeMap<String, usize>,
    /// Devices of `gres.conf` by node, and those that are of every node.
    devices: BTreeMap<String, Vec<Device>>,
    /// Nodes that only `gres.conf` names, in its order.
    named: Vec<String>,
    everywhere: Vec<Device>,
    partitions: Vec<Entry<'t>>,
    sets: BTreeMap<String, &'t str>,
}

/// Takes the GPUs of all nodes of the files, each with its name.
pub(super) fn files(files: &[(&str, &str)], gathering: &mut Gathering<'_>) {
    let mut read = Read::default();
    for (file, text) in files {
        one_file(file, text, &mut read, gathering);
    }
    let partitions = partitions(&read, gathering);
    for (name, entry) in &read.nodes {
        let machine = Machine {
            gres: resources(entry.get("gres").copied().unwrap_or_default(), name, &read),
            features: words(entry, &["features", "feature", "activefeatures", "availablefeatures"]),
            states: words(entry, &["state"]),
            partition: match (&partitions, entry.get("partitions")) {
                (Some(of_nodes), _) => {
                    let found = of_nodes.get(name).into_iter().chain(of_nodes.get("ALL")).min();
                    found.map(|(_, partition)| partition.clone())
                }
                (None, listed) => listed.and_then(|list| list.split(',').next()).map(str::to_owned),
            },
        };
        if partitions.is_some() && machine.partition.is_none() && machine.gres.contains("gpu") {
            gathering.saw();
            gathering.leave_out("in no partition that is up", name);
            continue;
        }
        slurm::offer(name, &machine, gathering);
    }
    if read.nodes.is_empty() {
        for name in &read.named {
            let machine = Machine { gres: spelled(&read.devices[name]), ..Machine::default() };
            slurm::offer(name, &machine, gathering);
        }
        if read.named.is_empty() && !read.everywhere.is_empty() {
            let message = "gres.conf says which GPUs a node has, but not which nodes there are".to_owned();
            gathering.fault(codes::BAD_SLURM, message, "import it together with slurm.conf");
        }
    }
}

fn one_file<'t>(file: &str, text: &'t str, read: &mut Read<'t>, gathering: &mut Gathering<'_>) {
    let mut defaults = Entry::new();
    for (start, lines) in records(text) {
        let entry = match entry(&lines) {
            Ok(entry) => entry,
            Err(word) => {
                let message = format!("`{file}` has a line that cannot be read, at `{}`", short(word));
                let place = Place::Source { file: file.to_owned(), start, end: start + lines[0].len() };
                let fault = Diagnostic::error(codes::BAD_SLURM, message).at(place, "expected KEY=VALUE");
                gathering.faults.push(fault);
                continue;
            }
        };
        if let Some(name) = entry.get("include") {
            let message = format!("`{file}` includes `{name}`, which is not read");
            let help = "import that file together with this one";
            gathering.notes.push(Diagnostic::warning(codes::NOT_INCLUDED, message).with_help(help));
        } else if let Some(name) = entry.get("clustername") {
            gathering.name.get_or_insert_with(|| (*name).to_owned());
        } else if entry.contains_key("partitionname") {
            read.partitions.push(entry);
        } else if let Some(set) = entry.get("nodeset") {
            let nodes = entry.get("nodes").copied().unwrap_or_default();
            read.sets.insert((*set).to_owned(), nodes);
        } else if let Some(kind) = entry.get("name") {
            if kind.eq_ignore_ascii_case("gpu") {
                device(&entry, read, gathering);
            }
        } else if let Some(list) = entry.get("nodename") {
            if list.eq_ignore_ascii_case("DEFAULT") {
                defaults.extend(entry);
                continue;
            }
            let mut full = defaults.clone();
            full.extend(entry.iter().map(|(key, value)| (key.clone(), *value)));
            for name in expanded(list, gathering) {
                if read.known.insert(name.clone(), read.nodes.len()).is_some() {
                    let message = format!("node `{name}` is described twice");
                    gathering.fault(codes::DUPLICATE_NAME, message, "give every node once");
                }
                read.nodes.push((name, full.clone()));
            }
        }
    }
}

fn device(entry: &Entry<'_>, read: &mut Read<'_>, gathering: &mut Gathering<'_>) {
    let files = entry.get("file").map(|files| expanded(files, gathering).len() as u64);
    let count = entry.get("count").and_then(|count| gres::number(count));
    let device = Device { kind: entry.get("type").map(|kind| (*kind).to_owned()), count: files.or(count).unwrap_or(1) };
    match entry.get("nodename") {
        None => read.everywhere.push(device),
        Some(list) => {
            for name in expanded(list, gathering) {
                let devices = read.devices.entry(name.clone()).or_default();
                if devices.is_empty() {
                    read.named.push(name);
                }
                devices.push(device.clone());
            }
        }
    }
}

fn expanded(list: &str, gathering: &mut Gathering<'_>) -> Vec<String> {
    hostlist::expand(list).unwrap_or_else(|why| {
        slurm::bad_hosts(list, &why, gathering);
        Vec::new()
    })
}

/// The `Gres` of a node, with types from `gres.conf` where it has none itself and both agree on the number.
fn resources(gres: &str, node: &str, read: &Read<'_>) -> String {
    let Ok(gpus) = gres::gpus(gres) else { return gres.to_owned() };
    let devices = read.devices.get(node).unwrap_or(&read.everywhere);
    let typed = devices.iter().any(|device| device.kind.is_some());
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0u64, u64::saturating_add);
    let same = sum(&mut gpus.iter().map(|gpu| gpu.count)) == sum(&mut devices.iter().map(|device| device.count));
    if gpus.iter().all(|gpu| gpu.kind.is_none()) && typed && same { spelled(devices) } else { gres.to_owned() }
}

/// Devices in the form of `Gres`, those of one type together.
fn spelled(devices: &[Device]) -> String {
    let mut kinds: Vec<(Option<&str>, u64)> = Vec::new();
    for device in devices {
        match kinds.iter_mut().find(|(kind, _)| *kind == device.kind.as_deref()) {
            Some((_, count)) => *count = count.saturating_add(device.count),
            None => kinds.push((device.kind.as_deref(), device.count)),
        }
    }
    let one = |(kind, count): &(Option<&str>, u64)| match kind {
        Some(kind) => format!("gpu:{kind}:{count}"),
        None => format!("gpu:{count}"),
    };
    kinds.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The partition to ask for each node in, with its rank: the default one comes first; `ALL` stands for every node.
/// `None` where no partition is described.
fn partitions(read: &Read<'_>, gathering: &mut Gathering<'_>) -> Option<BTreeMap<String, (usize, String)>> {
    if read.partitions.is_empty() {
        return None;
    }
    let is = |entry: &Entry<'_>, key: &str, value: &str| entry.get(key).is_some_and(|v| v.eq_ignore_ascii_case(value));
    let mut of_nodes: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let first = read.partitions.iter().filter(|entry| is(entry, "default", "yes"));
    let rest = read.partitions.iter().filter(|entry| !is(entry, "default", "yes"));
    for (rank, entry) in first.chain(rest).enumerate() {
        let (Some(name), Some(nodes)) = (entry.get("partitionname"), entry.get("nodes")) else { continue };
        let closed = ["DOWN", "DRAIN", "INACTIVE"].iter().any(|state| is(entry, "state", state));
        if closed || name.eq_ignore_ascii_case("DEFAULT") {
            continue;
        }
        for part in hostlist::split(nodes).unwrap_or_default() {
            let hosts = if part.eq_ignore_ascii_case("ALL") {
                vec!["ALL".to_owned()]
            } else {
                expanded(read.sets.get(part).copied().unwrap_or(part), gathering)
            };
            for host in hosts {
                of_nodes.entry(host).or_insert_with(|| (rank, (*name).to_owned()));
            }
        }
    }
    Some(of_nodes)
}

fn words(entry: &Entry<'_>, keys: &[&str]) -> Vec<String> {
    let values = keys.iter().filter_map(|key| entry.get(*key));
    let words = values.flat_map(|value| value.split([',', '&', '+', '|'])).map(str::trim);
    let mut words: Vec<String> =
        words.filter(|word| !word.is_empty() && *word != "(null)").map(str::to_owned).collect();
    words.dedup();
    words
}

/// The lines that belong together, without comments, and where they begin: a line that ends in `\` goes on, and so does
/// a node of `scontrol show nodes`, whose further lines are indented.
fn records(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut records: Vec<(usize, Vec<&str>)> = Vec::new();
    let (mut start, mut goes_on) = (0, false);
    let printed = text.contains("\n   CPUAlloc=");
    for line in text.split('\n') {
        let code = without_comment(line).trim_end();
        let (code, continued) = code.strip_suffix('\\').map_or((code, false), |code| (code, true));
        let indented = printed && line.starts_with("   ");
        match records.last_mut() {
            Some((_, lines)) if (goes_on || indented) && !code.trim().is_empty() => lines.push(code),
            _ if code.trim().is_empty() => {}
            _ => records.push((start, vec![code])),
        }
        goes_on = continued;
        start += line.len() + 1;
    }
    records
}

fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before != '\\' {
            return &line[..at];
        }
        before = c;
    }
    line
}

/// The keys and values of a record; of what is no configuration of nodes only what is needed to know so.
fn entry<'t>(lines: &[&'t str]) -> Result<Entry<'t>, &'t str> {
    let mut entry = Entry::new();
    let printed = lines.len() > 1 && lines.iter().skip(1).all(|line| line.starts_with("   "));
    for line in lines {
        let mut rest = line.trim();
        if let Some(file) = include(rest) {
            entry.insert("include".to_owned(), file);
            return Ok(entry);
        }
        while !rest.is_empty() {
            let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            let Some(after) = after.trim_start().strip_prefix('=') else {
                // Values with blanks, as of `OS` and `Reason`, are printed without quotes.
                if !printed && is_wanted(&entry) {
                    return Err(key);
                }
                rest = after.trim_start();
                continue;
            };
            let after = after.trim_start();
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
            };
            entry.entry(key.trim_end_matches(['-', '+', '*', '/']).to_ascii_lowercase()).or_insert(value);
            rest = after.trim_start();
        }
    }
    Ok(entry)
}

fn is_wanted(entry: &Entry<'_>) -> bool {
    ["nodename", "partitionname", "name"].iter().any(|key| entry.contains_key(*key))
}

fn include(line: &str) -> Option<&str> {
    let (word, file) = line.split_once(char::is_whitespace)?;
    word.eq_ignore_ascii_case("include").then_some(file.trim())
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

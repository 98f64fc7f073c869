//! Tells by its content what a text describes.

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Our own description.
    Toml,
    /// JSON of a scheduler.
    Json,
    /// `slurm.conf`, `gres.conf` or the output of `scontrol show nodes`.
    Slurm,
    /// Nothing but blanks.
    Empty,
    /// Something else, with what it is and what to give instead.
    Other(&'static str, &'static str),
}

/// First keys of the lines of Slurm's configuration that matter, in lower case.
const SLURM_KEYS: [&str; 10] = [
    "nodename",
    "partitionname",
    "clustername",
    "controlmachine",
    "slurmctldhost",
    "grestypes",
    "autodetect",
    "nodeset",
    "slurmuser",
    "include",
];

/// Lines that are looked at.
const MOST_LINES: usize = 2000;

const KUBECTL: &str = "give the output of `kubectl get nodes -o json`";
const SINFO: &str = "give the output of `sinfo --json`, or `slurm.conf` and `gres.conf`";

/// What the text is.
pub(super) fn detect(text: &str) -> Kind {
    let start = text.trim_start();
    if start.is_empty() {
        return Kind::Empty;
    }
    if start.starts_with('{') || start.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{')) {
        return Kind::Json;
    }
    if text.as_bytes().iter().take(4096).any(|&byte| byte == 0) {
        return Kind::Other("no text", "give a cluster description in TOML, or what a scheduler says of its nodes");
    }
    let lines =
        || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).take(MOST_LINES);
    let first = lines().next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().take(8).collect();
    if words.first().is_some_and(|word| matches!(*word, "apiVersion:" | "items:" | "kind:" | "---")) {
        return Kind::Other("YAML", KUBECTL);
    }
    if words.starts_with(&["NAME", "STATUS"]) {
        return Kind::Other("a table of `kubectl`", KUBECTL);
    }
    if words.contains(&"NODELIST") || words.starts_with(&["PARTITION", "AVAIL"]) {
        return Kind::Other("a table of `sinfo`", SINFO);
    }
    if first.starts_with('<') {
        return Kind::Other("HTML or XML", "give a cluster description in TOML, or what a scheduler says of its nodes");
    }
    if first.starts_with("#SBATCH") || text.starts_with("#!") {
        return Kind::Other("a script", SINFO);
    }
    if lines().any(is_slurm) { Kind::Slurm } else { Kind::Toml }
}

/// Whether the line is one of Slurm's configuration. TOML has quotes around texts; Slurm has none around a first value.
fn is_slurm(line: &str) -> bool {
    let end = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
    let key = line[..end].to_ascii_lowercase();
    if key == "include" {
        return !line[end..].trim_start().starts_with('=');
    }
    let Some(value) = line[end..].trim_start().strip_prefix('=') else { return false };
    let value = value.trim_start();
    let bare = !value.starts_with(['"', '\'', '[', '{']);
    let device = key == "name"
        && ["gpu", "mps", "shard", "nic"]
            .iter()
            .any(|name| value.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
    bare && (device || SLURM_KEYS.contains(&key.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart_by_their_content() {
        for toml in [
            "name = \"x\"",
            "[[group]]\n",
            "[network]",
            "nodename = \"x\"",
            "# NodeName=a\n[[group]]",
            "x",
            "[ [group]]",
        ] {
            assert_eq!(detect(toml), Kind::Toml, "{toml}");
        }
        for slurm in [
            "# c\nNodeName=a Gres=gpu:4",
            "Nodename=a Name=gpu",
            "Name = GPU File=/dev/nvidia0",
            "Include x.conf",
            "MpiDefault=none\r\nPartitionName=p Nodes=ALL",
            "AutoDetect=nvml",
        ] {
            assert_eq!(detect(slurm), Kind::Slurm, "{slurm}");
        }
        for json in ["{", " \n{\"kind\": 1}", "[{}]", "[ \n {"] {
            assert_eq!(detect(json), Kind::Json, "{json}");
        }
        for other in [
            "NAME STATUS ROLES AGE",
            "PARTITION AVAIL  TIMELIMIT",
            "NODELIST GRES",
            "apiVersion: v1",
            "<html>",
            "a\0b",
            "#!/bin/bash\nsrun x",
        ] {
            assert!(matches!(detect(other), Kind::Other(..)), "{other}");
        }
        assert_eq!(detect(" \r\n\t"), Kind::Empty);
    }
}

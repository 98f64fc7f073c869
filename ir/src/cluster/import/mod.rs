//! Turns what schedulers say of their nodes into cluster descriptions, and reads descriptions of either kind.

mod detect;
mod gather;
mod gres;
mod hostlist;
mod json;
mod kubernetes;
mod product;
mod slurm;
mod slurm_conf;
mod slurm_json;
mod text;
mod write;

#[cfg(test)]
mod tests;

use super::catalogue::Catalogue;
use super::codes;
use super::topology::Cluster;
use crate::diag::{Diagnostic, Diagnostics, Place};
use detect::Kind;
use gather::Gathering;

/// What a description of a scheduler leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Bytes per second of one direction between two nodes; assumed where absent.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Latency between two nodes; the catalogue's where absent.
    pub latency_ps: Option<u64>,
    /// The type of GPUs that nothing names.
    pub gpu: Option<String>,
    /// Whether GPUs that are shared by time-slicing are offered too.
    pub shared: bool,
}

/// A cluster that was read, of whatever kind its description is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The cluster.
    pub cluster: Cluster,
    /// Its description in TOML, which reads as the same cluster.
    pub toml: String,
    /// What was left out or assumed.
    pub notes: Diagnostics,
}

/// A file with a description of a cluster, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct ClusterFile<'a> {
    /// Its name, which is only spelled in diagnostics.
    pub name: &'a str,
    /// What it holds.
    pub bytes: &'a [u8],
}

impl Imported {
    /// Reads a cluster from one file, or from several that belong together (`slurm.conf` and `gres.conf`; a TOML file
    /// with `[[gpu]]` tables beside the output of `kubectl`). Their content says what they are: a description in TOML,
    /// `kubectl get nodes -o json`, `sinfo --json`, `slurm.conf`, `gres.conf`.
    pub fn read(files: &[ClusterFile<'_>], options: &ImportOptions) -> Result<Self, Diagnostics> {
        Self::read_with(&Catalogue::builtin(), files, options)
    }

    /// The same with a catalogue of the caller.
    pub fn read_with(
        catalogue: &Catalogue,
        files: &[ClusterFile<'_>],
        options: &ImportOptions,
    ) -> Result<Self, Diagnostics> {
        let mut texts = Vec::new();
        for file in files {
            texts.push((file.name, text::decode(file)?));
        }
        let (mut tables, mut foreign) = (Vec::new(), Vec::new());
        for (name, text) in &texts {
            match detect::detect(text) {
                Kind::Toml => {
                    text::fits(name, text.len(), text::MOST_TOML)?;
                    tables.push((*name, text.as_ref()));
                }
                kind @ (Kind::Json | Kind::Slurm) => foreign.push((kind, *name, text.as_ref())),
                Kind::Empty => return Err(vec![empty(name)]),
                Kind::Other(what, help) => {
                    let message = format!("`{name}` is no cluster description: it is {what}");
                    return Err(vec![Diagnostic::error(codes::WRONG_FILE, message).with_help(help)]);
                }
            }
        }
        match (tables.as_slice(), foreign.as_slice()) {
            ([(name, text)], []) => {
                let cluster = Cluster::from_toml_with(catalogue, name, text)?;
                Ok(Self { cluster, toml: (*text).to_owned(), notes: Vec::new() })
            }
            ([], []) => Err(vec![Diagnostic::error(codes::WRONG_FILE, "no cluster description is given")]),
            ([_, second, ..], []) => {
                let message = format!("`{}` is a second cluster description in TOML", second.0);
                let help = "give one file in TOML; several files are read together only of a scheduler";
                Err(vec![Diagnostic::error(codes::WRONG_FILE, message).with_help(help)])
            }
            (tables, foreign) => import(catalogue, tables, foreign, options),
        }
    }
}

fn empty(name: &str) -> Diagnostic {
    let message = format!("`{name}` is empty");
    let help = "describe equal nodes as a group: `[[group]]` with `name`, `gpu`, `nodes` and `gpus_per_node`";
    let place = Place::Source { file: name.to_owned(), start: 0, end: 0 };
    Diagnostic::error(codes::NO_GPUS, message).at(place, "no cluster description in this file").with_help(help)
}

fn import(
    builtin: &Catalogue,
    tables: &[(&str, &str)],
    foreign: &[(Kind, &str, &str)],
    options: &ImportOptions,
) -> Result<Imported, Diagnostics> {
    let mut catalogue = builtin.clone();
    for (name, text) in tables {
        catalogue = catalogue.merged(name, text)?;
    }
    if let Some(gpu) = options.gpu.as_ref().filter(|gpu| catalogue.find(gpu).is_none()) {
        let near = product::nearest(&catalogue, gpu);
        let help = near.map_or_else(|| "see docs/cluster.md".to_owned(), |near| format!("did you mean `{near}`?"));
        return Err(vec![Diagnostic::error(codes::UNKNOWN_GPU, format!("unknown GPU type `{gpu}`")).with_help(help)]);
    }
    let mut gathering = Gathering::new(&catalogue, options);
    let configuration: Vec<(&str, &str)> =
        foreign.iter().filter(|(kind, ..)| *kind == Kind::Slurm).map(|(_, name, text)| (*name, *text)).collect();
    let documents: Vec<_> = foreign.iter().filter(|(kind, ..)| *kind == Kind::Json).collect();
    let file = match (configuration.as_slice(), documents.as_slice()) {
        ([], [(_, name, text)]) => {
            json::read(name, text, &mut gathering)?;
            *name
        }
        ([(name, _), ..], []) => {
            slurm_conf::files(&configuration, &mut gathering);
            *name
        }
        (_, [.., (_, name, _)]) => {
            let message = format!("`{name}` cannot be read together with another description of a scheduler");
            let help = "import one JSON file, or files of Slurm's configuration";
            return Err(vec![Diagnostic::error(codes::WRONG_FILE, message).with_help(help)]);
        }
        ([], []) => unreachable!("the caller gives a description of a scheduler"),
    };
    let types: Vec<String> = tables.iter().map(|(_, text)| (*text).to_owned()).collect();
    gathering.finish(file, builtin, &types)
}

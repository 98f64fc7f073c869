//! Collects what the nodes of a description offer, and makes groups of those that are alike.

use super::hostlist::some;
use super::product::{self, Declared, Found, Memo, Slice};
use super::write;
use super::{ImportOptions, Imported};
use crate::cluster::catalogue::Catalogue;
use crate::cluster::codes;
use crate::cluster::labels::KUBERNETES_PRODUCTS;
use crate::cluster::topology::Cluster;
use crate::diag::{Diagnostic, Diagnostics};
use std::collections::BTreeMap;

/// GPUs that a node may have.
const MOST_GPUS: u64 = 1024;
/// Characters that a name or label may have.
const LONGEST_TEXT: usize = 1000;

/// GPUs of one type of one node, as its scheduler describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    /// What the scheduler calls the type; `None` where it does not say.
    pub(super) product: Option<String>,
    /// Which part of a GPU each of them is.
    pub(super) slice: Option<Slice>,
    /// Words that may say more about the type.
    pub(super) hints: Vec<String>,
    /// What the driver reports, where the scheduler knows.
    pub(super) memory_mib: Option<u64>,
    pub(super) count: u64,
    pub(super) region: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    /// The label under which a hint that decided the type goes into the request.
    pub(super) hint_label: Option<&'static str>,
    /// The label that told the type, with its value: it goes into the request unless the type itself asks for it.
    pub(super) product_label: Option<(&'static str, String)>,
}

/// The label of a GPU's product that requests ask for by themselves.
pub(super) const GFD_PRODUCT: &str = KUBERNETES_PRODUCTS[0];

/// What makes nodes equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// A type of the catalogue or a declared one.
    pub(super) gpu: String,
    pub(super) count: u64,
    pub(super) pcie: bool,
    pub(super) region: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
}

/// A type that was looked up.
#[derive(Clone, Debug)]
struct Known {
    gpu: String,
    pcie: bool,
    hint: Option<String>,
    gfd_product: Option<String>,
}

/// All that is known so far.
pub(super) struct Gathering<'c> {
    pub(super) catalogue: &'c Catalogue,
    pub(super) options: &'c ImportOptions,
    pub(super) name: Option<String>,
    pub(super) notes: Diagnostics,
    pub(super) faults: Diagnostics,
    left_out: BTreeMap<String, Vec<String>>,
    unknown: BTreeMap<String, Vec<String>>,
    untyped: Vec<String>,
    ambiguous: BTreeMap<String, (String, Vec<String>, Vec<String>)>,
    smaller: BTreeMap<String, Vec<String>>,
    sliced: bool,
    declared: BTreeMap<String, Declared>,
    memo: Memo<Option<Known>>,
    groups: BTreeMap<Key, usize>,
    order: Vec<(Key, Vec<String>)>,
    n_nodes: usize,
}

impl<'c> Gathering<'c> {
    pub(super) fn new(catalogue: &'c Catalogue, options: &'c ImportOptions) -> Self {
        Self {
            catalogue,
            options,
            name: None,
            notes: Vec::new(),
            faults: Vec::new(),
            left_out: BTreeMap::new(),
            unknown: BTreeMap::new(),
            untyped: Vec::new(),
            ambiguous: BTreeMap::new(),
            smaller: BTreeMap::new(),
            sliced: false,
            declared: BTreeMap::new(),
            memo: BTreeMap::new(),
            groups: BTreeMap::new(),
            order: Vec::new(),
            n_nodes: 0,
        }
    }

    /// Counts a node, whatever comes of it.
    pub(super) fn saw(&mut self) {
        self.n_nodes += 1;
    }

    /// Leaves a node out. The reason ends the sentence `left out: ...`.
    pub(super) fn leave_out(&mut self, reason: impl Into<String>, node: &str) {
        self.left_out.entry(reason.into()).or_default().push(node.to_owned());
    }

    /// Records a fault of one node.
    pub(super) fn fault(&mut self, code: &'static str, message: String, help: &str) {
        self.faults.push(Diagnostic::error(code, message).with_help(help));
    }

    /// Says that jobs run on some of the GPUs now.
    pub(super) fn in_use(&mut self, used: u64, all: u64) {
        let message = format!("jobs use {used} of the {all} GPUs now; all are offered");
        self.notes.push(Diagnostic::note(codes::IN_USE, message));
    }

    /// Takes the GPUs of a device resource to be of one type of its maker, whose others they may as well be.
    pub(super) fn guess(&mut self, resource: &str, gpu: &str, node: &str) {
        let others = || {
            let arch = self.catalogue.find(gpu).map(|gpu| gpu.arch);
            let others = self.catalogue.types().filter(|other| Some(other.arch) == arch && other.name != gpu);
            others.map(|other| other.name.clone()).collect()
        };
        let entry = self.ambiguous.entry(resource.to_owned());
        entry.or_insert_with(|| (gpu.to_owned(), others(), Vec::new())).2.push(node.to_owned());
    }

    /// Takes the GPUs of a node.
    pub(super) fn offer(&mut self, node: &str, mut offer: Offer) {
        if offer.count == 0 {
            return;
        }
        if offer.count > MOST_GPUS {
            let message = format!("node `{node}` has {} GPUs, expected at most {MOST_GPUS}", offer.count);
            self.fault(codes::OUT_OF_RANGE, message, "check what the node reports");
            return;
        }
        let texts =
            offer.labels.iter().flat_map(|(key, value)| [key, value]).chain(&offer.region).chain(&offer.product);
        if let Some(bad) = std::iter::once(node).chain(texts.map(String::as_str)).find(|text| !is_plain(text)) {
            let message = format!("a name or label of node `{}` cannot be used: `{}`", escaped(node), escaped(bad));
            let help = format!(
                "expected at most {LONGEST_TEXT} characters, none of them a line break or another control character"
            );
            self.fault(codes::BAD_TEXT, message, &help);
            return;
        }
        let Some(product) = offer.product.take().or_else(|| self.options.gpu.clone()) else {
            self.untyped.push(node.to_owned());
            return;
        };
        let Some(known) = self.known(node, &product, &offer) else { return };
        if let (Some(label), Some(hint)) = (offer.hint_label, known.hint) {
            offer.labels.insert(label.to_owned(), hint);
        }
        if let Some((label, value)) = offer.product_label.take()
            && (label != GFD_PRODUCT || known.gfd_product.as_ref() != Some(&value))
        {
            offer.labels.insert(label.to_owned(), value);
        }
        let Offer { count, region, labels, .. } = offer;
        let key = Key { gpu: known.gpu, count, pcie: known.pcie, region, labels };
        let position = *self.groups.entry(key.clone()).or_insert(self.order.len());
        if position == self.order.len() {
            self.order.push((key, Vec::new()));
        }
        self.order[position].1.push(node.to_owned());
    }

    fn known(&mut self, node: &str, product: &str, offer: &Offer) -> Option<Known> {
        let profile = offer.slice.as_ref().map_or("", |slice| slice.profile.as_str());
        let key = (format!("{product}\n{profile}"), offer.hints.clone(), offer.memory_mib);
        let known = match self.memo.get(&key) {
            Some(known) => known.clone(),
            None => {
                let known = self.look_up(product, offer);
                self.memo.insert(key, known.clone());
                known
            }
        };
        if known.is_none() {
            self.unknown.entry(product.to_owned()).or_default().push(node.to_owned());
            return None;
        }
        if let Some((_, _, nodes)) = self.ambiguous.get_mut(product) {
            nodes.push(node.to_owned());
        }
        let known = known?;
        if let Some(nodes) = self.smaller.get_mut(&known.gpu) {
            nodes.push(node.to_owned());
        }
        Some(known)
    }

    fn look_up(&mut self, product: &str, offer: &Offer) -> Option<Known> {
        let hints: Vec<&str> = offer.hints.iter().map(String::as_str).collect();
        let memory = offer.memory_mib.filter(|_| offer.slice.is_none());
        let whole = offer.slice.as_ref().map_or(memory, |slice| Some(slice.whole_mib()));
        let Found { gpu, hint, others } = product::find(self.catalogue, product, &hints, whole)?;
        if !others.is_empty() {
            self.ambiguous.insert(product.to_owned(), (gpu.name.clone(), others, Vec::new()));
        }
        if let Some(slice) = &offer.slice {
            self.sliced = true;
            let profile = slice.profile.replace('+', ".");
            let gfd_product = gpu.gfd_product.as_ref().map(|product| format!("{product}-MIG-{profile}"));
            let declared = Declared::slice(&gpu, slice, offer.memory_mib, gfd_product.clone());
            let name = self.declare(format!("{}-MIG-{}", gpu.name, slice.profile), declared);
            return Some(Known { gpu: name, pcie: true, hint, gfd_product });
        }
        let whole = gpu.memory_bytes >> 20;
        if let Some(mib) = memory.filter(|&mib| mib < whole && !product::about(mib, whole)) {
            let name = self.declare(format!("{}-{mib}MiB", gpu.name), Declared::smaller(&gpu, mib));
            self.smaller.insert(name.clone(), Vec::new());
            return Some(Known { gpu: name, pcie: false, hint, gfd_product: None });
        }
        Some(Known { gpu: gpu.name.clone(), pcie: false, hint, gfd_product: gpu.gfd_product.clone() })
    }

    /// The name that a declared type goes by: `name`, or with its memory where that is another type already.
    fn declare(&mut self, name: String, declared: Declared) -> String {
        let taken = self.declared.get(&name).is_some_and(|other| *other != declared);
        let name = if taken { format!("{name}-{}MiB", declared.memory_mib) } else { name };
        self.declared.insert(name.clone(), declared);
        name
    }

    /// The cluster, with its description; or why there is none.
    /// `types` are the texts of `[[gpu]]` tables that came with it, `builtin` the catalogue without them.
    pub(super) fn finish(mut self, file: &str, builtin: &Catalogue, types: &[String]) -> Result<Imported, Diagnostics> {
        self.describe();
        if self.order.is_empty() && self.faults.is_empty() {
            let seen = match self.n_nodes {
                0 => "it describes no nodes".to_owned(),
                1 => "its only node offers none".to_owned(),
                n => format!("none of its {n} nodes offers any"),
            };
            let message = format!("`{file}` has no GPUs that can be used: {seen}");
            let help =
                "GPUs are found by device resources and product labels (Kubernetes) or `Gres=gpu:TYPE:N` (Slurm)";
            self.faults.push(Diagnostic::error(codes::NO_GPUS, message).with_help(help));
        }
        if !self.faults.is_empty() {
            self.faults.extend(self.notes);
            return Err(self.faults);
        }
        let name = self.name.take().filter(|name| is_plain(name)).unwrap_or_else(|| stem(file).to_owned());
        let (toml, assumed) = write::toml(&name, &self.declared, &self.order, types, self.options);
        self.notes.extend(assumed);
        match Cluster::from_toml_with(builtin, file, &toml) {
            Ok(cluster) => Ok(Imported { cluster, toml, notes: self.notes }),
            Err(faults) => {
                let plain = faults.into_iter().map(|fault| Diagnostic { labels: Vec::new(), ..fault });
                Err(plain.chain(self.notes).collect())
            }
        }
    }

    /// Says what was left out or assumed.
    fn describe(&mut self) {
        for (reason, nodes) in &self.left_out {
            let message = format!("{} left out: {reason}", counted(nodes.len()));
            self.notes.push(Diagnostic::note(codes::LEFT_OUT, message).with_note(some(nodes)));
        }
        for (product, nodes) in &self.unknown {
            let message = format!("{} left out: unknown GPU type `{product}`", counted(nodes.len()));
            let near = product::nearest(self.catalogue, product);
            let near = near.map(|near| format!("did you mean `{near}`? otherwise describe it"));
            let near = near.unwrap_or_else(|| "describe it".to_owned());
            let help = format!(
                "{near} in a `[[gpu]]` table of a TOML file, and import both files together: `trainc cluster import`"
            );
            self.notes.push(Diagnostic::warning(codes::UNKNOWN_IMPORT, message).with_note(some(nodes)).with_help(help));
        }
        if !self.untyped.is_empty() {
            let message =
                format!("{} left out: nothing says of which type their GPUs are", counted(self.untyped.len()));
            let help = "say it with `trainc cluster import --gpu TYPE`; on Kubernetes run GPU feature discovery, on Slurm \
                        give `Type=` in gres.conf";
            let note = some(&self.untyped);
            self.notes.push(Diagnostic::warning(codes::UNKNOWN_IMPORT, message).with_note(note).with_help(help));
        }
        for (product, (taken, others, nodes)) in &self.ambiguous {
            let message = format!("GPU type `{product}` is taken to be `{taken}`; it may as well be {}", list(others));
            let help =
                "change `gpu` in the file that `trainc cluster import` writes, or name the type in a node feature";
            self.notes.push(Diagnostic::warning(codes::AMBIGUOUS_GPU, message).with_note(some(nodes)).with_help(help));
        }
        for (name, nodes) in &self.smaller {
            let message =
                format!("the GPUs of {} have less memory than their type: taken as `{name}`", counted(nodes.len()));
            self.notes.push(Diagnostic::warning(codes::AMBIGUOUS_GPU, message).with_note(some(nodes)));
        }
        if self.sliced {
            let message = "slices of GPUs are offered as GPUs of their own";
            let note = "a process can use one slice only, and NCCL refuses two slices of the same GPU in one communicator: \
                        such plans are for estimates";
            self.notes.push(Diagnostic::note(codes::SLICES, message).with_note(note));
        }
    }
}

fn counted(n: usize) -> String {
    if n == 1 { "1 node".to_owned() } else { format!("{n} nodes") }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn is_plain(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control) && text.chars().count() <= LONGEST_TEXT
}

/// One line of it, not too long.
fn escaped(text: &str) -> String {
    text.chars().take(60).flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// The file's name without folders and ending.
fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
    if is_plain(stem) { stem } else { "cluster" }
}

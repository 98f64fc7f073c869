//! The GPU types that trainc knows.

use super::document;
use super::gpu::GpuType;
use super::gpu_read::{self, Defaults};
use super::suggest::{folded, nearest};
use crate::diag::Diagnostics;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// GPU types in the order of the catalogue file, with the defaults that fill their gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    pub(super) defaults: Defaults,
    types: Vec<Arc<GpuType>>,
    /// Positions by every spelling, without case and separators.
    spellings: BTreeMap<Vec<char>, usize>,
}

static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    let text = include_str!("../../data/gpus.toml");
    let read = document::parse("gpus.toml", text).and_then(|(document, root)| {
        let section = document.root(&root);
        let defaults = gpu_read::defaults(&section);
        let mut catalogue = defaults.map(|defaults| Catalogue::empty(defaults, Vec::new()));
        if let Some(catalogue) = &mut catalogue {
            gpu_read::types(&section, catalogue);
        }
        section.finish();
        catalogue.filter(|_| document.is_clean()).ok_or_else(|| document.into_faults())
    });
    read.expect("the built-in catalogue is part of this crate and read by its tests")
});

impl Catalogue {
    /// The catalogue that comes with trainc.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// This catalogue changed by the `[[gpu]]` tables of an override file: a known name replaces the figures given, a
    /// new name adds a type. `file` is only spelled in diagnostics.
    pub fn merged(&self, file: &str, text: &str) -> Result<Self, Diagnostics> {
        let (document, root) = document::parse(file, text)?;
        let section = document.root(&root);
        let mut catalogue = self.clone();
        gpu_read::types(&section, &mut catalogue);
        section.finish();
        if document.is_clean() { Ok(catalogue) } else { Err(document.into_faults()) }
    }

    /// The types in the order of the file; types of an override that are new come last.
    pub fn types(&self) -> impl ExactSizeIterator<Item = &Arc<GpuType>> {
        self.types.iter()
    }

    /// The type of that name, alias, product label or NVML name; case, `-`, `_` and spaces make no difference.
    pub fn find(&self, name: &str) -> Option<&Arc<GpuType>> {
        self.spellings.get(&folded(name)).map(|&i| &self.types[i])
    }

    /// The name or alias nearest to a misspelled one.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let spellings = self.types.iter().flat_map(|gpu| std::iter::once(&gpu.name).chain(&gpu.aliases));
        nearest(name, spellings.map(String::as_str))
    }

    pub(super) fn empty(defaults: Defaults, types: Vec<Arc<GpuType>>) -> Self {
        Self { defaults, types, spellings: BTreeMap::new() }
    }

    /// Puts a type in place of the one of its name, or behind all others. Fails with a spelling that means another type.
    pub(super) fn put(&mut self, gpu: GpuType) -> Result<(), String> {
        let position = self.types.iter().position(|other| other.name == gpu.name).unwrap_or(self.types.len());
        for spelling in gpu.spellings() {
            if self.spellings.get(&folded(spelling)).is_some_and(|&owner| owner != position) {
                return Err(spelling.clone());
            }
        }
        for spelling in gpu.spellings() {
            self.spellings.insert(folded(spelling), position);
        }
        if position == self.types.len() {
            self.types.push(Arc::new(gpu));
        } else {
            self.types[position] = Arc::new(gpu);
        }
        Ok(())
    }
}

//! Measured times that replace modelled ones: rates of a GPU type, and times of whole blocks.

use super::gpu::GpuType;
use super::rate::Rate;
use super::rates::{RateBasis, Rates};
use super::suggest::folded;
use super::topology::Cluster;
use crate::diag::{Diagnostic, Diagnostics};
use crate::ty::DType;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table of times that cannot be read.
pub(super) const BAD_TABLE: &str = "E0340";
/// A profile of other GPU types.
const OTHER_TYPES: &str = "E0341";

/// Every code of profiles beside those of clusters, with its meaning in one line, in order.
pub const PROFILE_CODES: [(&str, &str); 2] = [
    (BAD_TABLE, "a profile's table of block times lacks a column, or has a line that cannot be read"),
    (OTHER_TYPES, "the profile has times of no GPU type of the cluster"),
];

/// What one file says of GPU types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub(super) gpus: Vec<Arc<GpuProfile>>,
}

/// What was measured on one GPU type. What is absent is modelled as without a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuProfile {
    /// The type, in any spelling.
    pub gpu: String,
    /// Time of the smallest kernel.
    pub launch_ps: Option<u64>,
    /// Products in `f32` (and in wider types the same), by floating-point operations.
    pub product_32: Option<Rate>,
    /// Products in 16 bits.
    pub product_16: Option<Rate>,
    /// Fused attention in `f32`.
    pub attention_32: Option<Rate>,
    /// Fused attention in 16 bits.
    pub attention_16: Option<Rate>,
    /// All other arithmetic.
    pub vector: Option<Rate>,
    /// Traffic, by bytes.
    pub memory: Option<Rate>,
    /// Times of blocks.
    pub blocks: Vec<BlockTimes>,
}

/// Times of a block of a model for one micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTimes {
    /// The class of blocks; every block where absent.
    pub name: Option<String>,
    /// Tokens of a sample; any where absent.
    pub seq: Option<u64>,
    /// Samples of the micro-batch.
    pub micro_batch: u64,
    /// Picoseconds of the forward.
    pub forward_ps: u64,
    /// Picoseconds of the backward, without recomputation.
    pub backward_ps: u64,
}

impl GpuProfile {
    /// Times of a block of that class for micro-batches of that shape; what is said of the class itself goes first.
    pub fn block(&self, name: &str, micro_batch: u64, seq: u64) -> Option<&BlockTimes> {
        let fits = |times: &&BlockTimes| {
            times.name.as_deref().is_none_or(|of| of == name)
                && times.seq.is_none_or(|of| of == seq)
                && times.micro_batch == micro_batch
        };
        self.blocks.iter().filter(fits).min_by_key(|times| (times.name.is_none(), times.seq.is_none()))
    }

    /// Whether anything but times of blocks is known.
    pub(super) fn has_rates(&self) -> bool {
        let rates =
            [&self.product_32, &self.product_16, &self.attention_32, &self.attention_16, &self.vector, &self.memory];
        self.launch_ps.is_some() || rates.into_iter().any(Option::is_some)
    }

    /// What is said of one block in two ways.
    pub(super) fn contradiction(&self) -> Option<String> {
        let mut known = BTreeMap::new();
        self.blocks.iter().find_map(|times| {
            let pair = (times.forward_ps, times.backward_ps);
            let before = known.insert((times.name.as_deref(), times.seq, times.micro_batch), pair)?;
            let block = times.name.as_ref().map_or_else(|| "a block".to_owned(), |name| format!("`{name}`"));
            let length = times.seq.map(|seq| format!(" of length {seq}")).unwrap_or_default();
            let message =
                format!("`{}` has two times of {block} for micro-batches of {}{length}", self.gpu, times.micro_batch);
            (before != pair).then_some(message)
        })
    }

    /// This profile with what another one says beside it.
    fn with(&self, more: &Self) -> Self {
        let rate = |own: &Option<Rate>, more: &Option<Rate>| own.clone().or_else(|| more.clone());
        Self {
            gpu: self.gpu.clone(),
            launch_ps: self.launch_ps.or(more.launch_ps),
            product_32: rate(&self.product_32, &more.product_32),
            product_16: rate(&self.product_16, &more.product_16),
            attention_32: rate(&self.attention_32, &more.attention_32),
            attention_16: rate(&self.attention_16, &more.attention_16),
            vector: rate(&self.vector, &more.vector),
            memory: rate(&self.memory, &more.memory),
            blocks: self.blocks.iter().chain(&more.blocks).cloned().collect(),
        }
    }

    /// These rates with those that were measured in their place.
    pub(super) fn over(&self, mut rates: Rates) -> Rates {
        let of = |wide: &Option<Rate>, half: &Option<Rate>, dtype: DType| match dtype {
            DType::F16 | DType::BF16 => half.clone(),
            DType::F32 | DType::F64 | DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => wide.clone(),
        };
        for (dtype, rate) in &mut rates.products {
            *rate = of(&self.product_32, &self.product_16, *dtype).unwrap_or_else(|| rate.clone());
        }
        for (dtype, rate) in &mut rates.attention {
            *rate = of(&self.attention_32, &self.attention_16, *dtype).unwrap_or_else(|| rate.clone());
        }
        rates.vector = self.vector.clone().unwrap_or(rates.vector);
        rates.memory = self.memory.clone().unwrap_or(rates.memory);
        if self.has_rates() {
            rates.basis = RateBasis::Profile;
        }
        rates
    }

    fn is_of(&self, gpu: &GpuType) -> bool {
        let own = folded(&self.gpu);
        gpu.spellings().any(|spelling| folded(spelling) == own)
    }
}

impl Cluster {
    /// This cluster with the measured times of a profile, which was read from `file`.
    ///
    /// # Errors
    /// The profile has none for any GPU type of the cluster.
    pub fn profiled(&self, file: &str, profile: &Profile) -> Result<Self, Diagnostics> {
        let mut cluster = self.clone();
        let mut used = false;
        for (_, group) in cluster.groups.iter_mut() {
            // A type may be named in several ways: by its name here, by an alias there.
            let mut all = profile.gpus.iter().filter(|of| of.is_of(&group.gpu)).cloned();
            if let Some(first) = all.next() {
                let of = all.fold(first, |one, more| Arc::new(one.with(&more)));
                let gpu = GpuType {
                    profile: Some(Arc::clone(&of)),
                    launch_ps: of.launch_ps.unwrap_or(group.gpu.launch_ps),
                    ..(*group.gpu).clone()
                };
                group.gpu = Arc::new(gpu);
                used = true;
            }
        }
        if used {
            return Ok(cluster);
        }
        let list = |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let has = list(profile.gpus.iter().map(|of| of.gpu.as_str()).collect());
        let types = self.gpus_by_type();
        let needs = list(types.iter().map(|(gpu, _)| gpu.name.as_str()).collect());
        let message = format!("`{file}` has times of no GPU type of the cluster `{}`", self.name);
        let diagnostic = Diagnostic::error(OTHER_TYPES, message)
            .with_note(format!(
                "it has times of {}; the cluster has {needs}",
                if has.is_empty() { "none" } else { &has }
            ))
            .with_help("name a type as the cluster does");
        Err(vec![diagnostic])
    }
}

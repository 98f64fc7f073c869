//! What is known of one GPU type.

use super::profile::GpuProfile;
use super::reserve::MemoryReserve;
use crate::ty::DType;
use std::fmt;
use std::sync::Arc;

/// GPU architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// NVIDIA, compute capability 6.
    Pascal,
    /// NVIDIA, compute capability 7.0.
    Volta,
    /// NVIDIA, compute capability 7.5.
    Turing,
    /// NVIDIA, compute capability 8.0 and 8.6.
    Ampere,
    /// NVIDIA, compute capability 8.9.
    Ada,
    /// NVIDIA, compute capability 9.
    Hopper,
    /// NVIDIA, compute capability 10 and 12.
    Blackwell,
    /// AMD Instinct MI200.
    Cdna2,
    /// AMD Instinct MI300.
    Cdna3,
    /// Intel Gaudi 2 and 3.
    Gaudi,
}

impl Arch {
    /// All of them, oldest first, NVIDIA before AMD before Intel.
    pub const ALL: [Self; 10] = [
        Self::Pascal,
        Self::Volta,
        Self::Turing,
        Self::Ampere,
        Self::Ada,
        Self::Hopper,
        Self::Blackwell,
        Self::Cdna2,
        Self::Cdna3,
        Self::Gaudi,
    ];

    /// Spelling in catalogue files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pascal => "pascal",
            Self::Volta => "volta",
            Self::Turing => "turing",
            Self::Ampere => "ampere",
            Self::Ada => "ada",
            Self::Hopper => "hopper",
            Self::Blackwell => "blackwell",
            Self::Cdna2 => "cdna2",
            Self::Cdna3 => "cdna3",
            Self::Gaudi => "gaudi",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// It was measured or reported for this very type.
    Measured,
    /// It stands in for a figure that nobody published; the catalogue says how it was chosen.
    Assumed,
}

/// How the GPUs of a node are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// NVLink, Infinity Fabric on AMD, or the Ethernet links within a node on Gaudi.
    NvLink,
    /// The PCIe bus.
    Pcie,
}

impl LinkKind {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::NvLink, Self::Pcie];

    /// Spelling in cluster files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NvLink => "nvlink",
            Self::Pcie => "pcie",
        }
    }
}

/// Peak dense FLOP per second of a type, as sold; absent where no figure was published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakFlops {
    /// 32-bit float outside of the tensor cores.
    pub fp32: Option<u64>,
    /// 32-bit float rounded to TF32 on the tensor cores.
    pub tf32: Option<u64>,
    /// IEEE half.
    pub fp16: Option<u64>,
    /// bfloat16.
    pub bf16: Option<u64>,
    /// 8-bit float.
    pub fp8: Option<u64>,
}

/// One GPU type of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuType {
    /// Its name in trainc: model, form and memory, as `A100-SXM-80GB`.
    pub name: String,
    /// Other names that mean it.
    pub aliases: Vec<String>,
    /// The value of the Kubernetes label `nvidia.com/gpu.product`, without a `-SHARED` or `-MIG-...` suffix.
    pub gfd_product: Option<String>,
    /// The name that NVML reports.
    pub nvml_name: Option<String>,
    /// The usual type name in Slurm's `gres.conf`.
    pub slurm_type: Option<String>,
    /// Architecture.
    pub arch: Arch,
    /// CUDA compute capability, major and minor.
    pub compute_capability: Option<(u8, u8)>,
    /// Whether programs can be emitted for it; otherwise it can only be estimated.
    pub cuda: bool,
    /// Element types that its arithmetic units have.
    pub native: Vec<DType>,
    /// Bytes that the driver reports.
    pub memory_bytes: u64,
    /// Whether `memory_bytes` was seen, or derived from the marketed size.
    pub memory_basis: Basis,
    /// Peak memory bandwidth, as sold.
    pub memory_bytes_per_s: u64,
    /// Achieved share of the memory bandwidth, in thousandths, where a cluster or override file gives one.
    pub memory_efficiency_permille: Option<u32>,
    /// Peak arithmetic.
    pub peak: PeakFlops,
    /// Achieved share of the peak by large matrix products, in thousandths.
    pub matmul_efficiency_permille: u32,
    /// Whether `matmul_efficiency_permille` was measured on this type (in bf16).
    pub matmul_basis: Basis,
    /// Whether a cluster or override file gives `matmul_efficiency_permille`: then it holds against measured curves.
    pub matmul_efficiency_given: bool,
    /// Time of the smallest kernel, launch included.
    pub launch_ps: u64,
    /// One direction of NVLink to all other GPUs of the node together.
    pub nvlink_bytes_per_s: Option<u64>,
    /// Whether NVLink is an optional bridge between two cards: then a node is taken to be joined by PCIe.
    pub nvlink_bridge: bool,
    /// One direction of the PCIe slot.
    pub pcie_bytes_per_s: Option<u64>,
    /// Latency between two GPUs of a node over NVLink.
    pub nvlink_latency_ps: u64,
    /// Latency between two GPUs of a node over PCIe.
    pub pcie_latency_ps: u64,
    /// Power limit in watts.
    pub tdp_w: Option<u32>,
    /// Lowest and highest list price seen, in millionths of a US dollar per hour.
    pub price_micro_usd_per_hour: Option<(u64, u64)>,
    /// Bytes that buffers cannot use.
    pub reserve: MemoryReserve,
    /// What a profile says of it.
    pub profile: Option<Arc<GpuProfile>>,
    /// Where the figures were read.
    pub source: String,
}

impl GpuType {
    /// All that names this very type: its name, its aliases, and what drivers and labels call it.
    pub(super) fn spellings(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.aliases).chain(&self.gfd_product).chain(&self.nvml_name)
    }

    /// Whether the arithmetic units have this element type. Integers and bool always count as native.
    pub fn is_native(&self, dtype: DType) -> bool {
        !dtype.is_float() || self.native.contains(&dtype)
    }

    /// Peak dense FLOP per second as sold; `None` where the type is not native or no figure was published.
    /// For `f32` this is the rate outside of the tensor cores: TF32 changes results and is never assumed.
    pub fn peak_flops(&self, dtype: DType) -> Option<u64> {
        match dtype {
            DType::F32 => self.peak.fp32,
            DType::F16 if self.is_native(dtype) => self.peak.fp16,
            DType::BF16 if self.is_native(dtype) => self.peak.bf16,
            DType::F16 | DType::BF16 | DType::F64 | DType::Bool => None,
            DType::U8 | DType::I8 | DType::I32 | DType::I64 => None,
        }
    }

    /// FLOP per second that large matrix products reach. Where a native type has no published peak, the `f32` peak stands
    /// in, which is never too high, and the basis is [`Basis::Assumed`]. `None` where the type is not native.
    pub fn matmul_flops(&self, dtype: DType) -> Option<(u64, Basis)> {
        if !dtype.is_float() || !self.is_native(dtype) {
            return None;
        }
        let share = |peak| permille(peak, u64::from(self.matmul_efficiency_permille));
        match self.peak_flops(dtype) {
            Some(peak) => Some((share(peak), self.matmul_basis)),
            None => self.peak.fp32.map(|peak| (share(peak), Basis::Assumed)),
        }
    }

    /// Bytes that a program sees: what the driver reports less what it keeps.
    pub fn capacity_bytes(&self) -> u64 {
        self.reserve.capacity_of(self.memory_bytes)
    }

    /// How its GPUs are joined inside a node where nothing else is said.
    pub fn default_link_kind(&self) -> LinkKind {
        if self.nvlink_bytes_per_s.is_some() && !self.nvlink_bridge { LinkKind::NvLink } else { LinkKind::Pcie }
    }

    /// One direction of that link, and its latency in picoseconds; the rate is `None` where none was published.
    pub fn link_figures(&self, kind: LinkKind) -> (Option<u64>, u64) {
        match kind {
            LinkKind::NvLink => (self.nvlink_bytes_per_s, self.nvlink_latency_ps),
            LinkKind::Pcie => (self.pcie_bytes_per_s, self.pcie_latency_ps),
        }
    }
}

/// So many thousandths of a value, rounded down.
pub(super) fn permille(value: u64, share: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(share) / 1000).unwrap_or(u64::MAX)
}

//! The rates of a GPU type for the cost model: curves of time by work, and what they rest on.

use super::efficiency::{Curve, Efficiencies, Efficiency, SharedEfficiency, best, rate};
use super::gpu::{GpuType, permille};
use super::rate::Rate;
use crate::ty::DType;
use std::fmt;

/// What the times of a GPU type rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RateBasis {
    /// A profile that the user gave.
    Profile,
    /// Curves fitted to layers that were measured on this very type.
    Measured,
    /// The datasheet, and the curves that other types have in the mean.
    Datasheet,
}

impl fmt::Display for RateBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Profile => "measured, from the profile, where it has rates, else modelled",
            Self::Measured => "modelled, as fitted to layers measured on the type",
            Self::Datasheet => "modelled, from the datasheet and the efficiency of other types",
        })
    }
}

/// Times of kernels on a GPU type by their work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Matrix products by floating-point operations, for every float type that the arithmetic units have.
    pub products: Vec<(DType, Rate)>,
    /// Fused attention likewise.
    pub attention: Vec<(DType, Rate)>,
    /// All other arithmetic, in `f32`.
    pub vector: Rate,
    /// Traffic by bytes.
    pub memory: Rate,
    /// What holds for all types.
    pub shared: SharedEfficiency,
    /// What they rest on.
    pub basis: RateBasis,
}

impl Rates {
    /// How much slower `f64` is than `f32` at worst. It is in no catalogue entry: the types with the fewest 64-bit units
    /// have 2 against 128 per multiprocessor (CUDA C++ Programming Guide, arithmetic throughput, compute capability 8.6 and
    /// 8.9), so that a 64th is never too fast.
    pub const F64_DIVISOR: u64 = 64;
}

/// A curve never comes nearer to the peak than this, in thousandths.
const NEAREST: u64 = 970;

impl GpuType {
    /// The rates of this type.
    pub fn rates(&self) -> Rates {
        let rates = self.rates_by(&Efficiencies::builtin().of(&self.name));
        match &self.profile {
            Some(profile) => profile.over(rates),
            None => rates,
        }
    }

    /// What its times rest on, in words for people. `blocks` says whether its profile has times of a block that is run.
    pub fn times_basis(&self, blocks: bool) -> String {
        let basis = self.rates().basis;
        match &self.profile {
            Some(profile) if blocks && !profile.blocks.is_empty() => {
                format!("measured, from the profile, for the blocks and micro-batches that it has; the rest {basis}")
            }
            Some(_) | None => basis.to_string(),
        }
    }

    /// The rates that this type would have were none of its measurements known.
    pub fn rates_from_datasheet(&self) -> Rates {
        self.rates_by(&Efficiencies::builtin().without(&self.name))
    }

    /// What the power limit lets the type sustain, in FLOP per second of `f32`.
    fn power_limit(&self) -> u64 {
        let per_joule = Efficiencies::builtin().flops_per_joule(self.arch, self.compute_capability);
        self.tdp_w.map_or(u64::MAX, |watts| u64::from(watts).saturating_mul(per_joule))
    }

    fn rates_by(&self, curves: &Efficiency) -> Rates {
        let all = Efficiencies::builtin();
        let f32_peak = self.peak.fp32.unwrap_or(0);
        let limit = self.power_limit();
        let half_limit = limit.saturating_mul(all.half_factor);
        let (mut products, mut attention) = (Vec::new(), Vec::new());
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            if !self.is_native(dtype) {
                continue;
            }
            // Where a native type has no published peak, that of `f32` stands in, which is never too high.
            let (peak, half) = match self.peak_flops(dtype) {
                Some(peak) if dtype != DType::F32 => (peak, true),
                Some(_) | None => (f32_peak, false),
            };
            let (of_products, of_attention, limit) = if half {
                (&curves.product_16, &curves.attention_16, half_limit)
            } else {
                (&curves.product_32, &curves.attention_32, limit)
            };
            let sustained = self.sustained(of_products, peak, limit);
            products.push((dtype, rate(of_products, sustained, permille(peak, NEAREST))));
            attention.push((dtype, rate(of_attention, sustained, permille(peak, NEAREST))));
        }
        let f64_rate = Rate::flat(f32_peak / Rates::F64_DIVISOR);
        products.push((DType::F64, f64_rate.clone()));
        attention.push((DType::F64, f64_rate));
        let bandwidth = match self.memory_efficiency_permille {
            Some(share) => scaled(permille(self.memory_bytes_per_s, u64::from(share)), &curves.memory),
            None => self.memory_bytes_per_s,
        };
        Rates {
            products,
            attention,
            vector: Rate::flat(f32_peak),
            memory: rate(&curves.memory, bandwidth, self.memory_bytes_per_s),
            shared: all.shared,
            basis: if curves.name.is_some() { RateBasis::Measured } else { RateBasis::Datasheet },
        }
    }

    /// The rate that the shares of a curve are shares of: such that its best point is the best product measured on this
    /// type, where one was; else the peak, or what the power limit sustains.
    fn sustained(&self, curve: &Curve, peak: u64, limit: u64) -> u64 {
        if self.matmul_efficiency_given {
            return scaled(permille(peak, u64::from(self.matmul_efficiency_permille)), curve);
        }
        peak.min(limit)
    }
}

/// The rate of which the curve's best point is `reached`.
fn scaled(reached: u64, curve: &Curve) -> u64 {
    u64::try_from(u128::from(reached) * 1000 / u128::from(best(curve).max(1))).unwrap_or(u64::MAX)
}

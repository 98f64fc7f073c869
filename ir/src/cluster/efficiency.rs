//! Which share of its rates a GPU type reaches, by kind and size of the work: curves fitted to measured layers.

use super::document::{self, Section};
use super::gpu::Arch;
use super::rate::Rate;
use crate::diag::Diagnostics;
use std::sync::{Arc, LazyLock};

/// The share of a rate, in thousandths, at kernels of two to the power `log2` of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    log2: u32,
    permille: u64,
}

/// One share or more, by rising work.
pub(super) type Curve = Vec<Point>;

/// The curves of one type, or of a type that was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Efficiency {
    /// The type they were fitted on; none for the mean of all.
    pub(super) name: Option<String>,
    pub(super) product_32: Curve,
    pub(super) product_16: Curve,
    pub(super) attention_32: Curve,
    pub(super) attention_16: Curve,
    pub(super) memory: Curve,
}

/// What holds for all types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedEfficiency {
    /// Of products: share of the shorter of arithmetic and traffic that adds to the longer, in thousandths.
    pub unhidden_permille: u64,
    /// Cost of a byte of kernels that work on rows (normalizations, softmax), in thousandths of an elementwise kernel's.
    pub row_traffic_permille: u64,
    /// The same of kernels that rearrange.
    pub movement_traffic_permille: u64,
}

/// All of `ir/data/efficiency.toml`.
#[derive(Debug)]
pub(super) struct Efficiencies {
    pub(super) shared: SharedEfficiency,
    power: Vec<(Arch, u64)>,
    power_cc_8_0: u64,
    /// Arithmetic of 16 bits per joule, in multiples of that of 32 bits.
    pub(super) half_factor: u64,
    types: Vec<Arc<Efficiency>>,
    /// For every type that was not measured.
    mean: Arc<Efficiency>,
}

static BUILTIN: LazyLock<Efficiencies> = LazyLock::new(|| {
    let text = include_str!("../../data/efficiency.toml");
    let read = read(text).expect("the built-in curves are TOML");
    read.expect("the built-in curves are part of this crate and read by its tests")
});

impl Efficiencies {
    pub(super) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// The curves of the type, or the mean of all curves.
    pub(super) fn of(&self, name: &str) -> Arc<Efficiency> {
        let found = self.types.iter().find(|of| of.name.as_deref() == Some(name));
        Arc::clone(found.unwrap_or(&self.mean))
    }

    /// The mean of all curves but those of one type: what is known of that type from its datasheet alone.
    pub(super) fn without(&self, name: &str) -> Efficiency {
        mean(self.types.iter().filter(|of| of.name.as_deref() != Some(name)))
    }

    /// The names of the measured types.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.types.iter().filter_map(|of| of.name.as_deref())
    }

    /// FLOP of 32-bit arithmetic per joule that the type can sustain.
    pub(super) fn flops_per_joule(&self, arch: Arch, compute_capability: Option<(u8, u8)>) -> u64 {
        if compute_capability == Some((8, 0)) {
            return self.power_cc_8_0;
        }
        self.power.iter().find(|(of, _)| *of == arch).map_or(0, |&(_, flops)| flops)
    }
}

/// Time by work at these shares of a rate; no share makes it faster than `fastest`.
pub(super) fn rate(curve: &Curve, per_second: u64, fastest: u64) -> Rate {
    let point = |point: &Point| {
        let reached = (u128::from(per_second) * u128::from(point.permille) / 1000).min(u128::from(fastest)).max(1);
        let work = 1u64 << point.log2;
        let time = (u128::from(work) * 1_000_000_000_000).div_ceil(reached);
        (work, u64::try_from(time).unwrap_or(u64::MAX))
    };
    // The shares rise more slowly than the work (a test holds the data to it), so that the time never falls.
    Rate::new(curve.iter().map(point).collect()).unwrap_or_else(|| Rate::flat(per_second))
}

/// The largest share, in thousandths.
pub(super) fn best(curve: &Curve) -> u64 {
    curve.iter().map(|point| point.permille).max().unwrap_or(1000)
}

fn mean<'a>(types: impl Iterator<Item = &'a Arc<Efficiency>>) -> Efficiency {
    let types: Vec<&Efficiency> = types.map(Arc::as_ref).collect();
    let of = |curve: fn(&Efficiency) -> &Curve| {
        let n = types.len().max(1) as u64;
        let first: Curve = types.first().map(|t| curve(t).clone()).unwrap_or_default();
        let at = |(i, point): (usize, &Point)| {
            let sum: u64 = types.iter().map(|t| curve(t)[i].permille).sum();
            Point { permille: (sum + n / 2) / n, ..*point }
        };
        first.iter().enumerate().map(at).collect()
    };
    Efficiency {
        name: None,
        product_32: of(|t| &t.product_32),
        product_16: of(|t| &t.product_16),
        attention_32: of(|t| &t.attention_32),
        attention_16: of(|t| &t.attention_16),
        memory: of(|t| &t.memory),
    }
}

fn read(text: &str) -> Result<Option<Efficiencies>, Diagnostics> {
    let (document, root) = document::parse("efficiency.toml", text)?;
    let section = document.root(&root);
    let efficiencies = efficiencies(&section);
    section.finish();
    if document.is_clean() { Ok(efficiencies) } else { Err(document.into_faults()) }
}

fn efficiencies(root: &Section<'_, '_>) -> Option<Efficiencies> {
    let shared = root.table("shared")?;
    let permille = |key| shared.count(key, 0..=100_000).map(|at| at.value);
    let all = SharedEfficiency {
        unhidden_permille: permille("unhidden")?,
        row_traffic_permille: permille("row_traffic")?,
        movement_traffic_permille: permille("movement_traffic")?,
    };
    shared.finish();
    let table = root.table("gflop_per_joule")?;
    let gflop = |key| table.count(key, 1..=1_000_000).map(|at| at.value * 1_000_000_000);
    let mut power = Vec::new();
    for arch in Arch::ALL {
        power.push((arch, gflop(arch.name())?));
    }
    let (power_cc_8_0, half_factor) = (gflop("compute_capability_8_0")?, table.count("half_factor", 1..=100)?.value);
    table.finish();
    let types = root.tables("type").iter().map(of_type).collect::<Option<Vec<_>>>()?;
    let mean = Arc::new(mean(types.iter()));
    Some(Efficiencies { shared: all, power, power_cc_8_0, half_factor, types, mean })
}

fn of_type(table: &Section<'_, '_>) -> Option<Arc<Efficiency>> {
    let curve = |key| {
        let pairs = table.count_pairs(key, 0..=60, 1..=100_000)?.value;
        Some(pairs.into_iter().map(|(log2, permille)| Point { log2: log2 as u32, permille }).collect())
    };
    Some(Arc::new(Efficiency {
        name: Some(table.text("name")?.value.to_owned()),
        product_32: curve("product_32")?,
        product_16: curve("product_16")?,
        attention_32: curve("attention_32")?,
        attention_16: curve("attention_16")?,
        memory: curve("memory")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(of: &Efficiency) -> [&Curve; 5] {
        [&of.product_32, &of.product_16, &of.attention_32, &of.attention_16, &of.memory]
    }

    /// Otherwise more work would take less time, and a mean over types would mean nothing.
    #[test]
    fn all_curves_have_the_same_points_and_rise_more_slowly_than_the_work() {
        let all = Efficiencies::builtin();
        for of in all.types.iter().chain([&all.mean]) {
            for (curve, like) in curves(of).into_iter().zip(curves(&all.mean)) {
                let at = |curve: &Curve| curve.iter().map(|p| p.log2).collect::<Vec<_>>();
                assert_eq!(at(curve), at(like), "{:?}", of.name);
                for pair in curve.windows(2) {
                    assert!(pair[0].log2 < pair[1].log2, "{:?}", of.name);
                    assert!(pair[1].permille <= pair[0].permille << (pair[1].log2 - pair[0].log2), "{:?}", of.name);
                }
            }
        }
    }

    #[test]
    fn a_type_that_was_not_measured_has_the_mean() {
        let all = Efficiencies::builtin();
        assert_eq!(all.of("L4").name, None);
        assert_eq!(all.of("T4").name.as_deref(), Some("T4"));
        let sum: u64 = all.types.iter().map(|t| t.memory[0].permille).sum();
        let n = all.types.len() as u64;
        assert_eq!(all.of("L4").memory[0].permille, (sum + n / 2) / n);
        assert_ne!(all.without("T4"), *all.mean);
    }

    /// By hand: half of 2^30 FLOP/s takes 2 s for 2^30 FLOP, and the cap of 2^28 FLOP/s makes it 4.
    #[test]
    fn shares_become_times() {
        let curve = vec![Point { log2: 30, permille: 500 }];
        assert_eq!(rate(&curve, 1 << 30, u64::MAX).time(1 << 30), 2_000_000_000_000);
        assert_eq!(rate(&curve, 1 << 30, 1 << 28).time(1 << 30), 4_000_000_000_000);
    }
}

//! How much slower computation and a transfer get while both run on one GPU.

use super::document::Section;
use super::gpu_read::PERMILLE;
use std::ops::RangeInclusive;

/// A kind of transfer that computation may run beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferKind {
    /// A copy from the host.
    Load,
    /// From one rank to another.
    PointToPoint,
    /// The sum over ranks.
    AllReduce,
    /// From one rank to all others.
    Broadcast,
}

impl TransferKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Load, Self::PointToPoint, Self::AllReduce, Self::Broadcast];

    /// Spelling in cluster files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::PointToPoint => "point_to_point",
            Self::AllReduce => "all_reduce",
            Self::Broadcast => "broadcast",
        }
    }
}

/// How many times as long both take while they overlap, in thousandths: 1000 where they do not disturb each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    /// Of the computation.
    pub compute_permille: u32,
    /// Of the transfer.
    pub transfer_permille: u32,
}

impl Slowdown {
    /// They do not disturb each other.
    pub const NONE: Self = Self { compute_permille: 1000, transfer_permille: 1000 };
}

/// The slowdowns of every kind of transfer. The built-in figures and their sources stand in `ir/data/gpus.toml`; a
/// cluster file can replace each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contention {
    of: [Slowdown; TransferKind::ALL.len()],
}

impl Contention {
    /// Nothing disturbs anything.
    pub const NONE: Self = Self { of: [Slowdown::NONE; TransferKind::ALL.len()] };

    /// What holds beside a kind of transfer.
    pub fn of(&self, kind: TransferKind) -> Slowdown {
        self.of[kind as usize]
    }

    /// The same with another figure for one kind.
    #[must_use]
    pub fn with(mut self, kind: TransferKind, slowdown: Slowdown) -> Self {
        self.of[kind as usize] = slowdown;
        self
    }
}

const FACTOR: RangeInclusive<f64> = 1.0..=1000.0;

/// Reads `[contention]` where it is there: the figures given replace those of `base`.
pub(super) fn contention(parent: &Section<'_, '_>, base: &Contention) -> Contention {
    let mut contention = base.clone();
    let Some(mut table) = parent.table("contention") else { return contention };
    table.name_it("`[contention]`".to_owned());
    for kind in TransferKind::ALL {
        let Some(mut figures) = table.table(kind.name()) else { continue };
        figures.name_it(format!("`{}` of `[contention]`", kind.name()));
        let factor = |key| figures.scaled(key, FACTOR, PERMILLE).map(|at| at.value as u32);
        let of = &mut contention.of[kind as usize];
        of.compute_permille = factor("compute").unwrap_or(of.compute_permille);
        of.transfer_permille = factor("transfer").unwrap_or(of.transfer_permille);
        figures.finish();
    }
    table.finish();
    contention
}

//! Reads `[defaults]` and `[[gpu]]` tables of a catalogue, an override file or a cluster file.

use super::catalogue::Catalogue;
use super::codes;
use super::contention::{self, Contention};
use super::document::{At, Section};
use super::efficiency::Efficiencies;
use super::gpu::{Arch, Basis, GpuType, PeakFlops};
use super::reserve::MemoryReserve;
use super::suggest::nearest;
use crate::diag::Diagnostic;
use crate::ty::DType;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Picoseconds in a microsecond.
pub(super) const PS_PER_US: f64 = 1e6;
/// Microseconds that a latency may last.
pub(super) const LATENCY_US: RangeInclusive<f64> = 0.0..=10_000_000.0;
/// Gigabytes per second that a link or a memory may carry.
pub(super) const GB_PER_S: RangeInclusive<f64> = 0.000_001..=1_000_000.0;
/// Thousandths in one.
pub(super) const PERMILLE: f64 = 1000.0;
/// Micro-dollars in a dollar.
pub(super) const MICRO_USD: f64 = 1e6;
/// Dollars per hour that one GPU may cost.
pub(super) const USD_PER_HOUR: RangeInclusive<f64> = 0.0..=100_000.0;

const MIB: u64 = 1 << 20;
const MIB_RANGE: RangeInclusive<f64> = 0.0..=16_777_216.0;
const SHARE: RangeInclusive<f64> = 0.001..=1.0;
const TFLOPS: RangeInclusive<f64> = 0.001..=1_000_000.0;

/// Figures for what was not published per type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Defaults {
    hbm_permille: u64,
    gddr_permille: u64,
    matmul_efficiency: BTreeMap<Arch, u32>,
    launch_ps: u64,
    pcie: BTreeMap<u64, u64>,
    nvlink_latency_ps: u64,
    pcie_latency_ps: u64,
    /// Latency between nodes.
    pub(super) network_latency_ps: u64,
    /// How much computation and transfers slow each other.
    pub(super) contention: Contention,
    reserve: MemoryReserve,
    workspace_from_cc_9: u64,
}

impl Defaults {
    fn reserve_for(&self, compute_capability: Option<(u8, u8)>) -> MemoryReserve {
        let modern = compute_capability.is_some_and(|(major, _)| major >= 9);
        let plain = self.reserve.workspace_bytes_per_stream;
        let workspace_bytes_per_stream = if modern { self.workspace_from_cc_9 } else { plain };
        MemoryReserve { workspace_bytes_per_stream, ..self.reserve.clone() }
    }
}

/// Reads `[defaults]`; every key must be there.
pub(super) fn defaults(root: &Section<'_, '_>) -> Option<Defaults> {
    let table = root.table("defaults")?;
    let share = |section: &Section<'_, '_>, key| section.scaled(key, SHARE, 1000.0).map(|at| at.value);
    let latency = |key| table.scaled(key, LATENCY_US, PS_PER_US).map(|at| at.value);
    let efficiencies = table.table("matmul_efficiency")?;
    let mut matmul_efficiency = BTreeMap::new();
    for arch in Arch::ALL {
        matmul_efficiency.insert(arch, share(&efficiencies, arch.name())? as u32);
    }
    efficiencies.finish();
    let slots = table.table("pcie_gb_per_s")?;
    let mut pcie = BTreeMap::new();
    for (generation, key) in [(3, "3"), (4, "4"), (5, "5")] {
        pcie.insert(generation, slots.scaled(key, GB_PER_S, 1e9)?.value);
    }
    slots.finish();
    let bytes = table.table("reserve")?;
    let mib = |key| bytes.scaled(key, MIB_RANGE, MIB as f64).map(|at| at.value);
    let kib = |key| bytes.scaled(key, MIB_RANGE, 1024.0).map(|at| at.value);
    let reserve = MemoryReserve {
        driver_bytes: mib("driver_mib")?,
        context_bytes: mib("context_mib")?,
        workspace_bytes_per_stream: kib("workspace_kib")?,
        pair_communicator_bytes: mib("pair_communicator_mib")?,
        communicator_bytes: mib("communicator_mib")?,
    };
    let workspace_from_cc_9 = kib("workspace_kib_from_cc_9")?;
    bytes.finish();
    let defaults = Defaults {
        hbm_permille: share(&table, "hbm_reported_share")?,
        gddr_permille: share(&table, "gddr_reported_share")?,
        matmul_efficiency,
        launch_ps: latency("launch_us")?,
        pcie,
        nvlink_latency_ps: latency("nvlink_latency_us")?,
        pcie_latency_ps: latency("pcie_latency_us")?,
        network_latency_ps: latency("network_latency_us")?,
        contention: contention::contention(&table, &Contention::NONE),
        reserve,
        workspace_from_cc_9,
    };
    table.finish();
    Some(defaults)
}

/// Reads `[reserve]` where it is there: the keys given replace those of `base`.
pub(super) fn reserve(parent: &Section<'_, '_>, base: &MemoryReserve) -> MemoryReserve {
    let mut reserve = base.clone();
    let Some(table) = parent.table("reserve") else { return reserve };
    let keys = [
        ("driver_mib", &mut reserve.driver_bytes),
        ("context_mib", &mut reserve.context_bytes),
        ("workspace_mib_per_stream", &mut reserve.workspace_bytes_per_stream),
        ("pair_communicator_mib", &mut reserve.pair_communicator_bytes),
        ("communicator_mib", &mut reserve.communicator_bytes),
    ];
    for (key, bytes) in keys {
        if let Some(at) = table.scaled(key, MIB_RANGE, MIB as f64) {
            *bytes = at.value;
        }
    }
    table.finish();
    reserve
}

/// Reads every `[[gpu]]` table into the catalogue.
pub(super) fn types(root: &Section<'_, '_>, catalogue: &mut Catalogue) {
    let mut seen = BTreeSet::new();
    for mut table in root.tables("gpu") {
        let Some(name) = table.text("name") else {
            if table.has("name").is_none() {
                table.missing("name", "name the GPU type, as `name = \"A100-SXM-80GB\"`");
            }
            continue;
        };
        table.name_it(format!("GPU type `{}`", name.value));
        let document = table.document();
        let base = catalogue.find(name.value).cloned();
        let model = like(&table, catalogue);
        if let (Some(_), Some(span)) = (&base, table.has("like")) {
            let message = format!("`{}` is a known type, and cannot be `like` another", name.value);
            document.fault(codes::CONFLICTING_KEYS, message, span, "leave it out, or give the type a new name");
        }
        let known = base.as_ref().map_or(name.value, |base| &base.name).to_owned();
        if !seen.insert(known.clone()) {
            let message = format!("GPU type `{known}` is described twice");
            document.fault(codes::DUPLICATE_NAME, message, name.span, "the second one");
            continue;
        }
        if let Some(gpu) = one_type(&table, &known, base.or(model).as_deref(), &catalogue.defaults)
            && let Err(spelling) = catalogue.put(gpu)
        {
            let message = format!("`{spelling}` of GPU type `{known}` already means another type");
            document.fault(codes::DUPLICATE_NAME, message, name.span, "shares a name with another GPU type");
        }
        table.finish();
    }
}

/// The type that `like` names, without the names that mean it.
fn like(table: &Section<'_, '_>, catalogue: &Catalogue) -> Option<Arc<GpuType>> {
    let text = table.text("like")?;
    let Some(found) = catalogue.find(text.value) else {
        let message = format!("unknown GPU type `{}`{}", text.value, table.inside());
        let document = table.document();
        let diagnostic = Diagnostic::error(codes::UNKNOWN_GPU, message).at(document.place(text.span), "not known");
        document.push(match catalogue.nearest(text.value) {
            Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
            None => diagnostic.with_help("name a type of the catalogue, or leave `like` out and give all figures"),
        });
        return None;
    };
    let nameless = GpuType { aliases: Vec::new(), gfd_product: None, nvml_name: None, ..GpuType::clone(found) };
    Some(Arc::new(nameless))
}

fn one_type(table: &Section<'_, '_>, name: &str, base: Option<&GpuType>, defaults: &Defaults) -> Option<GpuType> {
    let text = |key| table.text(key).map(|at| at.value.to_owned());
    let figure = |key, range, scale| table.scaled(key, range, scale).map(|at| at.value);
    let tflops = |key| figure(key, TFLOPS, 1e12);

    let arch = arch(table).or(base.map(|base| base.arch));
    let compute_capability = capability(table).or(base.and_then(|base| base.compute_capability));
    let memory = memory(table, defaults).or(base.map(|base| (base.memory_bytes, base.memory_basis)));
    let memory_rate = figure("memory_gb_per_s", GB_PER_S, 1e9).or(base.map(|base| base.memory_bytes_per_s));
    let peak = PeakFlops {
        fp32: tflops("fp32_tflops").or(base.and_then(|base| base.peak.fp32)),
        tf32: tflops("tf32_tflops").or(base.and_then(|base| base.peak.tf32)),
        fp16: tflops("fp16_tflops").or(base.and_then(|base| base.peak.fp16)),
        bf16: tflops("bf16_tflops").or(base.and_then(|base| base.peak.bf16)),
        fp8: tflops("fp8_tflops").or(base.and_then(|base| base.peak.fp8)),
    };
    let native = native(table).or(base.map(|base| base.native.clone()));
    let efficiency = figure("matmul_efficiency", SHARE, 1000.0).map(|share| (share as u32, Basis::Measured));
    let given = base.is_some_and(|base| efficiency.is_some() || base.matmul_efficiency_given);
    let matmul_efficiency_given = given || (base.is_none() && efficiency.is_some() && !is_measured(name));
    let efficiency = efficiency.or(base.map(|base| (base.matmul_efficiency_permille, base.matmul_basis)));
    let memory_share = figure("memory_efficiency", SHARE, 1000.0).map(|share| share as u32);
    let nvlink = figure("nvlink_gb_per_s_both_ways", GB_PER_S, 0.5e9);
    let pcie = table.count("pcie_gen", 3..=5).and_then(|at| defaults.pcie.get(&at.value).copied());
    let price = table.scaled_pair("price_usd_per_hour", &USD_PER_HOUR, MICRO_USD).map(|at| at.value);
    let base_reserve = base.map_or_else(|| defaults.reserve_for(compute_capability), |base| base.reserve.clone());
    let reserve = reserve(table, &base_reserve);
    let aliases = table.texts("aliases").map(|at| at.value.iter().map(|at| at.value.to_owned()).collect());
    let (gfd_product, nvml_name, slurm_type) = (text("gfd_product"), text("nvml_name"), text("slurm_type"));
    let (cuda, bridge) = (table.flag("cuda").map(|at| at.value), table.flag("nvlink_bridge").map(|at| at.value));
    let tdp_w = table.count("tdp_w", 1..=100_000).map(|at| at.value as u32);
    let launch_ps = figure("launch_us", LATENCY_US, PS_PER_US);
    let source = text("source");
    // For people only: how sure the source is, and what a measured share was computed from.
    let _ = (text("confidence"), text("price_note"), tflops("bf16_achieved_tflops"));

    for (key, present) in [
        ("arch", arch.is_some()),
        ("memory_mib", memory.is_some()),
        ("memory_gb_per_s", memory_rate.is_some()),
        ("fp32_tflops", peak.fp32.is_some()),
        ("native", native.is_some()),
    ] {
        if !present && table.has(key).is_none() && table.has("like").is_none() {
            table.missing(key, "a GPU type that is not in the built-in catalogue needs this figure");
        }
    }
    let arch = arch?;
    let (matmul_efficiency_permille, matmul_basis) =
        efficiency.unwrap_or((defaults.matmul_efficiency.get(&arch).copied()?, Basis::Assumed));
    let (memory_bytes, memory_basis) = memory?;
    peak.fp32?;
    Some(GpuType {
        name: name.to_owned(),
        aliases: aliases.or_else(|| base.map(|base| base.aliases.clone())).unwrap_or_default(),
        gfd_product: gfd_product.or_else(|| base.and_then(|base| base.gfd_product.clone())),
        nvml_name: nvml_name.or_else(|| base.and_then(|base| base.nvml_name.clone())),
        slurm_type: slurm_type.or_else(|| base.and_then(|base| base.slurm_type.clone())),
        arch,
        compute_capability,
        cuda: cuda.or(base.map(|base| base.cuda)).unwrap_or(true),
        native: native?,
        memory_bytes,
        memory_basis,
        memory_bytes_per_s: memory_rate?,
        memory_efficiency_permille: memory_share.or(base.and_then(|base| base.memory_efficiency_permille)),
        peak,
        matmul_efficiency_permille,
        matmul_basis,
        matmul_efficiency_given,
        launch_ps: launch_ps.or(base.map(|base| base.launch_ps)).unwrap_or(defaults.launch_ps),
        nvlink_bytes_per_s: nvlink.or(base.and_then(|base| base.nvlink_bytes_per_s)),
        nvlink_bridge: bridge.or(base.map(|base| base.nvlink_bridge)).unwrap_or(false),
        pcie_bytes_per_s: pcie.or(base.and_then(|base| base.pcie_bytes_per_s)),
        nvlink_latency_ps: defaults.nvlink_latency_ps,
        pcie_latency_ps: defaults.pcie_latency_ps,
        tdp_w: tdp_w.or(base.and_then(|base| base.tdp_w)),
        price_micro_usd_per_hour: price.or(base.and_then(|base| base.price_micro_usd_per_hour)),
        reserve,
        profile: None,
        source: source.or_else(|| base.map(|base| base.source.clone())).unwrap_or_default(),
    })
}

/// Whether curves were fitted to this very type.
fn is_measured(name: &str) -> bool {
    Efficiencies::builtin().names().any(|of| of == name)
}

/// The reported bytes, or those derived from the marketed size.
fn memory(table: &Section<'_, '_>, defaults: &Defaults) -> Option<(u64, Basis)> {
    let marketed = table.scaled("memory_gb", 0.001..=65_536.0, 1024.0).map(|at| at.value * MIB);
    let kind = one_of(table, "memory_kind", &["hbm", "gddr"]);
    if let Some(reported) = table.scaled("memory_mib", 1.0..=67_108_864.0, MIB as f64) {
        return Some((reported.value, Basis::Measured));
    }
    let permille = if kind? == "hbm" { defaults.hbm_permille } else { defaults.gddr_permille };
    Some((marketed? / 1000 * permille, Basis::Assumed))
}

fn arch(table: &Section<'_, '_>) -> Option<Arch> {
    let name = one_of(table, "arch", &Arch::ALL.map(Arch::name))?;
    Arch::ALL.into_iter().find(|arch| arch.name() == name)
}

fn capability(table: &Section<'_, '_>) -> Option<(u8, u8)> {
    let text = table.text("compute_capability")?;
    let parts = text.value.split_once('.').and_then(|(major, minor)| major.parse().ok().zip(minor.parse().ok()));
    if parts.is_none() {
        let message = format!("`compute_capability`{} must be MAJOR.MINOR, found `{}`", table.inside(), text.value);
        table.document().fault(codes::WRONG_TYPE, message, text.span, "expected a text such as \"8.0\"");
    }
    parts
}

fn native(table: &Section<'_, '_>) -> Option<Vec<DType>> {
    let floats: Vec<DType> = DType::ALL.into_iter().filter(|dtype| dtype.is_float()).collect();
    let names: Vec<&'static str> = floats.iter().map(|dtype| dtype.name()).collect();
    let mut native = Vec::new();
    for text in table.texts("native")?.value {
        let position = names.iter().position(|&name| name == text.value);
        match position {
            Some(i) => native.push(floats[i]),
            None => not_one_of(table, "native", &text, &names),
        }
    }
    Some(native)
}

/// The text under `key`, which must be one of `names`.
pub(super) fn one_of(table: &Section<'_, '_>, key: &'static str, names: &[&'static str]) -> Option<&'static str> {
    let text = table.text(key)?;
    let found = names.iter().copied().find(|&name| name == text.value);
    if found.is_none() {
        not_one_of(table, key, &text, names);
    }
    found
}

fn not_one_of(table: &Section<'_, '_>, key: &str, text: &At<&str>, names: &[&'static str]) {
    let document = table.document();
    let message = format!("`{key}`{} cannot be `{}`", table.inside(), text.value);
    let diagnostic = Diagnostic::error(codes::WRONG_TYPE, message).at(document.place(text.span.clone()), "not known");
    let known = format!("known: {}", names.join(", "));
    let help = nearest(text.value, names.iter().copied()).map_or(known, |near| format!("did you mean `{near}`?"));
    document.push(diagnostic.with_help(help));
}

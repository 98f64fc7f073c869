//! The cost model against measured layers: the errors of docs/cost.md, computed from the curves that are built in.

mod layers;
mod models;
mod work;

use std::collections::BTreeMap;
use std::fmt::Write;
use trainc_ir::{Catalogue, DType, Rates};
use trainc_passes::plan::cost::HardwareSpec;
use trainc_passes::plan::profile::Work;

/// Published measurements of single layers, their source in testdata/SOURCES.md.
const MEASURED: &str = include_str!("../../../testdata/passes/plan/cost/layer_latencies.csv");
const GUIDE: &str = include_str!("../../../docs/cost.md");

/// How the measurements call the types of the catalogue.
const TYPES: [(&str, &str); 7] = [
    ("a100x40", "A100-SXM-40GB"),
    ("a100x80", "A100-SXM-80GB"),
    ("a6000", "RTX-A6000-48GB"),
    ("p40", "P40-24GB"),
    ("t4", "T4"),
    ("v100x16", "V100-SXM2-16GB"),
    ("v100-pciex16", "V100-PCIe-16GB"),
];

/// The models that testdata/scripts/calibrate.py never fits to: the middle size of each family, and the whole family that
/// has one size.
const VALIDATION: [&str; 7] = [
    "deepspeedbert_large",
    "deepspeedgpt_2.7b",
    "deepspeedllama_7b",
    "deepspeedllamav2_7b",
    "deepspeedmistral_7b",
    "mistral_7b",
    "deepspeedvit_g",
];

/// A measured layer with the work that trainc counts for it.
struct Measurement {
    gpu: usize,
    validation: bool,
    /// Picoseconds forward and backward.
    measured: [u64; 2],
    /// The work of the same.
    work: [Vec<Work>; 2],
}

impl Measurement {
    /// A forward that takes longer than its own backward, which does twice the products, did not run those products well.
    fn has_odd_forward(&self) -> bool {
        self.measured[0] > self.measured[1]
    }
}

fn measurements() -> Vec<Measurement> {
    let mut known: BTreeMap<Vec<&str>, [Vec<Work>; 2]> = BTreeMap::new();
    let mut all = Vec::new();
    for line in MEASURED.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let dtype = if fields[3] == "float16" { DType::F16 } else { DType::F32 };
        let gpu = TYPES.iter().position(|(of, _)| *of == fields[1]).expect("every type is in the table");
        // No arithmetic in f16.
        if fields[1] == "p40" && dtype == DType::F16 {
            continue;
        }
        let work = known.entry(fields[..5].to_vec()).or_insert_with(|| {
            let number = |i: usize| fields[i].parse().expect("a whole number");
            let layer = models::layer(fields[0], fields[1], number(2), dtype, number(4)).expect("the model is known");
            work::kernels(layer).map(|kernels| Work::gather(kernels.into_iter().map(|(_, work)| work).collect()))
        });
        let measured = [5, 6].map(|i| (fields[i].parse::<f64>().expect("a number") * 1e9) as u64);
        let validation = VALIDATION.contains(&fields[0]);
        all.push(Measurement { gpu, validation, measured, work: work.clone() });
    }
    all
}

/// Absolute errors in thousandths, forward and backward, by type.
type Errors = [[Vec<u64>; 2]; TYPES.len()];

fn errors(all: &[Measurement], rates: fn(&trainc_ir::GpuType) -> Rates, take: fn(&Measurement) -> bool) -> Errors {
    let catalogue = Catalogue::builtin();
    let specs = TYPES.map(|(_, name)| {
        let gpu = catalogue.find(name).expect("the types are in the catalogue");
        HardwareSpec::with(gpu, rates(gpu))
    });
    let mut errors = Errors::default();
    for m in all.iter().filter(|m| take(m)) {
        for phase in [0, 1] {
            if phase == 0 && m.has_odd_forward() {
                continue;
            }
            let time = specs[m.gpu].total(&m.work[phase]).expect("the type has the element type");
            errors[m.gpu][phase]
                .push((time.abs_diff(m.measured[phase]) * 1000 + m.measured[phase] / 2) / m.measured[phase]);
        }
    }
    errors
}

/// Mean in tenths of a percent.
fn mean<'a>(errors: impl Iterator<Item = &'a u64> + Clone) -> u64 {
    let n = errors.clone().count().max(1) as u64;
    (errors.sum::<u64>() + n / 2) / n
}

fn whole(errors: &Errors) -> u64 {
    mean(errors.iter().flatten().flatten())
}

fn percent(permille: u64) -> String {
    format!("{}.{}", permille / 10, permille % 10)
}

/// One table for people, forward, backward and both.
fn table(columns: [(&str, &Errors); 3]) -> String {
    let mut text = String::from("| GPU type |");
    for (name, _) in columns {
        write!(text, " {name} |").expect("a text takes everything");
    }
    text.push_str("\n| --- | --- | --- | --- |\n");
    let cell = |errors: &[&[Vec<u64>; 2]]| {
        let [forward, backward] = [0, 1].map(|i| mean(errors.iter().flat_map(|e| &e[i])));
        let both = mean(errors.iter().flat_map(|e| e.iter().flatten()));
        format!(" {} / {} / {} |", percent(forward), percent(backward), percent(both))
    };
    for (i, (_, name)) in TYPES.iter().enumerate() {
        write!(text, "| {name} |").expect("a text takes everything");
        for (_, errors) in columns {
            text.push_str(&cell(&[&errors[i]]));
        }
        text.push('\n');
    }
    text.push_str("| all |");
    for (_, errors) in columns {
        text.push_str(&cell(&errors.iter().collect::<Vec<_>>()));
    }
    text.push('\n');
    text
}

/// The bounds that the model is held to: a tenth on models that were not fitted, a quarter on types of which nothing but
/// the datasheet is used.
#[test]
fn errors_stay_within_their_bounds_and_the_guide_tells_them() {
    let all = measurements();
    assert_eq!(all.len(), 1397, "every measurement in an element type that its GPU has");
    let odd = all.iter().filter(|m| m.has_odd_forward()).count();
    assert_eq!(odd, 47, "the guide tells how many forwards are left out");
    let fitted = errors(&all, trainc_ir::GpuType::rates, |m| !m.validation);
    let unseen = errors(&all, trainc_ir::GpuType::rates, |m| m.validation);
    let datasheet = errors(&all, trainc_ir::GpuType::rates_from_datasheet, |_| true);
    let table = table([("models fitted", &fitted), ("models not fitted", &unseen), ("datasheet alone", &datasheet)]);
    assert!(GUIDE.contains(&table), "docs/cost.md should have this table:\n{table}");
    for (i, (_, name)) in TYPES.iter().enumerate() {
        assert!(mean(unseen[i].iter().flatten()) <= 100, "{name}, models that were not fitted");
        assert!(mean(datasheet[i].iter().flatten()) <= 250, "{name}, from its datasheet");
    }
    assert!(whole(&unseen) <= 60 && whole(&datasheet) <= 150, "all types");
}

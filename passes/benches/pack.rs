//! Measures heights and times of the offset packer; the results are recorded in the packer's documentation.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench prints its results")]

use std::time::Instant;

use trainc_passes::plan::layout::pack::{Item, PackOptions, check_packing, pack};

#[path = "../src/plan/layout/pack/tests/training.rs"]
mod training;

const MINIMALLOC: [(&str, &str); 7] = [
    ("A", include_str!("../../testdata/passes/layout/minimalloc/A.1048576.csv")),
    ("C", include_str!("../../testdata/passes/layout/minimalloc/C.1048576.csv")),
    ("D", include_str!("../../testdata/passes/layout/minimalloc/D.1048576.csv")),
    ("F", include_str!("../../testdata/passes/layout/minimalloc/F.1048576.csv")),
    ("G", include_str!("../../testdata/passes/layout/minimalloc/G.1048576.csv")),
    ("I", include_str!("../../testdata/passes/layout/minimalloc/I.1048576.csv")),
    ("J", include_str!("../../testdata/passes/layout/minimalloc/J.1048576.csv")),
];

fn main() {
    for (name, text) in MINIMALLOC {
        let items: Vec<Item> = text.lines().skip(1).map(item).collect();
        measure(&format!("{name}, target 1048576"), &items, &PackOptions { steps: 1_000_000_000, target: 1_048_576 });
        measure(&format!("{name}, no target"), &items, &PackOptions { steps: 1_500_000_000, target: 0 });
    }
    for (layers, micro_batches, in_flight, has_head) in [
        (4, 1, 1, true),
        (6, 8, 2, true),
        (6, 16, 4, false),
        (12, 16, 8, false),
        (24, 8, 1, true),
        (48, 16, 4, true),
        (48, 32, 16, false),
        (96, 32, 24, false),
    ] {
        let step = training::Step {
            layers,
            micro_batches,
            in_flight,
            has_head,
            tokens: 2048,
            hidden: 1024,
            vocabulary: 50304,
        };
        let head = if has_head { ", head" } else { "" };
        let name = format!("{layers} layers, {in_flight} in flight{head}");
        measure(&name, &training::buffers(&step), &PackOptions::default());
    }
}

/// The buffer of one line `id,lower,upper,size`.
fn item(line: &str) -> Item {
    let fields: Vec<u32> = line.split(',').map(|field| field.trim().parse().expect("a number")).collect();
    Item::new(u64::from(fields[3]), 1, fields[1]..fields[2])
}

/// Packs three times and prints the least time.
fn measure(name: &str, items: &[Item], options: &PackOptions) {
    let mut least = None;
    for _ in 0..3 {
        let begin = Instant::now();
        let packing = pack(items, options);
        let time = begin.elapsed();
        assert_eq!(check_packing(items, &packing.offsets), Ok(()), "{name}");
        least = Some(least.map_or((time, packing.height, packing.lower_bound), |least| {
            std::cmp::min(least, (time, packing.height, packing.lower_bound))
        }));
    }
    let (time, height, bound) = least.expect("it was packed");
    let ratio = height as f64 / bound as f64;
    println!("{name}: {} buffers, {height} / {bound} = {ratio:.4}, {} ms", items.len(), time.as_millis());
}

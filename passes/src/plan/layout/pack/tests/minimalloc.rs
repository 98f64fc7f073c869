//! The MiniMalloc benchmark instances (see `testdata/SOURCES.md`), each known to fit in 1,048,576 bytes.

use super::{Item, PackOptions, packed};

const INSTANCES: [(&str, &str); 7] = [
    ("A", include_str!("../../../../../../testdata/passes/layout/minimalloc/A.1048576.csv")),
    ("C", include_str!("../../../../../../testdata/passes/layout/minimalloc/C.1048576.csv")),
    ("D", include_str!("../../../../../../testdata/passes/layout/minimalloc/D.1048576.csv")),
    ("F", include_str!("../../../../../../testdata/passes/layout/minimalloc/F.1048576.csv")),
    ("G", include_str!("../../../../../../testdata/passes/layout/minimalloc/G.1048576.csv")),
    ("I", include_str!("../../../../../../testdata/passes/layout/minimalloc/I.1048576.csv")),
    ("J", include_str!("../../../../../../testdata/passes/layout/minimalloc/J.1048576.csv")),
];

pub(super) fn instance(name: &str) -> Vec<Item> {
    let (_, text) = INSTANCES.iter().find(|(other, _)| *other == name).expect("an instance of the set");
    let field = |field: &str| field.trim().parse::<u32>().expect("a number");
    let items = text.lines().skip(1).map(|line| {
        let fields: Vec<u32> = line.split(',').map(field).collect();
        Item::new(u64::from(fields[3]), 1, fields[1]..fields[2])
    });
    items.collect()
}

#[test]
fn every_instance_is_packed_as_low_as_is_known_to_be_possible() {
    for (name, _) in INSTANCES {
        let packing = packed(&instance(name), &PackOptions { steps: 1_000_000_000, target: 1_048_576 });
        assert!(packing.height <= 1_048_576, "{name}: {} / {}", packing.height, packing.lower_bound);
    }
}

#[test]
fn the_lower_bound_is_reached_without_being_told_a_target() {
    // These instances have one that is reachable; in the others the search would use up its steps.
    for name in ["A", "C", "F", "G"] {
        let packing = packed(&instance(name), &PackOptions::default());
        assert_eq!(packing.height, packing.lower_bound, "{name}");
    }
}

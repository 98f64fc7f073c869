//! Tests of the packer as a whole.

use super::{Item, PackOptions, Packing, PackingFault, check_packing, pack};

mod minimalloc;
mod small;
mod training;

/// Packs and checks what must hold of every packing.
fn packed(items: &[Item], options: &PackOptions) -> Packing {
    let packing = pack(items, options);
    assert_eq!(check_packing(items, &packing.offsets), Ok(()));
    let ends = items.iter().zip(&packing.offsets).map(|(item, offset)| offset + item.footprint());
    assert_eq!(packing.height, ends.max().unwrap_or(0), "the height is the highest end");
    assert!(packing.height >= packing.lower_bound, "{} < {}", packing.height, packing.lower_bound);
    packing
}

#[test]
fn training_steps_are_packed_within_two_percent() {
    let step = |layers, micro_batches, in_flight, has_head| training::Step {
        layers,
        micro_batches,
        in_flight,
        has_head,
        tokens: 2048,
        hidden: 1024,
        vocabulary: 50304,
    };
    for (name, step) in [
        ("one micro-batch", step(4, 1, 1, true)),
        ("two in flight", step(6, 8, 2, true)),
        ("four in flight", step(6, 16, 4, false)),
        ("eight in flight", step(12, 16, 8, false)),
        ("a deep stage", step(24, 8, 1, true)),
        ("a deep stage with four in flight", step(48, 8, 4, true)),
    ] {
        let items = training::buffers(&step);
        let packing = packed(&items, &PackOptions { steps: 20_000_000, target: 0 });
        let (height, bound) = (packing.height, packing.lower_bound);
        assert!(height * 100 <= bound * 102, "{name}: {} items, {height} / {bound}", items.len());
    }
}

#[test]
fn equal_input_gives_equal_offsets() {
    let items = minimalloc::instance("C");
    let options = PackOptions { steps: 3_000_000, target: 0 };
    assert_eq!(pack(&items, &options), pack(&items, &options));
}

#[test]
fn faults_are_found() {
    let items = [Item::new(8, 8, 0..4), Item::new(8, 8, 3..5), Item::new(8, 8, 4..6)];
    assert_eq!(check_packing(&items, &[0, 8, 0]), Ok(()));
    assert_eq!(check_packing(&items, &[0, 0, 8]), Err(PackingFault::Overlap(0, 1)));
    assert_eq!(check_packing(&items, &[0, 8, 4]), Err(PackingFault::Misaligned(2)));
    assert_eq!(check_packing(&items, &[0, 8]), Err(PackingFault::Count(2)));
}

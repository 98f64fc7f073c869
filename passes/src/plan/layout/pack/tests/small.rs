//! Small instances: hand-made ones, and random ones compared with an exhaustive search.

use super::{Item, PackOptions, pack, packed};

#[test]
fn nothing_needs_nothing() {
    assert_eq!(packed(&[], &PackOptions::default()).height, 0);
    let never = Item::with_lives(10, 8, vec![]);
    let empty = Item::new(0, 8, 0..9);
    let packing = packed(&[never, empty], &PackOptions::default());
    assert_eq!((packing.offsets, packing.height, packing.lower_bound), (vec![0, 0], 16, 16));
}

#[test]
fn lives_that_only_touch_share() {
    let items = [Item::new(100, 4, 0..5), Item::new(60, 4, 5..9), Item::new(40, 4, 5..6)];
    assert_eq!(packed(&items, &PackOptions::default()).height, 100);
}

#[test]
fn items_interleave_between_the_lives_of_others() {
    // One buffer in use at even times and one at odd times.
    let lives = |parity: u32| (0..50).map(|i| 2 * i + parity..2 * i + parity + 1).collect();
    let items = [Item::with_lives(64, 64, lives(0)), Item::with_lives(64, 64, lives(1))];
    assert_eq!(packed(&items, &PackOptions::default()).height, 64);
}

#[test]
fn fixed_items_stay_and_others_go_around_them() {
    let items =
        [Item::new(8, 8, 0..9), Item::new(8, 8, 0..9).at(8), Item::new(16, 8, 0..9), Item::new(32, 8, 20..30).at(64)];
    let packing = packed(&items, &PackOptions::default());
    assert_eq!(packing.offsets, [0, 8, 16, 64]);
    assert_eq!(packing.lower_bound, 96);
}

#[test]
fn offsets_are_aligned() {
    let items = [Item::new(3, 1, 0..9), Item::new(5, 256, 0..9), Item::new(1, 16, 0..9), Item::new(7, 4, 2..3)];
    packed(&items, &PackOptions::default());
}

#[test]
fn absurd_sizes_do_not_overflow() {
    let items = [Item::new(u64::MAX, 256, 0..9), Item::new(u64::MAX - 1, 1, 0..9), Item::new(5, 0, 0..9)];
    assert_eq!(pack(&items, &PackOptions::default()).height, u64::MAX);
}

#[test]
fn tiny_instances_are_packed_as_low_as_possible() {
    let mut random = Random(1);
    let mut above_bound = 0;
    let mut optimal = 0;
    for round in 0..400 {
        let items = random.items(1 + round % 6);
        let packing = packed(&items, &PackOptions::default());
        let optimum = exhaustive(&items);
        assert!(packing.height >= optimum, "round {round}: {items:?}");
        optimal += u32::from(packing.height == optimum);
        above_bound += u32::from(optimum > packing.lower_bound);
    }
    assert!(optimal >= 400, "{optimal} of 400 are optimal");
    assert!(above_bound > 0, "some optimum must lie above the lower bound for the comparison to tell more");
}

#[test]
fn random_instances_are_valid() {
    let mut random = Random(2);
    for round in 0..200 {
        let items = random.items(7 + round);
        packed(&items, &PackOptions { steps: 200_000, target: 0 });
    }
}

/// The least height over all ways to place items without fixed offsets: in some best packing each
/// item rests on the bottom or on another item, so that it comes from a first-fit order.
fn exhaustive(items: &[Item]) -> u64 {
    fn meet(a: &Item, b: &Item) -> bool {
        a.lives.iter().any(|x| b.lives.iter().any(|y| x.start.max(y.start) < x.end.min(y.end)))
    }
    fn extend(items: &[Item], offsets: &mut Vec<Option<u64>>, height: u64, best: &mut u64) {
        let mut complete = true;
        for next in 0..items.len() {
            if offsets[next].is_some() {
                continue;
            }
            complete = false;
            let rivals = || {
                (0..items.len())
                    .filter(|&i| meet(&items[i], &items[next]))
                    .filter_map(|i| Some((offsets[i]?, &items[i])))
            };
            let tops = rivals().map(|(offset, item)| (offset + item.footprint()).next_multiple_of(items[next].align));
            let lowest = tops.chain([0]).filter(|&at| {
                rivals().all(|(offset, item)| at >= offset + item.footprint() || at + items[next].footprint() <= offset)
            });
            let lowest = lowest.min().expect("above all rivals there is room");
            offsets[next] = Some(lowest);
            extend(items, offsets, height.max(lowest + items[next].footprint()), best);
            offsets[next] = None;
        }
        if complete {
            *best = height.min(*best);
        }
    }
    let mut best = u64::MAX;
    extend(items, &mut vec![None; items.len()], 0, &mut best);
    best
}

/// A small linear congruential generator, so that the instances are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit)).expect("less than the limit")
    }

    fn items(&mut self, count: usize) -> Vec<Item> {
        let item = |random: &mut Random| {
            let lives = (0..1 + random.below(6) / 4).map(|_| {
                let start = random.below(12);
                start..start + 1 + random.below(6)
            });
            let lives = lives.collect::<Vec<_>>();
            Item::with_lives(u64::from(1 + random.below(20)), 1 << random.below(3), lives)
        };
        (0..count).map(|_| item(self)).collect()
    }
}

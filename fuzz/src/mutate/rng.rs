//! A small generator of pseudo-random numbers (SplitMix64), the same on every machine.

/// The generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// Whole numbers at which readers break.
const EDGES: [u64; 24] = [
    0,
    1,
    2,
    3,
    7,
    8,
    127,
    128,
    255,
    256,
    1000,
    4096,
    65_535,
    65_536,
    1 << 20,
    (1 << 22) + 1,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

impl Rng {
    /// A generator that starts from a number.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// One of the items, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number at which readers break, or near one, or any.
    pub fn edge(&mut self) -> u64 {
        let number = *self.pick(&EDGES);
        match self.below(8) {
            0 => number.wrapping_sub(1),
            1 => number.wrapping_add(1),
            2 => self.bits() >> self.below(64),
            3 => number.wrapping_neg(),
            _ => number,
        }
    }
}

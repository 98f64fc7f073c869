//! Counter-based random numbers (Philox4x32-10): any element can be drawn again, in any order, on any device.

use super::float::Float;
use super::parallel;

/// One block of four random words for a counter and a key (Salmon et al., SC 2011).
pub(crate) fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let low = u64::from(a) * 0xD251_1F53;
        let high = u64::from(c) * 0xCD9E_8D57;
        (a, b, c, d) = ((high >> 32) as u32 ^ b ^ k0, high as u32, (low >> 32) as u32 ^ d ^ k1, low as u32);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [a, b, c, d]
}

/// Where a random stream is drawn: everything that identifies it but the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// Seed of the run.
    pub(crate) seed: u64,
    /// Number of the training step.
    pub(crate) step: u32,
    /// The operation that draws.
    pub(crate) site: u32,
}

impl Site {
    /// The four words of elements `4 block .. 4 block + 4`.
    fn block(self, block: u64) -> [u32; 4] {
        let counter = [block as u32, (block >> 32) as u32, self.site, self.step];
        philox(counter, [self.seed as u32, (self.seed >> 32) as u32])
    }

    /// Word `element` of the stream.
    pub(crate) fn word(self, element: u64) -> u32 {
        self.block(element / 4)[(element % 4) as usize]
    }
}

/// A uniform number in (0, 1), never its ends.
fn open_unit(word: u32) -> f64 {
    (f64::from(word) + 0.5) / 4_294_967_296.0
}

/// Drops elements with probability `rate` and scales the others by `1 / (1 - rate)`; the gradient is the same function of `dy`.
///
/// `first` is the index of `x[0]` in the tensor of the whole global batch: samples are outermost, so that it follows from
/// the micro-batch alone.
pub(crate) fn dropout<T: Float>(x: &[T], site: Site, first: u64, rate: f64, out: &mut [T]) {
    let threshold = (rate * 4_294_967_296.0) as u64;
    let scale = T::of(if rate < 1.0 { 1.0 / (1.0 - rate) } else { 0.0 });
    parallel::pieces(out, parallel::PIECE, |start, out| {
        let first = first + start as u64;
        let mut words = site.block(first / 4);
        for (i, (out, &x)) in out.iter_mut().zip(&x[start..]).enumerate() {
            let element = first + i as u64;
            if element.is_multiple_of(4) {
                words = site.block(element / 4);
            }
            let keep = u64::from(words[(element % 4) as usize]) >= threshold;
            *out = if keep { x * scale } else { T::ZERO };
        }
    });
}

/// Fills with normal numbers of the given deviation (Box-Muller); element `i` depends on the site and on `i` alone.
pub(crate) fn normal<T: Float>(site: Site, deviation: f64, out: &mut [T]) {
    parallel::pieces(out, parallel::PIECE, |start, out| {
        for (i, pair) in out.chunks_mut(4).enumerate() {
            let words = site.block((start / 4 + i) as u64).map(open_unit);
            let polar = |u: f64, v: f64| {
                let radius = deviation * (-2.0 * libm::log(u)).sqrt();
                let angle = std::f64::consts::TAU * v;
                [radius * libm::cos(angle), radius * libm::sin(angle)]
            };
            let ([a, b], [c, d]) = (polar(words[0], words[1]), polar(words[2], words[3]));
            for (out, value) in pair.iter_mut().zip([a, b, c, d]) {
                *out = T::of(value);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Site, dropout, normal, philox};

    const SITE: Site = Site { seed: 42, step: 3, site: 7 };

    #[test]
    fn known_answers() {
        // From the kat_vectors file of Random123.
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let want = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), want);
    }

    #[test]
    fn a_mask_does_not_depend_on_how_the_batch_is_split() {
        let (part, x) = (4099, vec![1.0f32; 6 * 4099]);
        let mut whole = vec![0.0; x.len()];
        dropout(&x, SITE, 10, 0.25, &mut whole);
        for (i, want) in whole.chunks(part).enumerate() {
            let mut out = vec![0.0; part];
            dropout(&x[..part], SITE, (10 + i * part) as u64, 0.25, &mut out);
            assert_eq!(out, want);
        }
        let kept = whole.iter().filter(|&&y| y != 0.0).count() as f64 / whole.len() as f64;
        assert!((kept - 0.75).abs() < 0.01, "{kept}");
        assert!(whole.iter().all(|&y| y == 0.0 || y == 1.0 / 0.75));
        let mut other = vec![0.0; x.len()];
        dropout(&x, Site { step: 4, ..SITE }, 10, 0.25, &mut other);
        assert_ne!(whole, other);
    }

    #[test]
    fn normal_numbers_have_their_moments() {
        let mut x = vec![0.0f64; 100_000];
        normal(SITE, 0.02, &mut x);
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let fourth = x.iter().map(|x| x.powi(4)).sum::<f64>() / x.len() as f64;
        assert!(mean.abs() < 2e-4 && (variance / 4e-4 - 1.0).abs() < 0.02);
        assert!((fourth / (variance * variance) - 3.0).abs() < 0.1, "kurtosis of a normal distribution");
    }
}

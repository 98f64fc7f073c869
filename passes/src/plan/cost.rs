//! Times in integer picoseconds, always rounded up: of work on a GPU type, and of transfers over links.

use super::profile::{Work, WorkClass};
use trainc_ir::{Basis, DType, GpuType, Link};

/// The rates of a GPU type that the cost model uses; derived from the catalogue, which holds the figures, their sources
/// and the achieved shares.
///
/// The time of one kernel is a roofline plus the cost of starting it:
///
/// ```text
/// t = launch + max(flops / rate(class, dtype), bytes / memory_rate)
///     rate(Matmul | Attention, dtype) = peak(dtype) * matmul_efficiency
///     rate(Memory | Optimizer, dtype) = peak(f32)      (f64: a 64th)
/// ```
///
/// Matrix products in `f32` run outside of the tensor cores, because TF32 changes results. An element type that the
/// arithmetic units lack has no time. `f64` is in no catalogue entry: its rate is taken as a 64th of the `f32` peak,
/// which is that of the types with the fewest 64-bit units (2 against 128 per multiprocessor, CUDA C++ Programming Guide,
/// arithmetic throughput, compute capability 8.6 and 8.9), so it is never too fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareSpec {
    /// Name of the GPU type.
    pub name: String,
    /// FLOP per second of matrix products, by element type; types that are missing cannot be computed with.
    pub matmul: Vec<(DType, u64)>,
    /// FLOP per second of all other kernels.
    pub vector: u64,
    /// Bytes per second of the device's memory.
    pub memory: u64,
    /// Picoseconds of the smallest kernel.
    pub launch_ps: u64,
    /// Copies from the host.
    pub host: Link,
    /// Whether every rate of matrix products was measured on this type.
    pub basis: Basis,
}

/// 16 lanes of PCIe 3 (8 GT/s, 128b/130b), for a type whose slot is not known: the slowest slot of the catalogue.
const SLOWEST_SLOT: u64 = 15_754_000_000;

/// How much slower `f64` is than `f32` at worst.
const F64_DIVISOR: u64 = 64;

/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

impl HardwareSpec {
    /// The rates of a GPU type.
    pub fn of(gpu: &GpuType) -> Self {
        let (mut matmul, mut basis) = (Vec::new(), Basis::Measured);
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            if let Some((rate, of)) = gpu.matmul_flops(dtype) {
                matmul.push((dtype, rate));
                basis = basis.max(of);
            }
        }
        let vector = gpu.peak.fp32.unwrap_or(0);
        if vector > 0 {
            matmul.push((DType::F64, vector / F64_DIVISOR));
        }
        let rate = gpu.pcie_bytes_per_s.unwrap_or(SLOWEST_SLOT);
        Self {
            name: gpu.name.clone(),
            matmul,
            vector,
            memory: gpu.memory_rate(),
            launch_ps: gpu.launch_ps,
            host: Link { bytes_per_s: rate, latency_ps: gpu.pcie_latency_ps },
            basis,
        }
    }

    /// Time of equal kernels, one after the other.
    ///
    /// # Errors
    /// The element type that the GPU lacks.
    pub fn time(&self, work: &Work) -> Result<u64, MissingType> {
        let rate = match work.class {
            WorkClass::Free => return Ok(0),
            WorkClass::Matmul | WorkClass::Attention => self.matmul_rate(work.dtype),
            WorkClass::Memory | WorkClass::Optimizer => self.vector_rate(work.dtype),
        };
        let rate = rate.ok_or_else(|| MissingType { gpu: self.name.clone(), dtype: work.dtype })?;
        let one = duration(work.flops, rate).max(duration(work.bytes, self.memory)).saturating_add(self.launch_ps);
        Ok(one.saturating_mul(u64::from(work.count)))
    }

    /// Time of kernels one after the other.
    ///
    /// # Errors
    /// The element type that the GPU lacks.
    pub fn total(&self, work: &[Work]) -> Result<u64, MissingType> {
        work.iter().try_fold(0, |sum: u64, one| Ok(sum.saturating_add(self.time(one)?)))
    }

    fn matmul_rate(&self, dtype: DType) -> Option<u64> {
        self.matmul.iter().find(|(of, _)| *of == dtype).map(|&(_, rate)| rate)
    }

    fn vector_rate(&self, dtype: DType) -> Option<u64> {
        match dtype {
            DType::F64 => Some(self.vector / F64_DIVISOR),
            DType::F16 | DType::BF16 => self.matmul_rate(dtype).map(|_| self.vector),
            DType::F32 | DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => Some(self.vector),
        }
    }
}

/// An element type that a GPU cannot compute with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingType {
    /// The GPU type.
    pub gpu: String,
    /// The element type.
    pub dtype: DType,
}

impl std::fmt::Display for MissingType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a {} has no arithmetic in {}", self.gpu, self.dtype)
    }
}

/// Picoseconds that `amount` takes at `per_second`; nothing takes no time, and a rate of zero takes for ever.
fn duration(amount: u64, per_second: u64) -> u64 {
    match (amount, per_second) {
        (0, _) => 0,
        (_, 0) => u64::MAX,
        (amount, rate) => saturate((u128::from(amount) * SECOND).div_ceil(u128::from(rate))),
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Time to send bytes over a link: its latency, and the bytes at its rate.
pub fn transfer(link: Link, bytes: u64) -> u64 {
    link.latency_ps.saturating_add(duration(bytes, link.bytes_per_s))
}

/// Time of a ring all-reduce over `n` ranks whose slowest link is given: `2 (n - 1)` steps of an `n`-th of the bytes.
pub fn all_reduce(link: Link, n: u64, bytes: u64) -> u64 {
    let steps = 2 * n.saturating_sub(1);
    steps.saturating_mul(transfer(link, bytes.div_ceil(n.max(1))))
}

/// Time of a broadcast to `n` ranks in a pipelined chain whose slowest link is given: every hop's latency, and the bytes
/// once.
pub fn broadcast(link: Link, n: u64, bytes: u64) -> u64 {
    match n {
        0 | 1 => 0,
        n => (n - 1).saturating_mul(link.latency_ps).saturating_add(duration(bytes, link.bytes_per_s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::Catalogue;

    fn spec(name: &str) -> HardwareSpec {
        HardwareSpec::of(Catalogue::builtin().find(name).expect("a type of the catalogue"))
    }

    fn work(class: WorkClass, dtype: DType, flops: u64, bytes: u64) -> Work {
        Work { class, dtype, flops, bytes, count: 1 }
    }

    /// By hand from the catalogue: A100 312 TFLOPS at 86.9 %, 2039 GB/s at 80 %, 3 us to launch.
    #[test]
    fn the_slower_of_arithmetic_and_memory_bounds_a_kernel() {
        let a100 = spec("A100-SXM-80GB");
        let matmul = work(WorkClass::Matmul, DType::BF16, 271_128_000_000, 1);
        assert_eq!(a100.time(&matmul), Ok(1_000_000_000 + 3_000_000));
        let copy = work(WorkClass::Memory, DType::F32, 1, 1_631_200_000);
        assert_eq!(a100.time(&copy), Ok(1_000_000_000 + 3_000_000));
        assert_eq!(a100.time(&Work { count: 7, ..copy }), Ok(7 * 1_003_000_000));
        assert_eq!(a100.time(&work(WorkClass::Free, DType::F32, 0, 0)), Ok(0));
        assert_eq!(a100.total(&[matmul, copy]), Ok(2_006_000_000));
    }

    /// 19.5 TFLOPS outside of the tensor cores, not 156 in TF32.
    #[test]
    fn f32_products_do_not_use_tf32() {
        let matmul = work(WorkClass::Matmul, DType::F32, 19_500_000_000_000 / 1000 * 869, 0);
        assert_eq!(spec("A100-SXM-80GB").time(&matmul), Ok(1_000_000_000_000 + 3_000_000));
    }

    #[test]
    fn a_missing_type_is_named() {
        let t4 = spec("T4");
        for class in [WorkClass::Matmul, WorkClass::Memory] {
            let error = t4.time(&work(class, DType::BF16, 1, 1)).unwrap_err();
            assert_eq!(error.to_string(), "a T4 has no arithmetic in bf16");
            assert!(t4.time(&work(class, DType::F16, 1, 1)).is_ok());
        }
    }

    #[test]
    fn times_round_up_and_never_wrap() {
        let link = Link { bytes_per_s: 3_000_000_000_000, latency_ps: 10 };
        assert_eq!((transfer(link, 0), transfer(link, 1), transfer(link, 4)), (10, 11, 12));
        assert_eq!(transfer(Link { bytes_per_s: 0, latency_ps: 10 }, 1), u64::MAX);
        let huge = Work { count: u32::MAX, ..work(WorkClass::Matmul, DType::F32, u64::MAX, u64::MAX) };
        assert_eq!(spec("T4").time(&huge), Ok(u64::MAX));
    }

    /// Two ranks exchange halves twice; a broadcast sends everything once over each hop.
    #[test]
    fn collectives_follow_their_formulas() {
        let link = Link { bytes_per_s: 1_000_000_000_000, latency_ps: 5 };
        assert_eq!((all_reduce(link, 1, 100), all_reduce(link, 2, 100), all_reduce(link, 4, 100)), (0, 110, 180));
        assert_eq!((broadcast(link, 1, 100), broadcast(link, 2, 100), broadcast(link, 4, 100)), (0, 105, 115));
    }
}

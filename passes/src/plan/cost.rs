//! Times in integer picoseconds, always rounded up: of work on a GPU type, and of transfers over links.

use super::profile::{BlockShape, UnitProfile, Work, WorkClass};
use std::sync::Arc;
use trainc_ir::{BlockTimes, DType, GpuProfile, GpuType, Link, Rate, Rates};

/// What the cost model knows of a GPU type.
///
/// The time of one kernel is a roofline over curves of time by size ([`Rates`]), plus the cost of starting it:
///
/// ```text
/// t = launch + max(a, m) + unhidden * min(a, m)
///     a = product(flops)   of matrix products and convolutions     m = memory(bytes)
///         attention(flops) of fused attention                          memory(row_traffic * bytes) of normalizations, softmax
///         vector(flops)    of everything else                          memory(movement_traffic * bytes) of copies
///     unhidden = 0 where the arithmetic is not that of products
/// ```
///
/// Matrix products in `f32` run outside of the tensor cores, because TF32 changes results. An element type that the
/// arithmetic units lack has no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareSpec {
    /// Name of the GPU type.
    pub name: String,
    /// Times of its kernels by their work.
    pub rates: Rates,
    /// Picoseconds of the smallest kernel.
    pub launch_ps: u64,
    /// Copies from the host.
    pub host: Link,
    /// Times of blocks that were measured.
    pub profile: Option<Arc<GpuProfile>>,
}

/// Times of the work of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitTimes {
    /// Of the forward.
    pub forward_ps: u64,
    /// Of the backward, without recomputation.
    pub backward_ps: u64,
    /// Of running the forward again.
    pub recompute_ps: u64,
    /// The part of the backward that nothing else waits for.
    pub weight_grad_ps: u64,
    /// Of the optimizer.
    pub update_ps: u64,
}

/// 16 lanes of PCIe 3 (8 GT/s, 128b/130b), for a type whose slot is not known: the slowest slot of the catalogue.
const SLOWEST_SLOT: u64 = 15_754_000_000;

/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

impl HardwareSpec {
    /// What is known of a GPU type.
    pub fn of(gpu: &GpuType) -> Self {
        Self::with(gpu, gpu.rates())
    }

    /// The same with other rates.
    pub fn with(gpu: &GpuType, rates: Rates) -> Self {
        let rate = gpu.pcie_bytes_per_s.unwrap_or(SLOWEST_SLOT);
        let host = Link { bytes_per_s: rate, latency_ps: gpu.pcie_latency_ps };
        Self { name: gpu.name.clone(), rates, launch_ps: gpu.launch_ps, host, profile: gpu.profile.clone() }
    }

    /// Times of a unit for one micro-batch: measured ones where a profile has them for its block.
    ///
    /// # Errors
    /// The element type that the GPU lacks.
    pub fn unit(&self, unit: &UnitProfile) -> Result<UnitTimes, MissingType> {
        let mut times = UnitTimes {
            forward_ps: self.total(&unit.forward)?,
            backward_ps: self.total(&unit.backward)?,
            recompute_ps: self.total(&unit.recompute)?,
            weight_grad_ps: self.total(&unit.weight_grad)?,
            update_ps: self.total(&unit.update)?,
        };
        if let Some(measured) = unit.block.as_ref().and_then(|block| self.measured(block)) {
            let part = u128::from(measured.backward_ps) * u128::from(times.weight_grad_ps);
            times.weight_grad_ps = saturate(part / u128::from(times.backward_ps.max(1)));
            times.forward_ps = measured.forward_ps;
            times.backward_ps = measured.backward_ps;
            times.recompute_ps = if unit.recompute.is_empty() { 0 } else { measured.forward_ps };
        }
        Ok(times)
    }

    /// What a profile says of a block.
    pub fn measured(&self, block: &BlockShape) -> Option<&BlockTimes> {
        self.profile.as_ref()?.block(&block.name, block.micro_batch, block.seq)
    }

    /// Time of equal kernels, one after the other.
    ///
    /// # Errors
    /// The element type that the GPU lacks.
    pub fn time(&self, work: &Work) -> Result<u64, MissingType> {
        if work.class == WorkClass::Free {
            return Ok(0);
        }
        let missing = || MissingType { gpu: self.name.clone(), dtype: work.dtype };
        let arithmetic = self.arithmetic(work).ok_or_else(missing)?;
        let traffic = self.rates.memory.time(self.traffic(work));
        let unhidden = match work.class {
            WorkClass::Matmul | WorkClass::Attention => self.rates.shared.unhidden_permille,
            WorkClass::Memory | WorkClass::Rows | WorkClass::Movement | WorkClass::Optimizer | WorkClass::Free => 0,
        };
        let shorter = permille(arithmetic.min(traffic), unhidden);
        let one = arithmetic.max(traffic).saturating_add(shorter).saturating_add(self.launch_ps);
        Ok(one.saturating_mul(u64::from(work.count)))
    }

    /// Time of kernels one after the other.
    ///
    /// # Errors
    /// The element type that the GPU lacks.
    pub fn total(&self, work: &[Work]) -> Result<u64, MissingType> {
        work.iter().try_fold(0, |sum: u64, one| Ok(sum.saturating_add(self.time(one)?)))
    }

    fn arithmetic(&self, work: &Work) -> Option<u64> {
        match work.class {
            WorkClass::Matmul => find(&self.rates.products, work.dtype).map(|rate| rate.time(work.flops)),
            WorkClass::Attention => find(&self.rates.attention, work.dtype).map(|rate| rate.time(work.flops)),
            WorkClass::Memory | WorkClass::Rows | WorkClass::Movement | WorkClass::Optimizer | WorkClass::Free => {
                let flops = match work.dtype {
                    DType::F64 => work.flops.saturating_mul(Rates::F64_DIVISOR),
                    DType::F16 | DType::BF16 => find(&self.rates.products, work.dtype).map(|_| work.flops)?,
                    DType::F32 | DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => work.flops,
                };
                Some(self.rates.vector.time(flops))
            }
        }
    }

    fn traffic(&self, work: &Work) -> u64 {
        match work.class {
            WorkClass::Rows => permille(work.bytes, self.rates.shared.row_traffic_permille),
            WorkClass::Movement => permille(work.bytes, self.rates.shared.movement_traffic_permille),
            WorkClass::Matmul | WorkClass::Attention | WorkClass::Memory | WorkClass::Optimizer => work.bytes,
            WorkClass::Free => 0,
        }
    }
}

fn find(rates: &[(DType, Rate)], dtype: DType) -> Option<&Rate> {
    rates.iter().find(|(of, _)| *of == dtype).map(|(_, rate)| rate)
}

fn permille(value: u64, share: u64) -> u64 {
    saturate((u128::from(value) * u128::from(share)).div_ceil(1000))
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

/// Time of an all-reduce over `n` ranks whose slowest link is given: in a ring, `2 (n - 1)` steps of an `n`-th of the
/// bytes; or up a tree and down again, pipelined, `2 log2 n` latencies and twice the bytes. Libraries take the faster one.
pub fn all_reduce(link: Link, n: u64, bytes: u64) -> u64 {
    if n < 2 {
        return 0;
    }
    let ring = (2 * (n - 1)).saturating_mul(transfer(link, bytes.div_ceil(n)));
    let levels = u64::from((n - 1).ilog2() + 1);
    let tree = (2 * levels).saturating_mul(link.latency_ps);
    ring.min(tree.saturating_add(duration(bytes.saturating_mul(2), link.bytes_per_s)))
}

/// Time of an all-gather or of a reduce-scatter over `n` ranks whose slowest link is given, of so many bytes on all ranks
/// together: a ring of `n - 1` steps of an `n`-th of them.
pub fn all_gather(link: Link, n: u64, bytes: u64) -> u64 {
    n.saturating_sub(1).saturating_mul(transfer(link, bytes.div_ceil(n.max(1))))
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
    use trainc_ir::{Catalogue, RateBasis, SharedEfficiency};

    fn spec(name: &str) -> HardwareSpec {
        HardwareSpec::of(Catalogue::builtin().find(name).expect("a type of the catalogue"))
    }

    fn work(class: WorkClass, dtype: DType, flops: u64, bytes: u64) -> Work {
        Work { class, dtype, flops, bytes, count: 1 }
    }

    /// Rates that are easy to reckon with: 1 FLOP or byte per picosecond, products of 1024 FLOP or fewer half as fast.
    fn simple() -> HardwareSpec {
        let gpu = Catalogue::builtin().find("T4").expect("a type of the catalogue").clone();
        let (one, product) = (Rate::flat(1_000_000_000_000), Rate::new(vec![(1024, 2048), (2048, 3072)]).unwrap());
        let shared =
            SharedEfficiency { unhidden_permille: 250, row_traffic_permille: 2000, movement_traffic_permille: 1500 };
        let products = vec![(DType::F32, product.clone())];
        let basis = RateBasis::Profile;
        let rates =
            Rates { products, attention: vec![(DType::F32, product)], vector: one.clone(), memory: one, shared, basis };
        HardwareSpec { launch_ps: 7, ..HardwareSpec::with(&gpu, rates) }
    }

    #[test]
    fn a_kernel_takes_the_longer_of_arithmetic_and_traffic() {
        let spec = simple();
        let time = |class, flops, bytes| spec.time(&work(class, DType::F32, flops, bytes)).unwrap();
        assert_eq!(time(WorkClass::Memory, 10, 1000), 1007);
        assert_eq!(time(WorkClass::Memory, 1000, 10), 1007);
        assert_eq!(time(WorkClass::Rows, 10, 1000), 2007);
        assert_eq!(time(WorkClass::Movement, 0, 1000), 1507);
        assert_eq!(time(WorkClass::Optimizer, 0, 1000), 1007);
        assert_eq!(time(WorkClass::Free, 0, 0), 0);
        // 1024 FLOP in 2048 ps, 2048 in 3072, between them linear; a quarter of the traffic is not hidden.
        assert_eq!(time(WorkClass::Matmul, 1024, 0), 2048 + 7);
        assert_eq!(time(WorkClass::Matmul, 1536, 400), 2560 + 100 + 7);
        assert_eq!(time(WorkClass::Attention, 512, 4000), 4000 + 256 + 7);
        let three = Work { count: 3, ..work(WorkClass::Memory, DType::F32, 0, 1000) };
        assert_eq!(spec.total(&[three, three]), Ok(6 * 1007));
    }

    /// From the datasheet: 989 TFLOPS, of which 80.3 % were reached by the best product; 3,350 GB/s.
    #[test]
    fn a_large_product_is_as_fast_as_the_best_one_measured() {
        let spec = spec("H100-SXM-80GB");
        let reached = 989_000_000_000 * 803;
        let fastest = (30..45).map(|log2| {
            let time = spec.time(&work(WorkClass::Matmul, DType::BF16, 1 << log2, 0)).unwrap() - spec.launch_ps;
            u64::try_from((1u128 << log2) * SECOND / u128::from(time)).unwrap()
        });
        let fastest = fastest.max().unwrap();
        assert!(fastest.abs_diff(reached) < reached / 1000, "{fastest}");
        let bytes = work(WorkClass::Memory, DType::F32, 0, 3_350_000_000);
        assert!(spec.time(&bytes).unwrap() > 1_000_000_000);
    }

    /// 19.5 TFLOPS outside of the tensor cores, not 156 in TF32.
    #[test]
    fn f32_products_do_not_use_tf32() {
        let matmul = work(WorkClass::Matmul, DType::F32, 19_500_000_000_000, 0);
        assert!(spec("A100-SXM-80GB").time(&matmul).unwrap() > 1_000_000_000_000);
    }

    /// On every type, in every class and element type that it has.
    #[test]
    fn more_work_never_takes_less_time() {
        let classes =
            [WorkClass::Matmul, WorkClass::Attention, WorkClass::Memory, WorkClass::Rows, WorkClass::Movement];
        let sizes = || (0..63).flat_map(|log2| [3u64 << log2 >> 1, (1 << log2) + 1, 1 << log2]);
        for gpu in Catalogue::builtin().types() {
            let spec = HardwareSpec::of(gpu);
            for (class, dtype) in
                classes.iter().flat_map(|&class| [DType::F16, DType::F32, DType::F64].map(|d| (class, d)))
            {
                let (mut flops, mut bytes): (Vec<u64>, Vec<u64>) = (sizes().collect(), sizes().collect());
                flops.sort_unstable();
                bytes.sort_unstable();
                for small in [0, 1 << 20, 1 << 30, 1 << 40] {
                    let by_flops = flops.iter().map(|&f| spec.time(&work(class, dtype, f, small)));
                    let by_bytes = bytes.iter().map(|&b| spec.time(&work(class, dtype, small, b)));
                    for times in [by_flops.collect::<Vec<_>>(), by_bytes.collect()] {
                        if times[0].is_ok() {
                            assert!(
                                times.is_sorted_by_key(|time| time.clone().unwrap()),
                                "{} {class:?} {dtype}",
                                gpu.name
                            );
                        }
                    }
                }
            }
        }
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
        // Eight ranks: a ring takes 14 steps of an eighth, a tree 6 latencies and twice the bytes, which wins for small sums.
        assert_eq!((all_reduce(link, 8, 8000), all_reduce(link, 8, 8)), (14 * 1005, 6 * 5 + 16));
        assert_eq!(
            (all_reduce(link, 1 << 40, 1), all_reduce(link, u64::MAX / 2, u64::MAX)),
            (2 * 40 * 5 + 2, u64::MAX)
        );
        assert_eq!((all_gather(link, 1, 100), all_gather(link, 2, 100), all_gather(link, 4, 100)), (0, 55, 90));
        assert_eq!((broadcast(link, 1, 100), broadcast(link, 2, 100), broadcast(link, 4, 100)), (0, 105, 115));
    }

    /// The first exact match counts; recomputation is another forward; the update stays modelled.
    #[test]
    fn measured_blocks_replace_modelled_times() {
        let text =
            "[[block]]\ngpu = \"T4\"\nname = \"b\"\nseq = 16\nmicro_batch = 2\nforward_ms = 3\nbackward_ms = 5\n";
        let profile = trainc_ir::Profile::read("p", text).unwrap();
        let cluster = "name = \"c\"\n[[group]]\nname = \"g\"\ngpu = \"T4\"\nnodes = 1\ngpus_per_node = 1\n";
        let cluster = trainc_ir::Cluster::from_toml("c", cluster).unwrap();
        let plain = HardwareSpec::of(&cluster.groups.values().next().unwrap().gpu);
        let cluster = cluster.profiled("p", &profile).unwrap();
        let spec = HardwareSpec::of(&cluster.groups.values().next().unwrap().gpu);
        let some = vec![work(WorkClass::Memory, DType::F32, 0, 1 << 20)];
        let block = Some(BlockShape { name: "b".to_owned(), micro_batch: 2, seq: 16 });
        let unit = |block, recompute| UnitProfile {
            block,
            forward: some.clone(),
            backward: some.clone(),
            recompute,
            update: some.clone(),
            ..UnitProfile::default()
        };
        let update_ps = spec.total(&some).unwrap();
        let times = |recompute_ps| UnitTimes {
            weight_grad_ps: 0,
            forward_ps: 3_000_000_000,
            backward_ps: 5_000_000_000,
            recompute_ps,
            update_ps,
        };
        assert_eq!(spec.unit(&unit(block.clone(), Vec::new())), Ok(times(0)));
        assert_eq!(spec.unit(&unit(block.clone(), some.clone())), Ok(times(3_000_000_000)));
        let other = block.map(|of| BlockShape { micro_batch: 4, ..of });
        assert_eq!(spec.unit(&unit(other.clone(), Vec::new())), plain.unit(&unit(other, Vec::new())));
        assert_eq!(spec.unit(&unit(None, Vec::new())), plain.unit(&unit(None, Vec::new())));
    }
}

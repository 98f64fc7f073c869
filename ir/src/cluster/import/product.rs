//! From the names that schedulers know GPUs by to the types of the catalogue.

use crate::cluster::catalogue::Catalogue;
use crate::cluster::gpu::GpuType;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a name turned out to mean.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) gpu: Arc<GpuType>,
    /// The word beside the name that decided it.
    pub(super) hint: Option<String>,
    /// Other types that the name may mean, where nothing decided.
    pub(super) others: Vec<String>,
}

/// Words that say who made or sells a GPU, and not which it is.
const VENDOR_WORDS: [&str; 8] = ["nvidia", "tesla", "geforce", "quadro", "amd", "instinct", "intel", "oam"];

/// The catalogue's type of that name. `hints` are words that may say more (features of the node); `memory_mib` is what
/// its driver reports.
pub(super) fn find(catalogue: &Catalogue, name: &str, hints: &[&str], memory_mib: Option<u64>) -> Option<Found> {
    let direct = by_name(catalogue, name)?;
    let siblings: Vec<&Arc<GpuType>> = siblings(catalogue, name, &direct);
    if siblings.is_empty() {
        return Some(Found { gpu: direct, hint: None, others: Vec::new() });
    }
    for hint in hints {
        let spellings = [(*hint).to_owned(), format!("{hint}b"), format!("{name}-{hint}"), format!("{name}-{hint}b")];
        let meant = spellings.iter().filter_map(|spelling| by_name(catalogue, spelling));
        let meant =
            meant.into_iter().find(|gpu| gpu.name == direct.name || siblings.iter().any(|s| s.name == gpu.name));
        // The bare name again decides nothing.
        if let Some(gpu) = meant.filter(|_| !same(hint, name)) {
            return Some(Found { gpu, hint: Some((*hint).to_owned()), others: Vec::new() });
        }
    }
    if let Some(mib) = memory_mib {
        let fits = |gpu: &&Arc<GpuType>| about(gpu.memory_bytes >> 20, mib);
        let all = std::iter::once(&direct).chain(siblings.iter().copied());
        if let Some(gpu) = all.filter(fits).max_by_key(|gpu| common_prefix(&gpu.name, &direct.name)) {
            return Some(Found { gpu: Arc::clone(gpu), hint: None, others: Vec::new() });
        }
    }
    let others = siblings.iter().map(|gpu| gpu.name.clone()).collect();
    Some(Found { gpu: direct, hint: None, others })
}

/// Whether two sizes in MiB are of one product: drivers differ by a percent or two in what they report.
pub(super) fn about(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= a.max(b) / 20
}

fn by_name(catalogue: &Catalogue, name: &str) -> Option<Arc<GpuType>> {
    catalogue.find(name).or_else(|| catalogue.find(&bare(name))).cloned()
}

/// The name without vendor words.
fn bare(name: &str) -> String {
    let words = name.split(['-', '_', ' ']);
    let words: Vec<&str> = words.filter(|w| !VENDOR_WORDS.iter().any(|v| w.eq_ignore_ascii_case(v))).collect();
    words.join("-")
}

/// The other types that a name means as well: those that Slurm sites call the same.
fn siblings<'c>(catalogue: &'c Catalogue, name: &str, direct: &GpuType) -> Vec<&'c Arc<GpuType>> {
    let slurm = direct.slurm_type.as_deref();
    if !slurm.is_some_and(|slurm| same(slurm, name) || same(&format!("nvidia-{slurm}"), name)) {
        return Vec::new();
    }
    catalogue.types().filter(|gpu| gpu.slurm_type.as_deref() == slurm && gpu.name != direct.name).collect()
}

fn same(a: &str, b: &str) -> bool {
    let folded =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    folded(a) == folded(b)
}

/// How many letters two names begin with alike: `A100-SXM-80GB` is nearer to `A100-SXM-40GB` than `A100-PCIe-80GB` is.
/// Ties go to the later one in the catalogue.
fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// The word of the catalogue nearest to an unknown name, of the whole name or of what is left without vendor words.
pub(super) fn nearest(catalogue: &Catalogue, name: &str) -> Option<String> {
    catalogue.nearest(name).or_else(|| catalogue.nearest(&bare(name))).map(str::to_owned)
}

/// Part of a GPU, as MIG makes them: `3g.20gb` is three of its compute slices and 20 GB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Its name, as `1g.10gb` or `1g.10gb+me`.
    pub(super) profile: String,
    /// Compute slices.
    pub(super) compute: u64,
    /// Gigabytes that the name promises.
    pub(super) gb: u64,
}

impl Slice {
    /// Reads `1g.10gb`, with any suffix behind a `+` or `.` (`1g.10gb+me`, `1g.10gb.me`).
    pub(super) fn parse(profile: &str) -> Option<Self> {
        let (compute, rest) = profile.split_once("g.")?;
        let end = rest.find("gb")?;
        let suffix = &rest[end + 2..];
        let number = |text: &str| text.parse::<u64>().ok().filter(|&n| n > 0 && n < 10_000);
        let plain = suffix.is_empty() || suffix.starts_with(['+', '.']);
        let slice = Self { profile: profile.to_owned(), compute: number(compute)?, gb: number(&rest[..end])? };
        plain.then_some(slice)
    }

    /// MiB of the GPU that it is a slice of: 3g and 4g take four eighths of the memory, and 7g all of it.
    pub(super) fn whole_mib(&self) -> u64 {
        let eighths = match self.compute {
            0..=2 => self.compute.max(1),
            3 | 4 => 4,
            _ => 8,
        };
        self.gb * 1024 * 8 / eighths
    }

    /// Splits `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb` or `a100_1g.5gb` into the GPU and the slice.
    pub(super) fn split(product: &str) -> Option<(&str, Self)> {
        if let Some((gpu, profile)) = product.split_once("-MIG-") {
            return Some((gpu, Self::parse(profile)?));
        }
        let at = product.rfind(['_', '-', ':'])?;
        Some((&product[..at], Self::parse(&product[at + 1..])?))
    }
}

/// A `[[gpu]]` table of the file that is written: a known type with other figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) like: Arc<GpuType>,
    pub(super) memory_mib: u64,
    /// Share of its memory bandwidth, and of its arithmetic.
    pub(super) bandwidth: (u64, u64),
    pub(super) compute: (u64, u64),
    /// The product label that these have.
    pub(super) gfd_product: Option<String>,
}

/// Compute slices of a whole GPU, by the name of its type; all others that can be sliced have 7.
const COMPUTE_SLICES: [(&str, u64); 2] = [("A30", 4), ("RTX-PRO-6000", 4)];

impl Declared {
    /// A slice of a GPU. NVIDIA's MIG guide: a GPU has eight memory slices with their bandwidth, and seven compute slices
    /// (an A30 four of each).
    pub(super) fn slice(gpu: &Arc<GpuType>, slice: &Slice, memory_mib: Option<u64>, product: Option<String>) -> Self {
        let whole = gpu.memory_bytes >> 20;
        // Marketed sizes count GiB; what a driver reports is up to 8 % less.
        let whole_gb = whole.div_ceil(1024).max(1);
        let eighths = ((slice.gb * 8 + whole_gb / 2) / whole_gb).clamp(1, 8);
        let slices = COMPUTE_SLICES.iter().find(|(name, _)| gpu.name.starts_with(name)).map_or(7, |(_, n)| *n);
        // 1g.5gb of an A100 reports 4864 of 5120 MiB: the smallest share seen in the label `nvidia.com/mig-1g.5gb.memory`.
        let memory_mib = memory_mib.unwrap_or(whole * eighths / 8 * 95 / 100);
        Self {
            like: Arc::clone(gpu),
            memory_mib: memory_mib.clamp(1, whole.max(1)),
            bandwidth: (eighths, 8),
            compute: (slice.compute.min(slices), slices),
            gfd_product: product,
        }
    }

    /// A GPU that shows less memory than its type has.
    pub(super) fn smaller(gpu: &Arc<GpuType>, memory_mib: u64) -> Self {
        Self {
            like: Arc::clone(gpu),
            memory_mib: memory_mib.max(1),
            bandwidth: (1, 1),
            compute: (1, 1),
            gfd_product: None,
        }
    }
}

/// What is known of every spelling met so far: clusters of thousands of nodes have a handful of them.
pub(super) type Memo<T> = BTreeMap<(String, Vec<String>, Option<u64>), T>;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(spelled: &str, hints: &[&str], memory_mib: Option<u64>) -> String {
        let catalogue = Catalogue::builtin();
        find(&catalogue, spelled, hints, memory_mib).map_or_else(|| "?".to_owned(), |found| found.gpu.name.clone())
    }

    /// NVML names with blanks as dashes (GPU feature discovery), GKE's accelerator labels, AMD's node labeller, and
    /// types of Slurm sites, with and without `AutoDetect`.
    #[test]
    fn schedulers_spellings_mean_catalogue_types() {
        for (spelled, expected) in [
            ("NVIDIA-A100-SXM4-80GB", "A100-SXM-80GB"),
            ("Tesla-T4", "T4"),
            ("NVIDIA-Tesla-T4", "T4"),
            ("NVIDIA-H100-80GB-HBM3", "H100-SXM-80GB"),
            ("nvidia-tesla-t4", "T4"),
            ("nvidia-tesla-a100", "A100-SXM-40GB"),
            ("nvidia-a100-80gb", "A100-SXM-80GB"),
            ("nvidia-h100-80gb", "H100-SXM-80GB"),
            ("nvidia-l4", "L4"),
            ("AMD_Instinct_MI300X_OAM", "MI300X"),
            ("nvidia_a100-sxm4-80gb", "A100-SXM-80GB"),
            ("tesla_v100-sxm2-16gb", "V100-SXM2-16GB"),
            ("rtx_3090", "RTX-3090"),
            ("nvidia_geforce_rtx_4090", "RTX-4090"),
            ("a100", "A100-SXM-40GB"),
            ("h100-80gb", "H100-SXM-80GB"),
            ("gtx970", "?"),
        ] {
            assert_eq!(name(spelled, &[], None), expected, "{spelled}");
        }
    }

    #[test]
    fn features_and_memory_decide_what_a_short_name_means() {
        assert_eq!(name("a100", &["nvlink", "a100_80g"], None), "A100-SXM-80GB");
        assert_eq!(name("a100", &["80gb"], None), "A100-SXM-80GB");
        assert_eq!(name("a100", &["a100", "gpu"], None), "A100-SXM-40GB");
        assert_eq!(name("v100", &["v100_32g"], None), "V100-SXM2-32GB");
        assert_eq!(name("nvidia-tesla-a100", &[], Some(81920)), "A100-SXM-40GB", "GKE's name is of the 40 GB type");
        assert_eq!(name("a100", &[], Some(81920)), "A100-SXM-80GB");
        let found = find(&Catalogue::builtin(), "a100", &[], None).unwrap();
        assert_eq!(found.others, ["A100-PCIe-40GB", "A100-PCIe-80GB", "A100-SXM-80GB"]);
    }

    /// The shares are those of NVIDIA's MIG guide.
    #[test]
    fn slices_have_their_share() {
        let slice = |gpu: &str, profile| {
            let gpu = Catalogue::builtin().find(gpu).cloned().unwrap();
            let declared = Declared::slice(&gpu, &Slice::parse(profile).unwrap(), None, None);
            (declared.bandwidth.0, declared.compute, declared.memory_mib)
        };
        assert_eq!(slice("A100-SXM-40GB", "1g.5gb"), (1, (1, 7), 4864));
        assert_eq!(slice("A100-SXM-40GB", "3g.20gb"), (4, (3, 7), 19456));
        assert_eq!(slice("A100-SXM-80GB", "7g.80gb"), (8, (7, 7), 77824));
        assert_eq!(slice("H100-SXM-80GB", "1g.10gb+me").0, 1);
        assert_eq!(slice("H100-SXM-80GB", "1g.20gb").0, 2);
        assert_eq!(slice("H200-SXM-141GB", "1g.18gb").0, 1);
        assert_eq!(slice("H200-SXM-141GB", "4g.71gb").0, 4);
        assert_eq!(Slice::parse("1g.10gb").unwrap().whole_mib(), 81_920);
        assert_eq!(Slice::parse("3g.20gb").unwrap().whole_mib(), 40_960);
        assert_eq!(Slice::split("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb").unwrap().0, "NVIDIA-A100-SXM4-40GB");
        assert_eq!(Slice::split("a100_3g.20gb").unwrap().0, "a100");
        for none in ["1g", "g.5gb", "0g.5gb", "1g.5gbx", "99999g.1gb", ""] {
            assert_eq!(Slice::parse(none), None, "{none}");
        }
    }
}

//! Tests of the whole module: the catalogue against published figures, files of the test data, faults and their places.

use super::*;
use crate::diag::{Diagnostic, Diagnostics, Place};
use crate::ty::DType;
use std::path::{Path, PathBuf};

const MIXED: &str = include_str!("../../../testdata/clusters/two-nodes.toml");
const EVERYTHING: &str = include_str!("../../../testdata/clusters/everything.toml");

const REGIONS: &str = include_str!("../../../testdata/clusters/regions.toml");
const GUIDE: &str = include_str!("../../../docs/cluster.md");

const MIB: u64 = 1 << 20;
const TERA: u64 = 1_000_000_000_000;
const GIGA: u64 = 1_000_000_000;

fn gpu(name: &str) -> std::sync::Arc<GpuType> {
    Catalogue::builtin().find(name).cloned().unwrap_or_else(|| panic!("no {name}"))
}

/// NVIDIA's data sheets (A100: 312 TFLOPS bf16, 2,039 GB/s, 400 W; T4: 65 TFLOPS fp16, 320 GB/s, 70 W; H100 SXM: 989
/// dense, 3.35 TB/s; V100: 125) and what nvidia-smi shows of each.
#[test]
fn catalogue_has_the_published_figures() {
    let a100 = gpu("A100-SXM-80GB");
    assert_eq!(a100.peak_flops(DType::BF16), Some(312 * TERA));
    assert_eq!(a100.peak_flops(DType::F32), Some(19 * TERA + TERA / 2));
    assert_eq!((a100.memory_bytes, a100.memory_basis), (81_920 * MIB, Basis::Measured));
    assert_eq!(a100.memory_bytes_per_s, 2039 * GIGA);
    assert_eq!(a100.nvlink_bytes_per_s, Some(300 * GIGA));
    assert_eq!((a100.matmul_efficiency_permille, a100.matmul_basis), (869, Basis::Measured));
    assert_eq!((a100.compute_capability, a100.tdp_w), (Some((8, 0)), Some(400)));
    assert_eq!(a100.price_micro_usd_per_hour, Some((1_390_000, 3_430_000)));

    let t4 = gpu("Tesla T4");
    assert_eq!((t4.peak_flops(DType::F16), t4.peak_flops(DType::BF16)), (Some(65 * TERA), None));
    assert_eq!((t4.memory_bytes, t4.tdp_w), (15_360 * MIB, Some(70)));
    assert_eq!(t4.default_link_kind(), LinkKind::Pcie);
    assert_eq!(t4.matmul_flops(DType::BF16), None);

    let h100 = gpu("NVIDIA-H100-80GB-HBM3");
    assert_eq!((h100.peak_flops(DType::F16), h100.memory_bytes), (Some(989 * TERA), 81_559 * MIB));
    assert_eq!(h100.reserve.workspace_bytes_per_stream, 32 * MIB);
    assert_eq!(gpu("V100-SXM2-32GB").peak_flops(DType::F16), Some(125 * TERA));
    assert!(!gpu("MI300X").cuda && a100.cuda);
}

#[test]
fn only_ampere_and_later_have_bf16() {
    let catalogue = Catalogue::builtin();
    assert_eq!(catalogue.types().len(), 33);
    for gpu in catalogue.types() {
        let old = matches!(gpu.arch, Arch::Pascal | Arch::Volta | Arch::Turing);
        assert_eq!(gpu.is_native(DType::BF16), !old, "{}", gpu.name);
        assert!(gpu.is_native(DType::F32) && !gpu.source.is_empty(), "{}", gpu.name);
    }
}

#[test]
fn absent_figures_stay_absent_and_stand_ins_say_so() {
    let nvl = gpu("H100-NVL-94GB");
    assert_eq!(nvl.peak_flops(DType::BF16), None);
    assert_eq!(nvl.matmul_flops(DType::BF16), Some((60 * TERA / 1000 * 803, Basis::Assumed)));
    let rtx = gpu("3090");
    assert_eq!((rtx.memory_bytes, rtx.memory_basis), (24 * 1024 * MIB / 1000 * 924, Basis::Assumed));
    assert_eq!(gpu("A40").default_link_kind(), LinkKind::Pcie, "its NVLink is a bridge between two cards");
}

#[test]
fn the_driver_keeps_less_than_the_seen_difference() {
    // deviceQuery on A100 80GB: 85,198,045,184 bytes.
    assert!(gpu("A100-80GB").capacity_bytes().abs_diff(85_198_045_184) < MIB);
}

#[test]
fn reads_the_mixed_cluster() {
    let cluster = Cluster::from_toml("mixed.toml", MIXED).unwrap();
    let (a100, t4) = (cluster.group("a100").unwrap(), cluster.group("t4").unwrap());
    assert_eq!((cluster.name.as_str(), cluster.groups.len(), cluster.n_gpus()), ("mixed", 2, 8));
    let between = Link { bytes_per_s: 12_500_000_000, latency_ps: 5_000_000 };
    assert_eq!(cluster.link(a100, t4, false), Some(between));
    assert_eq!(cluster.link(a100, t4, true), Some(between));
    assert_eq!(cluster.link(a100, a100, true), Some(Link { bytes_per_s: 300 * GIGA, latency_ps: 8_000_000 }));
    assert_eq!(cluster.link(t4, t4, true), Some(Link { bytes_per_s: 15_754_000_000, latency_ps: 10_000_000 }));
    let counts: Vec<(String, u64)> = cluster.gpus_by_type().into_iter().map(|(gpu, n)| (gpu.name.clone(), n)).collect();
    assert_eq!(counts, [("A100-SXM-80GB".to_owned(), 4), ("T4".to_owned(), 4)]);
    let group = &cluster.groups[t4];
    assert_eq!(group.capacity_bytes(), (15_360 - 669) * MIB);
    let beyond = 943 * MIB + 2 * 8320 * 1024 + 544 * MIB + 688 * MIB;
    assert_eq!(group.reserve.beyond_arena(2, &[2, 4, 1]), beyond);
    assert_eq!(group.arena_budget(2, &[2, 4, 1]), group.capacity_bytes() - beyond);
}

#[test]
fn reads_every_key() {
    let cluster = Cluster::from_toml("everything.toml", EVERYTHING).unwrap();
    let id = |name| cluster.group(name).unwrap();
    let (new, old, own) = (id("new"), id("old"), id("own"));
    let link = |bytes_per_s, latency_ps| Some(Link { bytes_per_s, latency_ps });
    assert_eq!(cluster.link(new, new, true), link(360 * GIGA, 2_500_000));
    assert_eq!(cluster.link(new, new, false), link(25 * GIGA, 3_000_000));
    assert_eq!(cluster.link(new, old, false), link(1_250_000_000, 40_000_000));
    assert_eq!(cluster.link(old, new, false), link(1_250_000_000, 40_000_000));
    assert_eq!(cluster.link(old, own, false), link(625_000_000, 3_000_000));
    assert_eq!(cluster.link(own, old, false), link(125_000_000, 3_000_000));
    assert_eq!(cluster.link(own, own, false), None);
    assert_eq!(cluster.link(own, new, false), link(25 * GIGA, 3_000_000));
    let slowdown = |kind| {
        let of = cluster.contention.of(kind);
        (of.compute_permille, of.transfer_permille)
    };
    let all = TransferKind::ALL.map(slowdown);
    assert_eq!(all, [(1000, 1000), (1100, 1000), (1300, 1050), (1189, 1000)], "what is not given is the catalogue's");
    let group = &cluster.groups[new];
    assert_eq!((group.region.as_deref(), group.price_micro_usd_per_hour), (Some("eu-west"), Some(3_500_000)));
    assert_eq!(group.labels["topology.kubernetes.io/zone"], "b");
    let expected = MemoryReserve {
        driver_bytes: 551 * MIB,
        context_bytes: 500 * MIB,
        workspace_bytes_per_stream: 64 * MIB,
        pair_communicator_bytes: 100 * MIB,
        communicator_bytes: 200 * MIB,
    };
    assert_eq!(group.reserve, expected);
    assert_eq!((group.nodes, cluster.groups[old].nodes, cluster.groups[own].n_gpus()), (2, 1, 6));
    assert_eq!(cluster.groups[old].link_kind, LinkKind::Pcie);
    assert_eq!(cluster.groups[old].gpu.matmul_efficiency_permille, 620);
    assert_eq!(cluster.groups[old].gpu.peak_flops(DType::F16), Some(125 * TERA), "the override keeps other figures");
    assert_eq!(cluster.groups[own].gpu.peak_flops(DType::BF16), Some(165 * TERA));
}

/// Regions: a default between any two, one pair of its own, and nodes of one region that are near each other.
#[test]
fn regions_are_as_far_apart_as_the_file_says() {
    let cluster = Cluster::from_toml("regions.toml", REGIONS).unwrap();
    let id = |name| cluster.group(name).unwrap();
    let rate = |a, b| cluster.link(id(a), id(b), false).map(|link| link.bytes_per_s * 8 / GIGA);
    assert_eq!((rate("eu-a", "eu-b"), rate("eu-a", "eu-a")), (Some(100), Some(100)));
    assert_eq!((rate("eu-a", "us"), rate("us", "eu-b")), (Some(5), Some(5)));
    assert_eq!((rate("eu-a", "ap"), rate("ap", "us")), (Some(1), None));
    assert_eq!(rate("lab", "us"), Some(100), "a group without a region is near to all");
    assert_eq!(rate("eu-b", "ap"), Some(2), "a link between groups goes before one between regions");
    assert_eq!(cluster.link(id("us"), id("eu-a"), false).unwrap().latency_ps, 80_000_000_000);
    let links: Vec<_> = cluster.region_links().map(|(a, b, link)| (a, b, link.is_some())).collect();
    assert_eq!(links, [("eu", "us", true), ("us", "ap", false)]);
    assert_eq!(cluster.link_between_regions().flatten().map(|link| link.bytes_per_s * 8 / GIGA), Some(1));
}

/// Groups of equal nodes are one; what makes them differ, or a link of their own, keeps them apart.
#[test]
fn equal_groups_are_merged() {
    let group = |name: &str, more: &str| {
        format!("[[group]]\nname = \"{name}\"\ngpu = \"T4\"\ngpus_per_node = 4\nnodes = 3\n{more}\n")
    };
    let text = group("a", "")
        + &group("zone", "labels = { zone = \"b\" }")
        + &group("b", "")
        + &group("slow", "")
        + &group("c", "")
        + &group("dear", "price_usd_per_gpu_hour = 9")
        + "[network]\nbandwidth_gbps = 10\n[[network.link]]\n\
           between = [\"slow\", \"a\"]\nbandwidth_gbps = 1\n";
    let cluster = Cluster::from_toml("merge.toml", &text).unwrap();
    let merged = cluster.merged();
    let shown: Vec<(&str, u32)> = merged.groups.values().map(|group| (group.name.as_str(), group.nodes)).collect();
    assert_eq!(shown, [("a", 3), ("zone", 3), ("b", 6), ("slow", 3), ("dear", 3)]);
    for (from, old_from) in merged.groups.iter().map(|(id, group)| (id, cluster.group(&group.name).unwrap())) {
        for (to, old_to) in merged.groups.iter().map(|(id, group)| (id, cluster.group(&group.name).unwrap())) {
            assert_eq!(merged.link(from, to, false), cluster.link(old_from, old_to, false));
        }
    }
    assert_eq!(merged.n_gpus(), cluster.n_gpus());
    let regions = Cluster::from_toml("regions.toml", REGIONS).unwrap();
    assert_eq!(regions.merged(), regions);
    let two = regions.only(&[regions.group("ap").unwrap(), regions.group("us").unwrap()]);
    let (ap, us) = (two.group("ap").unwrap(), two.group("us").unwrap());
    assert_eq!((two.groups.len(), two.link(ap, us, false), two.link(us, us, false).is_some()), (2, None, true));
}

/// A new type takes the figures of another that it does not give itself, and none of its names.
#[test]
fn a_type_like_another() {
    let text = "[[gpu]]\nname = \"half\"\nlike = \"A100-SXM-80GB\"\nmemory_mib = 40000\nbf16_tflops = 156\n\
                [[group]]\ngpu = \"half\"\ngpus_per_node = 2\n[[group]]\nname = \"whole\"\ngpu = \"A100-SXM-80GB\"\n\
                gpus_per_node = 1\n[network]\nbandwidth_gbps = 10\n";
    let cluster = Cluster::from_toml("like.toml", text).unwrap();
    let (half, whole) = (&cluster.groups[cluster.group("group-1").unwrap()].gpu, &gpu("A100-SXM-80GB"));
    assert_eq!((half.memory_bytes, half.peak_flops(DType::BF16)), (40_000 * MIB, Some(156 * TERA)));
    assert_eq!(
        (half.memory_bytes_per_s, half.peak.fp32, half.arch),
        (whole.memory_bytes_per_s, whole.peak.fp32, whole.arch)
    );
    assert_eq!((half.gfd_product.as_ref(), half.aliases.len(), half.slurm_type.as_deref()), (None, 0, Some("a100")));
    assert_eq!(&cluster.groups[cluster.group("whole").unwrap()].gpu, whole);
}

/// Ten thousand groups in three hundred regions, without a default link, and as many faults: each is told of quickly.
#[test]
fn ten_thousand_groups_with_faults() {
    let mut text = "[network]\nbetween_regions = { bandwidth_gbps = 1 }\n".to_owned();
    for i in 0..10_000 {
        text += &format!("[[group]]\nname = \"n{i}\"\ngpu = \"T4\"\ngpus_per_node = 1\nregion = \"r{}\"\n", i % 300);
    }
    let cluster = Cluster::from_toml("regions.toml", &text).unwrap();
    let (a, b, c) = (cluster.group("n0").unwrap(), cluster.group("n300").unwrap(), cluster.group("n1").unwrap());
    assert_eq!((cluster.link(a, b, false), cluster.link(a, c, false).is_some()), (None, true));
    let faults = Cluster::from_toml("faults.toml", &text.replace("\"T4\"", "\"A100-SMX\"")).unwrap_err();
    assert_eq!(faults.len(), 50);
    assert_eq!(faults[49].notes, ["9950 more faults in this file are not shown"]);
}

#[test]
fn an_override_leaves_the_builtin_catalogue_alone() {
    let text = "[[gpu]]\nname = \"T4\"\nmemory_mib = 15000\n";
    let merged = Catalogue::builtin().merged("over.toml", text).unwrap();
    assert_eq!(merged.find("t4").unwrap().memory_bytes, 15_000 * MIB);
    assert_eq!(merged.find("t4").unwrap().memory_bytes_per_s, 320 * GIGA);
    assert_eq!(gpu("t4").memory_bytes, 15_360 * MIB);
    let cluster = Cluster::from_toml_with(&merged, "mixed.toml", MIXED).unwrap();
    assert_eq!(cluster.groups[cluster.group("t4").unwrap()].gpu.memory_bytes, 15_000 * MIB);
}

#[test]
fn ten_thousand_nodes_one_by_one() {
    let mut text = "[network]\nbandwidth_gbps = 100\n".to_owned();
    for i in 0..10_000 {
        text += &format!("[[group]]\nname = \"n{i}\"\ngpu = \"T4\"\ngpus_per_node = 8\n");
        text += &format!("[[network.link]]\nbetween = [\"n{i}\", \"n{}\"]\nbandwidth_gbps = 50\n", i * 7 % 10_000);
    }
    // Pairs of the links above may meet twice; only distinct ones are kept.
    let text = without_repeated_links(&text);
    let cluster = Cluster::from_toml("big.toml", &text).unwrap();
    assert_eq!((cluster.groups.len(), cluster.n_gpus()), (10_000, 80_000));
    assert_eq!(cluster.gpus_by_type().len(), 1);
}

fn without_repeated_links(text: &str) -> String {
    let mut seen = std::collections::BTreeSet::new();
    let tables = text.split("[[network.link]]\n").enumerate().map(|(i, part)| {
        let (link, rest) =
            if i == 0 { ("", part) } else { part.split_at(part.find("[[group]]").unwrap_or(part.len())) };
        let mut names: Vec<&str> = link.split('"').skip(1).step_by(2).collect();
        names.sort_unstable();
        let fresh = i > 0 && seen.insert(names.join(" "));
        if fresh { format!("[[network.link]]\n{link}{rest}") } else { rest.to_owned() }
    });
    tables.collect()
}

/// No panic on any text: every prefix of a full file, every byte of it replaced, deep nesting.
#[test]
fn damaged_files_give_diagnostics() {
    let read = |text: &str| {
        if let Err(faults) = Cluster::from_toml("damaged", text) {
            assert!(faults.iter().any(Diagnostic::is_error), "{text}");
            for label in faults.iter().flat_map(|fault| &fault.labels) {
                let Place::Source { start, end, .. } = &label.place else { panic!("a place in the text") };
                assert!(text.get(*start..*end).is_some(), "{start}..{end} cuts a character or leaves the text\n{text}");
            }
        }
    };
    for end in 0..EVERYTHING.len() {
        read(&EVERYTHING[..end]);
        for with in ["", "\"", "-", "é"] {
            read(&format!("{}{with}{}", &EVERYTHING[..end], &EVERYTHING[end + 1..]));
        }
    }
    read(&format!("a = {}", "[".repeat(100_000)));
    read(&format!("[{}a]", "a.".repeat(100_000)));
    read(
        "[[group]]\nname = \"x\"\ngpu = \"T4\"\ngpus_per_node = nan\n[network]\nbandwidth_gbps = inf\nlatency_us = nan\n",
    );
}

#[test]
fn codes_are_in_order_and_documented() {
    assert!(CLUSTER_CODES.windows(2).all(|pair| pair[0].0[1..] < pair[1].0[1..]));
    let table: String = CLUSTER_CODES.iter().map(|(code, meaning)| format!("| {code} | {meaning} |\n")).collect();
    assert!(GUIDE.ends_with(&table), "docs/cluster.md must end with\n{table}");
}

#[test]
fn the_example_of_the_guide_is_the_mixed_cluster() {
    let example = GUIDE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(Cluster::from_toml("guide", example), Cluster::from_toml("mixed.toml", MIXED));
}

/// Every file of `testdata/clusters/bad` ends with the diagnostics it must give, as comments; `BLESS=1` rewrites them.
#[test]
fn faulty_files_give_the_diagnostics_they_state() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clusters/bad");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut used = std::collections::BTreeSet::new();
    let mut stale = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let input = text.split("\n# expect:\n").next().unwrap().trim_end();
        let name = file.file_name().unwrap().to_str().unwrap();
        let faults = Cluster::from_toml(name, &format!("{input}\n")).expect_err(name);
        used.extend(faults.iter().map(|fault| fault.code));
        let expected = format!("{input}\n\n# expect:\n{}", render(input, &faults));
        if text != expected {
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&file, expected).unwrap();
            } else {
                stale.push(format!("{name}: expected this file\n{text}\nfound\n{expected}"));
            }
        }
    }
    assert!(stale.is_empty(), "{}\nto accept, run again with BLESS=1", stale.join("\n"));
    let imports = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clusters/import")).unwrap();
    let imports =
        imports.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "expected"));
    let said: String = imports.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // Of a file that is too large there is no golden.
    used.extend(CLUSTER_CODES.iter().map(|(code, _)| *code).filter(|code| said.contains(*code) || *code == "E0316"));
    let unused: Vec<&str> = CLUSTER_CODES.iter().map(|(code, _)| *code).filter(|code| !used.contains(code)).collect();
    assert!(unused.is_empty(), "no faulty file gives {unused:?}");
}

fn render(text: &str, faults: &Diagnostics) -> String {
    let mut lines = String::new();
    for fault in faults {
        lines += &format!("# {fault}\n");
        for label in &fault.labels {
            let Place::Source { start, end, .. } = &label.place else { panic!("a place in the text") };
            let line = text[..(*start).min(text.len())].matches('\n').count() + 1;
            let shown = text.get(*start..*end).unwrap_or("").lines().next().unwrap_or("");
            lines += &format!("#   {line}: `{shown}`: {}\n", label.text);
        }
        for note in &fault.notes {
            lines += &format!("#   note: {note}\n");
        }
        if let Some(help) = &fault.help {
            lines += &format!("#   help: {help}\n");
        }
    }
    lines
}

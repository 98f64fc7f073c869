//! Tests of the readers on files of schedulers, on broken files, and on files that chance breaks.

use super::*;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clusters/import")
}

/// Files that are read together, with what they hold.
type Files = Vec<(String, Vec<u8>)>;

/// The inputs of the folder, sorted: files, and folders whose files are read together.
fn inputs() -> Vec<(String, Files)> {
    let list = |folder: &Path| {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let file = |path: &PathBuf| (name(path), std::fs::read(path).unwrap());
    let inputs = list(&folder()).into_iter().filter(|path| path.extension().is_none_or(|ext| ext != "expected"));
    inputs
        .map(|path| {
            let files = if path.is_dir() { list(&path).iter().map(file).collect() } else { vec![file(&path)] };
            (name(&path), files)
        })
        .collect()
}

fn read(files: &[(String, Vec<u8>)], options: &ImportOptions) -> Result<Imported, Diagnostics> {
    let files: Vec<ClusterFile<'_>> = files.iter().map(|(name, bytes)| ClusterFile { name, bytes }).collect();
    Imported::read(&files, options)
}

fn read_text(name: &str, text: &str) -> Result<Imported, Diagnostics> {
    Imported::read(&[ClusterFile { name, bytes: text.as_bytes() }], &ImportOptions::default())
}

fn code(result: Result<Imported, Diagnostics>) -> &'static str {
    result.map_or_else(|faults| faults.first().map_or("none", |fault| fault.code), |_| "read")
}

fn shown(diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        out += &format!("# {diagnostic}\n");
        for label in &diagnostic.labels {
            let Place::Source { file, start, .. } = &label.place else { panic!("a place in the text") };
            out += &format!("#   {file}, byte {start}: {}\n", label.text);
        }
        for note in &diagnostic.notes {
            out += &format!("#   note: {note}\n");
        }
        if let Some(help) = &diagnostic.help {
            out += &format!("#   help: {help}\n");
        }
    }
    out
}

/// Every input has a file `INPUT.expected` with what is said of it and the description that comes of it; `BLESS=1`
/// rewrites them. `sinfo-22.05.json`, `scontrol-22.05.txt` and `slurm-22.05` are of a real Slurm; the forms of the others
/// are documented by their makers.
#[test]
fn files_of_schedulers_give_the_expected_descriptions() {
    let mut stale = Vec::new();
    for (name, files) in inputs() {
        let text = match read(&files, &ImportOptions::default()) {
            Ok(imported) => {
                let again = Imported::read(
                    &[ClusterFile { name: "again.toml", bytes: imported.toml.as_bytes() }],
                    &ImportOptions::default(),
                );
                assert_eq!(again.unwrap().cluster, imported.cluster, "{name}");
                shown(&imported.notes) + &imported.toml
            }
            Err(faults) => {
                assert!(faults.iter().any(Diagnostic::is_error), "{name}");
                shown(&faults)
            }
        };
        let path = folder().join(format!("{name}.expected"));
        if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&path, text).unwrap();
            } else {
                stale.push(format!("{name}: found\n{text}"));
            }
        }
    }
    assert!(stale.is_empty(), "{}\nto accept, run again with BLESS=1", stale.join("\n"));
}

/// A file of hundreds of kilobytes that ends in the middle, or is nested deeply, or is of the wrong kind.
#[test]
fn files_that_are_none_of_a_scheduler() {
    assert_eq!(code(read_text("x", "")), "E0308");
    assert_eq!(code(read_text("x", " \r\n\t\u{feff}")), "E0301");
    assert_eq!(code(read_text("x", &"[".repeat(500_000))), "E0301");
    assert_eq!(code(read_text("x", &format!("{{\"items\":{}", "[".repeat(500_000)))), "E0314");
    assert_eq!(code(read_text("x", &"{\"a\":".repeat(100_000))), "E0314");
    assert_eq!(code(read_text("x", "{\"kind\":\"PodList\",\"items\":[]}")), "E0315");
    assert_eq!(code(read_text("x", "{\"kind\":\"List\",\"items\":[{\"kind\":\"Pod\"}]}")), "E0315");
    assert_eq!(code(read_text("x", "[{\"kind\":\"Node\"}]")), "E0315");
    assert_eq!(code(read_text("x", "{\"kind\":\"List\",\"items\":[]}")), "E0308");
    assert_eq!(code(read_text("x", "{\"sinfo\":[]}")), "E0308");
    assert_eq!(code(read_text("x", "{\"nodes\":7}")), "E0314");
    assert_eq!(code(read_text("x", "{\"jobs\":[]}")), "E0315");
    let bytes = |bytes: &[u8]| code(Imported::read(&[ClusterFile { name: "x", bytes }], &ImportOptions::default()));
    assert_eq!(bytes(b"\x89PNG\r\n\x1a\n\0\0\xff"), "E0315");
    assert_eq!(bytes(b"abc\0def"), "E0315");
    assert_eq!(bytes(&[0xff, 0xfe, 0x00]), "E0315");
    assert_eq!(code(Imported::read(&[], &ImportOptions::default())), "E0315");
    assert_eq!(code(read_text("x", &"# comment\n".repeat(2_000_000))), "E0316");
}

/// The byte order marks that editors and shells of Windows write, and their line ends.
#[test]
fn texts_of_windows_read_as_any_other() {
    let toml = "name = \"x\"\n[[group]]\ngpu = \"T4\"\ngpus_per_node = 4\n";
    let json = std::fs::read_to_string(folder().join("kubernetes.json")).unwrap();
    let conf = "NodeName=n[1-2] Gres=gpu:t4:2\nPartitionName=p Nodes=ALL\n";
    for text in [toml, json.as_str(), conf] {
        let plain = read_text("x", text).unwrap();
        let lines = text.replace('\n', "\r\n");
        let utf16 =
            |join: fn(u16) -> [u8; 2]| "\u{feff}".encode_utf16().chain(lines.encode_utf16()).flat_map(join).collect();
        for bytes in [utf16(u16::to_le_bytes), utf16(u16::to_be_bytes), format!("\u{feff}{lines}").into_bytes()] {
            let bytes: Vec<u8> = bytes;
            let read = Imported::read(&[ClusterFile { name: "x", bytes: &bytes }], &ImportOptions::default()).unwrap();
            assert_eq!((read.cluster, read.notes), (plain.cluster.clone(), plain.notes.clone()));
        }
    }
}

#[test]
fn what_the_description_leaves_open_can_be_given() {
    let file = |name: &str| {
        let (_, files) = inputs().into_iter().find(|(found, _)| found == name).unwrap();
        files
    };
    let shared = ImportOptions { shared: true, ..ImportOptions::default() };
    let cluster = read(&file("kubernetes-shared.json"), &shared).unwrap().cluster;
    assert_eq!(cluster.n_gpus(), 2 + 4, "two whole GPUs are shared by four each");
    let fast = ImportOptions {
        bandwidth_bytes_per_s: Some(50_000_000_000),
        latency_ps: Some(2_500_000),
        gpu: Some("A40".to_owned()),
        ..ImportOptions::default()
    };
    let imported = read(&file("untyped.conf"), &fast).unwrap();
    assert!(imported.notes.iter().all(|note| note.code == "N0319"), "nothing is assumed: {:?}", imported.notes);
    let link = imported.cluster.default_link().unwrap();
    assert_eq!((link.bytes_per_s, link.latency_ps), (50_000_000_000, 2_500_000));
    assert!(imported.cluster.groups.values().all(|group| group.gpu.name == "A40"));
    let unknown = ImportOptions { gpu: Some("A4O".to_owned()), ..ImportOptions::default() };
    assert_eq!(code(read(&file("untyped.conf"), &unknown)), "E0307");
}

/// A TOML file with GPU types beside the nodes: the description takes them over.
#[test]
fn types_of_ones_own_come_along() {
    let mut files = vec![("n.conf".to_owned(), b"NodeName=n1 Gres=gpu:gtx970:2\n".to_vec())];
    assert_eq!(code(read(&files, &ImportOptions::default())), "E0308");
    let types = "[[gpu]]\nname = \"GTX-970\"\nlike = \"RTX-2080-Ti\"\nmemory_mib = 4096\nslurm_type = \"gtx970\"\n";
    files.push(("types.toml".to_owned(), types.as_bytes().to_vec()));
    let imported = read(&files, &ImportOptions::default()).unwrap();
    assert_eq!(imported.cluster.groups.values().next().unwrap().gpu.memory_bytes, 4096 << 20);
    assert!(imported.toml.contains(types.trim()), "{}", imported.toml);
    files.push(("second.conf".to_owned(), b"{\"nodes\": []}".to_vec()));
    assert_eq!(code(read(&files, &ImportOptions::default())), "E0315");
}

/// Ten thousand nodes one by one, of three types in two zones, make as many groups as there are kinds.
#[test]
fn equal_nodes_of_large_clusters_are_one_group() {
    let mut text = String::from("{\"kind\":\"List\",\"items\":[");
    for i in 0..10_000 {
        let product = ["NVIDIA-A100-SXM4-80GB", "Tesla-T4", "NVIDIA-H100-80GB-HBM3"][i % 3];
        text += &format!(
            "{}{{\"kind\":\"Node\",\"metadata\":{{\"name\":\"n{i}\",\"labels\":{{\"nvidia.com/gpu.product\":\"{product}\",\
             \"topology.kubernetes.io/zone\":\"z{}\"}}}},\"status\":{{\"allocatable\":{{\"nvidia.com/gpu\":\"8\"}}}}}}",
            if i > 0 { "," } else { "" },
            i % 2
        );
    }
    let cluster = read_text("nodes.json", &(text + "]}")).unwrap().cluster;
    assert_eq!((cluster.groups.len(), cluster.n_gpus()), (6, 80_000));
    let cluster = read_text("slurm.conf", "NodeName=n[00001-10000] Gres=gpu:a100:8 Feature=80gb\n").unwrap().cluster;
    assert_eq!((cluster.groups.len(), cluster.n_gpus()), (1, 80_000));
}

/// Whatever chance does to a file, it is read or refused, and places lie within it.
#[test]
fn damaged_files_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    const BITS: [&[u8]; 12] =
        [b"\"", b"{", b"]", b"[1-", b",", b"=", b"\n", b"\0", b"\xff", b"99999999999999999999", b"gpu:", b"-1"];
    for (name, files) in inputs() {
        for _ in 0..150 {
            let mut files = files.clone();
            let position = random(files.len());
            let file = &mut files[position].1;
            for _ in 0..=random(4) {
                let at = random(file.len());
                match random(4) {
                    0 => file.truncate(at),
                    1 => drop(file.splice(at..at, BITS[random(BITS.len())].iter().copied())),
                    2 => drop(file.drain(at..(at + random(40)).min(file.len()))),
                    _ => file.iter_mut().skip(at).take(1).for_each(|byte| *byte = random(256) as u8),
                }
            }
            let length = file.len();
            if let Err(faults) = read(&files, &ImportOptions::default()) {
                assert!(faults.iter().any(Diagnostic::is_error), "{name}");
                for label in faults.iter().flat_map(|fault| &fault.labels) {
                    let Place::Source { start, end, .. } = &label.place else { panic!("a place in the text") };
                    assert!(start <= end && (files.len() > 1 || *end <= length), "{name}: {start}..{end} of {length}");
                }
            }
        }
    }
}

//! `trainc cluster`: shows a cluster, and turns what schedulers say of their nodes into a description.

use crate::args::{ClusterCommand, ImportArgs};
use crate::output::Output;
use crate::table::{Align, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trainc::units::{bytes, count, time};
use trainc::{Failure, read_cluster};
use trainc_backend::write_file;
use trainc_ir::{Cluster, DType, GpuType, Link, NodeGroup};

/// Groups that are shown one by one.
const MOST_ROWS: usize = 40;

/// Shows or imports a cluster.
pub(crate) fn run(command: &ClusterCommand, output: Output) -> Result<(), Failure> {
    match command {
        ClusterCommand::Show(args) => show(args, output),
        ClusterCommand::Import { args, output: file } => {
            let imported = read_cluster(&args.files, &args.options()?)?;
            output.diagnostics(&imported.notes);
            let Some(file) = file else {
                output.asked(&imported.toml);
                return Ok(());
            };
            write_file(file, imported.toml.as_bytes())?;
            output.report(&format!("{}\nwrote {}\n", head(&imported.cluster), file.display()));
            output.object(&object(&imported.cluster));
            Ok(())
        }
    }
}

fn show(args: &ImportArgs, output: Output) -> Result<(), Failure> {
    let imported = read_cluster(&args.files, &args.options()?)?;
    output.diagnostics(&imported.notes);
    let cluster = &imported.cluster;
    let sections = [head(cluster) + "\n" + &groups(cluster), links(cluster), types(cluster)];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    output.report(&sections.join("\n"));
    output.object(&object(cluster));
    Ok(())
}

/// One line for everything.
fn head(cluster: &Cluster) -> String {
    let nodes: u64 = cluster.groups.values().map(|group| u64::from(group.nodes)).sum();
    let price: u128 = cluster.groups.values().map(|group| u128::from(price(group)) * u128::from(group.n_gpus())).sum();
    let unpriced = cluster.groups.values().any(|group| group.price_micro_usd_per_hour.is_none());
    let price = match (price, unpriced) {
        (0, _) => String::new(),
        (_, true) => format!(", {} USD/h and more", dollars(price)),
        (_, false) => format!(", {} USD/h", dollars(price)),
    };
    let (groups, gpus) = (cluster.groups.len() as u64, cluster.n_gpus());
    format!(
        "{}: {} on {} in {}{price}",
        cluster.name,
        counted(gpus, "GPU", "GPUs"),
        counted(nodes, "node", "nodes"),
        counted(groups, "group", "groups")
    )
}

fn groups(cluster: &Cluster) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("group", Left),
        ("GPU", Left),
        ("nodes", Right),
        ("GPUs each", Right),
        ("usable memory", Right),
        ("inside a node", Left),
        ("USD/h each", Right),
        ("region", Left),
    ]);
    for group in cluster.groups.values().take(MOST_ROWS) {
        let price = group.price_micro_usd_per_hour.map_or_else(|| "-".to_owned(), |price| dollars(u128::from(price)));
        let inside = match group.gpus_per_node {
            1 => String::new(),
            _ => format!("{} {}", if group.link_kind.name() == "pcie" { "PCIe" } else { "NVLink" }, link(&group.link)),
        };
        table.row([
            group.name.clone(),
            group.gpu.name.clone(),
            count(u64::from(group.nodes)),
            group.gpus_per_node.to_string(),
            bytes(usable(group)),
            inside,
            price,
            group.region.clone().unwrap_or_default(),
        ]);
    }
    table.print() + &more(cluster.groups.len(), "group", "groups")
}

fn links(cluster: &Cluster) -> String {
    if cluster.groups.len() == 1 && cluster.groups.values().all(|group| group.nodes == 1) {
        return String::new();
    }
    let mut table = Table::new(&[("between nodes", Align::Left), ("one direction", Align::Left)]);
    let shown = |found: Option<Link>| found.map_or_else(|| "not connected".to_owned(), |found| link(&found));
    table.row(["any two".to_owned(), shown(cluster.default_link())]);
    if let Some(between) = cluster.link_between_regions() {
        table.row(["of two regions".to_owned(), shown(between)]);
    }
    let mut rows: Vec<[String; 2]> = Vec::new();
    rows.extend(cluster.region_links().map(|(a, b, found)| [format!("regions {a} - {b}"), shown(found)]));
    let listed: BTreeMap<_, _> = cluster.listed_links().map(|(from, to, found)| ((from, to), found)).collect();
    for (&(from, to), &found) in &listed {
        let (a, b) = (&cluster.groups[from].name, &cluster.groups[to].name);
        let both = listed.get(&(to, from)) == Some(&found);
        match (both, from <= to) {
            (true, true) => rows.push([format!("{a} - {b}"), shown(found)]),
            (true, false) => {}
            (false, _) => rows.push([format!("{a} -> {b}"), shown(found)]),
        }
    }
    let n = rows.len();
    for row in rows.into_iter().take(MOST_ROWS) {
        table.row(row);
    }
    table.print() + &more(n, "link", "links")
}

fn types(cluster: &Cluster) -> String {
    use Align::{Left, Right};
    let columns =
        [("GPU type", Left), ("count", Right), ("memory", Right), ("native", Left), ("TFLOP/s", Left), ("", Left)];
    let mut table = Table::new(&columns);
    let all = cluster.gpus_by_type();
    for (gpu, n) in all.iter().take(MOST_ROWS) {
        let natives: Vec<&str> = gpu.native.iter().map(|dtype| dtype.name()).collect();
        let peaks: Vec<String> = peaks(gpu).map(|(dtype, peak)| format!("{} {}", dtype, tera(peak))).collect();
        let only = if gpu.cuda { String::new() } else { "estimates only: no CUDA".to_owned() };
        let row = [gpu.name.clone(), count(*n), bytes(gpu.memory_bytes), natives.join(" "), peaks.join(", "), only];
        table.row(row);
    }
    table.print() + &more(all.len(), "type", "types")
}

fn more(n: usize, one: &str, many: &str) -> String {
    match n.saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("  and {} more\n", counted(rest as u64, one, many)),
    }
}

/// Everything, for other programs.
fn object(cluster: &Cluster) -> Value {
    let link = |found: Option<Link>| {
        found.map(|found| json!({"bytes_per_s": found.bytes_per_s, "latency_ps": found.latency_ps}))
    };
    let group = |group: &NodeGroup| {
        json!({
            "name": group.name,
            "gpu": group.gpu.name,
            "nodes": group.nodes,
            "gpus_per_node": group.gpus_per_node,
            "memory_bytes": group.gpu.memory_bytes,
            "capacity_bytes": group.capacity_bytes(),
            "usable_bytes": usable(group),
            "link": {"kind": group.link_kind.name(), "bytes_per_s": group.link.bytes_per_s, "latency_ps": group.link.latency_ps},
            "native": group.gpu.native.iter().map(|dtype| dtype.name()).collect::<Vec<_>>(),
            "peak_flops": peaks(&group.gpu).map(|(name, peak)| (name.to_owned(), json!(peak))).collect::<serde_json::Map<_, _>>(),
            "compiles": group.gpu.cuda,
            "price_micro_usd_per_gpu_hour": group.price_micro_usd_per_hour,
            "region": group.region,
            "labels": group.labels,
        })
    };
    let listed = cluster.listed_links().map(|(from, to, found)| {
        json!({"from": cluster.groups[from].name, "to": cluster.groups[to].name, "link": link(found)})
    });
    let regions = cluster.region_links().map(|(a, b, found)| json!({"regions": [a, b], "link": link(found)}));
    json!({
        "name": cluster.name,
        "gpus": cluster.n_gpus(),
        "groups": cluster.groups.values().map(group).collect::<Vec<_>>(),
        "network": {
            "default": link(cluster.default_link()),
            "between_regions": cluster.link_between_regions().map(link),
            "links": listed.chain(regions).collect::<Vec<_>>(),
        },
    })
}

/// Bytes for the buffers of a plan on one GPU: what a program sees, less context and the workspace of one stream.
fn usable(group: &NodeGroup) -> u64 {
    group.arena_budget(1, &[])
}

fn peaks(gpu: &GpuType) -> impl Iterator<Item = (&'static str, u64)> {
    [DType::F32, DType::F16, DType::BF16]
        .into_iter()
        .filter_map(|dtype| gpu.peak_flops(dtype).map(|peak| (dtype.name(), peak)))
}

fn price(group: &NodeGroup) -> u64 {
    group.price_micro_usd_per_hour.unwrap_or(0)
}

fn dollars(micro_usd: u128) -> String {
    let cents = (micro_usd + 5_000) / 10_000;
    format!("{}.{:02}", count(u64::try_from(cents / 100).unwrap_or(u64::MAX)), cents % 100)
}

fn link(link: &Link) -> String {
    format!("{} GB/s, {}", milli(link.bytes_per_s / 1_000_000), time(link.latency_ps))
}

fn tera(flops: u64) -> String {
    milli(flops / 1_000_000_000)
}

/// Thousandths as a number without needless zeros.
fn milli(thousandths: u64) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number of things, with separators.
fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

//! Writes a cluster description in the form that `docs/cluster.md` describes.

use super::ImportOptions;
use super::gather::Key;
use super::hostlist::some;
use super::product::Declared;
use crate::cluster::codes;
use crate::diag::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Bytes per second between two nodes whose network nobody described: 10 Gb/s, the least that servers with GPUs have, so
/// that no plan looks better than it is.
const ASSUMED_BYTES_PER_S: u64 = 1_250_000_000;
/// The same between two regions: 1 Gb/s over 50 ms, an ocean apart.
const ASSUMED_BETWEEN_REGIONS: (u64, u64) = (125_000_000, 50_000_000_000);
/// Picoseconds in a microsecond.
const PS_PER_US: u64 = 1_000_000;

/// The description, and what it assumes. `types` are texts of `[[gpu]]` tables that it takes over.
pub(super) fn toml(
    name: &str,
    declared: &BTreeMap<String, Declared>,
    groups: &[(Key, Vec<String>)],
    types: &[String],
    options: &ImportOptions,
) -> (String, Option<Diagnostic>) {
    let mut out = format!("# Imported by trainc.\nname = {}\n", text(name));
    let mut taken = Names::default();
    for (key, nodes) in groups {
        group(&mut out, key, nodes, &mut taken);
    }
    let assumed = network(&mut out, groups, options);
    for tables in types {
        out = out + "\n" + tables.trim() + "\n";
    }
    for (name, declared) in declared {
        gpu(&mut out, name, declared);
    }
    (out, assumed)
}

/// Names given to groups, and the last number given behind each.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    numbers: BTreeMap<String, u64>,
}

impl Names {
    /// A name that no other group has: the base itself, or with a number.
    fn name(&mut self, base: &str) -> String {
        loop {
            let number = self.numbers.entry(base.to_owned()).and_modify(|n| *n += 1).or_insert(1);
            let name = if *number == 1 { base.to_owned() } else { format!("{base}-{number}") };
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn group(out: &mut String, key: &Key, nodes: &[String], taken: &mut Names) {
    let name = taken.name(&key.gpu.to_ascii_lowercase());
    line(out, format_args!("\n# {}", one_line(&some(nodes))));
    line(out, format_args!("[[group]]\nname = {}\ngpu = {}", text(&name), text(&key.gpu)));
    line(out, format_args!("nodes = {}\ngpus_per_node = {}", nodes.len(), key.count));
    if key.pcie {
        line(out, format_args!("link = {{ kind = \"pcie\" }}"));
    }
    if let Some(region) = &key.region {
        line(out, format_args!("region = {}", text(region)));
    }
    if !key.labels.is_empty() {
        let labels: Vec<String> =
            key.labels.iter().map(|(key, value)| format!("{} = {}", text(key), text(value))).collect();
        line(out, format_args!("labels = {{ {} }}", labels.join(", ")));
    }
}

fn network(out: &mut String, groups: &[(Key, Vec<String>)], options: &ImportOptions) -> Option<Diagnostic> {
    let n_nodes: usize = groups.iter().map(|(_, nodes)| nodes.len()).sum();
    if n_nodes < 2 && groups.len() < 2 {
        return None;
    }
    let regions: BTreeSet<&String> = groups.iter().filter_map(|(key, _)| key.region.as_ref()).collect();
    let given = options.bandwidth_bytes_per_s;
    let comment = if given.is_some() { "" } else { " # assumed: the description says nothing of the network" };
    let bits = decimal(u128::from(given.unwrap_or(ASSUMED_BYTES_PER_S)) * 8, 9);
    line(out, format_args!("\n[network]{comment}\nbandwidth_gbps = {bits}"));
    if let Some(latency) = options.latency_ps {
        line(out, format_args!("latency_us = {}", decimal(u128::from(latency), 6)));
    }
    let mut message = format!("the network between nodes is taken to carry {bits} Gb/s: the description does not say");
    if regions.len() > 1 {
        let (rate, latency) = ASSUMED_BETWEEN_REGIONS;
        let bits = decimal(u128::from(rate) * 8, 9);
        line(out, format_args!("\n[network.between_regions] # assumed\nbandwidth_gbps = {bits}"));
        line(out, format_args!("latency_us = {}", latency / PS_PER_US));
        let between = format!("{bits} Gb/s and {} ms between regions", latency / PS_PER_US / 1000);
        if given.is_some() {
            message = format!("the network is taken to carry {between}: the description does not say");
        } else {
            message = format!("{message}; and {between}");
        }
    } else if given.is_some() {
        return None;
    }
    let help = "say it with `trainc cluster import --bandwidth-gbps N`, or in the file that it writes";
    Some(Diagnostic::warning(codes::ASSUMED_NETWORK, message).with_help(help))
}

fn gpu(out: &mut String, name: &str, declared: &Declared) {
    let Declared { like, memory_mib, bandwidth, compute, gfd_product } = declared;
    line(out, format_args!("\n[[gpu]]\nname = {}\nlike = {}", text(name), text(&like.name)));
    line(out, format_args!("memory_mib = {memory_mib}"));
    let share = |value: u64, (part, whole): (u64, u64)| u128::from(value) * u128::from(part) / u128::from(whole);
    if bandwidth.0 < bandwidth.1 {
        line(out, format_args!("memory_gb_per_s = {}", decimal(share(like.memory_bytes_per_s, *bandwidth), 9)));
    }
    if compute.0 < compute.1 {
        for (key, peak) in [
            ("fp32_tflops", like.peak.fp32),
            ("tf32_tflops", like.peak.tf32),
            ("fp16_tflops", like.peak.fp16),
            ("bf16_tflops", like.peak.bf16),
            ("fp8_tflops", like.peak.fp8),
        ] {
            if let Some(peak) = peak {
                line(out, format_args!("{key} = {}", decimal(share(peak, *compute), 12)));
            }
        }
        if let Some((low, high)) = like.price_micro_usd_per_hour {
            let price = |value| decimal(share(value, *compute), 6);
            line(out, format_args!("price_usd_per_hour = [{}, {}]", price(low), price(high)));
        }
    }
    if let Some(product) = gfd_product {
        line(out, format_args!("gfd_product = {}", text(product)));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string does not fail");
}

/// A number of that many decimal places, without those that are zero.
fn decimal(value: u128, places: u32) -> String {
    let scale = 10u128.pow(places);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = format!("{rest:0width$}", width = places as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// A basic string of TOML.
fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("writing to a string does not fail");
            }
            c => out.push(c),
        }
    }
    out + "\""
}

/// What may stand in a comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{decimal, text};

    #[test]
    fn numbers_and_texts_are_written_exactly() {
        assert_eq!(decimal(12_500_000_000, 9), "12.5");
        assert_eq!(decimal(1, 9), "0.000000001");
        assert_eq!(decimal(3_000_000_000, 9), "3");
        assert_eq!(text("a\"b\\c\td"), "\"a\\\"b\\\\c\\u0009d\"");
    }
}

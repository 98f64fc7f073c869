//! Reads profiles: TOML with tables of rates and of blocks, a table of block times with commas (CSV), or JSON.

use super::codes;
use super::document::{self, Section};
use super::gpu_read::{LATENCY_US, PS_PER_US};
use super::profile::{BAD_TABLE, BlockTimes, GpuProfile, Profile};
use super::profile_json;
use super::rate::Rate;
use super::suggest::folded;
use crate::diag::{Diagnostic, Diagnostics, Place};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Picoseconds in a millisecond.
pub(super) const PS_PER_MS: f64 = 1e9;
/// Milliseconds that a block may take: up to a day.
pub(super) const BLOCK_MS: RangeInclusive<f64> = 0.000_001..=86_400_000.0;
/// Sizes that a micro-batch or a sequence may have.
const SIZE: RangeInclusive<u64> = 1..=1 << 40;
/// Work and picoseconds of a point of a rate.
const POINT: RangeInclusive<u64> = 1..=1 << 60;

impl Profile {
    /// Reads a profile; `file` is only spelled in diagnostics.
    ///
    /// # Errors
    /// Everything that is wrong with the text.
    pub fn read(file: &str, text: &str) -> Result<Self, Diagnostics> {
        let first = text.lines().next().unwrap_or_default();
        let profile = if text.trim_start().starts_with('{') {
            profile_json::read(file, text)?
        } else if first.split(',').any(|column| column.trim() == "forward_ms") {
            table(file, text)?
        } else {
            let (document, root) = document::parse(file, text)?;
            let section = document.root(&root);
            let mut profile = Self::default();
            for table in section.tables("gpu") {
                rates(table, &mut profile);
            }
            for table in section.tables("block") {
                block(table, &mut profile);
            }
            section.finish();
            if !document.is_clean() {
                return Err(document.into_faults());
            }
            profile
        };
        match profile.gpus.iter().find_map(|of| of.contradiction()) {
            None => Ok(profile),
            Some(message) => {
                let place = Place::Source { file: file.to_owned(), start: 0, end: text.len().min(1) };
                let diagnostic = Diagnostic::error(BAD_TABLE, message).at(place, "in this file");
                Err(vec![diagnostic.with_help("keep one of them")])
            }
        }
    }

    pub(super) fn of(&mut self, gpu: &str) -> &mut GpuProfile {
        let position = self.gpus.iter().position(|of| folded(&of.gpu) == folded(gpu)).unwrap_or_else(|| {
            self.gpus.push(Arc::new(GpuProfile { gpu: gpu.to_owned(), ..GpuProfile::default() }));
            self.gpus.len() - 1
        });
        Arc::make_mut(&mut self.gpus[position])
    }
}

fn rates(mut table: Section<'_, '_>, profile: &mut Profile) {
    let Some(name) = table.text("name") else {
        if table.has("name").is_none() {
            table.missing("name", "name the GPU type, as `name = \"T4\"`");
        }
        return;
    };
    table.name_it(format!("GPU type `{}`", name.value));
    let rate = |key| {
        let points = table.count_pairs(key, POINT, POINT)?;
        let rate = Rate::new(points.value);
        if rate.is_none() {
            let message = format!("`{key}`{} must have rising work and times that do not fall", table.inside());
            table.document().fault(codes::OUT_OF_RANGE, message, points.span, "pairs of work and picoseconds");
        }
        rate
    };
    let of = profile.of(name.value);
    if of.has_rates() {
        let message = format!("GPU type `{}` is described twice", name.value);
        table.document().fault(codes::DUPLICATE_NAME, message, name.span, "the second one");
    }
    of.launch_ps = table.scaled("launch_us", LATENCY_US, PS_PER_US).map(|at| at.value);
    of.product_32 = rate("product_32");
    of.product_16 = rate("product_16");
    of.attention_32 = rate("attention_32");
    of.attention_16 = rate("attention_16");
    of.vector = rate("vector");
    of.memory = rate("memory");
    table.finish();
}

fn block(table: Section<'_, '_>, profile: &mut Profile) {
    for key in ["gpu", "micro_batch", "forward_ms", "backward_ms"] {
        if table.has(key).is_none() {
            table.missing(key, "a block needs `gpu`, `micro_batch`, `forward_ms` and `backward_ms`");
        }
    }
    let time = |key| table.scaled(key, BLOCK_MS, PS_PER_MS).map(|at| at.value);
    let name = table.text("name").map(|at| at.value.to_owned());
    let seq = table.count("seq", SIZE).map(|at| at.value);
    let numbers = (table.count("micro_batch", SIZE), time("forward_ms"), time("backward_ms"));
    if let (Some(gpu), (Some(micro_batch), Some(forward_ps), Some(backward_ps))) = (table.text("gpu"), numbers) {
        let times = BlockTimes { name, seq, micro_batch: micro_batch.value, forward_ps, backward_ps };
        profile.of(gpu.value).blocks.push(times);
    }
    table.finish();
}

/// A table of block times: columns `gpu`, `micro_batch`, `forward_ms` and `backward_ms`, if wanted `block` and `seq`.
/// Where there is a column `model` or `dtype`, all lines must have one value there.
fn table(file: &str, text: &str) -> Result<Profile, Diagnostics> {
    let lines = numbered(text);
    let fault = |(start, line): (usize, &str), message: String, label: &str| {
        let place = Place::Source { file: file.to_owned(), start, end: start + line.len() };
        vec![Diagnostic::error(BAD_TABLE, message).at(place, label)]
    };
    let header = lines[0];
    let columns: Vec<&str> = header.1.split(',').map(str::trim).collect();
    let column = |name: &str| columns.iter().position(|of| *of == name);
    let needed = |name: &str| {
        let message = format!("the table has no column `{name}`");
        column(name)
            .ok_or_else(|| fault(header, message, "columns are `gpu`, `micro_batch`, `forward_ms`, `backward_ms`"))
    };
    let at = (needed("gpu")?, needed("micro_batch")?, needed("forward_ms")?, needed("backward_ms")?);
    let mut profile = Profile::default();
    let mut alike: Vec<(usize, &str)> = Vec::new();
    for &line in &lines[1..] {
        if line.1.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.1.split(',').map(str::trim).collect();
        if fields.len() != columns.len() {
            let message = format!("the line has {} fields, expected {}", fields.len(), columns.len());
            return Err(fault(line, message, "one field for each column"));
        }
        for name in ["model", "dtype"] {
            let Some(at) = column(name) else { continue };
            match alike.iter().find(|(of, _)| *of == at) {
                None => alike.push((at, fields[at])),
                Some((_, first)) if *first == fields[at] => {}
                Some((_, first)) => {
                    let message = format!("the table has times of `{first}` and of `{}`", fields[at]);
                    let mut faults = fault(line, message, "another one");
                    faults[0].help = Some(format!("keep the lines of one {name}"));
                    return Err(faults);
                }
            }
        }
        let whole = |i: usize| {
            let found = fields[i].parse().ok().filter(|n| SIZE.contains(n));
            found.ok_or_else(|| {
                fault(line, format!("`{}` is `{}`", columns[i], fields[i]), "expected a whole number above 0")
            })
        };
        let time = |i: usize| {
            let found = fields[i].parse::<f64>().ok().filter(|ms| BLOCK_MS.contains(ms));
            let wrong = || fault(line, format!("`{}` is `{}`", columns[i], fields[i]), "expected milliseconds above 0");
            found.map(|ms| (ms * PS_PER_MS).round() as u64).ok_or_else(wrong)
        };
        let times = BlockTimes {
            name: column("block").map(|i| fields[i].to_owned()).filter(|name| !name.is_empty()),
            seq: column("seq").map(whole).transpose()?,
            micro_batch: whole(at.1)?,
            forward_ps: time(at.2)?,
            backward_ps: time(at.3)?,
        };
        profile.of(fields[at.0]).blocks.push(times);
    }
    Ok(profile)
}

/// The lines with the bytes that they start at; at least one.
fn numbered(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    let lines = text.split('\n').map(|line| {
        let at = start;
        start += line.len() + 1;
        (at, line.trim_end_matches('\r'))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;

    fn codes(text: &str) -> Vec<String> {
        Profile::read("p", text).unwrap_err().iter().map(|d| format!("{}: {}", d.code, d.message)).collect()
    }

    #[test]
    fn rates_and_blocks_are_read() {
        let text = "[[gpu]]\nname = \"T4\"\nlaunch_us = 2.5\nmemory = [[1000, 10], [2000, 15]]\n\
            [[block]]\ngpu = \"T4\"\nmicro_batch = 4\nforward_ms = 1.5\nbackward_ms = 3\n\
            [[block]]\ngpu = \"T4\"\nname = \"b\"\nseq = 512\nmicro_batch = 4\nforward_ms = 1\nbackward_ms = 2\n";
        let profile = Profile::read("p", text).unwrap();
        let of = &profile.gpus[0];
        assert_eq!((profile.gpus.len(), of.launch_ps), (1, Some(2_500_000)));
        assert_eq!(of.memory.as_ref().unwrap().time(2000), 15);
        let forward = |name, micro_batch, seq| of.block(name, micro_batch, seq).map(|times| times.forward_ps);
        assert_eq!(forward("b", 4, 512), Some(1_000_000_000));
        assert_eq!(forward("b", 4, 128), Some(1_500_000_000), "no times of this length: those of every block");
        assert_eq!(forward("c", 4, 512), Some(1_500_000_000));
        assert_eq!(forward("b", 8, 512), None);
    }

    #[test]
    fn a_table_is_read() {
        let text = "model,gpu,seq,micro_batch,forward_ms,backward_ms\r\nm,T4,512,1,0.5,1\r\nm,V100,512,1,0.25,.5\n\n";
        let profile = Profile::read("p", text).unwrap();
        assert_eq!(profile.gpus.len(), 2);
        let times = BlockTimes {
            name: None,
            seq: Some(512),
            micro_batch: 1,
            forward_ps: 250_000_000,
            backward_ps: 500_000_000,
        };
        assert_eq!(profile.gpus[1].blocks, [times]);
    }

    #[test]
    fn a_type_may_be_spelled_in_several_ways() {
        let text = "[[gpu]]\nname = \"T4\"\nlaunch_us = 2\n[[gpu]]\nname = \"Tesla-T4\"\nmemory = [[1, 1]]\n\
            [[block]]\ngpu = \"t4\"\nmicro_batch = 1\nforward_ms = 1\nbackward_ms = 2\n";
        let profile = Profile::read("p", text).unwrap();
        let cluster = "[[group]]\nname = \"a\"\ngpu = \"T4\"\ngpus_per_node = 1\n";
        let cluster = Cluster::from_toml("c", cluster).unwrap().profiled("p", &profile).unwrap();
        let gpu = &cluster.groups[cluster.group("a").unwrap()].gpu;
        let of = gpu.profile.as_ref().unwrap();
        assert_eq!((gpu.launch_ps, of.memory.is_some(), of.blocks.len()), (2_000_000, true, 1));
    }

    #[test]
    fn nothing_is_said_twice_in_two_ways() {
        let block = "[[block]]\ngpu = \"T4\"\nmicro_batch = 1\nbackward_ms = 2\nforward_ms = ";
        assert!(Profile::read("p", &format!("{block}1\n{block}1\n")).is_ok(), "the same again is no contradiction");
        assert_eq!(
            codes(&format!("{block}1\n{block}2\n")),
            ["E0340: `T4` has two times of a block for micro-batches of 1"]
        );
        let gpu = "[[gpu]]\nname = \"T4\"\nlaunch_us = 1\n";
        assert_eq!(codes(&format!("{gpu}{gpu}")), ["E0306: GPU type `T4` is described twice"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(codes("forward_ms,gpu\n"), ["E0340: the table has no column `micro_batch`"]);
        let header = "model,gpu,micro_batch,forward_ms,backward_ms\n";
        assert_eq!(codes(&format!("{header}m,T4,1,2\n")), ["E0340: the line has 4 fields, expected 5"]);
        assert_eq!(codes(&format!("{header}m,T4,0,2,3\n")), ["E0340: `micro_batch` is `0`"]);
        assert_eq!(codes(&format!("{header}m,T4,1,x,3\n")), ["E0340: `forward_ms` is `x`"]);
        let two = format!("{header}m,T4,1,2,3\nn,T4,1,2,3\n");
        assert_eq!(codes(&two), ["E0340: the table has times of `m` and of `n`"]);
        assert_eq!(
            codes("[[block]]\nmicro_batch = 1\nforward_ms = 1\nbackward_ms = 1\n"),
            ["E0304: `gpu` is missing in `[[block]]` 1"]
        );
        assert_eq!(codes("[[gpu]]\nname = \"T4\"\nmemory = [[5, 2], [6, 1]]\n").len(), 1);
        assert_eq!(codes("[[gpu]]\nname = \"T4\"\nspeed = 1\n").len(), 1);
    }
}

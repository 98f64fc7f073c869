//! Tests of partitioning: truth is exhaustive enumeration with the documented formulas written out again.

use super::*;
use crate::plan::cost::{self, HardwareSpec};
use crate::plan::flow::in_flight;
use crate::plan::profile::{ParameterProfile, Work, WorkClass};
use crate::schedule::{Generator, Shape};
use trainc_ir::DType;

const MIB: u64 = 1 << 20;

/// A linear congruential generator (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn matmul(gflop: u64) -> Vec<Work> {
    vec![Work { class: WorkClass::Matmul, dtype: DType::F32, flops: gflop * 1_000_000_000, bytes: 0, count: 1 }]
}

fn parameter(parameter: u32, mib: u64) -> ParameterProfile {
    ParameterProfile { parameter, weight: mib * MIB, gradient: mib * MIB, state: 2 * mib * MIB }
}

/// A unit that takes `gflop` forward and twice that backward, and keeps `saved` MiB.
fn unit(gflop: u64, saved: u64) -> UnitProfile {
    UnitProfile {
        name: "block".into(),
        forward: matmul(gflop),
        backward: matmul(2 * gflop),
        recompute: matmul(gflop),
        saved_bytes: saved * MIB,
        input_bytes: MIB,
        sent_forward: MIB,
        sent_backward: MIB,
        ..UnitProfile::default()
    }
}

fn options(micro_batches: u64, stages: Stages, recompute: RecomputePolicy) -> PartitionOptions {
    let reductions = Vec::new();
    PartitionOptions {
        micro_batches,
        stages,
        recompute,
        reductions,
        n_library_streams: 1,
        cuda_only: true,
        schedule: ScheduleKind::OneFOneB,
        loops: 1,
    }
}

fn cluster(text: &str) -> Cluster {
    Cluster::from_toml("test.toml", text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Three groups whose GPUs differ in speed and memory, two of them in several nodes, some pairs cut off.
fn random_cluster(random: &mut Random) -> Cluster {
    let types = ["A100-SXM-40GB", "T4", "V100-SXM2-16GB", "L4"];
    let mut text = "name = \"random\"\n".to_owned();
    for group in 0..3 {
        let (gpu, nodes, per_node) = (types[random.below(4) as usize], 1 + random.below(2), 1 + random.below(2));
        text +=
            &format!("[[group]]\nname = \"g{group}\"\ngpu = \"{gpu}\"\nnodes = {nodes}\ngpus_per_node = {per_node}\n");
    }
    text += "[network]\nbandwidth_gbps = 10\nlatency_us = 20\n";
    let (a, b) = (random.below(3), random.below(3));
    if a != b {
        text += &format!("[[network.link]]\nbetween = [\"g{a}\", \"g{b}\"]\n");
        text += ["connected = false\n", "bandwidth_gbps = 1\n"][random.below(2) as usize];
    }
    cluster(&text)
}

fn random_units(random: &mut Random) -> Vec<UnitProfile> {
    let n = 2 + random.below(6);
    let mut units: Vec<UnitProfile> = (0..n)
        .map(|i| {
            let mut unit = unit(1 + random.below(400), random.below(5_000));
            unit.parameters = vec![parameter(i as u32, random.below(900))];
            unit.update = matmul(random.below(50));
            unit.sent_forward = random.below(400) * MIB;
            unit.sent_backward = random.below(400) * MIB;
            unit.transient_backward = random.below(500) * MIB;
            if random.below(4) == 0 {
                unit.recompute = Vec::new();
            }
            unit
        })
        .collect();
    if random.below(2) == 0 {
        let tied = parameter(99, 1 + random.below(500));
        units[0].parameters.push(tied);
        units.last_mut().unwrap().parameters.push(tied);
    }
    units
}

/// The predicted step time of a given division, or `None` where it is impossible, straight from the documentation.
fn evaluate(
    units: &[UnitProfile],
    cluster: &Cluster,
    options: &PartitionOptions,
    cuts: &[usize],
    groups: &[usize],
) -> Option<u64> {
    let (p, m) = (groups.len(), options.micro_batches);
    let (mut used, mut peak, mut sum) = ([0u32; 3], 0u64, 0u64);
    let mut tied_holder = None;
    for s in 0..p {
        let id = NodeGroupId::from_index(groups[s]);
        let group = &cluster.groups[id];
        let spec = HardwareSpec::of(&group.gpu);
        let time = |work: &[Work]| spec.total(work).unwrap();
        let index = used[groups[s]];
        used[groups[s]] += 1;
        if index >= group.n_gpus() {
            return None;
        }
        if s > 0 {
            let before = NodeGroupId::from_index(groups[s - 1]);
            let same_node = before == id && index / group.gpus_per_node == (index - 1) / group.gpus_per_node;
            let cut = &units[cuts[s] - 1];
            let there = cost::transfer(cluster.link(before, id, same_node)?, cut.sent_forward);
            let back = cost::transfer(cluster.link(id, before, same_node)?, cut.sent_backward);
            peak = peak.max((m - 1) * there.max(back));
            sum += there + back;
        }
        let stage = &units[cuts[s]..cuts[s + 1]];
        let is_tied = |u: &UnitProfile| u.parameters.iter().any(|q| q.parameter == 99);
        let n_tied = stage.iter().filter(|u| is_tied(u)).count();
        let all_tied = units.iter().filter(|u| is_tied(u)).count();
        let mut exchange = 0;
        if n_tied == 1 && all_tied == 2 {
            match tied_holder {
                None => tied_holder = Some(id),
                Some(with) => {
                    let one_node = with == id && used[groups[s]] <= group.gpus_per_node;
                    let tied = units[0].parameters[1].gradient;
                    let there = cost::all_reduce(cluster.link(with, id, one_node)?, 2, tied);
                    exchange = there.max(cost::all_reduce(cluster.link(id, with, one_node)?, 2, tied));
                }
            }
        }
        let mut communicators = vec![2; 2 * (usize::from(s > 0) + usize::from(s + 1 < p))];
        if n_tied == 1 && all_tied == 2 {
            communicators.push(2);
        }
        let budget = group.arena_budget(options.n_library_streams, &communicators);
        let held: BTreeSet<ParameterProfile> = stage.iter().flat_map(|u| u.parameters.iter().copied()).collect();
        let boundary = |s: usize| &units[cuts[s] - 1];
        let fixed = held.iter().map(|q| q.weight + q.gradient + q.state).sum::<u64>()
            + if s + 1 < p { boundary(s + 1).sent_forward + boundary(s + 1).sent_backward } else { 0 }
            + if s > 0 { boundary(s).sent_backward } else { 0 };
        let k = m.min((p - s) as u64);
        let can: Vec<usize> = (0..stage.len()).filter(|&u| !stage[u].recompute.is_empty()).collect();
        let counts = match options.recompute {
            RecomputePolicy::None => 0..=0,
            RecomputePolicy::Full => can.len()..=can.len(),
            RecomputePolicy::Fit => 0..=can.len(),
        };
        let t = counts.into_iter().find_map(|n| {
            let again = &can[..n];
            let (mut kept, mut transient, mut t) = (0, 0, 0);
            for (u, unit) in stage.iter().enumerate() {
                kept += unit.input_bytes + unit.data_bytes;
                t += time(&unit.forward) + time(&unit.backward);
                transient = transient.max(unit.transient_forward).max(unit.transient_backward);
                if again.contains(&u) {
                    transient = transient.max(unit.transient_backward + unit.saved_bytes);
                    t += time(&unit.recompute);
                } else {
                    kept += unit.saved_bytes;
                }
            }
            (fixed + k * kept + transient <= budget).then_some(t)
        })?;
        let update: u64 = stage.iter().map(|u| time(&u.update)).sum();
        sum += t;
        peak = peak.max((m - 1) * t + update + exchange);
        if m > s as u64 + 1 {
            peak = peak.max(((m - 1) * sum).div_ceil(s as u64 + 1));
        }
    }
    Some(peak + sum)
}

/// Calls back with every division: increasing cuts from 0 to `n_units`, and a group for each stage.
fn every_division(n_units: usize, p: usize, mut call: impl FnMut(&[usize], &[usize])) {
    for chosen in 0u32..1 << (n_units - 1) {
        if chosen.count_ones() as usize != p - 1 {
            continue;
        }
        let mut cuts = vec![0];
        cuts.extend((1..n_units).filter(|c| chosen >> (c - 1) & 1 == 1));
        cuts.push(n_units);
        for code in 0..3usize.pow(p as u32) {
            let groups: Vec<usize> = (0..p).map(|s| code / 3usize.pow(s as u32) % 3).collect();
            call(&cuts, &groups);
        }
    }
}

#[test]
fn equals_exhaustive_enumeration() {
    let (mut feasible, mut infeasible, mut recomputed) = (0, 0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let (cluster, units) = (random_cluster(&mut random), random_units(&mut random));
        let policy = [RecomputePolicy::None, RecomputePolicy::Full, RecomputePolicy::Fit][random.below(3) as usize];
        let max = 1 + random.below(4) as u32;
        let stages = [Stages::Forced(max), Stages::Best { max }][random.below(2) as usize];
        let options = options(1 + random.below(8), stages, policy);
        let least_stages = if stages == Stages::Forced(max) { max } else { 1 };
        let mut least: Option<(u64, usize)> = None;
        for p in least_stages as usize..=(max as usize).min(units.len()) {
            every_division(units.len(), p, |cuts, groups| {
                let step = evaluate(&units, &cluster, &options, cuts, groups);
                least = [least, step.map(|step| (step, p))].into_iter().flatten().min();
            });
        }
        let found = partition(&units, &cluster, &options);
        let figures = found.as_ref().ok().map(|found| (found.step_ps, found.stages.len()));
        assert_eq!(figures, least, "seed {seed}: {options:?}");
        let Ok(found) = found else {
            infeasible += 1;
            continue;
        };
        feasible += 1;
        assert!(found.exact);
        let cuts: Vec<usize> = found.stages.iter().map(|s| s.units.start).chain([units.len()]).collect();
        let groups: Vec<usize> = found.stages.iter().map(|s| s.group.index()).collect();
        assert_eq!(evaluate(&units, &cluster, &options, &cuts, &groups), Some(found.step_ps), "seed {seed}");
        recomputed += usize::from(
            options.recompute == RecomputePolicy::Fit && found.stages.iter().any(|s| !s.recomputed.is_empty()),
        );
        assert!(found.stages.iter().all(|s| s.arena_bytes <= s.budget_bytes));
    }
    assert!(feasible > 100 && infeasible > 20 && recomputed > 5, "{feasible} {infeasible} {recomputed}");
}

/// A model like GPT-3 175B less its size: an embedding, equal blocks, and a head tied to the embedding.
fn transformer(n_blocks: usize, gflop: u64, saved: u64, parameters: u64) -> Vec<UnitProfile> {
    let mut units: Vec<UnitProfile> = (0..n_blocks + 2).map(|_| unit(gflop, saved)).collect();
    for (i, unit) in units.iter_mut().enumerate() {
        unit.parameters = vec![parameter(i as u32, parameters)];
    }
    let last = units.len() - 1;
    let tied = parameter(1_000, 2 * parameters);
    for (at, gflop, saved) in [(0, 1, saved / 4), (last, 3 * gflop, saved)] {
        units[at] = UnitProfile { recompute: Vec::new(), parameters: vec![tied], ..unit(gflop, saved) };
    }
    units
}

const THREE_GROUPS: &str = r#"
name = "three"
[[group]]
name = "a100"
gpu = "A100-SXM-80GB"
nodes = 2
gpus_per_node = 8
[[group]]
name = "v100"
gpu = "V100-SXM2-32GB"
nodes = 2
gpus_per_node = 8
[[group]]
name = "t4"
gpu = "T4"
nodes = 4
gpus_per_node = 4
[network]
bandwidth_gbps = 100
latency_us = 5
"#;

/// Searching with neither a ceiling nor a bound on the points must find the same as the pruned searches.
#[test]
fn pruning_loses_nothing() {
    let cluster = cluster(THREE_GROUPS);
    let units = transformer(14, 300, 1_500, 200);
    for (micro_batches, p) in [(4, 6), (32, 6)] {
        let options = options(micro_batches, Stages::Forced(p), RecomputePolicy::Fit);
        let costs = StageCosts::new(&units, &cluster, &options);
        let limits = usable_gpus(&costs, &options);
        let mut time = StepTime::new(&costs, &options, &limits);
        time.set_stages(p as usize);
        let found = search(&space(&costs, &limits, p as usize, usize::MAX, u64::MAX), &time);
        let partition = partition(&units, &cluster, &options).unwrap();
        assert_eq!((found.exact, found.solutions[0].0), (true, partition.step_ps));
        assert!(partition.exact);
    }
}

#[test]
fn large_instances_are_solved_exactly() {
    let units = transformer(78, 300, 300, 200);
    let options = options(64, Stages::Forced(16), RecomputePolicy::Fit);
    let partition = partition(&units, &cluster(THREE_GROUPS), &options).unwrap();
    assert!(partition.exact);
    // 82 blocks' worth of work on 16 GPUs: no stage may hold fewer than 6 blocks' worth, and 16 A100 are the fastest.
    let slowest = partition.stages.iter().map(|s| s.forward_ps).max().unwrap();
    let block = StageCosts::new(&units, &cluster(THREE_GROUPS), &options).frontier(1..2, partition.stages[0].group, 1);
    assert_eq!(slowest.div_ceil(block[0].forward_ps), 6);
    assert!(partition.stages.iter().all(|s| s.group.index() == 0));
}

fn one_group(memory_gb: u32, gpus: u32) -> Cluster {
    let gpu = format!(
        "[[gpu]]\nname = \"Test\"\narch = \"ampere\"\ncompute_capability = \"8.0\"\nnative = [\"f32\"]\n\
        memory_gb = {memory_gb}\nmemory_kind = \"hbm\"\nmemory_gb_per_s = 1000\nfp32_tflops = 10\npcie_gen = 4\n\
        source = \"made up\"\nconfidence = \"high\"\n"
    );
    let catalogue = trainc_ir::Catalogue::builtin().merged("test-gpus.toml", &gpu).unwrap_or_else(|f| panic!("{f:?}"));
    let text =
        format!("name = \"one\"\n[[group]]\nname = \"test\"\ngpu = \"Test\"\nnodes = 1\ngpus_per_node = {gpus}\n");
    Cluster::from_toml_with(&catalogue, "one.toml", &text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

#[test]
fn more_memory_is_never_slower() {
    let units = transformer(10, 300, 1_500, 200);
    let options = options(8, Stages::Best { max: 4 }, RecomputePolicy::Fit);
    let mut steps: Vec<u64> = Vec::new();
    for memory_gb in (6..40).step_by(2) {
        let step = partition(&units, &one_group(memory_gb, 4), &options).map_or(u64::MAX, |found| found.step_ps);
        assert!(steps.last().is_none_or(|last| step <= *last), "{memory_gb} GB");
        steps.push(step);
    }
    steps.dedup();
    assert!(steps[0] == u64::MAX && steps.len() > 4, "{steps:?}");
}

/// Every change that is proposed is applied, and must then give a plan.
#[test]
fn proposed_changes_make_a_plan_possible() {
    let units = transformer(10, 300, 1_500, 200);
    let options = options(8, Stages::Forced(2), RecomputePolicy::None);
    let fault = partition(&units, &one_group(16, 4), &options).unwrap_err();
    let Reason::Memory { n_stages: 2, needed_bytes, available_bytes, .. } = fault.reason else { panic!("{fault:?}") };
    assert!(needed_bytes > available_bytes);
    assert!(fault.changes.len() >= 2, "{fault:?}");
    for change in fault.changes {
        let (mut changed, mut cluster) = (options.clone(), one_group(16, 4));
        match change {
            Change::Recompute(policy) => changed.recompute = policy,
            Change::Stages(n) => changed.stages = Stages::Forced(n),
            Change::MoreGpus { stages } => {
                cluster = one_group(16, stages);
                changed.stages = Stages::Forced(stages);
            }
            Change::Memory { stages, bytes } => {
                // Of a GB of HBM the driver reports 99 %.
                let of = |memory_gb| one_group(memory_gb, 4);
                let reported = |c: &Cluster| c.groups.values().next().unwrap().gpu.memory_bytes;
                let enough = (1..200).find(|&gb| reported(&of(gb)) >= bytes).unwrap();
                cluster = of(enough);
                changed.stages = Stages::Forced(stages);
                assert!(partition(&units, &of(enough - 1), &changed).is_err(), "the change asks for too much");
            }
            Change::MicroBatch(_) => unreachable!("only callers propose it"),
        }
        assert!(partition(&units, &cluster, &changed).is_ok(), "{change:?}");
    }
}

#[test]
fn reductions_shrink_the_budget() {
    let units = transformer(10, 300, 1_500, 200);
    let mut options = options(8, Stages::Forced(2), RecomputePolicy::Fit);
    let before = partition(&units, &one_group(20, 2), &options).unwrap();
    options.reductions = vec![2_000 * MIB];
    let after = partition(&units, &one_group(20, 2), &options).unwrap();
    assert_eq!(after.stages[0].budget_bytes + 2_000 * MIB, before.stages[0].budget_bytes);
    assert!(after.stages[0].arena_bytes <= after.stages[0].budget_bytes && after.step_ps >= before.step_ps);
}

#[test]
fn says_why_nothing_is_possible() {
    let cluster = cluster("name = \"old\"\n[[group]]\nname = \"t4\"\ngpu = \"T4\"\nnodes = 1\ngpus_per_node = 2\n");
    let mut units = transformer(2, 1, 1, 1);
    let reason = |units: &[UnitProfile], p| {
        let options = options(4, Stages::Forced(p), RecomputePolicy::Fit);
        partition(units, &cluster, &options).unwrap_err().reason
    };
    assert_eq!(reason(&units, 5), Reason::TooFewUnits { asked: 5, units: 4 });
    assert_eq!(reason(&units, 3), Reason::TooFewGpus { asked: 3, usable: 2 });
    units[1].forward[0].dtype = DType::BF16;
    let group = cluster.groups.ids().next().unwrap();
    assert_eq!(reason(&units, 1), Reason::NoUsableGpu(vec![(group, "a T4 has no arithmetic in bf16".into())]));
}

/// The two groups that can be used reach each other only through one that cannot.
#[test]
fn groups_that_are_cut_off_are_no_neighbours() {
    let mut text = "name = \"islands\"\n".to_owned();
    for (name, gpu) in [("a", "T4"), ("b", "T4"), ("c", "MI300X")] {
        text += &format!("[[group]]\nname = \"{name}\"\ngpu = \"{gpu}\"\nnodes = 1\ngpus_per_node = 1\n");
    }
    text += "[network]\nbandwidth_gbps = 10\n[[network.link]]\nbetween = [\"a\", \"b\"]\nconnected = false\n";
    let options = options(4, Stages::Forced(2), RecomputePolicy::Fit);
    let fault = partition(&transformer(2, 1, 1, 1), &cluster(&text), &options).unwrap_err();
    assert_eq!(fault.reason, Reason::NotConnected { n_stages: 2 });
    assert_eq!(fault.changes.first(), Some(&Change::Stages(1)), "one GPU needs no link");
}

/// The truth is what the generated schedules hold.
#[test]
fn in_flight_micro_batches_are_those_of_the_schedule() {
    let kinds = [ScheduleKind::GPipe, ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::ZbH1];
    let contiguous = [None, Some(4), Some(6)].map(|contiguous| ScheduleKind::BreadthFirst { contiguous });
    for schedule in kinds.into_iter().chain(contiguous) {
        for ranks in [1, 2, 4] {
            for micro_batches in [1, 3, 4, 9, 16] {
                let options = options(micro_batches, Stages::Forced(ranks), RecomputePolicy::None);
                let options = PartitionOptions { schedule, ..options };
                let ranks = ranks as usize;
                let generated = schedule.generate(&Shape { ranks, loops: 1, micro_batches }).unwrap();
                let found: Vec<u64> = (0..ranks).map(|stage| options.in_flight(ranks, stage)).collect();
                assert_eq!(found, in_flight(&generated), "{schedule}, {ranks} ranks, {micro_batches} micro-batches");
            }
        }
    }
}

//! How long calls, loads and transfers of a plan take on its cluster.

use super::{SimulateError, profiled};
use crate::plan::cost::{self, HardwareSpec};
use crate::plan::profile::Work;
use std::collections::BTreeMap;
use trainc_ir::id::Id;
use trainc_ir::plan::{CommunicatorId, Kernel, Plan, Rank, RankId, Segment, SegmentId};
use trainc_ir::{Cluster, Contention, Link, NodeGroupId, Phase, Type};

/// Largest type that is costed.
const MAX_BYTES: u64 = 1 << 40;

/// Durations of the actions of a plan.
pub(super) struct Durations<'a> {
    plan: &'a Plan,
    cluster: &'a Cluster,
    /// Node group of each rank, and its node there.
    places: Vec<(NodeGroupId, u32)>,
    specs: BTreeMap<NodeGroupId, HardwareSpec>,
    /// Of every segment, by node group; `Err` where the GPU cannot run it.
    calls: BTreeMap<NodeGroupId, Vec<Result<u64, String>>>,
}

impl<'a> Durations<'a> {
    pub(super) fn new(plan: &'a Plan, cluster: &'a Cluster) -> Result<Self, SimulateError> {
        let place = |rank: &Rank| {
            let malformed = || SimulateError::Malformed(format!("there is no placement group {}", rank.group));
            let group = plan.groups.get(rank.group).ok_or_else(malformed)?;
            let of = cluster.group(&group.name).ok_or_else(|| SimulateError::UnknownGroup(group.name.clone()))?;
            let has = (cluster.groups[of].nodes, cluster.groups[of].gpus_per_node);
            let needs = (group.locality.nodes, group.locality.gpus_per_node);
            if needs.0 > has.0 || needs.1 > has.1 {
                return Err(SimulateError::TooFewNodes(group.name.clone(), has, needs));
            }
            Ok((of, rank.index / group.locality.gpus_per_node.max(1)))
        };
        let places = plan.ranks.values().map(place).collect::<Result<Vec<_>, _>>()?;
        let kernels = plan.kernels.iter().map(|(id, kernel)| {
            kernel_work(kernel).map_err(|why| SimulateError::Malformed(format!("kernel {id}: {why}")))
        });
        let kernels: Vec<Work> = kernels.collect::<Result<_, _>>()?;
        let (mut specs, mut calls) = (BTreeMap::new(), BTreeMap::new());
        for &(group, _) in &places {
            if specs.contains_key(&group) {
                continue;
            }
            let spec = HardwareSpec::of(&cluster.groups[group].gpu);
            let times = plan.segments.values().map(|segment| call_time(segment, &kernels, &spec));
            let mut times = times.collect::<Result<Vec<_>, _>>()?;
            profiled::replace(plan, &spec, &mut times);
            calls.insert(group, times);
            specs.insert(group, spec);
        }
        Ok(Self { plan, cluster, places, specs, calls })
    }

    pub(super) fn call(&self, rank: RankId, segment: SegmentId) -> Result<u64, SimulateError> {
        let times = &self.calls[&self.places[rank.index()].0];
        let malformed = || SimulateError::Malformed(format!("there is no segment {segment}"));
        let time = times.get(segment.index()).ok_or_else(malformed)?;
        time.clone().map_err(|why| SimulateError::CannotRun(rank, why))
    }

    pub(super) fn is_recompute(&self, segment: SegmentId) -> bool {
        self.plan.segments.get(segment).is_some_and(|segment| segment.phase == Phase::Recompute)
    }

    pub(super) fn contention(&self) -> &'a Contention {
        &self.cluster.contention
    }

    pub(super) fn load(&self, rank: RankId, bytes: u64) -> u64 {
        cost::transfer(self.specs[&self.places[rank.index()].0].host, bytes)
    }

    pub(super) fn send(&self, members: &[RankId], bytes: u64) -> Result<u64, SimulateError> {
        let &[from, to] = members else {
            return Err(SimulateError::Malformed("a transfer needs a communicator of two ranks".to_owned()));
        };
        Ok(cost::transfer(self.link(from, to)?, bytes))
    }

    pub(super) fn all_reduce(&self, members: &[RankId], bytes: u64) -> Result<u64, SimulateError> {
        let n = members.len();
        let hops = (0..n).map(|i| (members[i], members[(i + 1) % n]));
        self.slowest(hops.filter(|(from, to)| from != to), |link| cost::all_reduce(link, n as u64, bytes))
    }

    pub(super) fn broadcast(&self, members: &[RankId], root: u32, bytes: u64) -> Result<u64, SimulateError> {
        let n = members.len();
        if root as usize >= n {
            return Err(SimulateError::Malformed(format!("there is no root {root} among {n} ranks")));
        }
        let at = |i: usize| members[(root as usize + i) % n];
        self.slowest((1..n).map(|i| (at(i - 1), at(i))), |link| cost::broadcast(link, n as u64, bytes))
    }

    pub(super) fn members(&self, communicator: CommunicatorId) -> &'a [RankId] {
        self.plan.communicators.get(communicator).map_or(&[], Vec::as_slice)
    }

    fn slowest(
        &self,
        mut hops: impl Iterator<Item = (RankId, RankId)>,
        time: impl Fn(Link) -> u64,
    ) -> Result<u64, SimulateError> {
        hops.try_fold(0, |slowest: u64, (from, to)| Ok(slowest.max(time(self.link(from, to)?))))
    }

    fn link(&self, from: RankId, to: RankId) -> Result<Link, SimulateError> {
        let place = |rank: RankId| {
            let malformed = || SimulateError::Malformed(format!("there is no rank {rank}"));
            self.places.get(rank.index()).copied().ok_or_else(malformed)
        };
        let ((a, node_a), (b, node_b)) = (place(from)?, place(to)?);
        self.cluster.link(a, b, node_a == node_b).ok_or(SimulateError::NotConnected(from, to))
    }
}

/// Bytes of a type, or nothing where it is too large to be costed.
pub(super) fn bytes(ty: &Type) -> Option<u64> {
    ty.checked_elements()?.checked_mul(ty.dtype.bytes()).filter(|&bytes| bytes <= MAX_BYTES)
}

fn kernel_work(kernel: &Kernel) -> Result<Work, String> {
    let inputs: Vec<&Type> = kernel.inputs.iter().collect();
    let outputs: Vec<&Type> = kernel.outputs.iter().collect();
    if let Some(ty) = inputs.iter().chain(&outputs).find(|ty| bytes(ty).is_none()) {
        return Err(format!("{ty} is too large"));
    }
    let inferred = kernel.op.infer(&inputs)?;
    if inferred != kernel.outputs {
        return Err(format!("`{}` does not have these results", kernel.op.spelling()));
    }
    Ok(Work::of(&kernel.op, &inputs, &outputs))
}

/// The time of a call; the inner error says why this GPU cannot run it.
fn call_time(segment: &Segment, kernels: &[Work], spec: &HardwareSpec) -> Result<Result<u64, String>, SimulateError> {
    let mut sum = 0u64;
    for call in &segment.body {
        let malformed = || SimulateError::Malformed(format!("there is no kernel {}", call.kernel));
        match spec.time(kernels.get(call.kernel.index()).ok_or_else(malformed)?) {
            Ok(time) => sum = sum.saturating_add(time),
            Err(missing) => return Ok(Err(missing.to_string())),
        }
    }
    Ok(Ok(sum))
}

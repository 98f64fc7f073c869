//! The rules of ranks, groups, communicators and their predicted bytes (P9, P14).

use super::error::{Errors, PlanPlace, PlanRule};
use super::walk;
use crate::id::Id;
use crate::plan::{Action, Plan, Rank, RankId};
use std::collections::BTreeSet;

pub(super) fn ranks(plan: &Plan, errors: &mut Errors) {
    let mut places = BTreeSet::new();
    let mut members = vec![0u64; plan.groups.len()];
    for (id, rank) in plan.ranks.iter() {
        let mut push = |message| errors.push(PlanRule::Ranks, PlanPlace::Rank(id), message);
        members[rank.group.index()] += 1;
        let (group, index) = (rank.group, rank.index);
        if u64::from(index) >= u64::from(plan.groups[group].count) {
            push(format!("expected a position below {} in {group}, found {index}", plan.groups[group].count));
        }
        if !places.insert((group, index)) {
            push(format!("position {index} of {group} is taken by another rank"));
        }
        let program = &plan.programs[rank.program];
        if rank.stage != program.stage {
            push(format!("expected stage {} of program {}, found {}", program.stage, rank.program, rank.stage));
        }
        if rank.communicators.len() != program.ports.len() {
            let (expected, found) = (program.ports.len(), rank.communicators.len());
            push(format!("expected a communicator for each of {expected} ports, found {found}"));
        }
        for &communicator in &rank.communicators {
            if !plan.communicators[communicator].contains(&id) {
                push(format!("is no member of {communicator}"));
            }
        }
    }
    for (id, group) in plan.groups.iter() {
        let mut push = |message| errors.push(PlanRule::Ranks, PlanPlace::Group(id), message);
        let found = members[id.index()];
        if found != u64::from(group.count) {
            push(format!("expected {} ranks, found {found}", group.count));
        }
        let (nodes, each) = (group.locality.nodes, group.locality.gpus_per_node);
        if u64::from(nodes) * u64::from(each) < u64::from(group.count) {
            push(format!("expected room for {} GPUs, found {nodes} nodes with {each} each", group.count));
        }
    }
    for (id, members) in plan.communicators.iter() {
        let distinct: BTreeSet<_> = members.iter().collect();
        if distinct.len() != members.len() || members.len() < 2 {
            let message = "expected at least two members, all different".to_owned();
            errors.push(PlanRule::Ranks, PlanPlace::Communicator(id), message);
        }
    }
    let run: BTreeSet<_> = plan.ranks.values().map(|rank| rank.program).collect();
    for (id, _) in plan.programs.iter() {
        if !run.contains(&id) {
            errors.push(PlanRule::Ranks, PlanPlace::Program(id), "no rank runs it");
        }
    }
    if errors.is_empty() {
        plan.ranks.iter().for_each(|(id, rank)| sides(plan, id, rank, errors));
    }
}

/// Sends come from the first of two ranks and go to the second; a root is a member.
fn sides(plan: &Plan, id: RankId, rank: &Rank, errors: &mut Errors) {
    for site in walk::sites(rank.program, &plan.programs[rank.program]) {
        for action in walk::parts(&site.instr.action) {
            let members = |port: crate::plan::PortId| &plan.communicators[rank.communicators[port.index()]];
            let wrong = match action {
                Action::Send { port, buffer: _ } => {
                    let members = members(*port);
                    (members.len() != 2 || members[0] != id).then_some("the first of two members to send")
                }
                Action::Recv { port, buffer: _ } => {
                    let members = members(*port);
                    (members.len() != 2 || members[1] != id).then_some("the second of two members to receive")
                }
                Action::Broadcast { port, root, buffer: _ } => {
                    (*root as usize >= members(*port).len()).then_some("a member as the root")
                }
                Action::AllReduce { .. } | Action::Call { .. } | Action::Load { .. } | Action::Group(_) => None,
            };
            if let Some(expected) = wrong {
                let mut place = site.place;
                place.rank = Some(id);
                errors.push(PlanRule::Transfers, PlanPlace::Instr(place), format!("expected {expected}"));
            }
        }
    }
}

pub(super) fn bytes(plan: &Plan, errors: &mut Errors) {
    let rule = PlanRule::Bytes;
    for (id, program) in plan.programs.iter() {
        let (bound, arena) = (program.arena_lower_bound, program.arena_bytes);
        if bound > arena {
            let message = format!("the arena of {arena} bytes is below its own lower bound of {bound}");
            errors.push(rule, PlanPlace::Program(id), message);
        }
    }
    let predicted = &plan.prediction.ranks;
    if predicted.len() != plan.ranks.len() {
        let message =
            format!("expected a prediction for each of {} ranks, found {}", plan.ranks.len(), predicted.len());
        errors.push(rule, PlanPlace::Plan, message);
        return;
    }
    for ((id, rank), found) in plan.ranks.iter().zip(predicted) {
        let arena = plan.programs[rank.program].arena_bytes;
        let mut push = |message| errors.push(rule, PlanPlace::Rank(id), message);
        if found.arena_bytes != arena {
            push(format!("expected a predicted arena of {arena} bytes, found {}", found.arena_bytes));
        }
        if found.device_bytes < arena {
            push(format!("{} bytes on the device do not hold the arena of {arena}", found.device_bytes));
        }
        if found.device_bytes > found.capacity_bytes {
            push(format!("needs {} bytes, its device has {}", found.device_bytes, found.capacity_bytes));
        }
    }
}

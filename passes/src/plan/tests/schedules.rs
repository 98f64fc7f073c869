//! Plans under every schedule; the plan verifier is the judge.

use super::{cluster, language_model, residual_network};
use crate::plan::build::{PlacedStage, build};
use crate::plan::crossing::StageUnits;
use crate::plan::facts::Facts;
use crate::plan::measure::profiles;
use crate::schedule::{Generator, Schedule, ScheduleKind, Shape};
use trainc_ir::id::Id;
use trainc_ir::plan::{Header, Plan};
use trainc_ir::{NodeGroupId, TrainingGraph};

/// The plan of a schedule, with the units divided evenly.
fn scheduled(training: &TrainingGraph, schedule: &Schedule, recompute: bool) -> Plan {
    schedule.check().unwrap();
    let facts = Facts::new(training);
    let (n_units, n_stages) = (facts.forward.len(), schedule.n_stages());
    let cut = |stage: usize| stage * n_units / n_stages;
    let place = |stage: usize| {
        let units = cut(stage)..cut(stage + 1);
        let recompute = vec![recompute; units.len()];
        PlacedStage { stage: StageUnits { units, recompute }, group: NodeGroupId::from_index(0) }
    };
    let placed: Vec<PlacedStage> = (0..n_stages).map(place).collect();
    build(&facts, &profiles(&facts), &cluster(), &placed, schedule, Header::default())
}

/// The shapes that a kind is tried in, as ranks and stages per rank.
fn shapes(kind: ScheduleKind) -> &'static [(usize, usize)] {
    match kind {
        ScheduleKind::GPipe | ScheduleKind::OneFOneB => &[(1, 1), (2, 1), (4, 1)],
        ScheduleKind::Interleaved => &[(2, 1), (2, 2), (2, 4), (3, 2), (4, 2)],
        ScheduleKind::BreadthFirst { contiguous: _ } => &[(2, 2), (2, 4), (3, 2), (1, 3)],
        ScheduleKind::ZbH1 => &[(1, 1), (2, 1), (4, 1), (2, 2), (3, 2)],
        ScheduleKind::ZbV => &[(1, 2), (2, 2), (4, 2)],
    }
}

/// Every kind in every shape for so many micro-batches.
fn cases(micro_batches: u64) -> impl Iterator<Item = (ScheduleKind, Shape)> {
    let kinds = ScheduleKind::ALL.into_iter().chain([ScheduleKind::BreadthFirst { contiguous: Some(4) }]);
    kinds.flat_map(move |kind| {
        shapes(kind).iter().map(move |&(ranks, loops)| (kind, Shape { ranks, loops, micro_batches }))
    })
}

#[test]
fn plans_of_every_schedule_verify() {
    verifies(&language_model(6, 8), &[(1, false), (4, true), (5, false), (9, true)]);
}

/// Every forward reads the running averages that the one before it left.
#[test]
fn plans_with_running_averages_verify() {
    verifies(&residual_network(6), &[(3, true)]);
}

/// Plans of so many micro-batches, with or without recomputation, verify under every schedule.
fn verifies(training: &TrainingGraph, cases_of: &[(u64, bool)]) {
    for &(micro_batches, recompute) in cases_of {
        for (kind, shape) in cases(micro_batches) {
            let schedule = kind.generate(&shape).unwrap();
            let plan = scheduled(training, &schedule, recompute);
            if let Err(errors) = trainc_ir::plan::verify(&plan, training) {
                panic!("{kind}, {shape:?}, {recompute}: {errors:#?}");
            }
        }
    }
}

#[test]
fn arenas_of_every_schedule_are_within_two_percent_of_the_liveness_bound() {
    let training = language_model(6, 64);
    let mut wrong = Vec::new();
    for (kind, shape) in cases(8).filter(|(_, shape)| shape.ranks == 2) {
        let schedule = kind.generate(&shape).unwrap();
        for program in scheduled(&training, &schedule, false).programs.values() {
            let (arena, bound) = (program.arena_bytes, program.arena_lower_bound);
            if arena * 100 > bound * 102 {
                wrong.push(format!("{kind} {shape:?} {}: {arena} against {bound}", program.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

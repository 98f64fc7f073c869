//! A small plan of two ranks, written by hand: its result is known in closed form, its mutants fail as they must.

use super::{Batches, Interleaving, Job, JobOptions, RunError, StepReport, TrainOptions, train};
use crate::host::Tensor;
use trainc_ir::plan::{Action, BufferKind, Index, Instr, Item, Plan, PlanInput};

/// The second rank squares `y = x w` of the first; the gradient comes back, the first updates `w`.
pub(super) fn two_ranks() -> Plan {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/backend/run/two_ranks.json");
    let text = std::fs::read_to_string(file).expect("the fixture is there");
    serde_json::from_str(&text).expect("the fixture is a plan")
}

struct Ramp;

impl Batches for Ramp {
    fn batch(&mut self, step: u32, micro_batch: u64, _: &PlanInput) -> Result<Tensor, RunError> {
        Ok(Tensor::from_f32(&[2, 3], &x(step, micro_batch)).expect("six elements"))
    }
}

fn x(step: u32, micro_batch: u64) -> [f32; 6] {
    std::array::from_fn(|i| (i as f32 + 1.0) * 0.5 - micro_batch as f32 + step as f32)
}

const W: [f32; 3] = [1.0, -2.0, 3.0];

fn job(plan: &Plan) -> Result<Job<'_>, RunError> {
    let bytes: Vec<u8> = W.iter().flat_map(|w| w.to_le_bytes()).collect();
    Job::new(plan, JobOptions { seed: 0, checked: true }, &mut |_| Ok(Some(bytes.clone())))
}

fn steps(plan: &Plan, n: u32, interleaving: Interleaving) -> Result<(Vec<StepReport>, Vec<f64>), RunError> {
    let mut job = job(plan)?;
    let reports: Result<_, _> = (0..n).map(|_| job.step(&mut Ramp, 0.01, interleaving)).collect();
    Ok((reports?, job.parameter("w").expect("the plan has it").to_f64s()))
}

/// The instructions of a program, loops opened once.
fn instrs(plan: &mut Plan, program: usize) -> Vec<&mut Instr> {
    let program = plan.programs.iter_mut().nth(program).expect("the program exists").1;
    let items = program.body.iter_mut().flat_map(|item| match item {
        Item::Once(instr) => std::slice::from_mut(instr),
        Item::Loop { trips: _, body } => body,
    });
    items.collect()
}

#[test]
fn two_steps_match_the_closed_form() {
    // Truth: the loss is the sum of (x w)^2, its gradient 2 x^2 w, the step w - lr gradient / count; in double precision.
    let mut w = W.map(f64::from);
    let mut losses = Vec::new();
    for step in 1..=2 {
        let (mut loss, mut gradient) = (0.0, [0.0; 3]);
        for micro_batch in 0..3 {
            for (i, x) in x(step, micro_batch).into_iter().enumerate() {
                let x = f64::from(x);
                loss += (x * w[i % 3]).powi(2);
                gradient[i % 3] += 2.0 * x * x * w[i % 3];
            }
        }
        losses.push(loss);
        (0..3).for_each(|i| w[i] -= 0.01 * gradient[i] / 18.0);
    }
    let (reports, found) = steps(&two_ranks(), 2, Interleaving::Threads).unwrap();
    for (report, loss) in reports.iter().zip(losses) {
        assert_eq!(report.loss_count, 18);
        assert!((report.loss_sum / loss - 1.0).abs() < 1e-6, "{report:?}, expected {loss}");
    }
    assert!(found.iter().zip(w).all(|(found, w)| (found - w).abs() < 1e-6), "{found:?}, expected {w:?}");
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run() {
    let plan = two_ranks();
    let mut job = job(&plan).unwrap();
    // Each step multiplies the weights by about the learning rate: f32 is soon exceeded.
    let options = TrainOptions { steps: 100, learning_rate: 1e20 };
    let mut seen = 0;
    let result = train(&mut job, &mut Ramp, &options, &mut |report| {
        seen = report.step;
        true
    });
    assert!(matches!(result, Err(RunError::Diverged { step }) if step == seen && step < 10), "{result:?}");
}

#[test]
fn every_legal_interleaving_gives_the_same_bits() {
    let plan = two_ranks();
    let truth = steps(&plan, 2, Interleaving::Threads).unwrap();
    for seed in 0..200 {
        assert_eq!(steps(&plan, 2, Interleaving::Drawn { seed }).unwrap(), truth, "seed {seed}");
    }
}

#[test]
fn a_missing_wait_shows_under_some_interleaving() {
    let mut plan = two_ranks();
    let truth = steps(&plan, 1, Interleaving::Threads).unwrap();
    // The load of `x` no longer waits until the backward has read the slot.
    let load = instrs(&mut plan, 0).into_iter().find(|instr| instr.waits.len() == 1).expect("the load of x");
    load.waits.clear();
    let differs = |seed| steps(&plan, 1, Interleaving::Drawn { seed }).map_or(true, |found| found != truth);
    assert!((0..200).any(differs));
}

#[test]
fn touched_bytes_equal_the_arena() {
    let plan = two_ranks();
    let mut job = job(&plan).unwrap();
    job.step(&mut Ramp, 0.01, Interleaving::Threads).unwrap();
    let arenas: Vec<u64> = plan.programs.values().map(|program| program.arena_bytes).collect();
    assert_eq!(job.touched_bytes(), arenas);
    assert_eq!(job.held(0, BufferKind::Gradient)[0].0, "grad.w.0");
}

#[test]
fn freed_buffers_are_poisoned() {
    let plan = two_ranks();
    let mut job = job(&plan).unwrap();
    job.step(&mut Ramp, 0.01, Interleaving::Threads).unwrap();
    for kind in [BufferKind::Data, BufferKind::Boundary] {
        let name = if kind == BufferKind::Data { "x" } else { "dy" };
        let held = job.held(0, kind);
        let (_, value) = held.iter().find(|(found, _)| found == name).expect("the buffer exists");
        assert!(value.to_f64s().iter().all(|x| x.is_nan()), "{name} is dead after the backward");
    }
}

#[test]
fn a_side_that_never_comes_is_a_deadlock() {
    let mut plan = two_ranks();
    let program = plan.programs.iter_mut().next().expect("the first program").1;
    for item in &mut program.body {
        if let Item::Loop { trips: _, body } = item {
            body.retain(|instr| !matches!(instr.action, Action::Send { .. }));
            body.iter_mut().for_each(|instr| instr.waits.retain(|wait| wait.event != trainc_ir::id::Id::from_index(2)));
        }
    }
    for interleaving in [Interleaving::Threads, Interleaving::Drawn { seed: 1 }] {
        let error = steps(&plan, 1, interleaving).unwrap_err();
        let RunError::Deadlock(waits) = &error else { panic!("expected a deadlock, found {error}") };
        assert!(waits.iter().any(|wait| wait.contains("Recv 0 on port `down`")), "{error}");
    }
}

#[test]
fn sides_that_disagree_are_an_error() {
    let mut plan = two_ranks();
    for instr in instrs(&mut plan, 1) {
        if let Action::Recv { port, buffer } = instr.action {
            instr.action = Action::Send { port, buffer };
        }
    }
    // Sending what was never received is refused even before the sides meet; without that check they disagree.
    let error = steps(&plan, 1, Interleaving::Threads).unwrap_err();
    assert!(matches!(error, RunError::Plan(_)), "{error}");
    let mut unchecked = Job::new(&plan, JobOptions::default(), &mut |_| Ok(None)).unwrap();
    let error = unchecked.step(&mut Ramp, 0.01, Interleaving::Threads).unwrap_err();
    assert!(matches!(error, RunError::Transfer(_)), "{error}");
}

#[test]
fn plans_that_lead_nowhere_are_refused() {
    let refused = |damage: fn(&mut Plan)| {
        let mut plan = two_ranks();
        damage(&mut plan);
        let found = job(&plan).map(drop);
        assert!(matches!(found, Err(RunError::Plan(_))), "{found:?}");
    };
    refused(|plan| instrs(plan, 0)[1].stream = trainc_ir::id::Id::from_index(9));
    refused(|plan| instrs(plan, 0)[2].waits[0].index = Index::at(7));
    refused(|plan| plan.programs.iter_mut().for_each(|(_, program)| program.arena_bytes -= 1));
    refused(|plan| plan.ranks.iter_mut().for_each(|(_, rank)| rank.communicators.clear()));
    refused(|plan| {
        let programs = plan.programs.iter_mut();
        programs.for_each(|(_, program)| program.buffers.iter_mut().for_each(|(_, b)| b.offsets[0] += 1));
    });
}

#[test]
fn weights_must_fit() {
    let plan = two_ranks();
    let found = Job::new(&plan, JobOptions::default(), &mut |_| Ok(Some(vec![0; 5]))).map(drop);
    assert_eq!(found, Err(RunError::Weight("weight `w`: expected 12 bytes for f32[3], found 5".to_owned())));
}

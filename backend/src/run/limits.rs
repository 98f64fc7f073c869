//! How large the values of an integer input may be: what the plan's kernels index with it.

use std::collections::BTreeSet;
use trainc_ir::op::{Elementwise, Indexing, Loss, Movement};
use trainc_ir::plan::{Action, InputId, Instr, Item, Operand, Plan, Segment};
use trainc_ir::{Op, id::Id};

/// One more than the largest value that every use of the input admits: the length of the tables that it indexes, the number
/// of classes it labels. `None` where nothing limits it.
pub(super) fn limit(plan: &Plan, input: InputId) -> Option<u64> {
    let mut limit: Option<u64> = None;
    for program in plan.programs.values() {
        let instrs = program.body.iter().flat_map(|item| match item {
            Item::Once(instr) => std::slice::from_ref(instr),
            Item::Loop { trips: _, body } => body,
        });
        let instrs: Vec<&Instr> = instrs.collect();
        let loaded: BTreeSet<_> = instrs
            .iter()
            .filter_map(|instr| match &instr.action {
                Action::Load { input: loaded, buffer, micro_batch: _ } if *loaded == input => Some(buffer.buffer),
                _ => None,
            })
            .collect();
        let mut seen = BTreeSet::new();
        for instr in instrs {
            let Action::Call { segment, args, frames: _, micro_batch: _, site: _ } = &instr.action else { continue };
            for (formal, arg) in args.iter().enumerate() {
                if loaded.contains(&arg.buffer) && seen.insert((segment.index(), formal)) {
                    let found = plan.segments.get(*segment).and_then(|s| in_segment(plan, s, formal as u32));
                    limit = limit.into_iter().chain(found).min();
                }
            }
        }
    }
    limit
}

/// The limit that one segment sets to its formal.
fn in_segment(plan: &Plan, segment: &Segment, formal: u32) -> Option<u64> {
    let mut same = BTreeSet::from([Operand::Formal(formal)]);
    let mut limit: Option<u64> = None;
    for call in &segment.body {
        let Some(kernel) = plan.kernels.get(call.kernel) else { continue };
        let reads = |i: usize| call.inputs.get(i).is_some_and(|operand| same.contains(operand));
        let found = match &kernel.op {
            Op::Indexing(Indexing::Gather { axis } | Indexing::GatherElements { axis }) if reads(1) => {
                kernel.inputs[0].shape.get(*axis as usize).copied()
            }
            Op::Loss(Loss::CrossEntropy { ignore_index: _ }) if reads(1) => kernel.inputs[0].shape.get(1).copied(),
            _ => None,
        };
        limit = limit.into_iter().chain(found).min();
        if keeps_values(&kernel.op) && (0..call.inputs.len()).any(reads) {
            same.extend(&call.outputs);
        }
    }
    limit
}

/// Whether the results of the operator are values of its operands.
fn keeps_values(op: &Op) -> bool {
    match op {
        Op::Movement(Movement::SliceGrad { .. } | Movement::Pad { .. }) => false,
        Op::Movement(_) | Op::Elementwise(Elementwise::Cast { to: _ }) => true,
        Op::Elementwise(_) | Op::Contraction(_) | Op::Reduction(_) | Op::Normalization(_) | Op::Attention(_) => false,
        Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => false,
        Op::Indexing(_) | Op::Creation(_) | Op::Random(_) | Op::Loss(_) | Op::Optimizer(_) | Op::Opaque(_) => false,
    }
}

//! ZB-V: two stages per rank, placed in a V, with split backwards.

use super::{Generator, Schedule, ScheduleError, Shape, Work};

/// Rank `r` of `p` has the stages `r` and `2p - 1 - r`, so that the first and the last stage share rank 0. If forward, input
/// and weight gradients take the same time, no rank waits between its first and its last work.
#[derive(Clone, Copy, Debug)]
pub struct ZbV;

impl Generator for ZbV {
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        shape.check()?;
        if shape.loops != 2 {
            return Err(ScheduleError::Loops { kind: "zb-v", loops: shape.loops, expected: 2 });
        }
        let rank_of = (0..shape.ranks).chain((0..shape.ranks).rev()).collect();
        let ranks = (0..shape.ranks).map(|rank| order(shape, rank)).collect();
        Ok(Schedule { micro_batches: shape.micro_batches, rank_of, ranks })
    }
}

/// The order of one rank. The pattern is made for at least `2p - 1` micro-batches; those that do not exist are left out.
fn order(shape: &Shape, rank: usize) -> Vec<Work> {
    let below = (shape.ranks - rank) as u64;
    let full = shape.micro_batches.max(2 * shape.ranks as u64 - 1);
    let mut down = Stage { stage: rank, ..Stage::default() };
    let mut up = Stage { stage: 2 * shape.ranks - 1 - rank, ..Stage::default() };
    let mut order = Order { works: Vec::with_capacity(6 * full as usize), micro_batches: shape.micro_batches };
    for _ in 0..2 * below - 1 {
        order.forward(&mut down);
    }
    for _ in 0..rank {
        order.forward(&mut up);
        order.forward(&mut down);
    }
    for _ in 0..below {
        order.forward(&mut up);
        order.input_grad(&mut up);
        order.weight_grad(&mut up);
    }
    while up.forwards < full {
        if down.forwards < full {
            order.forward(&mut down);
        }
        order.input_grad(&mut down);
        order.weight_grad(&mut down);
        order.forward(&mut up);
        order.input_grad(&mut up);
        order.weight_grad(&mut up);
    }
    for _ in 0..rank {
        order.input_grad(&mut down);
        order.input_grad(&mut up);
    }
    for _ in 0..below {
        order.input_grad(&mut down);
        order.weight_grad(&mut down);
    }
    for stage in [&mut up, &mut down] {
        while stage.weight_grads < full {
            order.weight_grad(stage);
        }
    }
    order.works
}

/// How far a stage has come, in micro-batches.
#[derive(Default)]
struct Stage {
    stage: usize,
    forwards: u64,
    input_grads: u64,
    weight_grads: u64,
}

/// The order of a rank while it is written.
struct Order {
    works: Vec<Work>,
    micro_batches: u64,
}

impl Order {
    fn forward(&mut self, stage: &mut Stage) {
        self.push(Work::forward(stage.stage, stage.forwards));
        stage.forwards += 1;
    }

    fn input_grad(&mut self, stage: &mut Stage) {
        self.push(Work::input_grad(stage.stage, stage.input_grads));
        stage.input_grads += 1;
    }

    fn weight_grad(&mut self, stage: &mut Stage) {
        self.push(Work::weight_grad(stage.stage, stage.weight_grads));
        stage.weight_grads += 1;
    }

    fn push(&mut self, work: Work) {
        if work.micro_batch < self.micro_batches {
            self.works.push(work);
        }
    }
}

//! A training job on this machine: every rank of a plan with its arena, and the steps it runs.

use super::checks::Checks;
use super::error::RunError;
use super::exchange::Exchange;
use super::rank::{Advance, Rank, Shared};
use super::schedule::unroll;
use super::weights::{WeightLoader, initial};
use crate::host::{Site, Storage, Tensor};
use trainc_ir::id::Id;
use trainc_ir::plan::{Buffer, BufferKind, Plan, PlanInput, Program, RankId};
use trainc_ir::{DType, InputRole};

/// How a job runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobOptions {
    /// Seed of initial weights and of dropout.
    pub seed: u64,
    /// Whether freed and undefined bytes are poisoned and reads of what was never written are refused.
    pub checked: bool,
}

/// What gives a job its data.
pub trait Batches {
    /// The tensor of an input (data or labels) for a micro-batch of a step; steps count from 1.
    ///
    /// # Errors
    /// The data do not fit the input.
    fn batch(&mut self, step: u32, micro_batch: u64, input: &PlanInput) -> Result<Tensor, RunError>;
}

/// In which order the instructions of a step are interleaved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interleaving {
    /// One thread per rank.
    #[default]
    Threads,
    /// One thread, which draws the next stream among all that can go on: a legal order that a device might choose.
    Drawn {
        /// Seed of the draws.
        seed: u64,
    },
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Number of the step, from 1.
    pub step: u32,
    /// Sum of the loss over all terms.
    pub loss_sum: f64,
    /// Number of terms.
    pub loss_count: i64,
}

impl StepReport {
    /// Mean loss.
    pub fn loss(&self) -> f64 {
        self.loss_sum / self.loss_count.max(1) as f64
    }
}

/// A plan with memory for every rank.
pub struct Job<'p> {
    plan: &'p Plan,
    options: JobOptions,
    ranks: Vec<Rank>,
    step: u32,
}

impl<'p> Job<'p> {
    /// Allocates the arenas, unrolls the programs and loads the weights. The plan must have been verified: this checks what
    /// memory safety needs, and not that the plan computes what its model says.
    ///
    /// # Errors
    /// The plan cannot be executed as it stands, a weight does not fit, or the machine is too small.
    pub fn new(plan: &'p Plan, options: JobOptions, load: &mut WeightLoader<'_>) -> Result<Self, RunError> {
        let mut ranks = Vec::new();
        for (id, rank) in plan.ranks.iter() {
            let program = plan.programs.get(rank.program);
            let program = program.ok_or_else(|| RunError::Plan(format!("rank {id} has no program")))?;
            let ports = ports(plan, id, program)?;
            let members: Vec<usize> = ports.iter().map(|&(_, member)| member).collect();
            let schedule = unroll(plan, program, &members)?;
            let checks = if options.checked { Some(Checks::new(program, &schedule)?) } else { None };
            let index = id.index();
            let arena = Storage::try_new(schedule.arena);
            let arena = arena.ok_or(RunError::Memory { rank: index, bytes: program.arena_bytes })?;
            ranks.push(Rank::new(index, schedule, ports, arena, checks));
        }
        let mut job = Self { plan, options, ranks, step: 0 };
        for (index, parameter) in plan.parameters.iter().enumerate() {
            let value = initial(parameter, index, options.seed, load)?;
            for holder in &parameter.holders {
                let program = plan.programs.get(holder.program);
                let buffer = program.and_then(|program| program.buffers.get(holder.buffer));
                let buffer = buffer.filter(|buffer| buffer.ty == parameter.ty).ok_or_else(|| {
                    RunError::Plan(format!(
                        "parameter `{}` has no buffer {} of its type",
                        parameter.name, holder.buffer
                    ))
                })?;
                for rank in 0..job.ranks.len() {
                    if plan.ranks[RankId::from_index(rank)].program == holder.program {
                        job.write(rank, buffer, value.bytes())?;
                    }
                }
            }
        }
        Ok(job)
    }

    /// Runs one step.
    ///
    /// # Errors
    /// A kernel failed, the data do not fit, or the ranks cannot go on.
    pub fn step(
        &mut self,
        batches: &mut dyn Batches,
        learning_rate: f64,
        interleaving: Interleaving,
    ) -> Result<StepReport, RunError> {
        self.step += 1;
        let inputs = self.inputs(batches, learning_rate)?;
        let sizes: Vec<usize> = self.plan.communicators.values().map(Vec::len).collect();
        let exchange = Exchange::new(&sizes, self.ranks.len());
        let shared =
            Shared { plan: self.plan, exchange: &exchange, inputs: &inputs, seed: self.options.seed, step: self.step };
        self.ranks.iter_mut().for_each(Rank::begin);
        match interleaving {
            Interleaving::Threads => run_threads(&mut self.ranks, shared),
            Interleaving::Drawn { seed } => run_drawn(&mut self.ranks, shared, seed)?,
        }
        if let Some(error) = exchange.failure() {
            return Err(error);
        }
        Ok(StepReport {
            step: self.step,
            loss_sum: self.output("loss_sum").unwrap_or(f64::NAN),
            loss_count: self.output("loss_count").unwrap_or(0.0) as i64,
        })
    }

    /// The value of every parameter, optimizer state and gradient sum that a rank holds, by name, as it is now.
    pub fn held(&self, rank: usize, kind: BufferKind) -> Vec<(String, Tensor)> {
        let program = self.program(rank);
        let of_kind = program.buffers.values().filter(|buffer| buffer.kind == kind);
        of_kind.map(|buffer| (buffer.name.clone(), self.read(rank, buffer))).collect()
    }

    /// The value of a parameter, from the first rank that holds it.
    pub fn parameter(&self, name: &str) -> Option<Tensor> {
        let parameter = self.plan.parameters.iter().find(|parameter| parameter.name == name)?;
        let holder = parameter.holders.first()?;
        let rank = self.plan.ranks.iter().find(|(_, rank)| rank.program == holder.program)?.0;
        let buffer = self.program(rank.index()).buffers.get(holder.buffer)?;
        Some(self.read(rank.index(), buffer))
    }

    /// For each rank one past the highest byte of its arena that any instruction has touched.
    pub fn touched_bytes(&self) -> Vec<u64> {
        self.ranks.iter().map(|rank| rank.touched as u64).collect()
    }

    fn program(&self, rank: usize) -> &'p Program {
        &self.plan.programs[self.plan.ranks[RankId::from_index(rank)].program]
    }

    fn read(&self, rank: usize, buffer: &Buffer) -> Tensor {
        let start = buffer.offsets[0] as usize;
        let bytes = &self.ranks[rank].arena.bytes()[start..start + buffer.ty.bytes() as usize];
        Tensor::from_bytes(buffer.ty.clone(), bytes).expect("the bytes are as many as the type has")
    }

    fn write(&mut self, rank: usize, buffer: &Buffer, bytes: &[u8]) -> Result<(), RunError> {
        for &offset in &buffer.offsets {
            let arena = self.ranks[rank].arena.bytes_mut();
            let place = usize::try_from(offset).ok().and_then(|start| arena.get_mut(start..)?.get_mut(..bytes.len()));
            let place = place.ok_or_else(|| RunError::Plan(format!("buffer `{}` leaves the arena", buffer.name)))?;
            place.copy_from_slice(bytes);
            self.ranks[rank].touched = self.ranks[rank].touched.max(offset as usize + bytes.len());
        }
        Ok(())
    }

    /// A scalar output, from the first rank that has it.
    fn output(&self, name: &str) -> Option<f64> {
        (0..self.ranks.len()).find_map(|rank| {
            let program = self.program(rank);
            let output = program.outputs.iter().find(|output| output.name == name)?;
            self.read(rank, program.buffers.get(output.buffer)?).to_f64s().first().copied()
        })
    }

    fn inputs(&self, batches: &mut dyn Batches, learning_rate: f64) -> Result<Vec<Vec<Tensor>>, RunError> {
        let one = |input: &PlanInput| match input.role {
            InputRole::Scalar => scalar(input, learning_rate, self.step).map(|tensor| vec![tensor]),
            InputRole::Data | InputRole::Label => (0..self.plan.micro_batches)
                .map(|micro_batch| {
                    let tensor = batches.batch(self.step, micro_batch, input)?;
                    if *tensor.ty() == input.ty {
                        return Ok(tensor);
                    }
                    let PlanInput { name, role: _, ty } = input;
                    Err(RunError::Data(format!("input `{name}`: expected {ty}, found {}", tensor.ty())))
                })
                .collect(),
            InputRole::Parameter | InputRole::Buffer | InputRole::State | InputRole::GradientSum => {
                Err(RunError::Plan(format!("the host cannot feed the input `{}` of this role", input.name)))
            }
        };
        self.plan.inputs.values().map(one).collect()
    }
}

/// The communicator and the position in it, for each port of a rank's program.
fn ports(plan: &Plan, id: RankId, program: &Program) -> Result<Vec<(usize, usize)>, RunError> {
    let rank = &plan.ranks[id];
    if rank.communicators.len() != program.ports.len() {
        let (found, expected) = (rank.communicators.len(), program.ports.len());
        return Err(RunError::Plan(format!("rank {id} fills {found} ports of its program, expected {expected}")));
    }
    let port = |&communicator: &trainc_ir::plan::CommunicatorId| {
        let members = plan.communicators.get(communicator)?;
        Some((communicator.index(), members.iter().position(|&member| member == id)?))
    };
    let ports: Option<_> = rank.communicators.iter().map(port).collect();
    ports.ok_or_else(|| RunError::Plan(format!("rank {id} is no member of a communicator that it uses")))
}

/// A number that the host sets once per step.
fn scalar(input: &PlanInput, learning_rate: f64, step: u32) -> Result<Tensor, RunError> {
    let tensor = match (input.name.as_str(), input.ty.dtype) {
        ("lr", DType::F32) => Tensor::from_f32(&[], &[learning_rate as f32]),
        ("step", DType::I64) => Tensor::from_i64(&[], &[i64::from(step)]),
        _ => None,
    };
    tensor.filter(|tensor| *tensor.ty() == input.ty).ok_or_else(|| {
        RunError::Plan(format!("unknown scalar `{}` of type {}, expected `lr` or `step`", input.name, input.ty))
    })
}

fn run_threads(ranks: &mut [Rank], shared: Shared<'_>) {
    std::thread::scope(|scope| {
        for rank in ranks {
            scope.spawn(move || {
                let index = rank.index;
                match rank.run(shared) {
                    Ok(()) => shared.exchange.end(index),
                    Err(error) => shared.exchange.fail(error),
                }
            });
        }
    });
}

/// Draws the next stream among all streams of all ranks until all have ended.
fn run_drawn(ranks: &mut [Rank], shared: Shared<'_>, seed: u64) -> Result<(), RunError> {
    let site = Site { seed, step: shared.step, site: 0 };
    let mut n_drawn = 0;
    let mut open: Vec<(usize, usize)> =
        ranks.iter().flat_map(|rank| (0..rank.n_streams()).map(|stream| (rank.index, stream))).collect();
    // Streams that could not go on since something last happened.
    let mut waiting = Vec::new();
    while !open.is_empty() || !waiting.is_empty() {
        if open.is_empty() {
            return Err(RunError::Deadlock(ranks.iter().map(|rank| rank.waits_for(shared.plan)).collect()));
        }
        let drawn = site.word(n_drawn) as usize % open.len();
        n_drawn += 1;
        let (rank, stream) = open.swap_remove(drawn);
        match ranks[rank].advance(stream, shared)? {
            Advance::Did => {
                open.push((rank, stream));
                open.append(&mut waiting);
            }
            Advance::Waits => waiting.push((rank, stream)),
            Advance::Ended => {}
        }
    }
    Ok(())
}

//! One rank: its arena, its streams, and the next thing that each of them can do.

use super::checks::{Checks, poison};
use super::error::RunError;
use super::exchange::{Exchange, Progress};
use super::schedule::{Schedule, Span, Step, Transfer, Work, resolve};
use crate::host::{Arg, Context, Out, Storage, Tensor, execute};
use trainc_ir::id::Id;
use trainc_ir::plan::{KernelCall, Operand, Plan, Segment};

/// What all ranks share during a step.
#[derive(Clone, Copy)]
pub(super) struct Shared<'s> {
    /// The plan.
    pub(super) plan: &'s Plan,
    /// The transport.
    pub(super) exchange: &'s Exchange,
    /// Inputs of the step: for each input its micro-batches (one for a scalar).
    pub(super) inputs: &'s [Vec<Tensor>],
    /// Seed of the run.
    pub(super) seed: u64,
    /// Number of the step.
    pub(super) step: u32,
}

/// What a stream did when it was asked to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// It did something.
    Did,
    /// It waits for an event or for another rank.
    Waits,
    /// It has nothing left to do.
    Ended,
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// Position in the stream's list of steps.
    at: usize,
    /// Kernels of the current call that have run.
    kernel: usize,
}

/// One rank of the job.
pub(super) struct Rank {
    /// Position in the plan.
    pub(super) index: usize,
    /// What it runs.
    pub(super) schedule: Schedule,
    /// The communicator and the rank's position in it, by port.
    pub(super) ports: Vec<(usize, usize)>,
    /// Its memory.
    pub(super) arena: Storage,
    /// Checked mode.
    pub(super) checks: Option<Checks>,
    /// One past the highest byte touched so far.
    pub(super) touched: usize,
    cursors: Vec<Cursor>,
    recorded: Vec<bool>,
}

impl Rank {
    /// A rank at the beginning of a step.
    pub(super) fn new(
        index: usize,
        schedule: Schedule,
        ports: Vec<(usize, usize)>,
        arena: Storage,
        checks: Option<Checks>,
    ) -> Self {
        let cursors = vec![Cursor::default(); schedule.streams.len()];
        let recorded = vec![false; schedule.n_events];
        Self { index, schedule, ports, arena, checks, touched: 0, cursors, recorded }
    }

    /// Makes ready for a step.
    pub(super) fn begin(&mut self) {
        self.cursors.fill(Cursor::default());
        self.recorded.fill(false);
        let (arena, len) = (self.arena.start(), self.arena.len());
        if let Some(checks) = &mut self.checks {
            // SAFETY: between steps nothing else touches the arena.
            unsafe { checks.begin(arena, len) };
        }
    }

    /// Number of streams.
    pub(super) fn n_streams(&self) -> usize {
        self.cursors.len()
    }

    /// Runs all streams to their ends, waiting for other ranks where nothing else is left to do.
    pub(super) fn run(&mut self, shared: Shared<'_>) -> Result<(), RunError> {
        loop {
            let generation = shared.exchange.generation();
            let (mut did, mut ended) = (false, true);
            for stream in 0..self.n_streams() {
                loop {
                    match self.advance(stream, shared)? {
                        Advance::Did => did = true,
                        Advance::Waits => {
                            ended = false;
                            break;
                        }
                        Advance::Ended => break,
                    }
                }
            }
            if ended {
                return Ok(());
            }
            if !did {
                shared.exchange.wait(self.index, generation, || self.waits_for(shared.plan))?;
            }
        }
    }

    /// Lets a stream do one thing: one kernel, one load, or its part in a communication.
    pub(super) fn advance(&mut self, stream: usize, shared: Shared<'_>) -> Result<Advance, RunError> {
        let cursor = self.cursors[stream];
        let Some(&index) = self.schedule.streams[stream].get(cursor.at) else {
            return Ok(Advance::Ended);
        };
        // A step is lent out of the schedule while it runs: nothing else asks for it.
        let step = std::mem::replace(&mut self.schedule.steps[index], empty_step());
        let result = self.advance_step(&step, cursor, shared);
        self.schedule.steps[index] = step;
        let (advance, done) = result?;
        if done {
            self.finish(index, stream);
        } else if advance == Advance::Did {
            self.cursors[stream].kernel += 1;
        }
        Ok(advance)
    }

    /// Does one thing of a step, and says whether the step is done with it.
    fn advance_step(&mut self, step: &Step, cursor: Cursor, shared: Shared<'_>) -> Result<(Advance, bool), RunError> {
        if step.waits.iter().any(|&event| !self.recorded[event]) {
            return Ok((Advance::Waits, false));
        }
        match &step.work {
            Work::Call { segment, formals, locals, micro_batch, site } => {
                let segment = &shared.plan.segments[*segment];
                let context = Context { seed: shared.seed, step: shared.step, site: *site, micro_batch: *micro_batch };
                if let Some(call) = segment.body.get(cursor.kernel) {
                    self.kernel(segment, call, (formals, locals), context, shared.plan)?;
                    if self.checks.is_some() {
                        self.free_locals(segment, cursor.kernel, (formals, locals));
                    }
                }
                Ok((Advance::Did, cursor.kernel + 1 >= segment.body.len()))
            }
            Work::Load { input, micro_batch, span } => {
                let tensors = &shared.inputs[input.index()];
                let tensor = &tensors[(*micro_batch).min(tensors.len() - 1)];
                self.touch(*span);
                // SAFETY: the span lies in the arena, and the plan orders this load before every use.
                unsafe { self.bytes_mut(*span) }.copy_from_slice(tensor.bytes());
                Ok((Advance::Did, true))
            }
            Work::Transfers(parts) => self.transfers(parts, cursor, shared),
        }
    }

    /// Brings a group of communications forward. Posting counts as doing something, once for each newly posted part.
    fn transfers(
        &mut self,
        parts: &[Transfer],
        cursor: Cursor,
        shared: Shared<'_>,
    ) -> Result<(Advance, bool), RunError> {
        let (mut n_posted, mut n_done) = (0, 0);
        for part in parts {
            self.touch(part.span);
            // SAFETY: the span lies in the arena; the plan keeps everything else away from it until the step is done.
            match unsafe { shared.exchange.advance(self.ports[part.port], *part, self.arena.start()) }? {
                Progress::NotYet => {}
                Progress::Posted => n_posted += 1,
                Progress::Done => n_done += 1,
            }
        }
        if n_done == parts.len() {
            return Ok((Advance::Did, true));
        }
        let new = n_posted + n_done > cursor.kernel;
        Ok((if new { Advance::Did } else { Advance::Waits }, false))
    }

    /// Runs one kernel of a call.
    fn kernel(
        &mut self,
        segment: &Segment,
        call: &KernelCall,
        (formals, locals): (&[Span], &[Span]),
        context: Context,
        plan: &Plan,
    ) -> Result<(), RunError> {
        let kernel = &plan.kernels[call.kernel];
        let span = |operand: &Operand| resolve(*operand, formals, locals).expect("operands were resolved in `unroll`");
        let inputs: Vec<Span> = call.inputs.iter().map(span).collect();
        let outputs: Vec<Span> = call.outputs.iter().map(span).collect();
        inputs.iter().chain(&outputs).for_each(|&span| self.touch(span));
        if kernel.op.is_alias() && inputs[0].start == outputs[0].start {
            return Ok(());
        }
        let in_place = kernel.op.in_place();
        let overlap = |message: &str| {
            RunError::Plan(format!("segment `{}`: {message} of `{}` share bytes", segment.name, kernel.op.spelling()))
        };
        for (i, &out) in outputs.iter().enumerate() {
            if outputs[..i].iter().any(|&other| other.meets(out)) {
                return Err(overlap("two results"));
            }
            if let Some(operand) =
                (0..inputs.len()).find(|&j| inputs[j].meets(out) && (!in_place.contains(&(i, j)) || inputs[j] != out))
            {
                return Err(overlap(&format!("result {i} and operand {operand}")));
            }
            let kept = in_place.iter().find(|(result, _)| *result == i).map(|&(_, operand)| inputs[operand]);
            match kept {
                Some(from) if from != out => {
                    // SAFETY: both spans lie in the arena and were found not to overlap.
                    unsafe { self.bytes_mut(out) }.copy_from_slice(unsafe { self.bytes(from) });
                }
                Some(_) => {}
                None if self.checks.is_some() => {
                    // SAFETY: the kernel is about to write this result wholly.
                    unsafe { poison(self.arena.start(), out) };
                }
                None => {}
            }
        }
        let replaced = |j: usize| in_place.iter().any(|&(_, operand)| operand == j);
        let args: Vec<Arg<'_>> = kernel
            .inputs
            .iter()
            .zip(&inputs)
            .enumerate()
            // SAFETY: operands lie in the arena and do not overlap results, except those that are replaced, which get no bytes.
            .map(|(j, (ty, &span))| Arg { ty, bytes: if replaced(j) { &[] } else { unsafe { self.bytes(span) } } })
            .collect();
        let mut outs: Vec<Out<'_>> = kernel
            .outputs
            .iter()
            .zip(&outputs)
            // SAFETY: results lie in the arena and overlap nothing else in use.
            .map(|(ty, &span)| Out { ty, bytes: unsafe { self.bytes_mut(span) } })
            .collect();
        execute(&kernel.op, context, &args, &mut outs).map_err(|fault| RunError::Kernel {
            rank: self.index,
            segment: segment.name.clone(),
            op: kernel.op.spelling(),
            fault,
        })
    }

    /// Poisons the locals that no later kernel of the call reads.
    fn free_locals(&self, segment: &Segment, at: usize, (formals, locals): (&[Span], &[Span])) {
        let call = &segment.body[at];
        let later = &segment.body[at + 1..];
        for operand in call.inputs.iter().chain(&call.outputs) {
            let Operand::Local(local) = *operand else { continue };
            let span = locals[local as usize];
            let is_used = later.iter().any(|call| {
                let operands = || call.inputs.iter().chain(&call.outputs);
                operands().any(|other| other == operand)
            });
            let taken_over = call.outputs.iter().any(|other| {
                other != operand && resolve(*other, formals, locals).is_some_and(|other| other.meets(span))
            });
            if !is_used && !taken_over {
                // SAFETY: nothing reads the local any more, and no result of this kernel lies on it.
                unsafe { poison(self.arena.start(), span) };
            }
        }
    }

    fn finish(&mut self, index: usize, stream: usize) {
        let arena = self.arena.start();
        let step = &self.schedule.steps[index];
        if let Some(checks) = &mut self.checks {
            // SAFETY: the step is done, and the plan lets nothing else touch what it used before its event is recorded.
            unsafe { checks.end_step(index, step, arena) };
        }
        if let Some(event) = step.record {
            self.recorded[event] = true;
        }
        self.cursors[stream] = Cursor { at: self.cursors[stream].at + 1, kernel: 0 };
    }

    /// What the rank's streams wait for, for people.
    pub(super) fn waits_for(&self, plan: &Plan) -> String {
        let program = &plan.programs[plan.ranks[trainc_ir::plan::RankId::from_index(self.index)].program];
        let streams = (0..self.n_streams()).filter_map(|stream| {
            let &step = self.schedule.streams[stream].get(self.cursors[stream].at)?;
            let step = &self.schedule.steps[step];
            let waits = step.waits.iter().any(|&event| !self.recorded[event]);
            let name = &program.streams[trainc_ir::plan::StreamId::from_index(stream)].name;
            let what = match &step.work {
                _ if waits => "an event".to_owned(),
                Work::Transfers(parts) => {
                    let parts = parts.iter().map(|part| {
                        let port = &program.ports[trainc_ir::plan::PortId::from_index(part.port)];
                        format!("{:?} {} on port `{port}`", part.role, part.sequence)
                    });
                    parts.collect::<Vec<_>>().join(", ")
                }
                Work::Call { .. } | Work::Load { .. } => "nothing".to_owned(),
            };
            Some(format!("stream `{name}` waits for {what}"))
        });
        streams.collect::<Vec<_>>().join(", ")
    }

    fn touch(&mut self, span: Span) {
        self.touched = self.touched.max(span.end());
    }

    /// Bytes of the arena.
    ///
    /// # Safety
    /// The span lies in the arena, and nothing writes it while the result lives.
    unsafe fn bytes<'a>(&self, span: Span) -> &'a [u8] {
        // SAFETY: the caller's contract; the arena outlives the step.
        unsafe { std::slice::from_raw_parts(self.arena.start().add(span.start), span.len) }
    }

    /// Bytes of the arena, mutable.
    ///
    /// # Safety
    /// The span lies in the arena, and nothing else touches it while the result lives.
    unsafe fn bytes_mut<'a>(&self, span: Span) -> &'a mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.arena.start().add(span.start), span.len) }
    }
}

fn empty_step() -> Step {
    Step { work: Work::Transfers(Vec::new()), waits: Vec::new(), record: None, uses: Vec::new() }
}

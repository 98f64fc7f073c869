//! Writes plans by hand: kernels without repetition, segments, programs with everything placed one after the other.

use trainc_ir::id::{Id, Table};
use trainc_ir::op::Op;
use trainc_ir::plan::{
    Access, Action, Buffer, BufferId, BufferKind, BufferRef, EventId, EventRef, Formal, Frame, FrameId, Index, Instr,
    Item, Kernel, KernelCall, KernelId, Operand, PortId, Program, ProgramOutput, Segment, SegmentId, Stream, StreamId,
    StreamKind,
};
use trainc_ir::{Phase, Type};

/// The kernels and segments of a plan.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) kernels: Table<KernelId, Kernel>,
    pub(crate) segments: Table<SegmentId, Segment>,
}

/// A segment under construction.
pub(crate) struct SegmentBuilder<'c> {
    code: &'c mut Code,
    segment: Segment,
}

impl Code {
    pub(crate) fn segment(&mut self, name: &str, phase: Phase) -> SegmentBuilder<'_> {
        let segment =
            Segment { name: name.to_owned(), phase, formals: Vec::new(), locals: Vec::new(), body: Vec::new() };
        SegmentBuilder { code: self, segment }
    }
}

impl SegmentBuilder<'_> {
    pub(crate) fn formal(&mut self, ty: Type, access: Access) -> Operand {
        self.segment.formals.push(Formal { ty, access });
        Operand::Formal(self.segment.formals.len() as u32 - 1)
    }

    pub(crate) fn local(&mut self, ty: Type) -> Operand {
        self.segment.locals.push(ty);
        Operand::Local(self.segment.locals.len() as u32 - 1)
    }

    fn ty(&self, operand: Operand) -> Type {
        match operand {
            Operand::Formal(index) => self.segment.formals[index as usize].ty.clone(),
            Operand::Local(index) => self.segment.locals[index as usize].clone(),
        }
    }

    /// A kernel on operands of their own types.
    pub(crate) fn kernel(&mut self, op: impl Into<Op>, inputs: &[Operand], outputs: &[Operand]) {
        let types = inputs.iter().map(|&operand| self.ty(operand)).collect();
        self.kernel_as(op, inputs, types, outputs);
    }

    /// A kernel that sees its operands under other shapes.
    pub(crate) fn kernel_as(&mut self, op: impl Into<Op>, inputs: &[Operand], types: Vec<Type>, outputs: &[Operand]) {
        let op = op.into();
        let results = op.infer(&types.iter().collect::<Vec<_>>()).expect("the operands fit");
        let kernel = Kernel { op, inputs: types, outputs: results };
        let known = self.code.kernels.iter().find(|(_, known)| **known == kernel).map(|(id, _)| id);
        let kernel = known.unwrap_or_else(|| self.code.kernels.push(kernel));
        self.segment.body.push(KernelCall { kernel, inputs: inputs.to_vec(), outputs: outputs.to_vec() });
    }

    pub(crate) fn finish(self) -> SegmentId {
        self.code.segments.push(self.segment)
    }
}

/// A program under construction.
pub(crate) struct ProgramBuilder {
    pub(crate) program: Program,
}

pub(crate) const COMPUTE: usize = 0;
pub(crate) const TRANSFER: usize = 1;

impl ProgramBuilder {
    pub(crate) fn new(stage: u32, ports: &[&str], events: &[&str]) -> Self {
        let stream = |name: &str, kind| Stream { name: name.to_owned(), kind };
        Self {
            program: Program {
                name: format!("stage {stage}"),
                stage,
                arena_bytes: 0,
                arena_lower_bound: 0,
                streams: [stream("compute", StreamKind::Compute), stream("transfer", StreamKind::Transfer)]
                    .into_iter()
                    .collect(),
                events: events.iter().map(|&name| name.to_owned()).collect(),
                ports: ports.iter().map(|&name| name.to_owned()).collect(),
                buffers: Table::new(),
                frames: Table::new(),
                body: Vec::new(),
                outputs: Vec::new(),
            },
        }
    }

    fn place(&mut self, ty: &Type) -> u64 {
        let offset = self.program.arena_bytes;
        self.program.arena_bytes = (offset + ty.bytes()).next_multiple_of(8);
        offset
    }

    pub(crate) fn buffer(&mut self, name: &str, ty: Type, kind: BufferKind, slots: usize) -> BufferId {
        let offsets = (0..slots).map(|_| self.place(&ty)).collect();
        self.program.buffers.push(Buffer { name: name.to_owned(), ty, kind, offsets })
    }

    pub(crate) fn frame(&mut self, code: &Code, segment: SegmentId) -> FrameId {
        let offsets = code.segments[segment].locals.iter().map(|ty| self.place(ty)).collect();
        self.program.frames.push(Frame { segment, offsets })
    }

    pub(crate) fn output(&mut self, name: &str, buffer: BufferId) {
        self.program.outputs.push(ProgramOutput { name: name.to_owned(), buffer });
    }

    pub(crate) fn once(&mut self, instrs: impl IntoIterator<Item = Instr>) {
        self.program.body.extend(instrs.into_iter().map(Item::Once));
    }

    pub(crate) fn repeat(&mut self, trips: u64, body: Vec<Instr>) {
        self.program.body.push(Item::Loop { trips, body });
    }
}

pub(crate) fn slot(buffer: BufferId, slot: Index) -> BufferRef {
    BufferRef { buffer, slot }
}

pub(crate) fn first(buffer: BufferId) -> BufferRef {
    slot(buffer, Index::at(0))
}

pub(crate) fn port(index: usize) -> PortId {
    PortId::from_index(index)
}

/// An instruction; events are given as (number, index).
pub(crate) fn instr(stream: usize, waits: &[(usize, Index)], action: Action, record: Option<(usize, Index)>) -> Instr {
    let event = |(number, index): (usize, Index)| EventRef { event: EventId::from_index(number), index };
    Instr {
        stream: StreamId::from_index(stream),
        waits: waits.iter().copied().map(event).collect(),
        action,
        record: record.map(event),
    }
}

//! Checked mode: freed and undefined bytes are poisoned, reads of what was never written are errors, and the highest byte
//! that the rank touches is recorded.

use super::error::RunError;
use super::schedule::{Schedule, Span, Step, Work};
use std::collections::BTreeMap;
use trainc_ir::plan::{Access, BufferId, BufferKind, Program};

/// Poison reads as NaN in every float type and as an index far out of range in the wider integers.
const POISON: [u8; 4] = [0xF7, 0xFF, 0xF7, 0x7F];

/// One value that a buffer's slot holds between two writes.
#[derive(Clone, Copy, Debug)]
struct Version {
    /// Uses that are still to come.
    uses_left: usize,
    /// Whether its bytes stay when nothing uses them any more.
    stays: bool,
}

/// What is known of a rank's buffers before it runs.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    /// The versions that each step uses, in the order of its uses.
    uses: Vec<Vec<usize>>,
    /// All versions as they are before a step.
    fresh: Vec<Version>,
    /// All versions now.
    versions: Vec<Version>,
    /// Bytes that keep their value between steps.
    persistent: Vec<Span>,
}

/// Whether what a buffer holds survives the step.
fn persists(kind: BufferKind) -> bool {
    match kind {
        BufferKind::Parameter | BufferKind::State => true,
        BufferKind::Gradient | BufferKind::Scalar | BufferKind::Data | BufferKind::Saved | BufferKind::Boundary => {
            false
        }
    }
}

impl Checks {
    /// Prepares the checks of one program.
    ///
    /// # Errors
    /// An instruction reads a buffer that nothing before it wrote.
    pub(super) fn new(program: &Program, schedule: &Schedule) -> Result<Self, RunError> {
        let stays = |buffer: BufferId| {
            let kind = program.buffers[buffer].kind;
            // The host looks at gradients and outputs after the step.
            persists(kind) || kind == BufferKind::Gradient || program.outputs.iter().any(|o| o.buffer == buffer)
        };
        let mut current: BTreeMap<(BufferId, usize), usize> = BTreeMap::new();
        let mut versions = Vec::new();
        let mut uses = Vec::new();
        for step in &schedule.steps {
            let mut used = Vec::new();
            for x in &step.uses {
                let key = (x.buffer, x.slot);
                let buffer = &program.buffers[x.buffer];
                let known = current.get(&key).copied();
                let version = match (x.access, known) {
                    (Access::Read | Access::Update, Some(version)) => version,
                    (Access::Read | Access::Update, None) if !persists(buffer.kind) => {
                        let name = &program.name;
                        return Err(RunError::Plan(format!(
                            "program `{name}` reads buffer `{}` before anything writes it",
                            buffer.name
                        )));
                    }
                    (Access::Write, _) | (Access::Read | Access::Update, None) => {
                        versions.push(Version { uses_left: 0, stays: stays(x.buffer) });
                        versions.len() - 1
                    }
                };
                current.insert(key, version);
                let fresh: &mut Version = &mut versions[version];
                fresh.uses_left += 1;
                used.push(version);
            }
            uses.push(used);
        }
        let persistent = program.buffers.values().filter(|buffer| persists(buffer.kind));
        let spans = persistent.flat_map(|buffer| {
            let len = buffer.ty.bytes() as usize;
            buffer.offsets.iter().map(move |&offset| Span { start: offset as usize, len })
        });
        let mut persistent: Vec<Span> = spans.collect();
        persistent.sort_by_key(|span| span.start);
        Ok(Self { uses, versions: versions.clone(), fresh: versions, persistent })
    }

    /// Poisons everything that does not persist.
    ///
    /// # Safety
    /// `arena` starts `arena_len` bytes that nothing else touches.
    pub(super) unsafe fn begin(&mut self, arena: *mut u8, arena_len: usize) {
        self.versions.clone_from(&self.fresh);
        let mut at = 0;
        for span in &self.persistent {
            if span.start > at {
                // SAFETY: the caller's contract; spans lie in the arena.
                unsafe { poison(arena, Span { start: at, len: span.start - at }) };
            }
            at = at.max(span.end());
        }
        // SAFETY: as above.
        unsafe { poison(arena, Span { start: at, len: arena_len.saturating_sub(at) }) };
    }

    /// Poisons the buffers that nothing will use any more, now that a step is done.
    ///
    /// # Safety
    /// `arena` starts the rank's arena, and nothing else touches what the step used.
    pub(super) unsafe fn end_step(&mut self, index: usize, step: &Step, arena: *mut u8) {
        // A communication may be done before its own rank learns of it, and later ones of other ranks may have written
        // the bytes since: they are left alone.
        let is_own = !matches!(step.work, Work::Transfers(_));
        for (used, &version) in step.uses.iter().zip(&self.uses[index]) {
            let version = &mut self.versions[version];
            version.uses_left -= 1;
            if version.uses_left == 0 && !version.stays && is_own {
                for span in self.dead_parts(index, step, used.span) {
                    // SAFETY: the caller's contract; spans lie in the arena.
                    unsafe { poison(arena, span) };
                }
            }
        }
    }

    /// The parts of a dead buffer that no live one has taken over: within a call, a result may be written where an operand
    /// lay whose last reader has run.
    fn dead_parts(&self, index: usize, step: &Step, dead: Span) -> Vec<Span> {
        let mut parts = vec![dead];
        for (other, &version) in step.uses.iter().zip(&self.uses[index]) {
            let Version { uses_left, stays } = self.versions[version];
            if uses_left == 0 && !stays {
                continue;
            }
            let live = other.span;
            parts = parts
                .into_iter()
                .flat_map(|part| {
                    let before = Span { start: part.start, len: live.start.clamp(part.start, part.end()) - part.start };
                    let from = live.end().clamp(part.start, part.end());
                    [before, Span { start: from, len: part.end() - from }]
                })
                .filter(|part| part.len > 0)
                .collect();
        }
        parts
    }
}

/// Overwrites a span with poison.
///
/// # Safety
/// The span lies in an arena that starts at `arena`, and nothing else touches it.
pub(super) unsafe fn poison(arena: *mut u8, span: Span) {
    // SAFETY: the caller's contract.
    let bytes = unsafe { std::slice::from_raw_parts_mut(arena.add(span.start), span.len) };
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = POISON[(span.start + i) % POISON.len()];
    }
}

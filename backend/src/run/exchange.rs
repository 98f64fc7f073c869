//! The in-process transport: a communication happens when every side has come to it, without buffering.
//!
//! Each communicator runs its communications one after the other in one total order. A rank posts its part of the next one
//! and goes on with its other streams; whoever posts last moves the bytes.

use super::error::RunError;
use super::schedule::{Role, Transfer};
use std::sync::{Condvar, Mutex, MutexGuard};
use trainc_ir::DType;

/// Where a rank stands with its part of a communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// An earlier communication of the communicator is still open.
    NotYet,
    /// Posted; others have still to come.
    Posted,
    /// Done.
    Done,
}

/// A rank's part of the open communication.
#[derive(Clone, Copy)]
struct Post {
    part: Transfer,
    /// First byte of the rank's arena.
    arena: *mut u8,
}

/// One communicator.
struct Communicator {
    /// Parts of the open communication, by member.
    posts: Vec<Option<Post>>,
    /// Number of communications that are done.
    done: usize,
}

struct State {
    communicators: Vec<Communicator>,
    /// Counts everything that may let a rank go on.
    generation: u64,
    /// What each rank that waits since the last change waits for.
    waiting: Vec<Option<String>>,
    /// Whether the ranks have ended their step.
    ended: Vec<bool>,
    failure: Option<RunError>,
}

// SAFETY: arenas outlive the exchange of a step, and posted bytes are touched under the lock only.
unsafe impl Send for State {}

/// The transport of one step of all ranks.
pub(super) struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
}

impl Exchange {
    /// A transport for communicators of these sizes.
    pub(super) fn new(sizes: &[usize], n_ranks: usize) -> Self {
        let communicators = sizes.iter().map(|&n| Communicator { posts: vec![None; n], done: 0 }).collect();
        let state = State {
            communicators,
            generation: 0,
            waiting: vec![None; n_ranks],
            ended: vec![false; n_ranks],
            failure: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// A number that changes whenever a rank that waits may go on.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Posts a part unless it is posted already, and says where it stands.
    ///
    /// # Safety
    /// Until the part is done, the span lies in an arena that starts at `arena`, and nothing else writes it.
    pub(super) unsafe fn advance(
        &self,
        (communicator, member): (usize, usize),
        part: Transfer,
        arena: *mut u8,
    ) -> Result<Progress, RunError> {
        let mut state = self.lock();
        if state.failure.is_some() {
            return Err(RunError::Aborted);
        }
        let open = &mut state.communicators[communicator];
        if open.done > part.sequence {
            return Ok(Progress::Done);
        }
        if open.done < part.sequence {
            return Ok(Progress::NotYet);
        }
        open.posts[member] = Some(Post { part, arena });
        if open.posts.iter().any(Option::is_none) {
            return Ok(Progress::Posted);
        }
        let posts: Vec<Post> = open.posts.iter_mut().filter_map(Option::take).collect();
        // SAFETY: every side has posted its part, and by the contract nothing else writes the posted bytes.
        unsafe { complete(&posts) }.map_err(|message| {
            RunError::Transfer(format!("communicator {communicator}, communication {}: {message}", part.sequence))
        })?;
        open.done += 1;
        self.change(&mut state);
        Ok(Progress::Done)
    }

    /// Waits until something has changed since `generation`; `what` says what the rank waits for.
    pub(super) fn wait(&self, rank: usize, generation: u64, what: impl FnOnce() -> String) -> Result<(), RunError> {
        let mut state = self.lock();
        if state.failure.is_none() && state.generation == generation {
            state.waiting[rank] = Some(what());
            Self::detect_deadlock(&mut state);
            if state.failure.is_some() {
                self.changed.notify_all();
            }
        }
        while state.failure.is_none() && state.generation == generation {
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if state.failure.is_some() { Err(RunError::Aborted) } else { Ok(()) }
    }

    /// Says that the rank has ended its step.
    pub(super) fn end(&self, rank: usize) {
        let mut state = self.lock();
        state.ended[rank] = true;
        Self::detect_deadlock(&mut state);
        self.changed.notify_all();
    }

    /// Stops all ranks; the first failure stays.
    pub(super) fn fail(&self, error: RunError) {
        let mut state = self.lock();
        if error != RunError::Aborted && state.failure.is_none() {
            state.failure = Some(error);
        }
        self.change(&mut state);
    }

    /// The failure that stopped the step.
    pub(super) fn failure(&self) -> Option<RunError> {
        self.lock().failure.clone()
    }

    fn detect_deadlock(state: &mut State) {
        let stuck = state.waiting.iter().zip(&state.ended).all(|(waiting, &ended)| ended || waiting.is_some());
        if stuck && state.failure.is_none() && state.ended.iter().any(|&ended| !ended) {
            let waits = state.waiting.iter().enumerate();
            let waits = waits.filter_map(|(rank, what)| what.as_ref().map(|what| format!("rank {rank} {what}")));
            state.failure = Some(RunError::Deadlock(waits.collect()));
        }
    }

    fn change(&self, state: &mut State) {
        state.generation += 1;
        state.waiting.iter_mut().for_each(|waiting| *waiting = None);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Moves the bytes of a communication whose sides have all come.
///
/// # Safety
/// Every post's span lies in its arena and nothing else touches it.
unsafe fn complete(posts: &[Post]) -> Result<(), String> {
    let len = posts[0].part.span.len;
    if posts.iter().any(|post| post.part.span.len != len) {
        let sizes: Vec<_> = posts.iter().map(|post| post.part.span.len).collect();
        return Err(format!("the sides come with {sizes:?} bytes"));
    }
    // SAFETY: the span lies in the arena by the contract.
    let start = |post: &Post| unsafe { post.arena.add(post.part.span.start) };
    match (posts[0].part.role, posts) {
        (Role::Send, [from, to]) if to.part.role == Role::Recv => {
            // SAFETY: both spans are in bounds and belong to different arenas.
            unsafe { start(from).copy_to_nonoverlapping(start(to), len) };
            Ok(())
        }
        (Role::Broadcast { root }, _)
            if root < posts.len() && posts.iter().all(|post| post.part.role == Role::Broadcast { root }) =>
        {
            for (member, post) in posts.iter().enumerate() {
                if member != root {
                    // SAFETY: as above.
                    unsafe { start(&posts[root]).copy_to_nonoverlapping(start(post), len) };
                }
            }
            Ok(())
        }
        (Role::AllReduce, _) if posts.iter().all(|post| post.part.role == Role::AllReduce) => {
            let dtype = posts[0].part.dtype;
            if posts.iter().any(|post| post.part.dtype != dtype) {
                return Err("the sides add different element types".to_owned());
            }
            let starts: Vec<*mut u8> = posts.iter().map(start).collect();
            // SAFETY: as above; offsets are aligned for the element type.
            unsafe { sum(&starts, len, dtype) }
        }
        _ => {
            let roles: Vec<_> = posts.iter().map(|post| post.part.role).collect();
            Err(format!("the sides come with {roles:?}"))
        }
    }
}

/// Replaces the elements at every start by their sum, added in the order of the starts.
///
/// # Safety
/// Each start leads to `len` bytes that nothing else touches, aligned for the element type.
unsafe fn sum(starts: &[*mut u8], len: usize, dtype: DType) -> Result<(), String> {
    macro_rules! add {
        ($t:ty) => {
            for i in 0..len / size_of::<$t>() {
                // SAFETY: `i` is in bounds by the contract.
                let at = |start: *mut u8| unsafe { start.cast::<$t>().add(i) };
                // SAFETY: as above.
                let total = unsafe { starts[1..].iter().fold(*at(starts[0]), |sum, &start| sum + *at(start)) };
                for &start in starts {
                    // SAFETY: as above.
                    unsafe { *at(start) = total };
                }
            }
        };
    }
    match dtype {
        DType::F32 => add!(f32),
        DType::F64 => add!(f64),
        DType::I32 => add!(i32),
        DType::I64 => add!(i64),
        DType::F16 => add!(half::f16),
        DType::BF16 => add!(half::bf16),
        DType::Bool | DType::U8 | DType::I8 => return Err(format!("{dtype} cannot be added up")),
    }
    Ok(())
}

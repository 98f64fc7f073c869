//! Vector clocks over the streams of all ranks: what happens before what.

use std::rc::Rc;

/// How many instructions of each stream are known to be done, streams of all ranks in one row.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Copied when it changes: most instructions see what others saw.
    done: Rc<[u32]>,
}

impl Clock {
    pub(super) fn new(streams: usize) -> Self {
        Self { done: vec![0; streams].into() }
    }

    pub(super) fn join(&mut self, other: &Self) {
        if Rc::ptr_eq(&self.done, &other.done)
            || self.done.iter().zip(&*other.done).all(|(mine, theirs)| mine >= theirs)
        {
            return;
        }
        for (mine, &theirs) in Rc::make_mut(&mut self.done).iter_mut().zip(&*other.done) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Whether the instruction of that time is done.
    pub(super) fn covers(&self, epoch: Epoch) -> bool {
        self.done[epoch.stream as usize] >= epoch.time
    }

    pub(super) fn time(&self, stream: u32) -> u32 {
        self.done[stream as usize]
    }

    pub(super) fn set(&mut self, epoch: Epoch) {
        Rc::make_mut(&mut self.done)[epoch.stream as usize] = epoch.time;
    }
}

/// An instruction as a moment: the `time`-th of a stream, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) stream: u32,
    pub(super) time: u32,
}

//! Cuts work into pieces whose boundaries depend on sizes alone, and runs them on the current rayon pool.

use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Elements that one piece of elementwise work holds: long enough to hide the cost of a task, short enough for the cache.
pub(super) const PIECE: usize = 16 * 1024;

/// Runs `body(start, piece)` for consecutive pieces of `out`, `piece` elements each (the last may be shorter).
pub(super) fn pieces<T: Send>(out: &mut [T], piece: usize, body: impl Fn(usize, &mut [T]) + Sync) {
    let len = out.len();
    if len <= piece {
        if len > 0 {
            body(0, out);
        }
        return;
    }
    let shared = Shared::new(out);
    tasks(len.div_ceil(piece), &|i| {
        let start = i * piece;
        // SAFETY: pieces of different tasks do not overlap, and `out` is borrowed until all are done.
        body(start, unsafe { shared.range(start, piece.min(len - start)) });
    });
}

/// Runs tasks in parallel. Not generic, so that the scheduler's code is compiled once and not for every kernel.
fn tasks(n: usize, body: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().with_max_len(1).for_each(body);
}

/// Runs `body(first_row, rows)` for consecutive groups of whole rows of `out`, each row `width` elements.
pub(super) fn rows<T: Send>(out: &mut [T], width: usize, body: impl Fn(usize, &mut [T]) + Sync) {
    let per_piece = rows_per_piece(width);
    pieces(out, per_piece * width.max(1), |start, group| body(start / width.max(1), group));
}

/// Whole rows of `width` elements that make one piece.
pub(super) fn rows_per_piece(width: usize) -> usize {
    (PIECE / width.max(1)).max(1)
}

/// Runs `body` for each index below `n`; `work` is the number of elements that one index touches.
pub(super) fn indices(n: usize, work: usize, body: impl Fn(usize) + Sync + Send) {
    if n.saturating_mul(work) <= PIECE || n == 1 {
        (0..n).for_each(body);
    } else {
        tasks(n, &body);
    }
}

/// A mutable slice that several tasks write at disjoint places.
pub(super) struct Shared<T>(*mut T, usize);

// SAFETY: the only access is `range`, whose contract makes the tasks' places disjoint.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    /// Shares `slice` for as long as the caller keeps it borrowed.
    pub(super) fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr(), slice.len())
    }

    /// The elements `start..start + len`.
    ///
    /// # Safety
    /// No two live results of this function overlap, and the shared slice outlives them.
    #[allow(clippy::mut_from_ref, reason = "disjointness is the caller's contract")]
    pub(super) unsafe fn range(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start + len <= self.1, "a task writes inside the shared slice");
        // SAFETY: in bounds by the assertion; disjoint by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }

    /// Writes one element.
    ///
    /// # Safety
    /// As for [`range`](Self::range).
    pub(super) unsafe fn set(&self, at: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.range(at, 1)[0] = value };
    }
}

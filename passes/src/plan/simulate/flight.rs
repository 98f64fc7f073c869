//! Transfers on their way: how far each has come, and how computation beside it slows it.

use super::{Side, Transfer};
use trainc_ir::TransferKind;
use trainc_ir::plan::CommunicatorId;

/// A transfer that has started.
pub(super) struct Flight {
    pub(super) kind: TransferKind,
    pub(super) communicator: Option<CommunicatorId>,
    /// Those that take part, in the communicator's order.
    pub(super) sides: Vec<Side>,
    /// The side that the bytes come from; the first where all bring some.
    pub(super) root: usize,
    pub(super) bytes: u64,
    pub(super) start_ps: u64,
    /// When it was done; until then, up to when its progress is known.
    pub(super) at: u64,
    /// Changes whenever its speed does, so that older ends are known to be void.
    pub(super) version: u64,
    /// What is left of it, undisturbed.
    left: u64,
    /// How many times as long it takes now, in thousandths.
    slow: u32,
}

impl Flight {
    pub(super) fn new(
        kind: TransferKind,
        communicator: Option<CommunicatorId>,
        sides: Vec<Side>,
        bytes: u64,
        now: u64,
        time: u64,
    ) -> Self {
        Self { kind, communicator, sides, root: 0, bytes, start_ps: now, at: now, version: 0, left: time, slow: 1000 }
    }

    /// Changes its speed; whether it did change.
    pub(super) fn slow_down(&mut self, now: u64, slow: u32) -> bool {
        if slow == self.slow {
            return false;
        }
        self.left = self.left.saturating_sub(worked(now - self.at, self.slow, 1));
        (self.at, self.slow, self.version) = (now, slow, self.version + 1);
        true
    }

    /// When it ends if nothing changes.
    pub(super) fn end(&self) -> u64 {
        self.at.saturating_add(lasting(self.left, self.slow, 1))
    }

    pub(super) fn into_transfer(self) -> Transfer {
        let Self { kind, communicator, sides, root, bytes, start_ps, at, version: _, left: _, slow: _ } = self;
        Transfer { kind, communicator, sides, root, bytes, start_ps, end_ps: at }
    }
}

/// Undisturbed time that is done in `passed`, by one of `n` that share the GPU. Rounded down, but never so that a
/// [`lasting`] time does not do what it is the time of.
pub(super) fn worked(passed: u64, slow: u32, n: u64) -> u64 {
    let shares = u128::from(slow.max(1)) * u128::from(n.max(1));
    u64::try_from(u128::from(passed) * 1000 / shares).unwrap_or(u64::MAX)
}

/// Time that undisturbed `left` takes.
pub(super) fn lasting(left: u64, slow: u32, n: u64) -> u64 {
    let scaled = u128::from(left).saturating_mul(u128::from(slow) * u128::from(n));
    u64::try_from(scaled.div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_that_long_is_then_done() {
        for left in [0, 1, 7, 999, 123_456_789] {
            for (slow, n) in [(1000, 1), (1000, 3), (1189, 1), (1333, 2)] {
                let time = lasting(left, slow, n);
                assert!(worked(time, slow, n) >= left, "{left} {slow} {n}");
                assert!(time == 0 || worked(time - 1, slow, n) < left, "{left} {slow} {n}");
            }
        }
        assert_eq!((lasting(1000, 1189, 1), lasting(u64::MAX, 1500, 2)), (1189, u64::MAX));
    }
}

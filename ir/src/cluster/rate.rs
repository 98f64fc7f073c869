//! How long a kernel takes by the size of its work.

/// Time of one kernel by its work (floating-point operations, or bytes): linear between the points, proportional to the
/// work below the first and above the last. More work never takes less time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Work and picoseconds, both ascending.
    points: Vec<(u64, u64)>,
}

/// Picoseconds of a second.
const SECOND: u64 = 1_000_000_000_000;

impl Rate {
    /// Through these points of work and picoseconds; the work must rise and the time not fall. `None` otherwise.
    pub fn new(points: Vec<(u64, u64)>) -> Option<Self> {
        let rises = points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let first = points.first()?;
        (rises && first.0 > 0 && first.1 > 0).then_some(Self { points })
    }

    /// The same rate whatever the size; at a rate of zero any work takes for ever.
    pub fn flat(per_second: u64) -> Self {
        let point = if per_second == 0 { (1, u64::MAX) } else { (per_second, SECOND) };
        Self { points: vec![point] }
    }

    /// Picoseconds of one kernel, rounded up; no work takes no time.
    pub fn time(&self, work: u64) -> u64 {
        let after = self.points.partition_point(|&(at, _)| at < work);
        let (first, last) = (self.points[0], self.points[self.points.len() - 1]);
        if after == 0 {
            return share(work, first.1, first.0);
        }
        let Some(&(high, late)) = self.points.get(after) else { return share(work, last.1, last.0) };
        let (low, early) = self.points[after - 1];
        early.saturating_add(share(work - low, late - early, high - low))
    }
}

/// `work * time / of`, rounded up.
fn share(work: u64, time: u64, of: u64) -> u64 {
    u64::try_from((u128::from(work) * u128::from(time)).div_ceil(u128::from(of))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_linear_between_the_points_and_proportional_outside() {
        let rate = Rate::new(vec![(100, 50), (200, 60)]).unwrap();
        let times = [0, 1, 50, 100, 150, 199, 200, 400, 401].map(|work| rate.time(work));
        assert_eq!(times, [0, 1, 25, 50, 55, 60, 60, 120, 121]);
    }

    #[test]
    fn a_flat_rate_divides() {
        let rate = Rate::flat(3 * SECOND);
        assert_eq!([0, 1, 3, 4].map(|work| rate.time(work)), [0, 1, 1, 2]);
        assert_eq!(
            (Rate::flat(0).time(0), Rate::flat(0).time(1), Rate::flat(1).time(u64::MAX)),
            (0, u64::MAX, u64::MAX)
        );
    }

    #[test]
    fn points_that_fall_are_refused() {
        for points in [vec![], vec![(0, 1)], vec![(1, 0)], vec![(2, 5), (2, 6)], vec![(2, 5), (3, 4)]] {
            assert_eq!(Rate::new(points.clone()), None, "{points:?}");
        }
    }
}

//! Sets of small numbers as slices of words.

/// The words that a set of numbers below `count` takes.
pub(super) fn words(count: usize) -> usize {
    count.div_ceil(64)
}

/// Whether a set has a number.
pub(super) fn has(set: &[u64], number: usize) -> bool {
    set[number / 64] >> (number % 64) & 1 != 0
}

/// Puts a number into a set.
pub(super) fn set(set: &mut [u64], number: usize) {
    set[number / 64] |= 1 << (number % 64);
}

/// Takes a number out of a set.
pub(super) fn clear(set: &mut [u64], number: usize) {
    set[number / 64] &= !(1 << (number % 64));
}

/// Puts all numbers of another set of the same length into a set.
pub(super) fn add(set: &mut [u64], other: &[u64]) {
    for (word, other) in set.iter_mut().zip(other) {
        *word |= other;
    }
}

/// Whether two sets have a number in common.
pub(super) fn meet(set: &[u64], other: &[u64]) -> bool {
    set.iter().zip(other).any(|(word, other)| word & other != 0)
}

/// The numbers in a set, in rising order.
pub(super) fn ones(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(place, &word)| {
        let mut word = word;
        std::iter::from_fn(move || {
            let number = (word != 0).then(|| place * 64 + word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(number)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{add, clear, has, meet, ones, set, words};

    #[test]
    fn sets_keep_what_they_are_given() {
        let mut one = vec![0; words(130)];
        let mut other = one.clone();
        for number in [0, 63, 64, 129] {
            set(&mut one, number);
        }
        set(&mut other, 5);
        assert!(!meet(&one, &other));
        add(&mut other, &one);
        clear(&mut other, 64);
        assert!(meet(&one, &other) && has(&other, 129) && !has(&other, 64));
        assert_eq!(ones(&other).collect::<Vec<_>>(), [0, 5, 63, 129]);
    }
}

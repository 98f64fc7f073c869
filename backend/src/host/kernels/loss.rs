//! Cross-entropy of integer labels, and its gradient.

use super::float::Float;
use super::gather::IndexOutOfRange;
use super::parallel;
use super::softmax::log_sum_exp;

/// Sums `lse - logits[label]` over the rows whose label is not `ignore`, and counts them.
///
/// `logits` is [rows, classes]; `lse` receives the log-sum-exp of every row, ignored or not.
pub(crate) fn cross_entropy<T: Float>(
    logits: &[T],
    classes: usize,
    labels: &[i64],
    ignore: i64,
    lse: &mut [T],
) -> Result<(f64, u64), IndexOutOfRange> {
    check(labels, classes, ignore)?;
    parallel::pieces(lse, parallel::rows_per_piece(classes), |first, lse| {
        for (i, lse) in lse.iter_mut().enumerate() {
            *lse = log_sum_exp(&logits[(first + i) * classes..][..classes]);
        }
    });
    let valid = labels.iter().enumerate().filter(|&(_, &label)| label != ignore);
    Ok(valid.fold((0.0, 0), |(sum, count), (row, &label)| {
        let loss = lse[row] - logits[row * classes + label as usize];
        (sum + loss.wide(), count + 1)
    }))
}

/// `dlogits = (softmax(logits) - one_hot(label)) * dloss` by rows; zero where the label is `ignore`.
pub(crate) fn cross_entropy_grad<T: Float>(
    (logits, classes): (&[T], usize),
    (labels, ignore): (&[i64], i64),
    lse: &[T],
    dloss: T,
    dlogits: &mut [T],
) -> Result<(), IndexOutOfRange> {
    check(labels, classes, ignore)?;
    parallel::rows(dlogits, classes, |first, group| {
        for (i, out) in group.chunks_exact_mut(classes).enumerate() {
            let row = first + i;
            if labels[row] == ignore {
                out.fill(T::ZERO);
                continue;
            }
            let lse = lse[row];
            for (out, &x) in out.iter_mut().zip(&logits[row * classes..][..classes]) {
                *out = (x - lse).exp() * dloss;
            }
            out[labels[row] as usize] -= dloss;
        }
    });
    Ok(())
}

fn check(labels: &[i64], classes: usize, ignore: i64) -> Result<(), IndexOutOfRange> {
    let in_range = |label: i64| label == ignore || usize::try_from(label).is_ok_and(|label| label < classes);
    match labels.iter().find(|&&label| !in_range(label)) {
        Some(&index) => Err(IndexOutOfRange { index, len: classes }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{cross_entropy, cross_entropy_grad};

    const CLASSES: usize = 7;
    const LABELS: [i64; 5] = [3, -100, 0, 6, 3];

    fn logits() -> Vec<f64> {
        (0..5 * CLASSES).map(|i| ((i * 37) % 19) as f64 * 0.3 - 2.0).collect()
    }

    fn loss(logits: &[f64]) -> (f64, u64) {
        cross_entropy(logits, CLASSES, &LABELS, -100, &mut [0.0; 5]).unwrap()
    }

    #[test]
    fn uniform_logits_cost_the_log_of_the_classes() {
        // Closed form: -log(1 / classes) for each valid row.
        let (sum, count) = loss(&[0.25; 5 * CLASSES]);
        assert_eq!(count, 4);
        assert!((sum - 4.0 * (CLASSES as f64).ln()).abs() < 1e-12);
    }

    #[test]
    fn gradient_matches_finite_differences() {
        let x = logits();
        let mut lse = [0.0; 5];
        cross_entropy(&x, CLASSES, &LABELS, -100, &mut lse).unwrap();
        let mut dx = vec![f64::NAN; x.len()];
        cross_entropy_grad((&x, CLASSES), (&LABELS, -100), &lse, 0.5, &mut dx).unwrap();
        for i in 0..x.len() {
            let (mut above, mut below) = (x.clone(), x.clone());
            above[i] += 1e-6;
            below[i] -= 1e-6;
            let want = 0.5 * (loss(&above).0 - loss(&below).0) / 2e-6;
            assert!((dx[i] - want).abs() < 1e-8, "{i}: {}, expected {want}", dx[i]);
        }
    }

    #[test]
    fn a_label_out_of_range_is_an_error() {
        let error = cross_entropy(&logits()[..CLASSES], CLASSES, &[7], -100, &mut [0.0]).unwrap_err();
        assert_eq!((error.index, error.len), (7, CLASSES));
    }
}

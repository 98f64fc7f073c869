//! Parameter updates and gradient accumulation.

use super::float::Float;
use super::parallel::{self, Shared};
use std::ops::AddAssign;

/// Constants of AdamW that a plan bakes in; everything that changes from step to step is an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamW {
    /// Decay of the first moment.
    pub(crate) beta1: f64,
    /// Decay of the second moment.
    pub(crate) beta2: f64,
    /// Added to the root of the second moment.
    pub(crate) epsilon: f64,
    /// Weight decay, applied to the parameter and not to the gradient.
    pub(crate) weight_decay: f64,
}

/// What changes from step to step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Number of this step, from one.
    pub(crate) number: f64,
    /// Learning rate.
    pub(crate) rate: f64,
    /// What the gradient sum is divided by: the number of loss terms.
    pub(crate) count: f64,
}

/// One AdamW step in PyTorch's order of operations; updates the parameter and both moments in place.
pub(crate) fn adamw<T: Float>(config: &AdamW, step: Step, param: &mut [T], grad: &[T], (m, v): (&mut [T], &mut [T])) {
    let correction1 = 1.0 - libm::pow(config.beta1, step.number);
    let correction2 = 1.0 - libm::pow(config.beta2, step.number);
    let keep = T::of(1.0 - step.rate * config.weight_decay);
    let step_size = T::of(step.rate / correction1);
    let root_correction = T::of(correction2.sqrt());
    let (epsilon, count) = (T::of(config.epsilon), T::of(step.count));
    let (one_less_beta1, beta2) = (T::of(1.0 - config.beta1), T::of(config.beta2));
    let one_less_beta2 = T::of(1.0 - config.beta2);
    let (m, v) = (Shared::new(m), Shared::new(v));
    parallel::pieces(param, parallel::PIECE, |start, param| {
        // SAFETY: each piece owns the same range of every state.
        let (m, v) = unsafe { (m.range(start, param.len()), v.range(start, param.len())) };
        let grad = &grad[start..start + param.len()];
        for (((p, &g), m), v) in param.iter_mut().zip(grad).zip(m).zip(v) {
            let g = g / count;
            *m += (g - *m) * one_less_beta1;
            *v = *v * beta2 + g * g * one_less_beta2;
            let denominator = v.sqrt() / root_correction + epsilon;
            *p = *p * keep - step_size * (*m / denominator);
        }
    });
}

/// Gradient descent: `w -= rate * g / count`.
pub(crate) fn sgd<T: Float>(step: Step, param: &mut [T], grad: &[T]) {
    let (rate, count) = (T::of(step.rate), T::of(step.count));
    parallel::pieces(param, parallel::PIECE, |start, param| {
        for (p, &g) in param.iter_mut().zip(&grad[start..]) {
            *p -= rate * (g / count);
        }
    });
}

/// Gradient descent with momentum: `m = momentum m + g / count`, then `w -= rate * m`.
pub(crate) fn sgd_momentum<T: Float>(momentum: f64, step: Step, param: &mut [T], grad: &[T], velocity: &mut [T]) {
    let (rate, count, momentum) = (T::of(step.rate), T::of(step.count), T::of(momentum));
    let velocity = Shared::new(velocity);
    parallel::pieces(param, parallel::PIECE, |start, param| {
        // SAFETY: each piece owns the same range of the velocity.
        let velocity = unsafe { velocity.range(start, param.len()) };
        for ((p, &g), v) in param.iter_mut().zip(&grad[start..]).zip(velocity) {
            *v = momentum * *v + g / count;
            *p -= rate * *v;
        }
    });
}

/// `sum += x`.
pub(crate) fn accumulate<T: Copy + AddAssign + Send + Sync>(sum: &mut [T], x: &[T]) {
    parallel::pieces(sum, parallel::PIECE, |start, sum| {
        for (sum, &x) in sum.iter_mut().zip(&x[start..]) {
            *sum += x;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{AdamW, Step, accumulate, adamw, sgd, sgd_momentum};

    #[test]
    fn two_adamw_steps_match_the_closed_form() {
        // Truth: with a constant gradient g both corrected moments are g and g^2, so each step is
        // p <- p (1 - lr wd) - lr g / (|g| + eps).
        let config = AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.1 };
        let (mut p, mut m, mut v) = ([1.0f64, -2.0], [0.0; 2], [0.0; 2]);
        for number in [1.0, 2.0] {
            let step = Step { number, rate: 0.01, count: 2.0 };
            adamw(&config, step, &mut p, &[6.0, -0.2], (&mut m, &mut v));
        }
        let want = |p: f64, g: f64| p * 0.999 - 0.01 * g / (g.abs() + 1e-8);
        assert!((p[0] - want(want(1.0, 3.0), 3.0)).abs() < 1e-12);
        assert!((p[1] - want(want(-2.0, -0.1), -0.1)).abs() < 1e-12);
    }

    #[test]
    fn sgd_with_momentum_follows_its_recurrence() {
        // Truth by hand: v = 2, p = 0.8; then v = 0.9 * 2 + 2 = 3.8, p = 0.42.
        let (mut p, mut v) = ([1.0f64], [0.0]);
        let step = Step { number: 1.0, rate: 0.1, count: 2.0 };
        sgd_momentum(0.9, step, &mut p, &[4.0], &mut v);
        assert!((p[0] - 0.8).abs() < 1e-12);
        sgd_momentum(0.9, step, &mut p, &[4.0], &mut v);
        assert!((p[0] - 0.42).abs() < 1e-12);
        let mut plain = [1.0f64];
        sgd(step, &mut plain, &[4.0]);
        assert!((plain[0] - 0.8).abs() < 1e-12);
    }

    #[test]
    fn accumulation_adds_in_place() {
        let mut sum = [1.0f32, 2.0];
        accumulate(&mut sum, &[3.0, -2.0]);
        assert_eq!(sum, [4.0, 0.0]);
    }
}

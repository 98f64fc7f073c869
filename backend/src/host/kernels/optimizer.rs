//! Parameter updates, gradient accumulation and the norm that clipping needs.

use super::float::Float;
use super::parallel::{self, Shared};
use super::reduce::{Sum, reduce};

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
    /// Factor on the gradient: one over the token count, the clip factor.
    pub(crate) grad_scale: f64,
}

/// One AdamW step in PyTorch's order of operations; updates the parameter and both moments in place.
pub(crate) fn adamw<T: Float>(
    config: &AdamW,
    step: Step,
    param: &mut [T],
    grad: &[T],
    (m, v): (&mut [T], &mut [T]),
) {
    let correction1 = 1.0 - libm::pow(config.beta1, step.number);
    let correction2 = 1.0 - libm::pow(config.beta2, step.number);
    let keep = T::of(1.0 - step.rate * config.weight_decay);
    let step_size = T::of(step.rate / correction1);
    let root_correction = T::of(correction2.sqrt());
    let (epsilon, grad_scale) = (T::of(config.epsilon), T::of(step.grad_scale));
    let (one_less_beta1, beta2) = (T::of(1.0 - config.beta1), T::of(config.beta2));
    let one_less_beta2 = T::of(1.0 - config.beta2);
    let (m, v) = (Shared::new(m), Shared::new(v));
    parallel::pieces(param, parallel::PIECE, |start, param| {
        // SAFETY: each piece owns the same range of every state.
        let (m, v) = unsafe { (m.range(start, param.len()), v.range(start, param.len())) };
        let grad = &grad[start..start + param.len()];
        for (((p, &g), m), v) in param.iter_mut().zip(grad).zip(m).zip(v) {
            let g = g * grad_scale;
            *m += (g - *m) * one_less_beta1;
            *v = *v * beta2 + g * g * one_less_beta2;
            let denominator = v.sqrt() / root_correction + epsilon;
            *p = *p * keep - step_size * (*m / denominator);
        }
    });
}

/// Constants of stochastic gradient descent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sgd {
    /// Decay of the velocity; zero means that there is none.
    pub(crate) momentum: f64,
    /// Weight decay, added to the gradient.
    pub(crate) weight_decay: f64,
    /// Whether the step looks ahead along the velocity.
    pub(crate) nesterov: bool,
}

/// One step of stochastic gradient descent in PyTorch's convention (dampening zero, the velocity starts as zero).
pub(crate) fn sgd<T: Float>(config: &Sgd, step: Step, param: &mut [T], grad: &[T], velocity: Option<&mut [T]>) {
    let (rate, grad_scale) = (T::of(step.rate), T::of(step.grad_scale));
    let (decay, momentum) = (T::of(config.weight_decay), T::of(config.momentum));
    let Some(velocity) = velocity else {
        parallel::pieces(param, parallel::PIECE, |start, param| {
            for (p, &g) in param.iter_mut().zip(&grad[start..]) {
                *p -= rate * (g * grad_scale + decay * *p);
            }
        });
        return;
    };
    let velocity = Shared::new(velocity);
    parallel::pieces(param, parallel::PIECE, |start, param| {
        // SAFETY: each piece owns the same range of the velocity.
        let velocity = unsafe { velocity.range(start, param.len()) };
        for ((p, &g), v) in param.iter_mut().zip(&grad[start..]).zip(velocity) {
            let g = g * grad_scale + decay * *p;
            *v = momentum * *v + g;
            *p -= rate * if config.nesterov { g + momentum * *v } else { *v };
        }
    });
}

/// `sum += x`.
pub(crate) fn accumulate<T: Float>(sum: &mut [T], x: &[T]) {
    parallel::pieces(sum, parallel::PIECE, |start, sum| {
        for (sum, &x) in sum.iter_mut().zip(&x[start..]) {
            *sum += x;
        }
    });
}

/// Sum of the squares, in blocks.
pub(crate) fn sum_of_squares<T: Float>(x: &[T]) -> f64 {
    let mut partials = vec![0.0; x.len().div_ceil(parallel::PIECE)];
    let shared = Shared::new(&mut partials);
    parallel::indices(x.len().div_ceil(parallel::PIECE), parallel::PIECE, |i| {
        let piece = &x[i * parallel::PIECE..((i + 1) * parallel::PIECE).min(x.len())];
        let sum = piece.iter().fold(0.0, |sum, x| sum + x.wide() * x.wide());
        // SAFETY: each index writes its own element.
        unsafe { shared.set(i, sum) };
    });
    let mut total = [0.0];
    reduce::<f64, Sum<f64>>(&partials, &[partials.len()], &[0], &mut total, |x| x);
    total[0]
}

#[cfg(test)]
mod tests {
    use super::{AdamW, Sgd, Step, accumulate, adamw, sgd, sum_of_squares};

    #[test]
    fn two_adamw_steps_match_the_closed_form() {
        // Truth: with a constant gradient g both corrected moments are g and g^2, so each step is
        // p <- p (1 - lr wd) - lr g / (|g| + eps).
        let config = AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.1 };
        let (mut p, mut m, mut v) = ([1.0f64, -2.0], [0.0; 2], [0.0; 2]);
        for number in [1.0, 2.0] {
            let step = Step { number, rate: 0.01, grad_scale: 0.5 };
            adamw(&config, step, &mut p, &[6.0, -0.2], (&mut m, &mut v));
        }
        let want = |p: f64, g: f64| p * 0.999 - 0.01 * g / (g.abs() + 1e-8);
        assert!((p[0] - want(want(1.0, 3.0), 3.0)).abs() < 1e-12);
        assert!((p[1] - want(want(-2.0, -0.1), -0.1)).abs() < 1e-12);
    }

    #[test]
    fn sgd_with_momentum_follows_its_recurrence() {
        // Truth by hand: g = 2 + 0.5 * 1 = 2.5, v = 2.5, p = 0.75; then g = 2.375, v = 0.9 * 2.5 + 2.375 = 4.625, p = 0.2875.
        let config = Sgd { momentum: 0.9, weight_decay: 0.5, nesterov: false };
        let (mut p, mut v) = ([1.0f64], [0.0]);
        let step = Step { number: 1.0, rate: 0.1, grad_scale: 1.0 };
        sgd(&config, step, &mut p, &[2.0], Some(&mut v));
        assert!((p[0] - 0.75).abs() < 1e-12);
        sgd(&config, step, &mut p, &[2.0], Some(&mut v));
        assert!((p[0] - 0.2875).abs() < 1e-12);
        let mut plain = [1.0f64];
        sgd(&config, step, &mut plain, &[2.0], None);
        assert!((plain[0] - 0.75).abs() < 1e-12);
    }

    #[test]
    fn accumulation_and_norm() {
        let mut sum = [1.0f32, 2.0];
        accumulate(&mut sum, &[3.0, -2.0]);
        assert_eq!(sum, [4.0, 0.0]);
        let x = vec![0.5f32; 100_000];
        assert_eq!(sum_of_squares(&x), 25_000.0);
    }
}

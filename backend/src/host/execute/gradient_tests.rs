//! Gradient operators against central differences of their forward operators, in double precision.

use crate::host::{Context, Tensor, interpret};
use std::collections::BTreeMap;
use trainc_ir::op::{
    Attention, BatchNorm, Convolution, Elementwise, GeluForm, Indexing, Loss, Movement, Normalization, Pooling, Random,
    Real,
};
use trainc_ir::{DType, GraphBuilder, InputRole, Op, OutputRole, Type};

fn float(shape: &[u64]) -> Type {
    Type::new(DType::F64, shape)
}

fn int(shape: &[u64]) -> Type {
    Type::new(DType::I64, shape)
}

fn tensor(ty: &Type, salt: usize) -> Tensor {
    let n = ty.elements() as usize;
    let bytes: Vec<u8> = if ty.dtype == DType::I64 {
        (0..n).flat_map(|i| (((i * 5 + salt) % 3) as i64).to_le_bytes()).collect()
    } else {
        (0..n).flat_map(|i| (((i * 37 + salt * 11) % 41) as f64 * 0.07 - 1.37).to_le_bytes()).collect()
    };
    Tensor::from_bytes(ty.clone(), &bytes).unwrap()
}

/// Runs one operator.
fn run(op: &Op, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut builder = GraphBuilder::new("one");
    let name = |i: usize| format!("x{i}");
    let values: Vec<_> =
        inputs.iter().enumerate().map(|(i, x)| builder.input(name(i), InputRole::Data, x.ty().clone())).collect();
    let outputs = builder.add(op.clone(), &values).unwrap();
    for (i, &value) in outputs.iter().enumerate() {
        builder.output(format!("y{i}"), OutputRole::Prediction, value);
    }
    let given: BTreeMap<String, Tensor> = inputs.iter().cloned().enumerate().map(|(i, x)| (name(i), x)).collect();
    interpret(&builder.finish(), &given, Context { seed: 1, step: 2, site: 3, micro_batch: 4 }).unwrap()
}

/// Checks a gradient operator. `operands` picks its operands from (forward inputs, forward outputs, incoming gradient), and
/// `wanted` says for each of its results which forward input it is the gradient of.
fn check(
    forward: impl Into<Op>,
    gradient: impl Into<Op>,
    types: &[Type],
    operands: impl Fn(&[Tensor], &[Tensor], Tensor) -> Vec<Tensor>,
    wanted: &[usize],
) {
    let (forward, gradient) = (forward.into(), gradient.into());
    let inputs: Vec<Tensor> = types.iter().enumerate().map(|(i, ty)| tensor(ty, i)).collect();
    let outputs = run(&forward, &inputs);
    let dy = tensor(outputs[0].ty(), 17);
    let value = |inputs: &[Tensor]| -> f64 {
        run(&forward, inputs)[0].to_f64s().iter().zip(dy.to_f64s()).map(|(y, dy)| y * dy).sum()
    };
    let found = run(&gradient, &operands(&inputs, &outputs, dy.clone()));
    for (gradient, &input) in found.iter().zip(wanted) {
        for (i, got) in gradient.to_f64s().into_iter().enumerate() {
            let h = 1e-6;
            let moved = |by: f64| {
                let mut inputs = inputs.clone();
                inputs[input].elements_mut::<f64>()[i] += by;
                value(&inputs)
            };
            let want = (moved(h) - moved(-h)) / (2.0 * h);
            let spelling = forward.spelling();
            assert!(
                (got - want).abs() < 1e-6 * want.abs().max(1.0),
                "{spelling}, gradient of operand {input}, element {i}: {got}, expected {want}"
            );
        }
    }
}

fn input_and_dy(x: &[Tensor], _: &[Tensor], dy: Tensor) -> Vec<Tensor> {
    vec![x[0].clone(), dy]
}

fn output_and_dy(_: &[Tensor], y: &[Tensor], dy: Tensor) -> Vec<Tensor> {
    vec![y[0].clone(), dy]
}

#[test]
fn elementwise() {
    use Elementwise as E;
    let x = [float(&[3, 7])];
    check(E::Tanh, E::TanhGrad, &x, output_and_dy, &[0]);
    check(E::Sigmoid, E::SigmoidGrad, &x, output_and_dy, &[0]);
    check(E::Relu, E::ReluGrad, &x, input_and_dy, &[0]);
    check(E::Silu, E::SiluGrad, &x, input_and_dy, &[0]);
    for form in [GeluForm::Erf, GeluForm::Tanh, GeluForm::Quick] {
        check(E::Gelu { form }, E::GeluGrad { form }, &x, input_and_dy, &[0]);
    }
}

#[test]
fn normalization() {
    use Normalization as N;
    let eps = Real::new(1e-3);
    let types = [float(&[2, 3, 5]), float(&[5]), float(&[5])];
    check(
        N::LayerNorm { eps },
        N::LayerNormInputGrad,
        &types,
        |x, y, dy| vec![x[0].clone(), x[1].clone(), y[1].clone(), y[2].clone(), dy],
        &[0],
    );
    check(
        N::LayerNorm { eps },
        N::LayerNormParamGrad,
        &types,
        |x, y, dy| vec![x[0].clone(), y[1].clone(), y[2].clone(), dy],
        &[1, 2],
    );
    let inputs = |x: &[Tensor], y: &[Tensor], dy| vec![x[0].clone(), x[1].clone(), y[1].clone(), dy];
    check(N::RmsNorm { eps }, N::RmsNormInputGrad, &types[..2], inputs, &[0]);
    let inputs = |x: &[Tensor], y: &[Tensor], dy| vec![x[0].clone(), y[1].clone(), dy];
    check(N::RmsNorm { eps }, N::RmsNormParamGrad, &types[..2], inputs, &[1]);
    check(N::Softmax, N::SoftmaxGrad, &types[..1], output_and_dy, &[0]);
    check(N::LogSoftmax, N::LogSoftmaxGrad, &types[..1], output_and_dy, &[0]);
}

#[test]
fn batch_normalization() {
    let eps = Real::new(1e-3);
    let types = [float(&[3, 2, 4]), float(&[2]), float(&[2])];
    check(
        BatchNorm::BatchNorm { eps },
        BatchNorm::BatchNormInputGrad { eps },
        &types,
        |x, y, dy| vec![x[0].clone(), x[1].clone(), y[1].clone(), y[2].clone(), dy],
        &[0],
    );
    check(
        BatchNorm::BatchNorm { eps },
        BatchNorm::BatchNormParamGrad { eps },
        &types,
        |x, y, dy| vec![x[0].clone(), y[1].clone(), y[2].clone(), dy],
        &[1, 2],
    );
}

#[test]
fn windows() {
    let (strides, low, high, dilations, groups) = (vec![2, 1], vec![1, 0], vec![0, 2], vec![1, 2], 2);
    let types = [float(&[2, 4, 5, 6]), float(&[6, 2, 3, 2])];
    let parts = || (strides.clone(), low.clone(), high.clone(), dilations.clone());
    let (s, l, h, d) = parts();
    let forward = Convolution::Conv { strides: s, low: l, high: h, dilations: d, groups };
    let (s, l, h, d) = parts();
    let shape = vec![2, 4, 5, 6];
    let of_input =
        Convolution::ConvInputGrad { shape: shape.clone(), strides: s, low: l, high: h, dilations: d, groups };
    check(forward.clone(), of_input, &types, |x, _, dy| vec![x[1].clone(), dy], &[0]);
    let (s, l, h, d) = parts();
    let of_weight =
        Convolution::ConvWeightGrad { kernel: vec![3, 2], strides: s, low: l, high: h, dilations: d, groups };
    check(forward, of_weight, &types, input_and_dy, &[1]);
    for (ceil, pads) in [(false, true), (true, false), (true, true)] {
        let kernel = vec![2, 3];
        let (strides, low, high, dilations) = parts();
        let forward = Pooling::AveragePool { kernel, strides, low, high, dilations, ceil, pads };
        let (shape, kernel) = (shape.clone(), vec![2, 3]);
        let (strides, low, high, dilations) = parts();
        let gradient = Pooling::AveragePoolGrad { shape, kernel, strides, low, high, dilations, ceil, pads };
        check(forward, gradient, &types[..1], |_, _, dy| vec![dy], &[0]);
        let kernel = vec![2, 3];
        let (strides, low, high, dilations) = parts();
        let forward = Pooling::MaxPool { kernel, strides, low, high, dilations, ceil };
        let kernel = vec![2, 3];
        let (strides, low, high, dilations) = parts();
        let gradient = Pooling::MaxPoolGrad { kernel, strides, low, high, dilations, ceil };
        // Equal elements would make the slope a matter of convention.
        let x = [float(&[1, 1, 5, 6])];
        check(forward, gradient, &x, input_and_dy, &[0]);
    }
}

#[test]
fn attention() {
    let scale = Real::new(0.4);
    let types = [float(&[2, 4, 3, 5]), float(&[2, 2, 6, 5]), float(&[2, 2, 6, 4]), float(&[1, 4, 1, 6])];
    for causal in [false, true] {
        for n_operands in [3, 4] {
            check(
                Attention::Attention { scale, causal },
                Attention::AttentionGrad { scale, causal },
                &types[..n_operands],
                |x, y, dy| [x, &[y[0].clone(), y[1].clone(), dy]].concat(),
                &[0, 1, 2],
            );
        }
    }
    for mask in [[1, 4, 1, 6], [2, 1, 3, 6], [1, 1, 3, 1], [2, 4, 3, 6]] {
        let types = [float(&[2, 4, 3, 5]), float(&[2, 2, 6, 5]), float(&[2, 2, 6, 4]), float(&mask)];
        check(
            Attention::Attention { scale, causal: true },
            Attention::AttentionMaskGrad { scale, causal: true },
            &types,
            |x, y, dy| [x, &[y[0].clone(), y[1].clone(), dy]].concat(),
            &[3],
        );
    }
    let rope = [float(&[2, 3, 4]), float(&[3, 4]), float(&[3, 4])];
    let inputs = |x: &[Tensor], _: &[Tensor], dy| vec![dy, x[1].clone(), x[2].clone()];
    for interleaved in [false, true] {
        check(Attention::Rope { interleaved }, Attention::RopeGrad { interleaved }, &rope, inputs, &[0]);
    }
}

#[test]
fn indexing() {
    let inputs = |x: &[Tensor], _: &[Tensor], dy| vec![x[1].clone(), dy];
    for axis in 0..3 {
        let types = [float(&[3, 4, 5]), int(&[2, 3])];
        let len = types[0].shape[axis as usize];
        check(Indexing::Gather { axis }, Indexing::GatherGrad { axis, len }, &types, inputs, &[0]);
    }
    let types = [float(&[3, 4]), int(&[3, 6])];
    let (forward, gradient) = (Indexing::GatherElements { axis: 1 }, Indexing::GatherElementsGrad { axis: 1, len: 4 });
    check(forward, gradient, &types, inputs, &[0]);
}

#[test]
fn slices_and_dropout() {
    let (shape, starts, ends, steps) = (vec![4, 5], vec![3, 1], vec![-1, 5], vec![-2, 3]);
    let forward = Movement::Slice { starts: starts.clone(), ends: ends.clone(), steps: steps.clone() };
    let only_dy = |_: &[Tensor], _: &[Tensor], dy| vec![dy];
    check(forward, Movement::SliceGrad { shape, starts, ends, steps }, &[float(&[4, 5])], only_dy, &[0]);
    let p = Real::new(0.4);
    check(Random::Dropout { p, site: 5 }, Random::DropoutGrad { p, site: 5 }, &[float(&[9, 9])], only_dy, &[0]);
}

#[test]
fn cross_entropy() {
    let types = [float(&[4, 3]), int(&[4])];
    let inputs = |x: &[Tensor], y: &[Tensor], dy| vec![x[0].clone(), x[1].clone(), y[2].clone(), dy];
    for ignore_index in [-100, 1] {
        let (forward, gradient) = (Loss::CrossEntropy { ignore_index }, Loss::CrossEntropyGrad { ignore_index });
        check(forward, gradient, &types, inputs, &[0]);
    }
}

//! Central differences in double precision.

use std::collections::BTreeMap;
use std::rc::Rc;
use trainc_backend::{Context, Tensor, interpret};
use trainc_ir::op::{Elementwise, Literal, ReduceKind, Reduction};
use trainc_ir::{DType, Diagnostics, Graph, GraphBuilder, InputRole, OutputRole, Type, ValueId};
use trainc_passes::transform::{Step, Trainable, differentiate};

type Build = dyn Fn(&mut GraphBuilder, &[ValueId]) -> Vec<ValueId>;
/// Shape of a parameter, and the range that its elements are drawn from.
pub(crate) type Drawn<'a> = (&'a [u64], f64, f64);

/// Distance of the points of a difference: the error of a central difference is of its square.
const EPS: f64 = 1e-5;

/// A small graph of f64 parameters; its loss is the sum of its results, each element with a fixed weight.
#[derive(Clone)]
pub(crate) struct Case {
    name: String,
    parameters: Vec<Tensor>,
    build: Rc<Build>,
}

impl Case {
    pub(crate) fn new(
        name: &str,
        parameters: &[Drawn<'_>],
        build: impl Fn(&mut GraphBuilder, &[ValueId]) -> Vec<ValueId> + 'static,
    ) -> Self {
        let mut numbers = Numbers::new(name);
        let parameters = parameters
            .iter()
            .map(|&(shape, low, high)| {
                let n = shape.iter().product::<u64>() as usize;
                tensor(shape, &(0..n).map(|_| numbers.between(low, high)).collect::<Vec<_>>())
            })
            .collect();
        Self { name: name.to_owned(), parameters, build: Rc::new(build) }
    }

    fn forward(&self) -> Graph {
        let mut numbers = Numbers::new(&self.name);
        let mut b = GraphBuilder::new(self.name.clone());
        let inputs: Vec<_> = self
            .parameters
            .iter()
            .enumerate()
            .map(|(i, tensor)| b.input(format!("p{i}"), InputRole::Parameter, tensor.ty().clone()))
            .collect();
        let mut total = None;
        for result in (self.build)(&mut b, &inputs) {
            let ty = b.ty(result).clone();
            let weights = (0..ty.elements()).flat_map(|_| numbers.between(0.5, 1.5).to_le_bytes()).collect();
            let weights = b.constant(Literal::from_bytes(ty.clone(), weights).expect("one weight for each element"));
            let terms = b.one(Elementwise::Mul, &[result, weights]).expect("equal types");
            let axes = (0..ty.rank() as u64).collect();
            let sum = Reduction::Reduce { kind: ReduceKind::Sum, axes, keep: false };
            let sum = b.one(sum, &[terms]).expect("all axes");
            total = Some(total.map_or(sum, |t| b.one(Elementwise::Add, &[t, sum]).expect("scalars")));
        }
        b.output("loss_sum", OutputRole::LossSum, total.expect("a case has results"));
        b.finish()
    }

    /// The spellings of its operators.
    pub(crate) fn spellings(&self) -> Vec<&'static str> {
        self.forward().nodes.values().map(|node| node.op.spelling()).collect()
    }

    pub(crate) fn step(&self) -> Result<Step, Diagnostics> {
        differentiate(self.forward(), &Trainable::all(), &mut Vec::new())
    }

    /// The gradient of each parameter.
    pub(crate) fn gradients(&self) -> Vec<Vec<f64>> {
        let step = self.step().unwrap_or_else(|errors| panic!("{}: {}", self.name, errors[0]));
        let results = run(&step.graph, &self.parameters, &self.name);
        let of = |i: usize| {
            let mut sum = vec![0.0; self.parameters[i].ty().elements() as usize];
            for (output, result) in step.graph.outputs.iter().zip(&results) {
                if output.name.starts_with(&format!("grad.p{i}.")) {
                    sum.iter_mut().zip(result.to_f64s()).for_each(|(total, g)| *total += g);
                }
            }
            sum
        };
        (0..self.parameters.len()).map(of).collect()
    }

    /// Compares each element of each gradient with a central difference.
    pub(crate) fn check(&self) -> Result<(), String> {
        let forward = self.forward();
        let loss = |parameters: &[Tensor]| run(&forward, parameters, &self.name)[0].to_f64s()[0];
        for (i, gradient) in self.gradients().into_iter().enumerate() {
            let values = self.parameters[i].to_f64s();
            for (k, found) in gradient.into_iter().enumerate() {
                let at = |x: f64| {
                    let mut moved = values.clone();
                    moved[k] = x;
                    let mut parameters = self.parameters.clone();
                    parameters[i] = tensor(&self.parameters[i].ty().shape, &moved);
                    loss(&parameters)
                };
                let expected = (at(values[k] + EPS) - at(values[k] - EPS)) / (2.0 * EPS);
                if (found - expected).abs() > 1e-6 * expected.abs().max(1.0) {
                    return Err(format!("{}: element {k} of p{i}: expected {expected}, found {found}", self.name));
                }
            }
        }
        Ok(())
    }
}

fn run(graph: &Graph, parameters: &[Tensor], name: &str) -> Vec<Tensor> {
    let inputs: BTreeMap<String, Tensor> =
        parameters.iter().enumerate().map(|(i, tensor)| (format!("p{i}"), tensor.clone())).collect();
    interpret(graph, &inputs, Context::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn tensor(shape: &[u64], values: &[f64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_bytes(Type::new(DType::F64, shape), &bytes).expect("as many values as elements")
}

/// A reproducible sequence (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn new(seed: &str) -> Self {
        Self(seed.bytes().fold(0, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte))))
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (high - low) * ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

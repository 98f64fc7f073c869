//! Constant tensors during folding: integers or floats, stored once along the axes where they repeat.

use std::rc::Rc;
use trainc_ir::op::{Literal, LiteralData, decode_f64, decode_i64, encode_f64, encode_i64};
use trainc_ir::{DType, Type};

/// The elements: bools and integers as i64, floats as f64 that have been rounded to the element type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    /// Bools (0 or 1) and integers.
    Ints(Rc<Vec<i64>>),
    /// Floats.
    Floats(Rc<Vec<f64>>),
}

impl Data {
    pub(super) fn ints(values: Vec<i64>) -> Self {
        Self::Ints(Rc::new(values))
    }

    pub(super) fn floats(dtype: DType, values: impl IntoIterator<Item = f64>) -> Self {
        Self::Floats(Rc::new(values.into_iter().map(|v| round(dtype, v)).collect()))
    }

    fn len(&self) -> usize {
        match self {
            Self::Ints(v) => v.len(),
            Self::Floats(v) => v.len(),
        }
    }

    /// The elements at these positions.
    pub(super) fn pick(&self, positions: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Ints(v) => Self::Ints(Rc::new(positions.map(|i| v[i]).collect())),
            Self::Floats(v) => Self::Floats(Rc::new(positions.map(|i| v[i]).collect())),
        }
    }

    fn same(&self, i: usize, j: usize) -> bool {
        match self {
            Self::Ints(v) => v[i] == v[j],
            Self::Floats(v) => v[i].to_bits() == v[j].to_bits(),
        }
    }
}

/// The nearest number of the element type.
pub(super) fn round(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F64 => value,
        DType::F32 => f64::from(value as f32),
        DType::F16 | DType::BF16 => decode_f64(dtype, &encode_f64(dtype, value)),
        DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => unreachable!("integers are not rounded"),
    }
}

/// A constant. `stored[i]` is `ty.shape[i]`, or 1 where the elements repeat along the axis; the data are row-major over
/// the stored shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) ty: Type,
    pub(crate) stored: Vec<u64>,
    pub(crate) data: Data,
}

impl Tensor {
    /// A tensor of all its elements; repetition is found. `None` where there are none.
    pub(super) fn new(ty: Type, stored: Vec<u64>, data: Data) -> Option<Self> {
        debug_assert_eq!(data.len() as u64, stored.iter().product::<u64>(), "data fill the stored shape");
        (data.len() > 0).then(|| Self { ty, stored, data }.compressed())
    }

    /// Reads a literal of at most `limit` elements that are not all equal.
    pub(super) fn from_literal(literal: &Literal, limit: u64) -> Option<Self> {
        let ty = literal.ty.clone();
        let (stored, n) = match &literal.data {
            LiteralData::Splat(_) if ty.elements() > 0 => (vec![1; ty.rank()], 1),
            LiteralData::Splat(_) => return None,
            LiteralData::Dense(_) if ty.elements() <= limit => (ty.shape.clone(), ty.elements()),
            LiteralData::Dense(_) => return None,
        };
        let bytes = match &literal.data {
            LiteralData::Splat(bytes) | LiteralData::Dense(bytes) => bytes,
        };
        let elements = bytes.chunks_exact(ty.dtype.bytes() as usize).take(n as usize);
        let data = if ty.dtype.is_float() {
            Data::Floats(Rc::new(elements.map(|e| decode_f64(ty.dtype, e)).collect()))
        } else {
            Data::ints(elements.map(|e| decode_i64(ty.dtype, e)).collect())
        };
        Self::new(ty, stored, data)
    }

    /// The literal of this tensor.
    pub(super) fn to_literal(&self) -> Literal {
        let dtype = self.ty.dtype;
        let full = if self.stored.iter().all(|&d| d == 1) { self.clone() } else { self.expanded(&self.ty.shape) };
        let bytes: Vec<u8> = match &full.data {
            Data::Ints(v) => v.iter().flat_map(|&v| encode_i64(dtype, v)).collect(),
            Data::Floats(v) => v.iter().flat_map(|&v| encode_f64(dtype, v)).collect(),
        };
        let ty = self.ty.clone();
        if full.data.len() == 1 {
            return Literal { ty, data: LiteralData::Splat(bytes) };
        }
        Literal::from_bytes(ty, bytes).expect("an expanded tensor has all elements of its type")
    }

    /// The one number that all elements have.
    pub(crate) fn uniform(&self) -> Option<f64> {
        match (&self.data, self.data.len()) {
            (Data::Ints(v), 1) => Some(v[0] as f64),
            (Data::Floats(v), 1) => Some(v[0]),
            (Data::Ints(_) | Data::Floats(_), _) => None,
        }
    }

    /// The elements as f64 in storage order.
    pub(crate) fn to_f64s(&self) -> Vec<f64> {
        match &self.data {
            Data::Ints(v) => v.iter().map(|&v| v as f64).collect(),
            Data::Floats(v) => v.to_vec(),
        }
    }

    /// Stored along at least the axes where `stored` is not 1 (of the same rank).
    pub(crate) fn expanded(&self, stored: &[u64]) -> Self {
        let target: Vec<u64> = self.stored.iter().zip(stored).map(|(&a, &b)| if a == 1 { b } else { a }).collect();
        if target == self.stored {
            return self.clone();
        }
        let data = self.data.pick(walk(&target, &strides(&self.stored, &target)));
        Self { ty: self.ty.clone(), stored: target, data }
    }

    /// Stored in full along one axis.
    pub(super) fn along(&self, axis: usize) -> Self {
        let mut target = vec![1; self.stored.len()];
        target[axis] = self.ty.shape[axis];
        self.expanded(&target)
    }

    /// Stored once along every axis where all elements are equal.
    fn compressed(mut self) -> Self {
        for axis in 0..self.stored.len() {
            let dim = self.stored[axis] as usize;
            let inner: usize = self.stored[axis + 1..].iter().product::<u64>() as usize;
            let n = self.data.len();
            let repeats = (0..n).all(|i| (i / inner).is_multiple_of(dim) || self.data.same(i, i - inner));
            if dim > 1 && repeats {
                self.data = self.data.pick((0..n).filter(|i| (i / inner).is_multiple_of(dim)));
                self.stored[axis] = 1;
            }
        }
        self
    }
}

/// Steps through data of shape `stored` while walking over `shape` (of the same or a higher rank): 0 where it repeats.
pub(super) fn strides(stored: &[u64], shape: &[u64]) -> Vec<usize> {
    let lead = shape.len() - stored.len();
    let mut steps = vec![0; shape.len()];
    let mut step = 1;
    for i in (0..stored.len()).rev() {
        if stored[i] != 1 {
            steps[lead + i] = step;
        }
        step *= stored[i] as usize;
    }
    steps
}

/// Positions reached by walking over `shape` in row-major order with the given steps.
pub(super) fn walk(shape: &[u64], steps: &[usize]) -> impl Iterator<Item = usize> + use<> {
    let (shape, steps) = (shape.to_vec(), steps.to_vec());
    let n: u64 = shape.iter().product();
    let mut index = vec![0u64; shape.len()];
    let mut position = 0;
    (0..n).map(move |_| {
        let here = position;
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            position += steps[axis];
            if index[axis] < shape[axis] {
                break;
            }
            position -= steps[axis] * shape[axis] as usize;
            index[axis] = 0;
        }
        here
    })
}

//! Values known at compile time: the elements that exporters' shape, mask and position arithmetic works on.
//!
//! A [`Const`] stores an axis along which all elements are equal only once, so a mask of every sample of a batch costs
//! as much as the mask of one, and an expanded scalar costs one element.

use trainc_ir::op::{Literal, LiteralData};
use trainc_ir::{DType, Type};

/// Largest number of stored elements of a value that is worked out at compile time.
pub(super) const MAX_ELEMENTS: u64 = 1 << 20;

/// A value known at compile time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Const {
    /// Its type.
    pub(super) ty: Type,
    /// Stored dimensions: those of the type, or 1 where all elements along the axis are equal.
    pub(super) core: Vec<u64>,
    /// Stored elements in row-major order.
    pub(super) data: Data,
}

/// Stored elements; floats are rounded to the element type, integers wrapped to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    /// Of bool and integer types.
    Int(Vec<i64>),
    /// Of float types.
    Float(Vec<f64>),
}

impl Data {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
        }
    }

    /// The element at a position, as an integer (floats truncate toward zero).
    pub(super) fn int(&self, at: usize) -> i64 {
        match self {
            Self::Int(values) => values[at],
            Self::Float(values) => values[at] as i64,
        }
    }

    /// The elements at the positions, in their order.
    pub(super) fn pick(&self, positions: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Int(values) => Self::Int(positions.map(|at| values[at]).collect()),
            Self::Float(values) => Self::Float(positions.map(|at| values[at]).collect()),
        }
    }
}

impl Const {
    /// From stored elements; axes along which they are equal are collapsed.
    pub(super) fn new(ty: Type, core: Vec<u64>, data: Data) -> Self {
        let mut value = Self { ty, core, data };
        value.collapse();
        value
    }

    /// One element of shape `[]`.
    pub(super) fn scalar_int(dtype: DType, value: i64) -> Self {
        Self { ty: Type::scalar(dtype), core: Vec::new(), data: Data::Int(vec![value]) }
    }

    /// One element of shape `[]`.
    pub(super) fn scalar_float(dtype: DType, value: f64) -> Self {
        Self { ty: Type::scalar(dtype), core: Vec::new(), data: Data::Float(vec![round(dtype, value)]) }
    }

    /// An i64 vector.
    pub(super) fn vector(values: Vec<i64>) -> Self {
        let shape = vec![values.len() as u64];
        Self::new(Type::new(DType::I64, shape.clone()), shape, Data::Int(values))
    }

    /// The same elements as `value` everywhere in a larger shape; `value` has one element.
    pub(super) fn splat(ty: Type, value: &Self) -> Self {
        let mut core = vec![1; ty.rank()];
        let empty = ty.shape.contains(&0);
        if empty {
            core = ty.shape.clone();
        }
        let data = value.data.pick(0..usize::from(!empty));
        Self { ty, core, data }
    }

    /// From little-endian bytes; `None` where their number is wrong or too large to work on.
    pub(super) fn from_bytes(ty: &Type, bytes: &[u8]) -> Option<Self> {
        if ty.checked_elements()? > MAX_ELEMENTS || bytes.len() as u64 != ty.bytes() {
            return None;
        }
        let width = usize::try_from(ty.dtype.bytes()).ok()?;
        let elements = bytes.chunks_exact(width);
        let data = if ty.dtype.is_float() {
            Data::Float(elements.map(|element| trainc_ir::op::decode_f64(ty.dtype, element)).collect())
        } else {
            Data::Int(elements.map(|element| trainc_ir::op::decode_i64(ty.dtype, element)).collect())
        };
        Some(Self::new(ty.clone(), ty.shape.clone(), data))
    }

    /// Number of stored elements.
    pub(super) fn n_stored(&self) -> u64 {
        self.core.iter().product()
    }

    /// Whether all elements are stored as one.
    pub(super) fn is_uniform(&self) -> bool {
        self.n_stored() == 1
    }

    /// Steps in the stored elements per axis; 0 along a collapsed axis.
    pub(super) fn strides(&self) -> Vec<usize> {
        strides(&self.core)
    }

    /// All elements as integers, collapsed axes written out; meant for small values.
    pub(super) fn ints(&self) -> Vec<i64> {
        positions(&self.ty.shape, &self.strides()).map(|at| self.data.int(at)).collect()
    }

    /// All elements as floats, collapsed axes written out; meant for small values.
    pub(super) fn floats(&self) -> Vec<f64> {
        let element = |at: usize| match &self.data {
            Data::Int(values) => values[at] as f64,
            Data::Float(values) => values[at],
        };
        positions(&self.ty.shape, &self.strides()).map(element).collect()
    }

    /// The one element as a float, where all are equal.
    pub(super) fn uniform_f64(&self) -> Option<f64> {
        match &self.data {
            _ if !self.is_uniform() => None,
            Data::Int(values) => Some(values[0] as f64),
            Data::Float(values) => Some(values[0]),
        }
    }

    /// The one element as an integer, where all are equal.
    pub(super) fn uniform_int(&self) -> Option<i64> {
        self.is_uniform().then(|| self.data.int(0))
    }

    /// Stored elements of an enlarged core: `core` has 1 or the own dimension wherever the own core has 1.
    pub(super) fn data_as(&self, core: &[u64]) -> Data {
        if core == self.core {
            return self.data.clone();
        }
        self.data.pick(positions(core, &self.strides()))
    }

    /// The literal of the stored elements, of the stored shape.
    pub(super) fn core_literal(&self) -> Literal {
        self.literal(Type::new(self.ty.dtype, self.core.clone()))
    }

    /// The literal of one element repeated in `shape`; only for uniform values.
    pub(super) fn uniform_literal(&self, shape: &[u64]) -> Literal {
        let one = self.literal(Type::scalar(self.ty.dtype));
        Literal { ty: Type::new(self.ty.dtype, shape), data: LiteralData::Splat(one.to_bytes()) }
    }

    fn literal(&self, ty: Type) -> Literal {
        let mut bytes = Vec::with_capacity(usize::try_from(ty.bytes()).unwrap_or(0));
        match (&self.data, ty.dtype) {
            (Data::Float(values), DType::F32) => bytes.extend(values.iter().flat_map(|&v| (v as f32).to_le_bytes())),
            (Data::Float(values), dtype) => {
                bytes.extend(values.iter().flat_map(|&v| trainc_ir::op::encode_f64(dtype, v)));
            }
            (Data::Int(values), DType::Bool | DType::U8 | DType::I8) => bytes.extend(values.iter().map(|&v| v as u8)),
            (Data::Int(values), DType::I64) => bytes.extend(values.iter().flat_map(|&v| v.to_le_bytes())),
            (Data::Int(values), dtype) => {
                bytes.extend(values.iter().flat_map(|&v| trainc_ir::op::encode_i64(dtype, v)));
            }
        }
        Literal::from_bytes(ty, bytes).expect("as many elements as the shape has")
    }

    /// Stores axes along which all elements are equal once.
    fn collapse(&mut self) {
        for axis in 0..self.core.len() {
            let dim = self.core[axis];
            if dim <= 1 || self.core.contains(&0) {
                continue;
            }
            let inner =
                usize::try_from(self.core[axis + 1..].iter().product::<u64>()).expect("bounded by MAX_ELEMENTS");
            let block = inner * usize::try_from(dim).expect("bounded by MAX_ELEMENTS");
            let invariant = match &self.data {
                Data::Int(values) => is_invariant(values, block, inner, |a, b| a == b),
                Data::Float(values) => is_invariant(values, block, inner, |a, b| a.to_bits() == b.to_bits()),
            };
            if invariant {
                match &mut self.data {
                    Data::Int(values) => *values = values.chunks(block).flat_map(|c| c[..inner].to_vec()).collect(),
                    Data::Float(values) => *values = values.chunks(block).flat_map(|c| c[..inner].to_vec()).collect(),
                }
                self.core[axis] = 1;
            }
        }
    }
}

fn is_invariant<T: Copy>(values: &[T], block: usize, inner: usize, same: impl Fn(T, T) -> bool) -> bool {
    values.chunks(block).all(|chunk| chunk.iter().zip(&chunk[inner..]).all(|(&a, &b)| same(a, b)))
}

/// Row-major steps of a stored shape; 0 for dimensions of 1.
pub(super) fn strides(core: &[u64]) -> Vec<usize> {
    let mut step = 1usize;
    let mut steps: Vec<usize> = core
        .iter()
        .rev()
        .map(|&dim| {
            let own = if dim == 1 { 0 } else { step };
            step = step.saturating_mul(usize::try_from(dim).unwrap_or(usize::MAX));
            own
        })
        .collect();
    steps.reverse();
    steps
}

/// Positions that a walk over `shape` in row-major order visits with these steps. Steps of missing leading axes are 0.
pub(super) fn positions(shape: &[u64], steps: &[usize]) -> std::vec::IntoIter<usize> {
    let missing = shape.len() - steps.len().min(shape.len());
    let mut at = vec![0usize];
    for (axis, &dim) in shape.iter().enumerate() {
        let step = if axis < missing { 0 } else { steps[axis - missing] };
        let dim = usize::try_from(dim).expect("bounded by MAX_ELEMENTS");
        if dim == 1 {
            continue;
        }
        let mut next = Vec::with_capacity(at.len() * dim);
        for &base in &at {
            next.extend((0..dim).map(|i| base + i * step));
        }
        at = next;
    }
    at.into_iter()
}

/// Numpy broadcasting of several shapes.
pub(super) fn broadcast(shapes: &[&[u64]]) -> Result<Vec<u64>, String> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for shape in shapes {
        for (slot, &dim) in out[rank - shape.len()..].iter_mut().zip(*shape) {
            if *slot == 1 {
                *slot = dim;
            } else if dim != 1 && dim != *slot {
                return Err(format!("shapes {shapes:?} do not broadcast: {dim} meets {slot}"));
            }
        }
    }
    Ok(out)
}

/// A number rounded to a float type.
pub(super) fn round(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(value as f32),
        DType::F16 | DType::BF16 => trainc_ir::op::decode_f64(dtype, &trainc_ir::op::encode_f64(dtype, value)),
        DType::F64 | DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => value,
    }
}

/// A number wrapped to an integer type.
pub(super) fn wrap(dtype: DType, value: i64) -> i64 {
    match dtype {
        DType::Bool => i64::from(value != 0),
        DType::U8 => i64::from(value as u8),
        DType::I8 => i64::from(value as i8),
        DType::I32 => i64::from(value as i32),
        DType::I64 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_axes_are_stored_once() {
        let rows = Const::new(Type::new(DType::I64, [2, 3]), vec![2, 3], Data::Int(vec![1, 2, 3, 1, 2, 3]));
        assert_eq!(rows.core, [1, 3]);
        assert_eq!(rows.ints(), [1, 2, 3, 1, 2, 3]);
        let columns = Const::new(Type::new(DType::I64, [2, 3]), vec![2, 3], Data::Int(vec![5, 5, 5, 6, 6, 6]));
        assert_eq!(
            (columns.core.as_slice(), columns.ints().as_slice()),
            ([2, 1].as_slice(), [5, 5, 5, 6, 6, 6].as_slice())
        );
        let empty = Const::vector(Vec::new());
        assert_eq!((empty.n_stored(), empty.ints()), (0, vec![]));
    }

    #[test]
    fn positions_walk_row_major_with_broadcast_steps() {
        assert_eq!(positions(&[2, 3], &[1]).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
        assert_eq!(positions(&[2, 2], &[0, 1]).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(positions(&[], &[]).collect::<Vec<_>>(), [0]);
        assert_eq!(positions(&[2, 0], &[0, 1]).count(), 0);
    }

    #[test]
    fn literals_have_the_stored_shape() {
        let half = Const::scalar_float(DType::F32, 0.5);
        assert_eq!(half.uniform_literal(&[2, 2]).to_f64s(), [0.5; 4]);
        let row = Const::vector(vec![7, 8]);
        assert_eq!(row.core_literal().to_i64s(), [7, 8]);
    }
}

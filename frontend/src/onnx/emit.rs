//! The vocabulary of the lowering rules: each step is worked out where its operands are known, and emitted otherwise.

use super::call::{Fail, Operand};
use super::code;
use super::constant::{Const, broadcast};
use super::eval;
use super::lower::Lower;
use trainc_ir::op::{Contraction, Elementwise, Indexing, Literal, Movement, ReduceKind, Reduction};
use trainc_ir::{DType, Op, Type, ValueId};

/// Constants of more elements than this are emitted once; smaller ones beside each use, so that repeated blocks of a
/// model look alike.
const SHARED_CONSTANT: u64 = 64;

/// Constants of more elements than this count when those that are worked out are limited.
pub(super) const SMALL_CONSTANT: usize = 4096;

impl Lower<'_> {
    /// The type of an operand.
    pub(super) fn ty<'b>(&'b self, operand: &'b Operand) -> &'b Type {
        match operand {
            Operand::Value(value) => self.builder.ty(*value),
            Operand::Const(value) => &value.ty,
        }
    }

    /// Number of axes.
    pub(super) fn rank(&self, operand: &Operand) -> usize {
        self.ty(operand).rank()
    }

    /// Dimensions.
    pub(super) fn shape(&self, operand: &Operand) -> Vec<u64> {
        self.ty(operand).shape.clone()
    }

    /// The operand where it is known, to be worked with. Large ones count as unknown once many have been worked out: what
    /// is made of them is emitted.
    pub(super) fn known<'o>(&self, operand: &'o Operand) -> Option<&'o Const> {
        operand.known().filter(|known| known.data.len() <= SMALL_CONSTANT || self.n_known <= self.max_known)
    }

    /// The operand as a value of the graph, of exactly its type.
    pub(super) fn value(&mut self, operand: &Operand) -> Result<ValueId, Fail> {
        let known = match operand {
            Operand::Value(value) => return Ok(*value),
            Operand::Const(known) => known,
        };
        if known.is_uniform() {
            return Ok(self.literal(known.uniform_literal(&known.ty.shape)));
        }
        let core = self.literal(known.core_literal());
        if known.core == known.ty.shape {
            return Ok(core);
        }
        let shape = known.ty.shape.clone();
        Ok(self.builder.one(Movement::Broadcast { shape }, &[core])?)
    }

    /// The operand as a value that broadcasts to its type, as small as it can be.
    fn small_value(&mut self, operand: &Operand) -> Result<ValueId, Fail> {
        match operand {
            Operand::Value(value) => Ok(*value),
            Operand::Const(known) if known.is_uniform() => {
                let keeps_shape = known.ty.elements() == 1;
                let shape: &[u64] = if keeps_shape { &known.ty.shape } else { &[] };
                Ok(self.literal(known.uniform_literal(shape)))
            }
            Operand::Const(known) => Ok(self.literal(known.core_literal())),
        }
    }

    fn literal(&mut self, literal: Literal) -> ValueId {
        let is_large =
            literal.ty.elements() > SHARED_CONSTANT && matches!(literal.data, trainc_ir::op::LiteralData::Dense(_));
        if !is_large {
            return self.builder.constant(literal);
        }
        if let Some(&value) = self.literals.get(&literal) {
            return value;
        }
        let value = self.builder.constant(literal.clone());
        self.literals.insert(literal, value);
        value
    }

    /// Any operator on values of the graph.
    pub(super) fn emit(&mut self, op: impl Into<Op>, inputs: &[&Operand]) -> Result<Vec<ValueId>, Fail> {
        let values = inputs.iter().map(|input| self.value(input)).collect::<Result<Vec<_>, _>>()?;
        let results = self.builder.add(op, &values)?;
        results.iter().try_for_each(|&result| check_size(self.builder.ty(result)))?;
        Ok(results)
    }

    /// Any operator of one result on values of the graph.
    pub(super) fn emit_one(&mut self, op: impl Into<Op>, inputs: &[&Operand]) -> Result<Operand, Fail> {
        Ok(self.emit(op, inputs)?[0].into())
    }

    /// An elementwise operator with numpy broadcasting.
    pub(super) fn elementwise(&mut self, op: Elementwise, inputs: &[&Operand]) -> Result<Operand, Fail> {
        if let Some(known) = inputs.iter().map(|input| self.known(input)).collect::<Option<Vec<_>>>()
            && let Some(value) = eval::elementwise(&op, &known)?
        {
            return Ok(value.into());
        }
        let shapes: Vec<Vec<u64>> = inputs.iter().map(|input| self.shape(input)).collect();
        let shape = broadcast(&shapes.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        check_size(&Type::new(self.ty(inputs[0]).dtype, shape.clone()))?;
        let values = inputs.iter().map(|input| self.small_value(input)).collect::<Result<Vec<_>, _>>()?;
        let result = self.builder.one(op, &values)?;
        self.broadcast(&result.into(), &shape)
    }

    /// An elementwise operator on an operand and a number.
    pub(super) fn with_number(&mut self, op: Elementwise, x: &Operand, number: f64) -> Result<Operand, Fail> {
        let dtype = self.ty(x).dtype;
        self.elementwise(op, &[x, &number_of(dtype, number)])
    }

    /// Conversion to an element type; nothing where it has that type already.
    pub(super) fn cast(&mut self, x: &Operand, to: DType) -> Result<Operand, Fail> {
        if self.ty(x).dtype == to {
            return Ok(x.clone());
        }
        self.elementwise(Elementwise::Cast { to }, &[x])
    }

    /// The same elements under another shape; nothing where it has that shape already.
    pub(super) fn reshape(&mut self, x: &Operand, shape: &[u64]) -> Result<Operand, Fail> {
        let ty = self.ty(x).clone();
        if ty.shape == shape {
            return Ok(x.clone());
        }
        let target = Type::new(ty.dtype, shape);
        if target.checked_elements() != ty.checked_elements() {
            return Err(format!("{ty} cannot be reshaped to {shape:?}: the numbers of elements differ").into());
        }
        if let Some(value) = self.known(x).and_then(|known| eval::reshape(known, shape)) {
            return Ok(value.into());
        }
        self.emit_one(Movement::Reshape { shape: shape.to_vec() }, &[x])
    }

    /// Axes in another order; nothing where the order is the same.
    pub(super) fn transpose(&mut self, x: &Operand, perm: &[usize]) -> Result<Operand, Fail> {
        if perm.iter().enumerate().all(|(i, &axis)| i == axis) {
            return Ok(x.clone());
        }
        if let Some(known) = self.known(x) {
            return Ok(eval::transpose(known, perm).into());
        }
        self.emit_one(Movement::Transpose { perm: perm.iter().map(|&axis| axis as u64).collect() }, &[x])
    }

    /// Repetition to a shape that the operand broadcasts to; nothing where it has that shape already.
    pub(super) fn broadcast(&mut self, x: &Operand, shape: &[u64]) -> Result<Operand, Fail> {
        let own = self.shape(x);
        if own == shape {
            return Ok(x.clone());
        }
        check_size(&Type::new(self.ty(x).dtype, shape))?;
        if broadcast(&[&own, shape])? != shape {
            return Err(format!("shape {own:?} does not broadcast to {shape:?}").into());
        }
        if let Some(known) = self.known(x) {
            return Ok(eval::broadcast_to(known, shape).into());
        }
        self.emit_one(Movement::Broadcast { shape: shape.to_vec() }, &[x])
    }

    /// Elements `start, start + step, ..` before `end` per axis, bounds as in the IR; nothing for a full slice.
    pub(super) fn slice(&mut self, x: &Operand, starts: &[i64], ends: &[i64], steps: &[i64]) -> Result<Operand, Fail> {
        let shape = self.shape(x);
        let is_full = |i: usize| starts[i] == 0 && steps[i] == 1 && u64::try_from(ends[i]) == Ok(shape[i]);
        if (0..shape.len()).all(is_full) {
            return Ok(x.clone());
        }
        let op = Movement::Slice { starts: starts.to_vec(), ends: ends.to_vec(), steps: steps.to_vec() };
        if let Some(known) = self.known(x) {
            let ty = Op::from(op).infer(&[&known.ty])?.remove(0);
            return Ok(eval::slice(known, starts, steps, &ty.shape).into());
        }
        self.emit_one(op, &[x])
    }

    /// A range of one axis.
    pub(super) fn narrow(&mut self, x: &Operand, axis: usize, start: u64, end: u64) -> Result<Operand, Fail> {
        let shape = self.shape(x);
        if shape.get(axis).is_none_or(|&dim| start > end || end > dim) {
            let range = format!("places {start} to {end} of axis {axis} are taken of a tensor of shape {shape:?}");
            return Err(Fail::new(code::BAD_SHAPE, range));
        }
        let mut starts = vec![0; shape.len()];
        let mut ends: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        (starts[axis], ends[axis]) = (start as i64, end as i64);
        self.slice(x, &starts, &ends, &vec![1; shape.len()])
    }

    /// Operands one after the other along an axis.
    pub(super) fn concat(&mut self, parts: &[&Operand], axis: usize) -> Result<Operand, Fail> {
        if let [only] = parts {
            return Ok((*only).clone());
        }
        let op = Movement::Concat { axis: axis as u64 };
        if let Some(known) = parts.iter().map(|part| self.known(part)).collect::<Option<Vec<&Const>>>() {
            Op::from(op.clone()).infer(&known.iter().map(|part| &part.ty).collect::<Vec<_>>())?;
            if let Some(value) = eval::concat(&known, axis) {
                return Ok(value.into());
            }
        }
        self.emit_one(op, parts)
    }

    /// A reduction; nothing over no axes.
    pub(super) fn reduce(
        &mut self,
        kind: ReduceKind,
        x: &Operand,
        axes: &[usize],
        keep: bool,
    ) -> Result<Operand, Fail> {
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let axes: Vec<u64> = axes.iter().map(|&axis| axis as u64).collect();
        if let Some(known) = self.known(x)
            && let Some(value) = eval::reduce(kind, known, &axes, keep)?
        {
            return Ok(value.into());
        }
        self.emit_one(Reduction::Reduce { kind, axes, keep }, &[x])
    }

    /// Slices along an axis at indices.
    pub(super) fn gather(&mut self, x: &Operand, indices: &Operand, axis: usize) -> Result<Operand, Fail> {
        if let (Some(known), Some(at)) = (self.known(x), self.known(indices))
            && let Some(value) = eval::gather(known, at, axis)
        {
            return Ok(value.into());
        }
        self.emit_one(Indexing::Gather { axis: axis as u64 }, &[x, indices])
    }

    /// The matrix product with numpy's rules for leading dimensions; operands of rank 2 or more.
    pub(super) fn matmul(&mut self, a: &Operand, b: &Operand) -> Result<Operand, Fail> {
        let (left, right) = (self.shape(a), self.shape(b));
        let (lead_left, lead_right) = (&left[..left.len() - 2], &right[..right.len() - 2]);
        let op = Contraction::MatMul { transpose_a: false, transpose_b: false };
        if lead_left == lead_right || lead_right.is_empty() {
            return self.emit_one(op, &[a, b]);
        }
        let lead = broadcast(&[lead_left, lead_right])?;
        let a = self.broadcast(a, &[&lead, &left[left.len() - 2..]].concat())?;
        let b = self.broadcast(b, &[&lead, &right[right.len() - 2..]].concat())?;
        self.emit_one(op, &[&a, &b])
    }
}

/// The IR admits only types whose size in bytes fits in 63 bits; beyond a petabyte nothing is meant.
pub(super) fn check_size(ty: &Type) -> Result<(), Fail> {
    match ty.checked_elements() {
        Some(n) if n < 1 << 47 => Ok(()),
        Some(_) | None => Err(format!("a value of type {ty} is larger than any memory").into()),
    }
}

/// A scalar constant.
pub(super) fn number_of(dtype: DType, number: f64) -> Operand {
    if dtype.is_float() {
        Const::scalar_float(dtype, number).into()
    } else {
        Const::scalar_int(dtype, number as i64).into()
    }
}

//! Values of the host device outside any arena.

use super::bytes::{Plain, Storage, bytes_of, view, view_mut};
use std::fmt;
use trainc_ir::{DType, Type};

/// A value: its type and its elements in row-major order, little-endian as on the host.
pub struct Tensor {
    ty: Type,
    storage: Storage,
}

impl Tensor {
    /// A tensor of zeros.
    pub fn zeros(ty: Type) -> Self {
        let storage = Storage::new(usize::try_from(ty.bytes()).expect("a tensor fits the address space"));
        Self { ty, storage }
    }

    /// A tensor with these bytes, or `None` where their number is not that of the type.
    pub fn from_bytes(ty: Type, bytes: &[u8]) -> Option<Self> {
        if bytes.len() as u64 != ty.bytes() {
            return None;
        }
        let mut tensor = Self::zeros(ty);
        tensor.storage.bytes_mut().copy_from_slice(bytes);
        Some(tensor)
    }

    /// An f32 tensor, or `None` where the number of elements is not that of the shape.
    pub fn from_f32(shape: &[u64], elements: &[f32]) -> Option<Self> {
        Self::from_bytes(Type::new(DType::F32, shape), bytes_of(elements))
    }

    /// An i64 tensor, or `None` where the number of elements is not that of the shape.
    pub fn from_i64(shape: &[u64], elements: &[i64]) -> Option<Self> {
        Self::from_bytes(Type::new(DType::I64, shape), bytes_of(elements))
    }

    /// Its type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// Its bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.storage.bytes_mut()
    }

    /// All elements as f64, whatever the element type.
    pub fn to_f64s(&self) -> Vec<f64> {
        let size = self.ty.dtype.bytes() as usize;
        self.bytes().chunks_exact(size).map(|bytes| trainc_ir::op::decode_f64(self.ty.dtype, bytes)).collect()
    }

    /// The elements of a tensor of this element type.
    ///
    /// # Panics
    /// When the type's size does not divide the bytes.
    pub(crate) fn elements<T: Plain>(&self) -> &[T] {
        view(self.bytes())
    }

    /// The elements of a tensor of this element type, mutable.
    ///
    /// # Panics
    /// As [`elements`](Self::elements).
    pub(crate) fn elements_mut<T: Plain>(&mut self) -> &mut [T] {
        view_mut(self.bytes_mut())
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Self {
        Self::from_bytes(self.ty.clone(), self.bytes()).expect("the bytes are of its own type")
    }
}

impl PartialEq for Tensor {
    /// Bit equality.
    fn eq(&self, other: &Self) -> bool {
        self.ty == other.ty && self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<f64> = self.to_f64s().into_iter().take(8).collect();
        write!(f, "{} {shown:?}..", self.ty)
    }
}

//! Bytes as elements: aligned storage, and checked views of byte slices.

use half::{bf16, f16};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// A type whose every bit pattern is a value.
///
/// # Safety
/// The type has no padding and no invalid bit pattern.
pub(crate) unsafe trait Plain: Copy + Send + Sync + 'static {}
// SAFETY: integers and floats have no padding and accept every bit pattern.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: a transparent wrapper of u16.
unsafe impl Plain for f16 {}
// SAFETY: a transparent wrapper of u16.
unsafe impl Plain for bf16 {}

/// The elements that the bytes hold.
///
/// # Panics
/// When the bytes are not aligned for the type or their number is not a multiple of its size.
pub(crate) fn view<T: Plain>(bytes: &[u8]) -> &[T] {
    // SAFETY: every bit pattern is a value.
    let (before, elements, after) = unsafe { bytes.align_to() };
    assert!(before.is_empty() && after.is_empty(), "storage is aligned and holds whole elements");
    elements
}

/// The elements that the bytes hold, mutable.
///
/// # Panics
/// As [`view`].
pub(crate) fn view_mut<T: Plain>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: every bit pattern is a value, and the type has no padding.
    let (before, elements, after) = unsafe { bytes.align_to_mut() };
    assert!(before.is_empty() && after.is_empty(), "storage is aligned and holds whole elements");
    elements
}

/// The bytes of elements.
pub(crate) fn bytes_of<T: Plain>(elements: &[T]) -> &[u8] {
    // SAFETY: the type has no padding.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Zeroed storage of a fixed size, aligned for every element type and for vector loads.
pub(crate) struct Storage {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the storage owns its bytes, like a boxed slice.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    const ALIGN: usize = 256;

    /// Zeroed bytes, or `None` where the machine has not that many.
    pub(crate) fn try_new(len: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len.max(1), Self::ALIGN).ok()?;
        // SAFETY: the layout's size is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout) }).map(|start| Self { start, len })
    }

    /// Zeroed bytes.
    ///
    /// # Panics
    /// When the machine has not that many.
    pub(crate) fn new(len: usize) -> Self {
        Self::try_new(len).unwrap_or_else(|| panic!("out of memory: {len} bytes"))
    }

    /// The first byte; everything in bounds may be read and written through it.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the storage owns `len` initialized bytes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, mutable.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.len.max(1), Self::ALIGN).expect("it was valid in `try_new`");
        // SAFETY: allocated in `try_new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), layout) };
    }
}

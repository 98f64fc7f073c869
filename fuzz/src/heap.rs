//! An allocator that counts bytes and refuses to go beyond a hard limit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// No target may ever have more in use; the allocation fails, which ends the process.
const HARD_LIMIT: usize = 3 << 30;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted. A program that drives targets makes it the global one.
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call that is not refused goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !grow(size) {
            return std::ptr::null_mut();
        }
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn grow(size: usize) -> bool {
    let used = USED.fetch_add(size, Ordering::Relaxed).saturating_add(size);
    if used > HARD_LIMIT {
        USED.fetch_sub(size, Ordering::Relaxed);
        return false;
    }
    PEAK.fetch_max(used, Ordering::Relaxed);
    true
}

/// Runs something and gives the most bytes that it had in use. Zero where [`Counting`] is not the global allocator.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = USED.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = run();
    (result, PEAK.load(Ordering::Relaxed).saturating_sub(before))
}

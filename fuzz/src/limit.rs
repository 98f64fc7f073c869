//! One input: what a target may do with it, and what it did.

use crate::heap::peak_of;
use crate::target::Target;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Bytes that any input may cost.
const BASE: usize = 64 << 20;

/// Bytes that each byte of an input may cost on top.
const PER_BYTE: usize = 16 << 10;

/// What a target did with an input.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The most bytes in use.
    pub peak: usize,
    /// How long it took.
    pub time: Duration,
    /// What is wrong, if anything.
    pub fault: Option<String>,
}

/// Runs a target once. A panic and too much memory are faults; time is left to the caller.
pub fn run_once(target: &Target, input: &[u8]) -> Outcome {
    let start = Instant::now();
    let (result, peak) = peak_of(|| catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
    let time = start.elapsed();
    let allowed = BASE + PER_BYTE * input.len();
    let fault = match result {
        Err(panic) => Some(format!("it panics: {}", message(panic.as_ref()))),
        Ok(()) if peak > allowed => Some(format!("{peak} bytes for an input of {}, at most {allowed}", input.len())),
        Ok(()) => None,
    };
    Outcome { peak, time, fault }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("with no message").to_owned()
}

//! Data movement.

use super::{Arg, Fault, Out, view, view_mut, with_size};
use crate::host::kernels::movement::{Window, copy, pad, place};
use trainc_ir::op::{Movement, encode_f64};

/// Runs a rearrangement.
pub(super) fn execute(op: &Movement, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    let x = inputs[0];
    let shape = x.shape();
    let out_shape = outputs[0].shape();
    with_size!(x.ty.dtype, T => match op {
        Movement::Reshape { shape: _ } => outputs[0].bytes.copy_from_slice(x.bytes),
        Movement::Transpose { perm } => {
            let perm: Vec<usize> = perm.iter().map(|&axis| axis as usize).collect();
            let from = Window::transposed(&shape, &perm);
            copy::<T>(x.get(), &from, outputs[0].get(), &Window::whole(&out_shape), &out_shape);
        }
        Movement::Broadcast { shape: _ } => {
            let from = Window::broadcast(&shape, &out_shape);
            copy::<T>(x.get(), &from, outputs[0].get(), &Window::whole(&out_shape), &out_shape);
        }
        Movement::Slice { starts, ends: _, steps } => {
            let from = window(&shape, starts, steps);
            copy::<T>(x.get(), &from, outputs[0].get(), &Window::whole(&out_shape), &out_shape);
        }
        Movement::SliceGrad { shape: _, starts, ends: _, steps } => {
            outputs[0].bytes.fill(0);
            let to = window(&out_shape, starts, steps);
            copy::<T>(x.get(), &Window::whole(&shape), outputs[0].get(), &to, &shape);
        }
        Movement::Concat { axis } => {
            let mut start = 0;
            for input in inputs {
                let shape = input.shape();
                let at = (*axis as usize, start);
                place::<T>(input.get(), &shape, outputs[0].get(), &out_shape, at);
                start += shape[*axis as usize];
            }
        }
        Movement::Split { axis, sizes: _ } => {
            let mut starts = vec![0; shape.len()];
            for output in outputs {
                let part = output.shape();
                let from = Window::slice(&shape, &starts, &vec![1; shape.len()]);
                copy::<T>(x.get(), &from, output.get(), &Window::whole(&part), &part);
                starts[*axis as usize] += part[*axis as usize];
            }
        }
        Movement::Pad { low, high: _, value } => {
            let low: Vec<usize> = low.iter().map(|&n| n as usize).collect();
            let mut value_bytes = [0u64; 1];
            let element = encode_f64(x.ty.dtype, value.get());
            view_mut::<u8>(as_bytes(&mut value_bytes))[..element.len()].copy_from_slice(&element);
            let value = view::<T>(as_bytes(&mut value_bytes))[0];
            pad::<T>(x.get(), &shape, value, &low, outputs[0].get(), &out_shape);
        }
    });
    Ok(())
}

/// The bytes of one aligned word.
fn as_bytes(word: &mut [u64; 1]) -> &mut [u8] {
    // SAFETY: eight initialized bytes, borrowed exclusively.
    unsafe { std::slice::from_raw_parts_mut(word.as_mut_ptr().cast(), 8) }
}

/// The part of a tensor that a slice takes; an axis of no elements starts anywhere.
fn window(shape: &[usize], starts: &[i64], steps: &[i64]) -> Window {
    let starts: Vec<usize> = starts.iter().map(|&start| usize::try_from(start).unwrap_or(0)).collect();
    let steps: Vec<isize> = steps.iter().map(|&step| step as isize).collect();
    Window::slice(shape, &starts, &steps)
}

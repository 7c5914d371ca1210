//! Strided copies with conversion, fills, and operands in the layout that a kernel needs.
//!
//! A copy is a fused step of a load and a store; the code generated for a layout is cached.

use super::{Gpu, GpuError};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::kernel::abi::RawView;
use crate::kernel::elementwise::{ADD, MUL};
use crate::kernel::fused::cuda::{Ready, prepare};
use crate::kernel::program::{Class, Instr, Program, ReduceKind};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;

/// Bound: cached copies; the cache is emptied at this number of layouts.
const MAX_CACHED: usize = 1024;

struct Cached {
    program: Program,
    ready: Ready,
}

type Key = SmallVec<[u64; 24]>;

thread_local! {
    static CACHE: RefCell<HashMap<Key, Cached>> = RefCell::new(HashMap::new());
}

fn run(
    key: Key,
    make: impl FnOnce() -> Program,
    shape: &[usize],
    views: &[RawView],
    table: &[u64],
    gpu: &mut dyn Gpu,
) -> Result<(), GpuError> {
    // Removed from the cache while it runs, so that the cache is not borrowed if the device calls back into this
    // function.
    let cached = CACHE.with(|all| all.borrow_mut().remove(&key));
    let mut cached = cached.unwrap_or_else(|| Cached { program: make(), ready: prepare() });
    let done = cached.ready.run(&cached.program, shape, views, table, gpu);
    CACHE.with(|all| {
        let mut all = all.borrow_mut();
        if all.len() >= MAX_CACHED {
            all.clear();
        }
        all.insert(key, cached);
    });
    done
}

/// Copies one view to another of the same shape, converted as C does it. The two do not overlap.
pub fn copy_view(from: &RawView, to: &RawView, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    if to.numel() == 0 {
        return Ok(());
    }
    let mut key = Key::from_slice(&[1, from.dtype as u64, to.dtype as u64]);
    key.extend(to.shape.iter().map(|&n| n as u64));
    key.extend(from.strides.iter().chain(&to.strides).map(|&s| s as u64));
    let (source, target) = (from.dtype, to.dtype);
    let make = || {
        let class = Class::of(source);
        let mut instrs = vec![Instr::Load { slot: 0, out: 0 }];
        if source != target {
            instrs.push(Instr::Cast { reg: 0, from: class, to: target, out: 1 });
        }
        instrs.push(Instr::Store { reg: (source != target) as u16, slot: 1 });
        Program::new(instrs, vec![class, Class::of(target)], 0)
    };
    run(key, make, &to.shape, &[from.clone(), to.clone()], &[], gpu)
}

/// `to = from + what` for views of floats of one shape, rounded once. `from` may be `to`, and `what` may be broadcast.
pub fn add(from: &RawView, what: &RawView, to: &RawView, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    if to.numel() == 0 {
        return Ok(());
    }
    let mut key = Key::from_slice(&[3, from.dtype as u64, what.dtype as u64, to.dtype as u64]);
    key.extend(to.shape.iter().map(|&n| n as u64));
    key.extend([from, what, to].into_iter().flat_map(|view| &view.strides).map(|&s| s as u64));
    let class = Class::of(to.dtype);
    let Some(variant) = ADD.variant(&[class, class]) else { return Err(GpuError::Unsupported("this sum")) };
    let make = || {
        let wide = if class == Class::F64 { DType::F64 } else { DType::F32 };
        let (mut instrs, mut regs) = (Vec::new(), Vec::new());
        let mut push = |instr: &dyn Fn(u16) -> Instr, class: Class| {
            let out = regs.len() as u16;
            regs.push(class);
            instrs.push(instr(out));
            out
        };
        let mut args = [0; 4];
        for (slot, view) in [from, what].into_iter().enumerate() {
            let given = Class::of(view.dtype);
            args[slot] = push(&|out| Instr::Load { slot: slot as u16, out }, given);
            if given != class {
                let reg = args[slot];
                args[slot] = push(&|out| Instr::Cast { reg, from: given, to: wide, out }, class);
            }
        }
        let mut sum = push(&|out| Instr::Apply { function: &ADD, variant: variant as u16, args, out }, class);
        if to.dtype != wide {
            sum = push(&|out| Instr::Cast { reg: sum, from: class, to: to.dtype, out }, class);
        }
        instrs.push(Instr::Store { reg: sum, slot: 2 });
        Program::new(instrs, regs, 0)
    };
    run(key, make, &to.shape, &[from.clone(), what.clone(), to.clone()], &[], gpu)
}

/// Sums of a row-major view of floats over its first dim, accumulated in the accumulator type of `to`'s dtype.
pub fn sum_first(from: &RawView, to: &RawView, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let (times, each) = (from.shape[0], to.numel());
    if each == 0 {
        return Ok(());
    }
    let class = Class::of(to.dtype);
    let mut views = [from.clone(), to.clone()];
    views[0].shape = Shape::from_slice(&[each, times]);
    views[0].strides = [1, each as isize].into_iter().collect();
    views[1].shape = Shape::from_slice(&[each]);
    views[1].strides = [1].into_iter().collect();
    let make = || {
        let instrs =
            vec![Instr::Load { slot: 0, out: 0 }, Instr::Reduce { kind: ReduceKind::Sum, reg: 0, class, slot: 1 }];
        Program::new(instrs, vec![class], 1)
    };
    let key = Key::from_slice(&[4, from.dtype as u64, to.dtype as u64, each as u64, times as u64]);
    run(key, make, &[each, times], &views, &[], gpu)
}

/// Sums over the last dim of the products of two views of one shape and dtype, accumulated in the accumulator type of that
/// dtype and rounded once.
pub fn dot(a: &RawView, b: &RawView, to: &RawView, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let class = Class::of(a.dtype);
    let Some(variant) = MUL.variant(&[class, class]) else { return Err(GpuError::Unsupported("this product")) };
    let make = || {
        let instrs = vec![
            Instr::Load { slot: 0, out: 0 },
            Instr::Load { slot: 1, out: 1 },
            Instr::Apply { function: &MUL, variant: variant as u16, args: [0, 1, 0, 0], out: 2 },
            Instr::Reduce { kind: ReduceKind::Sum, reg: 2, class, slot: 2 },
        ];
        Program::new(instrs, vec![class; 3], 1)
    };
    let mut key = Key::from_slice(&[5, a.dtype as u64, to.dtype as u64]);
    key.extend(a.shape.iter().map(|&n| n as u64));
    key.extend([a, b, to].into_iter().flat_map(|view| &view.strides).map(|&s| s as u64));
    run(key, make, &a.shape, &[a.clone(), b.clone(), to.clone()], &[], gpu)
}

/// Sets every element to a number, converted as C does it.
pub fn fill(value: Scalar, to: &RawView, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    if to.numel() == 0 {
        return Ok(());
    }
    let mut key = Key::from_slice(&[2, to.dtype as u64]);
    key.extend(to.shape.iter().map(|&n| n as u64));
    key.extend(to.strides.iter().map(|&s| s as u64));
    let class = Class::of(to.dtype);
    let bits = match class {
        Class::Bool => !value.is_zero() as u64,
        Class::I64 => value.to_i64() as u64,
        Class::F32 | Class::F64 => value.to_f64().to_bits(),
    };
    let make = || {
        let instrs = vec![Instr::Scalar { index: 0, class, out: 0 }, Instr::Store { reg: 0, slot: 0 }];
        Program::new(instrs, vec![class], 0)
    };
    run(key, make, &to.shape, std::slice::from_ref(to), &[bits], gpu)
}

/// Row-major scratch memory of a shape.
pub fn scratch(dtype: DType, shape: &[usize], gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let count: usize = shape.iter().product();
    Ok(RawView::contiguous(gpu.scratch(count.max(1) * dtype.size_bytes())?, dtype, shape))
}

/// The operand as row-major and contiguous in `dtype`: itself, or a copy.
pub fn input(view: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    if view.dtype == dtype && view.is_contiguous() {
        return Ok(view.clone());
    }
    let copy = scratch(dtype, &view.shape, gpu)?;
    copy_view(view, &copy, gpu)?;
    Ok(copy)
}

/// A result that a kernel writes row-major and contiguous, in a dtype of its choice.
pub struct Output {
    pub dense: RawView,
    view: Option<RawView>,
}

impl Output {
    pub fn new(view: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<Output, GpuError> {
        Output::at_multiple(1, view, dtype, gpu)
    }

    /// As `new`, at an address that is a multiple of 16.
    pub fn aligned(view: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<Output, GpuError> {
        Output::at_multiple(16, view, dtype, gpu)
    }

    fn at_multiple(bytes: usize, view: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<Output, GpuError> {
        if view.dtype == dtype && view.is_contiguous() && (view.ptr as usize).is_multiple_of(bytes) {
            return Ok(Output { dense: view.clone(), view: None });
        }
        Ok(Output { dense: scratch(dtype, &view.shape, gpu)?, view: Some(view.clone()) })
    }

    /// Copies the result to the view that the caller asked for.
    pub fn finish(self, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
        self.view.map_or(Ok(()), |view| copy_view(&self.dense, &view, gpu))
    }
}

/// The product of the sizes before `dim`, the size of `dim`, and the product of the sizes after it; all 1 for a
/// 0-dimensional shape.
pub fn around(shape: &Shape, dim: usize) -> (usize, usize, usize) {
    let at = shape.get(dim).copied().unwrap_or(1);
    (shape.iter().take(dim).product(), at, shape.iter().skip(dim + 1).product())
}

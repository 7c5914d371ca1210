//! Fourier transforms along several dims, batched over the others, in f32 and f64.
//!
//! Each dim is a pass over all lines along it. Between passes lie tensors of the sizes so far: a dim that is cut is cut
//! by its pass, so that later ones have less to do.
//!
//! Attributes of the three kernels: the dims; the length of the transform of each; the factor of all results; a flag,
//! whether the transform is inverse (`whole`) or the half spectrum is conjugate (`to_half`, `from_half`); the factor of
//! those elements of the half spectrum that have a mirror image. Sizes of inputs and outputs along the dims may be
//! others than the lengths: they are cut, or count as 0 from there on. No faults.

pub mod lines;
pub mod plan;
pub mod radix;

use crate::base::attr::Attr;
use crate::base::dtype::DType;
use crate::base::layout::{Shape, contiguous_strides};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::host::staging::Scratch;
use lines::{Along, Kind, Side, transform};
use radix::Part;

/// What the attributes say.
#[derive(Clone, Debug)]
pub struct Task {
    pub dims: Vec<usize>,
    pub lengths: Vec<usize>,
    pub scale: f64,
    /// Inverse, or conjugate.
    pub flag: bool,
    pub middle: f64,
}

impl Task {
    pub fn of(attrs: &[Attr]) -> Task {
        let list = |at: usize| match attrs.get(at) {
            Some(Attr::Ints(list)) => list.iter().map(|&n| n as usize).collect(),
            _ => Vec::new(),
        };
        let float = |at: usize| match attrs.get(at) {
            Some(Attr::Float(x)) => *x,
            _ => 1.0,
        };
        Task {
            dims: list(0),
            lengths: list(1),
            scale: float(2),
            flag: matches!(attrs.get(3), Some(Attr::Bool(true))),
            middle: float(4),
        }
    }
}

/// Whether numbers of a dtype are pairs, and of f64: the four dtypes of spectra and signals.
pub fn is_pair(dtype: DType) -> bool {
    !dtype.is_float()
}

fn is_double(dtype: DType) -> bool {
    dtype.size_bytes() == if is_pair(dtype) { 16 } else { 8 }
}

fn side<T>(view: &RawView) -> Side<T> {
    let parts = 1 + is_pair(view.dtype) as usize;
    let strides = view.strides.iter().map(|stride| stride * parts as isize).collect();
    Side { at: view.ptr.cast(), parts, shape: view.shape.clone(), strides }
}

/// A tensor between two passes.
fn between<T: Copy + Default>(shape: &Shape) -> (Scratch<T>, Side<T>) {
    let mut memory = Scratch::new(2 * shape.iter().product::<usize>());
    let strides = contiguous_strides(shape).iter().map(|stride| 2 * stride).collect();
    let side = Side { at: memory.as_mut_ptr(), parts: 2, shape: shape.clone(), strides };
    (memory, side)
}

/// The passes of a kernel, in order.
fn passes(kind: Kind, task: &Task) -> Vec<Along> {
    let last = task.dims.len().saturating_sub(1);
    let mut order: Vec<usize> = (0..task.dims.len()).rev().collect();
    if kind == Kind::FromHalf {
        order.rotate_left(1.min(last));
    }
    let along = |at: usize| {
        let kind = if at == last { kind } else { Kind::Whole };
        Along { kind, dim: task.dims[at], n: task.lengths[at], inverse: false, conjugate: false, scale: 1.0, middle: 1.0 }
    };
    let mut all: Vec<Along> = order.into_iter().map(along).collect();
    for one in &mut all {
        // A half spectrum that is conjugate is so in all dims: they are transformed the other way.
        one.inverse = match kind {
            Kind::Whole | Kind::ToHalf => task.flag,
            Kind::FromHalf => !task.flag,
        };
        if one.kind != Kind::Whole {
            (one.conjugate, one.middle) = (task.flag, task.middle);
        }
    }
    if let Some(one) = all.last_mut() {
        one.scale = task.scale;
    }
    all
}

/// # Safety
/// As `HostFn`.
unsafe fn run<T: Part>(kind: Kind, call: &Call<'_>) {
    let task = Task::of(call.attrs);
    let (mut from, to) = (side::<T>(&call.inputs[0]), side::<T>(&call.outputs[0]));
    let passes = passes(kind, &task);
    let mut kept: Option<Scratch<T>> = None;
    for (at, along) in passes.iter().enumerate() {
        let mut shape = from.shape.clone();
        shape[along.dim] = to.shape[along.dim];
        let fits = shape == to.shape && (to.parts == 2 || at + 1 == passes.len());
        let (memory, target) = if fits {
            (None, to.clone())
        } else {
            let (memory, side) = between(&shape);
            (Some(memory), side)
        };
        // SAFETY: `HostFn`: the views are valid and nobody else touches them; scratch is this call's own.
        unsafe { transform(*along, &from, &target, call.threads) };
        from = target;
        // What the pass read is freed only now.
        kept = memory;
    }
    drop(kept);
}

/// # Safety
/// As `HostFn`.
unsafe fn by_type(kind: Kind, call: &Call<'_>) {
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, which says what its parts are.
    unsafe {
        match is_double(call.outputs[0].dtype) {
            true => run::<f64>(kind, call),
            false => run::<f32>(kind, call),
        }
    }
}

/// Complex or real numbers to complex ones, or to the real parts of these.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn whole(call: &Call<'_>) {
    // SAFETY: as this function.
    unsafe { by_type(Kind::Whole, call) }
}

/// Real numbers to the half spectrum along the last of the dims.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn to_half(call: &Call<'_>) {
    // SAFETY: as this function.
    unsafe { by_type(Kind::ToHalf, call) }
}

/// The half spectrum along the last of the dims to real numbers.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn from_half(call: &Call<'_>) {
    // SAFETY: as this function.
    unsafe { by_type(Kind::FromHalf, call) }
}

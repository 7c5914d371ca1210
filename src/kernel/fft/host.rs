//! Fourier transforms along several dims, batched over the others, in f32 and f64.
//!
//! Each dim is a pass over all lines along it. Between passes lie tensors of the sizes so far: a dim that is cut is cut
//! by its pass, so that later ones have less to do.
//!
//! Attributes of the three kernels: the dims; the length of the transform of each; the factor of all results; a flag,
//! whether the transform is inverse (`whole`) or the half spectrum is conjugate (`to_half`, `from_half`); the factor of
//! those elements of the half spectrum that have a mirror image; whether the operand and the result are complex, as pairs
//! of real numbers in a last dim that is not counted. Sizes of inputs and outputs along the dims may be
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
    /// Whether the operand and the result are complex.
    pub pairs: [bool; 2],
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
        let flag = |at: usize| matches!(attrs.get(at), Some(Attr::Bool(true)));
        Task {
            dims: list(0),
            lengths: list(1),
            scale: float(2),
            flag: flag(3),
            middle: float(4),
            pairs: [flag(5), flag(6)],
        }
    }
}

/// A view of real numbers, or of pairs in a last dim.
fn side<T>(view: &RawView, pairs: bool) -> Side<T> {
    let (mut shape, mut strides, mut second) = (view.shape.clone(), view.strides.clone(), None);
    if pairs {
        shape.pop();
        second = strides.pop();
    }
    Side { at: view.ptr.cast(), second, shape, strides }
}

/// A tensor between two passes.
fn between<T: Copy + Default>(shape: &Shape) -> (Scratch<T>, Side<T>) {
    let mut memory = Scratch::new(2 * shape.iter().product::<usize>());
    let strides = contiguous_strides(shape).iter().map(|stride| 2 * stride).collect();
    let side = Side { at: memory.as_mut_ptr(), second: Some(1), shape: shape.clone(), strides };
    (memory, side)
}

/// The passes of a kernel, in order.
pub fn passes(kind: Kind, task: &Task) -> Vec<Along> {
    let last = task.dims.len().saturating_sub(1);
    let mut order: Vec<usize> = (0..task.dims.len()).rev().collect();
    if kind == Kind::FromHalf {
        order.rotate_left(1.min(last));
    }
    let along = |at: usize| {
        let kind = if at == last { kind } else { Kind::Whole };
        Along {
            kind,
            dim: task.dims[at],
            n: task.lengths[at],
            inverse: false,
            conjugate: false,
            scale: 1.0,
            middle: 1.0,
        }
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
    let (mut from, to) = (side::<T>(&call.inputs[0], task.pairs[0]), side::<T>(&call.outputs[0], task.pairs[1]));
    let passes = passes(kind, &task);
    let mut kept: Option<Scratch<T>> = None;
    for (at, along) in passes.iter().enumerate() {
        let mut shape = from.shape.clone();
        shape[along.dim] = to.shape[along.dim];
        let fits = shape == to.shape && (to.second.is_some() || at + 1 == passes.len());
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
        match call.outputs[0].dtype {
            DType::F64 => run::<f64>(kind, call),
            _ => run::<f32>(kind, call),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Ints;
    use crate::kernel::abi::{Faults, HostFn, Threads};
    use plan::root;

    struct Array {
        shape: Vec<usize>,
        pairs: bool,
        data: Vec<f32>,
    }

    impl Array {
        fn new(shape: &[usize], pairs: bool, seed: f32) -> Array {
            let count = shape.iter().product::<usize>() * (1 + pairs as usize);
            let data = (0..count).map(|i| ((i as f32 * 1.37 + seed).sin() * 3.1).sin()).collect();
            Array { shape: shape.to_vec(), pairs, data }
        }

        fn view(&mut self) -> (RawView, bool) {
            let mut shape = self.shape.clone();
            if self.pairs {
                shape.push(2);
            }
            (RawView::contiguous(self.data.as_mut_ptr().cast(), DType::F32, &shape), self.pairs)
        }

        fn at(&self, i: usize) -> [f64; 2] {
            match self.pairs {
                true => [self.data[2 * i] as f64, self.data[2 * i + 1] as f64],
                false => [self.data[i] as f64, 0.0],
            }
        }
    }

    type Seen = (RawView, bool);

    fn call(kernel: HostFn, from: &Seen, to: &Seen, dims: &[i64], lengths: &[i64], flag: bool, middle: f64) {
        let attrs = [
            Attr::Ints(Ints::from_slice(dims)),
            Attr::Ints(Ints::from_slice(lengths)),
            Attr::Float(0.5),
            Attr::Bool(flag),
            Attr::Float(middle),
            Attr::Bool(from.1),
            Attr::Bool(to.1),
        ];
        let (inputs, outputs) = ([from.0.clone()], [to.0.clone()]);
        let (threads, faults) = (Threads::new(2), Faults::default());
        let call = Call {
            inputs: &inputs,
            outputs: &outputs,
            attrs: &attrs,
            threads: &threads,
            faults: &faults,
            seed: 0,
            offset: 0,
        };
        // SAFETY: the views are those of two arrays that live until the kernel has returned.
        unsafe { kernel(&call) };
    }

    /// The real part of the sum of products with the conjugate.
    fn product(a: &Array, b: &Array) -> f64 {
        let count = a.data.len() / (1 + a.pairs as usize);
        (0..count).map(|i| (a.at(i), b.at(i))).map(|(a, b)| a[0] * b[0] + a[1] * b[1]).sum()
    }

    #[test]
    fn two_dims_give_the_sums_that_define_them() {
        let (rows, columns) = (6, 5);
        let mut x = Array::new(&[rows, columns], true, 0.1);
        let mut y = Array::new(&[rows, columns], true, 0.0);
        // Of the transposed tensor: strides are followed.
        let (mut from, mut to) = (x.view(), y.view());
        for (view, _) in [&mut from, &mut to] {
            view.shape[..2].reverse();
            view.strides[..2].reverse();
        }
        for inverse in [false, true] {
            call(whole, &from, &to, &[0, 1], &[columns as i64, rows as i64], inverse, 1.0);
            for place in 0..rows * columns {
                let (p, q) = (place / columns, place % columns);
                let mut sum = [0.0; 2];
                for i in 0..rows * columns {
                    let [c, s] =
                        root((i / columns * p % rows) * columns + (i % columns * q % columns) * rows, rows * columns);
                    let (s, [re, im]) = (if inverse { -s } else { s }, x.at(i));
                    sum = [sum[0] + 0.5 * (re * c - im * s), sum[1] + 0.5 * (re * s + im * c)];
                }
                let found = y.at(place);
                assert!((found[0] - sum[0]).hypot(found[1] - sum[1]) < 1e-4, "{place}: {found:?}, {sum:?}");
            }
        }
    }

    #[test]
    fn halves_are_those_of_the_whole() {
        for n in [1, 2, 3, 4, 5, 8, 17, 30, 34] {
            let (mut x, half) = (Array::new(&[3, n], false, 0.7), n / 2 + 1);
            let (mut all, mut first) = (Array::new(&[3, n], true, 0.0), Array::new(&[3, half], true, 0.0));
            for conjugate in [false, true] {
                call(whole, &x.view(), &all.view(), &[1], &[n as i64], conjugate, 1.0);
                call(to_half, &x.view(), &first.view(), &[1], &[n as i64], conjugate, 1.0);
                for place in 0..3 * half {
                    let (a, b) = (first.at(place), all.at(place / half * n + place % half));
                    assert!((a[0] - b[0]).hypot(a[1] - b[1]) < 1e-4, "n = {n}, {place}: {a:?}, {b:?}");
                }
                let mut back = Array::new(&[3, n], false, 0.0);
                call(from_half, &first.view(), &back.view(), &[1], &[n as i64], conjugate, 1.0);
                for (a, b) in back.data.iter().zip(&x.data) {
                    assert!((a - 0.25 * n as f32 * b).abs() < 1e-4, "n = {n}: {a}, {b}");
                }
            }
        }
    }

    /// Many lines are transformed beside each other, element by element; one line alone is not.
    #[test]
    fn many_lines_give_what_each_alone_gives() {
        let kernels: [(HostFn, bool, bool); 4] =
            [(whole, true, true), (whole, false, true), (to_half, false, true), (from_half, true, false)];
        for (kernel, pairs, result_pairs) in kernels {
            for n in [7, 8, 12, 30, 64, 1000] {
                for flag in [false, true] {
                    let middle = if pairs == result_pairs { 1.0 } else { 0.75 };
                    let lines = 37;
                    let mut x = Array::new(&[lines, n], pairs, 0.3);
                    let mut y = Array::new(&[lines, n], result_pairs, 0.0);
                    call(kernel, &x.view(), &y.view(), &[1], &[n as i64], flag, middle);
                    let (width, result_width) = (n * (1 + pairs as usize), n * (1 + result_pairs as usize));
                    for line in 0..lines {
                        let mut one = Array::new(&[1, n], pairs, 0.0);
                        one.data.copy_from_slice(&x.data[line * width..(line + 1) * width]);
                        let mut alone = Array::new(&[1, n], result_pairs, 0.0);
                        call(kernel, &one.view(), &alone.view(), &[1], &[n as i64], flag, middle);
                        let together = &y.data[line * result_width..(line + 1) * result_width];
                        for (a, b) in together.iter().zip(&alone.data) {
                            assert!((a - b).abs() < 1e-5 * n as f32, "{pairs} {result_pairs} {n} {flag}: {a}, {b}");
                        }
                    }
                }
            }
        }
    }

    /// For all x and y the product of F(x) with y is that of x with the adjoint of y.
    #[test]
    fn each_is_the_adjoint_of_one_of_the_three() {
        type Adjoint = (HostFn, HostFn, bool, bool, fn(bool, f64) -> (bool, f64));
        let all: [Adjoint; 4] = [
            (whole, whole, true, true, |flag, middle| (!flag, middle)),
            (whole, whole, false, true, |flag, middle| (!flag, middle)),
            (to_half, from_half, false, true, |flag, middle| (flag, middle / 2.0)),
            (from_half, to_half, true, false, |flag, middle| (flag, middle * 2.0)),
        ];
        for (kernel, back, pairs, result_pairs, other) in all {
            for lengths in [[4, 6], [5, 7], [3, 1], [1, 2]] {
                // As long as the transforms, shorter, longer.
                for (by, out) in [(0, 0), (1, 2), (2, 1)] {
                    for flag in [false, true] {
                        let middle = if pairs == result_pairs { 1.0 } else { 0.75 };
                        let size = |n: i64, change: i64| (n - 1 + change).max(1) as usize;
                        let sizes = [size(lengths[0], by), 2, size(lengths[1], by)];
                        let others = [size(lengths[0], out), 2, size(lengths[1], out)];
                        let mut x = Array::new(&sizes, pairs, 0.3);
                        let (mut fx, mut y) =
                            (Array::new(&others, result_pairs, 0.0), Array::new(&others, result_pairs, 0.9));
                        let mut fy = Array::new(&sizes, pairs, 0.0);
                        call(kernel, &x.view(), &fx.view(), &[0, 2], &lengths, flag, middle);
                        let (other_flag, other_middle) = other(flag, middle);
                        call(back, &y.view(), &fy.view(), &[0, 2], &lengths, other_flag, other_middle);
                        let (a, b) = (product(&fx, &y), product(&x, &fy));
                        assert!(
                            (a - b).abs() < 1e-4 * (1.0 + a.abs()),
                            "{lengths:?} {sizes:?} {others:?} {flag}: {a}, {b}"
                        );
                    }
                }
            }
        }
    }
}

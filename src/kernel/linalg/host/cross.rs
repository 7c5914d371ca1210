//! Cross products of vectors of three elements.

use crate::kernel::abi::{Call, RawView};
use crate::kernel::host::element::by_category;
use crate::kernel::host::walk::{Ptr, StridedIter, dim, without};
use half::{bf16, f16};

/// Elements of a thread.
const GRAIN: usize = 4 * 1024;

trait Number: Copy + Send + Sync {
    /// `a b - c d`, each rounded as the type does it; integers wrap.
    fn minor(a: Self, b: Self, c: Self, d: Self) -> Self;
}

macro_rules! numbers {
    ($($type:ident)*, |$a:ident, $b:ident, $c:ident, $d:ident| $minor:expr) => { $(
        impl Number for $type {
            #[inline(always)]
            fn minor($a: $type, $b: $type, $c: $type, $d: $type) -> $type {
                $minor
            }
        }
    )* };
}
numbers! { f32 f64 f16 bf16, |a, b, c, d| a * b - c * d }
numbers! { u8 i8 i16 i32 i64, |a, b, c, d| a.wrapping_mul(b).wrapping_sub(c.wrapping_mul(d)) }

/// Cross products. Inputs: `x`, `y` of a shape with a dim of size 3, of one dtype, no bools. Output: of this shape. Attribute: the
/// dim (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn cross(call: &Call<'_>) {
    let (x, y, out) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let d = dim(call, 0);
    let rest = |view: &RawView| without(&view.strides, d);
    let walk = StridedIter::<3>::new(&without(&out.shape, d), [&rest(out), &rest(x), &rest(y)]);
    let steps = [out, x, y].map(|view| view.strides[d]);
    by_category!(out.dtype, T => bool: debug_assert!(false, "no cross product of bools"), int: {
        run::<T>([Ptr::of(out), Ptr::of(x), Ptr::of(y)], &walk, steps, call)
    }, float: {
        run::<T>([Ptr::of(out), Ptr::of(x), Ptr::of(y)], &walk, steps, call)
    });
}

fn run<T: Number>([out, x, y]: [Ptr<T>; 3], walk: &StridedIter<3>, steps: [isize; 3], call: &Call<'_>) {
    let inner = walk.inner();
    call.threads.split(walk.numel, GRAIN, |range| {
        walk.pieces(range, |_, [o, p, q], len| {
            let [o, p, q] = [out.at(o), x.at(p), y.at(q)];
            // SAFETY: the walk names the first elements of the vectors of all three views, whose others are `steps` away; each
            // piece of the output is another thread's or another's turn.
            unsafe {
                match inner {
                    // Constants, so that the loop becomes vectors.
                    [1, 1, 1] => piece([o, p, q], [1, 1, 1], steps, len),
                    _ => piece([o, p, q], inner, steps, len),
                }
            }
        });
    });
}

#[inline(always)]
unsafe fn piece<T: Number>([o, x, y]: [*mut T; 3], inner: [isize; 3], steps: [isize; 3], len: usize) {
    for i in 0..len as isize {
        // SAFETY: whoever calls this names `len` vectors in each of the three.
        unsafe {
            let (o, x, y) = (o.offset(i * inner[0]), x.offset(i * inner[1]), y.offset(i * inner[2]));
            let at = |k: isize| (*x.offset(k * steps[1]), *y.offset(k * steps[2]));
            let ((x0, y0), (x1, y1), (x2, y2)) = (at(0), at(1), at(2));
            *o = T::minor(x1, y2, x2, y1);
            *o.offset(steps[0]) = T::minor(x2, y0, x0, y2);
            *o.offset(2 * steps[0]) = T::minor(x0, y1, x1, y0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned};

    #[test]
    fn vectors_lie_along_any_dim() {
        let mut dice = Dice(3);
        for dtype in [DType::F32, DType::BF16, DType::I64, DType::U8] {
            let x = Owned::strided_from(dtype, &[3, 2], &[1., 4., 2., 5., 3., 7.], &mut dice);
            let y = Owned::strided_from(dtype, &[3, 2], &[9., 1., 9., 2., 9., 3.], &mut dice);
            let out = Owned::strided(dtype, &[3, 2], &mut dice);
            sample::call(cross, &[&x, &y], &[&out], &[Attr::Int(0)]);
            let wrapped = |v: f64| if dtype == DType::U8 { v.rem_euclid(256.0) } else { v };
            assert_eq!(out.get(), [-9., 1., 18., -5., -9., 3.].map(wrapped), "{dtype}");
        }
    }
}

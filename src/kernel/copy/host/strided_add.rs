//! The gradient of every view: adds a dense gradient into a zeroed buffer, at the positions of the view.

use super::zero;
use crate::base::layout::{Shape, Strides};
use crate::base::order;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::host::element::{Element, by_dtype};
use crate::kernel::host::walk::{Ptr, StridedIter, int, ints, shifted};

/// `y = 0; y.as_strided(g.shape, strides, offset) += g`. Inputs `[g]`; outputs `[y]`, contiguous, same dtype. Attrs
/// `[strides, offset]`: the layout of the view inside `y`, in elements; one stride for each dim of `g`. Positions that
/// overlap (`unfold`, `as_strided`, `expand`) are summed in row-major order of `g`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`]; the layout lies inside `y`.
pub unsafe fn strided_add(call: &Call<'_>) {
    let (g, y) = (&call.inputs[0], &call.outputs[0]);
    // SAFETY: `call` is one of `HostFn`: the output is valid, and nobody else touches it.
    unsafe { zero(y, call.threads) };
    if g.numel() == 0 {
        return;
    }
    let strides: Strides = ints(call, 0).iter().map(|&s| s as isize).collect();
    let to = shifted(y, int(call, 1) as isize, g.shape.clone(), strides);
    let run: Run = by_dtype!(y.dtype, T => add_run::<T>);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { add(run, g, &to, call) }
}

/// Adds `n` elements.
type Run = unsafe fn(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, n: usize);

unsafe fn add_run<T: Element>(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, n: usize) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    for i in 0..n as isize {
        // SAFETY: whoever takes this function from the table names `n` elements of `T` with each of the two strides.
        unsafe {
            let at = to.offset(i * to_stride);
            *at = (*at).plus(*from.offset(i * from_stride));
        }
    }
}

/// Dims along which different indices address different elements, for any indices of the other dims: those whose stride
/// exceeds the extent of all dims with smaller strides. Other dims may overlap, so one thread processes them.
fn separable(to: &RawView) -> Vec<bool> {
    let mut order: Vec<usize> = (0..to.shape.len()).collect();
    order::by_key(&mut order, |&d| to.strides[d]);
    let mut separate = vec![true; order.len()];
    let mut reach = 0;
    for (rank, &d) in order.iter().enumerate() {
        if to.shape[d] > 1 && to.strides[d] <= reach {
            order[..=rank].iter().for_each(|&e| separate[e] = false);
        }
        reach += (to.shape[d] as isize - 1) * to.strides[d];
    }
    separate
}

unsafe fn add(run: Run, g: &RawView, to: &RawView, call: &Call<'_>) {
    let separate = separable(to);
    let pick = |wanted: bool| {
        let dims: Vec<usize> = (0..to.shape.len()).filter(|&d| separate[d] == wanted).collect();
        let shape: Shape = dims.iter().map(|&d| to.shape[d]).collect();
        let strides = |view: &RawView| dims.iter().map(|&d| view.strides[d]).collect::<Strides>();
        StridedIter::<2>::new(&shape, [&strides(to), &strides(g)])
    };
    let (outer, inner) = (pick(true), pick(false));
    let size = g.dtype.size_bytes() as isize;
    let (from, to) = (Ptr::<u8>::of(g), Ptr::<u8>::of(to));
    call.threads.split(outer.numel, (16 * 1024 / inner.numel).max(1), |range| {
        let ([step_to, step_from], [run_to, run_from]) = (outer.inner(), inner.inner());
        outer.pieces(range, |_, [t, f], n| {
            inner.pieces(0..inner.numel, |_, [u, h], m| {
                // The longer dim is the inner loop. SAFETY: threads have different indices of separable dims, hence
                // different elements.
                unsafe {
                    if m == 1 {
                        return run(from.at((f + h) * size), step_from, to.at((t + u) * size), step_to, n);
                    }
                    for i in 0..n as isize {
                        let (t, f) = (t + u + i * step_to, f + h + i * step_from);
                        run(from.at(f * size), run_from, to.at(t * size), run_to, m);
                    }
                }
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::abi::Threads;
    use crate::kernel::host::walk::sample::*;

    #[test]
    fn sums_where_the_view_overlaps() {
        let mut dice = Dice(6);
        let threads = Threads::new(3);
        // (shape, strides, offset, size): transposed, unfold over two dims, expand, slice with a step, one element.
        let cases: [(&[usize], &[i64], i64, usize); 6] = [
            (&[4, 3], &[1, 4], 0, 12),
            (&[5, 3, 2, 3], &[9, 3, 3, 1], 0, 48),
            (&[6, 2], &[0, 1], 1, 4),
            (&[3, 2], &[8, 2], 1, 24),
            (&[1000, 30, 4], &[33, 1, 1], 0, 33000),
            (&[], &[], 2, 3),
        ];
        for (shape, strides, offset, size) in cases {
            let numbers = values(shape.iter().product(), &mut dice);
            for dtype in [DType::F32, DType::F64, DType::I16] {
                let g = Owned::strided_from(dtype, shape, &numbers, &mut dice);
                let y = Owned::dense(dtype, &[size]);
                assert_eq!(call_on(&threads, strided_add, &[&g], &[&y], &[dims(strides), Attr::Int(offset)]), None);
                let mut expected = vec![0.0; size];
                for (i, &v) in numbers.iter().enumerate() {
                    let at: i64 = coords(i, shape).iter().zip(strides).map(|(&c, &s)| c as i64 * s).sum();
                    expected[(offset + at) as usize] += v;
                }
                assert_eq!(y.get(), expected, "{shape:?} {strides:?}");
            }
        }
    }
}

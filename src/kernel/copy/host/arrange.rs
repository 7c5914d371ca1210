//! Rearrangements that are strided copies: concatenation, repetition, flips, rolls, tril and triu, diagonals.
//!
//! Each is expressed by views and left to `copy_view`; only tril and triu have a loop of their own.

use super::{copy_bytes, copy_view, expanded, scalar_bytes, zero};
use crate::base::dtype::Scalar;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::host::element::by_size;
use crate::kernel::host::staging::Shared;
use crate::kernel::host::walk::{Ptr, StridedIter, dim, flag, int, ints, narrow, reversed, scalar, shifted};

/// Concatenates tensors. Inputs: n tensors whose sizes agree except in `dim` (an input of shape `[0]` is skipped, as in
/// PyTorch); outputs `[y]`, to whose dtype each is converted. Attrs `[dim]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cat(call: &Call<'_>) {
    let (y, d) = (&call.outputs[0], dim(call, 0));
    let mut start = 0;
    for x in call.inputs.iter().filter(|x| x.numel() > 0) {
        // SAFETY: the windows are disjoint parts of the output.
        unsafe { copy_view(x, &narrow(y, d, start, x.shape[d]), call.threads) };
        start += x.shape[d];
    }
}

/// Tiles `x`, as `torch.Tensor.repeat`. Inputs `[x]`; outputs `[y]` with `y.shape = repeats * x.shape` (`x` padded with
/// leading sizes of 1), same dtype. Attrs `[repeats]`, one a dim of `y`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn repeat(call: &Call<'_>) {
    let (x, y, repeats) = (&call.inputs[0], &call.outputs[0], ints(call, 0));
    if y.numel() == 0 {
        return;
    }
    let missing = y.shape.len() - x.shape.len();
    let (mut from, mut to) = (blank(x), blank(y));
    for (d, &times) in repeats.iter().enumerate() {
        let (size, stride) = if d < missing { (1, 0) } else { (x.shape[d - missing], x.strides[d - missing]) };
        from.shape.extend([times.max(0) as usize, size]);
        from.strides.extend([0, stride]);
        to.strides.extend([y.strides[d] * size as isize, y.strides[d]]);
    }
    to.shape = from.shape.clone();
    // SAFETY: the same elements of the output under a longer shape; the input is read again and again.
    unsafe { copy_view(&from, &to, call.threads) }
}

/// Repeats each element `count` times in a row along `dim`. Inputs `[x]`; outputs `[y]`, `y.shape[dim]` being
/// `count * x.shape[dim]`. Attrs `[dim, count]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn repeat_interleave(call: &Call<'_>) {
    let (x, y, d, count) = (&call.inputs[0], &call.outputs[0], dim(call, 0), dim(call, 1));
    if d + 1 == x.shape.len() && count > 1 && x.is_contiguous() && y.is_contiguous() {
        // SAFETY: `HostFn`: the views are valid; they are contiguous.
        return by_size!(x.dtype, T => unsafe { repeat_elements::<T>(x.slice(), y.slice_mut(), count, call) });
    }
    let (mut from, mut to) = (x.clone(), y.clone());
    to.shape = x.shape.clone();
    to.strides[d] *= count as isize;
    for (view, stride) in [(&mut from, 0), (&mut to, y.strides[d])] {
        view.shape.insert(d + 1, count);
        view.strides.insert(d + 1, stride);
    }
    // SAFETY: the same elements of the output under a longer shape.
    unsafe { copy_view(&from, &to, call.threads) }
}

fn repeat_elements<T: Copy + Send + Sync>(from: &[T], to: &mut [T], count: usize, call: &Call<'_>) {
    let to = Shared::new(to);
    call.threads.split(from.len(), (16 * 1024 / count).max(1), |range| {
        // SAFETY: each element has its own part of the output.
        let to = unsafe { to.range(range.start * count..range.end * count) };
        let from = &from[range];
        // Small counts that the compiler knows make vectors.
        match count {
            2 => repeat_all::<T, 2>(from, to),
            3 => repeat_all::<T, 3>(from, to),
            4 => repeat_all::<T, 4>(from, to),
            8 => repeat_all::<T, 8>(from, to),
            _ => from.iter().zip(to.chunks_exact_mut(count)).for_each(|(&x, to)| to.fill(x)),
        }
    });
}

fn repeat_all<T: Copy, const N: usize>(from: &[T], to: &mut [T]) {
    from.iter().zip(to.as_chunks_mut::<N>().0).for_each(|(&x, to)| *to = [x; N]);
}

/// Views of what `fill_diagonal` writes: the elements whose coordinates are equal, and with `wraps` those of further diagonals
/// that begin a row below the last one's end.
pub fn diagonals(y: &RawView, wraps: bool) -> Vec<RawView> {
    let step = y.strides.iter().sum();
    let line = |first: usize, len: usize| RawView {
        strides: [step].into_iter().collect(),
        ..shifted(y, first as isize * y.strides[0], [len].into_iter().collect(), y.strides.clone())
    };
    let least = y.shape.iter().copied().min().unwrap_or(0);
    let (rows, columns) = (y.shape[0], y.shape[y.shape.len() - 1]);
    if !wraps || y.shape.len() != 2 || rows <= columns + 1 || columns == 0 {
        return vec![line(0, least)];
    }
    // As many whole ones as there are, in one view, and the rest.
    let whole = rows / (columns + 1);
    let down = y.strides[0] * (columns + 1) as isize;
    let block = RawView {
        shape: [whole, columns].into_iter().collect(),
        strides: [down, step].into_iter().collect(),
        ..line(0, 0)
    };
    let left = rows - whole * (columns + 1);
    vec![block, line(whole * (columns + 1), left.min(columns))]
}

/// `y = x` with a number on the diagonal. Inputs `[x]` of 2 dims and more; outputs `[y]` like `x`, which may be `x`. Attrs
/// `[wrap, value]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn fill_diagonal(call: &Call<'_>) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    // SAFETY: the views are valid; a value on our stack lives until the call ends.
    unsafe {
        if x.ptr != y.ptr {
            copy_view(x, y, call.threads);
        }
        let mut bytes = scalar_bytes(scalar(call, 1).unwrap_or(Scalar::Int(0)), y.dtype);
        let value = RawView { ptr: bytes.as_mut_ptr(), ..blank(y) };
        for diagonal in diagonals(y, flag(call, 0)) {
            copy_view(&expanded(&value, &diagonal.shape), &diagonal, call.threads);
        }
    }
}

fn blank(view: &RawView) -> RawView {
    shifted(view, 0, Default::default(), Default::default())
}

/// Reverses dims. Inputs `[x]`, outputs `[y]` of the same shape and dtype. Attrs `[dims]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn flip(call: &Call<'_>) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    if y.numel() > 0 {
        let from = ints(call, 0).iter().fold(x.clone(), |view, &d| reversed(&view, d as usize));
        // SAFETY: the reversed view names the same elements.
        unsafe { copy_view(&from, y, call.threads) }
    }
}

/// Moves elements along dims, around the end. Inputs `[x]`, outputs `[y]` of the same shape and dtype. Attrs `[shifts,
/// dims]`, equally long, dims named at most once. `roll` without dims is called with the flattened tensor.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn roll(call: &Call<'_>) {
    let (x, y, shifts, dims) = (&call.inputs[0], &call.outputs[0], ints(call, 0), ints(call, 1));
    if y.numel() == 0 {
        return;
    }
    let mut pairs = vec![(x.clone(), y.clone())];
    for (&shift, &d) in shifts.iter().zip(dims) {
        let d = d as usize;
        let size = y.shape[d];
        let shift = shift.rem_euclid(size as i64) as usize;
        if shift > 0 {
            let halves = |(x, y): (RawView, RawView)| {
                let head = size - shift;
                [
                    (narrow(&x, d, 0, head), narrow(&y, d, shift, head)),
                    (narrow(&x, d, head, shift), narrow(&y, d, 0, shift)),
                ]
            };
            pairs = pairs.into_iter().flat_map(halves).collect();
        }
    }
    for (from, to) in pairs {
        // SAFETY: the windows are disjoint parts of the output.
        unsafe { copy_view(&from, &to, call.threads) };
    }
}

/// Keeps the elements on and below a diagonal, zero elsewhere. Inputs `[x]` of shape `[.., r, c]`, outputs `[y]` of the
/// same shape and dtype. Attrs `[diagonal]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn tril(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared. Row r keeps columns up to r + diagonal.
    unsafe { triangle(call, |row, diagonal, cols| (0, (row + diagonal + 1).clamp(0, cols))) }
}

/// Keeps the elements on and above a diagonal, zero elsewhere; arguments as [`tril`].
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn triu(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared. Row r keeps columns from r + diagonal
    // on.
    unsafe { triangle(call, |row, diagonal, cols| ((row + diagonal).clamp(0, cols), cols)) }
}

/// `column_range(row, diagonal, columns)` is the half-open range of columns that are copied.
unsafe fn triangle(call: &Call<'_>, column_range: impl Fn(i64, i64, i64) -> (i64, i64) + Sync) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    // A diagonal outside of the matrix gives the same as one at its edge; the clamp prevents overflow of the sums.
    let diagonal = int(call, 0).clamp(i32::MIN as i64, i32::MAX as i64);
    let Some(last) = y.shape.len().checked_sub(1).filter(|_| y.numel() > 0) else { return };
    let cols = y.shape[last];
    let rows = if last == 0 { 1 } else { y.shape[last - 1] };
    let outer = StridedIter::<2>::new(&y.shape[..last], [&y.strides[..last], &x.strides[..last]]);
    let (step_to, step_from) = (y.strides[last], x.strides[last]);
    by_size!(y.dtype, T => {
        let (from, to) = (Ptr::<T>::of(x), Ptr::<T>::of(y));
        call.threads.split(outer.numel, (16 * 1024 / cols).max(1), |range| {
            for line in range {
                let [t, f] = outer.offsets(line);
                let (start, end) = column_range((line % rows) as i64, diagonal, cols as i64);
                // SAFETY: one line of the output, of which no other thread has a part.
                unsafe {
                    if (step_to, step_from) == (1, 1) {
                        let to = std::slice::from_raw_parts_mut(to.at(t), cols);
                        let (start, end) = (start as usize, (end.max(start)) as usize);
                        to[..start].fill(0);
                        let size = size_of_val(&to[..end - start]);
                        copy_bytes(from.at(f + start as isize).cast(), to[start..].as_mut_ptr().cast(), size);
                        to[end..].fill(0);
                    } else {
                        for i in 0..cols as isize {
                            let inside = (start as isize..end as isize).contains(&i);
                            *to.at(t + i * step_to) = if inside { *from.at(f + i * step_from) } else { 0 };
                        }
                    }
                }
            }
        });
    });
}

/// Puts the last dim of `x` on a diagonal of two new dims, zero elsewhere, as `torch.diag_embed`. Inputs `[x]` of shape
/// `[.., n]`; outputs `[y]`, where `dim1` and `dim2` have size `n + |offset|` and the others are those of `x` without
/// its last, in order. Attrs `[offset, dim1, dim2]`. Its gradient is a view: `diagonal(offset, dim1, dim2)`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn diag_embed(call: &Call<'_>) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let (offset, dim1, dim2) = (int(call, 0), dim(call, 1), dim(call, 2));
    // SAFETY: `call` is one of `HostFn`: the output is valid, and nobody else touches it.
    unsafe { zero(y, call.threads) };
    let start = if offset >= 0 { offset as isize * y.strides[dim2] } else { -offset as isize * y.strides[dim1] };
    let mut strides: crate::base::layout::Strides =
        (0..y.shape.len()).filter(|&d| d != dim1 && d != dim2).map(|d| y.strides[d]).collect();
    strides.push(y.strides[dim1] + y.strides[dim2]);
    // SAFETY: the diagonal lies inside the output.
    unsafe { copy_view(x, &shifted(y, start, x.shape.clone(), strides), call.threads) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, coords, dims, flat, values};

    #[test]
    fn cat_converts_and_skips_the_empty() {
        let mut dice = Dice(3);
        let a = Owned::strided_from(DType::F32, &[2, 2], &[1., 2., 3., 4.], &mut dice);
        let empty = Owned::dense(DType::F32, &[0]);
        let b = Owned::strided_from(DType::I64, &[2, 1], &[5., 6.], &mut dice);
        let y = Owned::strided(DType::F64, &[2, 3], &mut dice);
        sample::call(cat, &[&a, &empty, &b], &[&y], &[Attr::Int(1)]);
        assert_eq!(y.get(), [1., 2., 5., 3., 4., 6.]);
    }

    #[test]
    fn moves_agree_with_index_arithmetic() {
        let mut dice = Dice(4);
        let shape = [3, 4, 5];
        let numbers: Vec<f64> = (0..60).map(f64::from).collect();
        for dtype in [DType::U8, DType::BF16, DType::F32, DType::I64] {
            let x = Owned::strided_from(dtype, &shape, &numbers, &mut dice);
            let y = Owned::strided(dtype, &shape, &mut dice);
            let check = |what: &str, source: &dyn Fn(&[usize]) -> Vec<usize>| {
                let expected: Vec<f64> = (0..60).map(|i| numbers[flat(&source(&coords(i, &shape)), &shape)]).collect();
                assert_eq!(y.get(), expected, "{what} {dtype}");
            };
            sample::call(flip, &[&x], &[&y], &[dims(&[0, 2])]);
            check("flip", &|c| vec![2 - c[0], c[1], 4 - c[2]]);
            sample::call(roll, &[&x], &[&y], &[dims(&[-1, 7]), dims(&[1, 2])]);
            check("roll", &|c| vec![c[0], (c[1] + 1) % 4, (c[2] + 3) % 5]);
            let y = Owned::strided(dtype, &[2, 6, 4, 10], &mut dice);
            sample::call(repeat, &[&x], &[&y], &[dims(&[2, 2, 1, 2])]);
            let expected: Vec<f64> = (0..480)
                .map(|i| coords(i, &[2, 6, 4, 10]))
                .map(|c| numbers[flat(&[c[1] % 3, c[2], c[3] % 5], &shape)])
                .collect();
            assert_eq!(y.get(), expected, "repeat");
            let y = Owned::strided(dtype, &[3, 12, 5], &mut dice);
            sample::call(repeat_interleave, &[&x], &[&y], &[Attr::Int(1), Attr::Int(3)]);
            let expected: Vec<f64> = (0..180)
                .map(|i| coords(i, &[3, 12, 5]))
                .map(|c| numbers[flat(&[c[0], c[1] / 3, c[2]], &shape)])
                .collect();
            assert_eq!(y.get(), expected, "repeat_interleave");
        }
    }

    #[test]
    fn triangles_and_diagonals() {
        let mut dice = Dice(5);
        for diagonal in [-9i64, -2, -1, 0, 1, 3, 9, i64::MAX, i64::MIN] {
            for (lower, kernel) in [(true, tril as crate::kernel::abi::HostFn), (false, triu)] {
                let numbers = values(2 * 3 * 4, &mut dice);
                for dense in [true, false] {
                    let x = Owned::strided_from(DType::F32, &[2, 3, 4], &numbers, &mut dice);
                    let y = if dense {
                        Owned::dense(DType::F32, &[2, 3, 4])
                    } else {
                        Owned::strided(DType::F32, &[2, 3, 4], &mut dice)
                    };
                    let x = if dense { Owned::from(DType::F32, &[2, 3, 4], &x.get()) } else { x };
                    sample::call(kernel, &[&x], &[&y], &[Attr::Int(diagonal)]);
                    let keep = |c: &[usize]| {
                        let distance = c[2] as i128 - c[1] as i128;
                        if lower { distance <= diagonal as i128 } else { distance >= diagonal as i128 }
                    };
                    let expected: Vec<f64> =
                        (0..24).map(|i| if keep(&coords(i, &[2, 3, 4])) { numbers[i] } else { 0.0 }).collect();
                    assert_eq!(y.get(), expected, "{diagonal} {lower}");
                }
            }
        }
        let x = Owned::from(DType::I32, &[2, 2], &[1., 2., 3., 4.]);
        let y = Owned::strided(DType::I32, &[3, 2, 3], &mut dice);
        sample::call(diag_embed, &[&x], &[&y], &[Attr::Int(-1), Attr::Int(0), Attr::Int(2)]);
        // torch.diag_embed(tensor([[1, 2], [3, 4]]), -1, 0, 2)
        assert_eq!(y.get(), [0., 0., 0., 0., 0., 0., 1., 0., 0., 3., 0., 0., 0., 2., 0., 0., 4., 0.]);
    }
}

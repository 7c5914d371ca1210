//! Sums of rows of a table by bags.

use super::{AHEAD, Bounded, prefetch};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, FaultKind};
use crate::kernel::guard;
use crate::kernel::host::element::{Element, by_category};
use crate::kernel::host::simd;
use crate::kernel::host::walk::{Ptr, int};

/// Adds `n` elements of a row to sums. Vectorized.
type AddRow = unsafe fn(row: *const f32, sums: *mut f64, n: usize);

fn add_row() -> AddRow {
    const ALL: [AddRow; 3] = simd::levels!(<S> fn(row: *const f32, sums: *mut f64, n: usize) {
        for column in 0..n {
            *sums.add(column) += *row.add(column) as f64;
        }
    });
    ALL[simd::level()]
}

/// Additions of a piece of work.
const GRAIN: usize = 16 * 1024;

/// Inputs `[table, numbers]`, table `[v, d]` of floats, numbers `[bags, n]`; outputs `[y]` `[bags, d]`: the sums of the rows that a
/// bag's numbers name, over the attribute `[divisor]`, rounded once. A bad number is an `Index` fault of dim 0 and adds nothing.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn embedding_bag(call: &Call<'_>) {
    let (table, numbers, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let ([bags, n], d, divisor) = ([numbers.shape[0], numbers.shape[1]], table.shape[1], int(call, 0) as f64);
    let kind = FaultKind::Index { dim: 0 };
    let bounded = Bounded { index: numbers, size: table.shape[0], kind, wraps: false, faults: call.faults };
    by_category!(table.dtype, T => bool: unreachable!("floats"), int: unreachable!("floats"), float: {
        let (from, to) = (Ptr::<T>::of(table), Ptr::<T>::of(y));
        call.threads.split(bags, (GRAIN / (n * d).max(1)).max(1), |range| {
            let (mut sums, mut rows) = (guard::filled(d, 0f64), guard::filled(n, 0i64));
            for bag in range {
                sums.fill(0.0);
                // SAFETY: good numbers name rows of the table; each row of `y` is written once.
                unsafe {
                    bounded.read((bag as isize * numbers.strides[0], numbers.strides[1]), &mut rows, |k| bag * n + k);
                    for (k, &row) in rows.iter().enumerate().filter(|(_, row)| **row >= 0) {
                        let first = from.at(row as isize * table.strides[0]);
                        if let Some(&ahead) = rows.get(k + AHEAD).filter(|ahead| **ahead >= 0) {
                            prefetch(from.at(ahead as isize * table.strides[0]).cast(), d * size_of::<T>());
                        }
                        if table.strides[1] == 1 && T::DTYPE == DType::F32 {
                            add_row()(first.cast(), sums.as_mut_ptr(), d);
                            continue;
                        }
                        if table.strides[1] == 1 {
                            let row = std::slice::from_raw_parts(first, d);
                            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.to_f64());
                            continue;
                        }
                        for (column, sum) in sums.iter_mut().enumerate() {
                            *sum += (*first.wrapping_offset(column as isize * table.strides[1])).to_f64();
                        }
                    }
                    for (column, sum) in sums.iter().enumerate() {
                        *to.at(bag as isize * y.strides[0] + column as isize * y.strides[1]) = T::from_f64(sum / divisor);
                    }
                }
            }
        });
    })
}

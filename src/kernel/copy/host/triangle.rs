//! Rows and columns of the elements of a triangle of a matrix.

use crate::kernel::abi::Call;
use crate::kernel::host::attributes;
use crate::kernel::host::staging::Shared;

/// Rows of a matrix, the first of `first` elements and each of one more, up to `columns`; or the same counted from the last row
/// and element back.
#[derive(Clone, Copy)]
pub struct Triangle {
    /// Elements in all.
    pub n: i64,
    /// The row that is counted from.
    pub start: i64,
    pub first: i64,
    pub columns: i64,
    pub is_reversed: bool,
}

impl Triangle {
    pub fn of(call: &Call<'_>) -> Triangle {
        Triangle {
            n: call.outputs[0].shape[1] as i64,
            start: attributes::int(call, 0),
            first: attributes::int(call, 1),
            columns: attributes::int(call, 2),
            is_reversed: attributes::flag(call, 3),
        }
    }

    /// Elements before a row, of those that grow.
    fn before(&self, row: i64) -> i64 {
        row * self.first + row * (row - 1) / 2
    }

    /// Elements of rows before the first that is as long as the longest. (There may be fewer in all.)
    pub fn slope(&self) -> i64 {
        let rows = (self.columns - self.first) as i128;
        let before = rows * self.first as i128 + rows * (rows - 1) / 2;
        before.min(self.n as i128) as i64
    }

    /// The row and column of an element, counted as the triangle is.
    fn place(&self, at: i64) -> (i64, i64) {
        let slope = self.slope();
        if at >= slope {
            let left = at - slope;
            return (left / self.columns + self.columns - self.first, left % self.columns);
        }
        // The root is put right where it was rounded.
        let b = 2.0 * self.first as f64 - 1.0;
        let mut row = (((b * b + 8.0 * at as f64).sqrt() - b) / 2.0) as i64;
        while row > 0 && self.before(row) > at {
            row -= 1;
        }
        while self.before(row + 1) <= at {
            row += 1;
        }
        (row, at - self.before(row))
    }

    /// Writes the places of some elements, which follow `from`.
    fn fill(&self, from: i64, rows: &mut [i64], columns: &mut [i64]) {
        let len = rows.len() as i64;
        let at = if self.is_reversed { self.n - from - len } else { from };
        let (mut row, mut column) = self.place(at);
        for step in 0..len {
            let to = if self.is_reversed { len - 1 - step } else { step } as usize;
            let (r, c) = if self.is_reversed { (-row, self.columns - 1 - column) } else { (row, column) };
            (rows[to], columns[to]) = (self.start + r, c);
            column += 1;
            if column == (self.first + row).min(self.columns) {
                (row, column) = (row + 1, 0);
            }
        }
    }
}

/// Rows, then columns of the elements of a triangle, in order. Output: i64 `[2, n]`. Attributes: `start`, `first`, `columns` (Int)
/// and `is_reversed` (Bool) of the triangle; 1 <= first <= columns.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn triangle_indices(call: &Call<'_>) {
    let triangle = Triangle::of(call);
    let n = triangle.n as usize;
    // SAFETY: `HostFn`: the output is valid for writing, i64, new and thus contiguous, and nobody else touches it.
    let out = Shared::new(unsafe { call.outputs[0].slice_mut::<i64>() });
    call.threads.split(n, 16 * 1024, |range| {
        // SAFETY: ranges of both halves that no other thread has.
        let (rows, columns) = unsafe { (out.range(range.clone()), out.range(n + range.start..n + range.end)) };
        triangle.fill(range.start as i64, rows, columns);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_walk() {
        for (first, columns, rows) in [(1, 1, 5), (1, 7, 4), (1, 7, 7), (3, 7, 20), (7, 7, 3), (2, 900, 1200)] {
            let expected: Vec<(i64, i64)> =
                (0..rows).flat_map(|row| (0..(first + row).min(columns)).map(move |column| (row, column))).collect();
            let n = expected.len() as i64;
            let triangle = Triangle { n, start: 0, first, columns, is_reversed: false };
            assert!(
                expected.iter().enumerate().all(|(at, place)| triangle.place(at as i64) == *place),
                "{first} {columns}"
            );
            let back = Triangle { start: rows - 1, is_reversed: true, ..triangle };
            let (mut r, mut c) = (vec![0; n as usize], vec![0; n as usize]);
            back.fill(0, &mut r[..2], &mut c[..2]);
            back.fill(2, &mut r[2..], &mut c[2..]);
            let mirrored = expected.iter().rev().map(|&(row, column)| (rows - 1 - row, columns - 1 - column));
            assert!(r.into_iter().zip(c).eq(mirrored));
        }
    }

    #[test]
    fn large_places_are_exact() {
        let triangle = Triangle { n: 1 << 52, start: 0, first: 1, columns: 1 << 40, is_reversed: false };
        for row in [1i64, 1000, 65_535, 65_536, 94_906_265] {
            assert_eq!(triangle.place(triangle.before(row)), (row, 0));
            assert_eq!(triangle.place(triangle.before(row) - 1), (row - 1, row - 1));
        }
    }
}

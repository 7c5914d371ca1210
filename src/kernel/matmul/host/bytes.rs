//! Products of bytes with sign, added up in 32 bits: what quantized layers compute.

use crate::kernel::abi::Call;
use crate::kernel::guard;
use crate::kernel::host::staging::Shared;

/// Rows of the second factor that are read for one row of the first: they stay in the cache.
const BLOCK: usize = 16;

/// `c[i][j] = Σ a[i][l] b[j][l]`. Inputs `[a, b]`, i8 of shapes `[m, k]` and `[n, k]`, contiguous; outputs `[c]`, i32 of
/// shape `[m, n]`, contiguous. Wraps on overflow, which takes `k` above 131071.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn int_mm(call: &Call<'_>) {
    let (a, b, c) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let (m, k, n) = (a.shape[0], a.shape[1], b.shape[0]);
    // SAFETY: `call` is one of `HostFn`, and the views are contiguous (this function's contract).
    let (a, b, c) = unsafe { (a.slice::<i8>(), b.slice::<i8>(), Shared::new(c.slice_mut::<i32>())) };
    let grain = (256 * 1024 / m.saturating_mul(k).saturating_mul(BLOCK).max(1)).max(1);
    call.threads.split(n.div_ceil(BLOCK), grain, |blocks| {
        for block in blocks {
            let columns = block * BLOCK..n.min((block + 1) * BLOCK);
            for i in 0..m {
                guard::check_every(i, 256);
                let row = &a[i * k..][..k];
                for j in columns.clone() {
                    // SAFETY: `i` and `j` are inside `c`, and no other block has these columns.
                    unsafe { *c.at(i * n + j) = dot(row, &b[j * k..][..k]) };
                }
            }
        }
    });
}

#[inline(always)]
fn dot_of(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).fold(0i32, |sum, (&x, &y)| sum.wrapping_add(i32::from(i16::from(x) * i16::from(y))))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(a: &[i8], b: &[i8]) -> i32 {
    dot_of(a, b)
}

#[inline]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if crate::kernel::host::simd::has_avx2() {
        // SAFETY: the machine has AVX2.
        return unsafe { dot_avx2(a, b) };
    }
    dot_of(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::host::walk::sample::{self, Owned};

    #[test]
    fn products_of_bytes() {
        let (m, n, k) = (3, 37, 70);
        let value = |i: usize| ((i * 37) % 256) as f64 - 128.0;
        let a: Vec<f64> = (0..m * k).map(value).collect();
        let b: Vec<f64> = (0..n * k).map(|i| value(i * 3 + 1)).collect();
        let (x, w) = (Owned::from(DType::I8, &[m, k], &a), Owned::from(DType::I8, &[n, k], &b));
        let y = Owned::dense(DType::I32, &[m, n]);
        sample::call(int_mm, &[&x, &w], &[&y], &[]);
        for i in 0..m {
            for j in 0..n {
                let expected: f64 = (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum();
                assert_eq!(y.get()[i * n + j], expected);
            }
        }
    }
}

//! Hand-written kernels beside their host twins: decompositions and linear systems.

use super::fused::Memory;
use super::kernels::{View, check, on_device, strides};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::base::layout::contiguous_strides;
use tscript::internals::kernel::linalg as k;

const FLOATS: [(DType, f64); 3] = [(DType::F64, 1e-11), (DType::F32, 1e-4), (DType::BF16, 3e-2)];

/// Numbers between -4.5 and 4.5 without a pattern, of which matrices would be nearly singular.
fn noise(i: usize) -> f64 {
    let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 9.0
}

/// Matrices with a heavy diagonal, so that rounding stays rounding; `lead` of them, n by n.
fn heavy(dtype: DType, lead: &[usize], n: usize, turned: bool) -> Memory {
    let shape: Vec<usize> = lead.iter().copied().chain([n, n]).collect();
    let mut steps = contiguous_strides(&shape).to_vec();
    if turned {
        steps.swap(lead.len(), lead.len() + 1);
    }
    // The heavy element of a row is not on its diagonal: pivots are far away.
    let value = |i: usize| {
        let (r, c) = (i / n.max(1) % n.max(1), i % n.max(1));
        noise(i * 7) * 0.2 + if (r * 7 + 3) % n.max(1) == c { n as f64 } else { 0.0 }
    };
    Memory::new(dtype, &shape, &steps, value)
}

/// Positive-definite matrices, but for the diagonal element `bad`.
fn definite(dtype: DType, count: usize, n: usize, bad: Option<(usize, usize)>) -> Memory {
    let value = |i: usize| {
        let (matrix, r, c) = (i / (n * n).max(1), i / n.max(1) % n.max(1), i % n.max(1));
        let symmetric = noise((r.min(c) * 131 + r.max(c)) * 3 + matrix) * 0.2;
        // What is above the diagonal is not read.
        let unread = if c > r { 100.0 } else { symmetric };
        if r != c {
            unread
        } else if bad == Some((matrix, r)) {
            -1.0
        } else {
            n as f64 + 1.0 + symmetric
        }
    };
    Memory::new(dtype, &[count, n, n], &[(n * n) as isize, n as isize, 1], value)
}

/// Sizes on both sides of a panel, of a tile, and of a warp's rows; what is converted before and after needs only some.
fn some(dtype: DType) -> impl Iterator<Item = usize> {
    [0, 1, 2, 5, 31, 32, 33, 64, 150].into_iter().filter(move |&n| dtype != DType::BF16 || n < 40)
}

#[test]
fn cholesky() {
    for (dtype, close) in FLOATS {
        for n in some(dtype) {
            let shape: &[usize] = &[2, n, n];
            let turned = [(n * n) as isize, 1, n as isize];
            let info = (DType::I32, &[2][..], None);
            for bad in [None, Some((1, n / 2)), Some((0, n.saturating_sub(1)))] {
                for (upper, to) in [(false, None), (true, None), (false, Some(&turned[..])), (true, Some(&turned))] {
                    let a = || {
                        let mut a = definite(dtype, 2, n, bad.filter(|_| n > 0));
                        if upper {
                            a.view.strides.swap(1, 2);
                        }
                        [a]
                    };
                    check(&k::CHOLESKY, &a(), &[(dtype, shape, to)], &[Attr::Bool(upper)], close);
                    check(&k::CHOLESKY, &a(), &[(dtype, shape, to), info], &[Attr::Bool(upper)], close);
                }
            }
        }
        let a = Memory::new(dtype, &[3, 3], &[3, 1], |i| if i == 4 { f64::NAN } else { (i % 4 == 0) as u8 as f64 });
        check(&k::CHOLESKY, &[a], &[(dtype, &[3, 3], None)], &[Attr::Bool(false)], 0.0);
    }
}

#[test]
fn triangular_systems_from_both_sides() {
    for (dtype, close) in FLOATS {
        for (n, sides) in [(1, 3), (5, 0), (0, 4), (31, 1), (33, 40), (70, 129), (150, 2), (300, 5)] {
            for choice in 0..16 {
                let [upper, left, unit, turned] = [0, 1, 2, 3].map(|bit| choice >> bit & 1 == 1);
                // Both triangles have a heavy diagonal; a unit one must not grow.
                let steps: [isize; 3] = [(n * n) as isize, n as isize, 1];
                let scale = if unit { 0.01 } else { 0.3 };
                let mut a = Memory::new(dtype, &[2, n, n], &steps, |i| {
                    let diagonal = i / n.max(1) % n.max(1) == i % n.max(1);
                    noise(i * 7) * scale + if diagonal { n as f64 } else { 0.0 }
                });
                let shape = if left { [2, n, sides] } else { [2, sides, n] };
                let b = Memory::new(dtype, &shape, &contiguous_strides(&shape), |i| noise(i * 5));
                if turned {
                    a.view.strides.swap(1, 2);
                }
                let attrs = [upper, left, unit].map(Attr::Bool);
                check(&k::TRIANGULAR_SOLVE, &[a, b], &[(dtype, &shape, None)], &attrs, close);
            }
        }
    }
    // Batches without one stride, and broadcast ones.
    let a =
        || Memory::new(DType::F64, &[2, 3, 4, 4], &[16, 0, 4, 1], |i| noise(i) + if i % 5 == 0 { 9.0 } else { 0.0 });
    let b = || Memory::new(DType::F64, &[2, 3, 4, 2], &[2, 4, 12, 1], noise);
    let out: [View; 1] = [(DType::F64, &[2, 3, 4, 2], Some(&[24, 8, 1, 4]))];
    check(&k::TRIANGULAR_SOLVE, &[a(), b()], &out, &[Attr::Bool(false), Attr::Bool(true), Attr::Bool(false)], 1e-12);
}

#[test]
fn systems_inverses_and_determinants() {
    for (dtype, close) in FLOATS {
        for n in some(dtype) {
            for turned in [false, true] {
                let a = || heavy(dtype, &[2, 1], n, turned);
                let (shape, info): (&[usize], View) = (&[2, 1, n, n], (DType::I32, &[2, 1], None));
                for sides in if n == 150 { [1, 70] } else { [1, 3] } {
                    let to = [2, 1, n, sides];
                    let b = || Memory::new(dtype, &to, &contiguous_strides(&to), |i| noise(i * 5));
                    check(&k::SOLVE, &[a(), b()], &[(dtype, &to, None)], &[], close);
                    check(&k::SOLVE, &[a(), b()], &[(dtype, &to, None), info], &[], close);
                }
                check(&k::INV, &[a()], &[(dtype, shape, None)], &[], close);
                check(&k::INV, &[a()], &[(dtype, shape, None), info], &[], close);
                if n < 40 {
                    check(&k::DET, &[a()], &[(dtype, &[2, 1], None)], &[], close * 10.0);
                }
                check(&k::SLOGDET, &[a()], &[(dtype, &[2, 1], None), (dtype, &[2, 1], None)], &[], close);
            }
        }
    }
    // The second of three has no third pivot, the last none at all.
    let values = [1., 0., 0., 0., 1., 0., 0., 0., 1., 1., 2., 3., 2., 4., 6., 1., 0., 1.];
    for dtype in [DType::F32, DType::F64] {
        let a = || Memory::new(dtype, &[3, 3, 3], &[9, 3, 1], |i| values.get(i).copied().unwrap_or(0.0));
        check(&k::INV, &[a()], &[(dtype, &[3, 3, 3], None)], &[], 0.0);
        check(&k::INV, &[a()], &[(dtype, &[3, 3, 3], None), (DType::I32, &[3], None)], &[], 0.0);
        check(&k::DET, &[a()], &[(dtype, &[3], None)], &[], 0.0);
        check(&k::SLOGDET, &[a()], &[(dtype, &[3], None), (dtype, &[3], None)], &[], 1e-6);
    }
}

#[test]
fn factors_with_their_permutation() {
    for (dtype, close) in FLOATS {
        for (m, n) in [(0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (40, 40), (33, 70), (70, 33), (150, 40), (1100, 2)] {
            let least = m.min(n);
            let (p, l, u) = ([2, m, m], [2, m, least], [2, least, n]);
            let out: [View; 3] = [(dtype, &p, None), (dtype, &l, None), (dtype, &u, None)];
            let shape = [2, m, n];
            let heavy = |i: usize| {
                let (r, c) = (i / n.max(1) % m.max(1), i % n.max(1));
                noise(i * 7) * 0.2 + if (r * 13 + 2) % m.max(1) == c { m as f64 } else { 0.0 }
            };
            check(&k::LU, &[Memory::new(dtype, &shape, &strides(&shape, None), heavy)], &out, &[], close);
            // Equal candidates: the upper row is taken. Whole numbers, so that nothing is rounded.
            let equal = |i: usize| if (i * 7919).is_multiple_of(3) { 1.0 } else { -1.0 };
            if least <= 4 {
                check(&k::LU, &[Memory::new(dtype, &shape, &strides(&shape, None), equal)], &out, &[], close);
            }
        }
    }
}

#[test]
fn reflections() {
    for (dtype, close) in FLOATS {
        for (m, n) in [(0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (5, 3), (3, 5), (32, 32), (40, 40), (33, 70), (150, 70)]
        {
            let (shape, least) = ([2, m, n], m.min(n));
            let (tau, close) = ([2, least], close * 4.0);
            let all = || Memory::new(dtype, &shape, &strides(&shape, None), noise);
            // Nothing to reflect, and a head of zero.
            let upper = || {
                let value = |i: usize| match (i / n.max(1) % m.max(1), i % n.max(1)) {
                    (r, c) if r > c && (r, c) != (2, 1) => 0.0,
                    (1, 1) => 0.0,
                    _ => noise(i),
                };
                Memory::new(dtype, &shape, &strides(&shape, None), value)
            };
            for given in [&all as &dyn Fn() -> Memory, &upper] {
                check(&k::GEQRF, &[given()], &[(dtype, &shape, None), (dtype, &tau, None)], &[], close);
                for complete in [false, true] {
                    let k = if complete { m } else { least };
                    let (q, r) = ([2, m, k], [2, k, n]);
                    let turned = [(m * k) as isize, 1, m as isize];
                    for to in [None, Some(&turned[..])].into_iter().skip(complete as usize) {
                        let out = [(dtype, &q[..], to), (dtype, &r[..], None)];
                        check(&k::QR, &[given()], &out, &[Attr::Bool(complete)], close);
                    }
                }
            }
        }
    }
}

#[test]
fn exponentials() {
    for (dtype, close) in FLOATS {
        for (n, scale) in [(0, 1.0), (1, 0.0), (2, 0.05), (3, 2.0), (30, 0.1), (65, 0.01)] {
            // The second matrix is larger than the first, and is squared more often.
            let x = |i: usize| noise(i) * if i >= n * n { scale * 3.0 } else { scale };
            let steps = [(n * n) as isize, 1, n as isize];
            for given in [None, Some(&steps[..])] {
                let x = Memory::new(dtype, &[2, n, n], &strides(&[2, n, n], given), x);
                check(&k::MATRIX_EXP, &[x], &[(dtype, &[2, n, n], None)], &[], close * 20.0);
            }
        }
    }
}

#[test]
fn singular_and_eigen_values() {
    for (dtype, close) in FLOATS {
        for (m, n) in [(0, 3), (1, 1), (1, 5), (5, 1), (3, 5), (40, 7), (33, 33), (64, 64)] {
            if dtype != DType::F64 && m > 40 {
                continue;
            }
            let (shape, least) = ([2, m, n], m.min(n));
            // Of full rank; nothing at all; of rank one; very large numbers; something infinite.
            let scale = if dtype == DType::F64 { 1e100 } else { 1e15 };
            for kind in if m < 20 || (dtype == DType::F64 && m < 60) { 0..5 } else { 0..1 } {
                let value = |i: usize| match (kind, i / (m * n).max(1)) {
                    (0, _) => noise(i),
                    (1, 0) => 0.0,
                    (1, _) => ((i / n.max(1)) % 5) as f64 + 1.0,
                    (2, _) => noise(i) * scale,
                    (3, 1) if i == m * n + 1 => f64::INFINITY,
                    (4, 1) if i == m * n => f64::NAN,
                    _ => noise(i) * 0.01,
                };
                let x = || Memory::new(dtype, &shape, &strides(&shape, None), value);
                check(&k::SVDVALS, &[x()], &[(dtype, &[2, least], None)], &[], close * 2.0);
                let (square, values) = ([2, n, n], [(dtype, &[2, n][..], None)]);
                for upper in [false, true] {
                    if n <= 64 && n > 0 && m > 1 {
                        let x = Memory::new(dtype, &square, &strides(&square, None), value);
                        check(&k::EIGVALSH, &[x], &values, &[Attr::Bool(upper)], close * 2.0);
                    }
                }
            }
        }
    }
}

/// Matrices of every rank: full; nothing at all and rank one; columns that are zero; far apart.
fn of_rank(kind: usize, m: usize, n: usize) -> impl Fn(usize) -> f64 {
    move |i| {
        let (second, r, c) = (i / (m * n).max(1), i / n.max(1) % m.max(1), i % n.max(1));
        match (kind, second) {
            (0, _) => noise(i),
            (1, 0) => 0.0,
            (1, _) => noise(r) * noise(c + 1000),
            (2, _) if (c + second) % 2 == 0 => 0.0,
            _ => noise(i) * if c == 0 { 1e6 } else { 1.0 },
        }
    }
}

/// The largest deviation of `a` by columns, `[m, k]`, from orthonormal columns.
fn deviation(a: &[f64], m: usize, k: usize) -> f64 {
    let product = |i: usize, j: usize| (0..m).map(|r| a[r * k + i] * a[r * k + j]).sum::<f64>();
    let pairs = (0..k).flat_map(|i| (0..k).map(move |j| (i, j)));
    pairs.map(|(i, j)| (product(i, j) - (i == j) as u8 as f64).abs()).fold(0.0, f64::max)
}

#[test]
fn singular_vectors_are_orthonormal_and_give_the_matrix() {
    for (dtype, close) in [(DType::F64, 1e-12), (DType::F32, 1e-4)] {
        for (m, n) in [(0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (3, 5), (40, 7), (33, 33), (64, 64), (7, 70)] {
            for (kind, full) in (0..4).flat_map(|kind| [(kind, false), (kind, true)]) {
                if m * n > 1000 && kind % 2 == 1 {
                    continue;
                }
                let (shape, k) = ([2, m, n], m.min(n));
                let (wide, tall) = if full { (m, n) } else { (k, k) };
                let x = Memory::new(dtype, &shape, &strides(&shape, None), of_rank(kind, m, n));
                let (u, vh, s) = ([2, m, wide], [2, tall, n], [2, k]);
                let out: [View; 3] = [(dtype, &u, None), (dtype, &s, None), (dtype, &vh, None)];
                let given = x.values();
                let Some(made) = on_device(&k::SVD, &[x], &out, &[Attr::Bool(full)]) else { return };
                let [u, s, vh] = [0, 1, 2].map(|at: usize| made[at].values());
                for b in 0..2 {
                    let part = |all: &[f64], size: usize| all[b * size..(b + 1) * size].to_vec();
                    let (u, s, vh) = (part(&u, m * wide), part(&s, k), part(&vh, tall * n));
                    let what = format!("{dtype:?} {m} by {n}, kind {kind}, full {full}, matrix {b}");
                    assert!(deviation(&u, m, wide) < close, "U of {what}");
                    let v: Vec<f64> = (0..n * tall).map(|i| vh[i % tall.max(1) * n + i / tall.max(1)]).collect();
                    assert!(deviation(&v, n, tall) < close, "V of {what}");
                    assert!(s.windows(2).all(|pair| pair[0] >= pair[1]), "order of {what}: {s:?}");
                    let largest = s.first().copied().unwrap_or(0.0).max(1.0);
                    for i in 0..m * n {
                        let (r, c) = (i / n, i % n);
                        let sum: f64 = (0..k).map(|j| u[r * wide + j] * s[j] * vh[j * n + c]).sum();
                        let off = (sum - given[b * m * n + i]).abs();
                        assert!(off < close * largest, "{what}: element {i} is off by {off}");
                    }
                }
            }
        }
    }
}

#[test]
fn pseudoinverses_and_least_squares() {
    for (dtype, close) in [(DType::F64, 1e-9), (DType::F32, 2e-3)] {
        for (m, n) in [(0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (3, 5), (40, 7), (20, 20)] {
            for kind in 0..3 {
                let rtol = if kind == 0 { Attr::None } else { Attr::Float(1e-3) };
                let shape = [2, m, n];
                let x = || Memory::new(dtype, &shape, &strides(&shape, None), of_rank(kind, m, n));
                check(&k::PINV, &[x()], &[(dtype, &[2, n, m], None)], std::slice::from_ref(&rtol), close);
                let b = Memory::new(dtype, &[2, m, 3], &strides(&[2, m, 3], None), |i| noise(i + 77));
                check(&k::LSTSQ, &[x(), b], &[(dtype, &[2, n, 3], None)], &[rtol], close);
            }
        }
    }
    // What is not finite is told, and gives zeros.
    let x = Memory::new(DType::F64, &[2, 3, 2], &[6, 2, 1], |i| if i == 7 { f64::NAN } else { noise(i) });
    check(&k::PINV, &[x], &[(DType::F64, &[2, 2, 3], None)], &[Attr::None], 1e-12);
}

//! Attention beside its host twin, by each of its kernels.

use super::HostGpu;
use super::fused::{Memory, wave};
use super::kernels::{FLOATS, check, check_on, input, on_host, strides};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::attention;

#[test]
fn attention_and_its_gradient() {
    for (dtype, close) in FLOATS {
        attended(dtype, close, [2, 3, 37, 45]);
    }
}

/// Long enough for products of the library (`attention/scores.cuh`), in several parts when it is causal.
#[test]
fn attention_by_parts_of_the_scores() {
    for (dtype, close) in [(DType::F32, 1e-5), (DType::F64, 1e-12)] {
        attended(dtype, close, [1, 2, 300, 280]);
        attended(dtype, close, [2, 1, 64, 1100]);
    }
}

/// Attention of two leading dims, queries and keys, and its gradient, with and without masks.
fn attended(dtype: DType, close: f64, [a, b, l, s]: [usize; 4]) {
    let stat = dtype.compute();
    let (e, v) = (20, 33);
    let (q, k, value): (&[usize], &[usize], &[usize]) = (&[a, b, l, e], &[a, b, s, e], &[a, b, s, v]);
    let shapes = [q, k, value];
    let given = || [0, 1, 2].map(|i| input((dtype, shapes[i], None), i + 1));
    let (out, lse): (&[usize], &[usize]) = (&[a, b, l, v], &[a, b, l]);
    for (causal, mask) in [(false, 0), (true, 0), (false, 1), (true, 2)] {
        let mask = |list: &mut Vec<Memory>| match mask {
            // Expanded over heads, and a query that sees nothing.
            1 => list.push(Memory::new(DType::Bool, &[a, b, l, s], &[s as isize, 0, 2 * s as isize, 1], |i| {
                if i / (2 * s) == 3 { 0.0 } else { wave(i) + 2.0 }
            })),
            2 => list.push(Memory::new(DType::F32, &[a, b, l, s], &[0, 0, s as isize, 1], wave)),
            _ => {}
        };
        let attrs = [Attr::Bool(causal), Attr::None];
        let mut list: Vec<Memory> = given().into_iter().collect();
        mask(&mut list);
        let outputs = [(dtype, out, None), (stat, lse, None)];
        check(&attention::ATTENTION, &list, &outputs, &attrs, close * 4.0);
        let found = on_host(&attention::ATTENTION, &list, &outputs, &attrs);
        let mut list = vec![input((dtype, out, None), 7)];
        list.extend(given());
        list.extend(found);
        mask(&mut list);
        check(&attention::ATTENTION_GRAD, &list, &shapes.map(|shape| (dtype, shape, None)), &attrs, close * 40.0);
    }
}

/// Queries, keys, columns of a head, causal, mask (1: bools with a query that sees nothing; 2: floats), heads split from one
/// matrix, heads.
type Attended = (usize, usize, usize, bool, u8, bool, usize);

const ATTENDED: [Attended; 11] = [
    (70, 150, 64, false, 0, false, 3),
    (130, 130, 64, true, 0, true, 3),
    (64, 64, 32, true, 1, false, 3),
    (20, 70, 128, false, 2, true, 3),
    (70, 40, 128, true, 0, false, 3),
    (1, 33, 16, false, 0, false, 3),
    (3, 127, 16, false, 0, false, 3),
    (33, 65, 48, true, 2, true, 3),
    (200, 260, 64, true, 0, true, 3),
    (65, 257, 128, false, 1, false, 3),
    // So many heads that a warp takes twice as many queries.
    (130, 70, 64, true, 0, false, 66),
];

#[test]
fn attention_with_many_leading_dims() {
    let (lead, dtype) = ([2, 1, 3, 2, 2, 2], DType::F32);
    let of = |sizes: [usize; 2]| -> Vec<usize> { lead.into_iter().chain(sizes).collect() };
    let [q, k, v, out, mask] = [[3, 4], [5, 4], [5, 2], [3, 2], [3, 5]].map(of);
    let given = || vec![input((dtype, &q, None), 1), input((dtype, &k, None), 2), input((dtype, &v, None), 3)];
    // None; steps that go on evenly; such that make five dims of them.
    for steps in [None, Some([360, 0, 120, 60, 30, 15, 5, 1]), Some([0, 0, 30, 0, 15, 0, 5, 1])] {
        let mut list = given();
        list.extend(steps.map(|steps: [isize; 8]| Memory::new(dtype, &mask, &steps, wave)));
        let outputs = [(dtype, &out[..], None), (dtype, &q[..7], None)];
        check(&attention::ATTENTION, &list, &outputs, &[Attr::Bool(false), Attr::None], 1e-4);
    }
}

#[test]
fn attention_by_matrix_instructions() {
    for (dtype, close) in [(DType::BF16, 2e-2), (DType::F16, 3e-3)] {
        for case in ATTENDED {
            attended_by_matrix_instructions(dtype, close, case, &[(8, 0), (9, 0)]);
        }
    }
}

/// Of f32, by products in parts: what TF32 alone loses is a hundred times as much as the tolerance.
#[test]
fn attention_of_f32_by_matrix_instructions() {
    // Head dims that are multiples of 8 only; one whose gradient has a single stage.
    let further = [
        (70, 40, 8, true, 1, true, 3),
        (33, 65, 24, false, 2, false, 3),
        (65, 130, 40, true, 0, true, 3),
        (40, 70, 96, true, 1, false, 3),
    ];
    for case in ATTENDED.into_iter().chain(further) {
        attended_by_matrix_instructions(DType::F32, 1e-5, case, &[(8, 0)]);
    }
}

fn attended_by_matrix_instructions(dtype: DType, close: f64, case: Attended, capabilities: &[(u32, u32)]) {
    let (queries, keys, width, causal, mask, split, heads) = case;
    let (q, kv) = (&[2, heads, queries, width][..], &[2, heads, keys, width][..]);
    // `[B, L, H, W]` seen as `[B, H, L, W]`, as modules split it.
    let rows = |shape: &[usize], salt: usize| {
        let (h, l, w) = (shape[1] as isize, shape[2] as isize, shape[3] as isize);
        let apart = if split { [h * l * w, w, h * w, 1] } else { [h * l * w, l * w, w, 1] };
        Memory::new(dtype, shape, &apart, move |i| wave(i * 3 + salt * 101) / 3.0)
    };
    let given = || vec![rows(q, 1), rows(kv, 2), rows(kv, 3)];
    let masked = |mut list: Vec<Memory>| {
        let (shape, k, q) = ([2, heads, queries, keys], keys as isize, queries as isize);
        match mask {
            1 => list.push(Memory::new(DType::Bool, &shape, &[k * q, 0, k, 1], move |i| {
                if i / keys == 2 { 0.0 } else { wave(i) + 0.5 }
            })),
            2 => list.push(Memory::new(DType::F32, &shape, &[0, 0, k, 1], wave)),
            _ => {}
        }
        list
    };
    let lse = &[2, heads, queries][..];
    let attrs = [Attr::Bool(causal), Attr::None];
    let outputs = [(dtype, q, None), (DType::F32, lse, None)];
    for &capability in capabilities {
        let Some(gpu) = HostGpu::open() else { return };
        let gpu = HostGpu { capability, ..gpu };
        check_on(gpu, &attention::ATTENTION, &masked(given()), &outputs, &attrs, close);
    }
    if heads > 3 {
        return;
    }
    let mut list = vec![rows(q, 7)];
    list.extend(given());
    list.extend(on_host(&attention::ATTENTION, &masked(given()), &outputs, &attrs));
    let grads = [(dtype, q, None), (dtype, kv, None), (dtype, kv, None)];
    let list = masked(list);
    for &capability in capabilities {
        let Some(gpu) = HostGpu::open() else { return };
        check_on(HostGpu { capability, ..gpu }, &attention::ATTENTION_GRAD, &list, &grads, &attrs, close * 2.0);
    }
}

/// Infinities and what is not a number go where arithmetic of f32 lets them go, and no further. The parts of a factor alone
/// would give NaN for each of them.
#[test]
fn attention_of_infinities() {
    let (dtype, shape) = (DType::F32, [1, 1, 70, 32]);
    let with = |salt: usize, at: &'static [(usize, f64)]| {
        Memory::new(dtype, &shape, &strides(&shape, None), move |i| {
            at.iter().find(|(place, _)| *place == i).map_or(wave(i * 3 + salt * 101) / 3.0, |(_, x)| *x)
        })
    };
    const UP: f64 = f64::INFINITY;
    let (value, key) =
        (&[(3 * 32 + 5, UP), (40 * 32 + 6, -UP), (41 * 32 + 8, UP), (50 * 32 + 8, -UP)], &[(2 * 32 + 1, UP)]);
    let query = &[(32 + 4, UP), (5 * 32, -UP), (6 * 32 + 2, f64::NAN), (69 * 32 + 3, f32::MAX as f64)];
    let attrs = [Attr::Bool(false), Attr::None];
    let outputs = [(dtype, &shape[..], None), (dtype, &shape[..3], None)];
    let given = |q, k, v| vec![with(1, q), with(2, k), with(3, v)];
    for list in [given(&[], &[], value), given(&[], key, &[]), given(query, &[], &[]), given(query, key, value)] {
        check(&attention::ATTENTION, &list, &outputs, &attrs, 1e-5);
    }
    let mut list = vec![with(7, &[])];
    list.extend(given(&[], key, &[]));
    list.extend(on_host(&attention::ATTENTION, &given(&[], key, &[]), &outputs, &attrs));
    check(&attention::ATTENTION_GRAD, &list, &[(dtype, &shape[..], None); 3], &attrs, 2e-5);
}

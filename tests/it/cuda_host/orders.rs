//! Sorts, selections and what is made of them beside the host's: at the edges of warps, tiles and blocks, for keys of every
//! kind.

use super::HostGpu;
use super::fused::{Memory, wave};
use super::kernels::{View, ints, strides};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::abi::{Call, Faults, RawView, Threads};
use tscript::internals::kernel::cuda::{Gpu, Launch, Param, Source};
use tscript::internals::kernel::family::Kernel;
use tscript::internals::kernel::{random, search, select, sort};

const ALL: [DType; 10] = [
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

fn made(outputs: &[View<'_>]) -> Vec<Memory> {
    outputs.iter().map(|v| Memory::new(v.0, v.1, &strides(v.1, v.2), |_| 5.0)).collect()
}

fn views(all: &[Memory]) -> Vec<RawView> {
    all.iter().map(|m| m.view.clone()).collect()
}

/// What a kernel gives in one of its forms, with its fault.
fn run(
    kernel: &Kernel,
    inputs: &[Memory],
    outputs: &[View<'_>],
    attrs: &[Attr],
    gpu: Option<&mut HostGpu>,
) -> Vec<Vec<f64>> {
    let (given, outputs, faults) = (views(inputs), made(outputs), Faults::default());
    let written = views(&outputs);
    let threads = &Threads::ONE;
    let call = Call { inputs: &given, outputs: &written, attrs, threads, faults: &faults, seed: 11, offset: 3 };
    let fault = match gpu {
        Some(gpu) => {
            kernel.cuda.expect("a launch")(&call, gpu).expect("it launches");
            gpu.slots.first().and_then(|slot| slot.read())
        }
        None => {
            // SAFETY: every memory is as large as its view.
            unsafe { (kernel.host)(&call) };
            faults.take()
        }
    };
    let fault = fault.map_or(vec![], |f| vec![f.position as f64, f.value as f64, f.bound as f64]);
    outputs.iter().map(Memory::values).chain([fault]).collect()
}

#[track_caller]
fn equal(ours: &[f64], theirs: &[f64], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (i, (x, y)) in ours.iter().zip(theirs).enumerate() {
        assert!(x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()), "{what}, element {i}: {x:e}, host {y:e}");
    }
}

/// Both forms of a kernel give the same bits and the same fault.
#[track_caller]
fn same(kernel: &Kernel, inputs: &[Memory], outputs: &[View<'_>], attrs: &[Attr], what: &str) {
    let Some(mut gpu) = HostGpu::open() else { return };
    let ours = run(kernel, inputs, outputs, attrs, Some(&mut gpu));
    let theirs = run(kernel, inputs, outputs, attrs, None);
    for (n, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        equal(a, b, &format!("{} of {what}, output {n}", kernel.name));
    }
}

/// Elements to be sorted: mixed with all that is special, all equal, in order, in reverse order, a few values.
fn pattern(kind: usize, n: usize, dtype: DType) -> impl Fn(usize) -> f64 {
    let special = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY];
    let whole = !dtype.is_float();
    let limit = match dtype {
        DType::Bool | DType::U8 | DType::I8 => 100,
        DType::F16 | DType::BF16 => 200,
        _ => 1 << 20,
    };
    let least = if matches!(dtype, DType::Bool | DType::U8) { 0.0 } else { limit as f64 / 2.0 };
    move |i| match kind {
        0 if !whole && i % 37 == 5 => special[i / 37 % 5],
        0 => {
            let x = (wave(i * 7 + 1) * limit as f64 * 0.1).round().rem_euclid(limit as f64) - least;
            if whole { x } else { x * 0.25 }
        }
        1 => 3.0,
        2 => (i * limit / n.max(1)) as f64 - least,
        3 => ((n.max(i + 1) - 1 - i) * limit / n.max(1)) as f64 - least,
        _ => (i * 7919 % 5) as f64,
    }
}

fn elements(dtype: DType, shape: &[usize], kind: usize) -> Memory {
    let n = shape.iter().product();
    Memory::new(dtype, shape, &strides(shape, None), pattern(kind, n, dtype))
}

fn sorts(dtype: DType, shape: &[usize], kind: usize) {
    let (d, pair) = (Attr::Int(shape.len() as i64 - 1), [(dtype, shape, None), (DType::I64, shape, None)]);
    for descending in [false, true] {
        let what = format!("{dtype} {shape:?} kind {kind} descending {descending}");
        same(&sort::SORT, &[elements(dtype, shape, kind)], &pair, &[d.clone(), Attr::Bool(descending)], &what);
    }
}

#[test]
fn sorts_at_the_edges_of_warps_and_blocks() {
    for n in [1, 2, 3, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1024, 1025, 2048, 4095, 4096] {
        for kind in 0..5 {
            sorts(DType::F32, &[n], kind);
        }
        for dtype in ALL {
            sorts(dtype, &[n], 0);
        }
    }
    for rows in [2, 7, 33, 300] {
        for n in [1, 2, 5, 8, 9, 16, 40, 100] {
            sorts(DType::F32, &[rows, n], 0);
            sorts(DType::I64, &[rows, n], 4);
        }
    }
    for n in [300, 700, 4000] {
        sorts(DType::F64, &[3, n], 0);
        sorts(DType::I16, &[3, n], 0);
    }
    sorts(DType::F32, &[0], 0);
    sorts(DType::F32, &[3, 0], 0);
}

#[test]
fn sorts_of_long_rows() {
    // A tile has 7680 elements, or 3840 of eight bytes.
    for n in [4097, 7679, 7680, 7681, 15_360, 40_000] {
        for kind in 0..5 {
            sorts(DType::F32, &[n], kind);
        }
    }
    for dtype in ALL {
        for kind in [0, 1, 4] {
            sorts(dtype, &[16_000], kind);
        }
    }
    for kind in 0..5 {
        sorts(DType::I64, &[11_521], kind);
        sorts(DType::F64, &[3, 5000], kind);
        sorts(DType::I32, &[4, 8000], kind);
    }
    let x = || Memory::new(DType::F32, &[9000, 2], &[1, 9000], wave);
    let attrs = [Attr::Int(0), Attr::Bool(false)];
    same(&sort::ARGSORT, &[x()], &[(DType::I64, &[9000, 2], None)], &attrs, "columns");
}

/// All bytes of keys decide, also the highest of integers of eight bytes.
#[test]
fn sorts_of_wide_integers() {
    let n = 9000;
    for scale in [1.0, 2f64.powi(20), 2f64.powi(44)] {
        let x = || Memory::new(DType::I64, &[n], &[1], |i| (wave(i * 13) * 100.0).round() * scale);
        let pair = [(DType::I64, &[n][..], None), (DType::I64, &[n], None)];
        for descending in [false, true] {
            let what = format!("scale {scale}");
            same(&sort::SORT, &[x()], &pair, &[Attr::Int(0), Attr::Bool(descending)], &what);
        }
    }
}

/// The first k of a stable sort: what topk gives, where equal elements are taken in order.
fn first_of_sorted(dtype: DType, shape: [usize; 2], kind: usize, k: usize, largest: bool) -> [Vec<f64>; 2] {
    let pair = [(dtype, &shape[..], None), (DType::I64, &shape, None)];
    let all = run(&sort::SORT, &[elements(dtype, &shape, kind)], &pair, &[Attr::Int(1), Attr::Bool(largest)], None);
    [0, 1].map(|n| all[n].chunks(shape[1]).take(shape[0]).flat_map(|row| row[..k].to_vec()).collect())
}

#[test]
fn topk_is_the_beginning_of_a_stable_sort() {
    let cases = [
        (1, 5, 3),
        (3, 300, 1),
        (3, 513, 7),
        (2, 1024, 1023),
        (5, 4096, 50),
        (2, 5000, 100),
        (2, 8192, 1024),
        (1, 8193, 1),
        (1, 20_000, 100),
        (3, 30_000, 1000),
        (1, 9000, 5000),
        (2, 3000, 2000),
    ];
    for (rows, n, k) in cases {
        for kind in 0..5 {
            for dtype in [DType::F32, DType::I64, DType::BF16] {
                for largest in [true, false] {
                    let Some(mut gpu) = HostGpu::open() else { return };
                    let attrs = [Attr::Int(k as i64), Attr::Int(1), Attr::Bool(largest)];
                    let pair = [(dtype, &[rows, k][..], None), (DType::I64, &[rows, k], None)];
                    let x = elements(dtype, &[rows, n], kind);
                    let ours = run(&sort::TOPK, &[x], &pair, &attrs, Some(&mut gpu));
                    let theirs = first_of_sorted(dtype, [rows, n], kind, k, largest);
                    let what = format!("{dtype} {rows} x {n}, k {k}, kind {kind}, largest {largest}");
                    for (a, b) in ours.iter().zip(&theirs) {
                        equal(&a[..rows * k], b, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn medians_and_kth_values() {
    for n in [1, 2, 255, 256, 257, 600, 4096, 4097, 8192, 8193, 20_000] {
        for dtype in [DType::F32, DType::F16, DType::I64, DType::U8, DType::F64] {
            for kind in 0..5 {
                let what = format!("{dtype} {n} kind {kind}");
                let one = [(dtype, &[2][..], None), (DType::I64, &[2], None)];
                let x = || elements(dtype, &[2, n], kind);
                for kernel in [&sort::MEDIAN, &sort::NANMEDIAN] {
                    same(kernel, &[x()], &one, &[Attr::Int(1)], &what);
                }
                for k in [1, n / 3 + 1, n] {
                    let attrs = [Attr::Int(k as i64), Attr::Int(1)];
                    if n <= 256 {
                        same(&sort::KTHVALUE, &[x()], &one, &attrs, &what);
                        continue;
                    }
                    // Longer rows give the k-th of a stable sort.
                    let Some(mut gpu) = HostGpu::open() else { return };
                    let ours = run(&sort::KTHVALUE, &[x()], &one, &attrs, Some(&mut gpu));
                    let theirs = first_of_sorted(dtype, [2, n], kind, n, false);
                    for (a, b) in ours.iter().zip(&theirs) {
                        equal(&a[..2], &[b[k - 1], b[n + k - 1]], &format!("{what} k {k}"));
                    }
                }
            }
        }
    }
    let nan = || Memory::new(DType::F32, &[9000], &[1], |_| f64::NAN);
    for kernel in [&sort::MEDIAN, &sort::NANMEDIAN] {
        same(kernel, &[nan()], &[(DType::F32, &[], None), (DType::I64, &[1], None)], &[Attr::Int(0)], "all NaN");
        same(kernel, &[nan()], &[(DType::F32, &[], None)], &[Attr::None], "of all");
    }
}

#[test]
fn modes() {
    for n in [1, 2, 9, 16] {
        for dtype in [DType::F32, DType::I64] {
            for kind in [1, 2, 4] {
                let one = [(dtype, &[3][..], None), (DType::I64, &[3], None)];
                same(
                    &sort::MODE,
                    &[elements(dtype, &[3, n], kind)],
                    &one,
                    &[Attr::Int(1)],
                    &format!("{dtype} {n} {kind}"),
                );
            }
        }
    }
    let x = elements(DType::F32, &[5000], 4);
    same(&sort::MODE, &[x], &[(DType::F32, &[], None)], &[Attr::Int(0)], "a long row");
}

#[test]
fn distinct_elements() {
    for n in [1, 31, 4096, 4097, 9000] {
        for dtype in [DType::F32, DType::I64, DType::U8, DType::F16] {
            for kind in 0..5 {
                for consecutive in [false, true] {
                    let Some(mut gpu) = HostGpu::open() else { return };
                    let outputs = [
                        (dtype, &[n][..], None),
                        (DType::I64, &[n], None),
                        (DType::I64, &[n], None),
                        (DType::I64, &[1], None),
                    ];
                    let attrs = [Attr::None, Attr::Bool(consecutive)];
                    let ours = run(&sort::UNIQUE, &[elements(dtype, &[n], kind)], &outputs, &attrs, Some(&mut gpu));
                    let theirs = run(&sort::UNIQUE, &[elements(dtype, &[n], kind)], &outputs, &attrs, None);
                    let what = format!("{dtype} {n} kind {kind} consecutive {consecutive}");
                    let number = theirs[3][0] as usize;
                    assert_eq!(ours[3][0], theirs[3][0], "{what}");
                    equal(&ours[0][..number], &theirs[0][..number], &what);
                    equal(&ours[1][..n], &theirs[1][..n], &what);
                    equal(&ours[2][..number], &theirs[2][..number], &what);
                    // Values alone.
                    let Some(mut gpu) = HostGpu::open() else { return };
                    let less = [outputs[0], (DType::I64, &[0], None), (DType::I64, &[0], None), outputs[3]];
                    let ours = run(&sort::UNIQUE, &[elements(dtype, &[n], kind)], &less, &attrs, Some(&mut gpu));
                    assert_eq!(ours[3][0], theirs[3][0], "{what}");
                    equal(&ours[0][..number], &theirs[0][..number], &format!("{what}, alone"));
                }
            }
        }
    }
}

#[test]
fn flags_at_the_edges_of_tiles() {
    for n in [1, 31, 33, 4095, 4096, 4097, 13_000] {
        for every in [1, 2, 3, 5000] {
            let is_set = move |i: usize| (i % every == every / 2) as usize;
            let number = (0..n).map(is_set).sum::<usize>();
            let what = format!("{n}, one of {every}");
            for dtype in [DType::Bool, DType::F32, DType::I64] {
                let flags = || ints(dtype, &[n], move |i| is_set(i) as i64);
                same(&select::COUNT, &[flags()], &[(DType::I64, &[1], None)], &[], &what);
                same(&select::NONZERO, &[flags()], &[(DType::I64, &[number, 1], None)], &[], &what);
            }
            let mask = || ints(DType::Bool, &[n], move |i| is_set(i) as i64);
            for dtype in [DType::U8, DType::F16, DType::F32, DType::I64] {
                let x = || elements(dtype, &[n], 2);
                same(&select::MASKED_SELECT, &[x(), mask()], &[(dtype, &[number], None)], &[], &what);
                for there in [number, number.saturating_sub(1)] {
                    let source = elements(dtype, &[there], 3);
                    let to = [(dtype, &[n][..], None)];
                    let Some(mut gpu) = HostGpu::open() else { return };
                    let ours = run(&select::MASKED_SCATTER, &[x(), mask(), source], &to, &[], Some(&mut gpu));
                    let source = elements(dtype, &[there], 3);
                    let theirs = run(&select::MASKED_SCATTER, &[x(), mask(), source], &to, &[], None);
                    assert_eq!(ours[1], theirs[1], "{what}");
                    equal(&ours[0], &theirs[0], &what);
                }
            }
        }
    }
}

#[test]
fn histograms() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        for (n, bins) in [(1, 1), (31, 3), (5000, 100), (70_000, 8192), (9000, 9000)] {
            for (low, high) in [(0.0, 0.0), (-3.0, 2.0)] {
                let attrs = [Attr::Int(bins as i64), Attr::Float(low), Attr::Float(high)];
                let x = Memory::new(dtype, &[n], &[1], |i| if i % 97 == 96 { f64::NAN } else { wave(i * 3) * 0.5 });
                same(&search::HISTC, &[x], &[(dtype, &[bins], None)], &attrs, &format!("{dtype} {n} {bins} {low}"));
            }
        }
    }
    for dtype in [DType::I64, DType::I32, DType::U8] {
        for (n, bins) in [(1, 1), (33, 3), (30_000, 200), (70_000, 20_000)] {
            let bound = if dtype == DType::U8 { bins.min(200) } else { bins } as i64;
            let x = || ints(dtype, &[n], move |i| (i as i64 * 7919) % bound);
            let what = format!("{dtype} {n} {bins}");
            same(&search::BINCOUNT_SIZE, &[x()], &[(DType::I64, &[1], None)], &[Attr::Int(2)], &what);
            same(&search::BINCOUNT, &[x()], &[(DType::I64, &[bins], None)], &[], &what);
        }
    }
    let bad = ints(DType::I64, &[9000], |i| [3, -1, 7][(i > 5000) as usize + (i > 8000) as usize]);
    same(&search::BINCOUNT, &[bad], &[(DType::I64, &[5], None)], &[], "no bins");
}

#[test]
fn permutations() {
    for n in [0, 1, 2, 3, 4, 5, 33, 100, 255, 4097, 20_000] {
        for dtype in [DType::I64, DType::I32, DType::F64] {
            same(&random::RANDPERM, &[], &[(dtype, &[n], None)], &[], &format!("{dtype} {n}"));
        }
    }
    same(&random::RANDPERM, &[], &[(DType::U8, &[200], Some(&[2]))], &[], "every other place");
}

/// Launches a kernel of one block on words.
fn launch(text: &str, entry: &str, threads: u32, words: &[u64]) -> Option<()> {
    let mut gpu = HostGpu::open()?;
    let source = Source::new(text.to_string());
    let args = &[Param::Words(words)];
    let launch = Launch { source: &source, entry, grid: [1; 3], block: [threads, 1, 1], shared_bytes: 0, args };
    gpu.launch(&launch).expect("it launches");
    Some(())
}

/// Blocks that run at once find earlier tiles that know only their own counts.
#[test]
fn look_backs_over_tiles_that_know_only_themselves() {
    let text = "#include \"common/base.cuh\"\n#include \"common/look_back.cuh\"
        struct Args { ts_u64* states; ts_i64* y; ts_i64 tile; };
        TS_KERNEL void __launch_bounds__(64) ts_try(const __grid_constant__ Args g) {
            const ts_i64 before = ts_look_back_sum(g.states, g.tile, 7);
            if (threadIdx.x == 63) g.y[0] = before;
        }";
    for tile in [0usize, 1, 5, 31, 32, 33, 64, 100] {
        for known in [0, 1, tile.saturating_sub(1)] {
            // Tile `known` tells the sum up to it, later ones their own counts; nobody may read earlier ones.
            let count = |t: usize| t as u64 * 3 + 1;
            let sum = |t: usize| (0..t).map(count).sum::<u64>();
            let mut states: Vec<u64> = (0..=tile)
                .map(|t| match t {
                    t if t < known => 0,
                    t if t == known => 2 << 62 | sum(t + 1),
                    t => 1 << 62 | count(t),
                })
                .collect();
            states[tile] = 0;
            if known >= tile && tile > 0 {
                continue;
            }
            // Lanes look at 32 tiles at once, also before the one that knows.
            if known > 0 {
                states[..known].iter_mut().for_each(|state| *state = 1 << 62 | 1000);
            }
            let mut y = [0u64];
            let words = [states.as_mut_ptr() as u64, y.as_mut_ptr() as u64, tile as u64];
            if launch(text, "ts_try", 64, &words).is_none() {
                return;
            }
            assert_eq!((y[0], states[tile]), (sum(tile), 2 << 62 | (sum(tile) + 7)), "tile {tile}, known {known}");
        }
    }
}

#[test]
fn look_backs_of_digits() {
    for large in [0, 1] {
        let text = format!(
            "#include \"common/base.cuh\"\ntypedef ts_f32 T;\nstatic const int LARGE = {large}, ALONE = 0;
            #include \"sort/radix.cuh\"
            struct TryArgs {{ ts_u64* states; ts_i64* y; ts_i64 tile; }};
            TS_KERNEL void __launch_bounds__(256) ts_try(const __grid_constant__ TryArgs g) {{
                volatile State* states = (volatile State*)g.states + threadIdx.x;
                g.y[threadIdx.x] = (ts_i64)ts_digit_look_back(states, g.tile, (State)threadIdx.x);
            }}"
        );
        for tile in [0usize, 1, 3, 4, 5, 9, 40] {
            for known in 0..tile.min(6) {
                let shift = if large == 1 { 62 } else { 30 };
                let count = |t: usize, d: usize| (t * 7 + d) as u64;
                let sum = |t: usize, d: usize| (0..t).map(|t| count(t, d)).sum::<u64>();
                let state = |t: usize, d: usize| match t {
                    t if t == tile => 0,
                    t if t == known => 2 << shift | sum(t + 1, d),
                    t => 1 << shift | count(t, d),
                };
                let all: Vec<u64> = (0..(tile + 1) * 256).map(|i| state(i / 256, i % 256)).collect();
                let mut narrow: Vec<u32> = all.iter().map(|&state| state as u32).collect();
                let mut wide = all;
                let (mut y, at) =
                    (vec![0u64; 256], if large == 1 { wide.as_mut_ptr() as u64 } else { narrow.as_mut_ptr() as u64 });
                if launch(&text, "ts_try", 256, &[at, y.as_mut_ptr() as u64, tile as u64]).is_none() {
                    return;
                }
                assert!((0..256).all(|d| y[d] == sum(tile, d)), "tile {tile}, known {known}, large {large}");
                let last = |d: usize| if large == 1 { wide[tile * 256 + d] } else { narrow[tile * 256 + d].into() };
                assert!((0..256).all(|d| last(d) == 2 << shift | (sum(tile, d) + d as u64)), "tile {tile}");
            }
        }
    }
}

//! Hand-written kernels beside their host twins: places and counts that data decides, picks, samples, resampling.

use super::fused::{Memory, wave};
use super::kernels::{check, dims, input, ints, strides};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::{ctc, index, random, resample, search, select, sort};

fn text(word: &'static str) -> Attr {
    Attr::Str(word.into())
}

const FLOATS: [(DType, f64); 4] = [(DType::F32, 1e-5), (DType::F64, 1e-12), (DType::F16, 4e-3), (DType::BF16, 3e-2)];

#[test]
fn scatters_that_reduce() {
    let whole = [(DType::I64, 0.0), (DType::I32, 0.0), (DType::U8, 0.0), (DType::I16, 0.0)];
    for (dtype, close) in FLOATS.into_iter().chain(whole) {
        for reduce in ["sum", "prod", "mean", "amin", "amax"] {
            for include_self in [false, true] {
                let at = ints(DType::I64, &[4, 9], |i| (i as i64 * 7 + i as i64 / 5) % 6);
                let src = || Memory::new(dtype, &[4, 9], &[9, 1], |i| (wave(i * 5) * 3.0).round());
                let x = || Memory::new(dtype, &[4, 6], &[1, 4], |i| (wave(i) * 3.0).round());
                let attrs = [Attr::Int(1), text(reduce), Attr::Bool(include_self)];
                check(&index::SCATTER_REDUCE, &[x(), at, src()], &[(dtype, &[4, 6], None)], &attrs, close);
                let bad = ints(DType::I64, &[4, 9], |i| if i == 13 { 6 } else { 0 });
                check(&index::SCATTER_REDUCE, &[x(), bad, src()], &[(dtype, &[4, 6], None)], &attrs, close);
            }
        }
    }
    for reduce in ["amin", "amax"] {
        let x = Memory::new(DType::F32, &[5], &[1], |i| if i == 1 { f64::NAN } else { 1.0 });
        let src = Memory::new(DType::F32, &[4], &[1], |i| if i == 2 { f64::NAN } else { i as f64 });
        let at = ints(DType::I64, &[4], |i| [0, 1, 2, 2][i]);
        let attrs = [Attr::Int(0), text(reduce), Attr::Bool(true)];
        check(&index::SCATTER_REDUCE, &[x, at, src], &[(DType::F32, &[5], None)], &attrs, 0.0);
    }
}

#[test]
fn masks_and_repeats() {
    for dtype in [DType::F32, DType::U8, DType::I64, DType::BF16] {
        let mask = || Memory::new(DType::Bool, &[30, 70], &[70, 1], |i| (i % 5 == 2) as u8 as f64);
        let x = || input((dtype, &[30, 70], Some(&[1, 30])), 1);
        for there in [420, 421, 60] {
            let src = Memory::new(dtype, &[there], &[1], |i| (i % 100) as f64);
            check(&select::MASKED_SCATTER, &[x(), mask(), src], &[(dtype, &[30, 70], None)], &[], 0.0);
        }
    }
    for dtype in [DType::I64, DType::I32, DType::U8] {
        let repeats = || ints(dtype, &[500], |i| (i as i64 * 7) % 4);
        check(&select::REPEATS_COUNT, &[repeats()], &[(DType::I64, &[1], None)], &[], 0.0);
        let sum = (0..500).map(|i| (i * 7) % 4).sum();
        check(&select::REPEATS_FILL, &[repeats()], &[(DType::I64, &[sum], None)], &[], 0.0);
    }
    let bad = ints(DType::I64, &[9], |i| if i == 4 { -3 } else { 1 });
    check(&select::REPEATS_COUNT, &[bad], &[(DType::I64, &[1], None)], &[], 0.0);
}

#[test]
fn picks_from_rows() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64, DType::I32, DType::U8, DType::Bool] {
        for (shape, dim) in [(&[5, 13][..], 1), (&[3, 7, 4], 1), (&[2, 1500], 1), (&[9], 0), (&[], 0)] {
            let few = || {
                Memory::new(dtype, shape, &strides(shape, None), |i| {
                    if dtype.is_float() && i % 11 == 5 { f64::NAN } else { (wave(i) * 3.0).round() }
                })
            };
            let mut out = shape.to_vec();
            if let Some(size) = out.get_mut(dim as usize) {
                *size = 1;
            }
            let pair = [(dtype, &out[..], None), (DType::I64, &out, None)];
            for pick in [&sort::MEDIAN, &sort::NANMEDIAN] {
                check(pick, &[few()], &pair, &[Attr::Int(dim)], 0.0);
                check(pick, &[few()], &[(dtype, &[], None)], &[Attr::None], 0.0);
            }
            let n = shape.get(dim as usize).copied().unwrap_or(1) as i64;
            // Which of equal elements is told is the host's choice in short rows only.
            for nth in [1, n / 2 + 1, n] {
                let reported = if n <= 256 { &pair[..] } else { &pair[..1] };
                check(&sort::KTHVALUE, &[few()], reported, &[Attr::Int(nth), Attr::Int(dim)], 0.0);
            }
            if n <= 16 {
                check(&sort::MODE, &[few()], &pair, &[Attr::Int(dim)], 0.0);
            } else {
                check(&sort::MODE, &[few()], &pair[..1], &[Attr::Int(dim)], 0.0);
            }
        }
        check(&sort::MEDIAN, &[input((dtype, &[0], None), 1)], &[(dtype, &[], None)], &[Attr::None], 0.0);
    }
    // Tiles that give their best, over several passes.
    let distinct = || Memory::new(DType::F32, &[2, 40_000], &[40_000, 1], |i| ((i * 7919) % 80_021) as f64);
    for count in [1, 10, 256] {
        let best = [(DType::F32, &[2, count][..], None), (DType::I64, &[2, count], None)];
        for largest in [true, false] {
            let attrs = [Attr::Int(count as i64), Attr::Int(1), Attr::Bool(largest)];
            check(&sort::TOPK, &[distinct()], &best, &attrs, 0.0);
        }
    }
    let wide = Memory::new(DType::I64, &[3000], &[1], |i| ((i * 7919) % 8009) as f64 - 4000.0);
    let best = [(DType::I64, &[7][..], None), (DType::I64, &[7], None)];
    check(&sort::TOPK, &[wide], &best, &[Attr::Int(7), Attr::Int(0), Attr::Bool(true)], 0.0);
}

#[test]
fn distinct_elements() {
    for dtype in [DType::F32, DType::F64, DType::I64, DType::U8, DType::Bool] {
        for shape in [&[3, 50][..], &[5000], &[1], &[]] {
            for consecutive in [false, true] {
                let x = || {
                    Memory::new(dtype, shape, &strides(shape, None), |i| {
                        if dtype.is_float() && i % 17 == 3 { f64::NAN } else { (wave(i / 3) * 4.0).round() }
                    })
                };
                let n = [shape.iter().product::<usize>()];
                let outs = [
                    (dtype, &n[..], None),
                    (DType::I64, shape, None),
                    (DType::I64, &n, None),
                    (DType::I64, &[1], None),
                ];
                check(&sort::UNIQUE, &[x()], &outs, &[Attr::None, Attr::Bool(consecutive)], 0.0);
                // The inverse alone, the counts alone, neither.
                for [inverse, counts] in [[true, false], [false, true], [false, false]] {
                    let nothing = (DType::I64, &[0][..], None);
                    let less = [
                        outs[0],
                        if inverse { outs[1] } else { nothing },
                        if counts { outs[2] } else { nothing },
                        outs[3],
                    ];
                    check(&sort::UNIQUE, &[x()], &less, &[Attr::None, Attr::Bool(consecutive)], 0.0);
                }
            }
        }
    }
}

#[test]
fn distinct_slices() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::I64, DType::U8, DType::Bool] {
        // Slices of several dims, more than a tile has, more than two tiles have; none; without elements.
        let shapes: [(&[usize], usize); 7] = [
            (&[40, 3], 0),
            (&[3, 40, 2], 1),
            (&[2, 2, 50], 2),
            (&[2500, 2], 0),
            (&[9000], 0),
            (&[0, 3], 0),
            (&[3, 0], 0),
        ];
        for (shape, d) in shapes {
            for consecutive in [false, true] {
                let x = || {
                    Memory::new(dtype, shape, &strides(shape, None), |i| match (i % 31, dtype.is_float()) {
                        (5, true) => f64::NAN,
                        (7, true) => -0.0,
                        _ => (wave(i / 3) * 0.3).round(),
                    })
                };
                let n = [shape[d]];
                let outs = [
                    (dtype, shape, None),
                    (DType::I64, &n[..], None),
                    (DType::I64, &n, None),
                    (DType::I64, &[1], None),
                ];
                check(&sort::UNIQUE, &[x()], &outs, &[Attr::Int(d as i64), Attr::Bool(consecutive)], 0.0);
            }
        }
    }
}

#[test]
fn finding_and_counting() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64, DType::I32, DType::U8] {
        let edges = || Memory::new(dtype, &[40], &[1], |i| (i / 2) as f64);
        let rows = || Memory::new(dtype, &[3, 40], &[40, 1], |i| (i % 40 / 2) as f64);
        let values = || Memory::new(dtype, &[3, 30], &[1, 3], |i| if i == 7 { f64::NAN } else { (i % 25) as f64 });
        let sorter = || ints(DType::I64, &[40], |i| 39 - i as i64);
        let falling = Memory::new(dtype, &[40], &[1], |i| (39 - i) as f64 / 2.0);
        let attrs = |right| [Attr::Bool(right)];
        for right in [false, true] {
            for out in [DType::I64, DType::I32] {
                let out = [(out, &[3, 30][..], None)];
                check(&search::SEARCHSORTED, &[edges(), values()], &out, &attrs(right), 0.0);
                check(&search::SEARCHSORTED, &[rows(), values()], &out, &attrs(right), 0.0);
            }
        }
        check(
            &search::SEARCHSORTED,
            &[falling, values(), sorter()],
            &[(DType::I64, &[3, 30], None)],
            &attrs(false),
            0.0,
        );
        let x = || Memory::new(dtype, &[2000], &[1], |i| (wave(i) * 6.0).abs().floor());
        for (low, high) in [(0.0, 0.0), (1.0, 4.0)] {
            let attrs = [Attr::Int(5), Attr::Float(low), Attr::Float(high)];
            check(&search::HISTC, &[x()], &[(dtype, &[5], None)], &attrs, 0.0);
        }
        if dtype.is_float() {
            let weights = || input((dtype, &[2000], None), 3);
            let close = if dtype == DType::BF16 { 0.2 } else { 1e-4 };
            let at = ints(DType::I64, &[2000], |i| i as i64 % 13);
            check(&search::BINCOUNT, &[at, weights()], &[(dtype, &[13], None)], &[], close);
        } else {
            check(&search::BINCOUNT_SIZE, &[x()], &[(DType::I64, &[1], None)], &[Attr::Int(3)], 0.0);
            check(&search::BINCOUNT_SIZE, &[x()], &[(DType::I64, &[1], None)], &[Attr::Int(30)], 0.0);
            check(&search::BINCOUNT, &[x()], &[(DType::I64, &[7], None)], &[], 0.0);
        }
    }
    let bad = ints(DType::I64, &[9], |i| if i == 4 { -3 } else { 1 });
    check(&search::BINCOUNT, &[bad], &[(DType::I64, &[2], None)], &[], 0.0);
}

#[test]
fn padding_by_own_elements() {
    for mode in ["reflect", "replicate", "circular"] {
        let attrs = [dims(&[2, -1, -1, 3, 1, 1]), text(mode)];
        for dtype in [DType::F32, DType::BF16, DType::F64, DType::I64, DType::Bool] {
            let x = input((dtype, &[2, 3, 4, 5], Some(&[60, 1, 3, 12])), 1);
            check(&resample::PAD, &[x], &[(dtype, &[2, 5, 6, 6], None)], &attrs, 0.0);
        }
        for (dtype, close) in FLOATS {
            let g = || input((dtype, &[2, 5, 6, 6], None), 2);
            check(&resample::PAD_GRAD, &[g()], &[(dtype, &[2, 3, 4, 5], None)], &attrs, close);
        }
        let one = [dims(&[3, 2]), text(mode)];
        check(&resample::PAD, &[input((DType::F32, &[1], None), 1)], &[(DType::F32, &[6], None)], &one, 0.0);
        check(&resample::PAD_GRAD, &[input((DType::F32, &[6], None), 1)], &[(DType::F32, &[1], None)], &one, 1e-6);
        let cut = [dims(&[-4, 5]), text(mode)];
        check(
            &resample::PAD_GRAD,
            &[input((DType::F32, &[3, 5], None), 1)],
            &[(DType::F32, &[3, 4], None)],
            &cut,
            1e-6,
        );
        let cut = [dims(&[5, -4]), text(mode)];
        check(
            &resample::PAD_GRAD,
            &[input((DType::F32, &[3, 5], None), 1)],
            &[(DType::F32, &[3, 4], None)],
            &cut,
            1e-6,
        );
        check(&resample::PAD_GRAD, &[input((DType::F32, &[13], None), 1)], &[(DType::F32, &[8], None)], &one, 1e-6);
    }
}

#[test]
fn resampling() {
    type Case = (&'static str, i64, &'static [usize], &'static [usize], Option<&'static [f64]>);
    let cases: [Case; 9] = [
        ("nearest", 1, &[2, 3, 7], &[2, 3, 12], None),
        ("nearest-exact", 2, &[2, 3, 7, 5], &[2, 3, 4, 9], None),
        ("nearest", 3, &[2, 2, 3, 4, 5], &[2, 2, 5, 3, 9], None),
        ("linear", 1, &[2, 3, 7], &[2, 3, 13], None),
        ("bilinear", 2, &[2, 3, 7, 5], &[2, 3, 4, 11], None),
        ("bilinear", 2, &[1, 1, 4, 5], &[1, 1, 8, 12], Some(&[2.1, 2.5])),
        ("trilinear", 3, &[1, 2, 3, 4, 5], &[1, 2, 6, 3, 7], None),
        ("bicubic", 2, &[2, 3, 7, 5], &[2, 3, 4, 11], None),
        ("bicubic", 2, &[1, 2, 1, 5], &[1, 2, 6, 2], Some(&[6.3, 0.5])),
    ];
    for (mode, spatial, from, to, factors) in cases {
        for align in [false, true] {
            let factors = factors.map_or(Attr::None, |factors| Attr::Floats(factors.into()));
            let attrs = [Attr::Int(spatial), text(mode), Attr::Bool(align), factors];
            for (dtype, close) in FLOATS {
                check(&resample::INTERPOLATE, &[input((dtype, from, None), 1)], &[(dtype, to, None)], &attrs, close);
                check(
                    &resample::INTERPOLATE_GRAD,
                    &[input((dtype, to, None), 1)],
                    &[(dtype, from, None)],
                    &attrs,
                    close * 4.0,
                );
            }
        }
    }
}

/// Enough for several planes to a thread, whose number is no multiple of that.
#[test]
fn resampling_of_many_planes() {
    for (mode, align) in [("nearest", false), ("bilinear", false), ("bilinear", true), ("bicubic", false)] {
        let attrs = [Attr::Int(2), text(mode), Attr::Bool(align), Attr::None];
        let (small, large): (&[usize], &[usize]) = (&[5, 7, 22, 23], &[5, 7, 37, 31]);
        for (from, to) in [(small, large), (large, small)] {
            check(
                &resample::INTERPOLATE,
                &[input((DType::F32, from, None), 1)],
                &[(DType::F32, to, None)],
                &attrs,
                2e-5,
            );
            let g = input((DType::F32, to, None), 1);
            check(&resample::INTERPOLATE_GRAD, &[g], &[(DType::F32, from, None)], &attrs, 1e-4);
        }
    }
}

#[test]
fn sums_of_windows() {
    for (dtype, close) in FLOATS {
        for (dim, out) in [(1, [2, 5, 3, 4]), (3, [2, 6, 3, 5])] {
            let (x, weights) = (input((dtype, &[2, 6, 3, 4], None), 1), input((dtype, &[3, 5], None), 2));
            // The last windows end behind the last input.
            let first = ints(DType::I64, &[5], |i| (i as i64 * 7) % 4);
            check(&resample::WINDOW_SUMS, &[x, first, weights], &[(dtype, &out, None)], &[Attr::Int(dim)], close);
        }
    }
}

#[test]
fn sampling_at_places() {
    let not_finite = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e9, -1.0, 1.0];
    let at = |dtype, shape: &[usize]| {
        let place = |i: usize| match i % 7 {
            3 => not_finite[i / 7 % 6],
            _ => ((i * 37 % 101) as f64 - 50.0) / 32.0,
        };
        Memory::new(dtype, shape, &strides(shape, None), place)
    };
    let shapes: [[&[usize]; 3]; 3] = [
        [&[2, 3, 5, 7], &[2, 4, 6, 2], &[2, 3, 4, 6]],
        [&[1, 2, 3, 4, 5], &[1, 3, 5, 2, 3], &[1, 2, 3, 5, 2]],
        [&[2, 3, 1, 1], &[2, 9, 11, 2], &[2, 3, 9, 11]],
    ];
    for ([image, grid, out], between, outside, align) in shapes
        .into_iter()
        .flat_map(|shape| (0..3).map(move |between| (shape, between)))
        .flat_map(|(shape, between)| (0..3).map(move |outside| (shape, between, outside)))
        .flat_map(|(shape, between, outside)| [false, true].map(|align| (shape, between, outside, align)))
    {
        let modes = [Attr::Int(between), Attr::Int(outside), Attr::Bool(align)];
        for (dtype, close) in FLOATS {
            let (x, at) = (|| input((dtype, image, None), 1), || at(dtype, grid));
            check(&resample::GRID_SAMPLE, &[x(), at()], &[(dtype, out, None)], &modes, close * 4.0);
            let g = || input((dtype, out, None), 2);
            for (dx, dgrid) in [(true, true), (true, false), (false, true)] {
                let attrs: Vec<Attr> = modes.iter().cloned().chain([Attr::Bool(dx), Attr::Bool(dgrid)]).collect();
                let mut inputs = vec![g(), at()];
                inputs.extend(dgrid.then(x));
                let made = [(dtype, image, None), (dtype, grid, None)];
                let made: Vec<_> =
                    made.into_iter().zip([dx, dgrid]).filter(|(_, is)| *is).map(|(view, _)| view).collect();
                check(&resample::GRID_SAMPLE_GRAD, &inputs, &made, &attrs, close * 16.0);
            }
        }
    }
}

#[test]
fn samples() {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        let p = |i: usize| if i % 4 == 1 { 0.0 } else { (wave(i) * 0.4).abs() };
        for replacement in [false, true] {
            let attrs = [Attr::Bool(replacement)];
            let rows = || Memory::new(dtype, &[5, 60], &[60, 1], p);
            check(&random::MULTINOMIAL, &[rows()], &[(DType::I64, &[5, 40], None)], &attrs, 0.0);
            let one = || Memory::new(dtype, &[3000], &[1], p);
            check(&random::MULTINOMIAL, &[one()], &[(DType::I64, &[9], None)], &attrs, 0.0);
            // Rows of a thread, of a block, and of several, one of them not full; a single sample.
            for (n, k) in [(128, 1), (129, 1), (2048, 20), (2049, 20), (530_000, 7)] {
                let long = Memory::new(dtype, &[2, n], &[n as isize, 1], p);
                check(&random::MULTINOMIAL, &[long], &[(DType::I64, &[2, k], None)], &attrs, 0.0);
                let bad = Memory::new(dtype, &[1, n], &[n as isize, 1], |i| if i + 3 == n { f64::NAN } else { 1.0 });
                check(&random::MULTINOMIAL, &[bad], &[(DType::I64, &[1, k], None)], &attrs, 0.0);
            }
            let bad = Memory::new(dtype, &[4, 6], &[6, 1], |i| if i == 15 { -1.0 } else { 1.0 });
            check(&random::MULTINOMIAL, &[bad], &[(DType::I64, &[4, 3], None)], &attrs, 0.0);
            let nothing = Memory::new(dtype, &[2, 6], &[6, 1], |i| (i / 6) as f64);
            check(&random::MULTINOMIAL, &[nothing], &[(DType::I64, &[2, 3], None)], &attrs, 0.0);
        }
    }
}

#[test]
fn sequences_without_an_alignment() {
    for (dtype, close) in [(DType::F32, 1e-5), (DType::F64, 1e-11)] {
        // More samples than a launch has, more states than a block has threads, labels that repeat, the blank among them.
        for (steps, n, classes, most, blank) in
            [(7, 100, 5, 4, 0), (300, 2, 9, 140, 3), (4, 1, 300, 2, 299), (0, 2, 3, 1, 0)]
        {
            let logs = || {
                let x = |i: usize| wave(i * 31 + i / 7) * 0.3 - 2.0;
                Memory::new(dtype, &[steps, n, classes], &[(n * classes) as isize, classes as isize, 1], x)
            };
            let labels = |bad: Option<usize>| {
                let any = |i: usize| ((i / 2 * 7 + i / 5) % classes) as i64;
                ints(DType::I64, &[n, most], move |i| if bad == Some(i) { classes as i64 + 2 } else { any(i) })
            };
            let numbers = |value: &dyn Fn(usize) -> usize| Attr::Ints((0..n).map(|i| value(i) as i64).collect());
            let attrs = [
                numbers(&|i| if i % 5 == 3 { steps / 2 } else { steps }),
                numbers(&|i| most.saturating_sub(i % 3)),
                numbers(&|i| i * most),
                Attr::Int(blank),
            ];
            let g = || Memory::new(dtype, &[n], &[1], |i| if i == 1 || i % 10 == 3 { 0.0 } else { wave(i) });
            let (loss, shape) = ((dtype, &[n][..], None), &[steps, n, classes][..]);
            for bad in [None, Some(0), Some(n * most - 1)] {
                check(&ctc::CTC_LOSS, &[logs(), labels(bad)], &[loss], &attrs, close);
                check(&ctc::CTC_LOSS_GRAD, &[logs(), labels(bad), g()], &[(dtype, shape, None)], &attrs, close);
            }
        }
    }
}

//! Fourier transforms by the library and by our own kernels beside the CPU's: every function, both precisions, norms, lengths of
//! every kind, dims in every place, operands whose numbers lie apart; more plans than are kept; windows that are replayed.

use super::*;

/// Prints what is off, and a last line.
const SCRIPT: &str = r#"
manual_seed(5);
let real = |t| if t.is_complex() { view_as_real(t) } else { t };
let off = |a, b| {
    if a.shape != b.shape || a.dtype != b.dtype { return INF; }
    let [a, b] = [real.call(a).cpu().double(), real.call(b).cpu().double()];
    ((a - b).abs().max() / (1.0 + b.abs().max())).item()
};
let same = |name, f, x, bound| {
    let [there, here] = [f.call(x.to("cuda:0")), f.call(x)];
    if there.device != "cuda:0" { print(`${name}: on ${there.device}`); }
    let found = off.call(there, here);
    if !(found <= bound) { print(`${name}: off by ${found}`); }
};
let one = #{
    fft: |x, p| fft::fft(x, p), ifft: |x, p| fft::ifft(x, p), rfft: |x, p| fft::rfft(real.call(x).select(-1, 0), p),
    irfft: |x, p| fft::irfft(x, p), hfft: |x, p| fft::hfft(x, p), ihfft: |x, p| fft::ihfft(real.call(x).select(-1, 0), p),
    real: |x, p| fft::fft(real.call(x).select(-1, 1), p), inverse: |x, p| fft::ifft(real.call(x).select(-1, 1), p),
};
let many = #{
    fftn: |x, p| fft::fftn(x, p), ifftn: |x, p| fft::ifftn(x, p), rfftn: |x, p| fft::rfftn(real.call(x).select(-1, 0), p),
    irfftn: |x, p| fft::irfftn(x, p), hfftn: |x, p| fft::hfftn(x, p), ihfftn: |x, p| fft::ihfftn(real.call(x).select(-1, 0), p),
    real: |x, p| fft::fftn(real.call(x).select(-1, 1), p), inverse: |x, p| fft::ifftn(real.call(x).select(-1, 1), p),
};
for dtype in ["c64", "c128"] {
    let bound = if dtype == "c64" { 2e-5 } else { 1e-11 };
    for n in [2, 3, 9, 16, 97, 100, 1000, 1021, 4096, 5003] {
        let rows = randn([3, n], #{dtype: dtype});
        for norm in ["forward", "backward", "ortho"] {
            for name in one.keys() {
                same.call(`${name} ${n} ${norm} ${dtype}`, |x| one[name].call(x, #{norm: norm}), rows, bound);
                same.call(`${name} ${n} cut ${dtype}`, |x| one[name].call(x, #{norm: norm, n: n - 1}), rows, bound);
                same.call(`${name} ${n} filled ${dtype}`, |x| one[name].call(x, #{norm: norm, n: n + 3}), rows, bound);
                same.call(`${name} ${n} columns ${dtype}`, |x| one[name].call(x.t(), #{norm: norm, dim: 0}), rows, bound);
            }
        }
    }
    let x = randn([5, 12, 10, 14], #{dtype: dtype});
    for dims in [[0], [1], [2], [3], [0, 1], [2, 3], [1, 3], [3, 1], [1, 2, 3], [2, 0, 3], [0, 1, 2], [0, 1, 2, 3]] {
        for name in many.keys() {
            let f = |x| many[name].call(x, #{dim: dims, norm: "ortho"});
            same.call(`${name} ${dims} ${dtype}`, f, x, bound);
            same.call(`${name} ${dims} permuted ${dtype}`, |x| f.call(x.permute([2, 0, 3, 1])), x, bound);
            same.call(`${name} ${dims} narrow ${dtype}`, |x| f.call(x[1.., 1..12, .., 1..14]), x, bound);
            same.call(`${name} ${dims} expanded ${dtype}`, |x| f.call(x[0..1].expand([4, 12, 10, 14])), x, bound);
            same.call(`${name} ${dims} flipped ${dtype}`, |x| f.call(x.flip(-1)), x, bound);
        }
        let sizes = dims.map(|dim| x.shape[dim] + if dim % 2 == 0 { 3 } else { -3 });
        for name in many.keys() {
            same.call(`${name} ${dims} to ${sizes} ${dtype}`, |x| many[name].call(x, #{dim: dims, s: sizes}), x, bound);
        }
    }
}
// More plans than are kept, twice.
for round in 0..2 {
    for n in 2..600 { same.call(`plan ${n}`, |x| fft::fft(x, #{n: n}), ones([2, 8], #{dtype: "c64"}), 2e-5); }
}
// The same steps again and again, which become a graph.
let [x, y] = [randn([64, 256], #{device: "cuda:0"}), ()];
for step in 0..40 {
    y = fft::irfft(fft::rfft(x) * 0.5, 256) * 2.0;
    y = fft::ifft2(fft::fft2(y)).real;
    if step % 10 == 9 { let found = off.call(y, x); if !(found <= 2e-5) { print(`step ${step}: off by ${found}`); } }
}
print("done");
"#;

#[test]
fn transforms_are_the_cpus_with_the_library_and_without() {
    if gpu().is_none() {
        return;
    }
    for hidden in ["", "Fft"] {
        let (found, complaint, status) = run(&[], &[("TSCRIPT_TEST_HIDE", hidden)], SCRIPT);
        assert_eq!((&*found, status), ("done\n", 0), "without {hidden:?}: {complaint}");
    }
}

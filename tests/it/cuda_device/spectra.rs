//! Fourier transforms on the GPU beside those of the CPU: each transform, lengths of every kind, gradients; windows that are
//! replayed; what a transform costs is told.

use super::*;

/// Prints for each transform and length how far the results, and their gradients, are from the CPU's, over the largest
/// number; and a last line.
const SCRIPT: &str = r#"
let waves = |shape, dtype| {
    let n = shape.reduce(|a, b| a * b, 1);
    let t = arange(n, #{dtype: "f64"});
    ((t * 1.37 + 0.2).sin() * 3.1).sin().reshape(shape).to(dtype)
};
let complex_waves = |shape, dtype| complex(waves.call(shape, dtype), waves.call(shape, dtype).flip(0));
let real = |t| if t.is_complex() { view_as_real(t) } else { t };
let off = |a, b| {
    let [a, b] = [real.call(a).cpu().double(), real.call(b).cpu().double()];
    if a.shape != b.shape { return INF; }
    if b.numel() == 0 { return 0.0; }
    ((a - b).abs().max() / (1.0 + b.abs().max())).item()
};
let count = 0;
let same = |name, f, x, bound| {
    let here = x.clone().requires_grad_();
    let there = x.to("cuda:0").requires_grad_();
    let [y, z] = [f.call(here), f.call(there)];
    if z.device != "cuda:0" { print(`${name}: on ${z.device}`); }
    let loss = |t| { let p = real.call(t); (p * p * p).sum() };
    loss.call(y).backward();
    loss.call(z).backward();
    let found = [off.call(z.detach(), y.detach()), off.call(there.grad, here.grad)];
    for one in found { if !(one <= bound) { print(`${name}: off by ${found}`); break; } }
};
for dtype in ["f32", "f64"] {
    let bound = if dtype == "f32" { 2e-5 } else { 1e-11 };
    for n in [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 30, 34, 97, 128, 250, 256, 1000, 1021, 1024, 2048, 3000, 4096, 5003, 6561, 65536, 65537] {
        let rows = if n > 5000 { 2 } else { 7 };
        let [x, z] = [waves.call([rows, n], dtype), complex_waves.call([rows, n], dtype)];
        same.call(`fft ${dtype} ${n}`, |x| fft::fft(x), z, bound);
        same.call(`fft, real, ${dtype} ${n}`, |x| fft::fft(x), x, bound);
        same.call(`ifft ${dtype} ${n}`, |x| fft::ifft(x, #{norm: "ortho"}), z, bound);
        same.call(`rfft ${dtype} ${n}`, |x| fft::rfft(x, #{norm: "ortho"}), x, bound);
        same.call(`irfft ${dtype} ${n}`, |x| fft::irfft(x, n), z, bound);
        same.call(`hfft ${dtype} ${n}`, |x| fft::hfft(x, #{n: n, norm: "ortho"}), z, bound);
        same.call(`ihfft ${dtype} ${n}`, |x| fft::ihfft(x), x, bound);
        same.call(`dim 0 ${dtype} ${n}`, |x| fft::fft(x, #{dim: 0, norm: "ortho"}), z.t(), bound);
        same.call(`cut ${dtype} ${n}`, |x| fft::fft(x, #{n: n - n.floor_divide(3), norm: "ortho"}), z, bound);
        same.call(`filled up ${dtype} ${n}`, |x| fft::rfft(x, #{n: n + n.floor_divide(3) + 1, norm: "ortho"}), x, bound);
    }
    let [x, z] = [waves.call([3, 12, 10, 14], dtype), complex_waves.call([3, 12, 10, 14], dtype)];
    let many = #{
        fft2: |x| fft::fft2(x), ifft2: |x| fft::ifft2(x), irfft2: |x| fft::irfft2(x), hfft2: |x| fft::hfft2(x),
        fftn: |x| fft::fftn(x, #{norm: "ortho"}), ifftn: |x| fft::ifftn(x), irfftn: |x| fft::irfftn(x),
        hfftn: |x| fft::hfftn(x, #{norm: "ortho"}), some: |x| fft::fftn(x, #{s: [20, 7], dim: [3, 1]}),
        strides: |x| fft::fft2(x.permute([3, 1, 0, 2])[.., 1..9]), shift: |x| fft::fftshift(fft::fft(x)),
    };
    for name in many.keys() { same.call(`${name} ${dtype}`, many[name], z, bound); }
    let many = #{
        rfft2: |x| fft::rfft2(x), rfftn: |x| fft::rfftn(x, #{norm: "ortho"}), ihfft2: |x| fft::ihfft2(x), ihfftn: |x| fft::ihfftn(x),
        rfft2_dims: |x| fft::rfft2(x, #{s: [9, 16], dim: [0, 2]}),
        stft: |x| stft(x.reshape([-1, 140]), 32, #{window: hann_window(32).to(x.dtype).to(x.device), return_complex: true}),
        back: |x| {
            let w = (hann_window(32) + 0.1).to(x.dtype).to(x.device);
            istft(stft(x.reshape([-1, 140]), 32, #{window: w, return_complex: true}), 32, #{window: w, length: 140})
        },
    };
    for name in many.keys() { same.call(`${name} ${dtype}`, many[name], x, bound); }
}
// The same window again and again.
let x = waves.call([4, 5000], "f32");
let [a, b] = [x, x.to("cuda:0")];
for i in 0..20 {
    a = fft::irfft(fft::rfft(a) * 0.9, 5000) + 0.1;
    b = fft::irfft(fft::rfft(b) * 0.9, 5000) + 0.1;
    synchronize();
}
if !(off.call(b, a) < 1e-5) { print(`again and again: off by ${off.call(b, a)}`); }
print("done");
"#;

#[test]
fn transforms_are_those_of_the_cpu() {
    if gpu().is_none() {
        return;
    }
    let (out, complaints, status) = run(&[], &[], SCRIPT);
    assert_eq!((out.trim_end(), status), ("done", 0), "{out}\n{complaints}");
}

/// Told, never tested.
#[test]
fn what_transforms_cost() {
    if gpu().is_none() {
        return;
    }
    let script = r#"
    for shape in [[4096, 256], [1024, 1000], [256, 4096], [16, 65536], [1024, 1024], [1, 1048576], [64, 1021]] {
        let x = randn(shape).to("cuda:0");
        let z = complex(x, x);
        for [name, f] in [["rfft", || fft::rfft(x)], ["fft", || fft::fft(z)], ["fft2", || fft::fft2(z)]] {
            for i in 0..5 { f.call(); }
            synchronize();
            let start = timestamp();
            for i in 0..50 { f.call(); }
            synchronize();
            print(`${name} ${shape}: ${start.elapsed * 1e6 / 50.0} us`);
        }
    }"#;
    let (out, complaints, status) = run(&[], &[], script);
    eprintln!("{out}");
    assert_eq!(status, 0, "{complaints}");
}

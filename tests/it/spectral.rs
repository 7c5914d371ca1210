//! Spectra, windows and frequencies against PyTorch. The cases and their generator: `tests/fixtures/spectral.py`.

use super::scripts::{builder, folder, none, run};
use serde_json::Value;
use std::fmt::Write;

/// A line that prints a tensor as JSON, numbers with all digits.
fn shown(name: &str, expected: &Value) -> String {
    let is_complex = expected["dtype"].as_str().is_some_and(|dtype| dtype.starts_with('c'));
    let parts = if is_complex { format!("view_as_real({name})") } else { name.to_string() };
    format!("print(to_json([`${{{name}.dtype}}`, {name}.shape, {parts}.flatten().to_array()]));\n")
}

fn script(case: &Value) -> String {
    let (setup, code) = (case["setup"].as_str().expect("a text"), case["code"].as_str().expect("a text"));
    let mut text = format!("{setup}\n");
    let differentiated = case.get("grad").is_some();
    if differentiated {
        text += "x.requires_grad_();\n";
        text += "fn parts(t) { if t.is_complex() { view_as_real(t) } else { t } }\n";
        text += "fn squares(t, f) { let p = parts(t); let w = f.call(arange(p.numel(), #{dtype: p.dtype})).reshape(p.shape); \
                 (p * p * w).sum() }\n";
    }
    let _ = write!(text, "let y = {code};\n{}", shown("y", &case["result"]));
    if differentiated {
        text += "let g = grad(squares(y, |a| cos(a)), [x], #{create_graph: true})[0];\n";
        text += "let s = grad(squares(g, |a| sin(a)), [x])[0];\n";
        text += &shown("g", &case["grad"]);
        text += &shown("s", &case["second"]);
    }
    text
}

/// What differs between a printed tensor and the expected one.
fn difference(line: &str, expected: &Value) -> Option<String> {
    let got: Value = serde_json::from_str(line).ok()?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let numbers = |value: &Value| list(value).iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect::<Vec<f64>>();
    let (a, b) = (numbers(&got[2]), numbers(&expected["data"]));
    let size = b.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    let single = matches!(expected["dtype"].as_str(), Some("f32" | "c64"));
    let bound = size * if single { 2e-5 } else { 1e-11 };
    let same = got[0] == expected["dtype"] && got[1] == expected["shape"] && a.len() == b.len();
    // Not: `>`, which NaN passes.
    let near = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= bound);
    (!same || !near).then(|| format!("gives {line}\nin PyTorch {expected}"))
}

fn check(file: &str, least: usize) {
    let text = std::fs::read_to_string(folder("fixtures/spectral").join(file)).expect("the cases");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(cases.len() >= least, "only {} cases", cases.len());
    let mut problems = Vec::new();
    for case in &cases {
        let ran = run(builder(), "spectral", &script(case));
        let code = &case["code"];
        if let Err(error) = ran.result {
            problems.push(format!("{code}: {error}"));
            continue;
        }
        let wanted = ["result", "grad", "second"].into_iter().filter_map(|name| Some((name, case.get(name)?)));
        for ((name, wanted), line) in wanted.zip(ran.printed.lines()) {
            problems.extend(difference(line, wanted).map(|found| format!("{code}, {name}: {found}")));
        }
    }
    none(problems);
}

#[test]
fn windows_and_frequencies_are_pytorchs() {
    check("frequencies.jsonl", 200);
}

#[test]
fn transforms_and_their_gradients_are_pytorchs() {
    check("transforms.jsonl", 400);
}

/// What a script prints, without its line end.
fn printed(name: &str, script: &str) -> String {
    let ran = run(builder(), name, script);
    assert!(ran.result.is_ok(), "{script}\n{:?}", ran.result.err());
    ran.printed.trim_end().to_string()
}

/// For each of so many lines that a number is below a bound.
fn small(name: &str, script: &str, bound: f64) {
    let text = printed(name, script);
    assert!(!text.is_empty());
    for line in text.lines() {
        let (what, off) = line.rsplit_once(' ').expect("a name and a number");
        let off: f64 = off.parse().unwrap_or(f64::NAN);
        // Not: `>`, which NaN passes.
        let near = off.abs() <= bound;
        assert!(near, "{what} is off by {off}");
    }
}

#[test]
fn there_and_back() {
    small(
        "round_trips",
        r#"
        fn off(a, b) { if a.numel() == 0 { return 0.0; } (a - b).abs().max().item() }
        for n in [1, 2, 3, 5, 8, 17, 30, 97, 128, 250, 1021, 4096, 5003] {
            let x = randn([3, n], #{dtype: "f64"});
            let z = complex(x, randn([3, n], #{dtype: "f64"}));
            for norm in ["backward", "ortho", "forward"] {
                let norm = #{norm: norm};
                print(`fft ${n} ${off(fft::ifft(fft::fft(z, norm), norm), z)}`);
                print(`rfft ${n} ${off(fft::irfft(fft::rfft(x, norm), #{n: n} + norm), x)}`);
                print(`hfft ${n} ${off(fft::hfft(fft::ihfft(x, norm), #{n: n} + norm), x)}`);
                print(`parts ${n} ${off(fft::fft(x, norm).narrow(1, 0, n.floor_divide(2) + 1), fft::rfft(x, norm))}`);
            }
        }
        let x = randn([4, 6, 5, 7], #{dtype: "f64"});
        let z = complex(x, x.flip(0)).permute([3, 1, 0, 2]);
        print(`fftn ${off(fft::ifftn(fft::fftn(z)), z)}`);
        print(`fft2 ${off(fft::fft2(z, #{dim: [2, 0]}), fft::fft(fft::fft(z, #{dim: 2}), #{dim: 0}))}`);
        print(`strides ${off(fft::fft2(z[.., 1..5].transpose(0, 1)), fft::fft2(z[.., 1..5].transpose(0, 1).contiguous()))}`);
        print(`broadcast ${off(fft::rfft(x[0..1].expand([3, 6, 5, 7]))[2], fft::rfft(x[0]))}`);
        print(`rfftn ${off(fft::irfftn(fft::rfftn(x), #{s: x.shape}), x)}`);
        print(`irfft2 ${off(fft::irfft2(fft::rfft2(x), #{s: [5, 7]}), x)}`);
        print(`shift ${off(fft::ifftshift(fft::fftshift(z)), z)}`);
        for hop in [3, 4, 5] {
            let w = hann_window(16, #{dtype: "f64"}) + 0.1;
            let x = randn([2, 100], #{dtype: "f64"});
            let y = istft(stft(x, 16, #{hop_length: hop, window: w, return_complex: true}), 16,
                #{hop_length: hop, window: w, length: 100});
            print(`istft ${off(y, x)}`);
        }
        for pad in ["reflect", "constant", "replicate", "circular"] {
            let w = hann_window(8, #{dtype: "f64"});
            let z = complex(randn([2, 20], #{dtype: "f64"}), randn([2, 20], #{dtype: "f64"}));
            let s = stft(z, 8, #{window: w, pad_mode: pad, return_complex: true});
            print(`istft, complex, ${off(istft(s, 8, #{window: w, onesided: false, return_complex: true}), z)}`);
            let frame = z[.., 8..16] * w;
            print(`stft, complex, ${off(s.select(2, 6), fft::fft(frame))}`);
        }
        "#,
        1e-10,
    );
}

/// Directional derivatives of sums of weighted squares against differences, of first and second gradients.
#[test]
fn gradients_are_slopes() {
    small(
        "slopes",
        r#"
        let real = |t| if t.is_complex() { view_as_real(t) } else { t };
        let waves = |t| (arange(t.numel(), #{dtype: "f64"}) * 0.7).sin().reshape(t.shape);
        let sum = |t| { let p = real.call(t); (waves.call(p) * p * p * p).sum() };
        let f = |f, x| sum.call(f.call(x));
        let slope = |f, x| grad(f.call(x), [x], #{create_graph: true})[0];
        let x = randn([3, 12], #{dtype: "f64"});
        let z = complex(x, randn([3, 12], #{dtype: "f64"}));
        let window = hann_window(8, #{dtype: "f64"});
        let all = #{
            fft: [|x| fft::fft(x, #{n: 10, norm: "ortho"}), z], ifft: [|x| fft::ifft(x, #{n: 15, dim: 0}), z],
            fft_of_real: [|x| fft::fft(x), x], rfft: [|x| fft::rfft(x, #{n: 9}), x], irfft: [|x| fft::irfft(x, 17), z],
            irfft_of_real: [|x| fft::irfft(x), x], hfft: [|x| fft::hfft(x), z], ihfft: [|x| fft::ihfft(x, #{norm: "forward"}), x],
            rfft2: [|x| fft::rfft2(x, #{s: [4, 7]}), x], irfftn: [|x| fft::irfftn(x, #{s: [5, 8]}), z],
            fftn: [|x| fft::fftn(x), z], roll: [|x| fft::fftshift(fft::fft(x)), z],
            stft: [|x| stft(x, 8, #{window: window, return_complex: true}), x],
            stft_of_complex: [|x| stft(x, 8, #{window: window, return_complex: true}), z],
            istft_complex: [|x| istft(fft::fft(x, #{dim: 0, n: 8}), 8, #{window: window, onesided: false, return_complex: true}), z],
            power: [|x| stft(x, 8, #{window: window, return_complex: true}).abs(), x],
            istft: [|x| istft(fft::fft(x, #{dim: 0, n: 5}), 8, #{window: window}), z],
        };
        for name in all.keys() {
            let [g, x] = all[name];
            let h = 1e-5;
            let step = waves.call(real.call(x));
            let step = if x.is_complex() { view_as_complex(step) } else { step };
            let along = |t| (real.call(t) * real.call(step)).sum();
            let moved = |s| (x + s * step).detach().requires_grad_();
            let [up, down, here] = [moved.call(h), moved.call(-h), moved.call(0.0)];
            let value = |x| sum.call(g.call(x));
            let first = |x| along.call(grad(value.call(x), [x], #{create_graph: true})[0]);
            let slope = first.call(here);
            let expected = (value.call(up) - value.call(down)) / (2.0 * h);
            print(`${name} ${((slope - expected) / (1.0 + expected.abs())).item()}`);
            let second = along.call(grad(first.call(here), [here])[0]);
            let expected = (first.call(up) - first.call(down)) / (2.0 * h);
            print(`${name}, second, ${((second - expected) / (1.0 + expected.abs())).item()}`);
        }
        "#,
        1e-6,
    );
}

/// Sample by sample, and all samples at once.
#[test]
fn function_transforms_go_through() {
    small(
        "samples",
        r#"
        fn off(a, b) { if a.shape != b.shape { return 9.0; } (a - b).abs().max().item() }
        let x = randn([5, 3, 8], #{dtype: "f64"});
        let each = |f| stack(x.unbind(0).map(f));
        for f in [
            |x| fft::rfft(x).abs(), |x| fft::fft(x, #{dim: 0}).real, |x| fft::irfft2(fft::rfft2(x), #{dim: [0, 1]}),
            |x| fft::fftn(x).imag, |x| fft::fftshift(x), |x| stft(x, 4, #{return_complex: true}).abs(),
            |x| func::grad(|x| fft::rfft(x).abs().square().sum())(x),
        ] {
            print(`vmap ${off(func::vmap(f)(x), each.call(f))}`);
            print(`in_dims ${off(func::vmap(f, #{in_dims: 1})(x.transpose(0, 1)), each.call(f))}`);
        }
        let [x, t] = [x[0, 0], x[1, 1]];
        let f = |x| fft::fft(x).abs();
        let jacobian = func::jacrev(f)(x);
        print(`jacobians ${off(func::jacfwd(f)(x), jacobian)}`);
        print(`jvp ${off(func::jvp(f, [x], [t])[1], jacobian @ t)}`);
        "#,
        1e-10,
    );
}

#[test]
fn simulated_devices_compute_the_same() {
    let script = r#"
        let x = randn([4, 30]).to("cuda:0");
        let y = fft::rfft(x);
        print(y.device, fft::irfft(y).device, stft(x, 8, #{return_complex: true}).device);
        print((fft::irfft(y).cpu() - x.cpu()).abs().max().item() < 1e-5);
    "#;
    let ran = run(builder().simulate_gpus(1), "simulated", script);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err());
    assert_eq!(ran.printed.trim_end(), "cuda:0 cuda:0 cuda:0\ntrue");
}

#[test]
fn errors_are_those_of_pytorch() {
    for (code, call) in [
        ("E0201", "fft::fft(tensor(1.0))"),
        ("E0206", "fft::fft(ones([0]))"),
        ("E0206", "fft::irfft(ones([1]))"),
        ("E0206", "fft::fft(ones([3]), -1)"),
        ("E0206", "fft::fft(ones([3]), #{norm: \"other\"})"),
        ("E0209", "fft::fft(ones([3]), #{dim: 1})"),
        ("E0202", "fft::fft(ones([3]).half())"),
        ("E0202", "fft::fft(ones([3]).bfloat16())"),
        ("E0202", "fft::rfft(complex(ones([3]), ones([3])))"),
        ("E0202", "fft::ihfft(complex(ones([3]), ones([3])))"),
        ("E0206", "fft::rfftn(ones([3]), #{dim: []})"),
        ("E0206", "fft::fftn(ones([2, 3]), #{dim: [0, -2]})"),
        ("E0206", "fft::fftn(ones([2, 3]), #{s: [2, 2], dim: [0]})"),
        ("E0206", "fft::fftn(ones([2, 3]), #{s: [2, 2, 2]})"),
        ("E0206", "fft::fft2(ones([2, 3]), #{s: [0, 3]})"),
        ("E0209", "fft::fft2(ones([3]))"),
        ("E0205", "stft(ones([16]), 8)"),
        ("E0206", "stft(ones([16]), 8, #{hop_length: 0, return_complex: true})"),
        ("E0206", "stft(ones([16]), 8, #{win_length: 9, return_complex: true})"),
        ("E0201", "stft(ones([16]), 8, #{window: ones([7]), return_complex: true})"),
        ("E0201", "stft(ones([2, 2, 16]), 8, #{return_complex: true})"),
        ("E0206", "stft(complex(ones([16]), ones([16])), 8, #{onesided: true})"),
        ("E0202", "istft(ones([5, 3]), 8)"),
        ("E0201", "istft(complex(ones([4, 3]), ones([4, 3])), 8)"),
        ("E0206", "istft(complex(ones([5, 3]), ones([5, 3])), 8, #{window: zeros([8])})"),
        ("E0206", "istft(complex(ones([5, 3]), ones([5, 3])), 8, #{hop_length: 9})"),
    ] {
        let ran = run(builder(), "errors", call);
        let error = ran.result.err().unwrap_or_else(|| panic!("{call} is no error"));
        assert_eq!(error.code().to_string(), code, "{call}: {error}");
    }
}

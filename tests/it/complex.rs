//! Complex tensors against PyTorch's values and gradients, on the CPU and on simulated GPUs; and every row of the table
//! with complex operands, which gives the right kind of answer or refuses with a code.

use super::scripts::{builder, none, run, with_gpus};
use serde_json::Value;
use tscript::internals::op::table;
use tscript::{Builder, Session};

fn fixture() -> Value {
    serde_json::from_str(include_str!("../fixtures/complex.json")).expect("JSON")
}

/// The numbers of nested lists, in order; true is 1.
fn flat(value: &Value, into: &mut Vec<f64>) {
    match value {
        Value::Array(list) => list.iter().for_each(|item| flat(item, into)),
        Value::Bool(truth) => into.push(*truth as u8 as f64),
        number => into.push(number.as_f64().unwrap_or(f64::NAN)),
    }
}

fn alike(got: &Value, expected: &Value) -> bool {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    flat(got, &mut a);
    flat(expected, &mut b);
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1.0))
}

/// The tensors of the fixture as statements.
fn inputs(fixture: &Value, device: &str) -> String {
    let mut text = String::from("fn shown(t) { if t.is_complex() { view_as_real(t).tolist() } else { t.tolist() } }\n");
    for (name, value) in fixture["inputs"].as_object().expect("a map") {
        let of = format!("tensor({value}, #{{dtype: \"f64\", device: \"{device}\"}})");
        let made = if name == "x" { of } else { format!("view_as_complex({of})") };
        text += &format!("let {name} = {made}.detach().requires_grad_();\n");
    }
    text
}

/// What is wrong with the calls on one device.
fn wrong(make: impl Fn() -> Option<Builder>, device: &str) -> Vec<String> {
    let fixture = fixture();
    let start = inputs(&fixture, device);
    let mut problems = Vec::new();
    for case in fixture["cases"].as_array().expect("a list") {
        let call = case["call"].as_str().expect("a text");
        if device != "cpu" && call.contains("tensor([") {
            // The index would lie on the CPU.
            continue;
        }
        let grads = case["grads"].as_object().expect("a map");
        let mut text = start.clone();
        text += &format!("let y = {call};\nprint(shown(y.detach()));\nprint(y.dtype);\n");
        if !grads.is_empty() {
            text += "let parts = if y.is_complex() { view_as_real(y) } else { y };\nlet flat = parts.reshape([-1]);\n\
                let weights = (arange(1, flat.numel() + 1, #{device: flat.device}) * 0.25).to(\"f64\");\n\
                (flat * weights).sum().backward();\n";
            grads.keys().for_each(|name| text += &format!("print(shown({name}.grad));\n"));
        }
        let Some(builder) = make() else { return Vec::new() };
        let ran = run(builder, "complex", &text);
        if let Err(error) = &ran.result {
            problems.push(format!("{call}: {} {}", error.code(), error.message()));
            continue;
        }
        let lines: Vec<Value> =
            ran.printed.lines().map(|line| serde_json::from_str(line).unwrap_or(line.into())).collect();
        let dtype = case["dtype"].as_str().expect("a text");
        let short = dtype.replace("complex", "c").replace("float", "f").replace("int", "i");
        if lines[1] != short.as_str() {
            problems.push(format!("{call}: dtype {} instead of {short}", lines[1]));
        }
        if !alike(&lines[0], &case["value"]) {
            problems.push(format!("{call}: {} instead of {}", lines[0], case["value"]));
        }
        for ((name, expected), got) in grads.iter().zip(&lines[2..]) {
            if !alike(got, expected) {
                problems.push(format!("{call}: gradient of {name} {got} instead of {expected}"));
            }
        }
    }
    problems
}

#[test]
fn values_and_gradients_are_pytorchs() {
    none(wrong(|| Some(builder()), "cpu"));
}

#[test]
fn on_gpus_too() {
    none(wrong(|| with_gpus(builder(), 1), "cuda:0"));
}

/// Each row is called with complex tensors in place of its tensors. Those without a rule refuse, by a code and not a
/// panic; none of them gives an answer that only looks at real numbers.
#[test]
fn every_row_answers_or_refuses() {
    let mut problems = Vec::new();
    let mut session = Session::builder().output(|_| {}).build().expect("a session");
    let start = "let z = view_as_complex(tensor([[[0.5, -1.0], [2.0, 0.25]], [[-0.75, 1.5], [1.0, -2.0]]]));";
    session.run_str("start", start).expect("it runs");
    let mut refused = 0;
    let names: std::collections::BTreeSet<&str> =
        table::all().map(|op| op.name).filter(|name| !name.starts_with('_')).collect();
    for name in names {
        for call in ["z", "z, z", "z, z, z", "z, 1", "[z, z]"] {
            let text = format!("let y = {name}({call}); if type_of(y) == \"tensor\" {{ y.to_string(); }}");
            match session.run_str("case", &text) {
                Ok(()) => {}
                Err(error) if error.code() == "E0806" || error.message().contains("panic") => {
                    problems.push(format!("{name}({call}): {} {}", error.code(), error.message()));
                }
                Err(error) => refused += (error.code() == "E0202") as usize,
            }
        }
    }
    assert!(refused > 200, "only {refused} calls were refused for their dtype");
    none(problems);
}

fn code(text: &str) -> String {
    let mut session = Session::builder().output(|_| {}).build().expect("a session");
    session.run_str("case", text).expect_err(text).code()
}

/// What has no meaning for complex numbers.
#[test]
fn ordered_and_real_operations_refuse() {
    for call in [
        "z < z",
        "z.max()",
        "z.clamp(0, 1)",
        "z.floor()",
        "z.relu()",
        "z.sort()",
        "z.erf()",
        "z.sign()",
        "z % 2",
        "z.round()",
        "z.float()",
        "imag(ones([2]))",
        "z.argmax()",
        "softmax(z, 0)",
        "z.to(\"f32\")",
        "sum(z, #{dtype: \"f32\"})",
        "z.histc()",
        "z.median()",
        "complex(ones([2]), ones([2], #{dtype: \"f64\"}))",
    ] {
        assert_eq!(code(&format!("let z = complex(1, 2); {call}")), "E0202", "{call}");
    }
    assert_eq!(code("let z = complex(1, 2).requires_grad_(); (z * z).backward()"), "E0704");
}

#[test]
fn they_print_as_in_pytorch() {
    let text = "print(complex(tensor([1.0, -2.5]), tensor([-2.0, 1.25]))); print(complex(1, 2)); print(complex(1, 2).to(\"c128\"));
        print(complex(zeros([0]), zeros([0]))); print(view_as_complex(tensor([[[1.0, 2.0]], [[3.0, -4.0]]])));
        print(complex(tensor([1e-6, 1.0]), tensor([1.0, 1.0])));";
    let ran = run(builder(), "print", text);
    assert!(ran.result.is_ok());
    let expected = "tensor([ 1.0000-2.0000j, -2.5000+1.2500j])\ntensor(1.+2.j)\ntensor(1.+2.j, dtype=c128)\n\
        tensor([], dtype=c64)\ntensor([[1.+2.j],\n        [3.-4.j]])\ntensor([1.0000e-06+1.j, 1.0000e+00+1.j])\n";
    assert_eq!(ran.printed, expected);
}

/// Writes go to the memory of the parts; where gradients would be lost they are refused.
#[test]
fn parts_share_memory() {
    let text = "let z = complex(zeros([2]), ones([2])); z.real.fill_(3); z.imag[0] = 7; print(z); z[1] = 5; print(z);
        z.mul_(complex(0, 1)); print(z); z += 1; print(z); view_as_real(z).zero_(); print(z);";
    let ran = run(builder(), "parts", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err().map(|error| error.message().to_string()));
    let expected = "tensor([3.+7.j, 3.+1.j])\ntensor([3.+7.j, 5.+0.j])\ntensor([-7.+3.j,  0.+5.j])\n\
        tensor([-6.+3.j,  1.+5.j])\ntensor([0.+0.j, 0.+0.j])\n";
    assert_eq!(ran.printed, expected);
    let tracked = "let w = ones([2], #{requires_grad: true}); let z = complex(zeros([2]), ones([2])); z.real.copy_(w);
        z.imag.mul_(2); (z * z).real.sum().backward(); print(w.grad);";
    assert_eq!(run(builder(), "tracked", tracked).printed, "tensor([2., 2.])\n");
}

/// What lies at odd and at even places is written in one pass, also where one is made of the other. Checked against PyTorch.
#[test]
fn parts_are_written_together() {
    let text = "let z = complex(tensor([1.0, 2.0]), tensor([4.0, 5.0])); let w = complex(tensor([1.0, -2.0]), tensor([0.5, 5.0]));
        z.mul_(w); print(z); z.add_(z * w); print(z); z.real.copy_(z.imag); z.imag.copy_(z.real + 1.0); print(z);
        let x = arange(6).float(); let a = x.as_strided([3], [2], 0); let b = x.as_strided([3], [2], 1);
        a.copy_(b * 2.0); b.add_(a); print(x);";
    for on in [builder(), with_gpus(builder(), 1).expect("a GPU").device("cuda")] {
        let ran = run(on, "together", text);
        assert!(ran.result.is_ok(), "{:?}", ran.result.err().map(|error| error.message().to_string()));
        let expected = "tensor([ -1.+4.5000j, -29.+0.0000j])\ntensor([-4.2500+8.5000j, 29.0000-145.0000j])\n\
            tensor([8.5000+9.5000j, -145.0000-144.0000j])\ntensor([ 2.,  3.,  6.,  9., 10., 15.])\n";
        let plain = |text: &str| super::golden::without_device(text).replace(' ', "");
        assert_eq!(plain(&ran.printed), plain(expected));
    }
}

/// The second derivative of `|z²|²` along a real parameter.
#[test]
fn second_gradients_are_right() {
    let text = "let t = tensor(0.7, #{dtype: \"f64\", requires_grad: true}); let z = complex(t, t * t); let y = (z ** 2).abs().square();
        let g = grad([y], [t], #{create_graph: true})[0]; let h = grad([g], [t])[0]; print(g.item()); print(h.item());";
    let ran = run(builder(), "second", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err().map(|error| error.message().to_string()));
    let got: Vec<f64> = ran.printed.lines().map(|line| line.parse().expect("a number")).collect();
    // (t² + t⁴)² = t⁴ + 2 t⁶ + t⁸.
    let t = 0.7f64;
    let expected =
        [4.0 * t.powi(3) + 12.0 * t.powi(5) + 8.0 * t.powi(7), 12.0 * t.powi(2) + 60.0 * t.powi(4) + 56.0 * t.powi(6)];
    assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-10), "{got:?} {expected:?}");
}

/// Steps and clipping see both parts as parameters; a complex layer takes complex tensors.
#[test]
fn optimizers_move_them() {
    let text = "import \"optim\" as optim; import \"nn\" as nn; let goal = complex(1, -2);
        for make in [|w| optim::adam([w], #{lr: 0.1}), |w| optim::sgd([w], #{lr: 0.1, momentum: 0.5}), |w| optim::rmsprop([w], #{lr: 0.05})] {
            let w = complex(zeros([3]), ones([3])).requires_grad_();
            let opt = make(w);
            for i in 0..300 { opt.zero_grad(); (w - goal).abs().square().sum().backward(); nn::clip_grad_norm_([w], 4.0); opt.step(); }
            print((w - goal).abs().max() < 0.1);
        }
        print(nn::linear(2, 3).to(\"c64\")(complex(ones([2]), ones([2]))).dtype);";
    let ran = run(builder(), "optimizers", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err().map(|error| error.message().to_string()));
    assert_eq!(ran.printed, "tensor(true)\ntensor(true)\ntensor(true)\nc64\n");
}

/// Complex numbers inside of arrays, as conditions and as what `item` and `tolist` give.
#[test]
fn numbers_are_tensors() {
    let text = "let z = tensor([complex(1, 2), 3.5]); print(z, z.tolist()[0] * 2, z[0].item().imag);
        print(if complex(0, 1) { 1 } else { 0 }, full([2], complex(0, 1)), zeros([1], #{dtype: \"c64\"}).add(z[0], #{alpha: complex(0, 1)}));";
    let ran = run(builder(), "numbers", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err().map(|error| error.message().to_string()));
    let expected =
        "tensor([1.0000+2.j, 3.5000+0.j]) tensor(2.+4.j) tensor(2.)\n1 tensor([0.+1.j, 0.+1.j]) tensor([-2.+1.j])\n";
    assert_eq!(ran.printed, expected);
    assert_eq!(code("tensor([complex(1, 2)], #{dtype: \"f32\"})"), "E0202");
    assert_eq!(code("full([2], complex(1, 2), #{dtype: \"f32\"})"), "E0202");
}

/// Decompositions put together again, whatever the shape; eigenvalues of real matrices, too.
#[test]
fn decompositions_are_whole() {
    let text = "manual_seed(3); fn near(a, b) { (a - b).abs().max().item() < 1e-9 }
        for shape in [[4, 4], [5, 3], [3, 5], [2, 3, 3], [1, 1]] {
            let z = randn(shape, #{dtype: \"c128\"});
            let s = svd(z, #{full_matrices: false}); print(near((s.U * s.S.unsqueeze(-2)) @ s.Vh, z));
            let f = svd(z); print(near(f.U.mH @ f.U, eye(f.U.shape[-1])), near(f.Vh @ f.Vh.mH, eye(f.Vh.shape[-1])));
            let q = qr(z); print(near(q.Q @ q.R, z), near(q.Q.mH @ q.Q, eye(q.Q.shape[-1])));
            let p = lu(z); print(near(p.P @ p.L @ p.U, z));
        }
        for n in [1, 2, 7, 20] {
            for dtype in [\"f64\", \"c128\"] {
                let a = randn([n, n], #{dtype: dtype}); let e = eig(a);
                print(near(a.to(\"c128\") @ e.eigenvectors, e.eigenvectors * e.eigenvalues));
            }
            let a = randn([n, n], #{dtype: \"c128\"}); let h = eigh(a + a.mH);
            print(near((h.eigenvectors * h.eigenvalues) @ h.eigenvectors.mH, a + a.mH));
        }
        let degenerate = zeros([4, 4], #{dtype: \"c128\"}); print(near(svd(degenerate).U.abs().sum(), tensor(4.0)));
        let twice = complex(eye(3, #{dtype: \"f64\"}), zeros([3, 3], #{dtype: \"f64\"})); print(near(eig(twice).eigenvalues, complex(1, 0)));";
    let ran = run(builder(), "decompositions", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err().map(|error| error.message().to_string()));
    assert!(!ran.printed.contains("false"), "{}", ran.printed);
}

#[test]
fn files_keep_them() {
    let folder = std::env::temp_dir().join(format!("tscript-complex-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = |name: &str| folder.join(name).display().to_string();
    for (dtype, name) in [("c64", "z.npy"), ("c128", "z.npy"), ("c64", "z.safetensors")] {
        let path = at(name);
        let text = format!(
            "let z = complex(tensor([1.0, 2.0]), tensor([3.0, -4.0])).to(\"{dtype}\"); let v = if \"{name}\" == \"z.npy\" {{ z }} \
             else {{ #{{z: z}} }}; save(\"{path}\", v); let y = load(\"{path}\"); let y = if \"{name}\" == \"z.npy\" {{ y }} else \
             {{ y.z }}; print(equal(y, z)); print(y.dtype);"
        );
        let ran = run(builder(), "files", &text);
        assert!(ran.result.is_ok(), "{:?}", ran.result.err().map(|error| error.message().to_string()));
        assert_eq!(ran.printed, format!("true\n{dtype}\n"));
    }
    std::fs::remove_dir_all(&folder).expect("it was made");
}

/// At infinities, and where one part is 0.
#[test]
fn functions_have_values_at_infinities() {
    let mut session = Session::builder().output(|_| {}).build().expect("a session");
    let start =
        "let z = complex(tensor([INF, -INF, 1.0, INF, -INF]), tensor([4.0, 1.0, INF, 0.0, -INF])); let h = PI() / 2;";
    for text in [
        "allclose(z.atan(), complex(tensor([h, -h, h, h, -h]), zeros([5])))",
        "allclose(z.atanh(), complex(zeros([5]), tensor([h, h, h, h, -h])))",
        "let y = z.exp()[3]; y.real.item() == INF && y.imag.item() == 0.0",
        "let y = z.expm1()[3]; y.real.item() == INF && y.imag.item() == 0.0",
    ] {
        assert!(session.eval::<bool>(&format!("{start} {text}")).expect(text), "{text}");
    }
}

#[test]
fn layouts_products_and_diagonals() {
    let mut session = Session::builder().output(|_| {}).build().expect("a session");
    let start = "let z = complex(tensor([[1.0, 2.0]]), tensor([[3.0, 4.0]]));";
    for text in [
        "let t = z.clone(); t.swapdims_(0, 1); t.shape == [2, 1]",
        "let t = z.clone(); t.swapaxes_(0, 1); t.shape == [2, 1]",
        "equal(z.kron(z), (z.reshape([2, 1]) * z).reshape([1, 4]))",
        "let f = complex(zeros([2, 2]), ones([2, 2])); f.fill_diagonal_(5); equal(f, complex(eye(2) * 5, 1 - eye(2)))",
    ] {
        assert!(session.eval::<bool>(&format!("{start} {text}")).expect(text), "{text}");
    }
}

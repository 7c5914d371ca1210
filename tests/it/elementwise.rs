//! Element-wise functions as text: each result is bit for bit that of the same operations written in the script, with the
//! same dtypes and gradients, on the CPU and on simulated GPUs; and kernels of CUDA text where no GPU runs them.

use super::cuda_text;
use super::scripts::folder;
use miette::Diagnostic as _;
use serde_json::Value;
use tscript::Session;

fn session() -> Session {
    Session::builder().simulate_gpus(2).build().expect("a session starts")
}

fn eval(text: &str) -> String {
    session().eval::<String>(text).unwrap_or_else(|error| format!("{error:#}"))
}

/// Parameters, text, arguments, and the same in the script's operations.
const SAME: &[(&str, &str, &str, &str)] = &[
    ("x, y -> z", "z = x * y + 1", "a, b", "a * b + 1"),
    ("x, y -> z", "z = x - y / 3 % 2", "a, b", "a - b / 3 % 2"),
    ("x -> z", "z = -x ** 2", "a", "-a ** 2"),
    ("x -> z", "z = 2 ** x", "a", "2 ** a"),
    ("x -> z", "z = 1 - x", "a", "1 - a"),
    ("x -> z", "float t = exp(-x); z = 1 / (1 + t)", "a", "1 / (1 + exp(-a))"),
    ("x, y -> z", "z = x > y ? x : y", "a, b", "where(a > b, a, b)"),
    ("x -> z", "z = 0 < x && x <= 1", "a", "logical_and(a > 0, a <= 1)"),
    ("x -> z", "z = x < 0 ? -1 : x > 1 ? 1 : 0", "a", "where(a < 0, -1, where(a > 1, 1, tensor(0)))"),
    ("x, y -> z", "z = max(x, y) - min(x, 0.5)", "a, b", "maximum(a, b) - minimum(a, tensor(0.5))"),
    ("x -> z", "z = erf(x) + log1p(fabs(x)) + pow(fabs(x), 1.5)", "a", "erf(a) + log1p(a.abs()) + a.abs().pow(1.5)"),
    ("x -> z", "z = clamp(x, -0.5, 0.5) + gelu(x)", "a", "a.clamp(-0.5, 0.5) + gelu(a)"),
    ("x, n -> z", "z = x * n", "a, 3", "a * 3"),
    ("x, n -> z", "z = x * (n + 1) * 2", "a, 2.5", "a * 3.5 * 2"),
    ("x, y -> z", "z = x + y", "a, c", "a + c"),
    ("x, y -> z", "z = x / y", "i, i", "i / i"),
    ("x -> z", "z = x % 3 << 1 | 1", "i", "((i % 3) << 1) | 1"),
    ("x -> z", "z = (x & 1) == 1 ^ x > 2", "i", "((i & 1) == 1) ^ (i > 2)"),
    ("x -> z", "z = ~x + !x", "i", "bitwise_not(i) + logical_not(i)"),
    ("x -> z", "z = (float) x / 2", "i", "i.float() / 2"),
    ("x -> z", "z = int(x * 3)", "a", "(a * 3).int()"),
    ("x -> f64 z", "z = x", "a", "a.double()"),
    ("T x, f32 y -> T z", "z = x * y", "d, b", "(d * b).to(d.dtype)"),
    ("x, y -> z", "z = x * y", "h, 0.1", "h * 0.1"),
    ("x, y -> z", "z = x * y; z += 1; z *= z", "a, b", "(a * b + 1) * (a * b + 1)"),
    ("x -> z", "/* half */ z = x * 0x10 // sixteen\n", "a", "a * 16"),
    ("x -> z", "z = x", "a", "a.clone()"),
    ("x, y -> z", "z = 2.5; z = y > 0 ? z : x", "a, b", "where(b > 0, 2.5, a)"),
    ("x -> z", "z = sqrt(2.0 * pi) * x * M_PI", "d", "d * 2.5066282746310002 * 3.141592653589793"),
    ("x -> z", "z = atan2(1.0, x)", "d", "atan2(tensor(1.0, #{dtype: \"f64\"}), d)"),
    ("x, y -> z", "z = x + y", "e, e", "e + e"),
    ("x, y -> z", "z = x * y", "s, 2", "s * 2"),
    ("x, y -> z", "z = x * y", "s, a", "s * a"),
];

const VARIABLES: &str = "let a = (arange(6).float().reshape([2, 3]) - 2.3) / 2; let b = a.flip(0) + 0.25;
     let c = tensor([0.5, 1.5, -2.0]); let d = a.double(); let h = a.half(); let i = arange(1, 7).reshape([2, 3]);
     let e = zeros([0, 3]); let s = tensor(1.5);";

#[test]
fn results_are_those_of_the_same_operations() {
    let mut problems = Vec::new();
    for device in ["cpu", "cuda:1"] {
        for (params, text, args, same) in SAME {
            let script = format!(
                "set_default_device(\"{device}\"); {VARIABLES}
                 let f = elementwise(\"{params}\", `{text}`); let got = f({args}); let want = {same};
                 if got.dtype == want.dtype && got.shape == want.shape && got.device == want.device
                     && equal(got.nan_to_num(7), want.nan_to_num(7)) {{ \"\" }} else {{ `${{got}} ${{want}}` }}"
            );
            let found = eval(&script);
            if !found.is_empty() {
                problems.push(format!("{device} {params}: {text}: {found}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn several_results_have_their_names_and_one_shape() {
    let text = "let f = elementwise(\"x, y -> s, d\", \"s = x + 1; d = x * y\");
        let #{s, d} = f(tensor([1.0, 2.0]), tensor([[1.0], [3.0]]));
        s.add_(0); `${s.shape} ${s} ${d}`";
    assert_eq!(eval(text), "[2, 2] tensor([[2., 3.],\n        [2., 3.]]) tensor([[1., 2.],\n        [3., 6.]])");
    // A result is memory of its own, also where it is an argument.
    let own = "let x = ones([2]); let r = elementwise(\"x -> a, b\", \"a = x; b = x\")(x); r.a.add_(1); `${x} ${r.b}`";
    assert_eq!(eval(own), "tensor([1., 1.]) tensor([1., 1.])");
}

#[test]
fn numbers_alone_give_numbers() {
    let f = "let f = elementwise(\"x, y -> z\", \"z = x * y + 1\");";
    assert_eq!(eval(&format!("{f} `${{f(2, 3)}} ${{f(2.0, 3)}}`")), "7 7.0");
    assert_eq!(eval("let f = elementwise(\"x -> z\", \"z = clamp(x, 0, 1) + x / 2\"); `${f(5)}`"), "3.5");
}

#[test]
fn gradients_come_by_themselves() {
    let mut problems = Vec::new();
    for text in [
        "z = x * y + 1",
        "z = x > y ? x * x : y",
        "t = exp(-x * x); z = t * y + log1p(y * y)",
        "z = pow(y * y + 1, x)",
        "z = max(x, y) * erf(x) / (2 + sin(y))",
    ] {
        let script = format!(
            "import \"test\" as test;
             let f = elementwise(\"x, y -> z\", \"{text}\");
             let x = tensor([0.3, -1.2, 0.8], #{{dtype: \"f64\", requires_grad: true}});
             let y = tensor([[0.5], [1.1]], #{{dtype: \"f64\", requires_grad: true}});
             test::assert_gradients(|x, y| f(x, y), [x, y]);
             let g = grad(f(x, y).sum(), [x, y], #{{create_graph: true}});
             grad(g[0].sum() + g[1].sum(), [x, y], #{{allow_unused: true}}).len().to_string()"
        );
        let found = eval(&script);
        if found != "2" {
            problems.push(format!("{text}: {found}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_gradient_of_its_own_is_used() {
    let text = "let f = elementwise(\"x, y -> z\", \"z = x * y\", #{backward: \"gx = 10 * g * y; gy = gz * x\"});
        let x = tensor([2.0, 3.0], #{requires_grad: true}); let y = tensor([5.0], #{requires_grad: true});
        f(x, y).sum().backward(); `${x.grad} ${y.grad}`";
    assert_eq!(eval(text), "tensor([50., 50.]) tensor([5.])");
    // Second gradients are those of the text; an input without an assignment gets none.
    let second = "let f = elementwise(\"x, k -> z\", \"z = x * x * k\", #{backward: \"gx = 2 * x * k * g\"});
        let x = tensor(3.0, #{requires_grad: true});
        let g = grad(f(x, 4), [x], #{create_graph: true})[0]; `${g.item()} ${grad(g, [x])[0].item()}`";
    assert_eq!(eval(second), "24.0 8.0");
    // Results may be read, and several have gradients of their own.
    let several =
        "let f = elementwise(\"x -> a, b\", \"a = exp(x); b = 2 * x\", #{backward: \"gx = ga * a + 100 * gb\"});
        let x = tensor(0.0, #{requires_grad: true}); let r = f(x); r.b.backward(); let first = x.grad.item();
        f(x).a.backward(); `${first} ${x.grad.item()}`";
    assert_eq!(eval(several), "100.0 101.0");
}

/// What is fused away takes no memory: neither the temporaries of the text nor what is computed before and after it.
#[test]
fn a_function_is_one_pass_with_its_neighbors() {
    let peak = |value: &str| {
        eval(&format!(
            "let n = 1 << 16; let x = ones([n], #{{device: \"cuda\"}}); let y = x * 0.5; y[0] = -1.0; synchronize();
             let f = elementwise(\"x, y -> z\", \"t = x * y; u = exp(t); z = t > 0 ? u : t + u\");
             fn g(x, y) {{ let t = x * y; let u = exp(t); where(t > 0, u, t + u) }}
             for i in 0..2 {{
                 cuda::reset_peak_memory_stats(); let before = cuda::memory_allocated();
                 let value = ({value} * 2).sum().item();
                 if i == 1 {{ return `${{cuda::max_memory_allocated() - before}}`; }}
             }}"
        ))
    };
    let (by_text, by_operations) = (peak("f(x + 1, y)"), peak("g(x + 1, y)"));
    assert_eq!(by_text, by_operations);
    // One tensor of the five, and the sum.
    assert!(by_text.parse::<i64>().is_ok_and(|bytes| bytes < 2 * (4 << 16)), "{by_text}");
}

#[test]
fn autocast_modules_and_other_devices() {
    let cast = "let f = elementwise(\"x, y -> z\", \"z = exp(x) + y\"); let h = ones([2], #{device: \"cuda\", dtype: \"bf16\"});
        autocast(\"cuda\", \"bf16\") { `${f(h, h).dtype} ${(exp(h) + h).dtype}` }";
    assert_eq!(eval(cast), "f32 f32");
    let module = "import \"nn\" as nn; let f = elementwise(\"x, w -> z\", \"z = x * w > 0 ? x * w : 0.1 * x * w\");
        let m = nn::module(#{w: nn::parameter(tensor([1.0, -1.0])), forward: |x| f(x, this.w)});
        let y = m.forward(ones([2])); y.sum().backward(); `${y.detach()} ${m.w.grad}`";
    assert_eq!(eval(module), "tensor([ 1.0000, -0.1000]) tensor([1.0000, 0.1000])");
    // A tensor of the host without dimensions is a number, as for every operation.
    let mixed = "let f = elementwise(\"x, y -> s, d\", \"s = x + 1; d = x * y\"); let r = f(tensor(2.0), ones([2], #{device: \"cuda:1\"}));
        `${r.s.device} ${r.d.device} ${r.s}`";
    assert_eq!(eval(mixed), "cuda:1 cuda:1 tensor([3., 3.], device=cuda:1)");
}

#[test]
fn late_faults_are_those_of_the_call() {
    let text = "let f = elementwise(\"x, y -> z\", \"z = x % y\");
        let z = f(tensor([1, 2]), tensor([1, 0]));
        try { z.sum().item(); } catch (e) { return `${e.code} ${e.line}`; } \"nothing\"";
    assert_eq!(eval(text), "E0404 2");
}

const TWICE: &str =
    "let source = `extern \"C\" __global__ void twice(const float* x, float* y, int n) { y[0] = x[0] * n; }`;";

#[test]
fn a_closure_of_the_host_stands_in_for_a_cuda_kernel() {
    for device in ["cpu", "cuda:0"] {
        let text = format!(
            "{TWICE} let k = cuda::kernel(source, \"twice\", #{{host: |x, y, n| y.copy_(x * n)}});
             let x = ones([3], #{{device: \"{device}\"}}); let y = empty_like(x);
             k([1], 32, [x, y, 3], #{{shared_mem: 64}}); `${{y.cpu()}}`"
        );
        assert_eq!(eval(&text), "tensor([3., 3., 3.])");
    }
}

#[test]
fn arguments_of_kernels_are_checked() {
    let k = format!(
        "{TWICE} let k = cuda::kernel(source, \"twice\", #{{host: |x, y, n| ()}}); let x = ones([4]); let y = ones([4]);"
    );
    let mut problems = Vec::new();
    for (call, code) in [
        ("k(1, 32, [x, y, 3])", ""),
        ("k([1, 2, 3], [32], [x, y, 3.0])", ""),
        ("k(1, 32, [x, y])", "E0205"),
        ("k(1, 32, [x, y, 3, 4])", "E0208"),
        ("k(1, 32, [x.double(), y, 3])", "E0202"),
        ("k(1, 32, [x, y, x])", "E0204"),
        ("k(1, 32, [1, y, 3])", "E0204"),
        ("k(1, 32, [x, y, 3.5])", "E0204"),
        ("k(1, 32, [x, y, 1 << 40])", "E0206"),
        ("k(1, 2048, [x, y, 3])", "E0206"),
        ("k(1, [64, 64], [x, y, 3])", "E0206"),
        ("k(0, 32, [x, y, 3])", "E0206"),
        ("k([1, 2, 3, 4], 32, [x, y, 3])", "E0206"),
        ("k(\"1\", 32, [x, y, 3])", "E0204"),
        ("k(1, 32)", "E0205"),
        ("k(1, 32, x)", "E0204"),
        ("k(1, 32, [x, y, 3], #{shared: 4})", "E0203"),
        ("k(1, 32, [x[slice(0, 4, 2)], y, 3])", "E0206"),
        ("k(1, 32, [x, ones([4], #{requires_grad: true}), 3])", "E0705"),
        ("k(1, 32, [ones([4], #{requires_grad: true}), y, 3])", "E0705"),
        ("no_grad(|| k(1, 32, [ones([4], #{requires_grad: true}), y, 3]))", ""),
        ("k(1, 32, [x, y.to(\"cuda\"), 3])", "E0301"),
    ] {
        let found = eval(&format!("{k} let code = \"\"; try {{ {call}; }} catch (e) {{ code = e.code; }} code"));
        if found != code {
            problems.push(format!("{call}: {found}, not {code}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Where NVRTC is found, the text is compiled when it is given, and its errors have their places in the literal.
#[test]
fn errors_of_cuda_texts_have_their_places() {
    if cuda_text::open().is_none() {
        assert!(std::env::var_os("TSCRIPT_REQUIRE_NVRTC").is_none(), "NVRTC is not found");
        return;
    }
    let script = "let k = cuda::kernel(`\nextern \"C\" __global__ void f(float* x) {\n    x[0] = yy;\n}`, \"f\");";
    let error = session().run_str("kernel.rhai", script).expect_err("an undefined name");
    let text = format!("{error:?} {error:#}");
    assert!(text.contains("identifier \"yy\" is undefined"), "{text}");
    let places: Vec<(usize, usize)> =
        error.labels().into_iter().flatten().map(|label| (label.offset(), label.len())).collect();
    assert_eq!(places[0], (script.find("yy").expect("it stands there"), 2));
}

/// Values, dtypes and gradients of PyTorch (`tests/fixtures/elementwise/make.py`).
#[test]
fn formulas_are_those_of_pytorch() {
    let text = std::fs::read_to_string(folder("fixtures/elementwise").join("pytorch.json")).expect("the fixtures");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let mut problems = Vec::new();
    let mut session = session();
    for case in all["cases"].as_array().expect("a list") {
        let word = |name: &str| case[name].as_str().expect("a word");
        let (x, y, params, formula) = (word("x"), word("y"), word("params"), word("text"));
        let gradients = match case.get("gradients") {
            Some(gradients) => format!(
                "z.sum().backward();
                 for (got, want) in zip([x.grad, y.grad], {gradients}) {{
                     if !allclose(got.flatten(), tensor(want, #{{dtype: \"f64\"}}), 1e-9, 1e-12) {{ return `gradient ${{got}}`; }}
                 }}"
            ),
            None => String::new(),
        };
        let script = format!(
            "let x = tensor({}).to(\"{x}\").reshape([2, 3]); let y = tensor({}).to(\"{y}\");
             if x.dtype == \"f64\" && y.dtype == \"f64\" {{ x.requires_grad_(); y.requires_grad_(); }}
             let z = elementwise(\"{params}\", \"{formula}\")(x, y);
             let want = tensor({}, #{{dtype: \"f64\"}});
             let close = if z.dtype == \"f16\" || z.dtype == \"bf16\" {{ 1e-2 }} else {{ 1e-6 }};
             if !allclose(z.detach().double().flatten(), want, close, 1e-6) {{ return `${{z}} ${{want}}`; }}
             {gradients}
             z.dtype.to_string()",
            all["x"], all["y"], case["values"],
        );
        let found = session.eval::<String>(&script).unwrap_or_else(|error| format!("{error:#}"));
        if found != word("dtype") {
            problems.push(format!("{formula} of {x}, {y}: {found}, PyTorch {}", word("dtype")));
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

//! What PyTorch's samples do not ask of the element-wise rows: second derivatives, in-place chains, random
//! values, literals.

use tscript::Session;

/// Runs a script whose last expression is a bool that must be true.
fn holds(text: &str) {
    let mut session = Session::builder().output(|_| {}).build().expect("a session");
    match session.eval::<bool>(text) {
        Ok(true) => {}
        Ok(false) => panic!("does not hold: {text}"),
        Err(error) => panic!("{}: {}\n{text}", error.code(), error.message()),
    }
}

/// The code of the error that a script ends with.
fn code(text: &str) -> String {
    let mut session = Session::builder().output(|_| {}).build().expect("a session");
    session.run_str("case", text).expect_err(text).code()
}

/// Second derivatives against central differences of the first, in f64.
#[test]
fn second_derivatives() {
    let everywhere = "[-2.3, -0.7, -0.1, 0.2, 0.9, 2.6]";
    let positive = "[0.15, 0.4, 0.6, 0.85]";
    let cases = [
        (everywhere, "gelu(x)"),
        (everywhere, "gelu(x, \"tanh\")"),
        (everywhere, "silu(x)"),
        (everywhere, "mish(x)"),
        (everywhere, "softplus(x, 2.0)"),
        (everywhere, "tanh(x)"),
        (everywhere, "sigmoid(x)"),
        (everywhere, "logsigmoid(x)"),
        (everywhere, "elu(x, 1.5)"),
        (everywhere, "selu(x)"),
        (everywhere, "celu(x, 0.7)"),
        (everywhere, "softsign(x)"),
        (everywhere, "x ** 3 / (x * x + 2)"),
        (everywhere, "2 ** x"),
        (everywhere, "sin(x) * atan(x) + sinh(x) - asinh(x)"),
        (everywhere, "erf(x) + i0(x) + sinc(x)"),
        (everywhere, "hypot(x, x + 3) + atan2(x, x + 5)"),
        (everywhere, "logaddexp(x, 2 * x)"),
        (positive, "log(x) + sqrt(x) + rsqrt(x) + x ** x + x.reciprocal()"),
        (positive, "lgamma(x) + digamma(x) + polygamma(2, x)"),
        (positive, "asin(x) + acos(x) * atanh(x) + erfinv(x) + logit(x)"),
        (positive, "xlogy(x, x + 1) + log1p(x) * exp2(x) + expm1(x)"),
        (positive, "addcdiv(x, x, x + 1) + addcmul(x, x, x) + lerp(x, x * x, x)"),
        (everywhere, "ndtr(x) + log_ndtr(x) + erfcx(x)"),
        (everywhere, "i0e(x) + i1e(x) + bessel_j0(x) * bessel_j1(x) + spherical_bessel_j0(x)"),
        (positive, "entr(x) + ndtri(x) + xlog1py(x, x) + mvlgamma(x + 2, 3)"),
        (positive, "bessel_y0(x) + bessel_y1(x) + modified_bessel_k0(x) + modified_bessel_k1(x)"),
        (
            positive,
            "scaled_modified_bessel_k0(x) + scaled_modified_bessel_k1(x) + igamma(zeros_like(x.detach()) + 1.7, x)",
        ),
        (positive, "gradient(x * x, #{spacing: 0.5})[0] + pdist(x.reshape([2, 2]), 3.0)"),
        (
            positive,
            "grid_sample(arange(9.0, #{dtype: \"f64\"}).cos().reshape([1, 1, 3, 3]), x.reshape([1, 1, 2, 2]), \"bicubic\")",
        ),
        (
            positive,
            "grid_sample(outer(x, x).cos().reshape([1, 1, 4, 4]), (x * 3).reshape([1, 1, 2, 2]), \"bilinear\", \"reflection\")",
        ),
        (
            positive,
            "grid_sample(outer(x, x).reshape([1, 1, 4, 4]), (x * 1.3).reshape([1, 1, 2, 2]), \"bicubic\", \"border\", true)",
        ),
        (positive, "grid_sample(outer(x, x).reshape([1, 1, 4, 4]), x.reshape([1, 1, 2, 2]), \"nearest\")"),
        (positive, "cross(outer(x, x)[..3], x[1..].unsqueeze(1), 0)"),
    ];
    for (points, y) in cases {
        holds(&format!(
            "fn first(x) {{ let y = {y}; grad(y.sum(), [x], #{{create_graph: true}})[0] }}
             let x = tensor({points}, #{{dtype: \"f64\", requires_grad: true}});
             let exact = grad(first(x).sum(), [x])[0];
             let h = 1e-5;
             let up = first((x.detach() + h).requires_grad_()).detach();
             let down = first((x.detach() - h).requires_grad_()).detach();
             allclose(exact, (up - down) / (2 * h), 1e-5, 1e-6)"
        ));
    }
}

/// The places of the pixels themselves, for sides of one pixel and of several.
#[test]
fn places_of_pixels() {
    let grid = |align: bool| {
        format!(
            "affine_grid(tensor([[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]]), [1, 1, 1, 3, 2], {align})"
        )
    };
    let expected = |x: f64, y: f64| {
        let rows = [-y, 0.0, y].map(|y| [-x, x].map(|x| format!("[{x:?}, {y:?}, 0.0]")).join(", "));
        format!("tensor([[[[{}]]]])", rows.join("], ["))
    };
    for (align, expected) in [(true, expected(1.0, 1.0)), (false, expected(0.5, 2.0 / 3.0))] {
        holds(&format!("allclose({}, {expected})", grid(align)));
    }
}

/// First derivatives that PyTorch does not have, against central differences in f64.
#[test]
fn first_derivatives() {
    for y in [
        "bessel_j0(x)",
        "bessel_j1(x)",
        "bessel_y0(x)",
        "bessel_y1(x)",
        "modified_bessel_i0(x)",
        "modified_bessel_i1(x)",
        "modified_bessel_k0(x)",
        "modified_bessel_k1(x)",
        "scaled_modified_bessel_k0(x)",
        "scaled_modified_bessel_k1(x)",
        "spherical_bessel_j0(x)",
        "zeta(2.5, x)",
        "householder_product(x.reshape([2, 2]), x[..2])",
        "ormqr(x.reshape([2, 2]), x[..2], x.reshape([2, 2]), #{left: false})",
    ] {
        holds(&format!(
            "fn f(x) {{ ({y} * arange(1.0, 5.0, #{{dtype: \"f64\"}}).reshape({y}.shape)).sum() }}
             let x = tensor([0.15, 0.9, 2.6, 7.3], #{{dtype: \"f64\", requires_grad: true}});
             let exact = grad(f(x), [x])[0];
             let h = 1e-6;
             let fine = true;
             for i in 0..4 {{
                 let up = x.detach().clone(); up[i] += h;
                 let down = x.detach().clone(); down[i] -= h;
                 fine &= isclose(exact[i], (f(up) - f(down)) / (2.0 * h), 1e-6, 1e-7).item();
             }}
             fine"
        ));
    }
}

/// A chain of in-place steps: what the gradients need is kept, also within one window.
#[test]
fn in_place_chains_keep_what_gradients_need() {
    holds(
        "fn run(inplace) {
             let x = tensor([[1.0, 2.0, 3.0], [0.1, 0.2, 0.3]], #{requires_grad: true});
             let v = tensor([0.5, 1.0, 1.5], #{requires_grad: true});
             let y = x * 1.0;
             if inplace { y.mul_(v); y.sin_(); y **= 3; y.clamp_(-0.9, 0.9); y += y; }
             else { y = y * v; y = y.sin(); y = y ** 3; y = y.clamp(-0.9, 0.9); y = y + y; }
             y.backward(ones([2, 3]));
             [x.grad, v.grad]
         }
         let (a, b) = (run(true), run(false));
         allclose(a[0], b[0]) && allclose(a[1], b[1])"
            .replace("let (a, b) = (run(true), run(false));", "let a = run(true); let b = run(false);")
            .as_str(),
    );
}

/// A value that is overwritten in its memory is still the old one for those who read it before.
#[test]
fn an_overwritten_value_is_still_read() {
    holds(
        "let y = tensor([1.0, 2.0]) * 1.0; let c = y.clone(); y.mul_(3); y.exp_(); let z = y * c;
         allclose(z, tensor([3.0, 6.0]).exp() * tensor([1.0, 2.0])) && equal(c, tensor([1.0, 2.0]))",
    );
}

/// One generator: the same seed gives the same values, whatever the form of the call; 16-bit values stay below 1.
#[test]
fn random_values() {
    holds("manual_seed(7); let a = rand([5, 5]); manual_seed(7); equal(a, rand([5, 5]))");
    holds("manual_seed(7); let a = randn([9]); manual_seed(7); equal(a, zeros([9]).normal_())");
    holds(
        "manual_seed(1); let x = rand([100000], #{dtype: \"bf16\"}); x.float().sum().item() < 50500.0 && (x < 1).float().sum().item() == 100000.0",
    );
    holds("manual_seed(1); let x = rand([100000], #{dtype: \"f16\"}); (x < 1).float().sum().item() == 100000.0");
    holds("manual_seed(1); let x = randint(-3, 4, [70000]); let n = (x == -3).sum().item(); n > 9500 && n < 10500");
    holds(
        "manual_seed(1); let x = dropout(ones([100000]), 0.2); let m = x.sum().item() / 100000.0; m > 0.99 && m < 1.01",
    );
    holds(
        "manual_seed(1); let x = zeros([100000]).exponential_(2.0); let m = x.sum().item() / 100000.0; m > 0.49 && m < 0.51",
    );
    holds(
        "manual_seed(1); let x = zeros([100000]).geometric_(0.25); let m = x.sum().item() / 100000.0; m > 3.9 && m < 4.1",
    );
    holds(
        "manual_seed(1); let x = poisson(full([100000], 3.5)); let m = x.mean().item(); let v = x.var().item(); m > 3.46 && m < 3.54 && v > 3.4 && v < 3.6 && equal(x, x.floor())",
    );
    holds(
        "manual_seed(1); let x = binomial(full([100000], 9.0), tensor([0.25])); let m = x.mean().item(); m > 2.22 && m < 2.28 && x.min().item() >= 0.0 && x.max().item() <= 9.0",
    );
    holds(
        "manual_seed(1); let y = fractional_max_pool2d(arange(100.0).reshape([1, 10, 10]), 2, #{output_size: 4, return_indices: true}); equal(y[0].long(), y[1]) && y[0].shape == [1, 4, 4] && y[0][0, 3, 3].item() == 99.0",
    );
    // The gradient passes where the value was kept.
    holds(
        "let x = ones([1000], #{requires_grad: true}); let y = dropout(x, 0.3); y.sum().backward(); equal(x.grad, y.detach())",
    );
}

/// Probabilities are checked where they are read.
#[test]
fn bad_probabilities_are_late_errors() {
    assert_eq!(code("print(bernoulli(tensor([0.5, 1.5])))"), "E0403");
    assert_eq!(code("print(multinomial(tensor([[1.0, 1.0], [0.0, 0.0]]), 1))"), "E0403");
    assert_eq!(code("bernoulli(ones([2]), 1.5)"), "E0206");
}

#[test]
fn literals() {
    holds("equal(tensor([[1, 2], [3, 4]]), arange(1, 5).reshape([2, 2]))");
    holds(
        "tensor([1, true]).dtype == \"i64\" && tensor([1, 2.5]).dtype == \"f32\" && tensor([true]).dtype == \"bool\"",
    );
    holds("tensor([]).dtype == \"f32\" && tensor([]).shape == [0] && tensor([[], []]).shape == [2, 0]");
    holds("tensor([9007199254740993]).item() == 9007199254740993");
    holds("equal(tensor([tensor([1, 2]), [3, 4]]), tensor([[1, 2], [3, 4]]))");
    holds(
        "let x = ones([2], #{requires_grad: true}); !tensor(x).requires_grad && ones([1]).double().new_tensor([1]).dtype == \"f64\"",
    );
    assert_eq!(code("tensor([[1, 2], [3]])"), "E0201");
    assert_eq!(code("tensor([1, [2]])"), "E0201");
    assert_eq!(code("tensor([[1], 2])"), "E0201");
    assert_eq!(code("tensor([1, \"2\"])"), "E0204");
    assert_eq!(code("tensor([1], #{dtpe: \"f32\"})"), "E0203");
    assert_eq!(code("tensor([300], #{dtype: \"u8\"})"), "E0206");
    assert_eq!(code("tensor([1], #{requires_grad: true})"), "E0202");
}

/// A wider operand without dimensions is no operand of 16 bits: a loss scale of 65536 is beyond the largest f16.
#[test]
fn scales_beside_16_bit_floats() {
    holds(
        "let h = tensor([3.0, 60000.0], #{dtype: \"f16\"}); let s = tensor(1e5); allclose((h / s).float(), tensor([3e-5, 0.6]), 2e-3, 1e-7) && (h / s).dtype == \"f16\"",
    );
    holds("let h = tensor([64.0], #{dtype: \"f16\"}); ((h / tensor(65536.0)) * tensor(65536.0)).item() == 64.0");
    holds(
        "let h = tensor([60000.0], #{dtype: \"f16\"}); let s = tensor(1e-9, #{dtype: \"f64\"}); (h * s).item() > 5.9e-5 && (s * h).item() > 5.9e-5",
    );
    holds("let h = tensor([200.0], #{dtype: \"bf16\"}); (h * tensor(1.00390625)).item() == 201.0");
    holds("let h = tensor([64.0], #{dtype: \"f16\"}); h /= tensor(1e5); h.item() > 6e-4");
    holds(
        "let w = tensor([2.0], #{dtype: \"f16\", requires_grad: true}); let s = tensor(1e5); (w / s).sum().backward(); w.grad.item() > 9e-6",
    );
    holds(
        "let h = tensor([60000.0], #{dtype: \"f16\"}); div(h, tensor(70000.0), #{rounding_mode: \"floor\"}).item() == 0.0 && floor_divide(h, tensor(1e5)).item() == 0.0",
    );
    // With dimensions it is rounded to the common dtype, which is its own here.
    holds("(tensor([1.0], #{dtype: \"f16\"}) / tensor([1e5])).dtype == \"f32\"");
}

/// Of a float that is no element PyTorch says so; negative integers wrap in u8.
#[test]
fn numbers_that_are_no_elements() {
    for text in [
        "full([1], -0.5, #{dtype: \"u8\"})",
        "zeros([1], #{dtype: \"u8\"}).fill_(-1.5)",
        "let x = zeros([2], #{dtype: \"u8\"}); x[0] = -1.0;",
        "let x = zeros([2], #{dtype: \"u8\"}); x[x == 0] = -1.5;",
        "masked_fill(zeros([1], #{dtype: \"u8\"}), tensor([true]), -0.01)",
        "masked_fill(zeros([1], #{dtype: \"i64\"}), tensor([true]), 9.223372036854775807e18)",
        "full([1], -128.5, #{dtype: \"i8\"})",
    ] {
        assert_eq!(code(text), "E0206", "{text}");
    }
    holds("full([1], -1, #{dtype: \"u8\"}).item() == 255 && full([1], 255.9, #{dtype: \"u8\"}).item() == 255");
    holds("full([1], -9.223372036854775808e18, #{dtype: \"i64\"}).item() == -9223372036854775807 - 1");
    assert_eq!(code("addcdiv(tensor([1.0]), tensor([3]), tensor([2]))"), "E0202");
}

/// What a formula leaves out counts for nothing, infinite or not.
#[test]
fn infinities_that_do_not_take_part() {
    holds("multi_margin_loss(tensor([[0.0, -1.0, -INF, 0.0]]), tensor([0])).item() == 0.25");
    holds("multi_margin_loss(tensor([[INF, 1.0]]), tensor([0])).item() == 0.0");
    holds("multilabel_margin_loss(tensor([INF, 0.5, 0.0]), tensor([1, -1, 0])).item() == INF");
    holds("multilabel_margin_loss(tensor([0.5, -INF, 0.0]), tensor([0, 2, -1])).item() == 0.0");
    let steep = "let x = tensor([INF, 3.0, 0.5, -INF], #{requires_grad: true});";
    for loss in ["huber_loss", "smooth_l1_loss"] {
        holds(&format!(
            "{steep} {loss}(x, zeros([4]), #{{reduction: \"sum\"}}).backward(); equal(x.grad, tensor([1.0, 1.0, 0.5, -1.0]))"
        ));
    }
    holds(
        "let x = tensor([NAN, 3.0], #{requires_grad: true}); huber_loss(x, zeros([2]), #{reduction: \"sum\"}).backward(); isnan(x.grad[0]) && x.grad[1].item() == 1.0",
    );
    holds(
        "let x = tensor([INF, -2.0]); let w = tensor([0.5], #{requires_grad: true}); prelu(x, w).sum().backward(); w.grad.item() == -2.0",
    );
}

/// Of equal rows in a bag the first has the gradient.
#[test]
fn bags_of_equal_rows() {
    let table = "let w = tensor([[1.0, 5.0], [1.0, 4.0], [0.5, 5.0]], #{requires_grad: true});";
    holds(&format!(
        "{table} embedding_bag(tensor([[1, 0, 2], [2, 1, 1]]), w, #{{mode: \"max\"}}).sum().backward(); equal(w.grad, tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0]]))"
    ));
    holds(&format!(
        "{table} let y = embedding_bag(tensor([1, 0]), w, tensor([0, 0, 2]), #{{mode: \"max\"}}); y.sum().backward(); equal(y, tensor([[0.0, 0.0], [1.0, 5.0], [0.0, 0.0]])) && equal(w.grad, tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))"
    ));
    holds("let y = embedding_bag(tensor([[0, 1]]), tensor([[-INF], [-INF]]), #{mode: \"max\"}); y.item() == -INF");
}

/// Leading dimensions of size 1 of what is assigned at positions do not count.
#[test]
fn assigned_values_with_leading_ones() {
    holds("let x = zeros([4]); x[tensor([2, 0])] = tensor([[5.0, 6.0]]); equal(x, tensor([6.0, 0.0, 5.0, 0.0]))");
    holds(
        "let x = zeros([2, 3]); x[tensor([1]), 0..2] = ones([1, 1, 1, 2]); equal(x, tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))",
    );
    assert_eq!(code("let x = zeros([4]); x[tensor([2, 0])] = ones([2, 1, 2]);"), "E0201");
}

/// At 0 and at infinity the gradient of a power is PyTorch's, however the power is computed.
#[test]
fn gradients_of_powers_at_their_ends() {
    for (power, expected) in
        [("-2", "[-INF, INF, 0.0, 0.0]"), ("-1", "[-INF, -INF, 0.0, 0.0]"), ("-0.5", "[-INF, -INF, 0.0, 0.0]")]
    {
        holds(&format!(
            "let x = tensor([0.0, -0.0, INF, -INF], #{{requires_grad: true}}); (x ** {power}).sum().backward(); equal(x.grad, tensor({expected}))"
        ));
    }
}

/// Each difference that reaches the distance has the whole gradient, as in PyTorch; a norm shares it.
#[test]
fn gradients_of_the_largest_difference() {
    holds(
        "let x = tensor([[1.0, -1.0, 0.5]], #{requires_grad: true}); cdist(x, zeros([1, 3]), INF).sum().backward(); equal(x.grad, tensor([[1.0, -1.0, 0.0]]))",
    );
    holds(
        "let x = tensor([[1.0, -1.0], [0.0, 0.0]], #{requires_grad: true}); pdist(x, INF).sum().backward(); equal(x.grad, tensor([[1.0, -1.0], [-1.0, 1.0]]))",
    );
}

/// Large ones are made by products of whole matrices; of blocks along the diagonal they are those of the blocks, which are small.
/// Norms differ within a batch: one is halved often, one never, one is zero.
#[test]
fn exponentials_of_large_matrices() {
    let blocks = "manual_seed(3); let a = randn([3, 70, 70], #{dtype: \"f64\"}) * tensor([1.0, 0.001, 0.0], #{dtype: \"f64\"}).reshape([3, 1, 1]); \
                  let z = zeros_like(a); let wide = cat([cat([a, z], 2), cat([z, a.mT * -0.5], 2)], 1); ";
    let apart = "(matrix_exp(wide) - cat([cat([matrix_exp(a), z], 2), cat([z, matrix_exp(a.mT * -0.5)], 2)], 1)).abs().amax([1, 2])";
    let size = "cat([matrix_exp(a), matrix_exp(a.mT * -0.5)], 1).abs().amax([1, 2])";
    holds(&format!("{blocks} ({apart} <= {size} * 1e-12).all().item()"));
    // A number of products for each matrix, as alone.
    holds(&format!(
        "{blocks} let all = matrix_exp(wide); let one = matrix_exp(wide[1]); ((all[1] - one).abs().max() < 1e-13).item()"
    ));
    holds("matrix_exp(zeros([0, 130, 130])).shape == [0, 130, 130]");
    holds("!matrix_exp(full([130, 130], INF)).isfinite().any().item()");
    // The gradient of 70 rows is an exponential of 140.
    holds(
        "manual_seed(5); let a = randn([70, 70], #{dtype: \"f64\"}) * 0.1; let h = randn([70, 70], #{dtype: \"f64\"}); \
         let x = a.clone().requires_grad_(); matrix_exp(x).sin().sum().backward(); \
         let f = |s| matrix_exp(a + h * s).sin().sum().item(); \
         let slope = (f.call(1e-5) - f.call(-1e-5)) / 2e-5; abs((x.grad * h).sum().item() - slope) < 1e-5 * (1.0 + abs(slope))",
    );
}

/// The mean of `var_mean` and `std_mean` comes from the same reading as the variance: it is the mean, and has its gradient.
#[test]
fn means_beside_variances() {
    for (spread, alone) in [("var_mean", "var"), ("std_mean", "std")] {
        for arguments in ["", ", 1", ", [0, 2], true", ", 2, false"] {
            let dims = match arguments {
                "" => "",
                ", 1" => "1",
                ", 2, false" => "2",
                _ => "[0, 2]",
            };
            let made = format!(
                "manual_seed(2); let x = (randn([5, 70, 9], #{{dtype: \"f64\"}}) + 1000.0).requires_grad_(); let y = x.detach().clone().requires_grad_(); \
                 let both = {spread}(x{arguments}); let mean = y.mean({dims}); let apart = y.{alone}({});",
                arguments.trim_start_matches(", ")
            );
            holds(&format!(
                "{made} let m = both[1].flatten(); ((m - mean.flatten()).abs().max() < 1e-9).item() && equal(both[0], apart) && both[1].shape == apart.shape"
            ));
            holds(&format!(
                "{made} (both[0].sum() * 3.0 + both[1].sin().sum()).backward(); (apart.sum() * 3.0 + mean.sin().sum()).backward(); \
                 allclose(x.grad, y.grad, 1e-7, 1e-9)"
            ));
            holds(&format!("{made} both[1].sum().backward(); mean.sum().backward(); allclose(x.grad, y.grad)"));
        }
    }
}

/// No difference at all is a copy, too.
#[test]
fn differences_of_order_0_are_copies() {
    holds("let x = tensor([1.0, 2.0]); let y = x.diff(0); y += 1; equal(x, tensor([1.0, 2.0]))");
}

/// What a gradient does not read may change before it is computed: the result of a power, an operand without a gradient of its
/// own, the index of what is added without one.
#[test]
fn what_gradients_do_not_read_may_change() {
    for (power, expected) in [("-1", "-0.0625"), ("0.5", "0.25"), ("-0.5", "-0.0625"), ("2", "8.0"), ("-2", "-0.03125")]
    {
        holds(&format!(
            "let w = tensor([4.0], #{{requires_grad: true}}); let y = w ** {power}; y += 1; y.sum().backward(); w.grad.item() == {expected}"
        ));
    }
    holds(
        "let w = tensor([0.5], #{requires_grad: true}); let y = w.erfinv(); y += 1; y.sum().backward(); allclose(w.grad, tensor([1.1125955]))",
    );
    holds(
        "let w = tensor([3.0], #{requires_grad: true}); let c = tensor([4.0]); let y = w.hypot(c); c += 1; y.sum().backward(); allclose(w.grad, tensor([0.6]))",
    );
    for add in ["scatter_add", "index_add"] {
        let start = "let w = tensor([3.0, 1.0], #{requires_grad: true}); let i = tensor([1, 0]);";
        holds(&format!(
            "{start} let y = w.{add}(0, i, ones([2])); i.zero_(); y.sum().backward(); equal(w.grad, ones([2]))"
        ));
        // The gradient of what is added needs it.
        assert_eq!(
            code(&format!("{start} let y = zeros([2]).{add}(0, i, w * 1); i.zero_(); y.sum().backward();")),
            "E0701"
        );
    }
}

/// A tensor without dimensions decides the category of a result, not its precision.
#[test]
fn dtypes_beside_tensors_without_dimensions() {
    holds("where(tensor([true]), ones([1]), tensor(1.0, #{dtype: \"c128\"})).dtype == \"c64\"");
    holds("where(tensor([true]), ones([1]), tensor([1.0], #{dtype: \"c128\"})).dtype == \"c128\"");
    holds("where(tensor([true]), tensor([1.0], #{dtype: \"f64\"}), tensor(1.0, #{dtype: \"c64\"})).dtype == \"c128\"");
    holds("block_diag(ones([1]), tensor(2.0, #{dtype: \"f64\"})).dtype == \"f32\"");
    holds("block_diag(ones([1]), tensor([2.0], #{dtype: \"f64\"})).dtype == \"f64\"");
}

/// Nothing is divided where there are no elements, and the largest of no sums is 0.
#[test]
fn operations_on_no_elements() {
    for call in ["e % 0", "e.floor_divide(0)", "e.fmod(0)", "e.div(0, #{rounding_mode: \"trunc\"})"] {
        holds(&format!("let e = zeros([2, 0], #{{dtype: \"i64\"}}); let y = {call}; y.shape == [2, 0]"));
    }
    for (shape, order) in [("[2, 0, 3]", "INF"), ("[2, 3, 0]", "INF"), ("[2, 3, 0]", "1"), ("[2, 0, 3]", "2")] {
        holds(&format!("equal(matrix_norm(zeros({shape}), {order}), zeros([2]))"));
    }
    for (shape, order) in [("[2, 0, 3]", "-INF"), ("[2, 3, 0]", "-1"), ("[2, 0, 3]", "-2")] {
        assert_eq!(code(&format!("matrix_norm(zeros({shape}), {order});")), "E0201");
    }
}

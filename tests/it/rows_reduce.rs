//! What PyTorch's samples do not ask of reductions, scans, sorting and indexing: second derivatives, in-place
//! forms in a gradient graph, late faults, numbers that only a careful order of operations gets right.

use tscript::Session;

fn session() -> Session {
    Session::builder().output(|_| {}).build().expect("a session")
}

/// Runs a script whose last expression is a bool that must be true.
fn holds(text: &str) {
    match session().eval::<bool>(text) {
        Ok(true) => {}
        Ok(false) => panic!("does not hold: {text}"),
        Err(error) => panic!("{}: {}\n{text}", error.code(), error.message()),
    }
}

/// The code of the error that a script ends with.
fn code(text: &str) -> String {
    session().run_str("case", text).expect_err(text).code()
}

const POINTS: &str = "tensor([[0.7, -1.2, 0.4], [2.1, 0.3, -0.8]], #{dtype: \"f64\"})";

/// First derivatives against central differences of the function, second ones against those of the first.
#[test]
fn derivatives_against_differences() {
    let cases = [
        "x.sum(1)",
        "x.prod(1)",
        "x.prod()",
        "x.amax(1) * x.amin(0).sum()",
        "max(x, 1).values ** 2",
        "min(x) * max(x)",
        "aminmax(x, #{dim: 0}).max ** 3",
        "x.mean(0) ** 2",
        "x.nansum(1) ** 2",
        "x.nanmean() ** 2",
        "x.var(1)",
        "x.std(0, false)",
        "std(x, #{correction: 0.5})",
        "var_mean(x, 1)[0] * var_mean(x, 1)[1]",
        "x.norm()",
        "x.norm(1, 1) ** 2",
        "x.norm(3.0, 0)",
        "x.norm(1.5)",
        "x.norm(INF, 1) ** 2",
        "dist(x, x * x)",
        "renorm(x, 2, 0, 1.0)",
        "x.logsumexp(1)",
        "x.logsumexp([0, 1])",
        "cov(x)",
        "corrcoef(x)[0, 1]",
        "x.cumsum(1) ** 2",
        "x.cumprod(1)",
        "x.logcumsumexp(0)",
        "x.cummax(1).values ** 2",
        "x.cummin(0).values ** 2",
        "x.diff(1) ** 2",
        "trapezoid(x ** 2)",
        "x.sort(1).values * tensor([1.0, 2.0, 3.0])",
        "x.topk(2).values ** 2",
        "x.kthvalue(2).values ** 2",
        "x.median(1).values ** 2",
        "x.median() ** 2",
        "x.quantile(0.3, 1) ** 2",
        "x.gather(1, tensor([[0, 0], [2, 1]])) ** 2",
        "x.scatter(1, tensor([[0], [2]]), x[0..2, 1..2] ** 2) ** 2",
        "x.scatter_add(1, tensor([[0, 0], [2, 0]]), x[0..2, 0..2] ** 2) ** 2",
        "x.scatter_reduce(1, tensor([[0, 0], [2, 0]]), x[0..2, 0..2] + 3, \"prod\")",
        "x.scatter_reduce(1, tensor([[0, 0], [2, 0]]), x[0..2, 0..2] + 3, \"mean\", false) ** 2",
        "x.scatter_reduce(1, tensor([[0, 0], [2, 0]]), x[0..2, 0..2] + 3, \"amax\") ** 2",
        "x.index_select(1, tensor([2, 2, 0])) ** 2",
        "x.index_add(1, tensor([2, 2]), x[0..2, 0..2] ** 2, #{alpha: 2}) ** 2",
        "x.index_copy(1, tensor([2]), x[0..2, 0..1] ** 2) ** 2",
        "x.index_fill(1, tensor([2]), x[0, 0] ** 2) ** 2",
        "x.index_reduce(1, tensor([1, 1]), x[0..2, 0..2] + 3, \"prod\")",
        "x[tensor([1, 1, 0])] ** 2",
        "x[tensor([1, 0, 0]), tensor([2, 2, 0])] ** 2",
        "x[x > 0] ** 2",
        "x.index_put([tensor([1, 0])], x ** 2) ** 2",
        "x.index_put([tensor([1, 1])], x ** 2, true) ** 2",
        "x.take(tensor([[5, -1], [0, 2]])) ** 2",
        "x.put(tensor([4, 1]), x[0, 0..2] ** 2) ** 2",
        "x.take_along_dim(tensor([[-1], [0]]), 1) ** 2",
        "x.masked_select(x > 0) ** 2",
        "x.masked_scatter(x > 0, x ** 2) ** 2",
    ];
    for y in cases {
        // Differences at a kink or a tie would say nothing: the points have neither.
        holds(&format!(
            "fn value(x) {{ let y = {y}; let w = (arange(1, y.numel + 1, #{{dtype: \"f64\"}}) * 0.37).sin(); (y.reshape([-1]) * w).sum() }}
             fn first(x) {{ grad(value(x), [x], #{{create_graph: true}})[0] }}
             let weights = tensor([[0.3, -0.5, 1.1], [0.9, 0.2, -0.7]], #{{dtype: \"f64\"}});
             let x = {POINTS}.requires_grad_();
             let g = first(x);
             let h = 1e-5;
             let good = true;
             let exact = if g.requires_grad {{ grad((g * weights).sum(), [x], #{{allow_unused: true}})[0] }} else {{ () }};
             let exact = if exact == () {{ zeros([2, 3], #{{dtype: \"f64\"}}) }} else {{ exact }};
             for i in 0..2 {{ for j in 0..3 {{
                 let step = zeros([2, 3], #{{dtype: \"f64\"}}); step[i, j] = h;
                 let up = (x.detach() + step).requires_grad_(); let down = (x.detach() - step).requires_grad_();
                 let slope = (value(up) - value(down)).detach() / (2 * h);
                 let bend = ((first(up) - first(down)).detach() * weights).sum() / (2 * h);
                 if !allclose(g[i, j].detach(), slope, 1e-5, 1e-6) {{ print(`first of {y}: ${{g[i, j]}} ${{slope}}`); good = false; }}
                 if !allclose(exact[i, j].detach(), bend, 1e-4, 1e-5) {{ print(`second of {y}: ${{exact[i, j]}} ${{bend}}`); good = false; }}
             }} }}
             good"
        ));
    }
}

/// Products of rows with zeros: the gradient is what is left without the zero, also of its own gradient.
#[test]
fn products_with_zeros() {
    holds(
        "let x = tensor([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]], #{requires_grad: true});
         x.prod(1).sum().backward();
         equal(x.grad, tensor([[0.0, 6.0, 0.0], [0.0, 0.0, 0.0]]))",
    );
    holds(
        "let x = tensor([2.0, 0.0, 3.0], #{requires_grad: true});
         let g = grad(x.prod(), [x], #{create_graph: true})[0];
         let second = grad(g.sum(), [x])[0];
         equal(g.detach(), tensor([0.0, 6.0, 0.0])) && equal(second, tensor([3.0, 5.0, 2.0]))",
    );
    holds(
        "let x = tensor([2.0, 0.0, 3.0, 0.0, 5.0], #{requires_grad: true});
         (x.cumprod(0) * tensor([1.0, 10.0, 100.0, 1000.0, 10000.0])).sum().backward();
         equal(x.grad, tensor([1.0, 620.0, 0.0, 0.0, 0.0]))",
    );
}

/// Writing forms in place: only what is named changes, and gradients are those of the plain form.
#[test]
fn in_place_forms_give_the_gradients_of_the_plain_ones() {
    let cases = [
        ("scatter", "1, tensor([[0], [2]]), v[0..2, 1..2]"),
        ("scatter_add", "1, tensor([[0, 0], [2, 0]]), v[0..2, 0..2]"),
        ("scatter_reduce", "1, tensor([[0, 0], [2, 0]]), v[0..2, 0..2], \"prod\""),
        ("index_add", "1, tensor([2, 2]), v[0..2, 0..2]"),
        ("index_copy", "1, tensor([2]), v[0..2, 0..1]"),
        ("index_fill", "1, tensor([2]), v[0, 0]"),
        ("index_put", "[tensor([1, 0])], v"),
        ("index_put", "[tensor([1, 1]), tensor([0, 0])], v[0, 0..2], true"),
        ("put", "tensor([4, 1]), v[0, 0..2]"),
        ("masked_scatter", "tensor([true, false, true]), v"),
        ("masked_fill", "tensor([true, false, true]), v[0, 0]"),
        ("cumsum", "1"),
        ("cumprod", "1"),
        ("renorm", "2, 0, 1.0"),
    ];
    for (name, arguments) in cases {
        // On the whole tensor, and on a view of a larger one.
        for place in ["let y = b;", "let y = b[1..3];"] {
            let base = if place.contains("1..3") { "cat([x, x * 3, x * 5])" } else { "x * 2" };
            holds(&format!(
                "fn run(inplace) {{
                     let x = tensor([[0.7, -1.2, 0.4], [2.1, 0.3, -0.8]], #{{requires_grad: true}});
                     let v = tensor([[1.5, 2.5, -0.5], [0.5, 1.2, 3.0]], #{{requires_grad: true}});
                     let b = {base}; {place}
                     if inplace {{ y.{name}_({arguments}); }}
                     else if b.shape[0] == 2 {{ b = b.{name}({arguments}); }}
                     else {{ b = cat([b[0..1], y.{name}({arguments}), b[3..]]); }}
                     (b ** 2 * arange(1, b.numel + 1).reshape(b.shape)).sum().backward();
                     [b.detach(), x.grad, if v.grad == () {{ zeros([2, 3]) }} else {{ v.grad }}]
                 }}
                 let a = run(true); let b = run(false);
                 allclose(a[0], b[0]) && allclose(a[1], b[1]) && allclose(a[2], b[2])"
            ));
        }
    }
}

/// An operand that shares memory with what is written is read as it was.
#[test]
fn writes_that_read_their_own_memory() {
    holds("let x = tensor([1, 2, 3]); x.index_add_(0, tensor([0, 1, 2]), x); equal(x, tensor([2, 4, 6]))");
    holds("let x = tensor([1, 2, 3]); x.scatter_(0, tensor([2, 0, 1]), x); equal(x, tensor([2, 3, 1]))");
    holds("let x = tensor([0, 0, 1]); x.index_put_([x], tensor([7])); equal(x, tensor([7, 7, 1]))");
    holds("let x = tensor([3, 1, 2]); x[tensor([0, 1])] = x[1..3]; equal(x, tensor([1, 2, 2]))");
    holds(
        "let x = zeros([4, 4]); let t = x.t(); t[tensor([1])] = 5.0; equal(x[0..4, 1], full([4], 5.0)) && x.sum().item() == 20.0",
    );
}

#[test]
fn leaves_and_expanded_tensors_refuse_writes() {
    assert_eq!(code("let x = ones([3], #{requires_grad: true}); x.index_fill_(0, tensor([0]), 1)"), "E0702");
    // As in PyTorch, one number may be written through an expanded tensor, sums may not.
    assert_eq!(code("let x = ones([1]).expand([3]); x.index_add_(0, tensor([0]), ones([1]))"), "E0206");
    // What a gradient needs was overwritten by a kernel that works in place.
    assert_eq!(
        code(
            "let x = ones([3], #{requires_grad: true}); let y = x * 2; let z = y * y; y.index_fill_(0, tensor([0]), 1); z.sum().backward()"
        ),
        "E0701"
    );
}

/// Values of indices are judged while computing.
#[test]
fn bad_indices_are_late_errors() {
    for text in [
        "print(ones([3]).gather(0, tensor([3])))",
        "print(ones([3]).gather(0, tensor([-1])))",
        "print(zeros([3]).scatter(0, tensor([3]), 1))",
        "print(ones([3]).index_select(0, tensor([-1])))",
        "print(zeros([3]).index_add(0, tensor([5]), ones([1])))",
        "print(ones([3])[tensor([3])])",
        "let x = ones([3]); x[tensor([-4])] = 1.0; print(x)",
        "print(ones([3]).take(tensor([3])))",
        "print(zeros([3]).masked_scatter(tensor([true, true, true]), ones([2])))",
    ] {
        assert_eq!(code(text), "E0401", "{text}");
    }
}

/// Large and small numbers, halves, empty operands, no dimensions.
#[test]
fn numbers_at_the_edges() {
    holds("let x = full([100000], 60000.0, #{dtype: \"f16\"}); x.mean().item() == 60000.0");
    holds("let x = full([1000], 300.0, #{dtype: \"f16\"}); x.norm().item() > 9480.0 && x.norm().item() < 9500.0");
    holds("(tensor([1e8, 1.0, 2.0, 3.0]) + 0.0).var().isfinite().item()");
    holds("let x = tensor([100000001.0, 100000002.0, 100000003.0], #{dtype: \"f64\"}); x.var().item() == 1.0");
    holds("tensor([-INF, -INF]).logsumexp(0).item() == -INF && tensor([INF, 1.0]).logsumexp(0).item() == INF");
    holds("tensor([-INF, 0.0]).logsumexp(0).item() == 0.0 && zeros([0]).logsumexp(0).item() == -INF");
    holds("zeros([0]).mean().isnan().item() && zeros([0]).sum().item() == 0.0 && zeros([0]).prod().item() == 1.0");
    holds("zeros([0]).all().item() && !zeros([0]).any().item()");
    holds("zeros([0, 3]).sum(0).shape == [3] && zeros([3, 0]).amax(0).shape == [0]");
    holds(
        "tensor(3.0).sum(0).item() == 3.0 && tensor(3.0).sum(-1).shape == [] && tensor(3.0).max(0).indices.item() == 0",
    );
    holds(
        "tensor(3.0).argmax(0).item() == 0 && tensor(3.0).cumsum(0).item() == 3.0 && tensor(3.0).sort().values.item() == 3.0",
    );
    holds(
        "ones([2, 3]).sum(#{keepdim: true}).shape == [1, 1] && ones([2, 3]).argmax(#{keepdim: true}).shape == [1, 1]",
    );
    holds("tensor([1, 2]).sum(#{dtype: \"f16\"}).dtype == \"f16\" && tensor([true, true]).sum().item() == 2");
    holds("tensor([1.0, NAN, 3.0]).max().isnan().item() && tensor([1.0, NAN, NAN]).argmin().item() == 1");
    holds(
        "ones([3, 4]).t().contiguous().t().argmax().item() == 0 && arange(12).reshape([3, 4]).t().argmax().item() == 11",
    );
    holds("let x = arange(6).reshape([2, 3]).t(); x.argmax(0)[0].item() == 2 && x.max(1).values[2].item() == 5");
    for text in ["zeros([0]).max()", "zeros([0, 2]).argmax(0)", "zeros([0, 0]).amax(1)", "zeros([0]).aminmax()"] {
        assert_eq!(code(text), "E0201", "{text}");
    }
}

/// `x[mask] = number` writes where the mask is true, over leading dims, on views, with gradients.
#[test]
fn numbers_go_where_a_mask_is_true() {
    holds("let x = arange(6).reshape([2, 3]); x[x > 3] = 9; equal(x, tensor([[0, 1, 2], [3, 9, 9]]))");
    holds(
        "let x = arange(6).reshape([2, 3]); x[tensor([false, true])] = 1.7; equal(x, tensor([[0, 1, 2], [1, 1, 1]]))",
    );
    holds("let x = arange(6).reshape([2, 3]); let v = x[0..2, 1]; v[v > 1] = tensor(8); x[1, 1].item() == 8");
    holds(
        "let x = ones([3], #{requires_grad: true}); let v = tensor(5.0, #{requires_grad: true}); let y = x * 2;
         y[tensor([true, false, true])] = v; (y * tensor([1.0, 2.0, 4.0])).sum().backward();
         equal(x.grad, tensor([0.0, 4.0, 0.0])) && v.grad.item() == 5.0",
    );
    assert_eq!(code("let x = ones([3]); x[tensor([true])] = 1"), "E0201");
}

/// Of elements that are far from 0 and close together the rounding of the mean does not reach the variance.
#[test]
fn variances_far_from_zero() {
    let far = "let x = (arange(131072) * 7919 % 7 - 3).reshape([2048, 64]).float() * 1e-3 + 1000; x = x.clone(); let exact = x.double().var(DIM);";
    for dim in ["0", "1", "[0, 1]"] {
        let far = far.replace("DIM", dim);
        holds(&format!("{far} ((x.var({dim}).double() - exact) / exact).abs().max().item() < 1e-6"));
        holds(&format!("{far} ((x.std({dim}).double() ** 2 - exact) / exact).abs().max().item() < 1e-6"));
        holds(&format!("{far} ((var_mean(x, {dim})[0].double() - exact) / exact).abs().max().item() < 1e-6"));
    }
    holds("full([3, 7], 0.1).var(1).max().item() == 0.0 && full([1000003], 0.1).std().item() == 0.0");
    holds("tensor([2e20, -1e20, 1e20]).std().item() > 1.5e20 && isnan(tensor([INF, 1.0]).var())");
    holds("isnan(zeros([0]).var()) && isnan(ones([1]).var()) && zeros([2, 0]).var(1).isnan().all()");
    // Divided by no degree of freedom: infinite, on either side of the mean.
    holds(
        "let x = tensor([0.0, 0.0, 1.0, 0.0], #{requires_grad: true}); x.var(#{correction: 4}).backward(); equal(x.grad, tensor([-INF, -INF, INF, -INF]))",
    );
}

//! `std/distributions` against torch.distributions: what every family, transform and divergence answers, with its
//! gradients, and how draws move with their parameters. Fixtures and their generator: `tests/fixtures/distributions`.

use super::scripts::{builder, folder, none, run, with_gpus};
use serde_json::Value;
use std::fmt::Write;
use tscript::Session;

fn fixtures() -> Value {
    let text = std::fs::read_to_string(folder("fixtures/distributions/distributions.json")).expect("the fixtures");
    serde_json::from_str(&text).expect("JSON")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

const HEAD: &str = "import \"distributions\" as dist; import \"test\" as test;\nlet f64 = #{dtype: \"f64\"};\n";

/// One check as a script of its own: what an expression gives, and the gradients of its sum.
fn script(case: &Value, check: &Value) -> String {
    let mut s = HEAD.to_string();
    for line in case["lines"].as_array().expect("lines") {
        writeln!(s, "{}", text(line)).expect("a string takes text");
    }
    let (expression, want) = (text(&check[0]), text(&check[1]));
    writeln!(s, "let found = {expression};").expect("a string takes text");
    let compare =
        if want.starts_with("tensor") { "test::assert_close(tensor(found), " } else { "test::assert_equal(found, " };
    let digits = if case["name"] == "von_mises" { ", 1e-5, 1e-6" } else { ", 1e-9, 1e-12" };
    let close = if want.starts_with("tensor") { digits } else { "" };
    writeln!(s, "{compare}{want}{close});").expect("a string takes text");
    let grads = check[2].as_object().expect("gradients");
    if !grads.is_empty() {
        writeln!(s, "found.sum().backward();").expect("a string takes text");
    }
    let digits = if case["name"] == "von_mises" { "1e-4, 1e-6" } else { "1e-7, 1e-9" };
    for (leaf, grad) in grads {
        writeln!(s, "test::assert_close({leaf}.grad, {}, {digits});", text(grad)).expect("a string takes text");
    }
    s
}

#[test]
fn distributions_answer_as_torch_distributions_do() {
    let all = fixtures();
    let cases = all["cases"].as_array().expect("a list");
    let mut session = Session::builder().build().expect("a session starts");
    let (mut problems, mut count) = (Vec::new(), 0);
    for case in cases {
        for check in case["checks"].as_array().expect("a list") {
            count += 1;
            if let Err(error) = session.run_str("distributions", &script(case, check)) {
                problems.push(format!("{} {}: {error:#}", text(&case["name"]), text(&check[0])));
            }
        }
    }
    assert!(count > 800, "only {count} checks");
    none(problems);
}

/// The exact derivatives of draws, by differences of 40 digits; PyTorch's are approximations of them.
#[test]
fn draws_of_gamma_and_dirichlet_distributions_move_exactly() {
    let all = fixtures();
    let mut s = HEAD.to_string();
    let rows = |kind: &str| all["slopes"][kind].as_array().expect("a list").clone();
    assert!(rows("gamma").len() > 25 && rows("dirichlet").len() > 25);
    for row in rows("gamma") {
        let (a, x, exact, theirs) = (&row[0], &row[1], &row[2], &row[3]);
        writeln!(
            s,
            "let a = tensor({a}, f64).requires_grad_();\n_gamma_sample(a, tensor({x}, f64)).backward();\n\
             test::assert_close(a.grad, tensor({exact}, f64), 1e-7, 0.0);\n\
             test::assert_close(a.grad, tensor({theirs}, f64), 2e-3, 0.0);"
        )
        .expect("a string takes text");
    }
    for row in rows("dirichlet") {
        let (x, a, total, exact, theirs) = (&row[0], &row[1], &row[2], &row[3], &row[4]);
        // The first of two shares: its derivative is the slope times 1 - x.
        writeln!(
            s,
            "let a = tensor([{a}, {total} - {a}], f64).requires_grad_();\n\
             (_dirichlet_sample(a, tensor([{x}, 1.0 - {x}], f64))[0] / (1.0 - {x})).backward();\n\
             test::assert_close(a.grad[0], tensor({exact}, f64), 1e-7, 0.0);\n\
             test::assert_close(a.grad[0], tensor({theirs}, f64), 2e-2, 0.0);"
        )
        .expect("a string takes text");
    }
    let mut session = Session::builder().build().expect("a session starts");
    if let Err(error) = session.run_str("slopes", &s) {
        panic!("{error:#}");
    }
}

/// Everything is on the device of the parameters: numbers beside them, draws, and what is computed.
#[test]
fn distributions_work_on_other_devices() {
    let script = "import \"distributions\" as dist;
        let one = ones([2], #{device: \"cuda\"});
        let n = dist::normal(0.0, one);
        let all = [n, dist::log_normal(0.0, one), dist::half_normal(one), dist::laplace(0, one), dist::cauchy(0, one), dist::half_cauchy(one),
            dist::student_t(3, 0, one), dist::gumbel(0, one), dist::uniform(0, one), dist::exponential(one), dist::pareto(one, 2), dist::weibull(1, one),
            dist::kumaraswamy(one, 2), dist::gamma(0.5 * one, 1), dist::chi2(one), dist::inverse_gamma(2, one), dist::beta(one, 2), dist::dirichlet(one),
            dist::von_mises(0, one), dist::bernoulli(one / 2), dist::geometric(one / 2), dist::poisson(one), dist::binomial(3, one / 2),
            dist::negative_binomial(2, one / 2), dist::categorical(one), dist::one_hot_categorical(one), dist::multinomial(3, one),
            dist::relaxed_bernoulli(0.5, one / 2), dist::relaxed_one_hot_categorical(0.5, one), dist::independent(n, 1),
            dist::multivariate_normal(one, one.diag()), dist::wishart(3, one.diag()), dist::lkj_cholesky(3, one),
            dist::continuous_bernoulli(one / 4), dist::generalized_pareto(0, one, 0.2), dist::logistic_normal(0, one),
            dist::mixture_same_family(dist::categorical(one), n),
            dist::transformed_distribution(n, [dist::affine_transform(1.0, 2.0), dist::stick_breaking_transform()])];
        for d in all {
            let x = d.sample([3]);
            assert(`${x.device} ${d.log_prob(x).device}` == \"cuda:0 cuda:0\", `${d}: ${x.device}`);
        }
        assert(`${dist::kl_divergence(n, dist::uniform(0, one)).device}` == \"cuda:0\");";
    let Some(builder) = with_gpus(builder(), 1) else { return };
    if let Err(error) = run(builder, "devices", script).result {
        panic!("{error:#}");
    }
}

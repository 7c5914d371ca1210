//! Random numbers follow from the seed, the call's place in the script's order, and the index: random programs that draw
//! and then use what was drawn in ways that turn, cut, fuse and reduce it give the same numbers at once, late, in small
//! windows, and on a GPU; and those of `base::rng`.

use super::races::Random;
use super::scripts::{builder, none, on_real_gpus, run, with_gpus};
use std::fmt::Write;
use tscript::internals::base::rng;

/// Statements that make `{a}` of shape `[{r}, {c}]`; a factory or a form in place.
const DRAWS: &[&str] = &[
    "let {a} = rand([{r}, {c}]);",
    "let {a} = rand([{r}, {c}], #{dtype: \"f64\"});",
    "let {a} = rand([{r}, {c}], #{dtype: \"bf16\"});",
    "let {a} = randn([{r}, {c}]);",
    "let {a} = randint(-9, 9, [{r}, {c}]);",
    "let {a} = randint(100, [{r}, {c}]).float();",
    "let {a} = randint(3, [{r}, {c}], #{dtype: \"u8\"});",
    "let {a} = rand_like(zeros([{c}, {r}]).T);",
    "let {a} = randn([{c}, {r}]).T;",
    "let {a} = zeros([{c}, {r}]).T; {a}.normal_();",
    "let {a} = zeros([{r}, {c}]); {a}.T.uniform_();",
    "let {a} = zeros([{r}, {c}]); {a}[.., 0].uniform_(); {a}[1].exponential_();",
    "let {a} = zeros([{r}, {c}], #{dtype: \"i32\"}); {a}.T.random_(0, 7);",
    "let {a} = empty_like(zeros([{c}, {r}]).T).cauchy_();",
    "let {a} = zeros([{r}, 2 * {c}])[.., slice(0, (), 2)]; {a}.log_normal_(0.0, 1.0);",
    "let {a} = zeros([{r}, {c}]).bernoulli_(0.4);",
    "let {a} = bernoulli(full([{c}, {r}], 0.5)).T;",
    "let {a} = dropout(ones([{c}, {r}]).T, 0.5);",
    "let {a} = feature_dropout(ones([{r}, {c}, 2]), 0.5, true).sum(2);",
    "let {a} = alpha_dropout(ones([{r}, {c}]), 0.25, true);",
    "let {a} = rrelu(-ones([{c}, {r}]).T, 0.1, 0.9, true);",
    "let {a} = gumbel_softmax(zeros([{r}, {c}]), 1.0, true);",
    "let {a} = multinomial(ones([{r}, 5]), {c}, true);",
    "let {a} = randperm({r} * {c}).view([{c}, {r}]).T;",
    "let {a} = normal(zeros([{r}, 1]), ones([{c}]));",
    "let {a} = poisson(full([{r}, {c}], 3.0));",
    "let {a} = zeros([{r}, {c}]).geometric_(0.3);",
];

/// What comes after: statements that decide the order of the pass that draws.
const USES: &[&str] = &[
    "let {b} = {a}.sum(0);",
    "let {b} = {a}.amax(0);",
    "let {b} = {a}.amin(1);",
    "let {b} = {a}.argmax(0);",
    "let {b} = {a}.sum();",
    "let {b} = {a}.T.contiguous();",
    "let {b} = {a} + ones([{c}, {r}]).T;",
    "let {b} = ones([{c}, {r}]).T * {a};",
    "let {b} = ({a} * 2)[.., 1..].sum(0);",
    "let {b} = ({a} > 0).all(0);",
    "let {b} = zeros([{c}, {r}]); {b}.T.copy_({a});",
    "let {b} = {a}.float().exp().log1p();",
    "let {b} = eye({r}, {c}).sum(0);",
    "let {b} = {a}.long() % 7;",
    "let {b} = stack([{a}, {a}], 1).amax(0);",
];

/// Calls that are refused, and so draw nothing.
const REFUSED: &[&str] = &[
    "rand([2, -1])",
    "randn([3], #{dtype: \"i64\"})",
    "normal(zeros([2]), zeros([3]))",
    "randint(5, 5, [2])",
    "zeros([3]).uniform_(2.0, 1.0)",
    "multinomial(ones([3]), 4)",
    "tensor([1.0, 2.0], #{requires_grad: true}).normal_()",
    "rand([1000000, 1000000, 1000])",
    "poisson(tensor([-1.0]))",
    "zeros([1]).expand([3]).normal_(0.0, -1.0)",
];

/// Calls that fail late: they have drawn.
const LATE: &[&str] =
    &["bernoulli(tensor([0.5, 1.5]))", "multinomial(tensor([1.0, -1.0]), 1)", "normal(zeros([2]), -ones([2]))"];

fn fill(pattern: &str, names: &[(&str, &str)]) -> String {
    names.iter().fold(pattern.to_string(), |text, (name, value)| text.replace(name, value))
}

fn program(draw: &mut Random) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "manual_seed({});", draw.below(1000));
    for n in 0..2 + draw.below(3) {
        let size = |draw: &mut Random| {
            let most = if draw.below(6) == 0 { 60 } else { 5 };
            (2 + draw.below(most)).to_string()
        };
        let (r, c) = (size(draw), size(draw));
        let a = format!("a{n}");
        let names = [("{a}", a.as_str()), ("{r}", r.as_str()), ("{c}", c.as_str())];
        let _ = writeln!(text, "{}", fill(DRAWS[draw.below(DRAWS.len())], &names));
        let mut shown = vec![a.clone()];
        for k in 0..1 + draw.below(3) {
            let b = format!("b{n}_{k}");
            let line = fill(USES[draw.below(USES.len())], &[&names[..], &[("{b}", b.as_str())]].concat());
            let _ = writeln!(text, "{line}");
            shown.push(b);
        }
        if draw.below(4) == 0 {
            let _ = writeln!(text, "try {{ {}; print(\"accepted\") }} catch {{ }}", REFUSED[draw.below(REFUSED.len())]);
        }
        if draw.below(6) == 0 {
            let _ = writeln!(text, "try {{ let late = {}; print(late) }} catch {{ }}", LATE[draw.below(LATE.len())]);
        }
        if draw.below(2) == 0 {
            shown.reverse();
        }
        // All digits of what was drawn; sums are rounded by the order in which they are made.
        for name in shown.iter().filter(|name| draw.below(3) > 0 || **name == a) {
            let shown = if *name == a { "double().to_array()" } else { "cpu()" };
            let _ = writeln!(text, "print({name}.{shown});");
        }
    }
    let _ = writeln!(text, "print(rand([2]).to_array());");
    text
}

#[test]
fn draws_do_not_depend_on_what_follows() {
    let mut problems = Vec::new();
    let mut draw = Random(20_261_123);
    for n in 0..60 {
        let text = program(&mut draw);
        let many = run(builder(), "draws.rhai", &text);
        if let Err(error) = &many.result {
            problems.push(format!("program {n}: {error}\n{text}"));
            continue;
        }
        let on_gpu = || with_gpus(builder(), 1).expect("a GPU").device("cuda");
        let mut ways = vec![
            ("blocking", builder().blocking(true)),
            ("a window of one", builder().window(1)),
            ("a window of three", builder().window(3)),
        ];
        // Normal values of a real GPU may differ in the last bit.
        if !on_real_gpus() {
            ways.push(("a GPU", on_gpu()));
            ways.push(("a GPU, blocking", on_gpu().blocking(true)));
        }
        for (way, builder) in ways {
            let other = run(builder, "draws.rhai", &text);
            if let Err(error) = other.result {
                problems.push(format!("program {n}, {way}: {error}\n{text}"));
            } else if other.printed != many.printed {
                problems
                    .push(format!("program {n}: {way} prints\n{}instead of\n{}\n{text}", other.printed, many.printed));
            }
        }
    }
    none(problems);
}

/// The numbers are those of the generator, whatever the layout of what they are written into, and whatever uses them.
#[test]
fn draws_are_the_generators() {
    let scripts = [
        "let a = rand([2, 3]); let b = a.sum(0);",
        "let a = zeros([3, 2]).T.uniform_(); let b = a.sum(0);",
        "let a = zeros([2, 3]); a.T.T.uniform_();",
        "let a = rand_like(zeros([3, 2]).T); let b = a.T.contiguous();",
        "let a = zeros([4, 6])[slice(0, (), 2), slice(0, (), 2)].uniform_(); let b = a.amax(0);",
        "let b = eye(2, 3); try { rand([2, -1]) } catch { } let a = rand([2, 3]); let c = (a * b).sum(0);",
    ];
    let expected: Vec<f64> = (0..6).map(|i| rng::uniform_f32(rng::word(7, 0, i)) as f64).collect();
    for script in scripts {
        let ran =
            run(builder(), "draws.rhai", &format!("manual_seed(7); {script} print(a.flatten().double().to_array());"));
        ran.result.unwrap_or_else(|error| panic!("{script}: {error}"));
        let found: Vec<f64> =
            ran.printed.trim_matches(['[', ']', '\n']).split(", ").map(|x| x.parse().expect("a number")).collect();
        assert_eq!(found, expected, "{script}");
    }
}

/// The same mask forward and backward, and the counters of a refused call are those of the next one.
#[test]
fn masks_and_refused_calls() {
    let text = "
        manual_seed(3);
        let x = ones([5, 4], #{requires_grad: true});
        let y = dropout(x.T, 0.5);
        (y.sum(0) * arange(5)).sum().backward();
        print(equal(x.grad != 0, (y.T != 0) & (arange(5) != 0).unsqueeze(1)));
        let plain = rand([3]);
        manual_seed(3);
        rand([20]);
        let leaf = zeros([3], #{requires_grad: true});
        for f in [|| rand([2, -1]), || leaf.normal_(), || normal(zeros([2]), zeros([3])), || rand([1000000, 1000000, 1000])] {
            try { f.call(); print(\"accepted\") } catch { }
        }
        print(equal(rand([3]), plain));
        try { let late = bernoulli(tensor([2.0])); print(late) } catch { }
        print(rand([3]).to_array());
        manual_seed(3);
        rand([23]);
        rand([1]);
        print(rand([3]).to_array());
    ";
    for blocking in [false, true] {
        let ran = run(builder().blocking(blocking), "draws.rhai", text);
        ran.result.unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<&str> = ran.printed.lines().collect();
        assert_eq!(lines[..2], ["true", "true"], "{blocking}");
        assert_eq!(lines[2], lines[3], "{blocking}");
    }
}

/// Positions are those of the script, too.
#[test]
fn positions_do_not_depend_on_what_follows() {
    let ran = run(
        builder(),
        "positions.rhai",
        "print(eye(2, 3).sum(0)); print(zeros([2, 3]).fill_diagonal_(5.0).sum(0));
         try { let q = ones([2, 3], #{dtype: \"i64\"}) % tensor([[1, 1, 1], [1, 0, 1]]); print(q.sum(0)) }
         catch (e) { print(e.notes[0]) }",
    );
    ran.result.unwrap_or_else(|error| panic!("{error}"));
    let expected = "tensor([1., 1., 0.])\ntensor([5., 5., 0.])\nthe divisor is 0 at element 4\n";
    assert_eq!(ran.printed, expected);
}

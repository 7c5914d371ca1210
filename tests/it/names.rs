//! Functions belong to the source that defines them: modules, scripts and the library never call each other's.

use tscript::Session;
use tscript::internals::tools::render::{Coloring, render_error};

fn run(modules: &[(&str, &str)], script: &str) -> String {
    let mut builder = Session::builder();
    for (name, text) in modules {
        builder = builder.module(name, text);
    }
    let mut session = builder.build().expect("a session");
    session.eval::<String>(script).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Rhai finds a function by its name in all that is loaded, and remembers it: three times each, so that it would.
#[test]
fn helpers_of_the_same_name() {
    let a = "fn helper(x) { `a${x}` } fn go(x) { helper(x) } fn twice(f) { f.call(1) + f.call(2) }";
    let b = "fn helper(x) { `b${x}` } fn go(x) { helper(x) } private fn hidden() { 1 } fn open() { `${hidden()}` }";
    let script = r#"
        import "a" as a;
        import "b" as b;
        fn helper(x) { `main${x}` }
        fn hidden() { 2 }
        let told = "";
        for i in 0..3 {
            told += helper(i) + a::go(i) + b::go(i) + a::helper(i) + a::twice(|x| helper(x)) + b::open() + hidden() + " ";
        }
        told
    "#;
    let round = |i| format!("main{i}a{i}b{i}a{i}main1main212 ");
    assert_eq!(run(&[("a", a), ("b", b)], script), (0..3).map(round).collect::<String>());
}

/// `nn::linear` and the operation `linear` have the same name and take the same number of arguments.
#[test]
fn library_and_operations() {
    let script = r#"
        import "nn" as nn;
        let x = ones([4, 3]);
        let told = [];
        for i in 0..3 {
            told.push(linear(x, ones([2, 3]), ones([2])).shape);
            told.push(nn::linear(3, 2).forward(x).shape);
            let m = nn::module(#{
                w: nn::parameter(ones([2, 3])), b: nn::parameter(ones([2])), forward: |x| linear(x, this.w, this.b),
            });
            told.push(nn::sequential([m, nn::relu()]).forward(x).shape);
        }
        `${told}`
    "#;
    assert_eq!(run(&[], script), format!("[{}]", ["[4, 2]"; 9].join(", ")));
}

#[test]
fn a_script_changes_nothing_for_the_library() {
    let script = r#"
        import "nn" as nn;
        fn relu(x) { x * 100.0 }
        fn len(x) { -1 }
        fn scale() { this * 3.0 }
        fn softmax() { this + 1.0 }
        let x = tensor([-1.0, 2.0]);
        let f = relu;
        let g = Fn("relu");
        let told = [nn::sequential([nn::relu()]).forward(x), relu(x), f.call(x), g.call(x), x.relu(), x.scale(),
            x.softmax(), softmax(x, 0).sum(), [1.0].map(relu), is_def_fn("relu", 1)];
        `${told}`
    "#;
    let expected = "[tensor([0., 2.]), tensor([-100.,  200.]), tensor([-100.,  200.]), tensor([-100.,  200.]), \
                  tensor([0., 2.]), tensor([-3.,  6.]), tensor([0., 3.]), tensor(1.), [100.0], true]";
    assert_eq!(run(&[], script), expected);
}

#[test]
fn later_texts_and_calls_from_rust() {
    let mut session = Session::builder().build().unwrap();
    session.run_str("t", "fn sum(x) { x * 2 }").unwrap();
    assert_eq!(session.eval::<i64>("sum(4)").unwrap(), 8);
    assert_eq!(session.call::<i64>("sum", (5i64,)).unwrap(), 10);
    assert_eq!(session.eval::<i64>("eval(\"sum(2)\")").unwrap(), 4);
}

#[test]
fn names_in_messages_are_those_of_the_user() {
    let mut session = Session::builder().module("m", "fn relu(x) { x.nothing() }").build().unwrap();
    for script in
        ["fn relu(x) { throw \"no\" } relu(1)", "import \"m\" as m; m::relu(1)", "import \"nn\" as nn; nn::liner(1)"]
    {
        let text = render_error(&session.run_str("t", script).unwrap_err(), Coloring::Off);
        assert!(!text.contains("__"), "{text}");
    }
}

/// A closure would look for a variable `PI` that it takes along.
#[test]
fn constants_are_known_everywhere() {
    let script = r#"
        let f = |x| x * PI;
        fn g() { [1].map(|x| -INF)[0] }
        let told = [f.call(2.0), g(), #{E: 3}.E, `${E}`, NAN, eval("[1.0].map(|x| x * PI)")];
        let hidden = eval("let E = 5; [1].map(|x| x + E)");
        `${told} ${hidden}`
    "#;
    let expected = "[6.283185307179586, -inf, 3, \"2.718281828459045\", nan, [3.141592653589793]] [6]";
    assert_eq!(run(&[], script).to_lowercase(), expected);
}

/// Rhai's own `sort` takes an error of its closure, and a float, for "equal".
#[test]
fn sorting_with_a_closure() {
    let script = r#"
        let a = [3, 1, 2];
        a.sort(|x, y| (x - y) * 0.5);
        let b = [tensor(2.0), tensor(1.0)];
        b.sort_by(|x, y| x < y);
        let c = [1, 2, 3, 4, 5, 6, 7];
        c.sort(|x, y| x % 2 - y % 2);
        let told = [a, b, c];
        for bad in [|x, y| throw "no", |x, y| NAN, |x, y| "text"] {
            try { a.sort(bad); told.push("sorted"); } catch (e) { told.push(if type_of(e) == "string" { e } else { e.code }); }
        }
        told.push(a);
        `${told}`
    "#;
    let expected =
        "[[1, 2, 3], [tensor(1.), tensor(2.)], [2, 4, 6, 1, 3, 5, 7], \"no\", \"E0204\", \"E0204\", [1, 2, 3]]";
    assert_eq!(run(&[], script), expected);
}

/// Lists that are made on the host on the way of a result: no abort.
#[test]
fn lists_beyond_memory() {
    for call in [
        "tril_indices(1000000000, 1000000000)",
        "combinations(ones([3]), 1000000000000, true)",
        "ones([3]).repeat_interleave(tensor([1, 1, 1000000000000]))",
        "ones([1]).expand([1000000000000]).tolist()",
        "affine_grid(ones([1, 2, 3]), [1, 1, 1000000, 1000000])",
    ] {
        let reported = run(&[], &format!("let code = \"\"; try {{ {call}; }} catch (e) {{ code = e.code; }} code"));
        assert!(matches!(reported.as_str(), "E0304" | "E0210"), "{call}: {reported}");
    }
    assert_eq!(run(&[], "`${tril_indices(1000000000000000000, 1, -999999999999999995).shape}`"), "[2, 5]");
}

/// What `print` shows of values that have no literal.
#[test]
fn texts_of_values() {
    let script = r#"
        import "data" as data;
        fn relu(x) { x }
        let told = [cell(3), cell([1]), |x| x, relu, data::loader(data::tensors(ones([2])))];
        try { nothing } catch (e) { told.push(e); told.push(`${e}`); }
        `${told}`
    "#;
    let expected = "[cell(3), cell, closure, Fn(relu), loader, E0102: there is no variable `nothing`, \
                  \"E0102: there is no variable `nothing`\"]";
    assert_eq!(run(&[], script), expected);
}

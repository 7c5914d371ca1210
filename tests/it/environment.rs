//! What the code of a text sees: functions, modules and constants are those of the text in which it is written, whoever
//! calls it; and what code sees that is made at run time, or called with the variables of its caller.

use super::scripts::builder;
use std::sync::{Arc, Mutex};

/// What a script prints, with these modules to import.
fn printed(modules: &[(&str, &str)], text: &str) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let mut builder =
        builder().output(move |line| sink.lock().expect("no test panics while printing").push(line.into()));
    for (name, text) in modules {
        builder = builder.module(name, text);
    }
    let mut session = builder.build().expect("a session starts");
    if let Err(error) = session.run_str("script", text) {
        lines.lock().expect("as above").push(format!("{}: {error}", error.code()));
    }
    let found = lines.lock().expect("as above");
    found.clone()
}

const ONE: (&str, &str) = ("one", "fn helper(x) { 1 } fn make() { |x| helper(x) }");
const TWO: (&str, &str) = ("two", "fn helper(x) { 2 } fn make() { |x| helper(x) }");
const CALLER: (&str, &str) = (
    "caller",
    r#"
        import "two" as x;
        const K = 100;
        const F = |v| v + 1000;
        fn own(v) { v + 5000 }
        fn apply(f, v) { f.call(v) }
        fn each(f, v) { v.map(f) }
        fn holder(f) { #{f: f, go: |v| this.f(v)} }
        fn with_own(v) { [v].map(|v| v + K)[0] }
    "#,
);

#[test]
fn a_closure_sees_what_its_text_has_whoever_calls_it() {
    let script = r#"
        import "caller" as m;
        import "one" as x;
        const K = 7;
        const F = |v| v + 1;
        fn own(v) { v + K }
        print(m::apply(|v| v + K, 1));
        print(m::apply(|v| x::make()(v), 1));
        print(m::apply(|v| own(v), 1));
        print(m::apply(|v| F(v), 1));
        print(m::each(|v| v + K, [1, 2]));
        print(m::holder(|v| v + K + x::helper(v)).go(1));
        print(m::apply(|v| m::apply(|w| w + K, v) + K, 1));
        print(m::apply(|v| m::with_own(v) + K, 1));
        print([1].map(|v| v + K));
    "#;
    let expected = ["8", "1", "8", "2", "[8, 9]", "9", "15", "108", "[8]"];
    assert_eq!(printed(&[ONE, TWO, CALLER], script), expected);
}

#[test]
fn a_module_that_is_imported_in_a_block_ends_with_it() {
    let script = r#"
        fn pick(second) { import "one" as m; if second { import "two" as m; return m::helper(0); } m::helper(0) }
        print(pick(true)); print(pick(false));
        for name in ["one", "two"] { import name as m; print(m::helper(0)); }
        { import "one" as inner; print(inner::helper(0)); }
        import "one" as m; print(m::helper(0)); import "two" as m; print(m::helper(0));
        inner::helper(0);
    "#;
    let found = printed(&[ONE, TWO], script);
    assert_eq!(found[..7], ["2", "1", "1", "2", "1", "1", "2"]);
    assert!(found[7].starts_with("E0106"), "{}", found[7]);
}

#[test]
fn what_eval_declares_is_seen_behind_it() {
    let script = r#"
        fn f(n) {
            eval("let q = n * 2; let n = 100;");
            let w = q + 1;
            if w > 3 { eval("let w = 7;"); q += 1; print(w); }
            let h = || q + w;
            q += 10;
            print(n);
            h.call() + q
        }
        print(f(3)); print(f(1)); print(f(3));
        let k = eval("let late = 5; late + 1") + 1;
        print(k); print(late);
        { eval("let inner = 1;"); print(inner); }
        print(is_def_var("inner"));
        for i in 0..2 { eval(`let v${i} = i;`); print(is_def_var("v0")); }
        fn g() { eval("const C = 3;"); C += 1; }
        g();
    "#;
    let found = printed(&[], script);
    let expected = ["7", "100", "41", "100", "27", "7", "100", "41", "7", "5", "1", "false", "true", "false"];
    assert_eq!(found[..expected.len()], expected);
    assert!(found[expected.len()].starts_with("E0110"), "{found:?}");
}

#[test]
fn a_function_is_called_with_the_variables_of_its_caller() {
    let script = r#"
        fn f() { x += 1; x * 2 }
        fn g(y) { let z = || x + y; x = 10; z.call() }
        let x = 4;
        print(f!()); print(x); print(g!(x + 1)); print(x);
        fn inside() { let x = 1; f!() + x }
        print(inside());
        f();
    "#;
    let found = printed(&[], script);
    assert_eq!(found[..5], ["10", "5", "16", "10", "6"]);
    assert!(found[5].starts_with("E0102"), "{found:?}");
}

#[test]
fn conditions_of_a_switch_are_asked_in_order() {
    let script = r#"
        let asked = [];
        fn no(asked, what) { asked.push(what); false }
        fn f(v) { switch v { 1 if v > 5 => "big", 1 => "one", "a" | "b" if v == "b" => "b", 2..5 if v != 3 => "few", 2..4 => "three", _ => "other" } }
        for v in [1, 2, 3, 4, 5, "a", "b", 'b', 2.5, true, ()] { print(f(v)); }
        fn order(v) {
            let said = [];
            let say = |what| { said.push(what); false };
            switch v { 1 if say(1) => 0, 1 | 2 if say(2) => 0, 0..9 if say(3) => 0, _ => said }
        }
        print(order(1)); print(order(2)); print(order(3)); print(order(1)); print(order(10));
        switch 1 { 1 if "no truth" => 0, _ => 1 }
    "#;
    let found = printed(&[], script);
    let words = ["one", "few", "three", "few", "other", "other", "b", "b", "few", "other", "other"];
    assert_eq!(found[..words.len()], words);
    assert_eq!(found[words.len()..words.len() + 5], ["[1, 2, 3]", "[2, 3]", "[3]", "[1, 2, 3]", "[]"]);
    assert!(found[words.len() + 5].starts_with("E0215"), "{found:?}");
}

#[test]
fn a_loop_whose_break_gives_what_it_goes_over_gives_it() {
    let script = r#"
        fn f(xs) { for x in xs { if x == 2 { break xs; } } }
        print(f([1, 2, 3]));
        let xs = [1, 2];
        print(for x in xs { break [xs, x]; });
        print(loop { break xs.len(); });
    "#;
    assert_eq!(printed(&[], script), ["[1, 2, 3]", "[[1, 2], 1]", "2"]);
}

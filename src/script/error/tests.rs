//! Rhai's errors as users see them: each script with its diagnostic.

use super::*;
use crate::base::span::Origin;
use crate::script::machine;
use crate::script::source::scope::Names;
use crate::script::source::{Hooks, SourceKind, install};
use crate::script::values::raise::raise;
use crate::tools::render::{Coloring, render};
use miette::Diagnostic;
use rhai::{EvalAltResult, Position, Scope};

struct Plain;

impl Hooks for Plain {
    fn truth(&self, value: Dynamic, at: Position) -> Result<bool, Box<EvalAltResult>> {
        value.as_bool().map_err(|t| EvalAltResult::ErrorMismatchDataType("bool".into(), t.into(), at).into())
    }
    fn enter(&self, _: crate::base::span::Site, _: usize) -> u32 {
        0
    }
    fn leave(&self, _: u32) {}
    fn try_leave(&self, _: u64, result: Result<Dynamic, Box<EvalAltResult>>) -> Result<Dynamic, Box<EvalAltResult>> {
        result
    }
}

fn known() -> Known {
    let list = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    Known {
        variables: list(&["outer", "model", "learning_rate"]),
        functions: list(&["softmax", "sum", "relu", "nn::linear", "print", "fail"]),
        properties: list(&["shape", "dtype"]),
        modules: list(&["nn", "optim"]),
        captured: Default::default(),
        written: Vec::new(),
        loaded: Vec::new(),
        forms: Arc::default(),
    }
}

/// All diagnostics of a script; the source map holds a module before it, so that lines are not local.
#[allow(clippy::vec_box)]
fn errors(src: &str) -> (Vec<Box<Diag>>, Arc<RwLock<SourceMap>>) {
    let map = Arc::new(RwLock::new(SourceMap::new()));
    map.write().add(SourceKind::Std, "std", "1;\n2;\n3;\n", &|_| true, Names::NONE).unwrap();
    let added = map.write().add(SourceKind::File, "t.rhai", src, &|_| true, Names::NONE).unwrap();
    if let Some(problem) = added.problem {
        return (vec![problem], map);
    }
    let mut engine = Engine::new();
    engine.set_max_call_levels(50);
    install(&mut engine);
    machine::install(&mut engine);
    crate::script::bind::apply::install(&mut engine);
    register(&mut engine, map.clone());
    engine.register_fn("__text", |value: Dynamic| value.to_string());
    engine.register_fn("__case", |value: Dynamic| value);
    engine.register_fn("fail", |context: rhai::NativeCallContext| -> Result<(), Box<EvalAltResult>> {
        let at = context.call_position();
        let origin = Origin::at(crate::script::values::raise::site_of(at));
        let diag = Diag::error(crate::base::code::SHAPE, "ours").label(origin, crate::base::diag::Focus::Call, "bad");
        Err(raise(diag, at))
    });
    let snapshot = map.read().clone();
    let context = Context { sources: &snapshot, known: &&known() };
    let mut scope = Scope::new();
    scope.push("outer", 1i64);
    let found = match compile(&engine, &scope, &added.source, &context) {
        Err(errors) => errors,
        Ok(ast) => match machine::run_text(&engine, &mut scope, &ast, Arc::new(Plain)) {
            Err(error) => vec![diagnose(error, &context)],
            Ok(value) => panic!("{src:?} gave {value}"),
        },
    };
    (found, map)
}

fn shown(src: &str) -> String {
    let (diags, map) = errors(src);
    diags.iter().map(|diag| render(diag, &map.read(), Coloring::Off)).collect()
}

/// The code, the message, the text under the primary label and the help.
fn check(src: &str, code: &str, message: &str, labeled: &str, help: &str) {
    let (diags, map) = errors(src);
    let diag = &diags[0];
    let map = map.read();
    let label = diag.labels.first().map(|label| {
        let (source, range) = map.span(label.origin.user, label.focus, None).unwrap();
        source.text[range].to_string()
    });
    let got =
        (diag.code.to_string(), diag.message.clone(), label.unwrap_or_default(), diag.help.clone().unwrap_or_default());
    assert_eq!(got, (code.into(), message.into(), labeled.into(), help.into()), "{src:?}");
}

#[test]
fn names() {
    check("softamx(1)", "E0103", "there is no function `softamx`", "softamx(1)", "did you mean `softmax`?");
    check("let x = 1; x.shpae", "E0104", "there is no property `shpae` of an integer", "shpae", "");
    check(
        "let x = [1]; x.sum",
        "E0104",
        "there is no property `sum` of an array",
        "sum",
        "`sum` is a method: call it, `.sum()`",
    );
    check(
        "let x = 1;\nx.shape()",
        "E0103",
        "there is no method `shape` of an integer",
        "shape()",
        "`shape` is a property: write it without `()`",
    );
    // Habits of Python that a parser meets.
    let habits = [
        ("let d = {\"a\": 1};", "written `#{a: 1}`"),
        ("let d = {a: 1};", "written `#{a: 1}`"),
        ("try: 1", "need braces"),
        ("while 1 < 2: 3", "need braces"),
        ("print(1 if true else 2)", "a choice has a value"),
        ("zeros((2, 3))", "several values are an array"),
        ("print(1, *[1])", "are not spread"),
        ("for i, x in [1] { }", "stand in brackets"),
        ("for (i, (x, y)) in [1] { }", "stand in brackets"),
        ("print(7 // 2, 3);", "begins a comment"),
    ];
    for (src, help) in habits {
        let said = errors(src).0[0].help.clone().unwrap_or_default();
        assert!(said.contains(help), "{src}: {said}");
    }
    check(
        "next(iter([1]))",
        "E0103",
        "there is no function `iter`",
        "iter([1])",
        "the first of an array is `xs[0]`, of a loader what `for batch in loader { .. break; }` begins with",
    );
    check("1 + oter", "E0102", "there is no variable `oter`", "oter", "did you mean `outer`?");
    check("None", "E0102", "there is no variable `None`", "None", "the empty value is `()`");
    check(
        "softmax",
        "E0102",
        "there is no variable `softmax`",
        "softmax",
        "`softmax` is a function: call it, or take it as a value with `Fn(\"softmax\")`, as in `xs.map(Fn(\"softmax\"))`",
    );
    check(
        "outer(1)",
        "E0103",
        "there is no function `outer`",
        "outer(1)",
        "`outer` is a variable, and what it holds is neither a closure nor a module with a `forward`",
    );
    check(
        "nn::linear(1)",
        "E0106",
        "there is no module `nn`",
        "nn",
        "write `import \"nn\" as nn;` before it; a function cannot see imports made after it",
    );
    check("softmax(\"a\", 1)", "E0204", "`softmax` does not take a string and an integer", "softmax(\"a\", 1)", "");
    check(
        "let f = |x| x; f.call(1, 2)",
        "E0208",
        "this closure cannot be called with an integer and an integer",
        "call(1, 2)",
        "a closure takes exactly the arguments between its bars",
    );
}

#[test]
fn values() {
    check("if 1 + 1 { }", "E0215", "a condition must be true or false, and this is an integer", "1 + 1", "");
    check("#{} + 1", "E0215", "`+` does not work between a map and an integer", "+", "");
    check(
        "[1, 2][2]",
        "E0207",
        "index 2 is out of range for this array of 2 elements",
        "2",
        "indices go from 0 to 1, or from -1 back to -2",
    );
    check(
        "1 % 0",
        "E0214",
        "modulo division by zero or overflow: 1 % 0",
        "%",
        "floats have a remainder of zero, which is NaN: `1.0 % 0.0`",
    );
    check("let x = 5.0; x[\"a\"]", "E0215", "a float cannot be indexed by a string", "x[\"a\"]", "");
    check(
        "for x in outer { }",
        "E0215",
        "a `for` loop cannot go over this value",
        "outer",
        "arrays, ranges (`0..n`), strings, tensors and loaders can be iterated",
    );
    check(
        "const c = 1; c += 1;",
        "E0110",
        "`c` is a constant and cannot be assigned",
        "c",
        "declare it with `let` instead of `const`",
    );
    check("throw \"bad 🦀\"", "E0108", "bad 🦀", "throw", "");
    check("throw #{a: 1}", "E0108", "#{a: 1}", "throw", "");
}

#[test]
fn a_function_does_not_see_outer_variables() {
    assert_eq!(
        shown("fn f(x) {\n\tx + outer\n}\nlet g = |x| f(x);\n`🦀${g.call(1)}`"),
        "\
error[E0102]: there is no variable `outer`
   ╭─[ t.rhai:2:6 ]
 2 │     x + outer
   │         ──┬──
   │           ╰──── not found
   │ note: a function sees no variables of the outside, only its arguments and constants
   │ help: pass it as an argument; what never changes can be a constant, `const outer = ..`, which functions see
   │ in: `f`, called from t.rhai:4:13
   │ in: a closure, called from t.rhai:5:7
"
    );
}

#[test]
fn recursion_without_end() {
    let text = shown("fn f(n) { f(n + 1) } f(0)");
    assert!(text.starts_with("error[E0802]: calls are nested too deeply\n"), "{text}");
}

#[test]
fn an_error_of_ours_is_unchanged() {
    check("let x = 1;\n fail()", "E0201", "ours", "fail()", "");
    // Caught and thrown again, from another line.
    check("try { fail() } catch (e) {\n throw e; }", "E0201", "ours", "fail()", "");
    check(
        "try { fail() } catch (e) { throw `${e.code} ${e.message} ${e.line} ${e.file}` }",
        "E0108",
        "E0201 ours 1 t.rhai",
        "throw",
        "",
    );
    let (diags, _) = errors("fn f() { fail() }\nf()");
    assert_eq!(diags[0].stack.len(), 1);
}

#[test]
fn syntax() {
    check("let x = 1\nlet y = 2;", "E0101", "a `;` is missing at the end of a statement", "1", "");
    check("var x = 1;", "E0101", "`var` has no meaning here", "var", "declare a variable with `let`: `let x = 1;`");
    check("if x { } elif y { }", "E0101", "`elif` has no meaning here", "elif", "write `else if`");
    check("if x = 1 { }", "E0101", "`=` assigns, and a condition compares with `==`", "=", "");
    check(
        "let x = f(1, dim = 2);",
        "E0101",
        "an argument has no name",
        "=",
        "arguments with a name go into a map at the end: `#{dim: 2}`",
    );
    check(
        "let s = \"\\q\";",
        "E0101",
        "`\\q` is not an escape sequence",
        "\\q",
        "the escapes are `\\n`, `\\r`, `\\t`, `\\\\`, `\\\"`, `\\'`, `\\x41`, `\\u0041` and `\\U00000041`",
    );
    check("f([1, 2)", "E0101", "`[` is closed by `)`", ")", "");
    check("fn f() { if x {", "E0101", "`{` is never closed", "{", "add the missing `}`");
    check("let a = `x ${1", "E0101", "`{` is never closed", "{", "add the missing `}`");
    check(
        "if x { fn g() { } }",
        "E0101",
        "a function can be defined only at the top level of a file",
        "fn",
        "inside a block, use a closure: `let f = |x| x + 1;`, called as `f.call(1)`",
    );
    check("let x = ;", "E0101", "`;` is not allowed here", ";", "");
    check(
        "x[..., 0]",
        "E0101",
        "`...` has a meaning of its own and is not allowed here",
        "...",
        "write the dots in quotes: `x[\"...\", 0]`",
    );
}

#[test]
fn several_syntax_errors_are_reported_together() {
    let (diags, map) = errors("let a = ;\nfn f() { let = 1; }\nlet ok = 1;\nlet c = 1 +* 2;\n");
    let lines: Vec<usize> =
        diags.iter().map(|diag| map.read().location(diag.labels[0].origin.user).unwrap().line).collect();
    assert_eq!(lines, [1, 2, 4]);
}

#[test]
fn the_error_type_is_a_miette_diagnostic() {
    let (mut diags, map) = errors("let e = \"é\";\n\t\"é\" + fail()");
    let error = Error::new(diags.remove(0), &map.read());
    assert_eq!((error.to_string(), format!("{error:#}")), ("ours".into(), "[E0201] ours (t.rhai:2:8)".into()));
    assert_eq!(error.diag().code.to_string(), error.code());
    assert_eq!(Diagnostic::code(&error).unwrap().to_string(), "E0201");
    let label = error.labels().unwrap().next().unwrap();
    assert_eq!((label.offset(), label.len(), label.label()), (22, 6, Some("bad")));
    let contents = error.source_code().unwrap().read_span(label.inner(), 0, 0).unwrap();
    assert_eq!((contents.name(), contents.data()), (Some("t.rhai"), "fail()".as_bytes()));
    assert!(matches!(error.sources().sources(), [only] if &*only.name == "t.rhai"));
    fn sent<T: Send + Sync + 'static>(_: &T) {}
    sent(&error);
}

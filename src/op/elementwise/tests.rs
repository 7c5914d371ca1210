use super::*;

fn compiled(params: &str, text: &str) -> Result<Elementwise> {
    Elementwise::new(Quoted::plain(params), Quoted::plain(text), None)
}

fn message(params: &str, text: &str) -> String {
    let diag = compiled(params, text).expect_err(text);
    assert_eq!(diag.code, code::KERNEL_TEXT, "{text}");
    let quoted = diag.notes.last().map(|note| note.lines().last().unwrap_or("").trim_end().to_string());
    format!("{} @{}", diag.message, quoted.map_or(0, |line| line.len() as i64 - 2))
}

#[test]
fn numbers_are_computed_once() {
    let function = compiled("x -> z", "z = x * (2 * 3 + 1) / max(4, 2 ** 3)").unwrap();
    let rows = function.forward.steps.iter().filter(|step| matches!(step.what, program::What::Row(_)));
    assert_eq!(rows.count(), 2);
}

#[test]
fn faults_have_their_bytes() {
    assert_eq!(message("x -> z", "z = x + w"), "`w` is not known here @9");
    assert_eq!(message("x -> z", "z = x $ 2"), "`$` has no meaning here @7");
    assert_eq!(message("x -> z", "z = x *"), "the text ends where a value is missing @8");
    assert_eq!(message("x -> z", "y = x"), "`y` is computed and never used @1");
    assert_eq!(message("x, y -> z", "z = x"), "the input `y` is never used @4");
    assert_eq!(message("x -> z, w", "z = x"), "nothing is assigned to the result `w` @6");
    assert_eq!(message("x z", "z = x"), "unknown dtype `x` @1");
    assert_eq!(message("x -> T z", "z = x"), "no input has the dtype `T`, which the result `z` shall have @8");
    assert_eq!(message("x -> z", "z = expp(x)"), "unknown function `expp` @8");
    assert_eq!(message("x -> z", "z = exp(x, 1)"), "`exp` takes 1 values, not 2 @13");
    assert_eq!(message("x -> z", "z = sum(x)"), "`sum` does not compute element by element @7");
    assert_eq!(message("x -> z", "x = 1; z = x"), "`x` is an input, which keeps its value @1");
    assert_eq!(message("x -> z", "if (x > 0) z = x;"), "`if` is no statement of an element-wise function @2");
    assert_eq!(message("x -> z", "z = 1.2.3 * x"), "`1.2.3` is no number @9");
}

#[test]
fn texts_are_bounded() {
    let deep = |n: usize| format!("z = {}x{}", "(".repeat(n), ")".repeat(n));
    assert!(compiled("x -> z", &deep(80)).is_ok());
    assert!(message("x -> z", &deep(5000)).starts_with("more than 100 expressions"));
    assert!(message("x -> z", &format!("z = {}x", "- ".repeat(5000))).starts_with("more than 100 expressions"));
    assert!(compiled("x -> z", &format!("z = x{}", " + x".repeat(3000))).is_ok());
    assert!(message("x -> z", &format!("z = x{}", " + x".repeat(5000))).starts_with("the text has more than"));
}

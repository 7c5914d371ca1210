//! What a script asks for by name is found without running it.

use tscript::Session;

#[test]
fn asked_arguments_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.rhai");
    let text = "// arg(\"not this\", 1)\nlet lr = arg(\"lr\", 1e-3);\nlet n = arg(\"steps\", 10);\nlet w = arg(\"width\", n * 2);\n\
                fn f() { flag(\"disable-cuda\") }\nprint(\"arg('nor', 2)\");";
    std::fs::write(&path, text).expect("it can be written");
    let mut session = Session::builder().build().expect("a session starts");
    let mut asked = session.arguments_of(&path).expect("it parses");
    asked.sort();
    let expected = [
        ("disable-cuda", None),
        ("lr", Some("0.001")),
        ("steps", Some("10")),
        ("width", Some("computed by the script")),
    ];
    assert_eq!(asked, expected.map(|(name, default)| (name.to_string(), default.map(str::to_string))));
    let functions = session.functions_of(&path).expect("it parses");
    assert_eq!(functions, [("f".to_string(), 0)]);
}

#[test]
fn of_a_repeated_argument_the_last_counts() {
    let words = ["--lr", "1", "--lr=2", "--name", "a", "--lr", "3"];
    let mut session = Session::builder().arguments(words).build().expect("a session starts");
    assert_eq!(session.eval::<i64>("arg(\"lr\", 0)").expect("it runs"), 3);
    assert_eq!(session.eval::<String>("arg(\"name\", \"\")").expect("it runs"), "a");
}

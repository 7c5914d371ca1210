//! Test of the interface: scripts that know nothing of this kind of devices print on it what they print on the host.

use super::{Book, write_to};
use crate::{Builder, Session};

use std::sync::{Arc, Mutex};

/// What a script prints, and the recorded calls of its devices.
fn run(builder: Builder, text: &str) -> (String, Vec<String>) {
    let printed = Arc::new(Mutex::new(String::new()));
    let (sink, book) = (printed.clone(), Book::default());
    write_to(Some(book.clone()));
    let builder = builder.output(move |line| {
        let mut text = sink.lock().expect("no test panics while printing");
        text.push_str(line);
        text.push('\n');
    });
    let ran = builder.build().and_then(|mut session| session.run_str("script.rhai", text));
    write_to(None);
    if let Err(error) = ran {
        panic!("{error:#}");
    }
    let written = book.lock().clone();
    (printed.lock().expect("no test panics while printing").clone(), written)
}

fn builder() -> Builder {
    Session::builder().all_files()
}

#[test]
fn golden_scripts_print_what_they_print_on_the_host() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut scripts = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "rhai") {
            continue;
        }
        scripts += 1;
        let text = std::fs::read_to_string(&path).expect("a script");
        let expected = std::fs::read_to_string(path.with_extension("out")).expect("its output");
        for builder in [builder(), builder().window(1), builder().blocking(true)] {
            let (printed, written) = run(builder.device("cuda"), &text);
            let printed = printed.replace(",\n       device=cuda:0", "").replace(", device=cuda:0", "");
            assert_eq!(printed.replace("cuda:0", "cpu"), expected, "{}", path.display());
            assert!(written.iter().all(|line| !line.is_empty()));
        }
    }
    assert!(scripts > 10, "the scripts were not found");
}

#[test]
fn steps_are_recorded() {
    let text = "
        let x = tensor([1.0, 2.0, 3.0], #{device: \"cuda\"});
        let y = (x * 2 + 1).relu();
        print(y.cumsum(0));
        print(y.to(\"cuda:1\").sum().item());
    ";
    let (printed, written) = run(builder(), text);
    assert_eq!(printed, "tensor([ 3.,  8., 15.], device=cuda:0)\n15.0\n");
    let order = [
        "write 12 bytes",
        "window on cuda:0 stream 0",
        "fused ",
        "kernel cumsum",
        "read 4 bytes",
        "copy 12 bytes from cuda:0 to cuda:1",
        "window on cuda:1 stream 0",
        "read 4 bytes",
    ];
    let mut lines = written.iter();
    for sign in order {
        assert!(lines.any(|line| line.starts_with(sign)), "`{sign}` is missing at its place in {written:#?}");
    }
}

#[test]
fn faults_are_reported_late_and_poison_what_they_reach() {
    let text = "
        let x = arange(6.0).to(\"cuda\");
        let bad = x.index_select(0, tensor([9]).to(\"cuda\")) * 2;
        let caught = \"\";
        try { print(bad.sum()); } catch (error) { caught = error.code; }
        print(caught);
        print(x.sum().item());
    ";
    let (printed, _) = run(builder(), text);
    assert_eq!(printed, "E0401\n15.0\n");
}

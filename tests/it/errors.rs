//! Error snapshots: `tests/errors/NAME.rhai` with the whole rendered diagnostic in `NAME.err`, what was printed
//! before it first. `TSCRIPT_BLESS=1` rewrites them. The diagnostic may not depend on the window.

use super::scripts::{self, builder, compare, file_name, none, run};
use tscript::internals::tools::render::{Coloring, render_error};

/// Stack for every call that is allowed, however large the frames of this build are.
const STACK_BYTES: usize = 1 << 30;

#[test]
fn errors_look_as_they_looked() {
    let deep = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(look).expect("a thread");
    if let Err(failed) = deep.join() {
        std::panic::resume_unwind(failed);
    }
}

fn look() {
    let mut problems = Vec::new();
    for path in scripts::scripts("errors") {
        let text = std::fs::read_to_string(&path).expect("a script");
        let name = file_name(&path);
        let shown = |window: Option<usize>| {
            let builder = builder().file_roots(vec![scripts::folder("errors"), scripts::folder("fixtures/files")]);
            let builder = builder.stack_bytes(STACK_BYTES);
            // A first line `// flags: ..` says what the command line would.
            let flags = text.lines().next().filter(|line| line.starts_with("// flags:")).unwrap_or("");
            let builder = builder.check(flags.contains("--check"));
            let gpus = flags.contains("--simulate-gpus");
            let builder = if gpus { builder.simulate_gpus(2) } else { builder };
            let ran = run(if let Some(nodes) = window { builder.window(nodes) } else { builder }, &name, &text);
            let tail = ran.result.as_ref().err().map_or("no error\n".to_string(), |e| render_error(e, Coloring::Off));
            let root = scripts::root().display().to_string();
            format!("{}{tail}", ran.printed).replace(&root, "ROOT")
        };
        let many = shown(None);
        problems.extend(compare(&path.with_extension("err"), &many));
        let one = shown(Some(1));
        if one != many {
            problems.push(format!("{name}: a window of one says\n{one}instead of\n{many}"));
        }
    }
    none(problems);
}

/// Every code that a script can get today has a snapshot; what is left out is named with its reason.
#[test]
fn every_code_that_can_occur_has_a_snapshot() {
    let mut shown = String::new();
    for path in scripts::scripts("errors") {
        shown += &std::fs::read_to_string(path.with_extension("err")).unwrap_or_default();
    }
    let elsewhere = [
        ("E0105", "a source of 16 MiB: tests/it/limits.rs"),
        ("E0106", "names folders of the machine"),
        ("E0107", "needs two modules"),
        ("E0112", "a warning: tests/it/check.rs"),
        ("E0114", "a warning: tests/it/check.rs"),
        ("E0115", "a warning of `tscript check`: tests/check"),
        ("E0116", "a warning of `tscript check`: tests/check"),
        ("E0117", "a warning of `tscript check`: tests/check"),
        ("E0118", "a warning of `tscript check`: tests/check"),
        ("E0119", "a warning: tests/check"),
        ("E0120", "a warning: tests/check"),
        ("E0217", "a warning: tests/it/nn.rs"),
        ("E0301", "one device"),
        ("E0304", "names the machine's memory: tests/it/limits.rs"),
        ("E0402", "late: with its rows"),
        ("E0705", "with its rows"),
        ("E0305", "no events yet"),
        ("E0306", "no streams yet"),
        ("E0408", "needs a simulated device: tests/it/semantics.rs"),
        ("E0410", "needs a simulated device: tests/it/semantics.rs"),
        ("E0409", "no known matrix on which the decompositions fail"),
        ("E0501", "needs streams: tests/it/races.rs"),
        ("E0801", "set by the host program: tests/it/limits.rs"),
        ("E0803", "needs a second thread: tests/it/limits.rs"),
        ("E0804", "set by the host program: tests/it/limits.rs"),
        ("E0805", "needs two sessions: tests/it/limits.rs"),
        ("E0806", "never, it is hoped"),
        ("E0808", "set by the host program: tests/embed/library.rs"),
        ("E0809", "needs a function of a host program: tests/embed/library.rs"),
    ];
    let missing: Vec<String> = tscript::internals::base::code::ALL
        .iter()
        .map(|(code, title)| (code.to_string(), title))
        .filter(|(code, _)| !shown.contains(&format!("[{code}]")) && !elsewhere.iter().any(|(known, _)| known == code))
        .map(|(code, title)| format!("{code}: {title}"))
        .collect();
    none(missing);
}

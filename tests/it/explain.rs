//! `tscript explain`: the first script of each text truly gets its code, the second runs without one.

use super::scripts;
use std::time::Duration;
use tscript::Builder;
use tscript::internals::script::session::handle::PlannedFault;
use tscript::{Error, Session};

/// What a host program or the command line adds for a code's script.
fn settings(code: &str, builder: Builder) -> Builder {
    let fault = |text: &str| PlannedFault::parse(text).expect("a fault");
    let builder = builder.simulate_gpus(if code == "E0303" { 0 } else { 2 });
    match code {
        "E0107" => builder.module("a", "import \"a\" as a;"),
        "E0407" => builder.check(true),
        "E0408" => builder.simulate_fault(fault("lost:2@cuda:1")),
        "E0410" => builder.simulate_fault(fault("launch:1@cuda:0")),
        "E0801" => builder.operation_limit(1000),
        "E0804" => builder.memory_limit(1 << 20),
        "E0807" => builder.string_limit(1 << 16),
        "E0808" => builder.time_limit(Duration::from_millis(50)),
        _ => builder,
    }
}

/// The codes that running a script told, warnings among them.
fn reported(code: &str, script: &str, folder: &std::path::Path) -> Vec<String> {
    let warned = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = warned.clone();
    let all = if code == "E0604" { Session::builder() } else { Session::builder().all_files() };
    let builder = settings(code, all).output(|_| {}).module_root(folder);
    let builder = builder.on_warning(move |error: &Error| sink.lock().expect("no panic").push(error.code()));
    if script.trim_start().starts_with("// tscript check") {
        let mut session = builder.build().expect("a session starts");
        let found = session.check_source(&folder.join("explained.rhai"), script);
        return found.iter().map(|error| error.code().to_string()).collect();
    }
    let ran = builder.build().and_then(|mut session| session.run_str("explained.rhai", script));
    let mut codes: Vec<String> = warned.lock().expect("no panic").iter().map(|code| code.to_string()).collect();
    codes.extend(ran.err().map(|error| error.code().to_string()));
    codes
}

#[test]
fn examples_get_their_codes() {
    let elsewhere = [
        ("E0803", "needs somebody who stops it: tests/it/limits.rs"),
        ("E0805", "needs two sessions: tests/it/limits.rs"),
        ("E0806", "never, it is hoped"),
        ("E0809", "its script catches it: tests/embed/library.rs"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("half-downloaded.safetensors");
    std::fs::write(&place, [9, 0, 0, 0, 0, 0, 0, 0, b'{']).expect("it can be written");
    // What scripts save goes into the folder, too.
    let save = format!("save(\"{}/", folder.path().display());
    let here = |text: &str| {
        text.replace("half-downloaded.safetensors", &place.display().to_string()).replace("save(\"", &save)
    };
    let mut problems = Vec::new();
    for (code, _) in tscript::internals::base::code::ALL {
        let name = code.to_string();
        let scripts: Vec<String> = tscript::internals::base::explain::explain(*code)
            .split("```")
            .skip(1)
            .step_by(2)
            .map(|text| here(text.trim_start_matches("tscript")))
            .collect();
        if !elsewhere.iter().any(|(known, _)| *known == name) {
            let codes = reported(&name, &scripts[0], folder.path());
            if codes != [name.clone()] {
                problems.push(format!("{name}: its script gets {codes:?}"));
            }
        }
        // Files that only their readers have.
        if let Some(second) = scripts.get(1).filter(|text| !text.contains("load(")) {
            let codes = reported(&name, second, folder.path());
            if !codes.is_empty() {
                problems.push(format!("{name}: the script that does it right gets {codes:?}"));
            }
        }
    }
    scripts::none(problems);
    assert!(!std::path::Path::new("weights.safetensors").exists(), "a script wrote into the folder of the tests");
}

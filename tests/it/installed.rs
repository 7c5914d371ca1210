//! What a user meets who has just installed the program: its version, `new`, `doctor`, completions of shells, the manual page.

use crate::scripts::{none, program};
use std::path::Path;
use std::process::{Command, Output};

fn tscript(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program());
    command.args(words).current_dir(folder).env("NO_COLOR", "1");
    for name in ["TSCRIPT_SIMULATE_GPUS", "TSCRIPT_SIMD", "CUDA_VISIBLE_DEVICES"] {
        command.env_remove(name);
    }
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// What a command writes that must be done without a complaint.
fn written(words: &[&str], folder: &Path) -> String {
    let output = tscript(words, folder);
    assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{words:?}");
    text(&output.stdout)
}

#[test]
fn the_version_says_what_is_built() {
    let here = Path::new(".");
    let short = written(&["-V"], here);
    assert!(short.starts_with(concat!("tscript ", env!("CARGO_PKG_VERSION"))) && short.lines().count() == 1, "{short}");
    let long = written(&["--version"], here);
    assert_eq!(long.lines().next(), short.lines().next());
    assert!(
        long.contains("features: cli, cuda") && long.contains("vectors:  ") && long.contains("target:   "),
        "{long}"
    );
    let portable =
        Command::new(program()).arg("--version").env("TSCRIPT_SIMD", "portable").output().expect("it starts");
    assert!(text(&portable.stdout).contains("; here portable\n"));
}

/// The project runs, passes its own test, and has nothing that `check` finds.
#[test]
fn a_new_project_works() {
    let parent = tempfile::tempdir().expect("a folder");
    written(&["new", "circles"], parent.path());
    let folder = parent.path().join("circles");
    let out = written(&["run", "main.rhai", "--", "--steps", "300"], &folder);
    let last = out.lines().last().unwrap_or_default();
    let accuracy: f64 = last.rsplit(' ').next().and_then(|word| word.parse().ok()).expect(last);
    assert!(accuracy > 0.95, "{out}");
    assert!(written(&["test"], &folder).ends_with("2 passed, 0 failed\n"));
    assert_eq!(written(&["check", ".", "--deny-warnings"], &folder), "");
    assert!(text(&std::fs::read(folder.join("README.md")).expect("a page")).starts_with("# circles\n"));
    for settings in [".vscode/settings.json", ".helix/languages.toml", ".nvim.lua"] {
        assert!(text(&std::fs::read(folder.join(settings)).expect(settings)).contains("tscript"), "{settings}");
    }
    let again = tscript(&["new", "circles"], parent.path());
    assert_eq!((again.status.code(), text(&again.stdout)), (Some(1), String::new()));
    assert!(text(&again.stderr).starts_with("error: circles exists\n"));
    assert_eq!(tscript(&["new", ""], parent.path()).status.code(), Some(2));
}

#[test]
fn the_doctor_fails_only_where_something_is_broken() {
    let home = tempfile::tempdir().expect("a folder");
    let look = |words: &[&str], history: &Path, simd: &str| {
        let mut command = Command::new(program());
        command.args(words).env_remove("XDG_CACHE_HOME").env_remove("XDG_DATA_HOME").env("HOME", home.path());
        let output = command.env("TSCRIPT_HISTORY", history).env("TSCRIPT_SIMD", simd).output().expect("it starts");
        (text(&output.stdout), output.status.code())
    };
    let history = home.path().join("history");
    let (json, status) = look(&["doctor", "--json"], &history, "");
    let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let titles: Vec<&str> =
        found["sections"].as_array().expect("a list").iter().filter_map(|s| s["title"].as_str()).collect();
    assert_eq!(titles, ["program", "gpus", "folders", "terminal", "editors", "jupyter"]);
    // A machine may have a driver that does not start.
    let broken: Vec<&serde_json::Value> = found["sections"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|section| section["findings"].as_array().expect("a list"))
        .filter(|finding| finding["state"] == "broken")
        .collect();
    assert_eq!(status, Some(i32::from(!broken.is_empty())), "{json}");
    assert!(broken.iter().all(|finding| !finding["advice"].is_null()), "{broken:?}");
    assert!(!home.path().join(".cache").exists() && !history.exists(), "it changes nothing");
    let (report, status) = look(&["doctor"], &history, "");
    assert!(report.contains("  ok  history") && status.is_some_and(|status| status < 2), "{report}");
    std::fs::write(home.path().join("file"), "").expect("a file");
    let (report, status) = look(&["doctor"], &home.path().join("file").join("history"), "");
    assert!(report.contains("  !!  history") && report.contains("do: give the file"), "{report}");
    assert_eq!(status, Some(1));
    let (report, status) = look(&["doctor"], &history, "avx7");
    assert!(report.contains("  !!  vectors") && status == Some(1), "{report}");
}

/// A shell that is here, with its answer to a script; a machine may have none but bash.
fn shell(name: &str, words: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(name).args(words).current_dir(folder).output().ok()?;
    assert!(output.status.success() && output.stderr.is_empty(), "{name} {words:?}: {}", text(&output.stderr));
    Some(text(&output.stdout))
}

/// Lines as a user types them, and what each shell must offer among others.
const LINES: &[(&str, &[&str])] = &[
    ("tscript ru", &["run"]),
    ("tscript ", &["run", "doctor", "new", "model.rhai"]),
    ("tscript run --de", &["--device"]),
    ("tscript run --device c", &["cpu", "cuda"]),
    ("tscript run m", &["model.rhai"]),
    ("tscript --se", &["--seed"]),
    ("tscript check --message-format ", &["human", "short", "json"]),
    ("tscript completions ", &["bash", "zsh", "fish"]),
    ("tscript help env", &["environment"]),
    ("tscript explain E080", &["E0801"]),
];

/// Where nothing may be offered.
const NOTHING: &[&str] = &["tscript devices ", "tscript run --seed ", "tscript completions x", "tscript --zzz"];

fn answers(name: &str, ask: impl Fn(&str) -> Option<String>) {
    let mut problems = Vec::new();
    for (line, expected) in LINES {
        let Some(offered) = ask(line) else { return eprintln!("{name} is not here") };
        let offered: Vec<&str> = offered.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect();
        let missing = expected.iter().filter(|word| !offered.contains(word));
        problems.extend(missing.map(|word| format!("{name}: `{line}` offers {offered:?}, not {word}")));
        // fish offers scripts first, and other files behind them.
        if offered.contains(&"other.txt") && name != "fish" {
            problems.push(format!("{name}: `{line}` offers a file that is no script"));
        }
    }
    for line in NOTHING {
        let offered = ask(line).unwrap_or_default();
        if !offered.trim().is_empty() {
            problems.push(format!("{name}: `{line}` offers {offered:?}"));
        }
    }
    none(problems);
}

#[test]
fn shells_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["model.rhai", "other.txt"] {
        std::fs::write(folder.path().join(file), "").expect("a file");
    }
    for name in ["bash", "zsh", "fish"] {
        std::fs::write(folder.path().join(name), written(&["completions", name], folder.path())).expect("a file");
    }
    let here = folder.path();
    answers("bash", |line| {
        // bash gives the function the words, the last one empty after a space.
        let set = format!("COMP_WORDS=({line}); [[ '{line}' == *' ' ]] && COMP_WORDS+=('')");
        let ask = "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tscript; printf '%s\\n' \"${COMPREPLY[@]}\"";
        shell("bash", &["-c", &format!("source ./bash; {set}; {ask}")], here)
    });
    answers("fish", |line| {
        shell("fish", &["--no-config", "-c", &format!("source ./fish; complete -C '{line}'")], here)
    });
    shell("zsh", &["-n", "./zsh"], here);
}

/// bash splits `cuda:1` and `--device=cuda` into words of their own.
#[test]
fn bash_completes_behind_colons_and_equals_signs() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("bash"), written(&["completions", "bash"], folder.path())).expect("a file");
    for (words, expected) in
        [("cuda : ''", "0 1"), ("cuda : 1", "1"), ("= cu", "cuda cuda:0 cuda:1"), ("= cuda : 0", "0")]
    {
        let ask = "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tscript; echo \"${COMPREPLY[*]}\"";
        let text = format!("source ./bash; COMP_WORDS=(tscript run --device {words}); {ask}");
        assert_eq!(shell("bash", &["-c", &text], folder.path()).expect("bash").trim(), expected, "{words}");
    }
}

/// Every command and flag is on the page, and roff has nothing to say of it.
#[test]
fn the_manual_page_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = written(&["man"], folder.path());
    let mut problems = Vec::new();
    for command in tscript::internals::tools::command::commands() {
        if !page.contains(&format!(".SS tscript {command}")) {
            problems.push(format!("there is no section of `{command}`"));
        }
        let help = written(&["help", command], folder.path());
        let flags = help.split_whitespace().filter_map(|word| word.strip_prefix("--")).filter(|name| !name.is_empty());
        let flags = flags.map(|name| name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).replace('-', "\\-"));
        problems
            .extend(flags.filter(|name| !page.contains(&format!("\\-\\-{name}"))).map(|name| format!("no --{name}")));
    }
    std::fs::write(folder.path().join("tscript.1"), &page).expect("a page");
    match Command::new("groff").args(["-man", "-ww", "-z", "tscript.1"]).current_dir(folder.path()).output() {
        Ok(output) => problems.extend(text(&output.stderr).lines().map(String::from)),
        Err(_) => eprintln!("groff is not here"),
    }
    none(problems);
}

/// Paths that a source builds into the program, as literals.
fn built_in(text: &str) -> impl Iterator<Item = &str> {
    let after = |word: &'static str| text.split(word).skip(1).filter_map(|rest| rest.split('"').next());
    after("include_str!(\"").chain(after("include_bytes!(\""))
}

/// The package holds what the sources include; `.ci/package/crate` builds it.
#[test]
fn the_package_holds_what_the_sources_include() {
    let root = crate::scripts::root();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let (_, list) = manifest.split_once("\ninclude = [").expect("a list");
    let packed: Vec<&str> = list.split(']').next().unwrap_or_default().split('"').skip(1).step_by(2).collect();
    let packed: Vec<&str> = packed.into_iter().map(|entry| entry.trim_start_matches('/')).collect();
    let holds = |path: &Path| packed.iter().any(|entry| path.starts_with(entry.trim_end_matches('*')));
    let mut problems = Vec::new();
    let mut folders = vec![root.join("src"), root.join("tests/embed")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for file in built_in(&text) {
                let file = path.parent().expect("a folder").join(file).canonicalize();
                let inside =
                    file.as_ref().ok().and_then(|file| file.strip_prefix(root.canonicalize().ok()?).ok().map(holds));
                if inside != Some(true) {
                    problems.push(format!("{} includes {file:?}, which is not in the package", path.display()));
                }
            }
        }
    }
    for entry in &packed {
        let path = root.join(entry.trim_end_matches('*'));
        if !entry.ends_with('*') && !path.exists() {
            problems.push(format!("the package holds `{entry}`, which is not there"));
        }
    }
    none(problems);
}

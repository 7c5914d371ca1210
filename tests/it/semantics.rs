//! Devices, streams, events, memory: `scripts/semantics/NAME.rhai` prints what `NAME.out` says, then come the
//! warnings and the error. Each script runs as it is, with seeds 1 to 5 of virtual time, with windows of one
//! operation, and blocking: one expected text for all of them. `TSCRIPT_BLESS=1` rewrites the texts.
//!
//! The first lines of a script say how it runs:
//!
//! - `// run: --simulate-gpus 2` gives the flags of `tscript run`;
//! - `// not blocking: REASON`, `// not seeded: REASON`, `// not window 1: REASON` leave a way out;
//! - `// sim only: REASON` leaves the script out on real devices.
//!
//! With `TSCRIPT_TEST_DEVICES=cuda` they run on real GPUs: the flags that simulate are left out, and so are the scripts
//! that need more GPUs than there are.

use super::scripts::{self, compare, file_name, folder, none, on_real_gpus, real_gpus, root};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tscript::internals::tools::command::{Command, Settings, parse};
use tscript::internals::tools::render::{Coloring, render_error};
use tscript::{Builder, Session};

/// One way to run a script.
enum Way {
    Plain,
    Window,
    Seed(u64),
    Blocking,
}

/// What the head of a script says.
struct Head {
    words: Vec<String>,
    left_out: Vec<String>,
    is_sim_only: bool,
}

impl Head {
    fn of(text: &str) -> Head {
        let mut head = Head { words: Vec::new(), left_out: Vec::new(), is_sim_only: false };
        for line in text.lines().map_while(|line| line.strip_prefix("// ")) {
            if let Some(words) = line.strip_prefix("run:") {
                head.words = words.split_whitespace().map(str::to_string).collect();
            } else if let Some(way) = line.strip_prefix("not ") {
                head.left_out.push(way.split(':').next().unwrap_or("").to_string());
            } else if line.starts_with("sim only:") {
                head.is_sim_only = true;
            }
        }
        head
    }

    fn allows(&self, way: &Way) -> bool {
        let name = match way {
            Way::Plain => return true,
            Way::Window => "window 1",
            Way::Seed(_) => "seeded",
            Way::Blocking => "blocking",
        };
        !self.left_out.iter().any(|left| left == name)
    }

    fn settings(&self) -> Settings {
        let words = ["run".to_string(), "x.rhai".to_string()].into_iter().chain(self.words.clone());
        match parse(words.map(OsString::from).collect()) {
            Ok(Command::Run { settings, .. }) => settings,
            other => panic!("{:?} is no command line: {other:?}", self.words),
        }
    }
}

/// What a script says, run in one way: what it prints, then warnings, then its error.
pub fn said(mut builder: Builder, name: &str, text: &str) -> String {
    let printed = Arc::new(Mutex::new(String::new()));
    let warnings = Arc::new(Mutex::new(String::new()));
    let (sink, reported) = (printed.clone(), warnings.clone());
    builder = builder.output(move |line| {
        let mut text = sink.lock().expect("no test panics while printing");
        text.push_str(line);
        text.push('\n');
    });
    builder = builder.on_warning(move |warning| {
        reported.lock().expect("no test panics while printing").push_str(&render_error(warning, Coloring::Off));
    });
    let result = builder.build().and_then(|mut session| session.run_str(name, text));
    let mut all = printed.lock().expect("no test panics while printing").clone();
    all += &warnings.lock().expect("no test panics while printing");
    if let Err(error) = result {
        all += &render_error(&error, Coloring::Off);
    }
    all
}

fn builder(head: &Head, way: &Way) -> Builder {
    let mut settings = head.settings();
    if on_real_gpus() {
        settings.simulate_gpus = None;
    } else if let Way::Seed(seed) = way {
        settings.simulate_seed = Some(*seed);
    }
    let builder = tscript::internals::tools::run::builder(&settings);
    match way {
        Way::Window => builder.window(1),
        Way::Blocking => builder.blocking(true),
        _ => builder,
    }
}

fn scripts() -> Vec<PathBuf> {
    let folder = root().join("scripts/semantics");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rhai"));
    found.sort();
    found
}

#[test]
fn scripts_say_what_they_said_in_every_way() {
    let only = std::env::var("TSCRIPT_SEMANTICS").ok();
    let gpus = if on_real_gpus() { real_gpus() } else { usize::MAX };
    let mut problems = Vec::new();
    for path in scripts() {
        let text = std::fs::read_to_string(&path).expect("a script");
        let (name, head) = (file_name(&path), Head::of(&text));
        let expected = head.settings().simulate_gpus.unwrap_or(0);
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        if on_real_gpus() && (head.is_sim_only || expected > gpus) {
            println!("{name} is left out: it needs {expected} GPUs");
            continue;
        }
        let plain = said(builder(&head, &Way::Plain), &name, &text);
        problems.extend(compare(&path.with_extension("out"), &plain));
        let mut ways = vec![(Way::Window, "a window of one".to_string()), (Way::Blocking, "blocking".to_string())];
        if !on_real_gpus() {
            ways.extend((1..=5).map(|seed| (Way::Seed(seed), format!("seed {seed}"))));
        }
        for (way, reported) in ways.iter().filter(|(way, _)| head.allows(way)) {
            let other = said(builder(&head, way), &name, &text);
            if other != plain {
                problems.push(format!("{name}: {reported} says\n{other}instead of\n{plain}"));
            }
        }
    }
    none(problems);
}

/// The index in the README names every script, and no script that is not there.
#[test]
fn every_script_is_in_the_index() {
    let readme = root().join("scripts/semantics/README.md");
    let index = std::fs::read_to_string(readme).expect("the index");
    let names: Vec<String> = scripts().iter().map(|path| file_name(path)).collect();
    let mut problems: Vec<String> = names
        .iter()
        .filter(|name| !index.contains(&format!("`{name}`")))
        .map(|name| format!("{name} is missing"))
        .collect();
    let named = index.split('`').filter(|word| word.ends_with(".rhai") && !word.contains(' '));
    problems.extend(named.filter(|word| !names.iter().any(|name| name == word)).map(|word| format!("no {word}")));
    none(problems);
}

/// Every request for memory of a training script fails once, the first to the last: the script catches it, goes on,
/// and ends with the weights that it would have had.
#[test]
fn any_request_for_memory_may_fail() {
    let text = std::fs::read_to_string(folder("fixtures").join("alloc_fault.rhai")).expect("a script");
    let run = |fault: Option<u64>| {
        let mut builder = Session::builder().all_files().simulate_gpus(1);
        if let Some(nth) = fault {
            let fault =
                tscript::internals::script::session::handle::PlannedFault::parse(&format!("alloc:{nth}@cuda:0"));
            builder = builder.simulate_fault(fault.expect("well formed"));
        }
        said(builder, "alloc_fault.rhai", &text)
    };
    let clean = run(None);
    let (failed_without, values) = clean.split_once('\n').expect("two lines");
    assert_eq!(failed_without, "0");
    let mut nth = 1;
    loop {
        let said = run(Some(nth));
        let (failed, rest) = said.split_once('\n').expect("two lines");
        assert_eq!(rest, values, "request {nth}");
        if failed == "0" {
            break;
        }
        assert_eq!(failed, "1", "request {nth}: {said}");
        nth += 1;
    }
    assert!(nth > 20, "only {} requests were made to fail", nth - 1);
}

/// What the program prints for a script that is given at once, with these variables of the environment.
fn program(words: &[&str], environment: &[(&str, &str)], script: &str) -> String {
    let folder = std::env::temp_dir().join(format!("tscript-semantics-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the script");
    let file = folder.join(format!("{}.rhai", environment.iter().map(|pair| pair.0).collect::<String>()));
    std::fs::write(&file, script).expect("the script can be written");
    let mut command = std::process::Command::new(scripts::program());
    command.arg("run").args(words).arg(&file).env_remove("CUDA_VISIBLE_DEVICES").env("NO_COLOR", "1");
    let output = command.envs(environment.iter().copied()).output().expect("the program runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr)
}

/// The exit status of the program for a script, and whether its error output names this code.
fn status(words: &[&str], script: &str, code: &str) -> (Option<i32>, bool) {
    let folder = std::env::temp_dir().join(format!("tscript-status-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the script");
    let file = folder.join(format!("s{}.rhai", script.len()));
    std::fs::write(&file, script).expect("the script can be written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tscript"));
    command.arg("run").args(words).arg(&file).env_remove("CUDA_VISIBLE_DEVICES").env("NO_COLOR", "1");
    let output = command.output().expect("the program runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).contains(code))
}

/// 3 for a lost device that nobody caught, also when nobody read what it made, or another error came first; a loss
/// that was caught counts as little as any other error that was.
#[test]
fn the_exit_status_shows_a_lost_device() {
    let lost = ["--simulate-gpus", "2", "--simulate-fault", "lost:2@cuda:1"];
    let use_it = "let x = ones([1], #{device: \"cuda:1\"}); synchronize(); let y = x + 1;";
    let reported = |rest: &str| status(&lost, &format!("{use_it} {rest}"), "E0408");
    assert_eq!(reported("print(y.sum().item());"), (Some(3), true));
    assert_eq!(reported("print(1);"), (Some(3), true), "the end of the script tells it");
    assert_eq!(reported("throw 1;"), (Some(3), true), "beside the script's own error");
    assert_eq!(reported("try { y.item(); } catch (e) { print(e.code); }"), (Some(0), false));
    assert_eq!(
        reported("try { synchronize(1); } catch (e) { print(e.code); } print(ones([2], #{device: 0}).sum());"),
        (Some(0), false)
    );
    assert_eq!(reported("try { synchronize(1); } catch { } throw 1;"), (Some(1), false));
    assert_eq!(
        reported("try { synchronize(1); } catch { } y.sum().item();"),
        (Some(3), true),
        "used again, not caught"
    );
    assert_eq!(status(&["--blocking", lost[0], lost[1], lost[2], lost[3]], use_it, "E0408"), (Some(3), true));
    assert_eq!(status(&lost, "print(1);", "E0408"), (Some(0), false));
    assert_eq!(status(&lost, "throw 1;", "E0408"), (Some(1), false));
    assert_eq!(status(&["--no-such-flag"], "print(1);", "E0408"), (Some(2), false));
}

#[test]
fn the_environment_chooses_devices_and_the_way_to_run() {
    let count = "print([cuda::device_count(), cuda::is_available()]);";
    let visible = |list| program(&["--simulate-gpus", "4"], &[("CUDA_VISIBLE_DEVICES", list)], count);
    assert_eq!(visible("0,2"), "[2, true]\n");
    assert_eq!(visible("3,1,0"), "[3, true]\n");
    assert_eq!(visible("1,7,2"), "[1, true]\n", "the list ends at the first index that does not exist");
    assert_eq!(visible(""), "[0, false]\n");
    assert_eq!(visible("-1"), "[0, false]\n");
    assert_eq!(program(&[], &[("TSCRIPT_SIMULATE_GPUS", "3")], count), "[3, true]\n");
    assert_eq!(program(&["--simulate-gpus", "1"], &[("TSCRIPT_SIMULATE_GPUS", "3")], count), "[1, true]\n");
    let pending = "cuda::sleep(500); print(current_stream().query());";
    for (name, done) in
        [("TSCRIPT_LAUNCH_BLOCKING", "true\n"), ("CUDA_LAUNCH_BLOCKING", "true\n"), ("OTHER", "false\n")]
    {
        assert_eq!(program(&["--simulate-gpus", "1"], &[(name, "1")], pending), done, "{name}");
    }
}

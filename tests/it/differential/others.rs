//! Random programs in the program itself, from a file and from the standard input; and how much memory they hold on a GPU.

use super::modes::{self, Mode};
use super::program::{Kind, Program};
use super::{budget, setting};
use crate::scripts::{none, program as tscript};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Lines that it prints, and its exit status; from the standard input where there is no file.
fn run(folder: &Path, file: Option<&str>, text: &str) -> (Vec<String>, i32) {
    let mut command = Command::new(tscript());
    command.args(["run", "--simulate-gpus", "2", file.unwrap_or("-")]).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    for name in ["CUDA_VISIBLE_DEVICES", "TSCRIPT_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().expect("it starts");
    // It may end without reading.
    let _ = child.stdin.take().expect("piped").write_all(text.as_bytes());
    let out = child.wait_with_output().expect("it ends");
    let lines = String::from_utf8(out.stdout).expect("text").lines().map(str::to_string).collect();
    (lines, out.status.code().unwrap_or(-1))
}

#[test]
fn random_programs_do_the_same_in_a_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it can be written");
    write("shown.rhai", modes::SHOW);
    let (begun, first) = (Instant::now(), setting("TSCRIPT_FUZZ_SEED").unwrap_or(1));
    let mut problems = Vec::new();
    let mut seed = first;
    while begun.elapsed() < budget() {
        let kind = if seed % 2 == 0 { Kind::Strict } else { Kind::Late };
        let program = Program::of(kind, seed);
        let text = program.text(Mode::BASE);
        write("random.rhai", &text);
        let shown = modes::run(&program, Mode::BASE);
        let status = shown.last().is_some_and(|line| line.starts_with("ends with")) as i32;
        let reported = |line: &&String| !line.starts_with("ends with") && !line.starts_with("warning");
        let expected: Vec<String> = shown.iter().filter(reported).cloned().collect();
        for file in [None, Some("random.rhai")] {
            let got = run(folder.path(), file, &text);
            if got != (expected.clone(), status) {
                let at = got.0.iter().zip(&expected).take_while(|(a, b)| a == b).count();
                let of = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "nothing".to_string());
                let (seen, meant) = (of(&got.0), of(&expected));
                problems.push(format!(
                    "{kind:?} seed {seed}, {file:?}: status {} for {status}\nwanted: {meant}\nfound:  {seen}",
                    got.1
                ));
            }
        }
        seed += 1;
    }
    println!("in a process: {} programs, {} problems", seed - first, problems.len());
    none(problems);
}

/// What is still there when everything has run does not depend on when it ran.
#[test]
fn random_programs_hold_the_same_memory_in_every_mode() {
    let (begun, first) = (Instant::now(), setting("TSCRIPT_FUZZ_SEED").unwrap_or(1));
    let mut problems = Vec::new();
    let mut seed = first;
    while begun.elapsed() < budget() && problems.len() < super::MOST {
        let program = Program::of(Kind::Strict, seed);
        let held = |mode: Mode| {
            let lines = modes::run_text(&with_memory(&program.text(mode)), mode);
            lines.into_iter().find(|line| line.starts_with("held ")).unwrap_or_default()
        };
        let expected = held(Mode::GpuBlocking);
        assert!(expected.starts_with("held "), "seed {seed}: nothing was told");
        for mode in [Mode::Gpu, Mode::Seed(seed)] {
            let found = held(mode);
            if found != expected {
                problems.push(format!("seed {seed}, {mode:?}: {found}, blocking: {expected}\n{}", program.text(mode)));
            }
        }
        seed += 1;
    }
    println!("memory: {} programs, {} problems", seed - first, problems.len());
    none(problems);
}

/// Tells at the end what the GPUs hold, without what only the rest of a statement with a fault makes, which runs where the
/// fault comes late: retained gradients, states of an optimizer's first step.
fn with_memory(text: &str) -> String {
    let end = "o = (); for t in [t0, t1, t2, t3] { t.grad = (); } try { synchronize(); } catch (e) { } \
        print(`held ${cuda::memory_allocated(0)} ${cuda::memory_allocated(1)}`);\n";
    let at = text.rfind("print(rand([2])").expect("every program ends so");
    format!("{}{end}{}", &text[..at], &text[at..])
}

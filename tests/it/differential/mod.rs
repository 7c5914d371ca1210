//! Random programs, run in every way there is: they print the same, on the CPU and on simulated GPUs, with windows of many
//! and of one, blocking, and in whatever order a GPU ends its work; and they give what PyTorch gives.
//!
//! `TSCRIPT_FUZZ_SECONDS` says how long to look (a few seconds unless given), `TSCRIPT_FUZZ_SEED` where to begin;
//! `TSCRIPT_FUZZ_ONE=17` shows that program and what each mode prints. A difference is told with its seed and the
//! shortest program that still has it.

mod modes;
mod others;
mod program;
mod torch;

use super::scripts::none;
use modes::{Mode, Runners, differs, run};
use program::{Kind, Program};
use std::time::{Duration, Instant};

/// A number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|word| word.parse().unwrap_or_else(|_| panic!("{name}={word} is no number")))
}

/// How long one of the searches may take.
pub fn budget() -> Duration {
    Duration::from_secs(setting("TSCRIPT_FUZZ_SECONDS").unwrap_or(4))
}

/// Bound: differences that one search tells; each costs some hundred runs to shorten.
const MOST: usize = 8;

fn search(kind: Kind) {
    if let Some(seed) = setting("TSCRIPT_FUZZ_ONE") {
        return show(&Program::of(kind, seed));
    }
    let begun = Instant::now();
    let first = setting("TSCRIPT_FUZZ_SEED").unwrap_or(1);
    let mut problems = Vec::new();
    let mut seed = first;
    let mut runners = Runners::default();
    while begun.elapsed() < budget() && problems.len() < MOST {
        let program = Program::of(kind, seed);
        if let Some((mode, why)) = runners.differ(&program, &Mode::some(kind, seed)) {
            problems.push(explained(program, mode, &why, &format!("{kind:?} seed {seed}")));
            runners = Runners::default();
        }
        seed += 1;
    }
    println!("{kind:?}: {} programs in {:.0?}, {} problems", seed - first, begun.elapsed(), problems.len());
    none(problems);
}

/// A difference with the shortest program that has it.
fn explained(program: Program, mode: Mode, why: &str, name: &str) -> String {
    // What threads do is not the same every time.
    if !(0..5).any(|_| differs(&program, mode).is_some()) {
        return format!("{name}, {mode:?}, only after other programs or now and then:\n{}\n{why}", program.text(mode));
    }
    let short = shortened(program, mode);
    let why = differs(&short, mode).unwrap_or_else(|| why.to_string());
    let statements: Vec<String> = short.statements.iter().map(|one| format!("{one:?}")).collect();
    format!("{name}, {mode:?}:\n  {}\n  {}\n{why}", short.optimizer, statements.join("\n  "))
}

/// Leaves statements out while the difference stays.
fn shortened(mut program: Program, mode: Mode) -> Program {
    let mut at = program.statements.len();
    while at > 0 {
        at -= 1;
        let mut shorter = program.clone();
        shorter.statements.remove(at);
        if differs(&shorter, mode).is_some() {
            program = shorter;
            at = at.min(program.statements.len());
        }
    }
    program
}

fn show(program: &Program) {
    for mode in Mode::all(program.kind) {
        println!("== {mode:?}\n{}\n-- {}", program.text(mode), run(program, mode).join("\n-- "));
    }
}

#[test]
fn random_programs_do_the_same_in_every_mode() {
    search(Kind::Strict);
}

#[test]
fn random_programs_with_faults_do_the_same_on_every_device() {
    search(Kind::Late);
}

/// The judge itself must be able to say no.
#[test]
fn a_difference_is_seen_and_shortened() {
    let statement =
        |text: &str| program::Statement { text: text.to_string(), caught: true, ..program::Statement::default() };
    // What a device is called is the one thing that modes may disagree on; here it is asked for on purpose.
    let fault = "if t0.is_cuda { t1.add_(1); }";
    let statements = ["t0 *= 2;", fault, "t2 = t2 + 1;"].map(statement).to_vec();
    let program = Program { kind: Kind::Strict, optimizer: "sgd([p0, p1], #{lr: 0.1})".to_string(), statements };
    assert_eq!(differs(&program, Mode::Window), None);
    let why = differs(&program, Mode::Gpu).expect("t1 is another one");
    assert!(why.contains("t1"), "{why}");
    assert_eq!(shortened(program, Mode::Gpu).statements, [statement(fault)]);
}

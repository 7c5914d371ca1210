//! Random programs of the language itself (values, control flow, functions, closures, methods, errors, limits). The
//! committed ones do what Rhai's own evaluator made of them; any other does the same in a session that looks at the size
//! of each value, in which the machine takes none of its short ways.
//!
//! `TSCRIPT_FUZZ_SECONDS` says how long to look (a few seconds unless given), `TSCRIPT_FUZZ_SEED` where to begin;
//! `TSCRIPT_FUZZ_ONE=17` shows that program and what each session makes of it. After a message of the language has
//! changed, `TSCRIPT_BLESS=1` writes the fixture again: look at the programs that it names first.

mod expressions;
mod program;
mod statements;

use super::differential::{budget, setting};
use super::scripts::{builder, none, root};
use program::Program;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tscript::internals::tools::render::{Coloring, render_error};

/// Bound: differences that a search tells.
const MOST: usize = 8;

/// The text of the program of a seed.
pub fn text_of(seed: u64) -> String {
    Program::of(seed).text()
}

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    printed: String,
    end: String,
    code: String,
}

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Plain,
    /// With limits on the sizes of values.
    Watched,
}

/// Runs a text in a session of its own; `limit` is one of operations.
fn run(way: Way, text: &str, limit: Option<u64>) -> Outcome {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let builder = match way {
        Way::Watched => builder().untrusted().time_limit(Duration::from_secs(600)),
        _ => builder(),
    };
    let builder = builder.call_depth_limit(40).operation_limit(limit.unwrap_or(400_000));
    let builder = builder.output(move |line| {
        let mut text = sink.lock().expect("no test panics while printing");
        text.push_str(line);
        text.push('\n');
    });
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut session = builder.build().expect("a session starts");
        let mut result = session.run_str("program", text);
        // The session goes on, and its variables are what they were.
        if result.is_ok() {
            result = session.run_str("after", program::AFTER);
        }
        result
    }));
    let (end, code) = match ran {
        Ok(Ok(())) => ("ended".to_string(), String::new()),
        Ok(Err(error)) => (render_error(&error, Coloring::Off), error.code()),
        Err(_) => ("panicked".to_string(), "panic".to_string()),
    };
    let printed = printed.lock().map(|text| text.clone()).unwrap_or_default();
    Outcome { printed, end, code }
}

/// What is different, if anything is. Steps are counted otherwise, so that of a limit only the code is compared, and
/// what was printed before it.
fn differs(text: &str, limit: Option<u64>) -> Option<String> {
    let plain = run(Way::Plain, text, limit);
    if plain.code == "panic" || plain.code == "E0806" {
        return Some(format!("{}{}", plain.printed, plain.end));
    }
    let watched = run(Way::Watched, text, limit);
    let same = match [&plain, &watched].iter().any(|outcome| outcome.code == "E0801") {
        true => plain.printed.starts_with(&watched.printed) || watched.printed.starts_with(&plain.printed),
        false => plain == watched,
    };
    let shown = |outcome: &Outcome| format!("{}{}", outcome.printed, outcome.end);
    (!same).then(|| format!("-- plain\n{}\n-- watched\n{}", shown(&plain), shown(&watched)))
}

fn search(limited: bool) {
    let limit = |seed: u64| limited.then(|| 50 + seed * 7919 % 3000);
    if let Some(seed) = setting("TSCRIPT_FUZZ_ONE") {
        let text = Program::of(seed).text();
        println!("{text}\n{:?}", differs(&text, limit(seed)));
        for way in [Way::Plain, Way::Watched] {
            let outcome = run(way, &text, limit(seed));
            println!("-- {way:?}\n{}{}", outcome.printed, outcome.end);
        }
        return;
    }
    let begun = Instant::now();
    let first = setting("TSCRIPT_FUZZ_SEED").unwrap_or(1);
    let mut seed = first;
    let mut problems = Vec::new();
    while begun.elapsed() < budget() && problems.len() < MOST {
        let program = Program::of(seed);
        if differs(&program.text(), limit(seed)).is_some() {
            let short = program.shortened(&|text| differs(text, limit(seed)).is_some());
            let why = differs(&short.text(), limit(seed)).unwrap_or_default();
            problems.push(format!("seed {seed}:\n{}{why}", short.text()));
        }
        seed += 1;
    }
    println!("random programs: {} programs in {:.0?}, {} problems", seed - first, begun.elapsed(), problems.len());
    none(problems);
}

/// FNV-1a of what a program did.
fn digest(outcome: &Outcome) -> u64 {
    let texts = [&outcome.printed, "\0", &outcome.end, "\0", &outcome.code];
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn programs_do_what_rhais_evaluator_made_of_them() {
    let path = root().join("tests/fixtures/random_programs.txt");
    let known = std::fs::read_to_string(&path).expect("the fixture");
    let blesses = std::env::var_os("TSCRIPT_BLESS").is_some();
    let (mut lines, mut problems) = (String::new(), Vec::new());
    for line in known.lines() {
        let Some((seed, expected)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else {
            lines.push_str(&format!("{line}\n"));
            continue;
        };
        let seed: u64 = seed.parse().expect("a seed");
        let text = Program::of(seed).text();
        let outcome = run(Way::Plain, &text, None);
        let found = format!("{:016x}", digest(&outcome));
        lines.push_str(&format!("{seed} {found}\n"));
        if found != expected && problems.len() < MOST {
            problems.push(format!("seed {seed}:\n{text}\n--\n{}{}", outcome.printed, outcome.end));
        }
    }
    if blesses {
        problems.iter().for_each(|problem| println!("{problem}"));
        return std::fs::write(&path, lines).expect("the fixture is written");
    }
    none(problems);
}

#[test]
fn random_programs_do_the_same_in_every_session() {
    search(false);
}

#[test]
fn random_programs_under_a_limit_end_in_the_same_way() {
    search(true);
}

/// The judge itself must be able to say no.
#[test]
fn a_difference_of_outputs_is_seen() {
    let print = |text: &str| run(Way::Plain, text, None);
    assert_ne!(print("print(1);"), print("print(2);"));
    assert_ne!(print("let x = 1;\nx.no_such();"), print("let x = 1;\n\nx.no_such();"));
    assert_ne!(digest(&print("print(1);")), digest(&print("print(2);")));
    assert_eq!(print("let x = 1;\nx.no_such();"), run(Way::Watched, "let x = 1;\nx.no_such();", None));
}

//! Random programs of the language itself (values, control flow, functions, closures, methods, errors, limits), run by the
//! compiled machine and by Rhai's evaluator: both print the same and end with the same error, place and calls included.
//!
//! `TSCRIPT_FUZZ_SECONDS` says how long to look (a few seconds unless given), `TSCRIPT_FUZZ_SEED` where to begin;
//! `TSCRIPT_FUZZ_ONE=17` shows that program and what each evaluator makes of it.

mod expressions;
mod program;
mod statements;

use super::differential::{budget, setting};
use super::scripts::{builder, none};
use program::Program;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tscript::internals::script::session::compiled::Evaluator;
use tscript::internals::tools::render::{Coloring, render_error};

/// Bound: differences that a search tells.
const MOST: usize = 8;

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    printed: String,
    end: String,
    code: String,
}

/// Runs a text in a session of its own; `limit` is one of operations.
fn run(evaluator: Evaluator, text: &str, limit: Option<u64>) -> Outcome {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let builder = builder().evaluator(evaluator).call_depth_limit(40).operation_limit(limit.unwrap_or(400_000));
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
    let [rhai, compiled] = [Evaluator::Rhai, Evaluator::Compiled].map(|evaluator| run(evaluator, text, limit));
    let limited = [&rhai, &compiled].iter().any(|outcome| outcome.code == "E0801");
    let same = if limited {
        rhai.printed.starts_with(&compiled.printed) || compiled.printed.starts_with(&rhai.printed)
    } else {
        rhai == compiled
    };
    // Rhai refuses closures that name what a method calls them for; compiled code lets them read it.
    // It has no closures that name themselves, nor ones that share the `this` around them.
    // Nor do floats that are whole numbers stand for integers in it.
    let only_compiled = ["E0111", "__lend", "__me", "a float"];
    let refused = only_compiled.iter().any(|word| rhai.end.contains(word) || rhai.printed.contains(word));
    let same = (same || refused) && compiled.end != "panicked";
    (!same).then(|| format!("-- Rhai\n{}{}\n-- compiled\n{}{}", rhai.printed, rhai.end, compiled.printed, compiled.end))
}

fn search(limited: bool) {
    let limit = |seed: u64| limited.then(|| 50 + seed * 7919 % 3000);
    if let Some(seed) = setting("TSCRIPT_FUZZ_ONE") {
        let text = Program::of(seed).text();
        println!("{text}\n{:?}", differs(&text, limit(seed)));
        for evaluator in [Evaluator::Rhai, Evaluator::Compiled] {
            let outcome = run(evaluator, &text, limit(seed));
            println!("-- {evaluator:?}\n{}{}", outcome.printed, outcome.end);
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
    println!("evaluators: {} programs in {:.0?}, {} problems", seed - first, begun.elapsed(), problems.len());
    none(problems);
}

#[test]
fn random_programs_do_the_same_compiled_and_interpreted() {
    search(false);
}

#[test]
fn random_programs_under_a_limit_end_in_the_same_way() {
    search(true);
}

/// The judge itself must be able to say no: whether a value is the default of a name is asked of the program.
#[test]
fn a_difference_of_outputs_is_seen() {
    let print = |text: &str| run(Evaluator::Compiled, text, None);
    assert_ne!(print("print(1);"), print("print(2);"));
    assert_ne!(print("let x = 1;\nx.no_such();"), print("let x = 1;\n\nx.no_such();"));
    assert_eq!(print("let x = 1;\nx.no_such();"), run(Evaluator::Rhai, "let x = 1;\nx.no_such();", None));
}

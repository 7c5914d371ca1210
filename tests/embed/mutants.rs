//! Damaged scripts and JSON: the repository's own scripts, cut, spliced and changed, are parsed, checked and run under
//! limits without a panic, and the session goes on.
//!
//! `TSCRIPT_DAMAGE_SECONDS` says how long each is tried (half a second unless given), `TSCRIPT_FUZZ_SEED` from which
//! seed on.

use super::random::{Random, mutate};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tscript::{Builder, Session};

fn limited() -> Builder {
    Session::builder()
        .untrusted()
        .operation_limit(50_000)
        .time_limit(Duration::from_secs(10))
        .heap_limit(32 << 20)
        .memory_limit(64 << 20)
        .device_memory_limit(64 << 20)
        .simulate_gpus(2)
        .simulate_seed(1)
        .output(|_| {})
}

/// Every script of a few folders, small enough to try often.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> =
        ["tests/golden", "tests/errors", "tests/std", "scripts", "std"].map(|name| root.join(name)).to_vec();
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => paths.push(path),
            }
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rhai"));
    paths.sort();
    // Files of the errors' tests are not always texts.
    let texts = paths.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let small: Vec<String> = texts.filter(|text| text.len() < 8000).collect();
    assert!(small.len() > 50, "only {} scripts", small.len());
    small
}

/// Words and signs, each with what stands before it.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    let mut word = false;
    for (at, c) in text.char_indices() {
        let now = c.is_alphanumeric() || c == '_';
        if at > from && !(word && now) {
            found.push(&text[from..at]);
            from = at;
        }
        word = now;
    }
    found.push(&text[from..]);
    found
}

fn mutant(corpus: &[String], random: &mut Random) -> String {
    let text = &corpus[random.below(corpus.len())];
    if random.once_in(4) {
        let mut bytes = text.clone().into_bytes();
        mutate(&mut bytes, random);
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut list = tokens(text);
    for _ in 0..=random.below(5) {
        let at = random.below(list.len());
        let other = tokens(&corpus[random.below(corpus.len())]);
        let piece = other[random.below(other.len())];
        match random.below(6) {
            0 => drop(list.remove(at)),
            1 => list.insert(at, piece),
            2 => list[at] = piece,
            3 => list.truncate(at + 1),
            4 => {
                list[at] =
                    random.one(&["0", "-1", "9223372036854775807", "1e308", "()", "[]", "#{}", "\"\"", "..", "{", "}"])
            }
            _ => {
                let end = (at + random.below(20)).min(list.len());
                let moved: Vec<&str> = list[at..end].to_vec();
                let to = random.below(list.len());
                list.splice(to..to, moved);
            }
        }
        if list.is_empty() {
            break;
        }
    }
    list.concat()
}

/// Tries for the time that is given, and some rounds in any case; the number of rounds.
fn rounds(least: usize, mut round: impl FnMut(&mut Random)) -> usize {
    let reported = |name: &str| std::env::var(name).ok().and_then(|word| word.parse::<f64>().ok());
    let budget = Duration::from_secs_f64(reported("TSCRIPT_DAMAGE_SECONDS").unwrap_or(0.5));
    let mut random = Random::new(reported("TSCRIPT_FUZZ_SEED").unwrap_or(1.0) as u64);
    let (begun, mut count) = (Instant::now(), 0);
    while count < least || begun.elapsed() < budget {
        round(&mut random);
        count += 1;
    }
    count
}

/// Bound: texts that one session runs; it keeps the lines of each.
const TEXTS: usize = 20;

#[test]
fn damaged_scripts() {
    let corpus = corpus();
    let mut session = limited().build().expect("a session starts");
    let (mut used, mut refused) = (0, 0);
    let count = rounds(60, |random| {
        let text = mutant(&corpus, random);
        let begun = Instant::now();
        let checked = session.check_source(Path::new("mutant.rhai"), &text);
        let ran = session.run_str("mutant", &text);
        for error in checked.iter().chain(ran.as_ref().err()) {
            assert_ne!(error.code(), "E0806", "{error}\n{text}");
            let _ = tscript::internals::tools::render::render_error(
                error,
                tscript::internals::tools::render::Coloring::Off,
            );
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?} for\n{text}", begun.elapsed());
        refused += usize::from(ran.is_err());
        used += 1;
        // What is still held may be as much as the limits let.
        let goes_on = session.eval::<i64>("1 + 1");
        assert!(goes_on.as_ref().is_ok_and(|two| *two == 2) || goes_on.is_err_and(|e| e.code() == "E0804"), "{text}");
        if used == TEXTS {
            session = limited().build().expect("a session starts");
            used = 0;
        }
    });
    println!("{count} damaged scripts, {refused} refused");
}

const JSON: &[&str] = &[
    r#"{"a": [1, 2.5, -3e-7, true, false, null], "b": {"c": "text \u00fc \n \"quoted\"", "": []}}"#,
    r#"[[], [[]], {}, {"k": {"k": {"k": 0}}}, "", "\ud83d\ude00", 9223372036854775807, -9223372036854775808]"#,
    r#"  [0, -0.0, 1E5, 1e-320, 123456789012345678901234567890, 0.1]  "#,
    "\"\\\\ \\/ \\b \\f \\n \\r \\t\"",
];

/// What is accepted is the same after it was written and read again.
#[test]
fn damaged_json() {
    let mut session = limited().build().expect("a session starts");
    let mut accepted = 0;
    let count = rounds(400, |random| {
        let mut bytes = random.one(JSON).as_bytes().to_vec();
        mutate(&mut bytes, random);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        session.set("text", text.clone()).expect("a text");
        match session.run_str("json", "let v = parse_json(text); let again = parse_json(to_json(v));") {
            Ok(()) => {
                accepted += 1;
                let same = session.eval::<bool>("to_json(v) == to_json(again)");
                assert!(same.is_ok_and(|same| same), "{text}");
            }
            Err(error) => assert_ne!(error.code(), "E0806", "{error}\n{text}"),
        }
    });
    println!("{count} damaged texts of JSON, {accepted} accepted");
    assert!(accepted > 0 && accepted < count, "{accepted} of {count}");
}

//! Texts whose blanks are changed in every way keep their tokens and comments; the time that formatting takes.

use super::comments::{Comment, comments};
use super::same::{self, Cut};
use super::{WIDTH, format};
use crate::script::source::lex::{Kind, Token, lex, script_start};
use std::path::{Path, PathBuf};

fn is_same(before: &str, after: &str) -> bool {
    Cut::of(before).is_some_and(|before| same::is_same(&before, after))
}

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rhai") {
            found.push(path);
        }
    }
}

/// The texts of the repository that can be cut into tokens.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    ["scripts", "std", "tests"].iter().for_each(|name| scripts(&root.join(name), &mut found));
    found.sort();
    let texts = found.iter().map(|path| std::fs::read_to_string(path).expect("a script"));
    texts.filter(|text| lex(text, script_start(text)).is_ok()).collect()
}

/// Other blanks between the tokens; comments, texts with interpolations, and what stands on one line because it must
/// stay as they are. A new comment comes into one of so many blanks, if that is not 0.
fn shaken(text: &str, rarity: usize, random: &mut impl FnMut(usize) -> usize) -> String {
    let from = script_start(text);
    let tokens = lex(text, from).expect("tokens");
    let remarks: Vec<Comment> = comments(text, &tokens, from);
    let mut out = text[..from].to_string();
    if from > 0 {
        out.push('\n');
    }
    let mut at = from;
    let mut inside = 0;
    for (index, token) in tokens.iter().enumerate() {
        let gap = &text[at..token.start as usize];
        let has_comment = remarks.iter().any(|comment| comment.start as usize >= at && comment.end <= token.start);
        let before = index.checked_sub(1).map(|before: usize| &tokens[before]);
        let word = |token: &Token| &text[token.range()];
        let calls = before.is_some_and(|before| matches!(word(before), ")" | "]" | "!")) && word(token) == "(";
        // `5.` with a blank behind it is a number.
        let of_number = index >= 2
            && word(&tokens[index - 1]) == "."
            && word(&tokens[index - 2]).starts_with(|c: char| c.is_ascii_digit());
        // The smallest integer is one with its sign right before it.
        let of_least =
            before.is_some_and(|before| word(before) == "-") && word(token).starts_with("9223372036854775808");
        let stays = has_comment || calls || of_number || of_least || word(token) == "!";
        let is_free = inside == 0 && token.kind != Kind::TextEnd && !stays;
        out.push_str(match is_free && before.is_some() {
            false => gap,
            true if gap.is_empty() => ["", "", " ", "\n", "\t"][random(5)],
            true if rarity > 0 && random(rarity) == 0 => {
                [" /* one */ ", " // to the end\n", "\n/* two\n   lines */\n", "\n\n// own\n\n", " /* a *//* b */"]
                    [random(5)]
            }
            true => [" ", "\n", "\n\n\n", "  ", "\r\n"][random(5)],
        });
        match token.kind {
            Kind::TextOpen if word(token).starts_with('`') => inside += 1,
            Kind::TextEnd => inside -= 1,
            _ => {}
        }
        out.push_str(word(token));
        at = token.end as usize;
    }
    out + &text[at..]
}

fn dice() -> impl FnMut(usize) -> usize {
    let mut state = 7u64;
    move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

#[test]
fn comments_may_stand_anywhere() {
    let mut random = dice();
    for text in texts() {
        let shaken = shaken(&text, 40, &mut random);
        let width = 1 + random(120);
        let once = format(&shaken, width).unwrap_or_else(|| panic!("not formatted at {width}:\n{shaken}"));
        assert!(is_same(&shaken, &once), "{once}");
        assert_eq!(format(&once, width).as_deref(), Some(once.as_str()), "at {width}");
    }
}

#[test]
fn blanks_do_not_change_what_a_text_says() {
    let mut random = dice();
    for text in texts() {
        let shaken = shaken(&text, 0, &mut random);
        assert!(is_same(&text, &shaken), "{shaken}");
        let width = 1 + random(120);
        let once = format(&shaken, width).unwrap_or_else(|| panic!("not formatted at {width}:\n{shaken}"));
        assert!(is_same(&text, &once), "{once}");
        assert_eq!(format(&once, width).as_deref(), Some(once.as_str()), "at {width}");
    }
}

#[test]
fn a_sign_stays_apart_from_its_number() {
    for text in ["print(- 5.abs(), -5.abs());\n", "let y = - 5;\n", "let y = 2 - 5.abs();\n"] {
        assert_eq!(format(text, 100).as_deref(), Some(text));
    }
    assert_eq!(format("let y = -\n5.abs();", 100).as_deref(), Some("let y = - 5.abs();\n"));
}

#[test]
fn what_changes_a_text_is_noticed() {
    for (one, other, expected) in [
        ("f(a,b)", "f( a, b, )", true),
        ("x // a\n", "x\n// a", true),
        ("/* a\n   b */", "/* a\nb */", true),
        ("`${ a }`", "`${a}`", true),
        ("a + b", "a - b", false),
        ("f(a, b)", "f(a b)", false),
        ("// a", "// b", false),
        ("\"a  b\"", "\"a b\"", false),
        ("` a`", "`a`", false),
        ("- -x", "--x", false),
        ("#!/x\na", "a", false),
        ("(", "(", false),
    ] {
        assert_eq!(is_same(one, other), expected, "{one} and {other}");
    }
}

/// Ten thousand lines, in a build without optimization.
#[test]
fn long_texts_take_no_time() {
    let text = texts().concat();
    let text: String = text.lines().take(10_000).map(|line| format!("{line}\n")).collect();
    let begun = std::time::Instant::now();
    let _ = format(&text, WIDTH);
    eprintln!("{} lines in {:?}", text.lines().count(), begun.elapsed());
    assert!(begun.elapsed().as_secs() < 20);
}

//! The scripts of `scripts/` in their short form, and that a seed decides every number.

use crate::scripts::{builder, run};
use std::path::Path;

/// What a script prints in its short form.
fn quick(name: &str, more: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("scripts").join(format!("{name}.rhai"));
    let data = root.join("scripts/data/digits.npz").display().to_string();
    let mut words: Vec<String> = ["--quick", "--data", &data].map(str::to_string).to_vec();
    words.extend(more.iter().map(|word| word.to_string()));
    let text = std::fs::read_to_string(&path).expect("the script is there");
    let ran = run(builder().arguments(words), name, &text);
    assert!(ran.result.is_ok(), "{name}: {:?}", ran.result.err());
    ran.printed
}

/// The number before the percent sign of the last line.
fn accuracy(printed: &str) -> f64 {
    let line = printed.lines().last().expect("it prints");
    let number = line.split_whitespace().find_map(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no accuracy in {line:?}"))
}

#[test]
fn digits_learns_and_a_seed_repeats_itself() {
    let first = quick("digits", &["--seed", "3"]);
    assert!(accuracy(&first) > 88.0, "{first}");
    assert_eq!(first, quick("digits", &["--seed", "3"]));
    assert_ne!(first, quick("digits", &["--seed", "4"]));
}

#[test]
fn cnn_digits_learns() {
    let printed = quick("cnn_digits", &[]);
    assert!(accuracy(&printed) > 80.0, "{printed}");
}

#[test]
fn the_tour_and_the_regression_run() {
    let tour = quick("autograd_tour", &[]);
    assert!(tour.contains("E0701"), "{tour}");
    let regression = quick("regression", &[]);
    assert!(regression.contains("root mean square"), "{regression}");
}

//! The scripts of `scripts/` in their short form, and that a seed decides every number.

use crate::scripts::{builder, root, run};

/// What a script prints in its short form.
fn quick(name: &str, more: &[&str]) -> String {
    let root = root();
    let path = root.join("scripts").join(format!("{name}.rhai"));
    let data = root.join("scripts/data/digits.npz").display().to_string();
    let book = root.join("scripts/data/text.txt").display().to_string();
    let mut words: Vec<String> = ["--quick", "--data", &data, "--text", &book].map(str::to_string).to_vec();
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

/// The number after a text, wherever it stands.
fn after(printed: &str, text: &str) -> f64 {
    let rest = printed.split_once(text).unwrap_or_else(|| panic!("no {text:?} in {printed}")).1;
    let number = rest.split([' ', ',', '\n']).next().and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number after {text:?} in {printed}"))
}

/// The short form is too short to beat the n-grams, whose losses were counted with dictionaries in Python.
#[test]
fn char_gpt_learns_beside_honest_n_grams() {
    let printed = quick("char_gpt", &[]);
    for (n, loss) in [3.20271705, 2.49068184, 2.02335581, 1.80868625].iter().enumerate() {
        assert!((after(&printed, &format!("{}-gram: ", n + 1)) - loss).abs() < 1e-6, "{printed}");
    }
    assert!(after(&printed, "before: ") > 4.0, "{printed}");
    assert!(after(&printed, "held out: GPT ") < 3.3, "{printed}");
    let written = printed.lines().last().expect("it writes");
    assert!(!written.is_empty(), "{printed}");
}

#[test]
fn recurrent_networks_learn() {
    let names = quick("names_rnn", &[]);
    assert!(accuracy(&names) > 70.0, "{names}");
    let turned = quick("seq2seq_attention", &[]);
    // A guess is right once in ten times.
    assert!(accuracy(&turned) > 20.0, "{turned}");
}

/// Half of the steps, then the others from the checkpoint: the text learned from is the repository's.
#[test]
fn gpt2_trains_and_goes_on_from_its_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let straight = quick("gpt2_train", &["--checkpoint", &at("a.safetensors"), "--steps", "12"]);
    let (first, last) = (after(&straight, "step 1: loss "), after(&straight, "step 12: loss "));
    assert!(first > 5.0 && last < first - 0.3, "{straight}");
    let half = ["--checkpoint", &at("b.safetensors"), "--steps", "12", "--stop", "7"];
    let half = quick("gpt2_train", &half);
    assert!(!half.contains("step 12:"), "{half}");
    let on = quick("gpt2_train", &["--checkpoint", &at("b.safetensors"), "--steps", "12", "--resume"]);
    assert!(!on.contains("step 6:"), "{on}");
    let tail = |printed: &str| printed.split_once("step 8:").map(|(_, rest)| rest.to_string());
    assert!(tail(&on).is_some_and(|rest| Some(rest) == tail(&straight)), "{straight}\n{on}");
}

#[test]
fn ddpm_draws_from_what_it_saw() {
    let printed = quick("ddpm", &[]);
    let (before, samples) = (after(&printed, "noise: "), after(&printed, "samples: "));
    assert!(samples < before / 3.0, "{printed}");
    assert!(after(&printed, "last loss ") < after(&printed, "first loss "), "{printed}");
}

#[test]
fn waves_keep_their_form_and_an_operator_learns_an_equation() {
    let printed = quick("spectral_pde", &[]);
    assert!(after(&printed, "soliton: error ") < 1e-4, "{printed}");
    let beginning = after(&printed, "the beginning itself: error ");
    assert!(after(&printed, "the operator: error ") < beginning / 3.0, "{printed}");
    assert!(after(&printed, "twice as fine: error ") < beginning / 3.0, "{printed}");
}

#[test]
fn spoken_words_are_told_apart() {
    let printed = quick("speech_commands", &[]);
    // A guess is right once in six times.
    assert!(accuracy(&printed) > 75.0, "{printed}");
}

//! "Did you mean": the known name that is nearest to a misspelled one.

use super::code;
use super::diag::Diag;
use super::span::Origin;

/// The candidate with the smallest distance, if it is below the limit.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = limit(word.chars().count());
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= limit)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, candidate)| (*distance, candidate.len(), *candidate))
        .map(|(_, candidate)| candidate)
}

/// Names of keywords in other libraries, and the names here.
const SYNONYMS: &[(&str, &str)] = &[
    ("learning_rate", "lr"),
    ("rho", "alpha"),
    ("epsilon", "eps"),
    ("decay", "weight_decay"),
    ("l2", "weight_decay"),
    ("filters", "out_channels"),
    ("channels", "out_channels"),
    ("strides", "stride"),
    ("units", "out_features"),
    ("input_dim", "in_features"),
    ("output_dim", "out_features"),
    ("use_bias", "bias"),
    ("rate", "p"),
    ("prob", "p"),
    ("ddof", "correction"),
    ("axes", "dim"),
    ("dims", "dim"),
    ("size", "output_size"),
    ("num_units", "hidden_size"),
    ("num_heads", "nhead"),
    ("class_weight", "weight"),
];

/// The suggestion for an unknown keyword: the one that another library calls so, or the nearest.
pub fn keyword<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let meant = SYNONYMS.iter().filter(|(theirs, _)| *theirs == word);
    let same = |(_, ours): &(&str, &str)| known.clone().into_iter().find(|known| known == ours);
    meant.filter_map(same).next().or_else(|| nearest(word, known.clone()))
}

/// The largest distance of a suggestion for a word of this many characters.
fn limit(characters: usize) -> usize {
    match characters {
        0 | 1 => 0,
        2 => LEFT_OUT,
        3..=5 => REPLACED,
        6..=8 => REPLACED + LEFT_OUT,
        9..=11 => 2 * REPLACED + 1,
        _ => 3 * REPLACED,
    }
}

/// Cost of a missing, additional or transposed character: the most frequent mistakes.
const LEFT_OUT: usize = 2;
const REPLACED: usize = 3;
/// Cost of another first character, which is rarely mistyped: `Beta` is not `zeta`.
const FIRST_REPLACED: usize = 5;
/// Cost of an underscore: `crossentropy` for `cross_entropy`.
const UNDERSCORE: usize = 1;

/// Optimal string alignment with the costs above; case costs nothing.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().map(|c| c.to_ascii_lowercase()).take(64).collect();
    let b: Vec<char> = b.chars().map(|c| c.to_ascii_lowercase()).take(64).collect();
    let one = |c: char| if c == '_' { UNDERSCORE } else { LEFT_OUT };
    let first = b.iter().scan(0, |sum, c| {
        *sum += one(*c);
        Some(*sum)
    });
    let mut rows = vec![std::iter::once(0).chain(first).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![rows[i - 1][0] + one(a[i - 1])];
        for j in 1..=b.len() {
            let replaced = if i == 1 && j == 1 { FIRST_REPLACED } else { REPLACED };
            let same = if a[i - 1] == b[j - 1] { 0 } else { replaced };
            let (without, with) = (rows[i - 1][j] + one(a[i - 1]), row[j - 1] + one(b[j - 1]));
            let mut best = without.min(with).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + LEFT_OUT);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// An unknown keyword in a map of options.
#[cold]
pub fn unknown_keyword(name: &str, known: &[&str]) -> Box<Diag> {
    let text = "not a keyword of this function";
    let diag =
        Diag::error(code::UNKNOWN_KEYWORD, format!("unknown keyword `{name}`")).keyword(Origin::NONE, name, text);
    match keyword(name, known.iter().copied()) {
        Some(found) => diag.help(format!("did you mean `{found}`?")),
        None => diag.help(format!("the keywords are: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_what_is_near() {
        assert_eq!(nearest("keepdims", ["keepdim", "dim", "dtype"]), Some("keepdim"));
        assert_eq!(nearest("zzz", ["keepdim", "dim"]), None);
        assert_eq!(nearest("softamx", ["softmax", "log_softmax"]), Some("softmax"));
        assert_eq!(nearest("psh", ["psi", "push", "pad"]), Some("push"));
        assert_eq!(nearest("crossentropy", ["cross_entropy", "entropy"]), Some("cross_entropy"));
        assert_eq!(nearest("named_params", ["named_parameters", "parameters"]), Some("named_parameters"));
    }

    #[test]
    fn a_silly_suggestion_is_none() {
        for (word, other) in
            [("forwad", "format"), ("Beta", "zeta"), ("y", "m"), ("lr", "le"), ("bar", "var"), ("fist", "dist")]
        {
            assert_eq!(nearest(word, [other]), None, "{word} → {other}");
        }
    }
}

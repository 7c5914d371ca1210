//! "Did you mean": the nearest known name to a misspelt one.

/// The candidate with the smallest edit distance, if it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= 3 * limit)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, candidate)| (*distance, candidate.len(), *candidate))
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours; case costs nothing.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().map(|c| c.to_ascii_lowercase()).take(64).collect();
    let b: Vec<char> = b.chars().map(|c| c.to_ascii_lowercase()).take(64).collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = (a[i - 1] != b[j - 1]) as usize;
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_what_is_near() {
        assert_eq!(nearest("keepdims", ["keepdim", "dim", "dtype"]), Some("keepdim"));
        assert_eq!(nearest("zzz", ["keepdim", "dim"]), None);
        assert_eq!(nearest("softamx", ["softmax", "log_softmax"]), Some("softmax"));
    }
}

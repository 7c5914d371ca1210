//! Comments behind code that stand below each other stay so.

use super::comments::Comment;

/// A comment behind code, in the printed text.
pub struct Trailing {
    /// Its first byte, and what is before it on its line.
    pub at: usize,
    pub line: usize,
    pub column: usize,
    /// Its index.
    pub comment: usize,
}

/// Moves comments to the right: of those on lines that follow each other, if they stand below each other in the source.
pub fn align(src: &str, out: String, trailing: &[Trailing], comments: &[Comment]) -> String {
    let mut aligned = String::new();
    let mut copied = 0;
    let mut first = 0;
    while first < trailing.len() {
        let column = |at: usize| source_column(src, &comments[trailing[at].comment]);
        let follows = |at: usize| trailing[at].line == trailing[at - 1].line + 1 && column(at) == column(at - 1);
        let end = (first + 1..trailing.len()).find(|&at| !follows(at)).unwrap_or(trailing.len());
        let widest = trailing[first..end].iter().map(|comment| comment.column).max().unwrap_or(0);
        for comment in &trailing[first..end] {
            aligned.push_str(&out[copied..comment.at]);
            aligned.extend(std::iter::repeat_n(' ', widest - comment.column));
            copied = comment.at;
        }
        first = end;
    }
    if copied == 0 {
        return out;
    }
    aligned.push_str(&out[copied..]);
    aligned
}

fn source_column(src: &str, comment: &Comment) -> usize {
    let line = src[..comment.start as usize].rfind('\n').map_or(0, |end| end + 1);
    src[line..comment.start as usize].chars().count()
}

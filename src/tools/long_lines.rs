//! Source lines of thousands of characters are shown around their labels alone.

use std::ops::Range;

/// Bound: bytes of a line that is shown as it is.
const LONG: usize = 300;
/// Bytes that are shown before and behind labels.
const AROUND: usize = 60;
const MARK: &str = "…";

/// A text some of whose lines are cut.
pub struct Cut {
    pub text: String,
    /// The bytes that are kept, and where they begin now.
    pieces: Vec<(Range<usize>, usize)>,
}

/// A text with its long lines cut around these bytes; none where no line with any of them is long.
pub fn cut(text: &str, labeled: &[&Range<usize>]) -> Option<Cut> {
    let is_long = |range: &&Range<usize>| {
        let bytes = text.as_bytes();
        let (start, end) = (range.start.min(bytes.len()), range.end.min(bytes.len()));
        let before = bytes[..start].iter().rev().take_while(|byte| **byte != b'\n').count();
        let after = bytes[end..].iter().take_while(|byte| **byte != b'\n').count();
        bytes[start - before..end + after].split(|byte| *byte == b'\n').any(|line| line.len() > LONG)
    };
    if !labeled.iter().any(is_long) {
        return None;
    }
    let (mut out, mut pieces, mut start, mut is_cut) = (String::new(), Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        let kept = kept(text, start..end, labeled);
        is_cut |= kept != (start..end);
        let (before, behind) = (kept.start > start, kept.end < end);
        out += if before { MARK } else { "" };
        pieces.push((kept.clone(), out.len()));
        out += &text[kept];
        out += if behind { MARK } else { "" };
        out += &text[end..start + line.len()];
        start += line.len();
    }
    is_cut.then_some(Cut { text: out, pieces })
}

/// What is shown of a line.
fn kept(text: &str, line: Range<usize>, labeled: &[&Range<usize>]) -> Range<usize> {
    let on_it = labeled.iter().filter(|range| range.start <= line.end && range.end > line.start);
    let (first, last) = on_it.fold((usize::MAX, 0), |(first, last), range| {
        (first.min(range.start.max(line.start)), last.max(range.end.min(line.end)))
    });
    if line.len() <= LONG || first == usize::MAX {
        return line;
    }
    let start = text.floor_char_boundary(first.saturating_sub(AROUND).max(line.start));
    let end = (last + AROUND).min(start + LONG).min(line.end);
    start..text.ceil_char_boundary(end).min(line.end)
}

impl Cut {
    /// Where a byte is now, or the nearest one that is kept.
    pub fn moved(&self, at: usize) -> usize {
        let next = self.pieces.partition_point(|(kept, _)| kept.start <= at);
        let Some((kept, now)) = next.checked_sub(1).map(|piece| &self.pieces[piece]) else {
            return self.pieces.first().map_or(0, |(_, now)| *now);
        };
        // Between two pieces it is the mark of the first, unless its line has ended.
        now + at.min(kept.end).max(kept.start) - kept.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_labels() {
        let text = format!("short\n{}WORD{}\nlast", "é".repeat(500), "b".repeat(5000));
        let at = text.find("WORD").expect("it is there");
        let cut = cut(&text, &[&(at..at + 4)]).expect("it is long");
        assert!(cut.text.len() < 400, "{}", cut.text);
        assert!(cut.text.starts_with("short\n…é") && cut.text.ends_with("b…\nlast"), "{}", cut.text);
        let (start, end) = (cut.moved(at), cut.moved(at + 4));
        assert_eq!(&cut.text[start..end], "WORD");
        assert_eq!((cut.moved(0), cut.moved(2)), (0, 2));
        assert_eq!(&cut.text[cut.moved(text.len() - 4)..], "last");
        assert!(super::cut("short", &[&(0..2)]).is_none());
        assert!(super::cut(&text, &[&(0..2)]).is_none());
    }
}

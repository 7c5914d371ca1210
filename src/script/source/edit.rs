//! Changes that the source pass makes: texts that it puts in, with what they stand for, and bytes that it takes away.

use std::ops::Range;

/// One change, at an original byte.
#[derive(Clone)]
pub struct Edit<'a> {
    pub at: usize,
    /// Closing texts come before opening ones; of opening ones the widest comes first, of closing ones the narrowest.
    pub opens: bool,
    pub width: usize,
    pub text: &'a str,
    /// The name whose position a `__at(` holds.
    pub mark: Option<u32>,
    pub stands_for: Range<usize>,
    /// What it stands for is removed from its place, and is here now.
    pub is_moved: bool,
    /// Bytes of the original that are removed, all blank or unreadable to Rhai.
    pub removed: usize,
}

impl<'a> Edit<'a> {
    /// A text behind what ends at a byte, for whose position it stands.
    pub fn behind(at: usize, text: &'a str) -> Edit<'a> {
        Edit { at, opens: false, width: 0, text, mark: None, stands_for: at..at, is_moved: false, removed: 0 }
    }

    /// A text before what begins at a byte, for whose position it stands.
    pub fn before(at: usize, text: &'a str) -> Edit<'a> {
        Edit { opens: true, ..Edit::behind(at, text) }
    }

    /// One of two texts around so many bytes.
    pub fn around(self, width: usize) -> Edit<'a> {
        Edit { width, ..self }
    }

    /// Outside of all others at its byte.
    pub fn outermost(self) -> Edit<'a> {
        self.around(usize::MAX)
    }

    pub fn standing_for(self, stands_for: Range<usize>) -> Edit<'a> {
        Edit { stands_for, ..self }
    }

    pub fn removing(self, removed: usize) -> Edit<'a> {
        Edit { removed, ..self }
    }
}

/// Puts two texts around bytes.
pub fn wrap<'a>(
    edits: &mut Vec<Edit<'a>>,
    bytes: Range<usize>,
    stands_for: Range<usize>,
    open: &'a str,
    close: &'a str,
) {
    let width = bytes.len();
    edits.push(Edit::before(bytes.start, open).around(width).standing_for(stands_for.clone()));
    edits.push(Edit::behind(bytes.end, close).around(width).standing_for(stands_for));
}

/// Puts the last two texts around all others that begin and end at the same bytes.
pub fn widen(edits: &mut [Edit]) {
    edits.iter_mut().rev().take(2).for_each(|edit| edit.width += 1);
}

//! Strings of a given width: `zfill`, `ljust`, `rjust`, `center`, `expandtabs`.

use super::call::{character, integer, method};
use crate::base::diag::Result;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::language::growing::Growing;
use rhai::Dynamic;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    method(natives, host, "zfill", |host, text, [width]| {
        let missing = missing(text, integer("width", width)?);
        let sign = text.len() - text.strip_prefix(['+', '-']).unwrap_or(text).len();
        framed(host, ["", &text[..sign]], '0', [missing, 0], &text[sign..])
    });
    type Split = fn(usize, i64) -> usize;
    let sides: [(&str, Split); 3] = [
        ("ljust", |_, _| 0),
        ("rjust", |missing, _| missing),
        // As CPython: the odd one goes left where the width is odd.
        ("center", |missing, width| missing / 2 + (missing & width as usize & 1)),
    ];
    for (name, left) in sides {
        method(natives, host, name, move |host, text, [width, fill]| {
            let (width, fill) = (integer("width", width)?, character("fillchar", fill)?);
            let missing = missing(text, width);
            let left = left(missing, width);
            framed(host, ["", ""], fill, [left, missing - left], text)
        });
    }
    method(natives, host, "expandtabs", |host, text, [size]| expanded(host, text, integer("tabsize", size)?));
}

/// How many characters a text is too short.
fn missing(text: &str, width: i64) -> usize {
    usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count())
}

/// A text with so many fillings before and after it; `before` stands before them all.
fn framed(host: &Host, before: [&str; 2], fill: char, counts: [usize; 2], text: &str) -> Result<Dynamic> {
    let mut out = Growing::new(host);
    before.iter().try_for_each(|part| out.push(part))?;
    out.fill(fill, counts[0])?;
    out.push(text)?;
    out.fill(fill, counts[1])?;
    out.finish().map(Dynamic::from)
}

/// Each tab replaced by blanks up to the next column that is a multiple of the size.
fn expanded(host: &Host, text: &str, size: i64) -> Result<Dynamic> {
    let size = usize::try_from(size).unwrap_or(0);
    let mut out = Growing::new(host);
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let blanks = size - column % size;
                out.fill(' ', blanks)?;
                column += blanks;
            }
            '\n' | '\r' => {
                out.push(c.encode_utf8(&mut [0; 4]))?;
                column = 0;
            }
            c => {
                out.push(c.encode_utf8(&mut [0; 4]))?;
                column += 1;
            }
        }
    }
    out.finish().map(Dynamic::from)
}

//! Characters of strings by their number. In a string of ASCII alone a character's place is its byte.

use rhai::ImmutableString;
use std::cell::RefCell;

/// Bound: bytes of a text that is looked through each time.
const SHORT: usize = 256;

thread_local! {
    /// The long text that was asked about last, and whether it is of ASCII: a loop that goes on in a text asks each time.
    static ASKED: RefCell<Option<(ImmutableString, bool)>> = const { RefCell::new(None) };
    /// The long text that was last read by its characters: a character's number, and the byte at which it starts.
    static READ: RefCell<Option<(ImmutableString, usize, usize)>> = const { RefCell::new(None) };
}

/// Whether all characters of a text are of ASCII.
pub fn is_ascii(text: &ImmutableString) -> bool {
    if text.len() <= SHORT {
        return text.is_ascii();
    }
    ASKED.with_borrow_mut(|asked| match asked {
        Some((known, is_ascii)) if known.ptr_eq(text) => *is_ascii,
        asked => {
            let is_ascii = text.as_str().is_ascii();
            *asked = Some((text.clone(), is_ascii));
            is_ascii
        }
    })
}

/// The character with a number, counted from the end where it is negative.
///
/// Cost: constant in a text of ASCII; in others the way from the character that was read last, or from the text's ends.
pub fn character(text: &ImmutableString, number: i64) -> Option<char> {
    if is_ascii(text) {
        let at = if number < 0 { text.len().checked_sub(number.unsigned_abs() as usize)? } else { number as usize };
        return text.as_bytes().get(at).map(|byte| char::from(*byte));
    }
    if number < 0 {
        return text.chars().nth_back(number.unsigned_abs() as usize - 1);
    }
    let wanted = number as usize;
    if text.len() <= SHORT {
        return text.chars().nth(wanted);
    }
    READ.with_borrow_mut(|read| {
        let (from, byte) = match read {
            Some((known, from, byte)) if known.ptr_eq(text) && *from <= wanted => (*from, *byte),
            _ => (0, 0),
        };
        let (on, character) = text[byte..].char_indices().nth(wanted - from)?;
        *read = Some((text.clone(), wanted, byte + on));
        Some(character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_that_rust_counts() {
        let texts = ["", "abc", "añb→c", &"abcdefghij".repeat(100), &"aé→😀".repeat(200)];
        for text in texts {
            let (whole, all) = (ImmutableString::from(text), text.chars().collect::<Vec<_>>());
            let numbers = (0..all.len() as i64 + 2).chain([3, 1, 200, 100]).chain(-(all.len() as i64) - 2..0);
            for number in numbers {
                let at = if number < 0 { number + all.len() as i64 } else { number };
                let expected = usize::try_from(at).ok().and_then(|at| all.get(at).copied());
                assert_eq!(character(&whole, number), expected, "{number} of {text}");
            }
        }
    }
}

//! Characters of strings by their number. In a string of ASCII alone a character's place is its byte.

use rhai::ImmutableString;
use std::cell::RefCell;
use std::ops::Range;

/// Bound: bytes of a text that is looked through each time.
const SHORT: usize = 256;

/// Bound: long texts that a thread remembers; a loop that goes on in a few of them asks each time.
const REMEMBERED: usize = 4;

thread_local! {
    /// The long texts that were asked about last, the latest first.
    static ASKED: RefCell<[Option<Known>; REMEMBERED]> = const { RefCell::new([const { None }; REMEMBERED]) };
}

/// What is known of a text.
struct Known {
    text: ImmutableString,
    /// Its characters.
    length: usize,
    /// The character that was asked for last, and the byte at which it starts.
    read: (usize, usize),
}

impl Known {
    fn of(text: &ImmutableString) -> Known {
        let length = if text.is_ascii() { text.len() } else { text.chars().count() };
        Known { text: text.clone(), length, read: (0, 0) }
    }

    fn is_ascii(&self) -> bool {
        self.length == self.text.len()
    }

    /// The byte at which a character of the text starts: found on the way from the one that was read last, or from the text's ends.
    fn byte_of(&mut self, character: usize) -> usize {
        if self.is_ascii() || character >= self.length {
            return if character < self.length { character } else { self.text.len() };
        }
        let steps = |text: &str, count: usize| text.char_indices().nth(count).map_or(text.len(), |(byte, _)| byte);
        let (from, byte) = self.read;
        let back = |text: &str, count: usize| match count.checked_sub(1) {
            Some(before) => text.char_indices().nth_back(before).map_or(0, |(byte, _)| byte),
            None => text.len(),
        };
        let (way, rest) = (character.abs_diff(from), self.length - character);
        let at = if way <= character.min(rest) {
            match character.checked_sub(from) {
                Some(way) => byte + steps(&self.text[byte..], way),
                None => back(&self.text[..byte], way),
            }
        } else if character <= rest {
            steps(&self.text, character)
        } else {
            back(&self.text, rest)
        };
        self.read = (character, at);
        at
    }
}

/// Asks what is known of a long text.
fn asked<T>(text: &ImmutableString, ask: impl FnOnce(&mut Known) -> T) -> T {
    ASKED.with_borrow_mut(|all| {
        let place = all.iter().position(|known| known.as_ref().is_some_and(|known| known.text.ptr_eq(text)));
        if place.is_none() {
            all[REMEMBERED - 1] = None;
        }
        all[..=place.unwrap_or(REMEMBERED - 1)].rotate_right(1);
        ask(all[0].get_or_insert_with(|| Known::of(text)))
    })
}

/// Changes a text; what is known of it stays known, with so many characters more. Characters before the one that was read last
/// are not changed.
///
/// Cost: that of the change, where nobody else has the text.
fn changed<T>(text: &mut ImmutableString, change: impl FnOnce(&mut ImmutableString) -> (T, isize)) -> T {
    let known = ASKED.with_borrow_mut(|all| {
        let place = all.iter().position(|known| known.as_ref().is_some_and(|known| known.text.ptr_eq(text)))?;
        // The text that is remembered is let go: it would be copied otherwise.
        all[place].take().map(|known| (place, known.length, known.read))
    });
    let (result, more) = change(text);
    if let Some((place, length, read)) = known {
        let length = length.saturating_add_signed(more);
        let read = if read.0 < length { read } else { (0, 0) };
        ASKED.with_borrow_mut(|all| all[place] = Some(Known { text: text.clone(), length, read }));
    }
    result
}

/// Puts a letter in the place of the one with a number. False where there is none.
pub fn put(text: &mut ImmutableString, number: i64, letter: char) -> bool {
    let length = length(text);
    let at = if number < 0 { number.saturating_add_unsigned(length as u64) } else { number };
    let Some(at) = usize::try_from(at).ok().filter(|at| *at < length) else { return false };
    let start = byte_of(text, at);
    changed(text, |text| {
        let end = start + text[start..].chars().next().map_or(0, char::len_utf8);
        text.make_mut().replace_range(start..end, letter.encode_utf8(&mut [0; 4]));
        ((), 0)
    });
    true
}

/// Takes the last letter.
pub fn pop(text: &mut ImmutableString) -> Option<char> {
    changed(text, |text| {
        let letter = if text.is_empty() { None } else { text.make_mut().pop() };
        (letter, if letter.is_some() { -1 } else { 0 })
    })
}

/// The string of a character. Those of ASCII share their memory.
pub fn text_of(letter: char) -> ImmutableString {
    thread_local! {
        static LETTERS: [ImmutableString; 128] = std::array::from_fn(|at| char::from(at as u8).to_string().into());
    }
    match letter.is_ascii() {
        true => LETTERS.with(|letters| letters[letter as usize].clone()),
        false => letter.to_string().into(),
    }
}

/// Whether all characters of a text are of ASCII.
pub fn is_ascii(text: &ImmutableString) -> bool {
    if text.len() <= SHORT { text.is_ascii() } else { asked(text, |known| known.is_ascii()) }
}

/// The number of its characters.
pub fn length(text: &ImmutableString) -> usize {
    match text.len() {
        ..=SHORT if text.is_ascii() => text.len(),
        ..=SHORT => text.chars().count(),
        _ => asked(text, |known| known.length),
    }
}

/// The byte at which the character with a number starts; the end of the text if there is none.
///
/// Cost: constant in a text of ASCII; in others the way from the character that was read last, or from the text's ends.
pub fn byte_of(text: &ImmutableString, character: usize) -> usize {
    match text.len() {
        ..=SHORT if text.is_ascii() => character.min(text.len()),
        ..=SHORT => text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte),
        _ => asked(text, |known| known.byte_of(character)),
    }
}

/// The character with a number, counted from the end where it is negative.
///
/// Cost: that of `byte_of`.
pub fn character(text: &ImmutableString, number: i64) -> Option<char> {
    if text.len() <= SHORT {
        if text.is_ascii() {
            let at = if number < 0 { text.len().checked_sub(number.unsigned_abs() as usize)? } else { number as usize };
            return text.as_bytes().get(at).map(|byte| char::from(*byte));
        }
        return match number {
            0.. => text.chars().nth(number as usize),
            _ => text.chars().nth_back(number.unsigned_abs() as usize - 1),
        };
    }
    asked(text, |known| {
        let at = if number < 0 { known.length.checked_sub(number.unsigned_abs() as usize)? } else { number as usize };
        let byte = known.byte_of(at);
        known.text[byte..].chars().next()
    })
}

/// The characters between two places, those that exist.
///
/// Cost: that of `byte_of`, and the part's length.
pub fn part(text: &ImmutableString, characters: Range<usize>) -> ImmutableString {
    // The end comes second: it is found on the way from the start.
    let start = byte_of(text, characters.start);
    text[start..byte_of(text, characters.end).max(start)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_changed_in_place() {
        for text in ["abc", "añb→c", &"abcdefghij".repeat(100), &"aé→😀".repeat(200)] {
            let (mut whole, mut all) = (ImmutableString::from(text), text.chars().collect::<Vec<_>>());
            for (round, number) in [0, 2, -1, 1, -2, 700, -700, 5000].into_iter().cycle().take(40).enumerate() {
                let letter = ['x', 'é', '😀', 'y'][round % 4];
                let at = if number < 0 { number + all.len() as i64 } else { number };
                let place = usize::try_from(at).ok().filter(|at| *at < all.len());
                assert_eq!(put(&mut whole, number, letter), place.is_some(), "{number} of {text}");
                if let Some(place) = place {
                    all[place] = letter;
                }
                if round % 3 == 0 {
                    assert_eq!(pop(&mut whole), all.pop());
                }
                assert_eq!(whole.as_str(), all.iter().collect::<String>());
                assert_eq!((length(&whole), character(&whole, 1)), (all.len(), all.get(1).copied()));
            }
        }
        assert_eq!(pop(&mut ImmutableString::new()), None);
    }

    #[test]
    fn characters_are_those_that_rust_counts() {
        let texts = ["", "abc", "añb→c", &"abcdefghij".repeat(100), &"aé→😀".repeat(200)];
        for text in texts {
            let (whole, all) = (ImmutableString::from(text), text.chars().collect::<Vec<_>>());
            assert_eq!(length(&whole), all.len(), "{text}");
            let numbers = (0..all.len() as i64 + 2).chain([3, 1, 200, 100]).chain(-(all.len() as i64) - 2..0);
            for number in numbers {
                let at = if number < 0 { number + all.len() as i64 } else { number };
                let expected = usize::try_from(at).ok().and_then(|at| all.get(at).copied());
                assert_eq!(character(&whole, number), expected, "{number} of {text}");
                if number >= 0 {
                    let byte = text.char_indices().nth(number as usize).map_or(text.len(), |(byte, _)| byte);
                    assert_eq!(byte_of(&whole, number as usize), byte, "{number} of {text}");
                    let some = text.chars().skip(number as usize).take(5).collect::<String>();
                    assert_eq!(part(&whole, number as usize..number as usize + 5), some, "{number} of {text}");
                }
            }
        }
    }
}

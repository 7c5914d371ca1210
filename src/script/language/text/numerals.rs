//! Numbers and characters as text: `chr`, `ord`, `hex`, `bin`, `oct`, `int(text, base)`, `repr`.

use super::call::{character, integer, of_function, text};
use crate::base::diag::Result;
use crate::fail;
use crate::script::bind::native::native;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::language::show;
use crate::script::values::ascii::text_of;
use rhai::Dynamic;
use std::borrow::Cow;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    native(natives, host, "chr", |_, _, [code]| {
        let code = integer("code", code).map_err(|diag| of_function("chr", diag))?;
        match u32::try_from(code).ok().and_then(char::from_u32) {
            Some(c) => Ok(text_of(c).into()),
            None => fail!(VALUE, "`chr`: {code} is the number of no character"),
        }
    });
    native(natives, host, "ord", |_, _, [c]| {
        Ok(i64::from(character("c", c).map_err(|diag| of_function("ord", diag))? as u32).into())
    });
    for (name, base) in [("bin", 2), ("oct", 8), ("hex", 16)] {
        native(natives, host, name, move |_, _, [x]| {
            let x = integer("x", x).map_err(|diag| of_function(name, diag))?;
            let (sign, size) = (if x < 0 { "-" } else { "" }, x.unsigned_abs());
            Ok(match base {
                2 => format!("{sign}0b{size:b}"),
                8 => format!("{sign}0o{size:o}"),
                _ => format!("{sign}0x{size:x}"),
            }
            .into())
        });
    }
    native(natives, host, "repr", |host, _, [value]| show::quoted(host, value).map(Dynamic::from));
}

/// `int("ff", 16)`; a base of 0 goes by the prefix.
pub fn parsed(whole: &Dynamic, base: &Dynamic) -> Result<i64> {
    let (whole, base) = (text("text", whole)?, integer("base", base)?);
    if base != 0 && !(2..=36).contains(&base) {
        fail!(VALUE, "`base` is from 2 to 36, or 0 for the one that a prefix says, not {base}");
    }
    let wrong = || match base {
        0 => format!("{whole:?} is no integer of 64 bits"),
        base => format!("{whole:?} is no integer of 64 bits in base {base}"),
    };
    let plain = in_ascii(whole.trim_matches(super::unicode::is_space));
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let sign = if plain.starts_with('-') { "-" } else { "" };
    let prefix = match digits.get(..2).map(str::to_lowercase).as_deref() {
        Some("0b") => Some(2),
        Some("0o") => Some(8),
        Some("0x") => Some(16),
        _ => None,
    };
    // `0b1` in base 16 is a number without a prefix.
    let prefix = prefix.filter(|prefix| base == 0 || base == *prefix);
    let (radix, digits, after_prefix) = match prefix {
        Some(prefix) => (prefix, &digits[2..], true),
        None => (if base == 0 { 10 } else { base }, digits, false),
    };
    // As in source text, where `010` would be read in two ways.
    let is_doubtful =
        base == 0 && prefix.is_none() && digits.starts_with('0') && digits.contains(|c| !matches!(c, '0' | '_'));
    let Some(digits) = without_marks(digits, after_prefix).filter(|_| !is_doubtful) else {
        fail!(VALUE, "{}", wrong())
    };
    i64::from_str_radix(&format!("{sign}{digits}"), radix as u32).or_else(|_| fail!(VALUE, "{}", wrong()))
}

/// A text with the decimal digits of all scripts as those of ASCII.
fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let ascii =
        |c: char| super::unicode::decimal(c).filter(|_| !c.is_ascii()).map_or(c, |digit| (b'0' + digit) as char);
    Cow::Owned(text.chars().map(ascii).collect())
}

/// Digits without the `_` between them; none where one does not stand between two.
pub fn without_marks(digits: &str, after_prefix: bool) -> Option<String> {
    let inner = if after_prefix { digits.strip_prefix('_').unwrap_or(digits) } else { digits };
    let wrong = inner.is_empty() || inner.starts_with(['_', '+', '-']) || inner.ends_with('_') || inner.contains("__");
    (!wrong).then(|| inner.replace('_', ""))
}

/// `float("1_000.5")`: each `_` stands between two digits.
pub fn float(text: &str) -> Option<f64> {
    let plain = in_ascii(text.trim_matches(super::unicode::is_space));
    let bytes = plain.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let marks = (0..bytes.len()).filter(|&at| bytes[at] == b'_');
    if marks.into_iter().any(|at| at == 0 || !is_digit(at - 1) || !is_digit(at + 1)) {
        return None;
    }
    plain.replace('_', "").parse().ok()
}

/// A float rounded to a power of ten, by its decimal digits, halves to the even one.
pub fn rounded_to_tens(x: f64, zeros: u64) -> f64 {
    if !x.is_finite() {
        return x;
    }
    let whole = format!("{:.0}", x.abs().trunc());
    let kept = match usize::try_from(zeros) {
        Ok(zeros) if zeros <= whole.len() => whole.len() - zeros,
        _ => return 0f64.copysign(x),
    };
    let (kept, dropped) = whole.split_at(kept);
    let half = format!("5{}", "0".repeat(dropped.len().saturating_sub(1)));
    let is_odd = kept.bytes().last().is_some_and(|digit| digit % 2 == 1);
    let up = match dropped.cmp(half.as_str()) {
        _ if dropped.is_empty() => false,
        std::cmp::Ordering::Equal => is_odd || x.fract() != 0.0,
        order => order.is_gt(),
    };
    let size = |text: String| text.parse::<f64>().unwrap_or(f64::INFINITY);
    let down = format!("0{kept}{}", "0".repeat(dropped.len()));
    if !up {
        return size(down).copysign(x);
    }
    // One more in the last place that is kept.
    let mut digits: Vec<u8> = format!("0{kept}").into_bytes();
    for digit in digits.iter_mut().rev() {
        if *digit == b'9' {
            *digit = b'0';
        } else {
            *digit += 1;
            break;
        }
    }
    let digits: String = digits.into_iter().map(char::from).collect();
    size(digits + &*"0".repeat(dropped.len())).copysign(x)
}

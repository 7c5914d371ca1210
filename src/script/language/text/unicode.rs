//! Properties of characters as Python's `str` methods and `unicodedata` have them. Source: the Unicode Character
//! Database.

use super::call::{character, of_function, text, written};
use crate::base::diag::Result;
use crate::fail;
use crate::script::bind::native::native;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use rhai::Dynamic;
use std::sync::Arc;
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// `unicodedata::category("A")`.
pub fn module(host: &Arc<Host>) -> Natives {
    let mut natives = Natives::default();
    native(&mut natives, host, "unicodedata::category", |_, _, [c]| {
        Ok(abbreviation(get_general_category(named("category", character("c", c))?)).into())
    });
    native(&mut natives, host, "unicodedata::combining", |_, _, [c]| {
        Ok(i64::from(canonical_combining_class(named("combining", character("c", c))?)).into())
    });
    native(&mut natives, host, "unicodedata::normalize", |host, _, [form, whole]| {
        named("normalize", normalized(host, form, whole))
    });
    native(&mut natives, host, "unicodedata::is_normalized", |_, _, [form, whole]| {
        named("is_normalized", is_normalized(form, whole))
    });
    natives
}

fn named<T>(name: &str, done: Result<T>) -> Result<T> {
    done.map_err(|diag| of_function(&format!("unicodedata::{name}"), diag))
}

fn normalized(host: &Host, form: &Dynamic, whole: &Dynamic) -> Result<Dynamic> {
    let (form, whole) = (text("form", form)?, text("text", whole)?);
    // Bound: a character decomposes into 18 at most.
    host.watch.room(whole.len().saturating_mul(2))?;
    let changed: String = match &form[..] {
        "NFC" => whole.nfc().collect(),
        "NFD" => whole.nfd().collect(),
        "NFKC" => whole.nfkc().collect(),
        "NFKD" => whole.nfkd().collect(),
        _ => return unknown(&form),
    };
    written(host, &changed)
}

fn is_normalized(form: &Dynamic, whole: &Dynamic) -> Result<Dynamic> {
    let (form, whole) = (text("form", form)?, text("text", whole)?);
    Ok(match &form[..] {
        "NFC" => unicode_normalization::is_nfc(&whole),
        "NFD" => unicode_normalization::is_nfd(&whole),
        "NFKC" => unicode_normalization::is_nfkc(&whole),
        "NFKD" => unicode_normalization::is_nfkd(&whole),
        _ => return unknown(&form),
    }
    .into())
}

fn unknown(form: &str) -> Result<Dynamic> {
    fail!(VALUE, "`form` is \"NFC\", \"NFD\", \"NFKC\" or \"NFKD\", not \"{form}\"")
}

/// The category's two letters.
pub fn abbreviation(category: GeneralCategory) -> &'static str {
    use GeneralCategory::*;
    match category {
        UppercaseLetter => "Lu",
        LowercaseLetter => "Ll",
        TitlecaseLetter => "Lt",
        ModifierLetter => "Lm",
        OtherLetter => "Lo",
        NonspacingMark => "Mn",
        SpacingMark => "Mc",
        EnclosingMark => "Me",
        DecimalNumber => "Nd",
        LetterNumber => "Nl",
        OtherNumber => "No",
        ConnectorPunctuation => "Pc",
        DashPunctuation => "Pd",
        OpenPunctuation => "Ps",
        ClosePunctuation => "Pe",
        InitialPunctuation => "Pi",
        FinalPunctuation => "Pf",
        OtherPunctuation => "Po",
        MathSymbol => "Sm",
        CurrencySymbol => "Sc",
        ModifierSymbol => "Sk",
        OtherSymbol => "So",
        SpaceSeparator => "Zs",
        LineSeparator => "Zl",
        ParagraphSeparator => "Zp",
        Control => "Cc",
        Format => "Cf",
        Surrogate => "Cs",
        PrivateUse => "Co",
        _ => "Cn",
    }
}

pub fn is_alphabetic(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    abbreviation(get_general_category(c)).starts_with('L')
}

/// A digit of a decimal number.
pub fn is_decimal(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    get_general_category(c) == GeneralCategory::DecimalNumber
}

/// The value of a decimal digit. Those of a script follow each other, from its zero on.
pub fn decimal(c: char) -> Option<u8> {
    let before = |steps: u32| (c as u32).checked_sub(steps).and_then(char::from_u32);
    let run = (0..).take_while(|&steps| before(steps).is_some_and(is_decimal)).count();
    run.checked_sub(1).map(|steps| (steps % 10) as u8)
}

/// A digit, also one that stands above, below or in a circle: Numeric_Type is Decimal or Digit.
pub fn is_digit(c: char) -> bool {
    const MORE: &[(u32, u32)] = &[
        (178, 179),
        (185, 185),
        (4969, 4977),
        (6618, 6618),
        (8304, 8304),
        (8308, 8313),
        (8320, 8329),
        (9312, 9320),
        (9332, 9340),
        (9352, 9360),
        (9450, 9450),
        (9461, 9469),
        (9471, 9471),
        (10102, 10110),
        (10112, 10120),
        (10122, 10130),
        (68160, 68163),
        (69216, 69224),
        (69714, 69722),
        (127232, 127242),
    ];
    is_decimal(c) || MORE.iter().any(|&(first, last)| (first..=last).contains(&(c as u32)))
}

/// Whatever stands for a number: Numeric_Type is Decimal, Digit or Numeric.
pub fn is_numeric(c: char) -> bool {
    // Ideographs for numbers, in order.
    const IDEOGRAPHS: &[u32] = &[
        13317, 13443, 14378, 15181, 19968, 19971, 19975, 19977, 20061, 20108, 20116, 20118, 20159, 20160, 20191, 20200,
        20237, 20336, 20740, 20806, 20841, 20843, 20845, 21313, 21315, 21316, 21317, 21324, 21441, 21442, 21443, 21444,
        22235, 22769, 22777, 24186, 24318, 24319, 24332, 24333, 24334, 24336, 25342, 25420, 26578, 28422, 29590, 30334,
        32902, 33836, 36014, 36019, 36144, 38433, 38470, 38476, 38520, 38646, 63851, 63859, 63864, 63922, 63953, 63955,
        63997, 131073, 131172, 131298, 131361, 133418, 133507, 133516, 133532, 133866, 133885, 133913, 140176, 141720,
        146203, 156269, 194704,
    ];
    c.is_numeric() || IDEOGRAPHS.binary_search(&(c as u32)).is_ok()
}

/// A blank: bidirectional type WS, B or S, or category Zs.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

pub fn is_printable(c: char) -> bool {
    c == ' ' || !abbreviation(get_general_category(c)).starts_with(['C', 'Z'])
}

/// Whether an identifier may start with a character.
pub fn starts_identifier(c: char) -> bool {
    c == '_'
        || (abbreviation(get_general_category(c)).starts_with('L')
            && !matches!(
                c,
                '\u{37a}' | '\u{e33}' | '\u{eb3}' | '\u{2e2f}' | '\u{fc5e}'
                    ..='\u{fc63}'
                        | '\u{fdfa}'
                        | '\u{fdfb}'
                        | '\u{fe70}'
                        | '\u{fe72}'
                        | '\u{fe74}'
                        | '\u{fe76}'
                        | '\u{fe78}'
                        | '\u{fe7a}'
                        | '\u{fe7c}'
                        | '\u{fe7e}'
                        | '\u{ff9e}'
                        | '\u{ff9f}'
            ))
        || abbreviation(get_general_category(c)) == "Nl"
        || matches!(c, '\u{1885}' | '\u{1886}' | '\u{2118}' | '\u{212e}')
}

/// Whether a character may stand inside an identifier.
pub fn continues_identifier(c: char) -> bool {
    starts_identifier(c)
        || matches!(abbreviation(get_general_category(c)), "Mn" | "Mc" | "Nd" | "Pc")
        || matches!(
            c,
            '\u{b7}' | '\u{387}' | '\u{e33}' | '\u{eb3}' | '\u{1369}'
                ..='\u{1371}' | '\u{19da}' | '\u{ff9e}' | '\u{ff9f}'
        )
}

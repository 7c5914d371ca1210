//! Python's format specifications (`{:>8.4f}`): formats one value, and texts with fields for values.
//!
//! Independent of the interpreter; the caller formats values without a specification.
//! Follows "Format Specification Mini-Language" of Python's library reference; the tests compare with CPython.

use crate::base::float_text::float_text;

/// Bound: width and precision; larger ones are typing errors that would make texts of gigabytes.
const MAX_WIDTH: usize = 10_000;

/// A value to format.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Int(i64),
    Float(f64),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    width: usize,
    group: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
    /// The `0` before the width alone says where the fill stands.
    is_zeroed: bool,
}

/// A part of a text with fields.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(String),
    Place { of: Field, spec: String },
}

/// Which value belongs to a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    Next,
    At(usize),
    Named(String),
}

/// Splits `"{} of {total:>6.2f}"` into its parts; `{{` and `}}` are braces.
pub fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut found = Vec::new();
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '{' | '}' if rest.peek() == Some(&c) => {
                rest.next();
                plain.push(c);
            }
            '}' => return Err("a `}` alone closes nothing; a brace itself is written `}}`".into()),
            '{' => {
                let mut inside = String::new();
                // `{:>{width}}`: the places of a specification are filled first.
                let mut open = 0;
                loop {
                    match rest.next() {
                        Some('}') if open == 0 => break,
                        Some(c) => {
                            open = if c == '{' { open + 1 } else { open - (c == '}') as usize };
                            inside.push(c);
                        }
                        None => return Err("a `{` is never closed; a brace itself is written `{{`".into()),
                    }
                }
                if !plain.is_empty() {
                    found.push(Part::Text(std::mem::take(&mut plain)));
                }
                let (name, spec) = inside.split_once(':').unwrap_or((&inside, ""));
                found.push(Part::Place { of: field(name.trim())?, spec: spec.to_string() });
            }
            c => plain.push(c),
        }
    }
    if !plain.is_empty() {
        found.push(Part::Text(plain));
    }
    Ok(found)
}

fn field(name: &str) -> Result<Field, String> {
    if name.is_empty() {
        return Ok(Field::Next);
    }
    if let Ok(at) = name.parse() {
        return Ok(Field::At(at));
    }
    if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Ok(Field::Named(name.to_string()));
    }
    Err(format!("`{{{name}}}` is neither a number nor a name; expressions stand between backticks: `${{{name}}}`"))
}

/// Whether a specification is valid.
pub fn validate(spec: &str) -> Result<(), String> {
    Spec::read(spec).map(drop)
}

/// Whether a specification is one of numbers: a bool counts as 0 or 1.
pub fn is_of_numbers(spec: &str) -> bool {
    Spec::read(spec).is_ok_and(|spec| spec.kind.map_or(spec.is_zeroed, |kind| kind != 's'))
}

/// Formats `value` by `spec`.
pub fn format_value(value: &Item, spec: &str) -> Result<String, String> {
    let spec = Spec::read(spec)?;
    let (sign, body, is_number) = match value {
        Item::Int(i) => {
            let (sign, body) = spec.integer(*i)?;
            (sign, body, true)
        }
        Item::Float(x) => {
            let (sign, body) = spec.float(*x)?;
            (sign.to_string(), body, true)
        }
        Item::Text(text) => (String::new(), spec.text(text)?, false),
    };
    Ok(spec.padded(&sign, &body, is_number))
}

impl Spec {
    fn read(text: &str) -> Result<Spec, String> {
        let wrong = |why: &str| format!("`{text}` is no format: {why}");
        let mut spec = Spec::default();
        let chars: Vec<char> = text.chars().collect();
        let is_align = |c: Option<&char>| matches!(c, Some('<' | '>' | '^' | '='));
        let mut at = 0;
        if is_align(chars.get(1)) {
            (spec.fill, spec.align, at) = (Some(chars[0]), Some(chars[1]), 2);
        } else if is_align(chars.first()) {
            (spec.align, at) = (Some(chars[0]), 1);
        }
        let take = |at: &mut usize, expected: &[char]| {
            let found = chars.get(*at).copied().filter(|c| expected.contains(c));
            *at += found.is_some() as usize;
            found
        };
        spec.sign = take(&mut at, &['+', '-', ' ']);
        spec.alternate = take(&mut at, &['#']).is_some();
        if take(&mut at, &['0']).is_some() {
            spec.is_zeroed = spec.align.is_none();
            spec.fill = spec.fill.or(Some('0'));
            spec.align = spec.align.or(Some('='));
        }
        let number = |at: &mut usize| -> Result<Option<usize>, String> {
            let digits: String = chars[*at..].iter().take_while(|c| c.is_ascii_digit()).collect();
            *at += digits.len();
            match digits.parse::<usize>() {
                _ if digits.is_empty() => Ok(None),
                Ok(n) if n <= MAX_WIDTH => Ok(Some(n)),
                _ => Err(wrong(&format!("{MAX_WIDTH} characters are the most"))),
            }
        };
        spec.width = number(&mut at)?.unwrap_or(0);
        spec.group = take(&mut at, &[',', '_']);
        if take(&mut at, &['.']).is_some() {
            let digits = number(&mut at)?;
            spec.precision = Some(digits.ok_or_else(|| wrong("a number is missing after the point"))?);
        }
        let kinds = ['b', 'c', 'd', 'e', 'E', 'f', 'F', 'g', 'G', 'n', 'o', 's', 'x', 'X', '%'];
        spec.kind = take(&mut at, &kinds);
        if let (Some(group), Some(kind)) = (spec.group, spec.kind)
            && (matches!(kind, 'n' | 'c') || (group == ',' && matches!(kind, 'b' | 'o' | 'x' | 'X')))
        {
            return Err(wrong(&format!("`{group}` does not go with `{kind}`")));
        }
        if at < chars.len() {
            return Err(wrong("it ends in one of `d f e g % s x b`, as in `.4f`, `>8`, `05d`, `,`, `.1%`"));
        }
        Ok(spec)
    }

    fn refuse(&self, kind: char, what: &str) -> String {
        format!("`{kind}` does not format {what}")
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            (false, _) => "",
        }
    }

    fn integer(&self, value: i64) -> Result<(String, String), String> {
        let kind = match self.kind {
            None | Some('d' | 'n') => 'd',
            Some(kind @ ('b' | 'o' | 'x' | 'X' | 'c')) => kind,
            Some('s') => return Err(self.refuse('s', "an integer; leave it out, or write `d`")),
            Some(_) => return self.float(value as f64).map(|(sign, body)| (sign.to_string(), body)),
        };
        if self.precision.is_some() {
            return Err("an integer has no digits after the point; write `.2f`".into());
        }
        let size = value.unsigned_abs();
        let (prefix, digits) = match kind {
            'b' => ("0b", format!("{size:b}")),
            'o' => ("0o", format!("{size:o}")),
            'x' => ("0x", format!("{size:x}")),
            'X' => ("0X", format!("{size:X}")),
            'c' => {
                let c = u32::try_from(value).ok().and_then(char::from_u32);
                ("", c.ok_or_else(|| format!("{value} is no character"))?.to_string())
            }
            _ => ("", size.to_string()),
        };
        let step = if kind == 'd' { 3 } else { 4 };
        let sign = self.sign(value < 0);
        // Zeros are placed between the prefix and the digits.
        let sign = if self.alternate { format!("{sign}{prefix}") } else { sign.to_string() };
        let digits = self.grouped(&digits, "", step, sign.len());
        Ok((sign, digits))
    }

    fn float(&self, value: f64) -> Result<(&'static str, String), String> {
        let kind = self.kind.unwrap_or('\0');
        if matches!(kind, 'b' | 'c' | 'd' | 'o' | 's' | 'x' | 'X') {
            return Err(self.refuse(kind, "a float; write `.0f`, or convert it by `int(x)`"));
        }
        let sign = self.sign(value.is_sign_negative() && !value.is_nan());
        let size = if kind == '%' { value.abs() * 100.0 } else { value.abs() };
        let upper = kind.is_ascii_uppercase();
        let percent = if kind == '%' { "%" } else { "" };
        if !size.is_finite() {
            let name = if size.is_nan() { "nan" } else { "inf" };
            return Ok((sign, if upper { name.to_uppercase() } else { name.into() } + percent));
        }
        let precision = self.precision.unwrap_or(6);
        let text = match kind.to_ascii_lowercase() {
            'f' => format!("{size:.precision$}"),
            '%' => format!("{size:.precision$}"),
            'e' => exponential(size, precision),
            'g' | 'n' => self.general(size, precision.max(1), false),
            _ if self.precision.is_some() => self.general(size, precision.max(1), true),
            _ => float_text(size),
        };
        let text = if upper { text.to_uppercase() } else { text };
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = text.split_at(end);
        let point = if self.alternate && !rest.contains('.') { "." } else { "" };
        let rest = format!("{point}{rest}{percent}");
        let whole = self.grouped(whole, &rest, 3, sign.len());
        Ok((sign, format!("{whole}{rest}")))
    }

    /// `g`: significant digits, in the shorter notation; a float without a kind keeps one digit after its point.
    fn general(&self, size: f64, digits: usize, keeps_point: bool) -> String {
        let scientific = exponential(size, digits - 1);
        let exponent = scientific.rsplit_once('e').and_then(|(_, e)| e.parse::<i64>().ok()).unwrap_or(0);
        let most = digits as i64 - keeps_point as i64;
        let stripped = |text: &str| match (text.contains('.'), self.alternate) {
            (true, false) => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            _ => text.to_string(),
        };
        if (-4..most).contains(&exponent) {
            let text = stripped(&format!("{size:.*}", (digits as i64 - 1 - exponent).max(0) as usize));
            return if keeps_point && !text.contains('.') { text + ".0" } else { text };
        }
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        format!("{}e{exponent}", stripped(mantissa))
    }

    fn text(&self, text: &str) -> Result<String, String> {
        if let Some(kind) = self.kind.filter(|kind| *kind != 's') {
            return Err(self.refuse(kind, "text"));
        }
        if (self.align == Some('=') && !self.is_zeroed) || self.sign.is_some() || self.group.is_some() {
            return Err("signs and groups of digits are for numbers, not for text".into());
        }
        Ok(text.chars().take(self.precision.unwrap_or(usize::MAX)).collect())
    }

    /// Digits in groups; leading zeros are grouped too.
    fn grouped(&self, digits: &str, rest: &str, step: usize, before: usize) -> String {
        let Some(mark) = self.group else { return digits.to_string() };
        let group = |digits: &str| {
            let mut out = String::new();
            for (at, c) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at).is_multiple_of(step) {
                    out.push(mark);
                }
                out.push(c);
            }
            out
        };
        let mut digits = digits.to_string();
        if self.fill == Some('0') && self.align == Some('=') {
            while group(&digits).len() + rest.len() + before < self.width {
                digits.insert(0, '0');
            }
        }
        group(&digits)
    }

    fn padded(&self, sign: &str, body: &str, is_number: bool) -> String {
        let length = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(length);
        let fill = |count: usize| String::from_iter(std::iter::repeat_n(self.fill.unwrap_or(' '), count));
        let align = self.align.filter(|_| is_number || !self.is_zeroed);
        match align.unwrap_or(if is_number { '>' } else { '<' }) {
            '<' => format!("{sign}{body}{}", fill(missing)),
            '^' => format!("{}{sign}{body}{}", fill(missing / 2), fill(missing - missing / 2)),
            '=' => format!("{sign}{}{body}", fill(missing)),
            _ => format!("{}{sign}{body}", fill(missing)),
        }
    }
}

/// `1.500000e+00`.
fn exponential(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of CPython 3.11 for `format(value, spec)`.
    #[test]
    fn values_are_formatted_as_by_cpython() {
        let float: &[(f64, &str, &str)] = &[
            (1.0, "#g", "1.00000"),
            (1e20, "%", "10000000000000000000000.000000%"),
            (5e-324, ".3", "4.94e-324"),
            (5e-324, ".4f", "0.0000"),
            (-0.0, ".2e", "-0.00e+00"),
            (0.1, "%", "10.000000%"),
            (1.0, ".1%", "100.0%"),
            (1e16, ".4f", "10000000000000000.0000"),
            (f64::NAN, "_.1f", "nan"),
            (1.2345e-05, ".4f", "0.0000"),
            (1.2345e-05, "g", "1.2345e-05"),
            (f64::INFINITY, "g", "inf"),
            (1234567.891, "E", "1.234568E+06"),
            (-2.25, "%", "-225.000000%"),
            (1.0, "<8.1f", "1.0     "),
            (1.2345e-05, ".3", "1.23e-05"),
            (0.0, ".1%", "0.0%"),
            (1234567.891, "%", "123456789.100000%"),
            (0.00012345, ".1%", "0.0%"),
            (123456789.0, ".3g", "1.23e+08"),
            (f64::NAN, "#g", "nan"),
            (5e-324, "8.3f", "   0.000"),
            (0.0, "8.3f", "   0.000"),
            (f64::NEG_INFINITY, "g", "-inf"),
            (0.00012345, "_.1f", "0.0"),
            (0.1, "_.1f", "0.1"),
            (f64::NAN, "8.3f", "     nan"),
            (0.1, "<8.1f", "0.1     "),
            (123456789.0, "^9.2f", "123456789.00"),
            (1.0, "08.2f", "00001.00"),
            (3.5, "8.3f", "   3.500"),
            (0.0, "%", "0.000000%"),
            (0.0, "g", "0"),
            (0.0, "G", "0"),
            (f64::INFINITY, "E", "INF"),
            (1e20, "8.3f", "100000000000000000000.000"),
            (0.0, "+.2f", "+0.00"),
            (1234567.891, "g", "1.23457e+06"),
            (f64::NEG_INFINITY, "08.2f", "-0000inf"),
            (-2.25, "010,.1f", "-000,002.2"),
            (0.00012345, ".2e", "1.23e-04"),
            (f64::NAN, "^9.2f", "   nan   "),
            (5e-324, "08.2f", "00000.00"),
            (1e16, "#.0f", "10000000000000000."),
            (-2.25, "_.1f", "-2.2"),
            (0.00012345, "#.0f", "0."),
            (5e-324, "%", "0.000000%"),
            (1e20, ",.2f", "100,000,000,000,000,000,000.00"),
            (0.1, "+.2f", "+0.10"),
            (3.5, "%", "350.000000%"),
            (0.1, "^9.2f", "  0.10   "),
            (f64::NEG_INFINITY, "8.3f", "    -inf"),
            (-2.25, "*>12.3f", "******-2.250"),
            (1.2345e-05, " .2f", " 0.00"),
            (2.5, "E", "2.500000E+00"),
            (f64::NAN, "G", "NAN"),
            (0.00012345, "08.2f", "00000.00"),
            (1e20, "e", "1.000000e+20"),
            (f64::INFINITY, "08.2f", "00000inf"),
            (1.0, " .2f", " 1.00"),
            (-2.25, "^9.2f", "  -2.25  "),
            (f64::INFINITY, ".4f", "inf"),
            (2.5, "G", "2.5"),
            (1.0, "%", "100.000000%"),
            (3.5, ".2e", "3.50e+00"),
            (1e16, "^9.2f", "10000000000000000.00"),
            (f64::NAN, " .2f", " nan"),
            (1e16, "08.2f", "10000000000000000.00"),
            (f64::INFINITY, "_.1f", "inf"),
            (-2.25, " .2f", "-2.25"),
            (2.5, "#.0f", "2."),
            (2.5, ",.2f", "2.50"),
            (123456789.0, "8.3f", "123456789.000"),
            (1e16, "<8.1f", "10000000000000000.0"),
            (1e16, " .2f", " 10000000000000000.00"),
            (1234567.891, "#.0f", "1234568."),
            (123456789.0, "<8.1f", "123456789.0"),
            (0.0, "#.0f", "0."),
            (1.2345e-05, "%", "0.001234%"),
            (0.1, ".2e", "1.00e-01"),
            (1234567.891, "#g", "1.23457e+06"),
            (0.00012345, " .2f", " 0.00"),
            (1.5, ".3", "1.5"),
            (1234567.891, "^9.2f", "1234567.89"),
            (1e20, "+.2f", "+100000000000000000000.00"),
            (1234567.891, ",.2f", "1,234,567.89"),
            (-0.0, "_.1f", "-0.0"),
            (f64::NAN, ".4f", "nan"),
            (1e16, ",.2f", "10,000,000,000,000,000.00"),
            (1.0, ".2e", "1.00e+00"),
            (1.5, ".1%", "150.0%"),
            (1e16, "G", "1E+16"),
            (f64::INFINITY, ".0f", "inf"),
            (1234567.891, " .2f", " 1234567.89"),
            (1.2345e-05, "*>12.3f", "*******0.000"),
            (f64::NAN, ".1%", "nan%"),
            (1.2345e-05, "E", "1.234500E-05"),
            (0.0, "#g", "0.00000"),
            (2.5, ".3", "2.5"),
            (123456789.0, "%", "12345678900.000000%"),
            (123456789.0, "+.2f", "+123456789.00"),
            (1e20, "*>12.3f", "100000000000000000000.000"),
            (123456789.0, "#g", "1.23457e+08"),
            (1.5, "010,.1f", "0,000,001.5"),
            (1.5, "#.0f", "2."),
            (1e16, "+.2f", "+10000000000000000.00"),
            (0.1, "8.3f", "   0.100"),
            (0.0, "08.2f", "00000.00"),
            (-2.25, "E", "-2.250000E+00"),
            (1e20, ".4f", "100000000000000000000.0000"),
        ];
        let int: &[(i64, &str, &str)] = &[
            (255, "#010x", "0x000000ff"),
            (1234567, "^5", "1234567"),
            (5, ",", "5"),
            (-42, ",", "-42"),
            (-42, "#010x", "-0x000002a"),
            (-42, "", "-42"),
            (1234567, ",", "1,234,567"),
            (-42, "d", "-42"),
            (-42, "o", "-52"),
            (5, "b", "101"),
            (1234567, "=+6", "+1234567"),
            (255, "_x", "ff"),
            (1234567, "X", "12D687"),
            (255, "05", "00255"),
            (0, "", "0"),
            (-42, "05", "-0042"),
            (255, "+d", "+255"),
            (255, "=+6", "+  255"),
            (0, "e", "0.000000e+00"),
            (1234567, "", "1234567"),
            (1234567, "05", "1234567"),
            (5, "^5", "  5  "),
            (-42, "#x", "-0x2a"),
            (0, ",", "0"),
            (-42, "08,", "-000,042"),
            (-42, "5", "  -42"),
            (1234567, "+d", "+1234567"),
            (255, "X", "FF"),
            (5, "<5", "5    "),
            (-42, "_x", "-2a"),
            (-42, "_", "-42"),
            (-42, "=+6", "-   42"),
            (255, ".2f", "255.00"),
            (-42, "x", "-2a"),
            (255, "08,", "0,000,255"),
            (255, "_", "255"),
            (1234567, "5", "1234567"),
            (1234567, "<5", "1234567"),
            (5, "_x", "5"),
            (255, "o", "377"),
            (0, "<5", "0    "),
            (255, "%", "25500.000000%"),
            (5, "", "5"),
            (5, "d", "5"),
            (0, "X", "0"),
            (5, "#x", "0x5"),
            (0, "^5", "  0  "),
            (0, "x", "0"),
            (0, "05", "00000"),
            (-42, "X", "-2A"),
            (0, "d", "0"),
            (5, "+d", "+5"),
            (1234567, "x", "12d687"),
            (-42, "^5", " -42 "),
            (-42, "#b", "-0b101010"),
            (0, "08,", "0,000,000"),
            (0, ".2f", "0.00"),
            (1234567, "_x", "12_d687"),
            (1234567, "#010x", "0x0012d687"),
            (255, "c", "ÿ"),
        ];
        let text: &[(&str, &str, &str)] = &[
            ("", "", ""),
            ("", "5", "     "),
            ("", "<5", "     "),
            ("", ">5", "     "),
            ("", "^6", "      "),
            ("", "*^7", "*******"),
            ("", "s", ""),
            ("", ".2", ""),
            ("", ">5.1", "     "),
            ("abc", "", "abc"),
            ("abc", "5", "abc  "),
            ("abc", "<5", "abc  "),
            ("abc", ">5", "  abc"),
            ("abc", "^6", " abc  "),
            ("abc", "*^7", "**abc**"),
            ("abc", "s", "abc"),
            ("abc", ".2", "ab"),
            ("abc", ">5.1", "    a"),
            ("äöü", "", "äöü"),
            ("äöü", "5", "äöü  "),
            ("äöü", "<5", "äöü  "),
            ("äöü", ">5", "  äöü"),
            ("äöü", "^6", " äöü  "),
            ("äöü", "*^7", "**äöü**"),
            ("äöü", "s", "äöü"),
            ("äöü", ".2", "äö"),
            ("äöü", ">5.1", "    ä"),
            ("äöü", "05", "äöü00"),
            ("äöü", ">05", "00äöü"),
        ];
        for (value, spec, expected) in float {
            assert_eq!(format_value(&Item::Float(*value), spec).as_deref(), Ok(*expected), "{value:?} {spec}");
        }
        for (value, spec, expected) in int {
            assert_eq!(format_value(&Item::Int(*value), spec).as_deref(), Ok(*expected), "{value:?} {spec}");
        }
        for (value, spec, expected) in text {
            assert_eq!(
                format_value(&Item::Text(value.to_string()), spec).as_deref(),
                Ok(*expected),
                "{value:?} {spec}"
            );
        }
    }

    #[test]
    fn invalid_formats_are_refused() {
        for spec in [".f", "10000000", ".99999f", "q", ".2fx", "d.2"] {
            assert!(format_value(&Item::Float(1.5), spec).is_err(), "{spec}");
        }
        assert!(format_value(&Item::Float(1.5), "d").is_err());
        assert!(format_value(&Item::Int(1), "s").is_err());
        assert!(format_value(&Item::Int(-1), "c").is_err());
        assert!(format_value(&Item::Int(1), ".2").is_err());
        assert!(format_value(&Item::Text("a".into()), "f").is_err());
    }

    #[test]
    fn texts_have_fields() {
        let place = |of, spec: &str| Part::Place { of, spec: spec.into() };
        assert_eq!(
            parts("a{{{}{1:>4}{n:.2f}}}"),
            Ok(vec![
                Part::Text("a{".into()),
                place(Field::Next, ""),
                place(Field::At(1), ">4"),
                place(Field::Named("n".into()), ".2f"),
                Part::Text("}".into()),
            ])
        );
        assert_eq!(parts("{:>{w}}"), Ok(vec![place(Field::Next, ">{w}")]));
        for text in ["{", "}", "{a+b}", "{:{}"] {
            assert!(parts(text).is_err(), "{text}");
        }
    }
}

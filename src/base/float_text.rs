//! Floats as Python writes them: the shortest digits that read back as the same number.

/// `0.1`, `1e-05`, `1e+16`, `inf`, `nan`. Source: CPython's `repr` of floats.
pub fn float_text(x: f64) -> String {
    if !x.is_finite() {
        return format!("{x}").to_lowercase();
    }
    // Rust changes to exponents at the same sizes as Python, and writes them without a sign and zeros.
    let text = format!("{x:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => even(x, text),
    }
}

/// Bound: digits from which on two shortest texts may be equally near.
const MANY: usize = 15;

/// Of two shortest texts that are equally near the one whose last digit is even, as by Python; Rust takes the larger.
fn even(x: f64, text: String) -> String {
    let is_odd = matches!(text.as_bytes().last(), Some(b'1' | b'3' | b'5' | b'7' | b'9'));
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    if !is_odd || decimals == 0 || text.len() <= MANY {
        return text;
    }
    // All digits of the number: half of the last place is a 5 with nothing behind it.
    let exact = format!("{x:.digits$}", digits = decimals + 60);
    let behind = exact.rsplit_once('.').map_or("", |(_, digits)| &digits[decimals..]);
    if !behind.starts_with('5') || behind[1..].bytes().any(|digit| digit != b'0') {
        return text;
    }
    let mut text = text;
    let last = text.pop().map_or('0', |digit| char::from(digit as u8 - 1));
    text.push(last);
    text
}

#[cfg(test)]
mod tests {
    use super::float_text;

    #[test]
    fn floats_are_written_as_by_cpython() {
        for (x, expected) in [
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (5e-324, "5e-324"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (3999999999999697.0 / 4.0, "999999999999924.2"),
            (-3032380639085865.0 / 4.0, "-758095159771466.2"),
            (3032380639085867.0 / 4.0, "758095159771466.8"),
            (0.3, "0.3"),
            (123456789012.34375, "123456789012.34375"),
        ] {
            assert_eq!(float_text(x), expected);
        }
    }
}

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
        None => text,
    }
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
        ] {
            assert_eq!(float_text(x), expected);
        }
    }
}

//! Parses sizes: `16GiB`, `512 MiB`, `1e9`.

/// Bytes of a size. A number without a unit is bytes; `K`, `M`, `G`, `T` alone or with `iB` are powers of 1024, with
/// `B` powers of 1000.
pub fn parse(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim().to_ascii_lowercase();
    let (letter, rest) = match unit.chars().next() {
        None => return whole(number),
        Some(letter) => (letter, &unit[letter.len_utf8()..]),
    };
    let power = match letter {
        'b' if rest.is_empty() => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => return None,
    };
    let base: f64 = match rest {
        "b" => 1000.0,
        "" | "ib" => 1024.0,
        _ => return None,
    };
    whole(number * base.powi(power))
}

fn whole(bytes: f64) -> Option<usize> {
    (bytes.is_finite() && bytes >= 0.0 && bytes < (1u64 << 62) as f64).then_some(bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_nonsense_is_not() {
        assert_eq!(parse("16GiB"), Some(16 << 30));
        assert_eq!(parse("512 mib"), Some(512 << 20));
        assert_eq!(parse("2k"), Some(2048));
        assert_eq!(parse("1.5MB"), Some(1_500_000));
        assert_eq!(parse("4096"), Some(4096));
        for bad in ["", "GiB", "1.2.3G", "16XB", "-1G", "9999999TiB", "1GiBs"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}

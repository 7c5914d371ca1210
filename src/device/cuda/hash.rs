//! A 128-bit hash of content, the same on every machine and in every version: MurmurHash3 (Austin Appleby, public
//! domain), the variant for 64-bit machines. Not safe for input that an attacker chooses.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The hash of some bytes.
pub fn hash(bytes: &[u8]) -> u128 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let blocks = bytes.chunks_exact(16);
    let rest = blocks.remainder();
    for block in blocks {
        let (low, high) = block.split_at(8);
        h1 ^= mix_first(word(low));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_second(word(high));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = rest.split_at(rest.len().min(8));
    h1 ^= mix_first(word(low));
    h2 ^= mix_second(word(high));
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (finish(h1), finish(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    u128::from(h1) << 64 | u128::from(h2)
}

/// The hash of several texts, including their boundaries.
pub fn hash_all<'a>(parts: impl Iterator<Item = &'a str>) -> u128 {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    hash(&bytes)
}

/// Up to 8 bytes, little-endian.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn mix_first(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_second(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k = (k ^ k >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ k >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ k >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation.
    #[test]
    fn published_values() {
        assert_eq!(hash(b""), 0);
        assert_eq!(hash(b"hello"), 0xcbd8_a7b3_41bd_9b02_5b1e_906a_48ae_1d19);
        assert_eq!(hash(b"The quick brown fox jumps over the lazy dog"), 0xe34b_bc7b_bc07_1b6c_7a43_3ca9_c49a_9347);
    }

    #[test]
    fn borders_count() {
        assert_ne!(hash_all(["ab", "c"].into_iter()), hash_all(["a", "bc"].into_iter()));
        assert_ne!(hash_all(["ab", ""].into_iter()), hash_all(["ab"].into_iter()));
    }
}

//! Hash tables by number or address: one multiplication in place of a keyed hash. Not safe for numbers that an attacker
//! chooses.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by number.
pub type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;
/// A set of numbers.
pub type Numbers<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers over all bits.
#[derive(Clone, Copy, Default, Debug)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    #[inline]
    fn finish(&self) -> u64 {
        // Tables use the lowest and the highest bits; the lowest bits of the product depend only on those of the
        // number.
        self.0 ^ (self.0 >> 32)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte as u64));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    /// Addresses are multiples of 16 and come one after the other.
    #[test]
    fn neighbors_are_spread() {
        let hash = |value: usize| {
            let mut hasher = NumberHasher::default();
            value.hash(&mut hasher);
            hasher.finish()
        };
        for step in [1, 16, 64, 192, 4096] {
            let low: Numbers<u64> = (0..1024).map(|n| hash(0x7F00_0000_1000 + n * step) & 1023).collect();
            let high: Numbers<u64> = (0..1024).map(|n| hash(0x7F00_0000_1000 + n * step) >> 57).collect();
            assert!(low.len() > 500 && high.len() > 100, "{step}: {} {}", low.len(), high.len());
        }
    }
}

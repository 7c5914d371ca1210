//! Hash tables by number or address: one multiplication in place of a keyed hash. Not safe for numbers that an attacker
//! chooses.

use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by number.
pub type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;
/// A set of numbers.
pub type Numbers<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Bound: entries that are found by looking at each.
const FEW: usize = 4;

/// A table by number that nearly always has few entries: these need no memory of their own.
pub struct Few<V> {
    few: SmallVec<[(u64, V); FEW]>,
    others: ByNumber<u64, V>,
}

impl<V> Default for Few<V> {
    fn default() -> Few<V> {
        Few { few: SmallVec::new(), others: ByNumber::default() }
    }
}

impl<V> Few<V> {
    /// Adds an entry for a number that has none.
    pub fn insert(&mut self, number: u64, value: V) {
        debug_assert!(self.get(number).is_none());
        if self.few.len() < FEW {
            self.few.push((number, value));
        } else {
            self.others.insert(number, value);
        }
    }

    pub fn get(&self, number: u64) -> Option<&V> {
        match self.few.iter().find(|(known, _)| *known == number) {
            Some((_, value)) => Some(value),
            None if self.others.is_empty() => None,
            None => self.others.get(&number),
        }
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut V> {
        match self.few.iter().position(|(known, _)| *known == number) {
            Some(at) => Some(&mut self.few[at].1),
            None if self.others.is_empty() => None,
            None => self.others.get_mut(&number),
        }
    }

    pub fn remove(&mut self, number: u64) -> Option<V> {
        match self.few.iter().position(|(known, _)| *known == number) {
            Some(at) => Some(self.few.swap_remove(at).1),
            None if self.others.is_empty() => None,
            None => self.others.remove(&number),
        }
    }

    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.few.iter().map(|(number, _)| *number).chain(self.others.keys().copied())
    }
}

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

    #[test]
    fn a_table_of_few_entries_holds_many() {
        let mut table = Few::default();
        (0..100).for_each(|n| table.insert(n, n * n));
        assert!((0..100).all(|n| table.get_mut(n) == Some(&mut (n * n))));
        assert!((0..100).step_by(2).all(|n| table.remove(n) == Some(n * n)));
        assert!((0..100).all(|n| table.get_mut(n).is_some() == (n % 2 == 1)));
        table.insert(0, 7);
        let mut numbers: Vec<u64> = table.numbers().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, std::iter::once(0).chain((1..100).step_by(2)).collect::<Vec<_>>());
        assert_eq!((table.remove(0), table.remove(2)), (Some(7), None));
    }

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

//! Philox 4x32-10, the counter-based generator of every device (Salmon et al., "Parallel random numbers:
//! as easy as 1, 2, 3", SC 2011).
//!
//! An operation that draws n values takes counters o to o + ceil(n/4); element i uses counter o + i/4, lane i % 4.
//! Values of 64 bits (f64, integers in a range, permutations) take their upper 32 bits from that word and their lower
//! 32 from the word of the same counter and lane of a second stream, whose key is the seed XOR `SECOND`. Normal values
//! come in pairs (Box-Muller): lanes 0 and 1, and lanes 2 and 3, of one counter. Must not change: fixtures depend on
//! every bit.

/// A seed and the next free counter; one per session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generator {
    pub seed: u64,
    pub offset: u64,
}

impl Generator {
    pub const fn new(seed: u64) -> Generator {
        Generator { seed, offset: 0 }
    }

    /// Takes the counters for `n` values and returns the first.
    pub fn take(&mut self, n: u64) -> u64 {
        let first = self.offset;
        self.offset = self.offset.wrapping_add(n.div_ceil(4));
        first
    }
}

/// Four random words for one counter.
#[inline(always)]
pub fn philox(seed: u64, counter: u64) -> [u32; 4] {
    const M0: u32 = 0xD251_1F53;
    const M1: u32 = 0xCD9E_8D57;
    const W0: u32 = 0x9E37_79B9;
    const W1: u32 = 0xBB67_AE85;
    let mut c = [counter as u32, (counter >> 32) as u32, 0, 0];
    let mut k = [seed as u32, (seed >> 32) as u32];
    let mut round = 0;
    while round < 10 {
        let p0 = M0 as u64 * c[0] as u64;
        let p1 = M1 as u64 * c[2] as u64;
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(W0), k[1].wrapping_add(W1)];
        round += 1;
    }
    c
}

/// The word of element `index` of an operation that starts at counter `offset`.
#[inline(always)]
pub fn word(seed: u64, offset: u64, index: u64) -> u32 {
    philox(seed, offset.wrapping_add(index / 4))[(index % 4) as usize]
}

/// Uniform in [0, 1): the top 24 bits.
#[inline(always)]
pub fn uniform_f32(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// XOR of the seed for the key of the second stream.
pub const SECOND: u64 = 0x9E37_79B9_7F4A_7C15;

/// The 64-bit word of element `index`.
#[inline(always)]
pub fn word64(seed: u64, offset: u64, index: u64) -> u64 {
    (word(seed, offset, index) as u64) << 32 | word(seed ^ SECOND, offset, index) as u64
}

/// Uniform in [0, 1): the top 53 bits.
#[inline(always)]
pub fn uniform_f64(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Uniform in [low, low + range): the upper half of the product. The relative bias of a value is at most range / 2^64.
#[inline(always)]
pub fn below(word: u64, low: i64, range: u64) -> i64 {
    low.wrapping_add(((word as u128 * range as u128) >> 64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of Random123: counter 0 and key 0.
    #[test]
    fn philox_known_answer() {
        assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}

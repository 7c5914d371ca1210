//! A generator of random choices that needs no crate, and gives the same ones everywhere (xorshift64*); damage to bytes.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // Seeds that are close give numbers that are far apart; the state is never zero.
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 33) % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// One to four flips, lies, cuts, insertions or moved pieces.
pub fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => {
                // Numbers that headers like to lie with.
                let lies = [0, 1, 0xFF, 0x7FFF_FFFF, 0xFFFF_FFFF, u64::MAX, 1 << 40, random.next()];
                let lie = lies[random.below(lies.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&lie[..width]);
            }
            3 => bytes.truncate(at),
            4 => {
                let text = [&b"9"[..], b"0", b"[", b"}", b",", b"\"", b"99999999999999999999", b"(", b"-"];
                let piece = text[random.below(text.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => {
                let end = at + random.below((bytes.len() - at).min(64) + 1);
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}

//! Writes baseline JPEG (ITU-T T.81): grey or RGB, every sample kept (4:4:4), the standard's own tables.
//!
//! Reading is a library's. Knows nothing of arrays or of our errors.

use std::io::{self, Write};

/// Annex K.1, row by row: brightness, then colour.
const QUANTA: [[u8; 64]; 2] = [
    [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29,
        51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121,
        120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ],
    [
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
    ],
];

/// Where coefficients lie in their block, from low frequencies to high ones.
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// A Huffman table as files have it: how many codes there are of each length, and what they stand for.
struct Table {
    lengths: [u8; 16],
    values: &'static [u8],
}

/// Annex K.3. First coefficients of blocks, for brightness and for colour; then the others.
const FIRST: [Table; 2] = [
    Table { lengths: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], values: &FIRST_VALUES },
    Table { lengths: [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], values: &FIRST_VALUES },
];
const FIRST_VALUES: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const OTHERS: [Table; 2] = [
    Table {
        lengths: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
        values: &[
            0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
            0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72,
            0x82, 0x09, 0x0A, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37,
            0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59,
            0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x83,
            0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3,
            0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3,
            0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE1, 0xE2,
            0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
        ],
    },
    Table {
        lengths: [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119],
        values: &[
            0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22,
            0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xA1, 0xB1, 0xC1, 0x09, 0x23, 0x33, 0x52, 0xF0, 0x15, 0x62, 0x72, 0xD1,
            0x0A, 0x16, 0x24, 0x34, 0xE1, 0x25, 0xF1, 0x17, 0x18, 0x19, 0x1A, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x35, 0x36,
            0x37, 0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
            0x59, 0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A,
            0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A,
            0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA,
            0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA,
            0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
        ],
    },
];

/// Code and length of each value.
type Codes = [(u16, u8); 256];

impl Table {
    /// Codes count up within a length, and double with each further bit.
    fn codes(&self) -> Codes {
        let mut codes = [(0, 0); 256];
        let (mut code, mut values) = (0u16, self.values.iter());
        for (length, &count) in (1..).zip(&self.lengths) {
            for &value in values.by_ref().take(count as usize) {
                codes[value as usize] = (code, length);
                code += 1;
            }
            code <<= 1;
        }
        codes
    }
}

/// Writes a picture of `channels` (1 or 3) samples a pixel, row by row; `quality` is from 1 to 100, as the IJG scales it.
pub fn write(
    out: &mut dyn Write,
    pixels: &[u8],
    (width, height): (u16, u16),
    channels: usize,
    quality: u8,
) -> io::Result<()> {
    let quanta = QUANTA.map(|table| scaled(&table, quality));
    let kinds = if channels == 1 { 1 } else { 2 };
    out.write_all(&[0xFF, 0xD8])?;
    segment(out, 0xE0, b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0")?;
    for (kind, table) in (0u8..).zip(&quanta[..kinds]) {
        let mut body = vec![kind];
        body.extend(ZIGZAG.iter().map(|&at| table[at as usize]));
        segment(out, 0xDB, &body)?;
    }
    let mut frame = vec![8];
    frame.extend(height.to_be_bytes());
    frame.extend(width.to_be_bytes());
    frame.push(channels as u8);
    for channel in 0..channels as u8 {
        frame.extend([channel + 1, 0x11, channel.min(1)]);
    }
    segment(out, 0xC0, &frame)?;
    for kind in 0..kinds {
        for (class, table) in [(0, &FIRST[kind]), (0x10, &OTHERS[kind])] {
            let mut body = vec![class | kind as u8];
            body.extend(table.lengths);
            body.extend(table.values);
            segment(out, 0xC4, &body)?;
        }
    }
    let mut scan = vec![channels as u8];
    for channel in 0..channels as u8 {
        scan.extend([channel + 1, channel.min(1) * 0x11]);
    }
    scan.extend([0, 63, 0]);
    segment(out, 0xDA, &scan)?;
    picture(out, pixels, (width as usize, height as usize), channels, &quanta)?;
    out.write_all(&[0xFF, 0xD9])
}

fn scaled(table: &[u8; 64], quality: u8) -> [u8; 64] {
    let quality = quality.clamp(1, 100) as u32;
    let scale = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    table.map(|quantum| ((quantum as u32 * scale + 50) / 100).clamp(1, 255) as u8)
}

fn segment(out: &mut dyn Write, marker: u8, body: &[u8]) -> io::Result<()> {
    out.write_all(&[0xFF, marker])?;
    out.write_all(&(body.len() as u16 + 2).to_be_bytes())?;
    out.write_all(body)
}

/// The blocks of all channels, from left to right and down; a block that hangs over the edge repeats the last pixels.
fn picture(
    out: &mut dyn Write,
    pixels: &[u8],
    (width, height): (usize, usize),
    channels: usize,
    quanta: &[[u8; 64]; 2],
) -> io::Result<()> {
    let first = FIRST.map(|table| table.codes());
    let others = OTHERS.map(|table| table.codes());
    let mut bits = Bits { bytes: Vec::new(), held: 0, count: 0 };
    let mut before = [0i32; 3];
    for top in (0..height).step_by(8) {
        for left in (0..width).step_by(8) {
            let mut blocks = [[[0f32; 8]; 8]; 3];
            for (y, x) in (0..8).flat_map(|y| (0..8).map(move |x| (y, x))) {
                let at = ((top + y).min(height - 1) * width + (left + x).min(width - 1)) * channels;
                for (block, sample) in blocks.iter_mut().zip(samples(&pixels[at..at + channels])) {
                    block[y][x] = sample;
                }
            }
            for (channel, block) in blocks.iter_mut().enumerate().take(channels) {
                let kind = channel.min(1);
                transform(block);
                let coefficient = |at: u8| {
                    let value = block[at as usize / 8][at as usize % 8];
                    (value / quanta[kind][at as usize] as f32).round() as i32
                };
                let coefficients = ZIGZAG.map(coefficient);
                bits.block(&coefficients, coefficients[0] - before[channel], &first[kind], &others[kind]);
                before[channel] = coefficients[0];
            }
        }
        out.write_all(&bits.bytes)?;
        bits.bytes.clear();
    }
    bits.finish();
    out.write_all(&bits.bytes)
}

/// A pixel around zero: grey, or brightness and two differences of colour (JFIF).
fn samples(pixel: &[u8]) -> [f32; 3] {
    match *pixel {
        [r, g, b] => {
            let (r, g, b) = (r as f32, g as f32, b as f32);
            let cb = -0.168_735_89 * r - 0.331_264_1 * g + 0.5 * b;
            let cr = 0.5 * r - 0.418_687_6 * g - 0.081_312_41 * b;
            [0.299 * r + 0.587 * g + 0.114 * b - 128.0, cb, cr]
        }
        _ => [pixel[0] as f32 - 128.0, 0.0, 0.0],
    }
}

/// The cosine transform along both dims.
fn transform(block: &mut [[f32; 8]; 8]) {
    for _ in 0..2 {
        columns(block);
        let turned = std::array::from_fn(|i| block.map(|row| row[i]));
        *block = turned;
    }
}

/// The orthonormal transform of each column: sums of opposite rows give the even frequencies, differences the odd ones.
fn columns(block: &mut [[f32; 8]; 8]) {
    // cos(k pi / 16) / 2; the lowest frequency has sqrt(1/8), which is that of k = 4.
    const C: [f32; 8] =
        [0.5, 0.490_392_64, 0.461_939_77, 0.415_734_8, 0.353_553_39, 0.277_785_12, 0.191_341_72, 0.097_545_16];
    const EVEN: [[f32; 4]; 4] =
        [[C[4], C[4], C[4], C[4]], [C[2], C[6], -C[6], -C[2]], [C[4], -C[4], -C[4], C[4]], [C[6], -C[2], C[2], -C[6]]];
    const ODD: [[f32; 4]; 4] =
        [[C[1], C[3], C[5], C[7]], [C[3], -C[7], -C[1], -C[5]], [C[5], -C[1], C[7], C[3]], [C[7], -C[5], C[3], -C[1]]];
    let old = *block;
    for k in 0..4 {
        for x in 0..8 {
            let (mut even, mut odd) = (0.0, 0.0);
            for n in 0..4 {
                even += EVEN[k][n] * (old[n][x] + old[7 - n][x]);
                odd += ODD[k][n] * (old[n][x] - old[7 - n][x]);
            }
            block[2 * k][x] = even;
            block[2 * k + 1][x] = odd;
        }
    }
}

/// Bits on their way to bytes, highest first.
struct Bits {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, bits: u32, count: u32) {
        self.held = self.held << count | bits as u64;
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.held >> self.count) as u8;
            self.bytes.push(byte);
            // What looks like a marker is followed by a zero.
            if byte == 0xFF {
                self.bytes.push(0);
            }
        }
    }

    fn code(&mut self, codes: &Codes, value: u8) {
        let (code, length) = codes[value as usize];
        self.put(code as u32, length as u32);
    }

    /// A value's own bits, of which there are as many as its code said; negative ones are one less.
    fn value(&mut self, value: i32, size: u32) {
        let bits = if value < 0 { value - 1 } else { value };
        self.put(bits as u32 & ((1 << size) - 1), size);
    }

    /// A block: the difference of its first coefficient, then runs of zeros with what follows them.
    fn block(&mut self, coefficients: &[i32; 64], difference: i32, first: &Codes, others: &Codes) {
        let size = |value: i32| 32 - value.unsigned_abs().leading_zeros();
        self.code(first, size(difference) as u8);
        self.value(difference, size(difference));
        let mut zeros = 0u8;
        for &value in &coefficients[1..] {
            if value == 0 {
                zeros += 1;
                continue;
            }
            while zeros >= 16 {
                self.code(others, 0xF0);
                zeros -= 16;
            }
            self.code(others, zeros << 4 | size(value) as u8);
            self.value(value, size(value));
            zeros = 0;
        }
        if zeros > 0 {
            self.code(others, 0);
        }
    }

    /// Fills the last byte with ones.
    fn finish(&mut self) {
        self.put(0x7F, 7);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_transformed_is_the_definition() {
        let sample = |y: usize, x: usize| ((y * 37 + x * 91) % 256) as f32 - 128.0;
        let mut block = std::array::from_fn(|y| std::array::from_fn(|x| sample(y, x)));
        transform(&mut block);
        for (v, u) in (0..8).flat_map(|v| (0..8).map(move |u| (v, u))) {
            let scale = |k: usize| if k == 0 { 0.5f64.sqrt() } else { 1.0 } / 2.0;
            let wave = |k: usize, n: usize| ((2 * n + 1) as f64 * k as f64 * std::f64::consts::PI / 16.0).cos();
            let sum: f64 = (0..64).map(|i| sample(i / 8, i % 8) as f64 * wave(v, i / 8) * wave(u, i % 8)).sum();
            assert!((block[v][u] as f64 - sum * scale(u) * scale(v)).abs() < 1e-3, "{v} {u}");
        }
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // Table K.3 and K.5: category 0, category 11; end of block, 16 zeros, 15 zeros and ten bits.
        let (first, others) = (FIRST[0].codes(), OTHERS[0].codes());
        assert_eq!((first[0], first[11]), ((0b00, 2), (0b1_1111_1110, 9)));
        assert_eq!((others[0], others[0xF0]), ((0b1010, 4), (0b111_1111_1001, 11)));
        assert_eq!(others[0xFA], (0xFFFE, 16));
        assert_eq!(OTHERS[1].codes()[0xFA], (0xFFFE, 16));
    }
}

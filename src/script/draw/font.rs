//! Letters of 5 by 7 pixels for charts: capitals, digits and signs; small letters are drawn as capitals.

use super::raster::{Raster, Rgb};

pub const WIDTH: usize = 6;

/// Seven rows of five bits, the top one first.
#[rustfmt::skip]
const GLYPHS: &[(char, [u8; 7])] = &[
    ('0', [14, 17, 19, 21, 25, 17, 14]), ('1', [4, 12, 4, 4, 4, 4, 14]), ('2', [14, 17, 1, 2, 4, 8, 31]),
    ('3', [31, 2, 4, 2, 1, 17, 14]), ('4', [2, 6, 10, 18, 31, 2, 2]), ('5', [31, 16, 30, 1, 1, 17, 14]),
    ('6', [6, 8, 16, 30, 17, 17, 14]), ('7', [31, 1, 2, 4, 8, 8, 8]), ('8', [14, 17, 17, 14, 17, 17, 14]),
    ('9', [14, 17, 17, 15, 1, 2, 12]), ('A', [14, 17, 17, 31, 17, 17, 17]), ('B', [30, 17, 17, 30, 17, 17, 30]),
    ('C', [14, 17, 16, 16, 16, 17, 14]), ('D', [28, 18, 17, 17, 17, 18, 28]), ('E', [31, 16, 16, 30, 16, 16, 31]),
    ('F', [31, 16, 16, 30, 16, 16, 16]), ('G', [14, 17, 16, 23, 17, 17, 15]), ('H', [17, 17, 17, 31, 17, 17, 17]),
    ('I', [14, 4, 4, 4, 4, 4, 14]), ('J', [7, 2, 2, 2, 2, 18, 12]), ('K', [17, 18, 20, 24, 20, 18, 17]),
    ('L', [16, 16, 16, 16, 16, 16, 31]), ('M', [17, 27, 21, 21, 17, 17, 17]), ('N', [17, 17, 25, 21, 19, 17, 17]),
    ('O', [14, 17, 17, 17, 17, 17, 14]), ('P', [30, 17, 17, 30, 16, 16, 16]), ('Q', [14, 17, 17, 17, 21, 18, 13]),
    ('R', [30, 17, 17, 30, 20, 18, 17]), ('S', [15, 16, 16, 14, 1, 1, 30]), ('T', [31, 4, 4, 4, 4, 4, 4]),
    ('U', [17, 17, 17, 17, 17, 17, 14]), ('V', [17, 17, 17, 17, 17, 10, 4]), ('W', [17, 17, 17, 21, 21, 21, 10]),
    ('X', [17, 17, 10, 4, 10, 17, 17]), ('Y', [17, 17, 17, 10, 4, 4, 4]), ('Z', [31, 1, 2, 4, 8, 16, 31]),
    ('-', [0, 0, 0, 31, 0, 0, 0]), ('+', [0, 4, 4, 31, 4, 4, 0]), ('.', [0, 0, 0, 0, 0, 12, 12]),
    (',', [0, 0, 0, 0, 12, 4, 8]), (':', [0, 12, 12, 0, 12, 12, 0]), ('=', [0, 0, 31, 0, 31, 0, 0]),
    ('(', [2, 4, 8, 8, 8, 4, 2]), (')', [8, 4, 2, 2, 2, 4, 8]), ('/', [0, 1, 2, 4, 8, 16, 0]),
    ('_', [0, 0, 0, 0, 0, 0, 31]), ('%', [24, 25, 2, 4, 8, 19, 3]), ('*', [0, 4, 21, 14, 21, 4, 0]),
    (' ', [0; 7]),
];
/// For a character that is not in the table.
const OTHER: [u8; 7] = [31, 17, 17, 17, 17, 17, 31];

/// Pixels that a text is wide.
pub fn width(text: &str, scale: usize) -> usize {
    text.chars().count() * WIDTH * scale
}

/// Writes a text with its upper left corner at a pixel.
pub fn write(picture: &mut Raster, left: i64, top: i64, text: &str, scale: usize, color: Rgb) {
    for (index, c) in text.chars().enumerate() {
        let c = c.to_ascii_uppercase();
        let rows = GLYPHS.iter().find(|(known, _)| *known == c).map_or(OTHER, |(_, rows)| *rows);
        for (y, row) in rows.iter().enumerate() {
            for x in (0..5).filter(|x| row >> (4 - x) & 1 == 1) {
                let (x, y) = ((index * WIDTH + x) * scale, y * scale);
                picture.rectangle(left + x as i64, top + y as i64, scale as i64, scale as i64, color);
            }
        }
    }
}

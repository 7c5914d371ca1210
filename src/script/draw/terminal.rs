//! Pictures as text for a terminal: as images if it supports them (kitty's protocol, sixel), otherwise as colored
//! half blocks, or as shades without color.
//!
//! Does not detect what a terminal supports: the program passes that.

use super::raster::{Raster, Rgb};
use crate::base::diag::Result;
use crate::files;

/// What the output terminal can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminal {
    pub graphics: Graphics,
    pub columns: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Graphics {
    /// Characters only: no terminal, or no colors requested.
    Plain,
    /// 256 colors.
    Indexed,
    /// 24-bit colors.
    Full,
    /// Images by kitty's protocol, and 24-bit colors.
    Kitty,
    /// Images by sixel, and 24-bit colors.
    Sixel,
}

impl Default for Terminal {
    fn default() -> Terminal {
        Terminal { graphics: Graphics::Plain, columns: 80 }
    }
}

impl Terminal {
    pub fn has_pictures(&self) -> bool {
        matches!(self.graphics, Graphics::Kitty | Graphics::Sixel)
    }

    /// Text in a color, if there are colors.
    pub fn colored(&self, text: &str, color: Rgb) -> String {
        match self.graphics {
            Graphics::Plain => text.to_string(),
            _ => format!("\x1b[38;{}m{text}\x1b[0m", self.code(color)),
        }
    }

    fn code(&self, [r, g, b]: Rgb) -> String {
        match self.graphics {
            Graphics::Indexed => format!("5;{}", indexed([r, g, b])),
            _ => format!("2;{r};{g};{b}"),
        }
    }
}

/// Pixels on the longer side below which a picture is enlarged, for an image and for blocks.
const SMALL_IMAGE: usize = 256;
const SMALL_BLOCKS: usize = 24;
/// Maximum pixels of an image in each direction.
const LARGE_IMAGE: usize = 1200;
/// From dark to bright.
const SHADES: &[u8] = b" .:-=+*#%@";

/// The text that draws a picture.
pub fn picture(picture: &Raster, terminal: &Terminal) -> Result<String> {
    match terminal.graphics {
        Graphics::Kitty => kitty(&sized(picture)),
        Graphics::Sixel => Ok(sixel(&sized(picture))),
        _ => Ok(blocks(picture, terminal)),
    }
}

/// Enlarges small pictures by a whole factor, reduces large ones.
pub fn sized(picture: &Raster) -> Raster {
    let side = picture.width.max(picture.height);
    if side < SMALL_IMAGE {
        return picture.enlarged(SMALL_IMAGE / side);
    }
    let share = (LARGE_IMAGE as f64 / side as f64).min(1.0);
    picture.reduced((picture.width as f64 * share) as usize, (picture.height as f64 * share) as usize)
}

/// Two pixels in each character: the upper half in the text color, the lower half in the background color. Without
/// colors one shade for both.
fn blocks(picture: &Raster, terminal: &Terminal) -> String {
    let columns = terminal.columns.max(8);
    let side = picture.width.max(picture.height);
    let enlarged = if side < SMALL_BLOCKS { picture.enlarged(SMALL_BLOCKS / side) } else { picture.clone() };
    let height = (enlarged.height * columns.min(enlarged.width)).div_ceil(enlarged.width);
    let picture = enlarged.reduced(columns, height);
    let mut lines = Vec::new();
    for y in (0..picture.height).step_by(2) {
        let mut line = String::new();
        let mut last = String::new();
        for x in 0..picture.width {
            let upper = picture.at(x, y);
            let lower = if y + 1 < picture.height { picture.at(x, y + 1) } else { upper };
            if terminal.graphics == Graphics::Plain {
                line.push(shade(upper, lower));
                continue;
            }
            let codes = format!("\x1b[38;{};48;{}m", terminal.code(upper), terminal.code(lower));
            // Adjacent characters of one color share an escape sequence.
            if codes != last {
                line += &codes;
                last = codes;
            }
            line.push('▀');
        }
        if terminal.graphics != Graphics::Plain {
            line += "\x1b[0m";
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// The mean brightness of two pixels as a character.
fn shade(a: Rgb, b: Rgb) -> char {
    let bright = |[r, g, b]: Rgb| 0.299 * r as f64 + 0.587 * g as f64 + 0.114 * b as f64;
    let mean = (bright(a) + bright(b)) / 510.0;
    SHADES[(mean * (SHADES.len() - 1) as f64).round() as usize] as char
}

/// The nearest of the 216 colors and 24 grays that terminals with 256 colors have in common.
fn indexed(color: Rgb) -> u8 {
    const LEVELS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |level: u8| (0..6).min_by_key(|&index| (LEVELS[index] - level as i32).abs()).unwrap_or(0);
    let distance = |other: [i32; 3]| color.iter().zip(other).map(|(&a, b)| (a as i32 - b).pow(2)).sum::<i32>();
    let [r, g, b] = color.map(nearest);
    let cube = distance([LEVELS[r], LEVELS[g], LEVELS[b]]);
    let mean = color.iter().map(|&level| level as i32).sum::<i32>() / 3;
    let gray = ((mean - 8).max(0) / 10).min(23);
    match distance([8 + 10 * gray; 3]) < cube {
        true => 232 + gray as u8,
        false => 16 + (36 * r + 6 * g + b) as u8,
    }
}

/// kitty's protocol: a png in base64, in pieces of at most 4096 characters. `q=2`: the terminal does not answer,
/// since an answer would arrive as typed text.
fn kitty(picture: &Raster) -> Result<String> {
    let png = files::write_bytes(files::Kind::Png, &files::Value::One(picture.array()?))?;
    let data = base64(&png);
    let pieces: Vec<&str> = data.as_bytes().chunks(4096).filter_map(|piece| std::str::from_utf8(piece).ok()).collect();
    let mut text = String::with_capacity(data.len() + 64);
    for (index, piece) in pieces.iter().enumerate() {
        let more = (index + 1 < pieces.len()) as u8;
        let start = if index == 0 { "a=T,f=100,q=2," } else { "" };
        text += &format!("\x1b_G{start}m={more};{piece}\x1b\\");
    }
    Ok(text)
}

pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |index: usize| group.get(index).copied().unwrap_or(0) as u32;
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let character = ALPHABET[(word >> (18 - 6 * place) & 63) as usize] as char;
            out.push(if place <= group.len() { character } else { '=' });
        }
    }
    out
}

/// Sixel: bands of six rows; in each band one line of characters for each color in it, with run lengths. The palette
/// has six levels each of red, green and blue.
fn sixel(picture: &Raster) -> String {
    let level = |value: u8| (value as usize * 5 + 127) / 255;
    let index = |[r, g, b]: Rgb| level(r) * 36 + level(g) * 6 + level(b);
    let mut text = format!("\x1bPq\"1;1;{};{}", picture.width, picture.height);
    let mut defined = [false; 216];
    for top in (0..picture.height).step_by(6) {
        let rows = 6.min(picture.height - top);
        let mut used = [false; 216];
        let at = |x: usize, row: usize| index(picture.at(x, top + row));
        (0..rows).for_each(|row| (0..picture.width).for_each(|x| used[at(x, row)] = true));
        for color in (0..216).filter(|&color| used[color]) {
            if !std::mem::replace(&mut defined[color], true) {
                let percent = |level: usize| level * 20;
                let (r, g, b) = (percent(color / 36), percent(color / 6 % 6), percent(color % 6));
                text += &format!("#{color};2;{r};{g};{b}");
            }
            text += &format!("#{color}");
            let bits = |x: usize| (0..rows).filter(|&row| at(x, row) == color).map(|row| 1u8 << row).sum::<u8>();
            let mut x = 0;
            while x < picture.width {
                let run = (x..picture.width).take_while(|&next| bits(next) == bits(x)).count();
                let character = (63 + bits(x)) as char;
                match run {
                    0..=3 => (0..run).for_each(|_| text.push(character)),
                    _ => text += &format!("!{run}{character}"),
                }
                x += run.max(1);
            }
            // Back to the beginning of the band.
            text.push('$');
        }
        text.push('-');
    }
    text += "\x1b\\";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(graphics: Graphics) -> Terminal {
        Terminal { graphics, columns: 40 }
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn indexed_colors_are_the_nearest() {
        assert_eq!(indexed([0, 0, 0]), 16);
        assert_eq!(indexed([255, 255, 255]), 231);
        assert_eq!(indexed([255, 0, 0]), 196);
        assert_eq!(indexed([128, 128, 128]), 244);
        assert_eq!(indexed([8, 8, 8]), 232);
    }

    #[test]
    fn kitty_gets_a_png_in_pieces() {
        let noisy = Raster::of(300, 300, |x, y| [(x * 7 + y * 13) as u8, (x * y) as u8, (x ^ y) as u8]);
        let text = picture(&noisy, &on(Graphics::Kitty)).expect("coded");
        assert!(text.starts_with("\x1b_Ga=T,f=100,q=2,m=1;iVBORw0KGgo"), "{}", &text[..40]);
        let last = text.rsplit("\x1b_G").next().expect("a piece");
        assert!(last.starts_with("m=0;") && text.ends_with("\x1b\\"));
        assert!(text.split("\x1b\\").all(|piece| piece.len() <= 4096 + 40));
    }

    #[test]
    fn sixel_counts_repeats() {
        let red = Raster::of(256, 6, |_, _| [255, 0, 0]);
        let text = picture(&red, &on(Graphics::Sixel)).expect("coded");
        assert_eq!(text, "\x1bPq\"1;1;256;6#180;2;100;0;0#180!256~$-\x1b\\");
    }

    #[test]
    fn blocks_hold_two_pixels_and_fit_the_terminal() {
        let two = Raster::of(100, 50, |_, y| if y < 25 { [255, 0, 0] } else { [0, 0, 255] });
        let text = picture(&two, &on(Graphics::Full)).expect("drawn");
        assert_eq!(text.lines().count(), 10);
        assert!(text.starts_with("\x1b[38;2;255;0;0;48;2;255;0;0m▀▀"));
        assert!(text.lines().all(|line| line.matches('▀').count() == 40 && line.ends_with("\x1b[0m")));
        assert!(picture(&two, &on(Graphics::Indexed)).expect("drawn").contains("38;5;196"));
    }
}

//! Pictures as pixels, and simple drawing: antialiased lines, dots, rectangles.

use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::files::Array;

pub type Rgb = [u8; 3];

/// Rows of pixels from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    pub width: usize,
    pub height: usize,
    pixels: Vec<Rgb>,
}

impl Raster {
    pub fn of(width: usize, height: usize, pixel: impl Fn(usize, usize) -> Rgb) -> Raster {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| pixel(x, y)).collect();
        Raster { width, height, pixels }
    }

    pub fn at(&self, x: usize, y: usize) -> Rgb {
        self.pixels[y * self.width + x]
    }

    /// `[H, W, 3]` of `u8`, as image files need it.
    pub fn array(&self) -> Result<Array> {
        Array::new(DType::U8, vec![self.height, self.width, 3], self.pixels.as_flattened().to_vec())
    }

    /// Each pixel `factor` times as wide and high.
    pub fn enlarged(&self, factor: usize) -> Raster {
        Raster::of(self.width * factor, self.height * factor, |x, y| self.at(x / factor, y / factor))
    }

    /// The mean of the pixels that fall on each new one; never larger than before.
    pub fn reduced(&self, width: usize, height: usize) -> Raster {
        let (width, height) = (width.clamp(1, self.width), height.clamp(1, self.height));
        Raster::of(width, height, |x, y| {
            let (left, right) = (x * self.width / width, (x + 1) * self.width / width);
            let (top, bottom) = (y * self.height / height, (y + 1) * self.height / height);
            let mut sums = [0u64; 3];
            for (row, column) in (top..bottom).flat_map(|row| (left..right).map(move |column| (row, column))) {
                let pixel = self.at(column, row);
                sums.iter_mut().zip(pixel).for_each(|(sum, level)| *sum += level as u64);
            }
            let count = ((right - left) * (bottom - top)).max(1) as u64;
            sums.map(|sum| (sum / count) as u8)
        })
    }

    /// Blends a color over a pixel; has no effect outside the picture.
    pub fn blend(&mut self, x: i64, y: i64, color: Rgb, part: f64) {
        if x < 0 || y < 0 || x >= self.width as i64 || y >= self.height as i64 {
            return;
        }
        let pixel = &mut self.pixels[y as usize * self.width + x as usize];
        for (level, expected) in pixel.iter_mut().zip(color) {
            *level = (*level as f64 + (expected as f64 - *level as f64) * part.clamp(0.0, 1.0)).round() as u8;
        }
    }

    pub fn rectangle(&mut self, left: i64, top: i64, width: i64, height: i64, color: Rgb) {
        for y in top..top + height {
            for x in left..left + width {
                self.blend(x, y, color, 1.0);
            }
        }
    }

    /// An antialiased line of a width: each pixel by its distance from the segment.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, color: Rgb) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = (dx * dx + dy * dy).max(1e-12);
        let reach = width / 2.0 + 1.0;
        let range = |a: f64, b: f64| ((a.min(b) - reach).floor() as i64, (a.max(b) + reach).ceil() as i64);
        // Cost: proportional to the longer side, and across only to the line's width.
        let steep = dy.abs() > dx.abs();
        let (first, last) = if steep { range(from.1, to.1) } else { range(from.0, to.0) };
        for along in first..=last {
            let share = |start: f64, delta: f64| {
                ((along as f64 - start) / delta.abs().max(1e-12) * delta.signum()).clamp(0.0, 1.0)
            };
            let center = if steep { from.0 + dx * share(from.1, dy) } else { from.1 + dy * share(from.0, dx) };
            let wide = reach * 1.5;
            for across in (center - wide).floor() as i64..=(center + wide).ceil() as i64 {
                let (x, y) = if steep { (across, along) } else { (along, across) };
                let (px, py) = (x as f64 - from.0, y as f64 - from.1);
                let t = ((px * dx + py * dy) / length).clamp(0.0, 1.0);
                let distance = ((px - t * dx).powi(2) + (py - t * dy).powi(2)).sqrt();
                self.blend(x, y, color, width / 2.0 + 0.5 - distance);
            }
        }
    }

    pub fn dot(&mut self, x: f64, y: f64, radius: f64, color: Rgb) {
        let reach = radius.ceil() as i64 + 1;
        for oy in -reach..=reach {
            for ox in -reach..=reach {
                let (px, py) = (x.round() as i64 + ox, y.round() as i64 + oy);
                let distance = ((px as f64 - x).powi(2) + (py as f64 - y).powi(2)).sqrt();
                self.blend(px, py, color, radius + 0.5 - distance);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reducing_means_and_enlarging_repeats() {
        let board = Raster::of(4, 2, |x, y| if (x + y) % 2 == 0 { [200; 3] } else { [0; 3] });
        assert_eq!(board.reduced(2, 1), Raster::of(2, 1, |_, _| [100; 3]));
        assert_eq!(board.enlarged(3).at(11, 5), board.at(3, 1));
        assert_eq!(board.reduced(9, 9), board);
    }

    #[test]
    fn lines_and_dots_stay_inside() {
        let mut picture = Raster::of(10, 10, |_, _| [255; 3]);
        picture.line((-50.0, 5.0), (60.0, 5.0), 2.0, [0; 3]);
        assert_eq!(picture.at(0, 5), [0; 3]);
        assert_eq!(picture.at(9, 0), [255; 3]);
        picture.line((3.0, -9.0), (3.0, 20.0), 1.0, [255, 0, 0]);
        assert_eq!(picture.at(3, 9), [255, 0, 0]);
        picture.dot(0.0, 0.0, 2.0, [0, 0, 255]);
        assert_eq!(picture.at(0, 0), [0, 0, 255]);
        picture.line((2.0, 2.0), (2.0, 2.0), 2.0, [0; 3]);
    }
}

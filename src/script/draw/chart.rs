//! Curves with axes: as pixels, or as text of braille dots.

use super::font;
use super::raster::{Raster, Rgb};
use super::terminal::Terminal;
use crate::base::diag::Result;

/// How the points of a curve are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Line,
    Points,
}

pub struct Curve {
    /// A point that is not finite breaks the line.
    pub points: Vec<(f64, f64)>,
    pub mark: Mark,
}

/// Curves over one pair of axes.
pub struct Chart {
    curves: Vec<Curve>,
    title: String,
    x: Axis,
    y: Axis,
}

/// A range of numbers with the positions that get a label.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    step: f64,
}

/// Colors of successive curves; the first is blue.
const COLORS: [Rgb; 6] =
    [[31, 119, 180], [214, 39, 40], [44, 160, 44], [255, 127, 14], [148, 103, 189], [23, 190, 207]];
const INK: Rgb = [60, 60, 60];
const GRID: Rgb = [225, 225, 225];
/// Rows and columns of a chart in text, without axes.
const TEXT_ROWS: usize = 16;
const TEXT_COLUMNS: usize = 64;

impl Chart {
    /// None if no point is finite.
    pub fn new(curves: Vec<Curve>, title: String) -> Option<Chart> {
        let finite = || curves.iter().flat_map(|curve| &curve.points).filter(|(x, y)| x.is_finite() && y.is_finite());
        finite().next()?;
        let range = |of: fn(&(f64, f64)) -> f64| {
            finite().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
        };
        let (x, y) = (Axis::new(range(|point| point.0)), Axis::new(range(|point| point.1)));
        Some(Chart { curves, title, x, y })
    }

    /// Pieces of a curve without a gap, in fractions of the axes: (0, 0) is the lower left corner.
    fn pieces<'a>(&'a self, curve: &'a Curve) -> impl Iterator<Item = Vec<(f64, f64)>> + 'a {
        let finite = |point: &(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let pieces = curve.points.split(move |point| !finite(point)).filter(|piece| !piece.is_empty());
        pieces.map(|piece| piece.iter().map(|&(x, y)| (self.x.share(x), self.y.share(y))).collect())
    }

    pub fn raster(&self, width: usize, height: usize) -> Raster {
        let mut picture = Raster::of(width, height, |_, _| [255; 3]);
        let scale = 2;
        let labels: Vec<String> = self.y.ticks.iter().map(|&tick| self.y.label(tick)).collect();
        let left = labels.iter().map(|label| font::width(label, scale)).max().unwrap_or(0) as f64 + 24.0;
        let top = if self.title.is_empty() { 20.0 } else { 44.0 };
        let (right, bottom) = (width as f64 - 24.0, height as f64 - 40.0);
        let place = |(x, y): (f64, f64)| (left + x * (right - left), bottom - y * (bottom - top));
        for (&tick, label) in self.y.ticks.iter().zip(&labels) {
            let (_, y) = place((0.0, self.y.share(tick)));
            picture.line((left, y), (right, y), 1.0, GRID);
            let start = left - 10.0 - font::width(label, scale) as f64;
            font::write(&mut picture, start as i64, y as i64 - 7, label, scale, INK);
        }
        for &tick in &self.x.ticks {
            let (x, _) = place((self.x.share(tick), 0.0));
            picture.line((x, top), (x, bottom), 1.0, GRID);
            let label = self.x.label(tick);
            let start = x - font::width(&label, scale) as f64 / 2.0;
            font::write(&mut picture, start as i64, bottom as i64 + 14, &label, scale, INK);
        }
        picture.line((left, top), (left, bottom), 2.0, INK);
        picture.line((left, bottom), (right, bottom), 2.0, INK);
        if !self.title.is_empty() {
            let start = (left + right - font::width(&self.title, scale) as f64) / 2.0;
            font::write(&mut picture, start as i64, 16, &self.title, scale, INK);
        }
        for (curve, color) in self.curves.iter().zip(COLORS.iter().cycle()) {
            for piece in self.pieces(curve) {
                let piece: Vec<(f64, f64)> = piece.into_iter().map(place).collect();
                match (curve.mark, piece.as_slice()) {
                    (Mark::Points, points) => points.iter().for_each(|&(x, y)| picture.dot(x, y, 3.0, *color)),
                    (Mark::Line, [(x, y)]) => picture.dot(*x, *y, 3.0, *color),
                    (Mark::Line, points) => {
                        points.windows(2).for_each(|ends| picture.line(ends[0], ends[1], 2.0, *color));
                    }
                }
            }
        }
        picture
    }

    /// Braille dots, 2 by 4 in each character, with labels at the axes.
    pub fn text(&self, terminal: &Terminal) -> Result<String> {
        let labels: Vec<String> = self.y.ticks.iter().map(|&tick| self.y.label(tick)).collect();
        let margin = labels.iter().map(String::len).max().unwrap_or(0);
        let columns = TEXT_COLUMNS.min(terminal.columns.saturating_sub(margin + 3)).max(8);
        let mut cells = Dots::new(columns, TEXT_ROWS);
        for (index, curve) in self.curves.iter().enumerate() {
            for piece in self.pieces(curve) {
                let place = |(x, y): (f64, f64)| cells.place(x, y);
                let piece: Vec<(i64, i64)> = piece.into_iter().map(place).collect();
                if curve.mark == Mark::Points || piece.len() == 1 {
                    piece.iter().for_each(|&(x, y)| cells.set(x, y, index));
                } else {
                    piece.windows(2).for_each(|ends| cells.line(ends[0], ends[1], index));
                }
            }
        }
        let mut text = String::new();
        if !self.title.is_empty() {
            let indent = margin + 2 + columns.saturating_sub(self.title.chars().count()) / 2;
            text += &format!("{:indent$}{}\n", "", self.title);
        }
        let row_of = |tick: f64| {
            TEXT_ROWS - 1 - ((self.y.share(tick) * (TEXT_ROWS - 1) as f64).round() as usize).min(TEXT_ROWS - 1)
        };
        for row in 0..TEXT_ROWS {
            let label =
                self.y.ticks.iter().zip(&labels).find(|(tick, _)| row_of(**tick) == row).map(|(_, label)| label);
            let (label, line) = label.map_or(("", '│'), |label| (label, '┤'));
            text += &format!("{label:>margin$} {line}{}\n", cells.row(row, terminal));
        }
        text += &format!("{:margin$} └{}\n{:margin$}  {}", "", "─".repeat(columns), "", self.x_labels(columns));
        Ok(text)
    }

    /// The labels of the lower axis, each under its position, as many as fit.
    fn x_labels(&self, columns: usize) -> String {
        let mut line = String::new();
        for &tick in &self.x.ticks {
            let label = self.x.label(tick);
            let center = (self.x.share(tick) * (columns - 1) as f64).round() as usize;
            let start = center.saturating_sub(label.len() / 2);
            if start >= line.len() + (!line.is_empty()) as usize {
                line += &" ".repeat(start - line.len());
                line += &label;
            }
        }
        line
    }
}

impl Axis {
    fn new((low, high): (f64, f64)) -> Axis {
        // A single value gets a margin.
        let room = if high > low { 0.0 } else { (low.abs() * 0.1).max(1.0) };
        let (low, high) = (low - room, high + room);
        let (low, high) = if (high - low).is_finite() { (low, high) } else { (low / 4.0, high / 4.0) };
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (low / step).ceil();
        let ticks = (0..=10).map(|n| (first + n as f64) * step).take_while(|tick| *tick <= high + step * 1e-9);
        Axis { low, high, ticks: ticks.collect(), step }
    }

    fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn label(&self, tick: f64) -> String {
        let tick = if tick.abs() < self.step * 1e-6 { 0.0 } else { tick };
        let size = self.low.abs().max(self.high.abs());
        if !(1e-3..1e6).contains(&size) {
            return format!("{tick:.1e}");
        }
        let digits = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        format!("{tick:.digits$}")
    }
}

/// A grid of braille characters.
struct Dots {
    columns: usize,
    rows: usize,
    /// The dots of each character, and the curve that drew there last.
    cells: Vec<(u8, usize)>,
}

impl Dots {
    fn new(columns: usize, rows: usize) -> Dots {
        Dots { columns, rows, cells: vec![(0, 0); columns * rows] }
    }

    /// The dot of a position in fractions of the axes.
    fn place(&self, x: f64, y: f64) -> (i64, i64) {
        let (width, height) = ((self.columns * 2 - 1) as f64, (self.rows * 4 - 1) as f64);
        ((x * width).round() as i64, (height - y * height).round() as i64)
    }

    fn set(&mut self, x: i64, y: i64, curve: usize) {
        // Of the eight dots the lower two have the highest bits.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let (x, y) = (x as usize, y as usize);
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell = (cell.0 | BITS[y % 4][x % 2], curve);
        }
    }

    fn line(&mut self, from: (i64, i64), to: (i64, i64), curve: usize) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).max(1);
        for step in 0..=steps {
            let between = |a: i64, b: i64| a + ((b - a) as f64 * step as f64 / steps as f64).round() as i64;
            self.set(between(from.0, to.0), between(from.1, to.1), curve);
        }
    }

    fn row(&self, row: usize, terminal: &Terminal) -> String {
        let cells = &self.cells[row * self.columns..(row + 1) * self.columns];
        let drawn = cells.iter().rposition(|cell| cell.0 != 0).map_or(0, |last| last + 1);
        let mut text = String::new();
        // Adjacent characters of one curve share an escape sequence.
        for run in cells[..drawn].chunk_by(|a, b| (a.0 == 0, a.1) == (b.0 == 0, b.1)) {
            let dots: String = run.iter().filter_map(|cell| char::from_u32(0x2800 + cell.0 as u32)).collect();
            match run[0] {
                (0, _) => text += &" ".repeat(run.len()),
                (_, curve) => text += &terminal.colored(&dots, COLORS[curve % COLORS.len()]),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        for (range, expected) in [
            ((0.0, 10.0), vec!["0", "2", "4", "6", "8", "10"]),
            ((-0.13, 0.27), vec!["-0.1", "0.0", "0.1", "0.2"]),
            ((1e7, 3e7), vec!["1.0e7", "1.5e7", "2.0e7", "2.5e7", "3.0e7"]),
            ((5.0, 5.0), vec!["4.0", "4.5", "5.0", "5.5", "6.0"]),
        ] {
            let axis = Axis::new(range);
            let labels: Vec<String> = axis.ticks.iter().map(|&tick| axis.label(tick)).collect();
            assert_eq!(labels, expected, "{range:?}");
        }
        for range in [(f64::MIN, f64::MAX), (0.0, f64::MIN_POSITIVE), (1.0, 1.0 + f64::EPSILON), (-1e300, 1e300)] {
            assert!(Axis::new(range).ticks.len() <= 11, "{range:?}");
        }
    }

    #[test]
    fn gaps_break_a_line() {
        let points = vec![(0.0, 0.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 1.0)];
        let chart = Chart::new(vec![Curve { points, mark: Mark::Line }], String::new()).expect("finite points");
        assert_eq!(chart.pieces(&chart.curves[0]).map(|piece| piece.len()).collect::<Vec<_>>(), [2, 1]);
        assert!(Chart::new(vec![Curve { points: vec![(f64::NAN, 1.0)], mark: Mark::Line }], String::new()).is_none());
    }
}

//! Event files of TensorBoard: records of a length, its checksum, an `Event` message and its checksum. Appended to, never
//! read. Only the fields that are written have an encoder here.
//!
//! Source: <https://github.com/tensorflow/tensorflow>, `core/util/event.proto`, `core/framework/summary.proto` and
//! `core/lib/io/record_writer.cc`.

use super::hparams;

/// What a tag has at one step.
#[derive(Clone, Debug)]
pub enum Content {
    Scalar(f32),
    Text(String),
    Image { height: usize, width: usize, channels: usize, png: Vec<u8> },
    Histogram(Histogram),
    Settings(hparams::Part),
}

/// Counts of values between limits; the first limit ends the first bucket.
#[derive(Clone, PartialEq, Debug)]
pub struct Histogram {
    least: f64,
    most: f64,
    count: f64,
    sum: f64,
    sum_of_squares: f64,
    limits: Vec<f64>,
    buckets: Vec<f64>,
}

impl Histogram {
    /// Of finite values; none if there are none, or all are beyond 1e20. The limits are TensorFlow's: each is a tenth larger
    /// than the one before, and those without values at both ends are left out.
    pub fn of(values: &[f64]) -> Option<Histogram> {
        let limits = limits();
        let mut counts = vec![0.0; limits.len() - 1];
        for &value in values {
            // The last bucket has both of its limits.
            let after = limits.partition_point(|&limit| limit <= value);
            let at = if limits.last() == Some(&value) { counts.len() } else { after };
            if (1..=counts.len()).contains(&at) {
                counts[at - 1] += 1.0;
            }
        }
        let first = counts.iter().position(|&count| count > 0.0)?;
        let last = counts.iter().rposition(|&count| count > 0.0)?;
        // The bucket before the first value is there, and empty.
        let before = if first > 0 { counts[first - 1] } else { 0.0 };
        let buckets = std::iter::once(before).chain(counts[first..=last].iter().copied()).collect();
        Some(Histogram {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            count: values.len() as f64,
            sum: values.iter().sum(),
            sum_of_squares: values.iter().map(|value| value * value).sum(),
            limits: limits[first..=last + 1].to_vec(),
            buckets,
        })
    }

    fn message(&self) -> Message {
        let mut out = Message::default();
        for (field, value) in
            [(1, self.least), (2, self.most), (3, self.count), (4, self.sum), (5, self.sum_of_squares)]
        {
            out.double(field, value);
        }
        for (field, values) in [(6, &self.limits), (7, &self.buckets)] {
            out.bytes(field, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
        }
        out
    }
}

fn limits() -> Vec<f64> {
    let positive: Vec<f64> =
        std::iter::successors(Some(1e-12), |limit| Some(limit * 1.1)).take_while(|&limit| limit < 1e20).collect();
    positive.iter().rev().map(|limit| -limit).chain([0.0]).chain(positive.iter().copied()).collect()
}

/// A message of Protocol Buffers.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    /// A 0 is what a reader sees where there is nothing.
    pub(super) fn integer(&mut self, field: u64, value: i64) {
        if value != 0 {
            self.key(field, 0);
            self.varint(value as u64);
        }
    }

    fn double(&mut self, field: u64, value: f64) {
        if value.to_bits() != 0 {
            self.present_double(field, value);
        }
    }

    pub(super) fn present_double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    pub(super) fn message(&mut self, field: u64, value: &Message) {
        self.bytes(field, &value.0);
    }
}

/// A `Summary.Value`.
fn value(tag: &str, content: &Content) -> Message {
    let mut out = Message::default();
    out.bytes(1, tag.as_bytes());
    match content {
        Content::Scalar(value) => out.float(2, *value),
        Content::Image { height, width, channels, png } => {
            let mut image = Message::default();
            for (field, size) in [(1, *height), (2, *width), (3, *channels)] {
                image.integer(field, size as i64);
            }
            image.bytes(4, png);
            out.message(4, &image);
        }
        Content::Histogram(histogram) => out.message(5, &histogram.message()),
        Content::Text(text) => {
            // A tensor of one string, which a plugin shows.
            const STRING: i64 = 7;
            let (mut dim, mut shape, mut tensor) = (Message::default(), Message::default(), Message::default());
            dim.integer(1, 1);
            shape.message(2, &dim);
            tensor.integer(1, STRING);
            tensor.message(2, &shape);
            tensor.bytes(8, text.as_bytes());
            out.message(8, &tensor);
            out.message(9, &plugin("text", None));
        }
        Content::Settings(part) => out.message(9, &plugin("hparams", Some(&part.message()))),
    }
    out
}

/// A `SummaryMetadata`: which plugin shows the value.
fn plugin(name: &str, content: Option<&Message>) -> Message {
    let (mut plugin, mut about) = (Message::default(), Message::default());
    plugin.bytes(1, name.as_bytes());
    if let Some(content) = content {
        plugin.message(2, content);
    }
    about.message(1, &plugin);
    about
}

/// The record that begins a file.
pub fn version(seconds: f64) -> Vec<u8> {
    let mut event = Message::default();
    event.double(1, seconds);
    event.bytes(3, b"brain.Event:2");
    record(&event.0)
}

/// A record of what a tag has at a step.
pub fn event(seconds: f64, step: i64, tag: &str, content: &Content) -> Vec<u8> {
    let (mut event, mut summary) = (Message::default(), Message::default());
    event.double(1, seconds);
    event.integer(2, step);
    summary.message(1, &value(tag, content));
    event.message(5, &summary);
    record(&event.0)
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = length.to_vec();
    out.extend(masked(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked(data).to_le_bytes());
    out
}

/// CRC-32C, rotated and moved, so that a checksum of data that holds checksums is a good one.
fn masked(data: &[u8]) -> u32 {
    let crc = !data.iter().fold(u32::MAX, |crc, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize]);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Of Castagnoli's polynomial, its bits reversed.
static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32C, and 32 zeros (RFC 3720, B.4), unmasked.
    #[test]
    fn checksums_are_castagnolis() {
        let plain = |data: &[u8]| masked(data).wrapping_sub(0xa282_ead8).rotate_left(15);
        assert_eq!(plain(b"123456789"), 0xe306_9283);
        assert_eq!(plain(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn histograms_have_the_buckets_around_their_values() {
        let histogram = Histogram::of(&[0.0, 1.0, 1.0, -2.0]).expect("there are values");
        assert_eq!((histogram.least, histogram.most, histogram.sum_of_squares), (-2.0, 1.0, 6.0));
        assert_eq!(histogram.limits.len(), histogram.buckets.len());
        assert_eq!(histogram.buckets.iter().sum::<f64>(), 4.0);
        assert_eq!(histogram.buckets[0], 0.0);
        assert!(Histogram::of(&[]).is_none() && Histogram::of(&[1e21]).is_none());
    }
}

//! PNG and JPEG as `u8` [H, W, C], C being 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGBA).
//!
//! Palettes become RGB or RGBA. 16-bit samples become 8-bit ones by the nearest value of v * 255 / 65535.
//! Colors are taken as they are stored: no gamma, profile or orientation is applied.

use super::array::Array;
use super::input::{DEFLATE_RATIO, Input};
use super::write::{Sink, unwritable};
use crate::base::code::{FILE_FORMAT, FILE_KIND};
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use jpeg_encoder::{Encoder, EncodingError, ImageBuffer, JpegColorType, SamplingFactor, rgb_to_ycbcr};
use png::{BitDepth, ColorType, Transformations};
use std::io::{self, Cursor};
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Bound: pixel bytes for a byte of JPEG. A block of 64 samples takes at least one bit, and with the coarsest
/// subsampling one stored sample becomes 2.7 of the result.
const JPEG_RATIO: u64 = 2048;
/// Bound: what a header may claim in any case.
const SLACK: u64 = 1 << 16;
/// Of 100: hardly visible loss at a third of the size of 100.
const JPEG_QUALITY: u8 = 90;

pub fn read_png(input: &mut Input) -> Result<Array> {
    let bytes = input.take(input.left(), "the image")?;
    check_palette(&bytes)?;
    let most = (bytes.len() as u64).saturating_mul(DEFLATE_RATIO).saturating_add(SLACK);
    let limits = png::Limits { bytes: usize::try_from(most).unwrap_or(usize::MAX) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(&bytes), limits);
    // Palettes and samples of fewer bits become bytes.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(damaged_png)?;
    let (width, height) = reader.info().size();
    let (color, depth) = reader.output_color_type();
    let wide = match depth {
        BitDepth::Eight => false,
        BitDepth::Sixteen => true,
        other => fail!(FILE_FORMAT, "samples of {} bits are not supported", other as u8),
    };
    let size = [height as usize, width as usize, color.samples()];
    let mut pixels = room(size, 1 + wide as u64, most)?;
    reader.next_frame(&mut pixels).map_err(damaged_png)?;
    if wide {
        let narrow = |pair: &[u8]| ((u16::from_be_bytes([pair[0], pair[1]]) as u32 * 255 + 32767) / 65535) as u8;
        pixels = pixels.chunks_exact(2).map(narrow).collect();
    }
    Array::new(DType::U8, size.to_vec(), pixels)
}

pub fn read_jpeg(input: &mut Input) -> Result<Array> {
    let bytes = input.take(input.left(), "the image")?;
    check_complete(&bytes)?;
    let most = (bytes.len() as u64).saturating_mul(JPEG_RATIO).saturating_add(SLACK);
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes), options);
    decoder.decode_headers().map_err(damaged_jpeg)?;
    let (Some((width, height)), Some(stored)) = (decoder.dimensions(), decoder.input_colorspace()) else {
        fail!(FILE_FORMAT, "the image is damaged: it has no header");
    };
    // What is stored as neither gray nor RGB becomes RGB.
    let (color, channels) = match stored {
        ColorSpace::Luma => (stored, 1),
        ColorSpace::LumaA => (stored, 2),
        ColorSpace::RGBA => (stored, 4),
        _ => (ColorSpace::RGB, 3),
    };
    let size = [height, width, channels];
    let mut pixels = room(size, 1, most)?;
    // A new decoder: options are not applied after the headers were read.
    JpegDecoder::new_with_options(ZCursor::new(&bytes), options.jpeg_set_out_colorspace(color))
        .decode_into(&mut pixels)
        .map_err(damaged_jpeg)?;
    Array::new(DType::U8, size.to_vec(), pixels)
}

/// Memory for an image [H, W, C], if the file is large enough to hold it.
fn room([height, width, channels]: [usize; 3], sample: u64, most: u64) -> Result<Vec<u8>> {
    let total = (width as u64).saturating_mul(height as u64).saturating_mul(channels as u64 * sample);
    if total > most {
        fail!(FILE_FORMAT, "the image claims {width} x {height} pixels, which the file is too small to hold");
    }
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(total as usize).is_err() {
        fail!(FILE, "an image of {width} x {height} pixels needs {total} bytes of memory, which cannot be had");
    }
    bytes.resize(total as usize, 0);
    Ok(bytes)
}

/// The image in 1 (gray) or 3 channels; transparency is dropped. Gray is ITU-R 601-2 luma, as PIL computes it.
pub fn with_channels(image: &Array, channels: usize) -> Result<Array> {
    let [height, width, own] = size(image)?;
    if own == channels {
        return Ok(image.clone());
    }
    let bytes: Vec<u8> = match (own, channels) {
        (1 | 2, 3) => image.bytes().chunks_exact(own).flat_map(|pixel| [pixel[0]; 3]).collect(),
        (4, 3) => image.bytes().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
        (2, 1) => image.bytes().chunks_exact(2).map(|pixel| pixel[0]).collect(),
        (3 | 4, 1) => {
            let luma = |p: &[u8]| (p[0] as u32 * 19595 + p[1] as u32 * 38470 + p[2] as u32 * 7471 + 0x8000) >> 16;
            image.bytes().chunks_exact(own).map(|pixel| luma(pixel) as u8).collect()
        }
        _ => fail!(FILE_FORMAT, "an image of {own} channels cannot be had in {channels}"),
    };
    Array::new(DType::U8, vec![height, width, channels], bytes)
}

/// The image in another size, each pixel a triangle-weighted mean of what it covers.
pub fn resized(image: &Array, height: usize, width: usize) -> Result<Array> {
    let [old_height, old_width, channels] = size(image)?;
    if (old_height, old_width) == (height, width) {
        return Ok(image.clone());
    }
    let between = height.saturating_mul(old_width).saturating_mul(channels);
    if height.max(width) > MAX_SIDE || between > MAX_BETWEEN || old_height == 0 || old_width == 0 {
        fail!(FILE_FORMAT, "an image of {old_height} by {old_width} cannot be brought to {height} by {width}");
    }
    let mut tall = Vec::with_capacity(height * old_width * channels);
    for (first, shares) in shares(old_height, height) {
        let rows = image.bytes()[first * old_width * channels..].chunks_exact(old_width * channels);
        let start = tall.len();
        tall.resize(start + old_width * channels, 0f32);
        for (share, row) in shares.iter().zip(rows) {
            tall[start..].iter_mut().zip(row).for_each(|(sum, &sample)| *sum += sample as f32 * share);
        }
    }
    let columns: Vec<(usize, Vec<f32>)> = shares(old_width, width).collect();
    let mut bytes = Vec::with_capacity(height * width * channels);
    for row in tall.chunks_exact(old_width * channels) {
        for (first, shares) in &columns {
            for channel in 0..channels {
                let samples = row[first * channels + channel..].iter().step_by(channels);
                let sum: f32 = shares.iter().zip(samples).fold(0.0, |sum, (share, sample)| sum + sample * share);
                bytes.push(sum.round() as u8);
            }
        }
    }
    Array::new(DType::U8, vec![height, width, channels], bytes)
}

/// For each of `new` places along a side that had `old`: the first old one that counts, and the shares of it and of those
/// that follow, which fall off on both sides of the middle and sum up to 1.
fn shares(old: usize, new: usize) -> impl Iterator<Item = (usize, Vec<f32>)> {
    let ratio = old as f32 / new as f32;
    let reach = ratio.max(1.0);
    (0..new).map(move |place| {
        let middle = (place as f32 + 0.5) * ratio;
        let first = ((middle - reach).floor().max(0.0) as usize).min(old - 1);
        let end = ((middle + reach).ceil() as usize).clamp(first + 1, old);
        let share = |i: usize| (1.0 - ((i as f32 - (middle - 0.5)) / reach).abs()).max(0.0);
        let shares: Vec<f32> = (first..end).map(share).collect();
        let sum: f32 = shares.iter().sum();
        (first, shares.into_iter().map(|share| share / sum).collect())
    })
}

/// Bound: the side of a resized image.
const MAX_SIDE: usize = 1 << 15;
/// Bound: samples of an image that has its new height and its old width; 1 GiB of them.
const MAX_BETWEEN: usize = 1 << 28;

fn size(image: &Array) -> Result<[usize; 3]> {
    match image.shape() {
        [h, w, c] if image.dtype() == DType::U8 => Ok([*h, *w, *c]),
        other => fail!(FILE_FORMAT, "an image is u8 [H, W, C], not {} {other:?}", image.dtype()),
    }
}

/// A palette is whole RGB triples, 256 at most. The decoder (png 0.18.1) panics on a part of one.
fn check_palette(bytes: &[u8]) -> Result<()> {
    // Chunks follow an 8-byte signature: length, name, content, checksum.
    let mut at = 8;
    while let Some(&[a, b, c, d, ref name @ ..]) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if name == b"PLTE" && (!length.is_multiple_of(3) || length > 768) {
            fail!(FILE_FORMAT, "the image is damaged: its palette at byte {at} has {length} bytes");
        }
        at = at.saturating_add(length).saturating_add(12);
    }
    Ok(())
}

/// The decoder fills what is missing with gray; a file that was cut off has no end marker after its last scan.
fn check_complete(bytes: &[u8]) -> Result<()> {
    if !bytes.starts_with(&[0xFF, 0xD8]) {
        fail!(FILE_FORMAT, "this is not a JPEG image: its marker is missing at byte 0");
    }
    let mut at = 2;
    // Segments up to the first scan; a thumbnail inside one has end markers of its own.
    while let Some([0xFF, marker, high, low]) = bytes.get(at..at + 4) {
        if *marker == 0xDA {
            let ends = bytes[at..].windows(2).any(|pair| pair == [0xFF, 0xD9]);
            if !ends {
                fail!(FILE_FORMAT, "the image is cut off: the file ends at byte {} without an end marker", bytes.len());
            }
            return Ok(());
        }
        // A marker may be padded by any number of FF.
        at += if *marker == 0xFF { 1 } else { 2 + u16::from_be_bytes([*high, *low]) as usize };
    }
    fail!(FILE_FORMAT, "the image has no picture data: its segments end at byte {}", at.min(bytes.len()))
}

fn damaged_png(error: png::DecodingError) -> Box<Diag> {
    match error {
        png::DecodingError::LimitsExceeded => too_large(),
        png::DecodingError::Format(error) => {
            Diag::error(FILE_FORMAT, format!("the image is damaged: Format error decoding Png: {error}"))
        }
        other => Diag::error(FILE_FORMAT, format!("the image is damaged: {other}")),
    }
}

fn damaged_jpeg(error: DecodeErrors) -> Box<Diag> {
    match error {
        DecodeErrors::LargeDimensions(_) => too_large(),
        DecodeErrors::Unsupported(scheme) => Diag::error(
            FILE_FORMAT,
            format!("unsupported image: The decoder for Jpeg does not support the format features {scheme:?}"),
        ),
        other => Diag::error(FILE_FORMAT, format!("the image is damaged: Format error decoding Jpeg: {other}")),
    }
}

fn too_large() -> Box<Diag> {
    Diag::error(FILE_FORMAT, "the image claims more pixels than the file is large enough to hold")
}

pub fn write_png(array: &Array, sink: &mut dyn Sink) -> Result<()> {
    let (width, height, channels) = geometry(array)?;
    let mut encoder = png::Encoder::new(sink, width, height);
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(array.bytes())?;
        writer.finish()
    });
    written.map_err(|error| unwritable(&error.into()))
}

/// Quality 90; gray or RGB, since JPEG has no alpha.
pub fn write_jpeg(array: &Array, sink: &mut dyn Sink) -> Result<()> {
    let (width, height, channels) = geometry(array)?;
    if channels % 2 == 0 {
        let message = format!("JPEG has no alpha channel, and the image has the shape {:?}", array.shape());
        return Err(Diag::error(FILE_KIND, message).help("save to `.png`"));
    }
    let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
        fail!(
            FILE_KIND,
            "a JPEG image has at most 65535 pixels a side, and this one has the shape {:?}",
            array.shape()
        );
    };
    let mut encoder = Encoder::new(sink, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    let pixels = Pixels { bytes: array.bytes(), width, height, gray: channels == 1 };
    encoder.encode_image(pixels).map_err(|error| match error {
        EncodingError::IoError(error) => unwritable(&error),
        other => unwritable(&io::Error::other(other)),
    })
}

/// Gray or RGB bytes. `Encoder::encode` brings the encoder's code once for each of nine orders of colors.
struct Pixels<'a> {
    bytes: &'a [u8],
    width: u16,
    height: u16,
    gray: bool,
}

impl ImageBuffer for Pixels<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        if self.gray { JpegColorType::Luma } else { JpegColorType::Ycbcr }
    }
    fn width(&self) -> u16 {
        self.width
    }
    fn height(&self) -> u16 {
        self.height
    }
    fn fill_buffers(&self, y: u16, [first, second, third, _]: &mut [Vec<u8>; 4]) {
        let size = usize::from(self.width) * if self.gray { 1 } else { 3 };
        let row = self.bytes.chunks_exact(size).nth(usize::from(y)).unwrap_or_default();
        if self.gray {
            first.extend_from_slice(row);
            return;
        }
        for pixel in row.chunks_exact(3) {
            let (y, cb, cr) = rgb_to_ycbcr(pixel[0], pixel[1], pixel[2]);
            first.push(y);
            second.push(cb);
            third.push(cr);
        }
    }
}

/// Width, height and channels (1 to 4) of [H, W] or [H, W, C].
fn geometry(array: &Array) -> Result<(u32, u32, usize)> {
    if array.dtype() != DType::U8 {
        let message = format!("an image has the dtype u8, and this tensor is {}", array.dtype());
        return Err(Diag::error(FILE_KIND, message).help("from 0 to 1: `(x * 255).round().clamp(0, 255).to(\"u8\")`"));
    }
    let (height, width, channels) = match *array.shape() {
        [height, width] => (height, width, 1),
        [height, width, channels] => (height, width, channels),
        ref shape => fail!(FILE_KIND, "an image has the shape [H, W, C], and this tensor has {shape:?}"),
    };
    if !(1..=4).contains(&channels) {
        let message = format!("an image [H, W, C] has 1 to 4 channels, and this tensor has {:?}", array.shape());
        return Err(Diag::error(FILE_KIND, message).help("[C, H, W] becomes [H, W, C] by `.permute(1, 2, 0)`"));
    }
    match (u32::try_from(width), u32::try_from(height)) {
        (Ok(width @ 1..), Ok(height @ 1..)) => Ok((width, height, channels)),
        _ => fail!(FILE_KIND, "an image of the shape {:?} cannot be stored", array.shape()),
    }
}

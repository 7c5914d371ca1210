//! PNG and JPEG as `u8` [H, W, C], C being 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA).
//!
//! Palettes become RGB or RGBA. 16-bit samples become 8-bit ones by the nearest value of v * 255 / 65535.
//! Colours are taken as they are stored: no gamma, profile or orientation is applied.

use super::array::Array;
use super::input::{DEFLATE_RATIO, Input};
use super::write::{Sink, unwritable};
use crate::base::code::{FILE_FORMAT, FILE_KIND};
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use ::image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use ::image::codecs::png::{PngDecoder, PngEncoder};
use ::image::error::ImageError;
use ::image::{ColorType, ExtendedColorType, ImageDecoder, ImageEncoder, ImageResult, Limits};
use std::io::Cursor;

/// Bound: pixels' bytes for a byte of JPEG. A block of 64 samples takes at least one bit, and with the
/// coarsest subsampling one stored sample stands for 2.7 of the result.
const JPEG_RATIO: u64 = 2048;
/// Bound: what a header may claim in any case.
const SLACK: u64 = 1 << 16;
/// Of 100: hardly visible loss at a third of the size of 100.
const JPEG_QUALITY: u8 = 90;

pub fn read_png(input: &mut Input) -> Result<Array> {
    let bytes = input.take(input.left(), "the image")?;
    check_palette(&bytes)?;
    let most = (bytes.len() as u64).saturating_mul(DEFLATE_RATIO).saturating_add(SLACK);
    let mut limits = Limits::default();
    limits.max_alloc = Some(most);
    decode(PngDecoder::with_limits(Cursor::new(&bytes), limits), most)
}

pub fn read_jpeg(input: &mut Input) -> Result<Array> {
    let bytes = input.take(input.left(), "the image")?;
    check_complete(&bytes)?;
    let most = (bytes.len() as u64).saturating_mul(JPEG_RATIO).saturating_add(SLACK);
    decode(JpegDecoder::new(Cursor::new(&bytes)), most)
}

fn decode<D: ImageDecoder>(decoder: ImageResult<D>, most: u64) -> Result<Array> {
    let decoder = decoder.map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    let (color, total) = (decoder.color_type(), decoder.total_bytes());
    if total > most {
        fail!(FILE_FORMAT, "the image claims {width} x {height} pixels, which the file is too small to hold");
    }
    let wide = match color {
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 | ColorType::Rgba8 => false,
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => true,
        other => fail!(FILE_FORMAT, "the colour type {other:?} is not supported"),
    };
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(total as usize).is_err() {
        fail!(FILE, "an image of {width} x {height} pixels needs {total} bytes of memory, which cannot be had");
    }
    bytes.resize(total as usize, 0);
    decoder.read_image(&mut bytes).map_err(damaged)?;
    if wide {
        let narrow = |pair: &[u8]| ((u16::from_ne_bytes([pair[0], pair[1]]) as u32 * 255 + 32767) / 65535) as u8;
        bytes = bytes.chunks_exact(2).map(narrow).collect();
    }
    let shape = vec![height as usize, width as usize, color.channel_count() as usize];
    Array::new(DType::U8, shape, bytes)
}

/// The image in 1 (grey) or 3 channels; transparency is dropped. Grey is ITU-R 601-2 luma, as PIL computes it.
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
    if height.max(width) > MAX_SIDE || old_height == 0 || old_width == 0 {
        fail!(FILE_FORMAT, "an image of {old_height} by {old_width} cannot be brought to {height} by {width}");
    }
    let (w, h) = (width as u32, height as u32);
    let filter = ::image::imageops::FilterType::Triangle;
    let (from_w, from_h, bytes) = (old_width as u32, old_height as u32, image.bytes().to_vec());
    let made = match channels {
        1 => ::image::GrayImage::from_raw(from_w, from_h, bytes)
            .map(|image| ::image::imageops::resize(&image, w, h, filter).into_raw()),
        _ => ::image::RgbImage::from_raw(from_w, from_h, bytes)
            .map(|image| ::image::imageops::resize(&image, w, h, filter).into_raw()),
    };
    match made {
        Some(bytes) => Array::new(DType::U8, vec![height, width, channels], bytes),
        None => fail!(FILE_FORMAT, "an image of {channels} channels cannot be resized"),
    }
}

/// Bound: the side of a resized image.
const MAX_SIDE: usize = 1 << 15;

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

/// The decoder fills what is missing with grey; a file that was cut off has no end marker after its last scan.
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

fn damaged(error: ImageError) -> Box<Diag> {
    match error {
        ImageError::Limits(_) => {
            Diag::error(FILE_FORMAT, "the image claims more pixels than the file is large enough to hold")
        }
        ImageError::Unsupported(error) => Diag::error(FILE_FORMAT, format!("unsupported image: {error}")),
        other => Diag::error(FILE_FORMAT, format!("the image is damaged: {other}")),
    }
}

pub fn write_png(array: &Array, sink: &mut dyn Sink) -> Result<()> {
    let (width, height, color) = geometry(array)?;
    PngEncoder::new(sink).write_image(array.bytes(), width, height, color).map_err(failed)
}

/// Quality 90; grey or RGB, since JPEG has no alpha.
pub fn write_jpeg(array: &Array, sink: &mut dyn Sink) -> Result<()> {
    let (width, height, color) = geometry(array)?;
    if matches!(color, ExtendedColorType::La8 | ExtendedColorType::Rgba8) {
        let message = format!("JPEG has no alpha channel, and the image has the shape {:?}", array.shape());
        return Err(Diag::error(FILE_KIND, message).help("save to `.png`"));
    }
    if width.max(height) > u16::MAX as u32 {
        fail!(
            FILE_KIND,
            "a JPEG image has at most 65535 pixels a side, and this one has the shape {:?}",
            array.shape()
        );
    }
    JpegEncoder::new_with_quality(sink, JPEG_QUALITY).write_image(array.bytes(), width, height, color).map_err(failed)
}

/// Width, height and colours of [H, W] or [H, W, C].
fn geometry(array: &Array) -> Result<(u32, u32, ExtendedColorType)> {
    if array.dtype() != DType::U8 {
        let message = format!("an image has the dtype u8, and this tensor is {}", array.dtype());
        return Err(Diag::error(FILE_KIND, message).help("from 0 to 1: `(x * 255).round().clamp(0, 255).to(\"u8\")`"));
    }
    let (height, width, channels) = match *array.shape() {
        [height, width] => (height, width, 1),
        [height, width, channels] => (height, width, channels),
        ref shape => fail!(FILE_KIND, "an image has the shape [H, W, C], and this tensor has {shape:?}"),
    };
    let color = match channels {
        1 => ExtendedColorType::L8,
        2 => ExtendedColorType::La8,
        3 => ExtendedColorType::Rgb8,
        4 => ExtendedColorType::Rgba8,
        _ => {
            let message = format!("an image [H, W, C] has 1 to 4 channels, and this tensor has {:?}", array.shape());
            return Err(Diag::error(FILE_KIND, message).help("[C, H, W] becomes [H, W, C] by `.permute(1, 2, 0)`"));
        }
    };
    match (u32::try_from(width), u32::try_from(height)) {
        (Ok(width @ 1..), Ok(height @ 1..)) => Ok((width, height, color)),
        _ => fail!(FILE_KIND, "an image of the shape {:?} cannot be stored", array.shape()),
    }
}

fn failed(error: ImageError) -> Box<Diag> {
    match error {
        ImageError::IoError(error) => unwritable(&error),
        other => Diag::error(FILE_KIND, format!("cannot be written as an image: {other}")),
    }
}

//! NumPy's array file: a magic number, a Python dict as header, the elements.
//!
//! Source: NumPy's "NEP 1 - A simple file format for NumPy arrays", versions 1 to 3. Read are all our
//! dtypes in both byte orders and both memory orders; `u2` becomes `i32` and `u4` becomes `i64`.

use super::array::Array;
use super::input::Input;
use super::scan::Scanner;
use super::wire::Wire;
use super::write::{Sink, unwritable};
use crate::base::code::{FILE_FORMAT, FILE_KIND};
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::numel;
use crate::base::limits::MAX_DIMS;
use crate::fail;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bound: bytes of a header; NumPy itself reads no more than 10,000 without being told to.
const MAX_HEADER: u64 = 1 << 16;

const DTYPES: &[(&str, Wire)] = &[
    ("f8", Wire::Same(DType::F64)),
    ("f4", Wire::Same(DType::F32)),
    ("f2", Wire::Same(DType::F16)),
    ("i8", Wire::Same(DType::I64)),
    ("i4", Wire::Same(DType::I32)),
    ("i2", Wire::Same(DType::I16)),
    ("i1", Wire::Same(DType::I8)),
    ("u1", Wire::Same(DType::U8)),
    ("b1", Wire::Same(DType::Bool)),
    ("c16", Wire::Same(DType::C128)),
    ("c8", Wire::Same(DType::C64)),
    ("u2", Wire::U16),
    ("u4", Wire::U32),
];

struct Header {
    wire: Wire,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads one array; the caller handles what follows it.
pub fn read(input: &mut Input) -> Result<Array> {
    let start = input.at();
    if input.take(6.min(input.left()), "the magic number")? != MAGIC {
        fail!(FILE_FORMAT, "this is not a NumPy array: `\\x93NUMPY` is missing at byte {start}");
    }
    let [major, minor] = input.array("the version")?;
    let length = match major {
        1 => u16::from_le_bytes(input.array("the length of the header")?) as u64,
        2 | 3 => u32::from_le_bytes(input.array("the length of the header")?) as u64,
        _ => fail!(FILE_FORMAT, "version {major}.{minor} of the NumPy format is not known"),
    };
    if length > MAX_HEADER {
        fail!(FILE_FORMAT, "the header claims {length} bytes, and at most {MAX_HEADER} are allowed");
    }
    let base = input.at();
    let header = parse(&input.take(length, "the header")?, base)?;
    let Some(needed) = numel(&header.shape).and_then(|n| n.checked_mul(header.wire.size_bytes())) else {
        fail!(FILE_FORMAT, "the header claims the shape {:?}, which is beyond all memory", header.shape);
    };
    let mut bytes = input.take(needed as u64, &format!("the array of shape {:?}", header.shape))?;
    let size = header.wire.size_bytes();
    if header.big_endian {
        bytes.chunks_exact_mut(header.wire.swapped_bytes()).for_each(<[u8]>::reverse);
    }
    if header.fortran {
        bytes = row_major(&bytes, &header.shape, size);
    }
    header.wire.array(header.shape, bytes)
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn parse(text: &[u8], base: u64) -> Result<Header> {
    let mut scan = Scanner::new(text, base);
    let (mut dtype, mut fortran, mut shape) = (None, None, None);
    scan.expect(b'{')?;
    while !scan.eat(b'}') {
        let key = quoted(&mut scan)?;
        scan.expect(b':')?;
        match key.as_str() {
            "descr" => dtype = Some(descr(&mut scan)?),
            "fortran_order" if scan.word("True") => fortran = Some(true),
            "fortran_order" if scan.word("False") => fortran = Some(false),
            "shape" => shape = Some(scan.list(b'(', b')', Scanner::number)?),
            _ => return Err(scan.wrong(&format!("`{key}` is not what belongs here"))),
        }
        if !scan.eat(b',') {
            scan.expect(b'}')?;
            break;
        }
    }
    scan.end()?;
    let (Some((wire, big_endian)), Some(fortran), Some(shape)) = (dtype, fortran, shape) else {
        fail!(FILE_FORMAT, "the header at byte {base} lacks one of `descr`, `fortran_order` and `shape`");
    };
    if shape.len() > MAX_DIMS {
        fail!(FILE_FORMAT, "the array has {} dims, and at most {MAX_DIMS} are allowed", shape.len());
    }
    Ok(Header { wire, big_endian, fortran, shape: shape.into_iter().map(|size| size as usize).collect() })
}

fn quoted(scan: &mut Scanner) -> Result<String> {
    let quote = if scan.peek() == Some(b'"') { b'"' } else { b'\'' };
    scan.string(quote)
}

/// The element type and whether its bytes are swapped.
fn descr(scan: &mut Scanner) -> Result<(Wire, bool)> {
    if scan.peek() == Some(b'[') {
        fail!(FILE_FORMAT, "the array is structured (a record of several fields), which is not supported");
    }
    let text = quoted(scan)?;
    let (order, name) = match text.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => (order, &text[1..]),
        _ => ('=', &text[..]),
    };
    if let Some((_, wire)) = DTYPES.iter().find(|(known, _)| *known == name) {
        let native_is_big = cfg!(target_endian = "big");
        return Ok((*wire, order == '>' || (order == '=' && native_is_big)));
    }
    let why = match name.chars().next() {
        Some('u') => "no dtype here holds all its values; convert it with `.astype(\"int64\")` in NumPy",
        Some('c') => "of complex numbers there are complex64 and complex128",
        Some('O') => "Python objects cannot be loaded",
        Some('S' | 'U' | 'a') => "strings are not supported",
        Some('M' | 'm') => "dates are not supported; convert them with `.astype(\"int64\")` in NumPy",
        Some('V') => "NumPy has no name for this type; `.safetensors` supports bf16",
        _ => "it is not supported",
    };
    Err(Diag::error(FILE_FORMAT, format!("the array has the dtype `{text}`: {why}")))
}

/// The same elements with the last dim running fastest. `bytes` has the first dim running fastest.
fn row_major(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    if bytes.is_empty() {
        // Sizes beside a zero may be anything.
        return Vec::new();
    }
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for n in shape {
        strides.push(stride);
        stride *= n;
    }
    let (Some(&inner), Some(&step)) = (shape.last(), strides.last()) else { return bytes.to_vec() };
    let outer = shape.len() - 1;
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; outer];
    let mut start = 0;
    while out.len() < bytes.len() {
        for k in 0..inner {
            out.extend_from_slice(&bytes[start + k * step..][..size]);
        }
        for dim in (0..outer).rev() {
            index[dim] += 1;
            start += strides[dim];
            if index[dim] < shape[dim] {
                break;
            }
            start -= strides[dim] * shape[dim];
            index[dim] = 0;
        }
    }
    out
}

/// Version 1, row-major, little-endian. `bf16` has no name in NumPy and is refused.
pub fn write(array: &Array, sink: &mut dyn Sink) -> Result<()> {
    let header = header(array)?;
    sink.write_all(&header).and_then(|()| sink.write_all(array.bytes())).map_err(|error| unwritable(&error))
}

/// Everything before the elements; a multiple of 64 bytes, so that they are aligned when mapped.
pub fn header(array: &Array) -> Result<Vec<u8>> {
    let Some((name, _)) = DTYPES.iter().find(|(_, wire)| *wire == Wire::Same(array.dtype())) else {
        let message = format!("NumPy has no dtype for {}", array.dtype());
        return Err(Diag::error(FILE_KIND, message).help("save to `.safetensors`, or convert with `.float()` first"));
    };
    let order = if array.dtype().size_bytes() == 1 { '|' } else { '<' };
    let sizes: Vec<String> = array.shape().iter().map(usize::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    let shape = sizes.join(", ");
    let dict = format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({shape}{comma}), }}");
    let total = (10 + dict.len() + 1).next_multiple_of(64);
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[1, 0]);
    // At most 16 sizes of 20 digits: far below 2^16.
    out.extend_from_slice(&((total - 10) as u16).to_le_bytes());
    out.extend_from_slice(dict.as_bytes());
    out.resize(total - 1, b' ');
    out.push(b'\n');
    Ok(out)
}

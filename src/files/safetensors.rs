//! The Hugging Face tensor format: 8 bytes of length, a JSON header, the tensors' bytes.
//!
//! Source: <https://github.com/huggingface/safetensors>, "Format". The header is read by a scanner of our
//! own: it keeps the order of names, sees names that come twice, and tells the byte at which something is wrong.

use super::array::{Array, Named};
use super::input::Input;
use super::scan::{Scanner, quoted};
use super::wire::Wire;
use super::write::{Sink, unwritable};
use crate::base::code::FILE_FORMAT;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::numel;
use crate::base::limits::MAX_DIMS;
use crate::base::order;
use crate::fail;
use std::collections::HashSet;

/// Bound: bytes of a header, as in the reference implementation.
const MAX_HEADER: u64 = 100_000_000;

const METADATA: &str = "__metadata__";

const DTYPES: &[(&str, Wire)] = &[
    ("C64", Wire::Same(DType::C64)),
    ("F64", Wire::Same(DType::F64)),
    ("F32", Wire::Same(DType::F32)),
    ("F16", Wire::Same(DType::F16)),
    ("BF16", Wire::Same(DType::BF16)),
    ("I64", Wire::Same(DType::I64)),
    ("I32", Wire::Same(DType::I32)),
    ("I16", Wire::Same(DType::I16)),
    ("I8", Wire::Same(DType::I8)),
    ("U8", Wire::Same(DType::U8)),
    ("BOOL", Wire::Same(DType::Bool)),
    ("U16", Wire::U16),
    ("U32", Wire::U32),
];

type Pairs = Vec<(String, String)>;

/// One line of the header.
struct Entry {
    name: String,
    wire: Wire,
    shape: Vec<usize>,
    begin: u64,
    end: u64,
}

pub fn read(input: &mut Input) -> Result<Named> {
    let length = u64::from_le_bytes(input.array("the length of the header")?);
    if length > MAX_HEADER {
        fail!(FILE_FORMAT, "the header claims {length} bytes, and at most {MAX_HEADER} are allowed");
    }
    let header = input.take(length, "the header")?;
    let (entries, metadata) = parse(&header)?;
    drop(header);
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order::by_key(&mut order, |&i| (entries[i].begin, entries[i].end));
    check_offsets(&entries, &order, input.left())?;
    let mut arrays: Vec<Option<Array>> = vec![None; entries.len()];
    for i in order {
        let entry = &entries[i];
        let bytes = input.take(entry.end - entry.begin, &format!("tensor `{}`", entry.name))?;
        arrays[i] = Some(entry.wire.array(entry.shape.clone(), bytes)?);
    }
    let named = entries.into_iter().zip(arrays).filter_map(|(entry, array)| Some((entry.name, array?)));
    Ok(Named { arrays: named.collect(), metadata })
}

/// The tensors' bytes follow each other without holes or overlaps and fill the file.
fn check_offsets(entries: &[Entry], order: &[usize], left: u64) -> Result<()> {
    let mut expected = 0;
    for &i in order {
        let Entry { name, begin, end, .. } = &entries[i];
        if *begin != expected {
            let what = if *begin < expected { "overlaps the tensor before it" } else { "leaves a hole before it" };
            fail!(FILE_FORMAT, "tensor `{name}` {what}: it starts at data byte {begin}, not {expected}");
        }
        expected = *end;
    }
    if expected != left {
        fail!(FILE_FORMAT, "the header describes {expected} bytes of data, and the file has {left}");
    }
    Ok(())
}

/// The tensors and the metadata, both in the order of the header.
fn parse(header: &[u8]) -> Result<(Vec<Entry>, Pairs)> {
    let mut scan = Scanner::new(header, 8);
    let (mut entries, mut metadata) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    scan.list(b'{', b'}', |scan| {
        let name = scan.string(b'"')?;
        scan.expect(b':')?;
        if !names.insert(name.clone()) {
            return Err(scan.wrong(&format!("`{name}` occurs twice")));
        }
        if name == METADATA {
            metadata = scan.list(b'{', b'}', pair)?;
        } else {
            entries.push(entry(scan, name)?);
        }
        Ok(())
    })?;
    scan.end()?;
    Ok((entries, metadata))
}

fn pair(scan: &mut Scanner) -> Result<(String, String)> {
    let key = scan.string(b'"')?;
    scan.expect(b':')?;
    Ok((key, scan.string(b'"')?))
}

/// `{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}`.
fn entry(scan: &mut Scanner, name: String) -> Result<Entry> {
    let (mut dtype, mut shape, mut offsets) = (None, None, None);
    let keys = scan.list(b'{', b'}', |scan| {
        let key = scan.string(b'"')?;
        scan.expect(b':')?;
        match key.as_str() {
            "dtype" => dtype = Some(scan.string(b'"')?),
            "shape" => shape = Some(scan.list(b'[', b']', Scanner::number)?),
            "data_offsets" => offsets = Some(scan.list(b'[', b']', Scanner::number)?),
            _ => return Err(scan.wrong(&format!("tensor `{name}` has an unknown key `{key}`"))),
        }
        Ok(())
    })?;
    let missing = |key: &str| Diag::error(FILE_FORMAT, format!("tensor `{name}` has no `{key}`"));
    let dtype = dtype.ok_or_else(|| missing("dtype"))?;
    let shape = shape.ok_or_else(|| missing("shape"))?;
    let offsets = offsets.ok_or_else(|| missing("data_offsets"))?;
    if keys.len() > 3 {
        fail!(FILE_FORMAT, "tensor `{name}` has a key twice");
    }
    let Some((_, wire)) = DTYPES.iter().find(|(known, _)| *known == dtype) else {
        let known: Vec<&str> = DTYPES.iter().map(|(known, _)| *known).collect();
        let message = format!("tensor `{name}` has the unsupported dtype `{dtype}`");
        return Err(Diag::error(FILE_FORMAT, message).help(format!("supported are {}", known.join(", "))));
    };
    if shape.len() > MAX_DIMS {
        fail!(FILE_FORMAT, "tensor `{name}` has {} dims, and at most {MAX_DIMS} are allowed", shape.len());
    }
    let shape: Vec<usize> = shape.into_iter().map(|size| size as usize).collect();
    let [begin, end] = offsets[..] else {
        fail!(FILE_FORMAT, "tensor `{name}` has {} data offsets instead of 2", offsets.len());
    };
    let needed = numel(&shape).and_then(|n| n.checked_mul(wire.size_bytes()));
    if begin > end || needed.map(|n| n as u64) != Some(end - begin) {
        fail!(FILE_FORMAT, "tensor `{name}` is {dtype} {shape:?}, which does not fit its data bytes {begin} to {end}");
    }
    Ok(Entry { name, wire: *wire, shape, begin, end })
}

/// Whether the names are such as a file can have.
pub fn check(named: &Named) -> Result<()> {
    let mut names = HashSet::new();
    for (name, array) in &named.arrays {
        if name == METADATA {
            fail!(FILE_KIND, "a tensor in a `.safetensors` file cannot be named `{METADATA}`");
        }
        if !names.insert(name) {
            fail!(FILE_KIND, "two tensors have the name `{name}`");
        }
        if array.dtype() == DType::C128 {
            fail!(FILE_KIND, "the format has no name for c128, the dtype of `{name}`; `.npy` and `.npz` have");
        }
    }
    Ok(())
}

/// The header keeps the given order; the data is ordered by falling element size, so that every tensor
/// is aligned in the file. Precondition: `check` found nothing.
pub fn write(named: &Named, sink: &mut dyn Sink) -> Result<()> {
    let mut order: Vec<usize> = (0..named.arrays.len()).collect();
    order::by_key(&mut order, |&i| std::cmp::Reverse(named.arrays[i].1.dtype().size_bytes()));
    let mut begins = vec![0; order.len()];
    let mut end = 0;
    for &i in &order {
        begins[i] = end;
        end += named.arrays[i].1.bytes().len();
    }
    let header = header(named, &begins);
    let mut put = |bytes: &[u8]| sink.write_all(bytes).map_err(|error| unwritable(&error));
    put(&(header.len() as u64).to_le_bytes())?;
    put(header.as_bytes())?;
    order.iter().try_for_each(|&i| put(named.arrays[i].1.bytes()))
}

fn header(named: &Named, begins: &[usize]) -> String {
    let mut parts = Vec::new();
    if !named.metadata.is_empty() {
        let pairs = named.metadata.iter().map(|(key, text)| format!("{}:{}", quoted(key), quoted(text)));
        parts.push(format!("\"{METADATA}\":{{{}}}", pairs.collect::<Vec<_>>().join(",")));
    }
    for ((name, array), begin) in named.arrays.iter().zip(begins) {
        let dtype = DTYPES.iter().find(|(_, wire)| *wire == Wire::Same(array.dtype())).map_or("", |(dtype, _)| dtype);
        let shape: Vec<String> = array.shape().iter().map(usize::to_string).collect();
        let (name, shape, end) = (quoted(name), shape.join(","), begin + array.bytes().len());
        parts.push(format!("{name}:{{\"dtype\":\"{dtype}\",\"shape\":[{shape}],\"data_offsets\":[{begin},{end}]}}"));
    }
    let mut text = format!("{{{}}}", parts.join(","));
    // The data starts at a multiple of 8.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    text
}

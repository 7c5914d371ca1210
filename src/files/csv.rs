//! Tables of numbers, separated by commas.
//!
//! A table is one array [rows, columns]: `i64` when every cell is an integer, `f32` otherwise (what
//! PyTorch's users compute in), or `f64` where the numbers become that. The first line is a header when none of its cells is a number; of columns, which have its names,
//! when not all of them are. `nan` and
//! `inf` are numbers; an empty cell is not. `read_columns` gives each column its own dtype instead.

use super::array::{Array, Named, Number, Value};
use super::input::{Source, unreadable};
use super::write::{Sink, unwritable};
use crate::base::code::{FILE_FORMAT, FILE_KIND};
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::fail;
use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};
use std::collections::HashSet;
use std::io::{Read, SeekFrom};

/// One array [rows, columns]; its floats are read as `f64` if `wide`.
pub fn read(source: &mut dyn Source, wide: bool) -> Result<Value> {
    let mut cells = Cells::new(wide);
    let table = scan(source, Header::Words, |_, cell| cells.push(cell))?;
    cells.array(&[table.rows, table.columns]).map(Value::One)
}

/// An array `[rows]` for each column.
pub fn read_columns(source: &mut dyn Source, wide: bool) -> Result<Value> {
    let mut columns: Vec<Cells> = Vec::new();
    let table = scan(source, Header::Names, |column, cell| {
        if column == columns.len() {
            columns.push(Cells::new(wide));
        }
        columns[column].push(cell)
    })?;
    columns.resize_with(table.columns, || Cells::new(wide));
    let mut named = Named::default();
    let mut names = HashSet::new();
    for (i, cells) in columns.into_iter().enumerate() {
        let name = table.header.get(i).cloned().unwrap_or_else(|| format!("column_{i}"));
        if !names.insert(name.clone()) {
            fail!(FILE_FORMAT, "line 1, column {}: a second column is named `{name}`", i + 1);
        }
        named.arrays.push((name, cells.array(&[table.rows])?));
    }
    Ok(Value::Named(named))
}

/// What makes the first line a header.
#[derive(Clone, Copy, PartialEq)]
enum Header {
    /// It has no number.
    Words,
    /// Not all of its cells are numbers: the names come with the columns, so that no line is lost.
    Names,
}

struct Table {
    rows: usize,
    columns: usize,
    /// Empty without a header.
    header: Vec<String>,
}

/// The numbers of a table or a column.
struct Cells {
    wide: bool,
    values: Values,
}

/// Integers until the first cell that is none.
enum Values {
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
}

impl Cells {
    fn new(wide: bool) -> Cells {
        Cells { wide, values: Values::Ints(Vec::new()) }
    }

    /// False when `text` is not a number.
    fn push(&mut self, text: &str) -> bool {
        if let Values::Ints(values) = &mut self.values {
            if let Ok(value) = text.parse() {
                values.push(value);
                return true;
            }
            // An integer beyond i64 is a float like any other.
            if !is_number(text) {
                return false;
            }
            self.values = match self.wide {
                true => Values::Doubles(values.iter().map(|&value| value as f64).collect()),
                false => Values::Floats(values.iter().map(|&value| value as f32).collect()),
            };
        }
        match &mut self.values {
            Values::Floats(values) => text.parse().map(|value| values.push(value)).is_ok(),
            Values::Doubles(values) => text.parse().map(|value| values.push(value)).is_ok(),
            Values::Ints(_) => false,
        }
    }

    fn array(&self, shape: &[usize]) -> Result<Array> {
        match &self.values {
            Values::Ints(values) => Array::of(values, shape),
            Values::Floats(values) => Array::of(values, shape),
            Values::Doubles(values) => Array::of(values, shape),
        }
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f32>().is_ok()
}

/// Whether a cell holds what belongs into a table, if not as it is written there: numbers between other marks, truth values.
fn is_value(text: &str) -> bool {
    let is_truth = |part: &str| part.eq_ignore_ascii_case("true") || part.eq_ignore_ascii_case("false");
    text.split([';', '\t']).all(|part| is_number(part.trim()) || is_truth(part.trim()))
}

/// Passes every cell of the body to `cell` with its column, row by row; it returns false for a cell that is not a
/// number.
fn scan(source: &mut dyn Source, first: Header, mut cell: impl FnMut(usize, &str) -> bool) -> Result<Table> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(source);
    let mut record = ByteRecord::new();
    let mut table = Table { rows: 0, columns: 0, header: Vec::new() };
    let mut last = (0, 0);
    while next(&mut reader, &mut record)? {
        last = record.position().map_or(last, |start| (start.byte(), start.line()));
        if table.columns == 0 {
            table.columns = record.len();
            let texts = || (0..record.len()).filter_map(|i| text(&record, i)).filter(|text| !text.is_empty());
            let is_header = match first {
                Header::Words => texts().next().is_some() && !texts().any(is_value),
                Header::Names => !texts().all(is_number),
            };
            if is_header {
                table.header = record.iter().map(|name| String::from_utf8_lossy(name).trim().to_string()).collect();
                continue;
            }
        }
        if record.len() != table.columns {
            let line = line_of(&mut reader, &record);
            fail!(FILE_FORMAT, "line {line} has {} cells, and the first has {}", record.len(), table.columns);
        }
        for i in 0..record.len() {
            if !text(&record, i).is_some_and(|text| cell(i, text)) {
                let line = line_of(&mut reader, &record);
                return Err(not_a_number(&record, i, line, &table.header));
            }
        }
        table.rows += 1;
    }
    if table.columns == 0 {
        fail!(FILE_FORMAT, "the table is empty");
    }
    let runs_on = table.rows > 0 || table.header.iter().any(|name| name.contains('\n'));
    if runs_on && ends_in_quotes(reader.into_inner(), last.0)? {
        fail!(FILE_FORMAT, "line {}: a quote is never closed", last.1);
    }
    Ok(table)
}

/// Whether the text from this byte to the end leaves a quote open, which the parser takes for closed.
fn ends_in_quotes(source: &mut dyn Source, from: u64) -> Result<bool> {
    source.seek(SeekFrom::Start(from)).map_err(|error| unreadable(&error))?;
    let mut quotes = 0usize;
    for byte in source.bytes() {
        quotes += (byte.map_err(|error| unreadable(&error))? == b'"') as usize;
    }
    Ok(quotes % 2 == 1)
}

fn next(reader: &mut Reader<&mut dyn Source>, record: &mut ByteRecord) -> Result<bool> {
    reader.read_byte_record(record).map_err(|error| match error.kind() {
        ErrorKind::Io(error) => unreadable(error),
        _ => Diag::error(FILE_FORMAT, format!("the table is damaged: {error}")),
    })
}

/// The 1-based line on which a record starts. The parser's own count is taken before it skips empty lines
/// and the second half of a CRLF.
fn line_of(reader: &mut Reader<&mut dyn Source>, record: &ByteRecord) -> u64 {
    let Some(start) = record.position() else { return 0 };
    let source = reader.get_mut();
    let skipped = source.seek(SeekFrom::Start(start.byte())).map_or(0, |_| {
        let breaks = source.bytes().map_while(|byte| byte.ok().filter(|byte| matches!(byte, b'\r' | b'\n')));
        breaks.filter(|byte| *byte == b'\n').count()
    });
    start.line() + skipped as u64
}

fn text(record: &ByteRecord, column: usize) -> Option<&str> {
    std::str::from_utf8(&record[column]).ok().map(str::trim)
}

fn not_a_number(record: &ByteRecord, column: usize, line: u64, header: &[String]) -> Box<Diag> {
    // Bound: of a cell only the start is shown.
    let shown: String = String::from_utf8_lossy(&record[column]).trim().chars().take(40).collect();
    let name = header.get(column).map_or(String::new(), |name| format!(" (`{name}`)"));
    let what = if shown.is_empty() { "the cell is empty".to_string() } else { format!("`{shown}` is not a number") };
    let mut diag = Diag::error(FILE_FORMAT, format!("line {line}, column {}{name}: {what}", column + 1));
    if !header.is_empty() {
        diag = diag.note("line 1 was taken as the header, since not all of its cells are numbers");
    } else if line == 1 && !shown.is_empty() {
        diag = diag.note("a first line is a header where none of its cells is a number");
    }
    if shown.contains([';', '\t']) {
        diag = diag.help("cells are separated by commas");
    } else if shown.is_empty() {
        diag = diag.help("write `nan` where a value is missing");
    } else if ["true", "false"].iter().any(|truth| shown.eq_ignore_ascii_case(truth)) {
        diag = diag.help("a table has truth values as 1 and 0");
    }
    diag
}

/// A vector is a column, a matrix a table, named vectors are columns with a header; `bool` is written as 0 and 1.
/// A float is written with as many digits as give the same float back.
pub fn write(value: &Value, sink: &mut dyn Sink) -> Result<()> {
    let arrays: Vec<&Array> = match value {
        Value::One(array) => vec![array],
        Value::Named(named) => named.arrays.iter().map(|(_, array)| array).collect(),
    };
    if arrays.iter().any(|array| array.dtype().is_complex()) {
        let message = "a table has no complex numbers";
        return Err(Diag::error(FILE_KIND, message).help("save the parts, or `view_as_real(z)`, or save to `.npy`"));
    }
    let mut writer = csv::WriterBuilder::new().from_writer(sink);
    let columns: Vec<(&Array, usize, usize)> = match value {
        Value::One(array) => match array.shape() {
            [] | [_] => vec![(array, 0, 1)],
            [_, columns] => (0..*columns).map(|i| (array, i, *columns)).collect(),
            shape => {
                let message = format!("a table has rows and columns, and this tensor has the shape {shape:?}");
                return Err(Diag::error(FILE_KIND, message).help("reshape it, or save to `.npy`"));
            }
        },
        Value::Named(named) => {
            for (name, array) in &named.arrays {
                if array.shape().len() != 1 {
                    fail!(FILE_KIND, "a column is a vector, and `{name}` has the shape {:?}", array.shape());
                }
            }
            writer.write_record(named.arrays.iter().map(|(name, _)| name)).map_err(failed)?;
            named.arrays.iter().map(|(_, array)| (array, 0, 1)).collect()
        }
    };
    let rows = columns.first().map_or(0, |(array, _, step)| array.numel() / step);
    if columns.iter().any(|(array, _, step)| array.numel() / step != rows) {
        fail!(FILE_KIND, "the columns of a table need the same length");
    }
    for row in 0..rows {
        for (array, start, step) in &columns {
            writer.write_field(cell(array, row * step + start)).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    writer.flush().map_err(|error| unwritable(&error))
}

fn cell(array: &Array, index: usize) -> String {
    match array.get(index) {
        Scalar::Bool(value) => (value as u8).to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) if value.is_nan() => "nan".to_string(),
        // The shortest digits of an f32 are not those of the f64 of the same value.
        Scalar::Float(value) if array.dtype() == f64::DTYPE => format!("{value:?}"),
        Scalar::Float(value) => format!("{:?}", value as f32),
    }
}

fn failed(error: csv::Error) -> Box<Diag> {
    match error.kind() {
        ErrorKind::Io(error) => unwritable(error),
        _ => Diag::error(FILE_KIND, format!("cannot be written as a table: {error}")),
    }
}

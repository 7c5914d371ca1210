//! Floor 1: file formats: bytes in, arrays out. Independent of tensors and devices.
//!
//! Every error is a diagnostic with `E0601` (the system refused), `E0602` (the bytes are damaged or
//! unsupported; the message tells at which byte, line or array) or `E0603` (no such format, or one that
//! cannot hold the value).
//!
//! Invariant: no allocation relies on a header alone. A plain format takes at most the bytes
//! that are in the file; a compressed one at most what its bytes can expand to (`input::DEFLATE_RATIO`).

pub mod array;
pub mod csv;
pub mod events;
pub mod hparams;
pub mod image;
pub mod input;
pub mod npy;
pub mod npz;
pub mod safetensors;
mod scan;
mod wire;
pub mod write;

pub use array::{Array, Named, Value};

use crate::base::code::{FILE_FORMAT, FILE_KIND};
use crate::base::diag::{Diag, Result};
use crate::fail;
use input::{Input, Source};
use std::borrow::Borrow;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};
use write::Sink;

/// A format that can be read and written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Safetensors,
    Npy,
    Npz,
    Csv,
    Png,
    Jpeg,
}

impl Kind {
    /// Every extension with its format, in the order in which help texts list them.
    pub const EXTENSIONS: &'static [(&'static str, Kind)] = &[
        ("safetensors", Kind::Safetensors),
        ("npy", Kind::Npy),
        ("npz", Kind::Npz),
        ("csv", Kind::Csv),
        ("png", Kind::Png),
        ("jpg", Kind::Jpeg),
        ("jpeg", Kind::Jpeg),
    ];

    /// The format that the extension of `path` names, in either case.
    pub fn of(path: &Path) -> Result<Kind> {
        let extension = path.extension().map(|text| text.to_string_lossy().to_lowercase());
        let known = extension.as_ref().and_then(|text| Self::EXTENSIONS.iter().find(|(name, _)| name == text));
        if let Some((_, kind)) = known {
            return Ok(*kind);
        }
        let names = Self::EXTENSIONS.iter().map(|(name, _)| *name).chain([TEXT]);
        let names: Vec<String> = names.map(|name| format!("`.{name}`")).collect();
        let message = match extension {
            Some(text) => format!("`{}`: no format has the extension `.{text}`", path.display()),
            None => format!("`{}`: without an extension the format is not known", path.display()),
        };
        Err(Diag::error(FILE_KIND, message).help(format!("known are {}", names.join(", "))))
    }
}

/// Reads a file by its extension.
pub fn read(path: &Path) -> Result<Value> {
    let kind = Kind::of(path)?;
    open(path, |source, len| read_from(kind, source, len))
}

/// Reads the bytes of a file of a known format.
pub fn read_bytes(kind: Kind, bytes: &[u8]) -> Result<Value> {
    read_from(kind, &mut Cursor::new(bytes), bytes.len() as u64)
}

/// Reads a `.csv` file as one array for each column, named by the header or `column_0`, `column_1`, ...
pub fn read_columns(path: &Path) -> Result<Value> {
    match Kind::of(path)? {
        Kind::Csv => open(path, |source, _| csv::read_columns(source, false)),
        _ => fail!(FILE_KIND, "`{}`: only a `.csv` file has columns", path.display()),
    }
}

/// Reads a file; of a `.csv` file one array for each column if `columns`, and floats as `f64` if `wide`.
pub fn read_as(path: &Path, columns: bool, wide: bool) -> Result<Value> {
    match Kind::of(path)? {
        Kind::Csv if columns => open(path, |source, _| csv::read_columns(source, wide)),
        Kind::Csv => open(path, |source, _| csv::read(source, wide)),
        _ if columns => read_columns(path),
        _ => read(path),
    }
}

/// The extension of plain text, which is a string and not an array.
pub const TEXT: &str = "txt";

/// Bound: bytes of a text file, as many as a string of a script may have.
const MAX_TEXT: u64 = 256 << 20;

pub fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(TEXT))
}

/// Reads a file of UTF-8 text.
pub fn read_text(path: &Path) -> Result<String> {
    let read = |source: &mut dyn Source, len: u64| -> Result<String> {
        if len > MAX_TEXT {
            fail!(FILE_FORMAT, "the text has {len} bytes, and at most {MAX_TEXT} are taken");
        }
        let bytes = Input::new(source, len).take(len, "the text")?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Diag::error(FILE_FORMAT, format!("this is not UTF-8 text: bad byte at {at}"))
        })
    };
    open(path, read)
}

/// Writes a text file, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let write = &mut |sink: &mut dyn Sink| sink.write_all(text.as_bytes()).map_err(|error| write::unwritable(&error));
    write::atomic(path, write).map_err(|diag| within(&format!("`{}`", path.display()), diag))
}

fn open<R>(path: &Path, read: impl Fn(&mut dyn Source, u64) -> Result<R>) -> Result<R> {
    let attempt = || {
        input::check_path(path)?;
        let mut how = std::fs::OpenOptions::new();
        how.read(true);
        // A pipe without a writer would block.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut how, libc::O_NONBLOCK);
        let file = how.open(path).map_err(|error| input::unreadable(&error))?;
        let about = file.metadata().map_err(|error| input::unreadable(&error))?;
        // The length of anything but a regular file does not limit what is read.
        if !about.is_file() {
            fail!(FILE, "{}", if about.is_dir() { "this is a folder" } else { "this is not a regular file" });
        }
        read(&mut BufReader::with_capacity(1 << 18, file), about.len())
    };
    attempt().map_err(|diag| within(&format!("`{}`", path.display()), diag))
}

fn read_from(kind: Kind, source: &mut dyn Source, len: u64) -> Result<Value> {
    match kind {
        Kind::Safetensors => safetensors::read(&mut Input::new(source, len)).map(Value::Named),
        Kind::Npy => {
            let mut input = Input::new(source, len);
            let array = npy::read(&mut input)?;
            input.end("the array")?;
            Ok(Value::One(array))
        }
        Kind::Npz => npz::read(source, len).map(Value::Named),
        Kind::Csv => csv::read(source, false),
        Kind::Png => image::read_png(&mut Input::new(source, len)).map(Value::One),
        Kind::Jpeg => image::read_jpeg(&mut Input::new(source, len)).map(Value::One),
    }
}

/// Writes a file by its extension, whole or not at all.
pub fn write(path: &Path, value: &Value) -> Result<()> {
    Prepared::new(path, value)?.write()
}

/// What is about to be written: the value suits the format, and the file can be begun.
pub struct Prepared<V = Value> {
    path: PathBuf,
    kind: Kind,
    value: V,
    replacement: write::Replacement,
}

impl<V: Borrow<Value>> Prepared<V> {
    pub fn new(path: &Path, value: V) -> Result<Prepared<V>> {
        let kind = Kind::of(path)?;
        let about = |diag| within(&format!("`{}`", path.display()), diag);
        check(kind, value.borrow()).map_err(about)?;
        let replacement = write::Replacement::of(path).map_err(about)?;
        Ok(Prepared { path: path.to_path_buf(), kind, value, replacement })
    }

    /// Whether only the system can refuse the rest: the format is bytes as they are, and what it cannot hold was seen.
    pub fn is_plain(&self) -> bool {
        matches!(self.kind, Kind::Safetensors | Kind::Npy | Kind::Npz)
    }

    pub fn write(self) -> Result<()> {
        let Prepared { path, kind, value, replacement } = self;
        let written = replacement.write(&mut |sink| write_to(kind, value.borrow(), sink));
        written.map_err(|diag| within(&format!("`{}`", path.display()), diag))
    }
}

/// Whether a format holds a value, as far as that is known without writing it.
fn check(kind: Kind, value: &Value) -> Result<()> {
    match (kind, value) {
        (Kind::Safetensors, Value::Named(named)) => safetensors::check(named),
        (Kind::Npz, Value::Named(named)) => npz::check(named),
        (Kind::Npy, Value::One(array)) => npy::header(array).map(drop),
        (Kind::Csv, _) | (Kind::Png | Kind::Jpeg, Value::One(_)) => Ok(()),
        (Kind::Safetensors | Kind::Npz, Value::One(_)) => {
            let message = "this format holds named tensors, and this is a single one";
            Err(Diag::error(FILE_KIND, message).help("save a map such as `#{x: x}`, or save to `.npy`"))
        }
        (Kind::Npy, Value::Named(_)) => {
            let message = "this format holds a single tensor, and this is a map of them";
            Err(Diag::error(FILE_KIND, message).help("save to `.safetensors` or `.npz`"))
        }
        (Kind::Png | Kind::Jpeg, Value::Named(_)) => {
            fail!(FILE_KIND, "an image is a single tensor, and this is a map of them")
        }
    }
}

/// The bytes that `write` would put into a file.
pub fn write_bytes(kind: Kind, value: &Value) -> Result<Vec<u8>> {
    check(kind, value)?;
    let mut out = Cursor::new(Vec::new());
    write_to(kind, value, &mut out)?;
    Ok(out.into_inner())
}

fn write_to(kind: Kind, value: &Value, sink: &mut dyn Sink) -> Result<()> {
    match (kind, value) {
        (Kind::Safetensors, Value::Named(named)) => safetensors::write(named, sink),
        (Kind::Npz, Value::Named(named)) => npz::write(named, sink),
        (Kind::Npy, Value::One(array)) => npy::write(array, sink),
        (Kind::Csv, _) => csv::write(value, sink),
        (Kind::Png, Value::One(array)) => image::write_png(array, sink),
        (Kind::Jpeg, Value::One(array)) => image::write_jpeg(array, sink),
        _ => check(kind, value),
    }
}

/// Puts the subject of the error in front of its message.
fn within(what: &str, mut diag: Box<Diag>) -> Box<Diag> {
    diag.message = format!("{what}: {}", diag.message);
    diag
}

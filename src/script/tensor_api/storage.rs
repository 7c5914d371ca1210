//! `load` and `save`: tensors, maps of tensors and texts in files, by extension. Formats are in `files/`; the host
//! program decides which folders a script may access.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::DType;
use crate::base::span::Origin;
use crate::fail;
use crate::files::{self, Array, Kind, Named, Prepared, Value};
use crate::op::emit::Emit;
use crate::script::bind::convert;
use crate::script::bind::native::{flag, given, native};
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::host::writer::Save;
use crate::script::tensor_api::checkpoint;
use crate::script::values::module::ModuleValue;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use crate::tensor::observe;
use rhai::{Dynamic, ImmutableString, Map};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    bytes(module, host);
    native(module, host, "load", |host, engine, [path, device, dtype, columns, map_location]| {
        let path = self::path(path)?;
        if let Some(diag) = host.writer.take_of(&host.rt, &path) {
            return Err(diag);
        }
        let device = given(device).or(given(map_location));
        let target = Target {
            device: device.map(|device| convert::device(host, device)).transpose()?,
            dtype: given(dtype).map(convert::dtype).transpose()?,
            ..Target::default()
        };
        load(host, engine, &path, target, flag("columns", columns)?).map_err(|diag| at_path(diag, &path))
    });
    let shared = host.clone();
    raw(module, "save", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| save(&shared, engine.origin, values[0], values[1]).map(|()| Dynamic::UNIT))
    });
}

/// Waits for the tensors, and for the file before; a format of plain bytes is written while the script goes on, unless
/// operations run at once.
fn save(host: &Host, origin: Origin, path: &Dynamic, value: &Dynamic) -> Result<()> {
    host.writer.wait(&host.rt);
    let path = self::path(path)?;
    let told = |diag| at_path(diag, &path);
    if files::is_text(&path) {
        return save_text(host, &path, value).map_err(told);
    }
    // Before it is said what is wrong with the value.
    Kind::of(&path).map_err(told)?;
    let value = to_file(host, &path, value)?;
    let prepared = permitted(host, &path, true).and_then(|()| Prepared::new(&path, value)).map_err(told)?;
    if !prepared.is_plain() || host.rt.runs_at_once() {
        return prepared.write().map_err(told);
    }
    host.writer.begin(prepared, Save { path, origin, queued: host.rt.queue_outside(), about: at_path })
}

/// `_bytes(text)` as a `u8` tensor, and `_text(tensor)` back; invalid UTF-8 becomes the replacement character.
fn bytes(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_bytes", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| {
            let Some(text) = values[0].read_lock::<ImmutableString>() else {
                fail!(ARGUMENT_TYPE, "a string is expected, not {}", type_names::of_value(values[0]));
            };
            let bytes = engine.upload(text.as_bytes(), &[text.len()], DType::U8, DeviceId::Cpu)?;
            movement::to(engine, &bytes, Target::on(engine.default_device())).map(Dynamic::from)
        })
    });
    let shared = host.clone();
    raw(module, "_text", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let Some(tensor) = values[0].read_lock::<Tensor>() else {
                fail!(ARGUMENT_TYPE, "a tensor of bytes is expected, not {}", type_names::of_value(values[0]));
            };
            if tensor.dtype().is_float() || tensor.dtype() == DType::Bool {
                fail!(DTYPE, "bytes are integers, not {}", tensor.dtype());
            }
            let bytes = observe::scalars(&shared.rt, &tensor)?.into_iter().map(|byte| match byte.to_i64() {
                byte @ 0..=255 => Ok(byte as u8),
                other => fail!(VALUE, "a byte lies between 0 and 255, and this one is {other}"),
            });
            let bytes = bytes.collect::<Result<Vec<u8>>>()?;
            Ok(String::from_utf8_lossy(&bytes).into_owned().into())
        })
    });
}

fn path(value: &Dynamic) -> Result<PathBuf> {
    match value.read_lock::<ImmutableString>() {
        Some(text) => Ok(PathBuf::from(text.as_str())),
        None => {
            let text = format!("a path is a string, not {}", type_names::of_value(value));
            Err(Diag::error(code::ARGUMENT_TYPE, text).help("the path comes first: `save(path, value)`, `load(path)`"))
        }
    }
}

/// An error of a file points at the path.
pub fn at_path(diag: Box<Diag>, path: &Path) -> Box<Diag> {
    if !diag.labels.is_empty() {
        return diag;
    }
    let relative = path.is_relative().then(|| std::env::current_dir().ok()).flatten();
    let about_place = matches!(diag.code, code::FILE) && diag.help.is_none();
    let diag = diag.label(Origin::NONE, Focus::Argument(0), "this file");
    match relative.filter(|_| about_place) {
        Some(folder) => diag.note(format!("the path is looked for from {}", folder.display())),
        None => diag,
    }
}

fn save_text(host: &Host, path: &Path, value: &Dynamic) -> Result<()> {
    let Some(text) = value.read_lock::<ImmutableString>() else {
        let text = format!("what is saved as text is a string, not {}", type_names::of_value(value));
        let diag = Diag::error(code::ARGUMENT_TYPE, text);
        return Err(diag.label(Origin::NONE, Focus::Argument(1), "cannot be saved"));
    };
    permitted(host, path, true)?;
    files::write_text(path, &text)
}

/// The content of a file; of a `.csv` file, one tensor for each column if `columns` is set.
fn load(host: &Host, engine: &mut Engine, path: &Path, target: Target, columns: bool) -> Result<Dynamic> {
    permitted(host, path, false)?;
    if files::is_text(path) {
        return files::read_text(path).map(Dynamic::from);
    }
    // What the numbers of a table become decides how they are read.
    let wide = !matches!(target.dtype.unwrap_or(host.rt.default_float()), DType::F32 | DType::F16 | DType::BF16);
    let value = files::read_as(path, columns, wide)?;
    let device = target.device.unwrap_or_else(|| engine.default_device());
    let target = Target { device: Some(device), ..target };
    let mut tensor = |array: Array| -> Result<Dynamic> {
        let host_tensor = engine.upload(array.bytes(), array.shape(), array.dtype(), DeviceId::Cpu)?;
        movement::to(engine, &host_tensor, target).map(Dynamic::from)
    };
    match value {
        Value::One(array) => tensor(array),
        Value::Named(named) => checkpoint::from_named(named, tensor),
    }
}

/// A tensor, or a map of tensors, as a file holds it; a checkpoint if the format supports it. Waits.
fn to_file(host: &Host, path: &Path, value: &Dynamic) -> Result<Value> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return array(host, &tensor).map(Value::One);
    }
    if value.is::<ModuleValue>() {
        return Err(checkpoint::has_code(""));
    }
    let Some(map) = value.read_lock::<Map>() else {
        return Err(checkpoint::refused("what is saved is a tensor or a map of tensors", value));
    };
    if matches!(files::Kind::of(path), Ok(files::Kind::Safetensors)) {
        return checkpoint::to_named(host, &map).map(Value::Named);
    }
    if map.values().any(Dynamic::is_fnptr) {
        return Err(checkpoint::has_code(""));
    }
    let mut arrays = Vec::with_capacity(map.len());
    for (name, value) in map.iter() {
        match value.read_lock::<Tensor>() {
            Some(tensor) => arrays.push((name.to_string(), array(host, &tensor)?)),
            None => {
                let expected = format!("the entry `{name}` must be a tensor");
                let diag = checkpoint::refused(&expected, value);
                return Err(diag.note("numbers, strings and maps of tensors have a place in `.safetensors` files"));
            }
        }
    }
    Ok(Value::Named(Named::new(arrays)))
}

pub fn array(host: &Host, tensor: &Tensor) -> Result<Array> {
    let bytes = observe::bytes(&host.rt, tensor)?;
    Array::new(tensor.dtype(), tensor.shape().to_vec(), bytes)
}

/// Whether the host program lets scripts access this path. Links and `..` are resolved first.
pub fn permitted(host: &Host, path: &Path, writing: bool) -> Result<()> {
    let Some(roots) = &host.file_roots else { return Ok(()) };
    let written = if writing { files::write::target(path)? } else { path.to_path_buf() };
    let real = written.canonicalize().ok().or_else(|| {
        // A file that does not exist yet is located by its folder.
        let path = &written;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    });
    let inside =
        |real: &PathBuf| roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| real.starts_with(root));
    if real.as_ref().is_some_and(inside) {
        return Ok(());
    }
    let diag = Diag::error(
        code::FILE_ACCESS,
        format!("`{}` is outside the folders that this program lets scripts use", path.display()),
    );
    let names: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    Err(diag.help(if names.is_empty() {
        "scripts of this program may use no files: it gives them no folder".to_string()
    } else {
        format!("permitted are: {}", names.join(", "))
    }))
}

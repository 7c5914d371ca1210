//! `tensorboard::summary_writer`: the natives that append to an event file. A file is opened for each event, so that what
//! was added is there whatever happens next.

use crate::base::code::FILE;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use crate::files::events::{self, Content, Histogram};
use crate::files::hparams::{Known, Part, Setting};
use crate::files::input::os_reason;
use crate::files::{self, Kind, Value};
use crate::script::bind::native::text;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::tensor_api::storage;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, Map};
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_event_file", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let path =
                begin(&shared, &PathBuf::from(text("log_dir", values[0])?), &text("filename_suffix", values[1])?)?;
            Ok(path.display().to_string().into())
        })
    });
    raw(module, "_event_time", 0, |_, _| Ok(Dynamic::from_int(now() as i64)));
    let shared = host.clone();
    // `_event(path, tag, kind, value, step, seconds)`.
    raw(module, "_event", 6, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let (path, tag, kind) = (text("path", values[0])?, text("tag", values[1])?, text("kind", values[2])?);
            let content = content(&shared, &kind, values[3])?;
            let step = values[4].as_int().unwrap_or(0);
            let seconds = values[5].as_float().unwrap_or_else(|_| now());
            let path = Path::new(&path);
            storage::permitted(&shared, path, true)?;
            append(path, &events::event(seconds, step, &tag, &content))?;
            Ok(Dynamic::UNIT)
        })
    });
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// A new event file in a folder, which is made if it is not there. Its name is what TensorBoard looks for.
fn begin(host: &Host, folder: &Path, suffix: &str) -> Result<PathBuf> {
    static FILES: AtomicU32 = AtomicU32::new(0);
    if suffix.contains(['/', '\\']) {
        fail!(VALUE, "`filename_suffix` is a part of a name, not {suffix:?}");
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // Folders that are not there yet are judged by the one in which they will be.
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    if folder.strip_prefix(there).is_ok_and(|new| new.components().any(|part| part == Component::ParentDir)) {
        fail!(VALUE, "`{}`: `..` comes after a folder that is not there", folder.display());
    }
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    storage::permitted(host, &there.join("events"), true)?;
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("events.out.tfevents.{}.tscript.{}.{number}{suffix}", now() as u64, std::process::id());
    let path = folder.join(name);
    storage::permitted(host, &path, true)?;
    append(&path, &events::version(now()))?;
    Ok(path)
}

fn append(path: &Path, record: &[u8]) -> Result<()> {
    let file = fs::File::options().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(record)).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Box<Diag> {
    Diag::error(FILE, format!("`{}` cannot be written: {}", path.display(), os_reason(error)))
}

fn content(host: &Host, kind: &str, value: &Dynamic) -> Result<Content> {
    let tensor = value.read_lock::<Tensor>().map(|tensor| tensor.clone());
    match (kind, tensor) {
        ("scalar", _) => match value.as_float() {
            Ok(value) => Ok(Content::Scalar(value as f32)),
            Err(_) => fail!(ARGUMENT_TYPE, "a number is expected, not {}", type_names::of_value(value)),
        },
        ("text", _) => text("text_string", value).map(Content::Text),
        ("experiment" | "start" | "end", _) => settings(kind, value).map(Content::Settings),
        ("histogram", Some(tensor)) => histogram(host, &tensor).map(Content::Histogram),
        ("image", Some(tensor)) => {
            let [height, width, channels] = tensor.shape()[..] else {
                fail!(SHAPE, "an image has three dimensions, not shape {:?}", tensor.shape().as_slice());
            };
            let png = files::write_bytes(Kind::Png, &Value::One(storage::array(host, &tensor)?))?;
            Ok(Content::Image { height, width, channels, png })
        }
        _ => fail!(ARGUMENT_TYPE, "a tensor is expected, not {}", type_names::of_value(value)),
    }
}

/// `#{settings: [[name, value, domain]], metrics: [name]}`.
fn settings(kind: &str, value: &Dynamic) -> Result<Part> {
    let map = value.read_lock::<Map>();
    let list = |name: &str| -> Array {
        let list = map.as_ref().and_then(|map| map.get(name)?.read_lock::<Array>().map(|list| list.clone()));
        list.unwrap_or_default()
    };
    let known = |setting: &Dynamic| -> Result<Known> {
        let parts = setting.read_lock::<Array>();
        let Some([name, value, domain]) = parts.as_ref().map(|parts| &parts[..]) else {
            fail!(INTERNAL, "a setting is a name, a value and a domain");
        };
        let domain = domain.read_lock::<Array>().map(|all| all.iter().map(one).collect::<Result<_>>()).transpose()?;
        Ok(Known { name: text("name", name)?, value: one(value)?, domain })
    };
    let settings = list("settings").iter().map(known).collect::<Result<Vec<_>>>()?;
    Ok(match kind {
        "experiment" => {
            let metrics = list("metrics").iter().map(|name| text("metric", name)).collect::<Result<_>>()?;
            Part::Experiment { settings, metrics }
        }
        "start" => Part::Start { settings },
        _ => Part::End,
    })
}

fn one(value: &Dynamic) -> Result<Setting> {
    match value.as_float() {
        Ok(number) => Ok(Setting::Number(number)),
        Err(_) => text("value", value).map(Setting::Text),
    }
}

fn histogram(host: &Host, tensor: &Tensor) -> Result<Histogram> {
    if tensor.dtype() != DType::F64 {
        fail!(DTYPE, "values of a histogram are f64 here, not {}", tensor.dtype());
    }
    let bytes = observe::bytes(&host.rt, tensor)?;
    let values: Vec<f64> =
        bytes.chunks_exact(8).filter_map(|eight| Some(f64::from_le_bytes(eight.try_into().ok()?))).collect();
    if let Some(wrong) = values.iter().find(|value| !value.is_finite()) {
        fail!(VALUE, "a histogram is of finite values, and one of these is {wrong}");
    }
    match Histogram::of(&values) {
        Some(histogram) => Ok(histogram),
        None => fail!(VALUE, "a histogram is of one value or more, below 1e20"),
    }
}

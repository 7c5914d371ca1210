//! Folders of images: one folder for each class, as `root/cat/1.png`. Lists files, reads them, makes tensors of them.
//! Reading needs no session, so a thread can do it.

use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::order;
use crate::fail;
use crate::files::{self, Array, Value};
use crate::op::emit::Emit;
use crate::op::rows::shape::rearrange::PERMUTE;
use crate::script::bind::convert;
use crate::script::host::Host;
use crate::script::tensor_api::storage;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Dynamic, ImmutableString, Map};
use std::path::{Path, PathBuf};

/// Bound: files in one folder; more would fill memory with names.
const MAX_FILES: usize = 10_000_000;

/// A folder of classes.
pub struct Folder {
    classes: Vec<String>,
    files: Vec<(PathBuf, usize)>,
    /// 1 (gray) or 3.
    channels: usize,
    /// Height and width that every image is resized to.
    size: Option<(usize, usize)>,
    /// The device of the rows, if one was given.
    device: Option<DeviceId>,
}

/// An image that was read: `u8` [H, W, C].
pub struct Picture(Array);

impl Folder {
    /// `path` and a map of `channels`, `size` and `device`.
    pub fn open(host: &Host, path: &Dynamic, options: &Dynamic) -> Result<Folder> {
        let Some(path) = path.read_lock::<ImmutableString>().map(|path| PathBuf::from(path.as_str())) else {
            fail!(ARGUMENT_TYPE, "a path is a string, not {}", type_names::of_value(path));
        };
        storage::permitted(host, &path, false)?;
        let options = options.read_lock::<Map>().map(|map| map.clone()).unwrap_or_default();
        let channels = match options.get("channels").and_then(|n| n.as_int().ok()) {
            Some(1) => 1,
            Some(3) | None => 3,
            Some(n) => fail!(VALUE, "`channels` is 1 or 3, not {n}"),
        };
        let size = match options.get("size").filter(|size| !size.is_unit()) {
            None => None,
            Some(size) => match convert::ints(host, size)?.as_slice() {
                [h, w] if *h > 0 && *w > 0 => Some((*h as usize, *w as usize)),
                [side] if *side > 0 => Some((*side as usize, *side as usize)),
                other => fail!(VALUE, "`size` is [height, width], not {other:?}"),
            },
        };
        let device = options.get("device").filter(|device| !device.is_unit());
        let device = device.map(|device| convert::device(host, device)).transpose()?;
        let mut classes = Vec::new();
        let mut found = Vec::new();
        for folder in listed(&path)?.into_iter().filter(|path| path.is_dir()) {
            let before = found.len();
            for file in listed(&folder)?.into_iter().filter(|file| is_image(file)) {
                storage::permitted(host, &file, false)?;
                found.push((file, classes.len()));
            }
            if found.len() == before {
                fail!(FILE, "`{}`: there are no images in this folder", folder.display());
            }
            classes.push(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        if found.is_empty() {
            let text = format!("`{}`: there are no folders with images", path.display());
            return Err(
                Diag::error(code::FILE, text).help("every class has a folder of its own, as in `root/cat/1.png`")
            );
        }
        Ok(Folder { classes, files: found, channels, size, device })
    }

    pub fn row_count(&self) -> usize {
        self.files.len()
    }

    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Reads a file and converts it to the folder's channels and size.
    pub fn read(&self, at: usize) -> Result<Picture> {
        let path = &self.files[at].0;
        let Value::One(image) = files::read(path)? else {
            fail!(FILE_FORMAT, "`{}`: this is no image", path.display());
        };
        let image = files::image::with_channels(&image, self.channels)?;
        match self.size {
            Some((height, width)) => files::image::resized(&image, height, width),
            None => Ok(image),
        }
        .map(Picture)
    }

    /// A row: `x`, [C, H, W] from 0 to 1, and `y`, the index of the class. It is copied to `device` unless the folder
    /// has a device.
    pub fn row(&self, engine: &mut Engine, at: usize, picture: Picture, device: DeviceId) -> Result<Dynamic> {
        let image = picture.0;
        let x = engine.upload(image.bytes(), image.shape(), DType::U8, DeviceId::Cpu)?;
        let x = movement::to(engine, &x, Target::on(self.device.unwrap_or(device)))?;
        let x = engine.call_row(&PERMUTE, args![&x, &[2i64, 0, 1][..]])?;
        let emit: &mut dyn Emit = engine;
        let x: Tensor = emit.cast(&x, DType::F32)?;
        let x = emit.div(&x, Scalar::Float(255.0))?;
        let y = Dynamic::from_int(self.files[at].1 as i64);
        Ok(Dynamic::from_map(crate::base::order::map([("x".into(), Dynamic::from(x)), ("y".into(), y)])))
    }
}

fn listed(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: std::io::Error| {
        Diag::error(code::FILE, format!("`{}`: {}", path.display(), crate::files::input::os_reason(&error)))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            found.push(entry.path());
        }
        if found.len() > MAX_FILES {
            fail!(LIMIT_SIZE, "`{}`: a folder has at most {MAX_FILES} files", path.display());
        }
    }
    // The order of a folder is the system's; a dataset has the same order everywhere.
    order::by(&mut found, Ord::cmp);
    Ok(found)
}

fn is_image(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| ["png", "jpg", "jpeg"].contains(&extension.as_str()))
}

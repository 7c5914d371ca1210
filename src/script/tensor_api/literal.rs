//! Tensors from values of the script: `tensor([[1, 2], [3, 4]])`, `x.new_tensor(...)`, and the constants.
//!
//! Integers become i64, floats the default float dtype, `bool` bool; mixed, the widest of them. Nested arrays give
//! the dimensions, and tensors may take the place of arrays.

use crate::args;
use crate::base::bytes::{element, push_element};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{Category, DType, Scalar};
use crate::base::limits::MAX_DIMS;
use crate::op::complex;
use crate::op::emit::Emit;
use crate::op::rows::pointwise::arith::element_of;
use crate::script::bind::convert;
use crate::script::bind::native::{self, flag, given, named, native};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::type_names;
use crate::script::values::types::{CONSTANTS, DTypeValue, Tensor};
use crate::tensor::engine::Engine;
use crate::tensor::movement;
use crate::tensor::observe::{bytes as bytes_of, scalars};
use rhai::{Array, Dynamic};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    define(&mut module.module);
    native(module, host, "tensor", |host, engine, [data, dtype, device, requires_grad, pin_memory]| {
        let options = options(host, [dtype, device, requires_grad, pin_memory]);
        let tensor = options.and_then(|options| made(engine, host, data, options));
        tensor.map(Dynamic::from).map_err(named("tensor"))
    });
    let shared = host.clone();
    native::method(
        module,
        host,
        "new_tensor",
        move |engine, like, [data, dtype, device, requires_grad, pin_memory]| {
            let options = options(&shared, [dtype, device, requires_grad, pin_memory]);
            let tensor = options.and_then(|mut options| {
                options.dtype.get_or_insert(like.dtype());
                options.device.get_or_insert(like.device());
                made(engine, &shared, data, options)
            });
            tensor.map(Dynamic::from).map_err(named("new_tensor"))
        },
    );
}

fn define(module: &mut rhai::Module) {
    for (name, value) in CONSTANTS {
        module.set_var(name, value);
    }
    for (name, dtype) in DType::NAMES {
        module.set_var(*name, Dynamic::from(DTypeValue(*dtype)));
    }
}

/// The constants under the name that the source pass gives them.
pub fn install(engine: &mut rhai::Engine) {
    let mut module = rhai::Module::new();
    define(&mut module);
    engine.register_static_module("__c", module.into());
}

#[derive(Default)]
struct Options {
    dtype: Option<DType>,
    device: Option<DeviceId>,
    requires_grad: bool,
    pin_memory: bool,
}

fn options(host: &Host, [dtype, device, requires_grad, pin_memory]: [&Dynamic; 4]) -> Result<Options> {
    Ok(Options {
        dtype: given(dtype).map(convert::dtype).transpose()?,
        device: given(device).map(|device| convert::device(host, device)).transpose()?,
        requires_grad: given(requires_grad).map_or(Ok(false), |on| flag("requires_grad", on))?,
        pin_memory: given(pin_memory).map_or(Ok(false), convert::pins)?,
    })
}

/// The elements of nested arrays, in order.
#[derive(Default)]
struct Gathered {
    shape: Vec<usize>,
    values: Values,
    /// The widest kind of number so far.
    category: Option<Category>,
    /// The widest dtype of tensors inside.
    tensors: Option<DType>,
    /// Imaginary parts that are not 0, by the number of their element.
    imaginary: Vec<(usize, f64)>,
}

/// Integers as long as there is nothing else: exact, and half the memory of `Scalar`s.
enum Values {
    Ints(Vec<i64>),
    Mixed(Vec<Scalar>),
}

impl Default for Values {
    fn default() -> Values {
        Values::Ints(Vec::new())
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Ints(list) => list.len(),
            Values::Mixed(list) => list.len(),
        }
    }

    fn push(&mut self, value: Scalar) {
        match (&mut *self, value) {
            (Values::Ints(list), Scalar::Int(i)) => list.push(i),
            (Values::Mixed(list), value) => list.push(value),
            (Values::Ints(list), value) => {
                let mut mixed: Vec<Scalar> = Vec::with_capacity(list.capacity());
                mixed.extend(list.iter().map(|&i| Scalar::Int(i)));
                mixed.push(value);
                *self = Values::Mixed(mixed);
            }
        }
    }
}

/// Where in the nested arrays a value is: `[1][0]`.
fn place(path: &[usize]) -> String {
    if path.is_empty() {
        return "here".into();
    }
    format!("at {}", path.iter().map(|i| format!("[{i}]")).collect::<String>())
}

impl Gathered {
    /// Adds one value at `path`; `known` says that its shape is already determined by earlier values.
    fn add(&mut self, host: &Host, value: &Dynamic, path: &mut Vec<usize>, known: bool) -> Result<()> {
        let depth = path.len();
        if let Some(array) = value.read_lock::<Array>() {
            self.dim(depth, array.len(), path, known)?;
            for (at, item) in array.iter().enumerate() {
                path.push(at);
                self.add(host, item, path, known || at > 0)?;
                path.pop();
            }
            return Ok(());
        }
        if let Some(tensor) = value.read_lock::<Tensor>() {
            for (at, &n) in tensor.shape().iter().enumerate() {
                self.dim(depth + at, n, path, known)?;
            }
            self.end(depth + tensor.ndim(), path)?;
            self.tensors = Some(self.tensors.map_or(tensor.dtype(), |old| old.promote(tensor.dtype())));
            if tensor.dtype().is_complex() {
                return self.add_complex(host, &tensor);
            }
            scalars(&host.rt, &tensor)?.into_iter().for_each(|value| self.values.push(value));
            return Ok(());
        }
        let Some(number) = convert::scalar(value) else {
            return Err(Diag::error(
                code::ARGUMENT_TYPE,
                format!(
                    "numbers, bools, tensors and arrays of them are expected; {} is {}",
                    place(path),
                    type_names::of_value(value)
                ),
            ));
        };
        self.end(depth, path)?;
        let category = number.category();
        self.category = Some(self.category.map_or(category, |old| old.max(category)));
        self.values.push(number);
        Ok(())
    }

    fn add_complex(&mut self, host: &Host, tensor: &Tensor) -> Result<()> {
        let (bytes, real) = (bytes_of(&host.rt, tensor)?, tensor.dtype().real_part());
        for pair in bytes.chunks_exact(2 * real.size_bytes()) {
            let (re, im) = pair.split_at(real.size_bytes());
            let im = element(im, real).to_f64();
            if im != 0.0 {
                self.imaginary.push((self.values.len(), im));
            }
            self.values.push(element(re, real));
        }
        Ok(())
    }

    /// Dimension `depth` has size `n` at `path`.
    fn dim(&mut self, depth: usize, n: usize, path: &[usize], known: bool) -> Result<()> {
        match self.shape.get(depth) {
            Some(&size) if size != n => Err(Diag::error(
                code::SHAPE,
                format!("the array {} has {n} elements, the first one of its level {size}", place(path)),
            )
            .help("all arrays of one level must be of one length")),
            Some(_) => Ok(()),
            None if known => Err(Diag::error(
                code::SHAPE,
                format!("there is an array {} where the first one of its level holds a number", place(path)),
            )),
            None if depth >= MAX_DIMS => {
                Err(Diag::error(code::VALUE, format!("more than {MAX_DIMS} dimensions cannot be")))
            }
            None => {
                self.shape.push(n);
                Ok(())
            }
        }
    }

    /// Numbers begin at `depth`.
    fn end(&self, depth: usize, path: &[usize]) -> Result<()> {
        if self.shape.len() > depth {
            return Err(Diag::error(
                code::SHAPE,
                format!("there is a number {} where the first one of its level is an array", place(path)),
            ));
        }
        Ok(())
    }

    fn dtype(&self, default: DType) -> DType {
        let number = match self.category {
            Some(Category::Bool) => Some(DType::Bool),
            Some(Category::Int) => Some(DType::I64),
            Some(Category::Float | Category::Complex) => Some(default),
            None => None,
        };
        match (self.tensors, number) {
            (Some(tensor), Some(number)) if number.category() <= tensor.category() => tensor,
            (Some(tensor), Some(number)) => tensor.promote(number),
            (tensor, number) => tensor.or(number).unwrap_or(default),
        }
    }

    fn bytes(&self, dtype: DType) -> Result<Vec<u8>> {
        if !self.imaginary.is_empty() && !dtype.is_complex() {
            return Err(complex::loses_imaginary(dtype));
        }
        let mut bytes = self.elements(dtype)?;
        let size = dtype.size_bytes();
        for &(at, im) in &self.imaginary {
            let mut part = Vec::new();
            push_element(&mut part, Scalar::Float(im), dtype.real_part());
            bytes[at * size + size / 2..][..size / 2].copy_from_slice(&part);
        }
        Ok(bytes)
    }

    /// The real elements, as such or with imaginary parts of 0.
    fn elements(&self, dtype: DType) -> Result<Vec<u8>> {
        let size = dtype.size_bytes();
        match &self.values {
            Values::Ints(list) if dtype == DType::I64 => Ok(list.iter().flat_map(|i| i.to_le_bytes()).collect()),
            Values::Ints(list) => encode(list.iter().map(|&i| Scalar::Int(i)), list.len() * size, dtype),
            Values::Mixed(list) if dtype == DType::F32 => {
                Ok(list.iter().flat_map(|value| (value.to_f64() as f32).to_le_bytes()).collect())
            }
            Values::Mixed(list) => encode(list.iter().copied(), list.len() * size, dtype),
        }
    }
}

fn encode(values: impl Iterator<Item = Scalar>, size_bytes: usize, dtype: DType) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size_bytes);
    for value in values {
        push_element(&mut bytes, element_of(value, dtype)?, dtype);
    }
    Ok(bytes)
}

/// `tensor(value)` with a dtype and a device, if given.
pub fn from_value(
    e: &mut Engine,
    host: &Host,
    value: &Dynamic,
    dtype: Option<DType>,
    device: Option<DeviceId>,
) -> Result<Tensor> {
    made(e, host, value, Options { dtype, device, ..Options::default() })
}

fn made(e: &mut Engine, host: &Host, value: &Dynamic, options: Options) -> Result<Tensor> {
    if options.pin_memory {
        return movement::pinned(e, |e| made(e, host, value, Options { pin_memory: false, ..options }));
    }
    let tensor = match value.read_lock::<Tensor>() {
        Some(source) => copied(e, &source, &options)?,
        None => {
            let mut gathered = Gathered::default();
            gathered.add(host, value, &mut Vec::new(), false)?;
            let dtype = options.dtype.unwrap_or_else(|| gathered.dtype(e.default_float()));
            let bytes = gathered.bytes(dtype)?;
            let device = options.device.unwrap_or_else(|| e.default_device());
            e.upload(&bytes, &gathered.shape, dtype, device)?
        }
    };
    if options.requires_grad {
        crate::script::bind::properties::set_requires_grad(&tensor, true)?;
    }
    Ok(tensor)
}

/// `tensor(x)`: a copy outside the gradient graph.
fn copied(e: &mut Engine, source: &Tensor, options: &Options) -> Result<Tensor> {
    let source = e.detach(source);
    let dtype = options.dtype.unwrap_or(source.dtype());
    let device = options.device.unwrap_or(source.device());
    let out = e.empty(&source.shape(), dtype, device)?;
    e.apply_inplace(&crate::op::rows::pointwise::arith::COPY, args![&out, &source])
}

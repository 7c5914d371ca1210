//! Launches of kernels whose CUDA text the script gave. A launch is a node like any other: it reads all tensors among its
//! arguments and writes those behind pointers that are not `const`.

use super::devices::common_device;
use super::engine::Engine;
use super::history;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::Scalar;
use crate::base::span::Origin;
use crate::fail;
use crate::kernel::custom::signature::{Kind, Parameter};
use crate::kernel::custom::{Argument, CUSTOM, Custom, attributes};
use crate::op::elementwise::Value;
use crate::op::tensor::{Tensor, View};
use crate::sched::window::node::{Input, Work};
use smallvec::SmallVec;
use std::sync::Arc;

/// The name of these launches in messages and profiles.
pub const NAME: &str = "cuda::kernel";

/// How a launch is cut.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

/// Checks the arguments of a launch. The device is that of the tensors.
pub fn device(e: &Engine, custom: &Custom, args: &[Value]) -> Result<DeviceId> {
    if args.len() != custom.params.len() {
        let few = args.len() < custom.params.len();
        let names: Vec<&str> = custom.params.iter().map(|param| &*param.name).collect();
        let (expected, found) = (names.len(), args.len());
        let code = if few { code::MISSING_ARGUMENT } else { code::EXTRA_ARGUMENT };
        let text = format!("`{}` has {expected} parameters, `{}`, not {found}", custom.entry, names.join("`, `"));
        return Err(Diag::error(code, text));
    }
    for (value, param) in args.iter().zip(&custom.params) {
        match value {
            Value::Tensor(x) => check_tensor(e, x, param)?,
            Value::Number(number) => check_number(*number, param)?,
        }
    }
    let Some(device) = common_device(args.iter().filter_map(Value::tensor))? else {
        fail!(MISSING_ARGUMENT, "a kernel needs a tensor, whose device runs it");
    };
    if let Some(x) = args.iter().filter_map(Value::tensor).find(|x| x.device() != device) {
        fail!(DEVICE_MISMATCH, "a kernel takes no tensor of another device as a number: one is on {}", x.device());
    }
    Ok(device)
}

fn check_tensor(e: &Engine, x: &Tensor, param: &Parameter) -> Result<()> {
    let Parameter { name, kind, written, .. } = param;
    if !param.is_pointer {
        fail!(ARGUMENT_TYPE, "`{name}` is a number (`{written}`), not a tensor");
    }
    let view = x.view();
    if !kind.holds(view.dtype) {
        fail!(DTYPE, "`{name}` is `{written}`, and the tensor is of dtype {}", view.dtype);
    }
    if !view.layout.is_contiguous() {
        let shape = view.shape();
        let diag =
            Diag::error(code::VALUE, format!("`{name}` is a tensor of shape {shape:?} whose elements are not dense"));
        return Err(
            diag.help("a kernel gets an address, and no strides: pass `x.contiguous()`, or write into a new tensor")
        );
    }
    if x.requires_grad() && e.rt.grad_enabled() {
        let diag = Diag::error(code::GRAD_STOP, format!("`{name}` requires gradients, and a CUDA kernel has none"));
        let diag = diag.label(Origin::NONE, Focus::Call, "in this call").label(
            x.0.made,
            Focus::Expression,
            "it was made here",
        );
        return Err(diag.help(
            "give it a gradient by `autograd::function(#{forward: .., backward: ..})`, or call it inside `no_grad`",
        ));
    }
    if param.is_written {
        if x.is_inference() && !e.rt.is_inference() {
            return Err(history::of_inference(x, "cannot be changed in place outside of it"));
        }
        if view.layout.repeated().next().is_some() {
            return Err(crate::op::infer::expanded());
        }
    }
    Ok(())
}

fn check_number(number: Scalar, param: &Parameter) -> Result<()> {
    let Parameter { name, kind, written, .. } = param;
    if param.is_pointer {
        fail!(ARGUMENT_TYPE, "`{name}` is a tensor (`{written}`), not a number");
    }
    let value = number.to_f64();
    let range: Option<(i128, i128)> = match kind {
        Kind::Of(dtype) => dtype.int_range().map(|(low, high)| (low.into(), high.into())),
        Kind::U16 => Some((0, u16::MAX.into())),
        Kind::U32 => Some((0, u32::MAX.into())),
        // Numbers of the script have 63 bits and a sign.
        Kind::U64 | Kind::Any => Some((0, i64::MAX.into())),
    };
    let Some((low, high)) = range else { return Ok(()) };
    if matches!(number, Scalar::Float(_)) && crate::base::arithmetic::whole(value).is_none() {
        fail!(ARGUMENT_TYPE, "`{name}` is an integer (`{written}`), not {number}");
    }
    let whole = i128::from(number.to_i64());
    if whole < low || whole > high {
        fail!(VALUE, "{number} is out of the range of `{name}` (`{written}`): from {low} to {high}");
    }
    Ok(())
}

/// The bytes of a number as a parameter has them, lowest first.
fn bits(number: Scalar, kind: Kind) -> u64 {
    let dtype = match kind {
        Kind::Of(dtype) => dtype,
        Kind::U16 | Kind::U32 | Kind::U64 | Kind::Any => return number.to_i64() as u64,
    };
    let mut bytes = Vec::new();
    crate::base::bytes::push_element(&mut bytes, number, dtype);
    bytes.resize(8, 0);
    bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

/// Records a launch on the current stream of its tensors' device. The arguments were checked.
pub fn launch(e: &mut Engine, custom: &Custom, shape: Geometry, args: &[Value]) -> Result<()> {
    let mut inputs: SmallVec<[Input; 3]> = SmallVec::new();
    let mut outputs: SmallVec<[Arc<View>; 1]> = SmallVec::new();
    let mut passed: SmallVec<[Argument; 8]> = SmallVec::new();
    for (value, param) in args.iter().zip(&custom.params) {
        match value {
            Value::Number(number) => passed.push(Argument::Number(bits(*number, param.kind))),
            Value::Tensor(x) => {
                let view = x.view();
                passed.push(Argument::Operand(inputs.len()));
                if param.is_written && view.layout.numel() > 0 {
                    outputs.push(view.clone());
                }
                inputs.push(Input::View(view));
            }
        }
    }
    if outputs.is_empty() {
        // There is nothing that it could write.
        return Ok(());
    }
    let attrs = attributes(custom, shape.grid, shape.block, shape.shared, &passed);
    let work = Work::Kernel { kernel: &CUSTOM, attrs, seed: 0, offset: 0 };
    e.named(NAME, |e| e.record(work, inputs, outputs))
}

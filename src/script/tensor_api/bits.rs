//! `x.view(dtype)`: the same bytes as numbers of another dtype. The bits of numbers have no gradient: the view is outside of the
//! graph, which sees what is written through it.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::Layout;
use crate::fail;
use crate::op::rows::shape::view::VIEW;
use crate::op::tensor::Tensor;
use crate::script::bind::convert;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::types::{self, DTypeValue};
use crate::tensor::batch;
use crate::tensor::engine::Engine;
use rhai::{Dynamic, FuncRegistration, ImmutableString, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for asked in [TypeId::of::<ImmutableString>(), TypeId::of::<DTypeValue>()] {
        let shared = host.clone();
        let view = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            shared.call(&context, |e| {
                let x = values[0].read_lock::<types::Tensor>().expect("registered for tensors").clone();
                viewed(e, &x, convert::dtype(values[1])?).map(Dynamic::from)
            })
        };
        let func = RhaiFunc::Method { func: Arc::new(view), has_context: true, is_pure: true, is_volatile: true };
        let own = FuncRegistration::new("view").in_global_namespace();
        own.place_raw_in(&mut module.module, [TypeId::of::<types::Tensor>(), asked], func);
    }
}

fn viewed(e: &mut Engine, x: &Tensor, to: DType) -> Result<Tensor> {
    let from = x.dtype();
    if from == to {
        return e.call_row(&VIEW, crate::args![x, x.shape().as_slice()]);
    }
    if from.is_complex() || to.is_complex() {
        let diag = Diag::error(code::DTYPE, format!("`view`: {from} cannot be shown as {to}"));
        return Err(diag.help("`view_as_real(z)` and `view_as_complex(x)` show the parts of complex numbers"));
    }
    if to == DType::Bool {
        let diag = Diag::error(code::DTYPE, "`view`: bytes are no truth values");
        return Err(diag.help("write `x != 0`"));
    }
    let (old, new) = (from.size_bytes(), to.size_bytes());
    if x.ndim() == 0 && old != new {
        fail!(VALUE, "`view`: a tensor without dimensions has one number, and {to} has another size than {from}");
    }
    let all = batch::value(x);
    let view = all.view();
    let layout = resized(&view.layout, old, new)?;
    let made = e.tensor(Arc::new(view.reinterpreted(layout, to)));
    Ok(batch::like(e, made, x))
}

/// The layout of the same bytes as elements of another size: the last dimension grows or shrinks.
fn resized(layout: &Layout, old: usize, new: usize) -> Result<Layout> {
    let mut layout = layout.clone();
    if old == new {
        return Ok(layout);
    }
    let last = layout.ndim() - 1;
    if layout.strides[last] != 1 {
        fail!(VALUE, "`view`: the elements of the last dimension must lie side by side");
    }
    if old > new {
        let parts = old / new;
        layout.offset *= parts;
        layout.shape[last] *= parts;
        layout.strides[..last].iter_mut().for_each(|stride| *stride *= parts as isize);
        return Ok(layout);
    }
    let parts = new / old;
    let fits = |n: usize| n.is_multiple_of(parts);
    if !fits(layout.shape[last]) {
        fail!(VALUE, "`view`: the last dimension has {} elements, and {parts} become one", layout.shape[last]);
    }
    if !fits(layout.offset) || !layout.strides[..last].iter().all(|&stride| fits(stride as usize)) {
        fail!(VALUE, "`view`: rows must begin where an element of {new} bytes may lie");
    }
    layout.offset /= parts;
    layout.shape[last] /= parts;
    layout.strides[..last].iter_mut().for_each(|stride| *stride /= parts as isize);
    Ok(layout)
}

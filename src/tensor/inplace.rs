//! Writes into the memory of a tensor: copies, and in-place forms of rows, with operands that share the memory.

use super::devices::common_device;
use super::engine::{Engine, KernelRule};
use super::history;
use crate::base::attr::Attr;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::op::args::{Arg, Args};
use crate::op::complex;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{Lower, Op};
use crate::op::rows::pointwise::arith::COPY;
use crate::op::rows::shape::view::CLONE;
use crate::op::tensor::{Held, Tensor, View};
use crate::sched::execute::transfer::Asked;
use crate::sched::window::node::{Input, Work};
use crate::{args, fail};
use smallvec::smallvec;
use std::sync::Arc;

impl Engine {
    /// Writes a value into existing memory, converted to its dtype and broadcast.
    pub fn copy_into(&mut self, dest: &Arc<View>, source: &Arg) -> Result<()> {
        let from = source.as_tensor().map(Tensor::view).filter(|view| view.dtype.is_complex());
        if !dest.dtype.is_complex() {
            if from.is_some() {
                return Err(complex::loses_imaginary(dest.dtype));
            }
            return self.copy_reals(dest, source);
        }
        if let (Some(from), Some(tensor)) = (from, source.as_tensor()) {
            if crate::base::layout::broadcast(from.shape(), dest.shape())
                .is_none_or(|wide| wide.as_slice() != dest.shape())
            {
                return Err(inplace_shape(dest.shape(), from.shape()));
            }
            let layout = from.layout.broadcast_to(dest.shape());
            let pairs = Tensor::new(Arc::new(from.with_layout(layout).as_pairs()), tensor.0.made);
            return self.copy_reals(&Arc::new(dest.as_pairs()), &Arg::Tensor(pairs));
        }
        self.copy_reals(&Arc::new(dest.part(0)), source)?;
        self.copy_reals(&Arc::new(dest.part(1)), &Scalar::Int(0).into())
    }

    /// As `copy_into`, of real numbers.
    fn copy_reals(&mut self, dest: &Arc<View>, source: &Arg) -> Result<()> {
        let input = match source {
            Arg::Tensor(tensor) => {
                let view = tensor.view();
                match crate::base::layout::broadcast(view.shape(), dest.shape()) {
                    Some(shape) if shape.as_slice() == dest.shape() => {}
                    _ => return Err(inplace_shape(dest.shape(), view.shape())),
                }
                if view.buffer.device != dest.buffer.device {
                    return self.copy_across(dest, view);
                }
                let (view, _kept) = self.copy_if_overlapping(dest, view)?;
                Input::View(view)
            }
            Arg::Attr(attr) => match attr {
                Attr::Scalar(value) => Input::Scalar(*value),
                Attr::Int(value) => Input::Scalar(Scalar::Int(*value)),
                Attr::Float(value) => Input::Scalar(Scalar::Float(*value)),
                Attr::Bool(value) => Input::Scalar(Scalar::Bool(*value)),
                _ => fail!(ARGUMENT_TYPE, "a tensor or a number is expected"),
            },
            _ => fail!(MISSING_ARGUMENT, "a value to copy is missing"),
        };
        let from = match &input {
            Input::View(view) => view.dtype,
            _ => dest.dtype,
        };
        if dest.layout.numel() == 0 {
            return Ok(());
        }
        let work = Work::Map { function: None, args: smallvec![from], result: from, check: None };
        self.record(work, smallvec![input], smallvec![dest.clone()])
    }

    /// The same values in other memory if source and destination share a buffer with different layouts.
    fn copy_if_overlapping(&mut self, dest: &Arc<View>, view: Arc<View>) -> Result<(Arc<View>, Option<Held>)> {
        if !Arc::ptr_eq(&view.buffer, &dest.buffer) || (view.layout == dest.layout && view.dtype == dest.dtype) {
            return Ok((view, None));
        }
        let copy = self.fresh(view.shape(), view.dtype, view.buffer.device)?;
        let work = Work::Map { function: None, args: smallvec![view.dtype], result: view.dtype, check: None };
        if view.layout.numel() > 0 {
            self.record(work, smallvec![Input::View(view)], smallvec![copy.clone()])?;
        }
        Ok((copy.clone(), Some(Held::new(copy))))
    }

    /// Copies between devices: dense bytes are transferred, layouts and dtypes are converted at both ends.
    fn copy_across(&mut self, dest: &Arc<View>, view: Arc<View>) -> Result<()> {
        if dest.layout.numel() == 0 {
            return Ok(());
        }
        let asked = Asked { name: self.name, origin: self.origin, non_blocking: self.non_blocking };
        if dest.buffer.device == DeviceId::Cpu && !(self.non_blocking && dest.buffer.pinned) {
            // A host read: it needs no ordering by the script.
            self.rt.wait_before_read(&view)?;
        }
        let source = Held::new(self.rt.densify(&view, self.name, self.origin)?);
        let fits = dest.layout.is_contiguous() && dest.dtype == view.dtype && dest.shape() == view.shape();
        if fits {
            if self.rt.take_offered(source.view(), dest, asked)? {
                return Ok(());
            }
            return self.rt.transfer(source.view(), dest, asked);
        }
        let received = Held::new(self.fresh(view.shape(), view.dtype, dest.buffer.device)?);
        self.rt.transfer(source.view(), received.view(), asked)?;
        let work = Work::Map { function: None, args: smallvec![view.dtype], result: view.dtype, check: None };
        self.record(work, smallvec![Input::View(received.view().clone())], smallvec![dest.clone()])
    }

    /// Calls a row by its in-place form `name_`.
    pub(super) fn inplace(&mut self, op: &'static Op, args: Args) -> Result<Tensor> {
        let x = args.tensor(0).clone();
        if x.is_inference() && !self.rt.is_inference() {
            return Err(history::of_inference(&x, "cannot be changed in place outside of it"));
        }
        if x.dtype().is_differentiable() {
            history::check_conjugate(&x)?;
        }
        let mut tracked = false;
        args.for_each_tensor(|tensor| tracked |= tensor.requires_grad());
        history::check_inplace(self, &x, tracked && x.dtype().is_differentiable())?;
        if x.view().layout.repeated().next().is_some() {
            let Some(rule) = op.expanded else { return Err(infer::expanded()) };
            rule(self, &args)?;
            return Ok(x);
        }
        let is_complex = complex::involved(&args) && !op.is(&COPY);
        if let Lower::Kernel(rule) = op.lower
            && !is_complex
            && let Some(written) = self.kernel_inplace(op, rule, &x, &args)?
        {
            return Ok(written);
        }
        if is_complex || !matches!(op.lower, Lower::Map { .. }) {
            let args = self.before_overwriting(&x, args)?;
            let result = self.one(op, args)?;
            if result.shape() != x.shape() {
                return Err(inplace_shape(&x.shape(), &result.shape()));
            }
            if !result.dtype().can_cast(x.dtype()) {
                fail!(
                    DTYPE,
                    "a result of dtype {} cannot be stored in a tensor of dtype {}",
                    result.dtype(),
                    x.dtype()
                );
            }
            return self.inplace(&COPY, args![x, result]);
        }
        let dest = x.view();
        let args = self.operands_apart(&dest, args)?;
        let pending = history::before_inplace(self, op, &args)?;
        self.map(op, &args, Some(dest))?;
        history::after_inplace(self, &x, pending)?;
        Ok(x)
    }

    /// A kernel that takes its first input as its output too: `x.index_add_(..)` writes only the indexed rows.
    /// None if this call is not of that kind.
    fn kernel_inplace(&mut self, op: &'static Op, rule: KernelRule, x: &Tensor, args: &Args) -> Result<Option<Tensor>> {
        let dest = x.view();
        let args = self.copied(args.clone(), 1, |view| Arc::ptr_eq(&view.buffer, &dest.buffer))?;
        let mut call = self.without_recording(|e| rule(e, &args))?;
        let same = call.outputs.len() == 1
            && call.outputs[0].shape.as_slice() == dest.shape()
            && call.outputs[0].dtype == dest.dtype
            && call.inputs.first().is_some_and(|first| first.same(x));
        if !call.writes_input || !same {
            return Ok(None);
        }
        let device = common_device(call.inputs.iter())?.unwrap_or(dest.buffer.device);
        let made = self.made_of(&call.inputs);
        let operands = self.on_device(std::mem::take(&mut call.inputs), device)?;
        let pending = history::before_inplace(self, op, &args)?;
        // An index into nothing is an error.
        let is_index = |tensor: &Tensor| tensor.dtype().is_int() && tensor.numel() > 0;
        if dest.layout.numel() > 0 || operands.iter().any(is_index) {
            let inputs = operands.iter().map(|tensor| Input::View(tensor.view())).collect();
            let work = Work::Kernel { kernel: call.kernel, attrs: std::mem::take(&mut call.attrs), seed: 0, offset: 0 };
            self.record_fallible(work, inputs, smallvec![dest], made)?;
        }
        history::after_inplace(self, x, pending)?;
        Ok(Some(x.clone()))
    }

    /// A differentiated composition may save operands that its last write changes: it works on copies.
    pub(super) fn before_overwriting(&mut self, x: &Tensor, args: Args) -> Result<Args> {
        if !self.grad_enabled() || !x.dtype().is_differentiable() || !args.tensors().iter().any(Tensor::requires_grad) {
            return Ok(args);
        }
        let written = x.view().buffer.clone();
        self.copied(args, 0, |view| Arc::ptr_eq(&view.buffer, &written))
    }

    /// `x[1..].add_(x[..-1])`: an operand that overlaps the destination differently is copied first.
    fn operands_apart(&mut self, dest: &Arc<View>, args: Args) -> Result<Args> {
        self.copied(args, 1, |view| Arc::ptr_eq(&view.buffer, &dest.buffer) && view.layout != dest.layout)
    }

    /// Copies the tensors, from an argument on, whose memory the call may not write meanwhile.
    fn copied(&mut self, mut args: Args, from: usize, is_written: impl Fn(&View) -> bool) -> Result<Args> {
        for arg in args.0.iter_mut().skip(from) {
            if let Arg::Tensor(tensor) = arg
                && is_written(&tensor.view())
            {
                *tensor = self.call_row(&CLONE, args![&*tensor])?;
            }
        }
        Ok(args)
    }
}

#[cold]
pub(super) fn inplace_shape(dest: &[usize], value: &[usize]) -> Box<Diag> {
    Diag::error(code::SHAPE, format!("a value of shape {value:?} does not fit into the tensor's shape {dest:?}"))
        .note("an in-place operation cannot change the shape of the tensor it writes to")
}

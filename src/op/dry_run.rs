//! Runs rows without memory: the shape and dtype of their results, or the error of the call. For `tscript check`,
//! which reads scripts without running them.
//!
//! Has no values: a row that reads elements of a tensor ends with `Unknown`. Ignores devices, gradients and the
//! amount of memory.

use super::args::Args;
use super::complex;
use super::emit::{Emit, KernelCall};
use super::formula::Formula;
use super::infer::{self, Operand};
use super::row::{Lower, Op, Promote, Source};
use super::tensor::{Buffer, Home, Tensor, View};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{self, Layout, broadcast};
use crate::base::limits::MAX_DIMS;
use crate::base::span::Origin;
use crate::fail;
use std::sync::Arc;

/// What a call would give.
pub enum Outcome {
    Results(Vec<Tensor>),
    /// It would be refused at the call.
    Refused(Box<Diag>),
    /// It depends on values.
    Unknown,
}

/// A tensor of which only shape and dtype are known.
pub fn tensor(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let size_bytes = infer::size_bytes(shape, dtype)?;
    Ok(Tensor::new(Arc::new(View::new(no_memory(size_bytes), Layout::contiguous(shape), dtype)), Origin::NONE))
}

/// What `op` would give for these arguments.
pub fn results(op: &'static Op, args: Args) -> Outcome {
    of(|shapes| shapes.apply(op, args))
}

/// What `name_` would give.
pub fn inplace(op: &'static Op, args: Args) -> Outcome {
    of(|shapes| shapes.apply_inplace(op, args).map(|tensor| vec![tensor]))
}

fn of(work: impl FnOnce(&mut Shapes) -> Result<Vec<Tensor>>) -> Outcome {
    let mut shapes = Shapes { asked: false };
    let results = work(&mut shapes);
    match results {
        _ if shapes.asked => Outcome::Unknown,
        Ok(results) => Outcome::Results(results),
        Err(diag) if diag.code == code::INTERNAL => Outcome::Unknown,
        Err(diag) => Outcome::Refused(diag),
    }
}

/// The home of memory that nobody ever takes.
struct Nowhere;

impl Home for Nowhere {
    fn release(&self, _: &Buffer) {}
}

fn no_memory(size_bytes: usize) -> Arc<Buffer> {
    Arc::new(Buffer::new(0, Arc::new(Nowhere), DeviceId::Cpu, size_bytes, false))
}

struct Shapes {
    /// A row wanted values.
    asked: bool,
}

impl Shapes {
    fn unknown(&mut self) -> Box<Diag> {
        self.asked = true;
        Diag::error(code::INTERNAL, "values are not known here")
    }

    fn map(&mut self, op: &'static Op, args: &Args) -> Result<Tensor> {
        let Lower::Map { function, promote } = &op.lower else { return Err(self.unknown()) };
        if *promote == Promote::Copy {
            let dest = args.tensor(0);
            if let Some(source) = args.opt_tensor(1)
                && broadcast(&source.shape(), &dest.shape()) != Some(dest.shape())
            {
                return Err(inplace_shape(&dest.shape(), &source.shape()));
            }
            return tensor(&dest.shape(), dest.dtype());
        }
        let operands = infer::operands(args, function.variants[0].args.len())?;
        let plan = infer::map(*promote, &operands, self.default_float())?;
        let views = operands.iter().filter_map(Operand::view);
        let shape = infer::broadcast_all(views.clone().map(|view| view.shape()))?;
        let layout = layout::of_operands(&shape, views.map(|view| &view.layout));
        Ok(self.alias(&tensor(&shape, plan.result)?, layout))
    }

    fn reduce(&mut self, op: &'static Op, args: &Args) -> Result<Tensor> {
        let Lower::Reduce { dtype, .. } = op.lower else { return Err(self.unknown()) };
        let x = args.tensor(0);
        let dims = infer::dims(args.ints(1).as_ref(), x.ndim())?;
        if dims.iter().any(|&dim| x.shape().get(dim) == Some(&0)) {
            return Err(self.unknown());
        }
        let asked = if op.params.len() > 3 { args.dtype(3) } else { None };
        tensor(&infer::reduced_shape(&x.shape(), &dims, args.flag(2)), infer::reduce_type(dtype, x.dtype(), asked))
    }

    fn run(&mut self, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
        match &op.lower {
            Lower::Map { .. } => self.map(op, args).map(|tensor| vec![tensor]),
            Lower::Reduce { .. } => self.reduce(op, args).map(|tensor| vec![tensor]),
            Lower::View(rule) => {
                let layout = rule(args)?;
                if layout.ndim() > MAX_DIMS {
                    fail!(VALUE, "the view would have {} dimensions, more than a tensor may have", layout.ndim());
                }
                Ok(vec![self.alias(args.tensor(0), layout)])
            }
            Lower::Kernel(rule) => {
                let call = rule(self, args)?;
                self.kernel(call)
            }
            Lower::Steps(rule) | Lower::Compose(rule) => rule(self, args),
            Lower::Unset => Err(self.unknown()),
        }
    }
}

fn inplace_shape(dest: &[usize], value: &[usize]) -> Box<Diag> {
    Diag::error(code::SHAPE, format!("a value of shape {value:?} does not fit into the tensor's shape {dest:?}"))
        .note("an in-place operation cannot change the shape of the tensor it writes to")
}

impl Emit for Shapes {
    fn apply(&mut self, op: &'static Op, mut args: Args) -> Result<Vec<Tensor>> {
        args.complete(op);
        // Not: results of complex operands, which other rules than the row's give.
        if complex::involved(&args) {
            return Err(self.unknown());
        }
        self.run(op, &args)
    }

    fn one(&mut self, op: &'static Op, args: Args) -> Result<Tensor> {
        let first = self.apply(op, args)?.into_iter().next();
        first.ok_or_else(|| self.unknown())
    }

    fn apply_inplace(&mut self, op: &'static Op, args: Args) -> Result<Tensor> {
        let dest = args.tensor(0).clone();
        let result = self.one(op, args)?;
        if result.shape() != dest.shape() {
            return Err(inplace_shape(&dest.shape(), &result.shape()));
        }
        if !result.dtype().can_cast(dest.dtype()) {
            let (from, to) = (result.dtype(), dest.dtype());
            fail!(DTYPE, "a result of dtype {from} cannot be stored in a tensor of dtype {to}");
        }
        Ok(dest)
    }

    fn kernel(&mut self, call: KernelCall) -> Result<Vec<Tensor>> {
        call.outputs.iter().map(|out| tensor(&out.shape, out.dtype)).collect()
    }

    fn each(&mut self, _: &[&[Tensor]], _: &mut dyn FnMut(&Formula)) -> Result<()> {
        Ok(())
    }

    fn source(&mut self, _: Source, shape: &[usize], dtype: DType, _: DeviceId) -> Result<Tensor> {
        tensor(shape, dtype)
    }

    fn empty(&mut self, shape: &[usize], dtype: DType, _: DeviceId) -> Result<Tensor> {
        tensor(shape, dtype)
    }

    fn upload(&mut self, _: &[u8], shape: &[usize], dtype: DType, _: DeviceId) -> Result<Tensor> {
        tensor(shape, dtype)
    }

    fn alias(&mut self, tensor: &Tensor, layout: Layout) -> Tensor {
        let view = tensor.view();
        Tensor::new(Arc::new(View::new(view.buffer.clone(), layout, view.dtype)), Origin::NONE)
    }

    fn reinterpret(&mut self, tensor: &Tensor, layout: Layout, dtype: DType) -> Tensor {
        Tensor::new(Arc::new(tensor.view().reinterpreted(layout, dtype)), Origin::NONE)
    }

    fn detach(&mut self, tensor: &Tensor) -> Tensor {
        tensor.clone()
    }

    fn made_together(&mut self, _: &[Tensor]) {}

    fn made_apart(&mut self, _: &[Tensor]) {}

    fn relayout(&mut self, _: &Tensor, _: &Tensor) -> Result<()> {
        Err(self.unknown())
    }

    fn with_row_grads(&mut self, _: &Tensor, _: &Tensor, _: Option<i64>, rows: Tensor) -> Result<Tensor> {
        Ok(rows)
    }

    fn host_room(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn read(&mut self, _: &Tensor) -> Result<Vec<Scalar>> {
        Err(self.unknown())
    }

    fn default_float(&self) -> DType {
        DType::F32
    }

    fn default_device(&self) -> DeviceId {
        DeviceId::Cpu
    }

    fn draw(&mut self, _: u64) -> (u64, u64) {
        (0, 0)
    }

    fn grad_enabled(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;
    use crate::op::rows::linalg::matmul;
    use crate::op::rows::reduction::reduce;
    use crate::op::rows::shape::{join, view};

    fn shape(outcome: Outcome) -> std::result::Result<Vec<usize>, u16> {
        match outcome {
            Outcome::Results(results) => Ok(results[0].shape().to_vec()),
            Outcome::Refused(diag) => Err(diag.code.0),
            Outcome::Unknown => Err(0),
        }
    }

    fn ones(shape: &[usize]) -> Tensor {
        tensor(shape, DType::F32).expect("it is small")
    }

    #[test]
    fn rows_have_shapes_and_errors_without_memory() {
        let (a, b) = (ones(&[2, 3]), ones(&[3, 4]));
        assert_eq!(shape(results(&matmul::MATMUL, args![&a, &b])), Ok(vec![2, 4]));
        assert_eq!(shape(results(&matmul::MATMUL, args![&a, &a])), Err(code::SHAPE.0));
        assert_eq!(shape(results(&view::RESHAPE, args![&a, &[3usize, 2][..]])), Ok(vec![3, 2]));
        assert_eq!(shape(results(&view::RESHAPE, args![&a, &[4usize][..]])), Err(code::SHAPE.0));
        assert_eq!(shape(results(&reduce::SUM, args![&a, 1])), Ok(vec![2]));
        assert_eq!(shape(results(&reduce::SUM, args![&a, 2])), Err(code::DIM.0));
        assert_eq!(shape(results(&join::CAT, args![vec![a.clone(), b.clone()], 0])), Err(code::SHAPE.0));
        assert_eq!(shape(results(&crate::op::rows::indexing::masks::NONZERO, args![&a])), Err(0));
    }

    #[test]
    fn results_lie_in_memory_as_when_they_run() {
        let first = |outcome| match outcome {
            Outcome::Results(mut results) => results.remove(0),
            _ => panic!("it has results"),
        };
        let turned =
            first(results(&crate::op::rows::shape::rearrange::PERMUTE, args![&ones(&[2, 3]), &[1usize, 0][..]]));
        let mapped = first(results(&crate::op::rows::pointwise::arith::NEG, args![&turned]));
        assert_eq!(mapped.view().layout.strides.to_vec(), [1, 3]);
    }
}

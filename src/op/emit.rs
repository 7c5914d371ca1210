//! What a row may do: apply other rows, ask for kernels, views and values. Implemented in `tensor/`.

use super::args::{Arg, Args};
use super::formula::Formula;
use super::row::{Op, Save, Source};
use super::tensor::{Meta, Tensor};
use crate::args;
use crate::base::attr::{Attr, Attrs};
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Layout, Shape};
use crate::kernel::family::Kernel;
use crate::kernel::recurrent::layer::Layer;
use smallvec::SmallVec;

/// Shape and dtype of a result.
#[derive(Clone, Debug)]
pub struct OutSpec {
    pub shape: Shape,
    pub dtype: DType,
}

impl OutSpec {
    pub fn new(shape: &[usize], dtype: DType) -> OutSpec {
        OutSpec { shape: Shape::from_slice(shape), dtype }
    }

    pub fn like(tensor: &Tensor) -> OutSpec {
        OutSpec { shape: tensor.shape(), dtype: tensor.dtype() }
    }
}

/// A kernel to run, as data. In a box: rules hand it on a dozen times.
pub struct KernelCall(Box<KernelParts>);

/// What a [`KernelCall`] says.
pub struct KernelParts {
    pub name: &'static str,
    pub kernel: &'static Kernel,
    pub inputs: SmallVec<[Tensor; 4]>,
    pub attrs: Attrs,
    pub outputs: SmallVec<[OutSpec; 2]>,
    /// How many random values it needs.
    pub draws: u64,
    /// The device if it has no inputs.
    pub device: Option<DeviceId>,
    /// The single output may alias the first input: the in-place form then writes only what changes.
    pub writes_input: bool,
}

impl KernelCall {
    pub fn new(name: &'static str, kernel: &'static Kernel) -> KernelCall {
        KernelCall(Box::new(KernelParts {
            name,
            kernel,
            inputs: SmallVec::new(),
            attrs: Attrs::new(),
            outputs: SmallVec::new(),
            draws: 0,
            device: None,
            writes_input: false,
        }))
    }

    pub fn input(mut self, tensor: &Tensor) -> KernelCall {
        self.inputs.push(tensor.clone());
        self
    }

    pub fn inputs<'a>(mut self, tensors: impl IntoIterator<Item = &'a Tensor>) -> KernelCall {
        self.inputs.extend(tensors.into_iter().cloned());
        self
    }

    pub fn attr(mut self, attr: Attr) -> KernelCall {
        if self.attrs.len() == self.attrs.inline_size() {
            // Most kernels with several have three or four.
            self.attrs.reserve_exact(3);
        }
        self.attrs.push(attr);
        self
    }

    pub fn int(self, value: i64) -> KernelCall {
        self.attr(Attr::Int(value))
    }

    pub fn float(self, value: f64) -> KernelCall {
        self.attr(Attr::Float(value))
    }

    pub fn flag(self, value: bool) -> KernelCall {
        self.attr(Attr::Bool(value))
    }

    pub fn ints(self, values: &[i64]) -> KernelCall {
        self.attr(Attr::Ints(values.into()))
    }

    pub fn output(mut self, shape: &[usize], dtype: DType) -> KernelCall {
        self.outputs.push(OutSpec::new(shape, dtype));
        self
    }

    /// The kernel takes its first input as its output too.
    pub fn writes_input(mut self) -> KernelCall {
        self.writes_input = true;
        self
    }

    pub fn draws(mut self, n: u64) -> KernelCall {
        self.draws = n;
        self
    }
}

impl std::ops::Deref for KernelCall {
    type Target = KernelParts;

    fn deref(&self) -> &KernelParts {
        &self.0
    }
}

impl std::ops::DerefMut for KernelCall {
    fn deref_mut(&mut self) -> &mut KernelParts {
        &mut self.0
    }
}

/// The engine as rows see it.
pub trait Emit {
    /// Applies a row, with gradients recorded when the mode says so.
    fn apply(&mut self, op: &'static Op, args: Args) -> Result<Vec<Tensor>>;
    /// As `apply`, for a row with one result.
    fn one(&mut self, op: &'static Op, args: Args) -> Result<Tensor>;
    /// Applies the in-place form: writes the result into argument 0 and returns it.
    fn apply_inplace(&mut self, op: &'static Op, args: Args) -> Result<Tensor>;
    /// Queues one kernel. Not differentiated.
    fn kernel(&mut self, call: KernelCall) -> Result<Vec<Tensor>>;
    /// Runs a formula in place for each member of lists of equal length (a list may also have one tensor that all
    /// members share, or be empty if it is not used). Not differentiated.
    fn each(&mut self, lists: &[&[Tensor]], formula: &mut dyn FnMut(&Formula)) -> Result<()>;
    /// Warns of the operation at its place, once a place.
    fn warn(&mut self, _: Box<Diag>) {}
    /// A new tensor filled element-wise from a source.
    fn source(&mut self, source: Source, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor>;
    /// A new tensor whose contents are arbitrary.
    fn empty(&mut self, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor>;
    /// A new tensor with these bytes (row-major).
    fn upload(&mut self, bytes: &[u8], shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor>;
    /// Another layout over the same buffer, outside the gradient graph.
    fn alias(&mut self, tensor: &Tensor, layout: Layout) -> Tensor;
    /// Another layout over the same buffer as elements of another dtype, outside the gradient graph.
    fn reinterpret(&mut self, tensor: &Tensor, layout: Layout, dtype: DType) -> Tensor;
    /// The same tensor outside the gradient graph.
    fn detach(&mut self, tensor: &Tensor) -> Tensor;
    /// Views that one operation returned: none of them can be changed in place while gradients are recorded.
    fn made_together(&mut self, views: &[Tensor]);
    /// Parts that count as independent tensors in the gradient graph: a write to one does not affect the others.
    fn made_apart(&mut self, views: &[Tensor]);
    /// Gives `x` itself the layout of `y`, a view of it, and its place in the gradient graph.
    fn relayout(&mut self, x: &Tensor, y: &Tensor) -> Result<()>;
    /// Gives `rows`, looked up by `index` in a table outside the gradient graph, a gradient that the table keeps by rows;
    /// those of the row `padding` are left out.
    fn with_row_grads(&mut self, table: &Tensor, index: &Tensor, padding: Option<i64>, rows: Tensor) -> Result<Tensor>;
    /// Fails if the host has no memory for a list of so many bytes.
    fn host_room(&self, bytes: usize) -> Result<()>;
    /// Bytes that a library of the device keeps of a recurrent layer for its gradient; 0 if our own kernels compute it.
    fn recurrent_reserve(&self, _layer: &Layer, _dtype: DType, _biased: bool, _device: DeviceId) -> usize {
        0
    }
    /// All elements, row-major. Waits.
    fn read(&mut self, tensor: &Tensor) -> Result<Vec<Scalar>>;
    fn default_float(&self) -> DType;
    fn default_device(&self) -> DeviceId;
    /// Reserves counters for `n` random values: seed and first counter.
    fn draw(&mut self, n: u64) -> (u64, u64);
    /// Whether gradients are recorded.
    fn grad_enabled(&self) -> bool;
}

/// Shorthands over `Emit` for rules and compositions.
impl dyn Emit + '_ {
    /// Applies a row with one result.
    pub fn call(&mut self, op: &'static Op, args: Args) -> Result<Tensor> {
        self.one(op, args)
    }

    pub fn full(&mut self, shape: &[usize], value: Scalar, like: &Meta) -> Result<Tensor> {
        self.source(Source::Fill(value), shape, like.dtype, like.device)
    }

    pub fn zeros_like(&mut self, meta: &Meta) -> Result<Tensor> {
        self.source(Source::Fill(Scalar::Int(0)), &meta.shape, meta.dtype, meta.device)
    }

    pub fn add(&mut self, a: &Tensor, b: impl Into<Arg>) -> Result<Tensor> {
        self.call(&crate::op::rows::pointwise::arith::ADD, args![a, b])
    }

    pub fn sub(&mut self, a: &Tensor, b: impl Into<Arg>) -> Result<Tensor> {
        self.call(&crate::op::rows::pointwise::arith::SUB, args![a, b])
    }

    pub fn mul(&mut self, a: &Tensor, b: impl Into<Arg>) -> Result<Tensor> {
        self.call(&crate::op::rows::pointwise::arith::MUL, args![a, b])
    }

    pub fn div(&mut self, a: &Tensor, b: impl Into<Arg>) -> Result<Tensor> {
        self.call(&crate::op::rows::pointwise::arith::DIV, args![a, b])
    }

    pub fn neg(&mut self, a: &Tensor) -> Result<Tensor> {
        self.call(&crate::op::rows::pointwise::arith::NEG, args![a])
    }

    /// One operand with a scalar on the left: `s - a`, `s / a`.
    pub fn rev(&mut self, op: &'static Op, s: Scalar, a: &Tensor) -> Result<Tensor> {
        self.call(op, args![s, a])
    }

    /// Sums over the dims that broadcasting added, so that the result has `shape`.
    pub fn sum_to(&mut self, x: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let from = x.shape();
        if from.as_slice() == shape {
            return Ok(x.clone());
        }
        let lead = from.len().saturating_sub(shape.len());
        let dims: SmallVec<[i64; 6]> = (0..from.len())
            .filter(|&dim| dim < lead || (shape[dim - lead] == 1 && from[dim] != 1))
            .map(|dim| dim as i64)
            .collect();
        if dims.len() == lead && !dims.is_empty() {
            // Only leading dims are removed: no reshape is needed.
            return self.call(&crate::op::rows::reduction::reduce::SUM, args![x, dims.as_slice(), false]);
        }
        let summed = if dims.is_empty() {
            x.clone()
        } else {
            self.call(&crate::op::rows::reduction::reduce::SUM, args![x, dims.as_slice(), true])?
        };
        self.call(&crate::op::rows::shape::view::RESHAPE, args![&summed, shape])
    }

    /// A gradient for an operand of this dtype: a real operand of a complex result gets the real part.
    pub fn cast_gradient(&mut self, g: &Tensor, dtype: DType) -> Result<Tensor> {
        if g.dtype().is_complex() && !dtype.is_complex() {
            let real = self.call(&crate::op::rows::pointwise::complex::PART, args![g, 0])?;
            return self.cast(&real, dtype);
        }
        self.cast(g, dtype)
    }

    pub fn cast(&mut self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        if x.dtype() == dtype {
            Ok(x.clone())
        } else {
            self.call(&crate::op::rows::pointwise::arith::CAST, args![x, dtype])
        }
    }
}

/// The input of a gradient rule.
pub struct Backward<'a> {
    pub op: &'static Op,
    /// One gradient for each result; none if none arrived.
    pub grads: &'a [Option<Tensor>],
    pub args: &'a Args,
    pub inputs: &'a [Option<Meta>],
    pub outputs: &'a [Meta],
    pub tensors: &'a [Option<Tensor>],
    /// Whether a gradient for this slot is needed.
    pub needs: &'a [bool],
}

impl Backward<'_> {
    /// The gradient of the first result. The engine calls a rule only if some gradient arrived, and passes zeros for
    /// rows with one result.
    pub fn g(&self) -> &Tensor {
        self.grads[0].as_ref().expect("a row with one result has its gradient")
    }

    /// In a rule of forward derivatives, where `grads` has a tangent for each slot: that of the one operand.
    pub fn tangent(&self) -> &Tensor {
        self.g()
    }

    /// A saved argument, if the row saves it and did so in this call.
    pub fn find_saved(&self, argument: usize) -> Option<&Tensor> {
        let at = self.op.saves.iter().position(|save| match *save {
            Save::In(at) | Save::For(at, _) => at == argument,
            Save::Out(_) => false,
        });
        self.tensors.get(at?)?.as_ref()
    }

    fn kept(&self, save: Save) -> &Tensor {
        let at = self.op.saves.iter().position(|s| match (*s, save) {
            (Save::For(at, _), Save::In(expected)) => at == expected,
            (have, expected) => have == expected,
        });
        at.and_then(|at| self.tensors[at].as_ref()).expect("a rule reads only what its row saves")
    }

    /// The first argument, saved.
    pub fn input(&self) -> &Tensor {
        self.saved(0)
    }

    /// A saved argument.
    pub fn saved(&self, at: usize) -> &Tensor {
        self.kept(Save::In(at))
    }

    /// The one result, saved.
    pub fn result(&self) -> &Tensor {
        self.output(0)
    }

    /// A saved result of several.
    pub fn output(&self, n: usize) -> &Tensor {
        self.kept(Save::Out(n))
    }

    /// The saved argument, or the number that was passed instead.
    pub fn operand(&self, at: usize) -> Arg {
        match self.args.get(at) {
            Arg::Taken => Arg::Tensor(self.saved(at).clone()),
            other => other.clone(),
        }
    }

    /// The saved argument, if a tensor was passed.
    pub fn opt_input(&self, at: usize) -> Option<&Tensor> {
        matches!(self.args.get(at), Arg::Taken).then(|| self.saved(at))
    }

    /// The slot of an argument. Not: of arguments after a list of tensors, which has a slot for each.
    fn slot(&self, at: usize) -> usize {
        self.op.params[..at].iter().filter(|param| param.kind.takes_tensor()).count()
    }

    /// Whether a gradient for this argument is needed.
    pub fn needs(&self, at: usize) -> bool {
        self.needs_slot(self.slot(at))
    }

    /// Whether a gradient for this slot is needed.
    pub fn needs_slot(&self, slot: usize) -> bool {
        self.needs.get(slot).copied().unwrap_or(false)
    }

    /// Shape, dtype and device of an argument, a tensor.
    pub fn meta(&self, at: usize) -> &Meta {
        self.slot_meta(self.slot(at))
    }

    /// Shape, dtype and device of the tensor in a gradient slot.
    pub fn slot_meta(&self, slot: usize) -> &Meta {
        self.inputs[slot].as_ref().expect("a tensor stood here")
    }
}

//! Carries out calls of rows: checks devices, infers results, records nodes, maintains the gradient graph.

use super::devices::{as_written, common_device};
use super::inplace::inplace_shape;
use super::{batch, check, history};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{self, Layout, Shape};
use crate::base::rng::Generator;
use crate::base::span::Origin;
use crate::fail;
use crate::kernel::program::{Check, Draw, Function, ReduceKind};
use crate::kernel::recurrent;
use crate::op::args::Args;
use crate::op::complex::{self, Rule};
use crate::op::emit::{Emit, KernelCall};
use crate::op::formula::Formula;
use crate::op::infer::{self, Operand};
use crate::op::row::{Lower, Op, Promote, ReduceType, Source};
use crate::op::tensor::{Meta, Tensor, View, seen_complex};
use crate::sched::execute::transfer::Asked;
use crate::sched::order::gate::Gate;
use crate::sched::runtime::Runtime;
use crate::sched::window::node::{Drawn, Input, Node, Work};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Results of a row: nearly always one.
pub type Results = SmallVec<[Tensor; 1]>;

/// Calls a function with each of some tensors.
pub type EachTensor<'a> = &'a dyn Fn(&mut dyn FnMut(&Tensor));

pub(super) type KernelRule = fn(&mut dyn Emit, &Args) -> Result<KernelCall>;

/// One call from a script or a host program.
pub struct Engine {
    pub rt: Arc<Runtime>,
    pub origin: Origin,
    /// The operation as the script wrote it: operations inside a composition are not named in messages.
    pub name: &'static str,
    /// Above 0 nothing is added to the gradient graph.
    pub quiet: u32,
    /// Copies between devices may still be in flight when the call returns.
    pub non_blocking: bool,
    /// New host tensors are created in pinned memory.
    pub pinned: bool,
    /// Under autocast, the parts of the current operation are cast.
    pub(super) casts_parts: bool,
    /// Of a step that a scaler of gradients takes: by device a number that is not 0 if the step is to be left out.
    pub found_inf: Vec<Tensor>,
    /// The gate of the current step.
    pub gate: Option<Arc<Gate>>,
    /// Operands of the outermost operation.
    given: SmallVec<[Given; 4]>,
    /// The random generator before the outermost operation's first use.
    undrawn: Option<Generator>,
}

/// An operand as the script passed it.
struct Given {
    buffer: u64,
    dtype: DType,
    numel: usize,
    made: Origin,
}

impl Engine {
    pub fn new(rt: Arc<Runtime>, origin: Origin) -> Engine {
        Engine {
            rt,
            origin,
            name: "",
            quiet: 0,
            non_blocking: false,
            pinned: false,
            casts_parts: false,
            found_inf: Vec::new(),
            gate: None,
            given: SmallVec::new(),
            undrawn: None,
        }
    }

    /// Calls `work` without recording gradients.
    pub fn without_recording<R>(&mut self, work: impl FnOnce(&mut Engine) -> R) -> R {
        self.quiet += 1;
        let result = work(self);
        self.quiet -= 1;
        result
    }

    /// An operation, or a part of one. A call that is refused uses no random numbers; one that fails late has used
    /// them, in every mode: with `--blocking` its fault ends the call too.
    pub(super) fn named<R>(&mut self, name: &'static str, work: impl FnOnce(&mut Engine) -> Result<R>) -> Result<R> {
        let outer = self.name;
        if outer.is_empty() {
            self.name = name;
            self.undrawn = None;
        }
        let result = work(self);
        self.name = outer;
        if let Err(diag) = &result
            && outer.is_empty()
            && !diag.is_late
            && let Some(undrawn) = self.undrawn
        {
            self.rt.set_generator(undrawn);
        }
        result
    }

    /// An operation that is composed of rows and named as a whole. Under autocast its parts are cast, as they would be
    /// one by one.
    pub(super) fn composed<R>(&mut self, name: &'static str, work: impl FnOnce(&mut Engine) -> Result<R>) -> Result<R> {
        let outer = std::mem::replace(&mut self.casts_parts, true);
        let result = self.named(name, work);
        self.casts_parts = outer;
        result
    }

    /// What `work` records changes all that it writes, or nothing: where a fault before it is unreported, or one of the
    /// operands is poisoned. `written` lies on the devices whose faults count.
    pub fn held_as_one<R>(
        &mut self,
        written: EachTensor<'_>,
        operands: EachTensor<'_>,
        work: impl FnOnce(&mut Engine) -> Result<R>,
    ) -> Result<R> {
        let mut devices: SmallVec<[DeviceId; 2]> = SmallVec::new();
        written(&mut |tensor| {
            if !devices.contains(&tensor.device()) {
                devices.push(tensor.device());
            }
        });
        let reads = || {
            let mut reads = Vec::new();
            operands(&mut |tensor| reads.push(tensor.view()));
            reads
        };
        self.gate = Some(self.rt.gate(&devices, &reads)?);
        let result = work(self);
        self.gate = None;
        result
    }

    /// Reserves counters for `n` random values: seed and first counter.
    fn take_counters(&mut self, n: u64) -> (u64, u64) {
        let before = self.rt.draw(n);
        self.undrawn.get_or_insert(before);
        (before.seed, before.offset)
    }

    /// A contiguous result that is not computed yet.
    pub fn fresh(&self, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Arc<View>> {
        self.fresh_as(Layout::contiguous(shape), dtype, device)
    }

    /// A result without gaps that is not computed yet.
    fn fresh_as(&self, layout: Layout, dtype: DType, device: DeviceId) -> Result<Arc<View>> {
        let bytes = infer::size_bytes(&layout.shape, dtype)?;
        let home = self.rt.clone();
        let buffer = self.rt.buffer_at(home, device, bytes, self.pinned && device == DeviceId::Cpu);
        buffer.owned_by(self.origin);
        if self.rt.is_inference() {
            buffer.inference.store(true, Ordering::Relaxed);
        }
        self.rt.admit(&buffer)?;
        Ok(Arc::new(View::new(buffer, layout, dtype)))
    }

    pub fn tensor(&self, view: Arc<View>) -> Tensor {
        Tensor::new(view, self.origin)
    }

    pub(super) fn record(
        &self,
        work: Work,
        inputs: SmallVec<[Input; 3]>,
        outputs: SmallVec<[Arc<View>; 1]>,
    ) -> Result<()> {
        self.record_fallible(work, inputs, outputs, SmallVec::new())
    }

    /// As `record`, for operations that can fail on the values of operands that were created at these positions.
    pub(super) fn record_fallible(
        &self,
        work: Work,
        inputs: SmallVec<[Input; 3]>,
        outputs: SmallVec<[Arc<View>; 1]>,
        made: SmallVec<[Origin; 3]>,
    ) -> Result<()> {
        let complex = |view: &View| view.dtype.is_complex();
        if seen_complex()
            && (outputs.iter().any(|view| complex(view))
                || inputs.iter().any(|input| matches!(input, Input::View(view) if complex(view))))
        {
            return Err(complex::refused(self.name));
        }
        let (name, origin, gate) = (self.name, self.origin, self.gate.clone());
        let (begins_round, number, call_chain) = (false, 0, 0);
        let is_index =
            |input: &Input| matches!(input, Input::View(view) if view.dtype.is_int() && view.layout.numel() > 0);
        // An index into nothing is an error at once: what is computed of no elements depends on no work.
        let nothing = outputs.iter().all(|view| view.layout.numel() == 0) && inputs.iter().any(is_index);
        let watched = if nothing { outputs.first().cloned() } else { None };
        self.rt.record(Node { name, origin, gate, begins_round, work, inputs, outputs, made, number, call_chain })?;
        watched.map_or(Ok(()), |view| self.rt.settle(&view))
    }

    /// Keeps the operands of the script's operation, if inner operations may use them through their own views.
    fn note_given(&mut self, op: &Op, args: &Args) {
        if self.name.is_empty() && matches!(op.lower, Lower::Kernel(_) | Lower::Steps(_) | Lower::Compose(_)) {
            self.given.clear();
            args.for_each_tensor(|tensor| {
                let (buffer, dtype, numel) = tensor.with_view(|view| (view.buffer.id, view.dtype, view.layout.numel()));
                self.given.push(Given { buffer, dtype, numel, made: tensor.0.made });
            });
        }
    }

    /// Where the operands of a kernel were created. Tensors that the operation itself created have no source line: a
    /// view gets that of the operand behind it, a new tensor that of the last operand of its kind, since operations
    /// take the indexed tensor before the index.
    pub(super) fn made_of(&self, inputs: &[Tensor]) -> SmallVec<[Origin; 3]> {
        let made = |tensor: &Tensor| {
            if tensor.0.made != self.origin || self.given.is_empty() {
                return tensor.0.made;
            }
            let view = tensor.view();
            let (buffer, dtype, numel) = (view.buffer.id, view.dtype, view.layout.numel());
            let given = self.given.iter().find(|given| given.buffer == buffer);
            let same_kind = |same: &dyn Fn(&&Given) -> bool| self.given.iter().rev().find(same);
            let given = given.or_else(|| same_kind(&|given| given.dtype == dtype && given.numel == numel));
            given.or_else(|| same_kind(&|given| given.dtype == dtype)).map_or(tensor.0.made, |given| given.made)
        };
        let mut places = SmallVec::with_capacity(inputs.len());
        inputs.iter().for_each(|tensor| places.push(made(tensor)));
        places
    }

    /// The value of a `Map` row: into `dest`, or into a new tensor.
    pub(super) fn map(&mut self, op: &'static Op, args: &Args, dest: Option<Arc<View>>) -> Result<Arc<View>> {
        let Lower::Map { function, promote } = &op.lower else { unreachable!("a Map row") };
        if *promote == Promote::Copy {
            let dest = dest.ok_or_else(|| Diag::error(code::INTERNAL, "a copy needs a destination"))?;
            let outer = self.non_blocking;
            self.non_blocking |= args.flag(2);
            let copied = self.copy_into(&dest, args.get(1));
            self.non_blocking = outer;
            copied?;
            return Ok(dest);
        }
        let operands = infer::operands(args, function.variants[0].args.len())?;
        let device = self.device_of(&operands)?;
        let plan = infer::map(*promote, &operands, self.rt.default_float())?;
        let function = function.of_width(plan.result);
        let wider;
        let shape = match infer::same_shape(&operands) {
            Some(shape) => shape,
            None => {
                let shapes = operands.iter().filter_map(Operand::view).map(|view| view.shape());
                wider = infer::broadcast_all(shapes)?;
                &wider
            }
        };
        let is_new = dest.is_none();
        let output = match dest {
            Some(dest) => {
                if dest.shape() != shape {
                    return Err(inplace_shape(dest.shape(), shape));
                }
                if !plan.result.can_cast(dest.dtype) {
                    fail!(
                        DTYPE,
                        "a result of dtype {} cannot be stored in a tensor of dtype {}",
                        plan.result,
                        dest.dtype
                    );
                }
                dest
            }
            None => {
                let views = operands.iter().filter_map(Operand::view);
                self.fresh_as(layout::of_operands(shape, views.map(|view| &view.layout)), plan.result, device)?
            }
        };
        let check = if output.layout.numel() == 0 { None } else { value_check(function, plan.result, &operands)? };
        let made = if check.is_some() { made_by(&operands) } else { SmallVec::new() };
        let mut inputs = SmallVec::new();
        // Comparisons and remainders take a number as an element.
        let exact = *promote == Promote::Compare || matches!(op.name, "fmod" | "remainder");
        for (at, operand) in operands.into_iter().enumerate() {
            let number = |scalar| Input::Scalar(if exact { rounded(scalar, plan.args[at]) } else { scalar });
            inputs.push(match operand {
                Operand::Number(scalar) => number(scalar),
                // A 0-dimensional tensor of the host is passed as a number.
                Operand::Tensor(tensor, view) if view.buffer.device != device => {
                    number(super::observe::item(&self.rt, tensor)?)
                }
                Operand::Tensor(_, view) => Input::View(view),
            });
        }
        let work = if plan.identity {
            Work::Map { function: None, args: smallvec![plan.result], result: plan.result, check: None }
        } else {
            Work::Map { function: Some(function), args: plan.args, result: plan.result, check }
        };
        if output.layout.numel() > 0 {
            self.record_fallible(work, inputs, smallvec![output.clone()], made)?;
        }
        if is_new {
            output.made();
        }
        Ok(output)
    }

    fn reduce(&mut self, op: &'static Op, args: &Args) -> Result<Tensor> {
        let Lower::Reduce { mut kind, dtype } = op.lower else { unreachable!("a Reduce row") };
        let x = args.tensor(0).view();
        let dims = infer::dims(args.ints(1).as_ref(), x.layout.ndim())?;
        if x.layout.ndim() > crate::base::limits::MAX_DIMS {
            fail!(VALUE, "{} dimensions are more than a tensor may have", x.layout.ndim());
        }
        let keepdim = args.flag(2);
        let asked = if op.params.len() > 3 { args.dtype(3) } else { None };
        let out_type = infer::reduce_type(dtype, x.dtype, asked);
        let compute = match dtype {
            ReduceType::Sum => out_type,
            ReduceType::Bool => DType::Bool,
            _ => x.dtype,
        };
        // Sums and products of `bool` are distinguished by dtype: `any` and `all`.
        if out_type == DType::Bool {
            kind = match kind {
                ReduceKind::Sum => ReduceKind::Any,
                ReduceKind::Prod => ReduceKind::All,
                other => other,
            };
        }
        let shape = infer::reduced_shape(x.shape(), &dims, keepdim);
        let empty_reduction = dims.iter().any(|&dim| x.shape()[dim] == 0);
        let extremum = !matches!(kind, ReduceKind::Sum | ReduceKind::Prod | ReduceKind::Any | ReduceKind::All);
        if empty_reduction && (extremum || !shape.contains(&0)) {
            let identity = match kind {
                ReduceKind::Sum => Scalar::Int(0),
                ReduceKind::Prod => Scalar::Int(1),
                ReduceKind::Any => Scalar::Bool(false),
                ReduceKind::All => Scalar::Bool(true),
                _ => return Err(empty_extremum(x.shape(), args.is_none(1))),
            };
            return self.source(Source::Fill(identity), &shape, out_type, x.buffer.device);
        }
        let output = self.fresh(&shape, out_type, x.buffer.device)?;
        if output.layout.numel() == 0 {
            return Ok(self.tensor(output));
        }
        let mask = dims.iter().fold(0u32, |mask, &dim| mask | 1 << dim);
        let work = Work::Reduce { kind, dims: mask, keepdim, compute };
        self.record(work, smallvec![Input::View(x)], smallvec![output.clone()])?;
        output.made();
        Ok(self.tensor(output))
    }

    #[inline(always)]
    fn run(&mut self, op: &'static Op, args: &Args) -> Result<Results> {
        match &op.lower {
            Lower::Map { .. } => self.map(op, args, None).map(|view| smallvec![self.tensor(view)]),
            Lower::Reduce { .. } => self.reduce(op, args).map(|result| smallvec![result]),
            Lower::View(rule) => {
                let layout = rule(args)?;
                if layout.ndim() > crate::base::limits::MAX_DIMS {
                    fail!(VALUE, "the view would have {} dimensions, more than a tensor may have", layout.ndim());
                }
                Ok(smallvec![self.alias(args.tensor(0), layout)])
            }
            Lower::Kernel(rule) => {
                let call = self.without_recording(|e| rule(e, args))?;
                self.queue(call)
            }
            Lower::Steps(rule) => {
                let results = self.without_recording(|e| rule(e, args)).map(Results::from_vec)?;
                made_in_steps(args, &results);
                Ok(results)
            }
            Lower::Compose(rule) => {
                let results = rule(self, args).map(Results::from_vec)?;
                made_in_steps(args, &results);
                Ok(results)
            }
            Lower::Unset => fail!(INTERNAL, "this operation has no implementation"),
        }
    }

    /// A step that is held as one.
    #[inline(never)]
    fn run_held(&mut self, op: &'static Op, args: &Args) -> Result<Results> {
        let written: EachTensor<'_> = &|visit| args.get(0).for_each_tensor(visit);
        self.held_as_one(written, &|visit| args.for_each_tensor(visit), |e| e.run(op, args))
    }

    pub(super) fn cast_to(&mut self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        (self as &mut dyn Emit).cast(x, dtype)
    }

    pub fn call_row(&mut self, op: &'static Op, args: Args) -> Result<Tensor> {
        self.one(op, args)
    }

    /// The results of a row. `args` are complete.
    #[inline]
    pub fn results(&mut self, op: &'static Op, args: &Args) -> Result<Results> {
        if self.rt.autocast.is_on() && !complex::involved(args) && (self.name.is_empty() || self.casts_parts) {
            return super::autocast::results(self, op, args);
        }
        self.as_given(op, args)
    }

    /// The same, whatever autocast says.
    pub(super) fn as_given(&mut self, op: &'static Op, args: &Args) -> Result<Results> {
        if self.rt.samples.were_used()
            && let Some(results) = batch::called(self, op, args)?
        {
            return Ok(results);
        }
        let check = check::before(self, op, args);
        // Compositions may call rows without limit. Those under one gate are not interrupted.
        if !self.name.is_empty() && self.gate.is_none() {
            self.rt.heed()?;
        }
        self.note_given(op, args);
        let results = self.named(op.name, |e| -> Result<Results> {
            if complex::involved(args)
                && let Some(results) = e.complex(op, args)?
            {
                return Ok(results);
            }
            let ran = if op.guarded && e.gate.is_none() { e.run_held(op, args) } else { e.run(op, args) };
            let results = ran.map_err(|diag| as_written(diag, args))?;
            if !matches!(op.lower, Lower::Compose(_)) {
                history::track(e, op, args, &results)?;
            }
            Ok(results)
        })?;
        if check {
            check::after(self, op.name, args, &results)?;
        }
        Ok(results)
    }

    /// A call with complex operands by its own rule; none if the row's is right for them.
    #[inline(never)]
    fn complex(&mut self, op: &'static Op, args: &Args) -> Result<Option<Results>> {
        match complex::rule(op, args)? {
            Rule::Plain => Ok(None),
            Rule::Parts(at) => complex::by_parts(self, op, args, at).map(Results::from_vec).map(Some),
            Rule::Compose(rule) => rule.run(self, op, args).map(Results::from_vec).map(Some),
            Rule::Analytic(rule) | Rule::Tracked(rule) => {
                let results = self.without_recording(|e| rule.run(e, op, args))?;
                let results = Results::from_vec(results);
                history::track(self, op, args, &results)?;
                Ok(Some(results))
            }
        }
    }

    /// Queues one kernel. Not differentiated.
    fn queue(&mut self, mut call: KernelCall) -> Result<Results> {
        if call.inputs.iter().any(|input| input.samples().is_some()) {
            return Err(batch::slice_wise());
        }
        let mut views: SmallVec<[Input; 3]> = SmallVec::with_capacity(call.inputs.len());
        // The common device of all inputs, if there is one.
        let (mut first, mut together) = (None, true);
        for tensor in &call.inputs {
            let view = tensor.view();
            together &= *first.get_or_insert(view.buffer.device) == view.buffer.device;
            views.push(Input::View(view));
        }
        let device = match (call.device, first) {
            (Some(device), _) => device,
            (None, Some(device)) if together => device,
            (None, _) => common_device(call.inputs.iter())?.unwrap_or_else(|| self.rt.default_device()),
        };
        let mut outputs: SmallVec<[Arc<View>; 1]> = SmallVec::with_capacity(call.outputs.len());
        for spec in &call.outputs {
            outputs.push(self.fresh(&spec.shape, spec.dtype, device)?);
        }
        let (seed, offset) = if call.draws > 0 { self.take_counters(call.draws) } else { (0, 0) };
        let made = self.made_of(&call.inputs);
        // Copies of operands are kept until the kernel is recorded.
        let brought;
        let inputs = if first.is_none() || (together && first == Some(device)) {
            views
        } else {
            brought = self.on_device(std::mem::take(&mut call.inputs), device)?;
            brought.iter().map(|tensor| Input::View(tensor.view())).collect()
        };
        let work = Work::Kernel { kernel: call.kernel, attrs: std::mem::take(&mut call.attrs), seed, offset };
        let outer = self.name;
        if outer.is_empty() {
            self.name = call.name;
        }
        let mut written = SmallVec::with_capacity(outputs.len());
        outputs.iter().for_each(|view| written.push(view.clone()));
        let recorded = self.record_fallible(work, inputs, written, made);
        self.name = outer;
        recorded?;
        let mut results = Results::with_capacity(outputs.len());
        for view in outputs {
            view.made();
            results.push(self.tensor(view));
        }
        Ok(results)
    }
}

/// The operation that created these results in several steps has ended, unless it returned an argument.
fn made_in_steps(args: &Args, results: &Results) {
    for result in results {
        // Nearly always the last step has made it.
        if result.with_view(View::is_made) {
            continue;
        }
        let view = result.view();
        let mut given = false;
        args.for_each_tensor(|tensor| given |= tensor.with_view(|other| Arc::ptr_eq(&other.buffer, &view.buffer)));
        if !given {
            view.made();
        }
    }
}

/// Where the operands were created; none for numbers.
fn made_by(operands: &[Operand<'_>]) -> SmallVec<[Origin; 3]> {
    let made = |operand: &Operand<'_>| match operand {
        Operand::Tensor(tensor, _) => tensor.0.made,
        Operand::Number(_) => Origin::NONE,
    };
    operands.iter().map(made).collect()
}

/// A number as a tensor of 16-bit floats holds it.
fn rounded(number: Scalar, dtype: DType) -> Scalar {
    match dtype {
        DType::F16 => Scalar::Float(half::f16::from_f64(number.to_f64()).to_f64()),
        DType::BF16 => Scalar::Float(half::bf16::from_f64(number.to_f64()).to_f64()),
        _ => number,
    }
}

/// The check while computing; an error now for a literal zero as an integer divisor.
fn value_check(function: &'static Function, result: DType, operands: &[Operand<'_>]) -> Result<Option<(u8, Check)>> {
    let Some((at, check)) = function.check else { return Ok(None) };
    if check == Check::NonZero && !result.is_int() {
        return Ok(None);
    }
    match &operands[at as usize] {
        // Also one that is zero once it has wrapped: 256 of `i8`.
        Operand::Number(scalar) if check == Check::NonZero && result.wrap(scalar.to_i64()) == 0 => {
            fail!(ARITHMETIC, "division of integers by zero")
        }
        Operand::Number(_) => Ok(None),
        Operand::Tensor(..) => Ok(Some((at, check))),
    }
}

#[cold]
fn empty_extremum(shape: &[usize], all: bool) -> Box<Diag> {
    let which = if all { "no elements".to_string() } else { format!("shape {shape:?}") };
    Diag::error(code::SHAPE, format!("a tensor of {which} has no smallest or largest element"))
        .note("the reduction runs over a dimension of size 0 and has no identity")
}

impl Emit for Engine {
    fn apply(&mut self, op: &'static Op, mut args: Args) -> Result<Vec<Tensor>> {
        args.complete(op);
        self.results(op, &args).map(Results::into_vec)
    }

    fn one(&mut self, op: &'static Op, mut args: Args) -> Result<Tensor> {
        args.complete(op);
        let mut results = self.results(op, &args)?;
        match results.len() {
            0 => fail!(INTERNAL, "a row gave no result"),
            _ => Ok(results.swap_remove(0)),
        }
    }

    fn warn(&mut self, mut diag: Box<Diag>) {
        if self.rt.is_first_warning(diag.code, self.origin.user) {
            diag.message = format!("`{}`: {}", self.name, diag.message);
            self.rt.warn(diag.or_at(self.origin, "in this call"));
        }
    }

    fn apply_inplace(&mut self, op: &'static Op, mut args: Args) -> Result<Tensor> {
        args.complete(op);
        if self.rt.samples.were_used()
            && let Some(changed) = batch::changed(self, op, &args)?
        {
            return Ok(changed);
        }
        let name = if self.name.is_empty() { crate::op::table::inplace_name(op) } else { op.name };
        let check = check::before(self, op, &args);
        self.note_given(op, &args);
        if !check {
            return self.named(name, |e| e.inplace(op, args));
        }
        let changed = self.named(name, |e| e.inplace(op, args.clone()))?;
        check::after(self, name, &args, std::slice::from_ref(&changed))?;
        Ok(changed)
    }

    fn kernel(&mut self, call: KernelCall) -> Result<Vec<Tensor>> {
        self.queue(call).map(Results::into_vec)
    }

    fn each(&mut self, lists: &[&[Tensor]], formula: &mut dyn FnMut(&Formula)) -> Result<()> {
        if let Some(x) = lists.iter().copied().flatten().find(|x| x.samples().is_some()) {
            return Err(batch::needs_value(x));
        }
        if lists.iter().copied().flatten().any(|tensor| tensor.dtype().is_complex()) {
            // A step of an optimizer treats both parts as parameters, as in PyTorch.
            let mut real = |tensor: &Tensor| self.tensor(tensor.view().as_real());
            let lists: Vec<Vec<Tensor>> = lists.iter().map(|list| list.iter().map(&mut real).collect()).collect();
            let lists: Vec<&[Tensor]> = lists.iter().map(Vec::as_slice).collect();
            return super::each::each(self, &lists, formula);
        }
        super::each::each(self, lists, formula)
    }

    fn source(&mut self, source: Source, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
        let output = self.fresh(shape, dtype, device)?;
        if dtype.is_complex() {
            let Source::Fill(value) = source else { return Err(complex::refused(self.name)) };
            self.copy_into(&output, &value.into())?;
            output.made();
            return Ok(self.tensor(output));
        }
        if output.layout.numel() > 0 {
            let (input, from) = match source {
                Source::Fill(value) => (Input::Scalar(value), dtype),
                Source::Position => (Input::Position, DType::I64),
                Source::Random { draw, seed, offset } => {
                    (Input::Random(Box::new(Drawn { draw, seed, offset, low: 0, range: 0 })), dtype)
                }
                Source::Integers { seed, offset, low, range } => {
                    let drawn = Drawn { draw: Draw::Integer, seed, offset, low, range };
                    (Input::Random(Box::new(drawn)), DType::I64)
                }
            };
            let work = Work::Map { function: None, args: smallvec![from], result: from, check: None };
            // Work without an operation, such as the initial gradient of `backward`, has a name in profiles.
            let outer = self.name;
            self.name = if outer.is_empty() { "fill" } else { outer };
            let recorded = self.record(work, smallvec![input], smallvec![output.clone()]);
            self.name = outer;
            recorded?;
            output.made();
        }
        Ok(self.tensor(output))
    }

    fn empty(&mut self, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
        let view = self.fresh(shape, dtype, device)?;
        view.write_by(self.origin);
        view.made();
        let tensor = self.tensor(view.clone());
        if device.is_cuda() {
            self.rt.give_memory(&view.buffer)?;
        }
        Ok(tensor)
    }

    fn upload(&mut self, bytes: &[u8], shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
        let view = self.fresh(shape, dtype, device)?;
        let tensor = self.tensor(view.clone());
        let view = view.as_real();
        if device.is_cuda() {
            let name = if self.name.is_empty() { "tensor" } else { self.name };
            self.rt.upload_to_device(&view, bytes, Asked { name, origin: self.origin, non_blocking: false })?;
        } else {
            self.rt.upload(&view, bytes)?;
        }
        view.write_by(self.origin);
        view.made();
        Ok(tensor)
    }

    fn alias(&mut self, tensor: &Tensor, mut layout: Layout) -> Tensor {
        if let Some(samples) = tensor.samples() {
            // The same elements of each sample: the layout is that of the first one.
            let all = samples.value.view();
            let k = samples.levels.len();
            layout.shape.insert_from_slice(0, &all.layout.shape[..k]);
            layout.strides.insert_from_slice(0, &all.layout.strides[..k]);
            let value = self.alias(&samples.value, layout);
            return batch::like(self, value, tensor);
        }
        let view = tensor.with_view(|view| {
            // Guards against wrong rows: no access outside of the buffer.
            let ends = layout.extent().map_or(0, |(_, end)| end.saturating_mul(view.dtype.size_bytes()));
            assert!(ends <= view.buffer.size_bytes, "a view of {ends} bytes of {}", view.buffer.size_bytes);
            Arc::new(view.with_layout(layout))
        });
        self.tensor(view)
    }

    fn reinterpret(&mut self, tensor: &Tensor, layout: Layout, dtype: DType) -> Tensor {
        let view = tensor.with_view(|view| view.reinterpreted(layout, dtype));
        self.tensor(Arc::new(view))
    }

    fn detach(&mut self, tensor: &Tensor) -> Tensor {
        if let Some(samples) = tensor.samples() {
            let value = self.tensor(samples.value.view());
            return batch::like(self, value, tensor);
        }
        self.tensor(tensor.view())
    }

    fn made_together(&mut self, views: &[Tensor]) {
        history::made_together(self, views);
    }

    fn made_apart(&mut self, views: &[Tensor]) {
        history::made_apart(views);
    }

    fn relayout(&mut self, x: &Tensor, y: &Tensor) -> Result<()> {
        history::relayout(self, x, y)
    }

    fn with_row_grads(&mut self, table: &Tensor, index: &Tensor, padding: Option<i64>, rows: Tensor) -> Result<Tensor> {
        super::row_grads::record(self, table, index, padding, rows)
    }

    fn host_room(&self, bytes: usize) -> Result<()> {
        self.rt.host_room(bytes)
    }

    fn recurrent_reserve(
        &self,
        layer: &recurrent::layer::Layer,
        dtype: DType,
        biased: bool,
        device: DeviceId,
    ) -> usize {
        self.rt.recurrent_reserve(device, layer, dtype, biased)
    }

    fn read(&mut self, tensor: &Tensor) -> Result<Vec<Scalar>> {
        if tensor.samples().is_some() {
            return Err(batch::slice_wise());
        }
        super::observe::scalars(&self.rt, tensor)
    }

    fn default_float(&self) -> DType {
        self.rt.default_float()
    }

    fn default_device(&self) -> DeviceId {
        self.rt.default_device()
    }

    fn draw(&mut self, n: u64) -> (u64, u64) {
        self.take_counters(n)
    }

    fn grad_enabled(&self) -> bool {
        self.quiet == 0 && self.rt.grad_enabled()
    }
}

/// Shape and dtype of a tensor, for the label "made here".
pub fn describe(meta: &Meta) -> String {
    let shape: &Shape = &meta.shape;
    format!("{} {:?} on {}", meta.dtype, shape.as_slice(), meta.device)
}

//! `func::vmap`: a function of one sample becomes one of many.

use super::calls::{Call, closure, function};
use super::jacobian::chunk;
use super::tree;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::Source;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::{MOVEDIM, NARROW};
use crate::op::tensor::Levels;
use crate::sched::runtime::Runtime;
use crate::sched::samples::{Level, Randomness};
use crate::script::bind::convert::integer;
use crate::script::bind::native::{native, text};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::batch;
use crate::tensor::engine::Engine;
use rhai::{Array, Dynamic};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    native(natives, host, "func::vmap", move |_, _, [f, in_dims, out_dims, random, chunk_size]| {
        let mapped = Mapped {
            f: function(f)?,
            in_dims: in_dims.flatten_clone(),
            out_dims: out_dims.flatten_clone(),
            randomness: randomness(random)?,
            chunk: chunk(chunk_size)?,
        };
        check_dims("in_dims", &mapped.in_dims)?;
        check_dims("out_dims", &mapped.out_dims)?;
        closure(&shared, "vmap", move |call, arguments| mapped.call(call, arguments))
    });
}

/// The value of `randomness`.
pub fn randomness(value: &Dynamic) -> Result<Randomness> {
    match text("randomness", value)?.as_str() {
        "error" => Ok(Randomness::Error),
        "same" => Ok(Randomness::Same),
        "different" => Ok(Randomness::Different),
        other => Err(Diag::error(
            code::VALUE,
            format!("`randomness` is \"error\", \"same\" or \"different\", not \"{other}\""),
        )),
    }
}

/// Dims are integers or `()`, or arrays and maps of them.
fn check_dims(name: &str, dims: &Dynamic) -> Result<()> {
    for leaf in tree::leaves(dims)? {
        if !leaf.is_unit() && integer(&leaf).is_none() {
            let found = type_names::of_value(&leaf);
            let text = format!("`{name}` holds integers and `()`, as the arguments are nested, and not {found}");
            return Err(Diag::error(code::ARGUMENT_TYPE, text));
        }
    }
    Ok(())
}

/// A level that ends when this is dropped.
pub struct Entered {
    rt: Arc<Runtime>,
    level: Level,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.rt.samples.leave(self.level.number);
    }
}

impl Entered {
    pub fn new(rt: &Arc<Runtime>, samples: usize, randomness: Randomness) -> Entered {
        Entered { rt: rt.clone(), level: rt.samples.enter(samples, randomness) }
    }

    /// A tensor as each sample sees it: without the dim in which the samples are.
    pub fn hide(&self, e: &mut Engine, x: &Tensor, dim: usize) -> Result<Tensor> {
        let x = if dim == 0 { x.clone() } else { e.call_row(&MOVEDIM, args![x, dim, 0])? };
        let mut levels: Levels = batch::levels(&x);
        levels.push(self.level.number);
        Ok(batch::hide(e, batch::value(&x), &levels))
    }

    /// A tensor with all samples of this level, in a dim before the others.
    pub fn show(&self, e: &mut Engine, x: &Tensor) -> Result<Tensor> {
        batch::shown(e, x, &Levels::from_slice(&[self.level.number]))
    }

    fn has(&self, x: &Tensor) -> bool {
        batch::levels(x).contains(&self.level.number)
    }
}

/// A function that is mapped.
struct Mapped {
    f: Dynamic,
    in_dims: Dynamic,
    out_dims: Dynamic,
    randomness: Randomness,
    chunk: Option<usize>,
}

/// A leaf of the arguments, and the dim of its samples.
struct Leaf {
    value: Dynamic,
    dim: Option<usize>,
}

impl Mapped {
    fn call(&self, call: &Call, arguments: Array) -> Native {
        let given = Dynamic::from(arguments);
        let (mut leaves, samples) = self.leaves(&given).map_err(|diag| call.wrong(diag))?;
        if samples == 0 {
            return self.of_none(call, &given, &mut leaves);
        }
        let step = self.chunk.unwrap_or(samples).min(samples);
        let generator = call.host.rt.generator();
        let mut parts = Vec::new();
        for from in (0..samples).step_by(step) {
            if self.randomness == Randomness::Same {
                call.host.rt.set_generator(generator);
            }
            let count = step.min(samples - from);
            parts.push(self.part(call, &given, &leaves, from, count, count < samples)?);
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0).0);
        }
        call.with(|e| joined(e, parts))
    }

    /// The results of no samples: those of a sample of zeros tell their shapes. It draws no random numbers.
    fn of_none(&self, call: &Call, given: &Dynamic, leaves: &mut [Leaf]) -> Native {
        call.with(|e| {
            for leaf in leaves.iter_mut() {
                if let (Some(x), Some(dim)) = (tree::tensor(&leaf.value), leaf.dim) {
                    let mut shape = x.shape();
                    shape[dim] = 1;
                    let zero = Source::Fill(Scalar::Int(0));
                    leaf.value = Dynamic::from(Emit::source(e, zero, &shape, x.dtype(), x.device())?);
                }
            }
            Ok(())
        })?;
        let generator = call.host.rt.generator();
        let found = self.part(call, given, leaves, 0, 1, false);
        call.host.rt.set_generator(generator);
        let (output, places) = found?;
        call.with(|e| {
            let mut all = Vec::new();
            for (y, place) in tree::tensors(&output, "what the function gives")?.into_iter().zip(places) {
                all.push(match place {
                    Some(dim) => e.call_row(&NARROW, args![&y, dim, 0, 0])?,
                    None => y,
                });
            }
            Ok(tree::of_tensors(&output, all))
        })
    }

    /// The leaves of the arguments, and how many samples there are.
    fn leaves(&self, given: &Dynamic) -> Result<(Vec<Leaf>, usize)> {
        let mut dims = Vec::new();
        if !tree::spread(&self.in_dims, given, &mut dims) {
            return Err(Diag::error(
                code::TRANSFORM,
                "`in_dims` must be a dim, or nested as the arguments are: an array with an entry for each of them",
            ));
        }
        let (mut found, mut samples) = (Vec::new(), None);
        for (value, dim) in tree::leaves(given)?.into_iter().zip(dims) {
            let Some(dim) = integer(&dim) else {
                found.push(Leaf { value, dim: None });
                continue;
            };
            let Some(x) = tree::tensor(&value) else {
                let kind = type_names::of_value(&value);
                return Err(Diag::error(code::TRANSFORM, format!("there is nothing to map over in {kind}"))
                    .help("only tensors have samples: the entry of other arguments in `in_dims` is `()`"));
            };
            if x.ndim() == 0 {
                let diag = Diag::error(code::TRANSFORM, "a tensor without dimensions has no samples");
                return Err(diag.help("the entry of an argument that all samples share is `()` in `in_dims`"));
            }
            let dim = infer::dim(dim, x.ndim())?;
            let own = x.shape()[dim];
            if samples.is_some_and(|known| known != own) {
                let text = format!("the arguments have {} and {own} samples", samples.unwrap_or(0));
                return Err(Diag::error(code::TRANSFORM, text).help("all dims that `in_dims` names must have one size"));
            }
            samples = Some(own);
            found.push(Leaf { value, dim: Some(dim) });
        }
        match samples {
            None => Err(Diag::error(code::TRANSFORM, "no argument has samples")
                .help("`in_dims` must name a dim of at least one argument")),
            Some(samples) => Ok((found, samples)),
        }
    }

    /// The results for some of the samples, and the dim in which each has them.
    fn part(
        &self,
        call: &Call,
        given: &Dynamic,
        leaves: &[Leaf],
        from: usize,
        count: usize,
        is_part: bool,
    ) -> std::result::Result<(Dynamic, Vec<Option<usize>>), Box<rhai::EvalAltResult>> {
        let level = Entered::new(&call.host.rt, count, self.randomness);
        let inputs = call.with(|e| {
            let mut all = Vec::new();
            for leaf in leaves {
                let (Some(x), Some(dim)) = (tree::tensor(&leaf.value), leaf.dim) else {
                    all.push(leaf.value.clone());
                    continue;
                };
                let x = if is_part { e.call_row(&NARROW, args![&x, dim, from, count])? } else { x };
                all.push(Dynamic::from(level.hide(e, &x, dim)?));
            }
            Ok(tree::rebuilt(given, &mut all.into_iter()))
        })?;
        let output = call.apply(&self.f, inputs.cast::<Array>())?;
        call.with(|e| self.shown(e, &level, &output))
    }

    /// The results with their samples in sight, where `out_dims` wants them.
    fn shown(&self, e: &mut Engine, level: &Entered, output: &Dynamic) -> Result<(Dynamic, Vec<Option<usize>>)> {
        let ys = tree::tensors(output, "what the function gives")?;
        let mut dims = Vec::new();
        if !tree::spread(&self.out_dims, output, &mut dims) {
            return Err(Diag::error(
                code::TRANSFORM,
                "`out_dims` must be a dim, or nested as the function's results are",
            ));
        }
        let (mut all, mut places) = (Vec::new(), Vec::new());
        for (y, dim) in ys.iter().zip(dims) {
            let Some(dim) = integer(&dim) else {
                if level.has(y) {
                    return Err(Diag::error(code::TRANSFORM, "a result for which `out_dims` has `()` has samples"));
                }
                all.push(y.clone());
                places.push(None);
                continue;
            };
            let at = infer::dim(dim, y.ndim() + 1)?;
            let shown = level.show(e, y)?;
            all.push(if at == 0 { shown } else { e.call_row(&MOVEDIM, args![&shown, 0, at])? });
            places.push(Some(at));
        }
        Ok((tree::of_tensors(output, all), places))
    }
}

/// The results of all parts.
fn joined(e: &mut Engine, parts: Vec<(Dynamic, Vec<Option<usize>>)>) -> Result<Dynamic> {
    let mut lists = Vec::new();
    for (output, _) in &parts {
        lists.push(tree::tensors(output, "what the function gives")?);
    }
    let (first, places) = &parts[0];
    if parts.iter().any(|(output, _)| !tree::is_alike(output, first)) {
        return Err(Diag::error(code::TRANSFORM, "the results of all samples must be nested in one way"));
    }
    let mut all = Vec::new();
    for (n, place) in places.iter().enumerate() {
        all.push(match place {
            None => lists[0][n].clone(),
            Some(dim) => {
                let pieces: Vec<Tensor> = lists.iter().map(|list| list[n].clone()).collect();
                e.call_row(&CAT, args![pieces, *dim])?
            }
        });
    }
    Ok(tree::of_tensors(first, all))
}

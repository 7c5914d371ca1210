//! What all transforms share: the function that they transform, the arguments that they differentiate for, and the inputs
//! that stand for these while the function runs.

use super::tree;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::sched::runtime::Runtime;
use crate::script::bind::apply::{apply, callee, not_callable};
use crate::script::bind::convert::integer;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::hooks::GradMode;
use crate::tensor::transforms;
use rhai::{Array, Dynamic, FnPtr, NativeCallContext};
use std::sync::Arc;

/// A call of a transformed function.
pub struct Call<'a> {
    pub host: &'a Arc<Host>,
    pub context: &'a NativeCallContext<'a>,
    /// The transform, for messages.
    pub name: &'static str,
}

impl Call<'_> {
    pub fn engine(&self) -> Engine {
        self.host.engine(self.context)
    }

    pub fn wrong(&self, diag: Box<Diag>) -> Box<rhai::EvalAltResult> {
        self.host.raise(self.context, named(self.name, diag), "")
    }

    /// Does work of the engine at the place of the call.
    pub fn with<R>(
        &self,
        work: impl FnOnce(&mut Engine) -> Result<R>,
    ) -> std::result::Result<R, Box<rhai::EvalAltResult>> {
        work(&mut self.engine()).map_err(|diag| self.wrong(diag))
    }

    /// Calls a function or a module of the script.
    pub fn apply(&self, function: &Dynamic, arguments: Array) -> Native {
        let mut function = function.clone();
        match apply(self.context, &mut function, arguments) {
            Some(result) => result,
            None => Err(self.wrong(not_callable(&function))),
        }
    }
}

/// A message begins with the name of the transform.
pub fn named(name: &str, mut diag: Box<Diag>) -> Box<Diag> {
    if !diag.is_late && !diag.message.starts_with('`') {
        diag.message = format!("`func::{name}`: {}", diag.message);
    }
    diag
}

/// The function that a transform takes.
pub fn function(value: &Dynamic) -> Result<Dynamic> {
    match callee(value) {
        Some(_) => Ok(value.flatten_clone()),
        None => Err(not_callable(value)),
    }
}

/// A function that a transform gives.
pub fn closure(
    host: &Arc<Host>,
    name: &'static str,
    run: impl Fn(&Call, Array) -> Native + Send + Sync + 'static,
) -> Result<Dynamic> {
    let host = host.clone();
    let call = move |context: NativeCallContext, values: &mut [&mut Dynamic]| -> Native {
        let arguments = values.iter().map(|value| value.flatten_clone()).collect();
        run(&Call { host: &host, context: &context, name }, arguments)
    };
    #[allow(deprecated)]
    let pointer = FnPtr::from_fn(name, call);
    pointer.map(Dynamic::from).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))
}

/// Which arguments a transform differentiates for: one, or several.
#[derive(Clone)]
pub enum Argnums {
    One(i64),
    Several(Vec<i64>),
}

impl Argnums {
    pub fn of(value: &Dynamic) -> Result<Argnums> {
        let wrong = |value: &Dynamic| {
            let text = format!("`argnums` is an integer or an array of integers, not {}", type_names::of_value(value));
            Diag::error(code::ARGUMENT_TYPE, text)
        };
        if let Some(items) = value.read_lock::<Array>() {
            let all: Option<Vec<i64>> = items.iter().map(integer).collect();
            let all = all.ok_or_else(|| wrong(value))?;
            if all.is_empty() {
                return Err(Diag::error(code::VALUE, "`argnums` is empty: there is nothing to differentiate for"));
            }
            return Ok(Argnums::Several(all));
        }
        integer(value).map(Argnums::One).ok_or_else(|| wrong(value))
    }

    /// The positions among so many arguments.
    pub fn positions(&self, count: usize) -> Result<Vec<usize>> {
        let all = match self {
            Argnums::One(at) => std::slice::from_ref(at),
            Argnums::Several(all) => all,
        };
        let mut found = Vec::new();
        for &at in all {
            let place = if at < 0 { at + count as i64 } else { at };
            if !(0..count as i64).contains(&place) {
                return Err(Diag::error(
                    code::VALUE,
                    format!("`argnums` names argument {at}, and the function was called with {count}"),
                ));
            }
            if found.contains(&(place as usize)) {
                return Err(Diag::error(code::VALUE, format!("`argnums` names argument {at} twice")));
            }
            found.push(place as usize);
        }
        Ok(found)
    }

    /// The arguments as one value: the one, or an array of them.
    pub fn chosen(&self, arguments: &Array, positions: &[usize]) -> Dynamic {
        match self {
            Argnums::One(_) => arguments[positions[0]].clone(),
            Argnums::Several(_) => positions.iter().map(|&at| arguments[at].clone()).collect::<Array>().into(),
        }
    }

    /// Puts such a value back to its places.
    pub fn put(&self, arguments: &mut Array, positions: &[usize], chosen: Dynamic) {
        match self {
            Argnums::One(_) => arguments[positions[0]] = chosen,
            Argnums::Several(_) => {
                let chosen = chosen.cast::<Array>();
                positions.iter().zip(chosen).for_each(|(&at, value)| arguments[at] = value);
            }
        }
    }
}

/// The mode of the innermost transform; puts the outer one back.
struct ForwardMode<'a>(&'a Runtime, bool);

impl ForwardMode<'_> {
    fn set(rt: &Runtime, on: bool) -> ForwardMode<'_> {
        ForwardMode(rt, rt.set_forward_mode(on))
    }
}

impl Drop for ForwardMode<'_> {
    fn drop(&mut self) {
        self.0.set_forward_mode(self.1);
    }
}

/// A function that has run with inputs of the transform's own.
pub struct Ran {
    /// The value for which it was differentiated, and its tensors.
    pub chosen: Dynamic,
    pub inputs: Vec<Tensor>,
    pub output: Dynamic,
    /// What it gave besides, with `has_aux`.
    pub aux: Option<Dynamic>,
    /// Whether operations were recorded outside of the transform.
    pub recorded: bool,
}

/// Runs a function with its inputs in place of some arguments. Within the transform operations are recorded, whatever the
/// mode is outside; the function itself may switch that off.
pub fn run(
    call: &Call,
    function: &Dynamic,
    argnums: &Argnums,
    mut arguments: Array,
    has_aux: bool,
) -> std::result::Result<Ran, Box<rhai::EvalAltResult>> {
    let positions = argnums.positions(arguments.len()).map_err(|diag| call.wrong(diag))?;
    let chosen = argnums.chosen(&arguments, &positions);
    let given = tree::tensors(&chosen, "what is differentiated for").map_err(|diag| call.wrong(diag))?;
    if given.is_empty() {
        let diag = Diag::error(code::TRANSFORM, "there is no tensor to differentiate for");
        return Err(call.wrong(diag));
    }
    let mut inputs = Vec::new();
    let recorded = call.engine().rt.grad_enabled();
    let _mode = GradMode::set(&call.host.rt, true);
    let _forward = ForwardMode::set(&call.host.rt, matches!(call.name, "jvp" | "linearize" | "jacfwd"));
    call.with(|e| {
        for x in &given {
            inputs.push(transforms::enter(e, x, recorded)?);
        }
        Ok(())
    })?;
    argnums.put(&mut arguments, &positions, tree::of_tensors(&chosen, inputs.clone()));
    let result = call.apply(function, arguments);
    transforms::end(&inputs);
    let (output, aux) = with_aux(result?, has_aux).map_err(|diag| call.wrong(diag))?;
    Ok(Ran { chosen, inputs, output, aux, recorded })
}

/// The result of a function, and what it gives besides.
pub fn with_aux(result: Dynamic, has_aux: bool) -> Result<(Dynamic, Option<Dynamic>)> {
    if !has_aux {
        return Ok((result, None));
    }
    let found = type_names::of_value(&result);
    match result.try_cast::<Array>() {
        Some(mut both) if both.len() == 2 => {
            let aux = both.pop();
            Ok((both.pop().unwrap_or_default(), aux))
        }
        _ => Err(Diag::error(
            code::TRANSFORM,
            format!("with `has_aux` the function gives an array of two, the output and the rest, and not {found}"),
        )),
    }
}

/// Tensors in a value as they leave the transform; other values as they are.
pub fn leave(e: &mut Engine, value: &Dynamic, recorded: bool) -> Result<Dynamic> {
    let mut all = Vec::new();
    for leaf in tree::leaves(value)? {
        all.push(match tree::tensor(&leaf) {
            Some(x) => Dynamic::from(transforms::leave(e, &x, recorded)?),
            None => leaf,
        });
    }
    Ok(tree::rebuilt(value, &mut all.into_iter()))
}

/// Whether something outside of the transform asks for gradients of these.
pub fn is_live(e: &mut Engine, ys: &[Tensor], recorded: bool) -> Result<bool> {
    for y in ys {
        if recorded && transforms::is_live(e, y)? {
            return Ok(true);
        }
    }
    Ok(false)
}

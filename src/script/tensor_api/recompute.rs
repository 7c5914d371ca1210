//! `checkpoint(f, x)`: calls a function whose intermediate results are computed again in backward instead of being kept.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::rng::Generator;
use crate::base::span::Origin;
use crate::op::emit::Emit;
use crate::op::tensor::Tensor;
use crate::sched::autocast::Modes;
use crate::sched::runtime::Runtime;
use crate::sched::samples::Level;
use crate::script::bind::apply::{Callee, apply, callee, not_callable};
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::values::raise::Native;
use crate::tensor::batch::{self, script_code::Entered};
use crate::tensor::checkpoint::{Keeping, Part};
use crate::tensor::hooks::GradMode;
use crate::tensor::{engine::Engine, history};
use rhai::{Array, Dynamic, Map, NativeCallContext};
use std::sync::Arc;

/// Bound: arguments of one call, the function among them.
const MOST: usize = 15;

/// Keywords that change nothing, and those that do.
const KEYWORDS: [&str; 4] = ["preserve_rng_state", "use_reentrant", "determinism_check", "early_stop"];

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for arity in 1..=MOST {
        let shared = host.clone();
        raw(natives, "checkpoint", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let mut given: Array = values.iter().map(|value| value.flatten_clone()).collect();
            let preserves = options(&mut given).map_err(|diag| shared.raise(&context, diag, ""))?;
            run(&shared, &context, given, preserves)
        });
    }
}

/// Takes the keywords off the arguments; whether random numbers are the same again.
fn options(given: &mut Array) -> Result<bool> {
    let is_keywords = |map: &Map| !map.is_empty() && map.keys().all(|name| KEYWORDS.contains(&name.as_str()));
    let Some(last) = given.last().filter(|last| last.read_lock::<Map>().is_some_and(|map| is_keywords(&map))) else {
        return Ok(true);
    };
    let keywords = last.clone().cast::<Map>();
    given.pop();
    let on = |name: &str, otherwise: bool| keywords.get(name).map_or(otherwise, |on| on.as_bool().unwrap_or(otherwise));
    if on("use_reentrant", false) {
        return Err(Diag::error(code::VALUE, "`checkpoint` has no reentrant form")
            .help("leave `use_reentrant` out: gradients of all tensors that the function uses are computed"));
    }
    Ok(on("preserve_rng_state", true))
}

/// What runs again.
struct Again {
    caller: Caller,
    function: Dynamic,
    arguments: Array,
    /// Versions of the tensors among the arguments.
    versions: Vec<Option<u32>>,
    generator: Option<Generator>,
    autocast: Modes,
    /// The levels of `vmap` around the call.
    levels: Vec<Level>,
    origin: Origin,
    part: std::sync::Weak<Part>,
}

fn run(host: &Arc<Host>, context: &NativeCallContext, given: Array, preserves: bool) -> Native {
    let mut given = given.into_iter();
    let mut function = given.next().unwrap_or_default();
    let arguments: Array = given.collect();
    let call = |function: &mut Dynamic, arguments: &Array| match apply(context, function, arguments.clone()) {
        Some(result) => result,
        None => Err(host.raise(context, not_callable(function), "")),
    };
    if !host.rt.grad_enabled() {
        return call(&mut function, &arguments);
    }
    let part = Arc::new(Part::default());
    let generator = preserves.then(|| host.rt.generator());
    // A cast that is kept is no operation of the second run if it was one of the first, or the other way around.
    let autocast = Modes { keeps_casts: false, ..host.rt.autocast.modes() };
    let versions = arguments.iter().map(|x| x.read_lock::<Tensor>().map(|x| x.version())).collect();
    let origin = host.begin(context);
    let result = {
        let _casting = Casting::enter(&host.rt, autocast);
        let _keeping = Keeping::enter(&host.rt, Some(part.clone()));
        call(&mut function, &arguments)?
    };
    let caller = Caller::new(host, context);
    let weak = Arc::downgrade(&part);
    let levels = host.rt.samples.active().to_vec();
    let again = Again { caller, function, arguments, versions, generator, autocast, levels, origin, part: weak };
    part.ended(Box::new(move || again.run()));
    Ok(result)
}

/// The random generator is put back when this is dropped.
struct Drawing(Arc<Runtime>, Generator);

impl Drop for Drawing {
    fn drop(&mut self) {
        self.0.set_generator(self.1);
    }
}

/// Calls are cast as before when this is dropped.
struct Casting(Arc<Runtime>, Modes);

impl Casting {
    fn enter(rt: &Arc<Runtime>, autocast: Modes) -> Casting {
        Casting(rt.clone(), rt.autocast.enter(|modes| *modes = autocast))
    }
}

impl Drop for Casting {
    fn drop(&mut self) {
        self.0.autocast.leave(self.1);
    }
}

impl Again {
    fn run(&self) -> Result<()> {
        let Some(part) = self.part.upgrade() else { return Ok(()) };
        let rt = &self.caller.host().rt;
        let _entered = Entered::again(rt, &self.levels);
        let arguments = self.arguments()?;
        let _drawing = self.generator.map(|generator| {
            let now = rt.generator();
            rt.set_generator(generator);
            Drawing(rt.clone(), now)
        });
        let _casting = Casting::enter(rt, self.autocast);
        let _mode = GradMode::set(rt, true);
        let _keeping = Keeping::enter(rt, Some(part));
        let mut function = self.function.clone();
        let result = match callee(&function) {
            Some(Callee::Forward(forward)) => self.caller.call_on(&forward, Some(&mut function), arguments),
            Some(Callee::Closure(closure)) => self.caller.call(&closure, arguments),
            None => return Err(not_callable(&function)),
        };
        result.map(drop).map_err(|error| self.caller.host().carried(error))
    }

    /// The arguments, with tensors outside of the graph in place of those in it.
    fn arguments(&self) -> Result<Array> {
        let mut engine = Engine::new(self.caller.host().rt.clone(), self.origin);
        let mut arguments = Array::new();
        for (value, version) in self.arguments.iter().zip(&self.versions) {
            let Some(x) = value.read_lock::<Tensor>().map(|x| x.clone()) else {
                arguments.push(value.clone());
                continue;
            };
            if *version != Some(x.version()) {
                return Err(Diag::error(
                    code::GRAD_STALE,
                    "`checkpoint` must run its function again, and an argument was changed in place since",
                )
                .label(self.origin, crate::base::diag::Focus::Call, "needed by this call")
                .label(
                    x.view().buffer.last_writer(),
                    crate::base::diag::Focus::Expression,
                    "changed in place here",
                ));
            }
            let alone = engine.detach(&x);
            if batch::value(&x).requires_grad() {
                history::set_leaf(&batch::value(&alone), true);
            }
            arguments.push(Dynamic::from(alone));
        }
        Ok(arguments)
    }
}

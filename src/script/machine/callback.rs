//! Closures that natives call: `xs.map(|x| 2 * x)`, `sorted(xs, |x| x.age)`. They are run here,
//! with one stack and one state for all calls of a native; a function with a name is given to Rhai.

use super::run::{Kept, Machine};
use super::tree::Code;
use super::unit::{Function, Stack, Unit, closure_named};
use super::value::Value;
use crate::script::source::Hooks;
use crate::script::values::raise::Native;
use rhai::{Dynamic, EvalAltResult, FnPtr, GlobalRuntimeState, NativeCallContext};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    /// The texts whose code runs on this thread, the innermost last.
    static RUNNING: RefCell<Vec<Weak<Unit>>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, the code of a text runs.
pub struct Running(());

impl Running {
    pub fn enter(unit: &Arc<Unit>) -> Running {
        RUNNING.with_borrow_mut(|running| running.push(Arc::downgrade(unit)));
        Running(())
    }

    /// The text whose code runs.
    pub fn innermost() -> *const Unit {
        RUNNING.with_borrow(|running| running.last().map_or(std::ptr::null(), Weak::as_ptr))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| running.borrow_mut().pop());
    }
}

/// A closure in the hands of a native.
pub struct Callback<'a> {
    context: &'a NativeCallContext<'a>,
    closure: &'a FnPtr,
    direct: Option<Direct>,
}

/// What runs a closure without Rhai.
struct Direct {
    hooks: Arc<dyn Hooks>,
    functions: Functions,
    /// The states at the native's call, made at the first of the closure.
    states: Option<(GlobalRuntimeState, Kept)>,
    stack: Stack,
}

impl<'a> Callback<'a> {
    pub fn new(context: &'a NativeCallContext<'a>, closure: &'a FnPtr) -> Callback<'a> {
        let unit = RUNNING.with_borrow(|running| running.last().and_then(Weak::upgrade));
        let direct = unit.filter(|_| closure.is_anonymous()).map(|unit| Direct {
            hooks: unit.hooks.clone(),
            functions: SmallVec::new(),
            states: None,
            stack: Stack::take(),
        });
        Callback { context, closure, direct }
    }

    /// Calls it with so many values.
    pub fn call<const N: usize>(&mut self, values: [Dynamic; N]) -> Native {
        self.call_on(None, values)
    }

    /// The same with a value as its `this`.
    pub fn call_on<const N: usize>(&mut self, this: Option<&mut Dynamic>, values: [Dynamic; N]) -> Native {
        let context = self.context;
        let Some((mut call, taken)) = self.begin(N) else {
            return self.closure.call_raw(context, this, values);
        };
        for (slot, value) in call.stack[taken..].iter_mut().zip(values) {
            *slot = Value::unboxed(value);
        }
        let result = call.run(context, this);
        call.end();
        result
    }

    /// Calls it with values that are lent where it leaves its parameters alone, and copied where it does not.
    pub fn lend<const N: usize>(&mut self, mut values: [&mut Dynamic; N]) -> Native {
        let context = self.context;
        let Some((mut call, taken)) = self.begin(N) else {
            return self.closure.call_raw(context, None, values.map(|value| value.clone()));
        };
        let is_own = |value: &&mut Dynamic| !value.is_shared() && !value.is_read_only();
        let is_lent = (0..N).all(|at| call.code.lends(taken + at)) && values.iter().all(is_own);
        for (slot, value) in call.stack[taken..].iter_mut().zip(&mut values) {
            *slot = Value::unboxed(if is_lent { value.take() } else { value.clone() });
        }
        let result = call.run(context, None);
        if is_lent {
            for (value, slot) in values.into_iter().zip(&mut call.stack[taken..]) {
                *value = slot.take().boxed();
            }
        }
        call.end();
        result
    }

    /// Whether it takes so many values, as far as that is known before it is called.
    pub fn takes(&mut self, count: usize) -> bool {
        self.direct.as_mut().is_some_and(|Direct { hooks, functions, .. }| {
            Direct::find(functions, &**hooks, self.closure, count).is_some()
        })
    }

    /// Whether a call failed because the closure takes another number of values.
    pub fn is_other_arity(&self, error: &EvalAltResult) -> bool {
        let name = self.closure.fn_name();
        matches!(error, EvalAltResult::ErrorFunctionNotFound(signature, _) if signature.starts_with(name))
    }

    /// A call with so many values, which are put behind those that the closure has taken along; none where Rhai calls it.
    fn begin(&mut self, count: usize) -> Option<(Call<'_>, usize)> {
        let closure = self.closure;
        let Direct { hooks, functions, states, stack } = self.direct.as_mut()?;
        let function = Direct::find(functions, &**hooks, closure, count)?;
        let (code, curry) = (function.code()?, closure.curry());
        let stack = stack.slots(code.slots);
        for (slot, value) in stack.iter_mut().zip(curry) {
            *slot = Value::unboxed(value.clone());
        }
        Some((Call { function, code, hooks: &**hooks, states, stack }, curry.len()))
    }
}

/// Calls a closure once, for natives that are not in sight of this room.
pub fn run_once(
    context: &NativeCallContext,
    closure: &FnPtr,
    this: Option<&mut Dynamic>,
    values: &mut Vec<Dynamic>,
) -> Option<Native> {
    let mut callback = Callback::new(context, closure);
    let (mut call, taken) = callback.begin(values.len())?;
    for (slot, value) in call.stack[taken..].iter_mut().zip(values.drain(..)) {
        *slot = Value::unboxed(value);
    }
    let result = call.run(context, this);
    call.end();
    Some(result)
}

/// A call that is prepared.
struct Call<'d> {
    function: &'d Function,
    code: &'d Code,
    hooks: &'d dyn Hooks,
    states: &'d mut Option<(GlobalRuntimeState, Kept)>,
    stack: &'d mut [Value],
}

impl Call<'_> {
    /// Runs it with the values that are in its slots.
    fn run(&mut self, context: &NativeCallContext, this: Option<&mut Dynamic>) -> Native {
        let (global, kept) = self.states.get_or_insert_with(|| {
            let mut global = context.global_runtime_state().clone();
            global.level += 1;
            (global, Kept::now(self.hooks))
        });
        let mut machine = Machine::with(context.engine(), global, self.hooks, *kept);
        match machine.run_there(self.stack, self.function, self.code, this, context.call_position()) {
            Ok(value) => Ok(value.boxed()),
            Err(Some(error)) => Err(error),
            // A function lets no jump out.
            Err(None) => Ok(Dynamic::UNIT),
        }
    }

    /// Its values end.
    fn end(self) {
        Value::end(&mut self.stack[..self.code.changing()]);
    }
}

/// The functions of a closure by the number of values that it is called with.
type Functions = SmallVec<[(usize, Option<Arc<Function>>); 3]>;

impl Direct {
    fn find<'f>(
        functions: &'f mut Functions,
        hooks: &dyn Hooks,
        closure: &FnPtr,
        count: usize,
    ) -> Option<&'f Arc<Function>> {
        let at = functions.iter().position(|(known, _)| *known == count).unwrap_or_else(|| {
            functions.push((count, closure_named(hooks, closure.fn_name(), closure.curry().len() + count)));
            functions.len() - 1
        });
        functions[at].1.as_ref()
    }
}

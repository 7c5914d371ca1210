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
    /// By the number of values that it is called with.
    functions: SmallVec<[(usize, Option<Arc<Function>>); 3]>,
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
        let Some((function, slots)) = self.begin(N) else {
            return self.closure.call_raw(self.context, this, values);
        };
        for (slot, value) in slots.iter_mut().zip(values) {
            *slot = Value::unboxed(value);
        }
        let result = self.run(&function, this);
        self.end(&function);
        result
    }

    /// Calls it with values that are lent where it leaves its parameters alone, and copied where it does not.
    pub fn lend<const N: usize>(&mut self, mut values: [&mut Dynamic; N]) -> Native {
        let taken = self.closure.curry().len();
        let Some((function, slots)) = self.begin(N) else {
            return self.closure.call_raw(self.context, None, values.map(|value| value.clone()));
        };
        let lends = |code: &Code| (0..N).all(|at| code.lends(taken + at));
        let is_own = |value: &&mut Dynamic| !value.is_shared() && !value.is_read_only();
        let is_lent = function.code().is_some_and(lends) && values.iter().all(is_own);
        for (slot, value) in slots.iter_mut().zip(&mut values) {
            *slot = Value::unboxed(if is_lent { value.take() } else { value.clone() });
        }
        let result = self.run(&function, None);
        if is_lent && let Some(direct) = &mut self.direct {
            for (value, slot) in values.into_iter().zip(&mut direct.stack.slots(0)[taken..]) {
                *value = slot.take().boxed();
            }
        }
        self.end(&function);
        result
    }

    /// Whether it takes so many values, as far as that is known before it is called.
    pub fn takes(&mut self, count: usize) -> bool {
        self.direct.as_mut().is_some_and(|direct| direct.find(self.closure, count).is_some())
    }

    /// Whether a call failed because the closure takes another number of values.
    pub fn is_other_arity(&self, error: &EvalAltResult) -> bool {
        let name = self.closure.fn_name();
        matches!(error, EvalAltResult::ErrorFunctionNotFound(signature, _) if signature.starts_with(name))
    }

    /// The function for so many values, and where it finds them; none where Rhai calls it.
    fn begin(&mut self, count: usize) -> Option<(Arc<Function>, &mut [Value])> {
        let direct = self.direct.as_mut()?;
        let function = direct.find(self.closure, count)?;
        let curry = self.closure.curry();
        let slots = direct.stack.slots(function.code()?.slots);
        for (slot, value) in slots.iter_mut().zip(curry) {
            *slot = Value::unboxed(value.clone());
        }
        Some((function, &mut slots[curry.len()..]))
    }

    /// Runs it with the values that are in its slots.
    fn run(&mut self, function: &Function, this: Option<&mut Dynamic>) -> Native {
        let (Some(direct), Some(code)) = (self.direct.as_mut(), function.code()) else {
            unreachable!("`begin` has found the function")
        };
        let (engine, hooks) = (self.context.engine(), &*direct.hooks);
        let (global, kept) = direct.states.get_or_insert_with(|| {
            let mut global = self.context.global_runtime_state().clone();
            global.level += 1;
            (global, Kept::now(hooks))
        });
        let mut machine = Machine::with(engine, global, hooks, *kept);
        match machine.run_there(direct.stack.slots(0), function, code, this, self.context.call_position()) {
            Ok(value) => Ok(value.boxed()),
            Err(Some(error)) => Err(error),
            // A function lets no jump out.
            Err(None) => Ok(Dynamic::UNIT),
        }
    }

    /// Its values end.
    fn end(&mut self, function: &Function) {
        if let (Some(direct), Some(code)) = (self.direct.as_mut(), function.code()) {
            Value::end(&mut direct.stack.slots(0)[..code.changing()]);
        }
    }
}

impl Direct {
    fn find(&mut self, closure: &FnPtr, count: usize) -> Option<Arc<Function>> {
        if let Some((_, known)) = self.functions.iter().find(|(known, _)| *known == count) {
            return known.clone();
        }
        let found = closure_named(&*self.hooks, closure.fn_name(), closure.curry().len() + count);
        self.functions.push((count, found.clone()));
        found
    }
}

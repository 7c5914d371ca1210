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
    states: Option<(GlobalRuntimeState, Option<Kept>)>,
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
        match self.direct.as_mut().and_then(|direct| direct.find(self.closure, N)) {
            Some(function) => self.run(function, this, values).0,
            None => self.closure.call_raw(self.context, this, values),
        }
    }

    /// Calls it with values that are lent where it leaves its parameters alone, and copied where it does not.
    pub fn lend<const N: usize>(&mut self, values: [&mut Dynamic; N]) -> Native {
        let function = self.direct.as_mut().and_then(|direct| direct.find(self.closure, N));
        let taken = self.closure.curry().len();
        let lends = |code: &Code| (0..N).all(|at| code.lends(taken + at));
        let is_own = |value: &&mut Dynamic| !value.is_shared() && !value.is_read_only();
        match function {
            Some(function) if function.code().is_some_and(lends) && values.iter().all(is_own) => {
                let mut values = values;
                let given = values.each_mut().map(|value| value.take());
                let (result, back) = self.run(function, None, given);
                for (value, back) in values.into_iter().zip(back) {
                    *value = back.boxed();
                }
                result
            }
            Some(function) => self.run(function, None, values.map(|value| value.clone())).0,
            None => self.closure.call_raw(self.context, None, values.map(|value| value.clone())),
        }
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

    /// The result, and the values as far as they were lent.
    fn run<const N: usize>(
        &mut self,
        function: Arc<Function>,
        this: Option<&mut Dynamic>,
        values: [Dynamic; N],
    ) -> (Native, [Value; N]) {
        let (Some(direct), Some(code)) = (self.direct.as_mut(), function.code()) else {
            unreachable!("it has found the function")
        };
        let (engine, hooks) = (self.context.engine(), &*direct.hooks);
        let (global, kept) = direct.states.get_or_insert_with(|| {
            let mut global = self.context.global_runtime_state().clone();
            global.level += 1;
            (global, None)
        });
        let slots = direct.stack.slots(code.slots);
        let curry = self.closure.curry();
        for (slot, value) in slots.iter_mut().zip(curry) {
            *slot = Value::unboxed(value.clone());
        }
        for (slot, value) in slots[curry.len()..].iter_mut().zip(values) {
            *slot = Value::unboxed(value);
        }
        let mut machine = Machine::with(engine, global, hooks, kept.take().unwrap_or_else(|| Kept::now(hooks)));
        let done = machine.run_there(slots, &function, code, this, self.context.call_position());
        *kept = Some(machine.kept());
        let result = match done {
            Ok(value) => Ok(value.boxed()),
            Err(Some(error)) => Err(error),
            // A function lets no jump out.
            Err(None) => Ok(Dynamic::UNIT),
        };
        let lent = std::array::from_fn(|at| match code.lends(curry.len() + at) {
            true => slots[curry.len() + at].take(),
            false => Value::Unit,
        });
        Value::end(&mut slots[..code.changing()]);
        (result, lent)
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

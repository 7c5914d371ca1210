//! A panic inside a native function, or one of our iterators, is an error of its call: E0806, which `try` can catch.
//! It is caught there and not further up, so that the interpreter's state stays consistent: receivers of methods are
//! locked during the call.

use crate::base::code;
use crate::base::diag::Diag;
use crate::base::quiet;
use crate::script::values::raise::Native;
use crate::script::values::raise::raise;
use rhai::{Dynamic, FuncRegistration, Module, NativeCallContext, Position, RhaiFunc, RhaiNativeFunc};
use std::any::{Any, TypeId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// E0806 with a panic's message.
#[cold]
pub fn internal(payload: &(dyn Any + Send)) -> Box<Diag> {
    let text = format!("an operation failed inside: {}", panic_text(payload));
    Diag::error(code::INTERNAL, text).help("this is a mistake in tscript")
}

/// The message of a panic.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it did not say why")
}

/// Runs a native call, or an equivalent of one.
pub fn caught(at: Position, work: impl FnOnce() -> Native) -> Native {
    catch_unwind(AssertUnwindSafe(|| quiet::during(work))).unwrap_or_else(|payload| Err(raise(internal(&*payload), at)))
}

/// A function whose panics are errors.
pub struct Guarded<F>(pub F);

impl<A, const N: usize, const X: bool, R, const E: bool, F> RhaiNativeFunc<A, N, X, R, E> for Guarded<F>
where
    A: 'static,
    R: 'static,
    F: RhaiNativeFunc<A, N, X, R, E>,
{
    fn into_rhai_function(self, is_pure: bool, is_volatile: bool) -> RhaiFunc {
        guarded(self.0.into_rhai_function(is_pure, is_volatile))
    }

    fn param_types() -> [TypeId; N] {
        F::param_types()
    }

    fn param_names() -> [&'static str; N] {
        F::param_names()
    }
}

/// Registers functions in a module, wrapped in `Guarded`.
pub trait Place {
    fn place_in<A: 'static, const N: usize, const X: bool, R, const E: bool, F>(self, module: &mut Module, function: F)
    where
        R: Clone + Send + Sync + 'static,
        F: RhaiNativeFunc<A, N, X, R, E> + Send + Sync + 'static;

    fn place_raw_in(self, module: &mut Module, types: impl AsRef<[TypeId]>, function: RhaiFunc);

    /// A method of one of several numbers of values that a function takes.
    fn place_shared_in(self, module: &mut Module, types: impl AsRef<[TypeId]>, function: &GuardedCall);
}

impl Place for FuncRegistration {
    fn place_in<A: 'static, const N: usize, const X: bool, R, const E: bool, F>(self, module: &mut Module, function: F)
    where
        R: Clone + Send + Sync + 'static,
        F: RhaiNativeFunc<A, N, X, R, E> + Send + Sync + 'static,
    {
        self.set_into_module(module, Guarded(function));
    }

    fn place_raw_in(self, module: &mut Module, types: impl AsRef<[TypeId]>, function: RhaiFunc) {
        self.set_into_module_raw(module, types, guarded(function));
    }

    fn place_shared_in(self, module: &mut Module, types: impl AsRef<[TypeId]>, function: &GuardedCall) {
        let GuardedCall { call, is_pure } = function;
        let func = RhaiFunc::Method { func: call.clone(), has_context: true, is_pure: *is_pure, is_volatile: true };
        self.set_into_module_raw(module, types, func);
    }
}

/// A native function as Rhai keeps it.
type Call = Arc<dyn Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Native + Send + Sync>;

/// A function that gets its context and whose panics are errors, for all numbers of values that it takes.
pub struct GuardedCall {
    call: Call,
    /// Constants may be its first value.
    is_pure: bool,
}

impl GuardedCall {
    pub fn new(
        call: impl Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Native + Send + Sync + 'static,
    ) -> GuardedCall {
        let call =
            move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| around(&call, context, values);
        GuardedCall { call: Arc::new(call), is_pure: true }
    }

    /// The same of a function that changes its first value.
    pub fn changing(self) -> GuardedCall {
        GuardedCall { is_pure: false, ..self }
    }
}

/// Calls a function whose panics are errors. Not: generic, which is a copy for each of some hundred functions.
fn around(
    call: &dyn Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Native,
    context: Option<NativeCallContext>,
    values: &mut [&mut Dynamic],
) -> Native {
    let at = context.as_ref().map_or(Position::NONE, NativeCallContext::call_position);
    caught(at, || call(context, values))
}

fn guarded(function: RhaiFunc) -> RhaiFunc {
    let wrapped = |func: Call, has_context: bool| -> Call {
        if !has_context {
            // Rhai adds the position of the call to an error without one.
            return Arc::new(move |context, values| caught(Position::NONE, || func(context, values)));
        }
        Arc::new(move |context, values| around(&*func, context, values))
    };
    match function {
        RhaiFunc::Pure { func, has_context, is_pure, is_volatile } => {
            RhaiFunc::Pure { func: wrapped(func, has_context), has_context, is_pure, is_volatile }
        }
        RhaiFunc::Method { func, has_context, is_pure, is_volatile } => {
            RhaiFunc::Method { func: wrapped(func, has_context), has_context, is_pure, is_volatile }
        }
        other => other,
    }
}

/// Items of a loop.
pub type Items = Box<dyn Iterator<Item = Native>>;

/// Registers the iterator of a type. A panic ends the loop with its error.
pub fn place_iterator(module: &mut Module, of: TypeId, open: impl Fn(Dynamic) -> Items + Send + Sync + 'static) {
    module.set_iter_result(of, move |value| -> Items {
        match catch_unwind(AssertUnwindSafe(|| quiet::during(|| open(value)))) {
            Ok(items) => Box::new(Caught(Some(items))),
            Err(payload) => Box::new(std::iter::once(Err(raise(internal(&*payload), Position::NONE)))),
        }
    });
}

/// Items until one panics.
struct Caught(Option<Items>);

impl Iterator for Caught {
    type Item = Native;

    fn next(&mut self) -> Option<Native> {
        let items = self.0.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| quiet::during(|| items.next()))) {
            Ok(item) => item,
            Err(payload) => {
                self.0 = None;
                Some(Err(raise(internal(&*payload), Position::NONE)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_an_iterator_ends_the_loop_with_its_error() {
        let mut engine = rhai::Engine::new();
        let mut module = Module::new();
        place_iterator(&mut module, TypeId::of::<i64>(), |upto| {
            let upto = upto.as_int().unwrap_or(0);
            if upto > 5 {
                panic!("on purpose");
            }
            let item = move |i| if i < upto { Ok(Dynamic::from_int(i)) } else { panic!("on purpose") };
            Box::new((0..).map(item))
        });
        engine.register_global_module(module.into());
        for upto in [3, 9] {
            let text = format!(
                "let n = 0; let upto = {upto}; try {{ for i in upto {{ n += 1; }} }} catch (e) {{ n += 100; }} n"
            );
            let seen: i64 = engine.eval(&text).expect("it was caught");
            assert_eq!(seen, if upto == 3 { 103 } else { 100 });
        }
    }
}

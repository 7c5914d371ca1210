//! Functions and types of a host program, as scripts call them.
//!
//! An error of such a function is reported at the call, with its code, its label and the script's call stack; a panic
//! is caught and reported in the same way.

use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::span::Origin;
use crate::script::bind::rows;
use crate::script::bind::rows::Natives;
use crate::script::embed::passing::{FromScript, IntoScript, mismatch};
use crate::script::error::Error;
use crate::script::host::Boundary;
use crate::script::host::Host;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{Dynamic, FuncRegistration, NativeCallContext, RhaiFunc};
use std::any::{Any, TypeId};
use std::fmt::Display;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A Rust type whose values scripts can hold. Scripts copy it as they copy arrays, by [`Clone`]; data shared by all
/// copies belongs behind an `Arc`.
///
/// ```
/// use tscript::{Object, Session};
///
/// #[derive(Clone)]
/// struct Account { cents: i64 }
///
/// impl Object for Account {
///     const NAME: &'static str = "account";
/// }
///
/// let mut session = Session::builder()
///     .object::<Account>(|account| {
///         account
///             .getter("cents", |account: &mut Account| account.cents)
///             .setter("limit", |account: &mut Account, cents: i64| account.cents = account.cents.min(cents))
///             .method("pay", |account: &mut Account, cents: i64| {
///                 if cents > account.cents {
///                     return Err("there is not enough money in the account");
///                 }
///                 account.cents -= cents;
///                 Ok(())
///             })
///     })
///     .build()?;
/// session.set("account", Account { cents: 500 })?;
/// session.run_str("shop", "account.pay(120);")?;
/// assert_eq!(session.get::<Account>("account")?.cents, 380);
///
/// let error = session.run_str("shop", "let wish = 1000;\naccount.pay(wish);").unwrap_err();
/// assert_eq!(error.code(), "E0809");
/// assert_eq!(error.location().unwrap().line, 2);
/// # Ok::<(), tscript::Error>(())
/// ```
pub trait Object: Clone + Send + Sync + 'static {
    /// The scripts' name of the type: in `type_of(x)` and in messages.
    const NAME: &'static str;
}

impl<T: Object> IntoScript for T {
    fn into_script(self, _: &Boundary) -> Result<Dynamic> {
        type_names::note::<T>(T::NAME);
        Ok(Dynamic::from(self))
    }
}

impl<T: Object> FromScript for T {
    fn from_script(value: Dynamic, _: &Boundary) -> Result<T> {
        value.try_cast_result::<T>().map_err(|value| mismatch(&type_names::with_article(T::NAME), &value))
    }
}

/// The return value of a host function: a value, or a `Result` whose error can be displayed.
pub trait Outcome {
    #[doc(hidden)]
    fn outcome(self, to: &Boundary) -> Result<Dynamic>;
}

impl<T: IntoScript> Outcome for T {
    fn outcome(self, to: &Boundary) -> Result<Dynamic> {
        self.into_script(to)
    }
}

impl<T: IntoScript, E: Display + 'static> Outcome for Result<T, E> {
    fn outcome(self, to: &Boundary) -> Result<Dynamic> {
        match self {
            Ok(value) => value.into_script(to),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// An error of ours keeps its code and message; any other is reported by its text.
#[cold]
fn failed<E: Display + 'static>(error: &E) -> Box<Diag> {
    if let Some(ours) = (error as &dyn Any).downcast_ref::<Error>() {
        let mut diag = Box::new(ours.diag().clone());
        // Positions in another session's sources have no meaning here.
        diag.labels.clear();
        diag.stack.clear();
        return diag;
    }
    Diag::error(code::HOST_FUNCTION, error.to_string())
}

/// A Rust function that scripts can call: up to eight arguments that are [`FromScript`], and an [`Outcome`].
/// `A` is the tuple of its arguments.
pub trait Function<A>: Send + Sync + 'static {
    #[doc(hidden)]
    const ARITY: usize;
    #[doc(hidden)]
    fn run(&self, values: &mut [&mut Dynamic], boundary: &Boundary) -> Result<Dynamic>;
}

/// As [`Function`], with the object before the dot as its first argument.
pub trait Method<T, A>: Send + Sync + 'static {
    #[doc(hidden)]
    const ARITY: usize;
    #[doc(hidden)]
    fn run(&self, object: &mut T, values: &mut [&mut Dynamic], boundary: &Boundary) -> Result<Dynamic>;
}

/// An argument of a call. Rhai passes the first one by reference if it is a variable.
fn take<T: FromScript>(
    values: &mut [&mut Dynamic],
    at: usize,
    first_by_reference: usize,
    boundary: &Boundary,
) -> Result<T> {
    let value = if at < first_by_reference { values[at].flatten_clone() } else { std::mem::take(values[at]).flatten() };
    T::from_script(value, boundary).map_err(|mut diag| {
        // The error belongs to the call, as a wrong argument.
        diag.message = format!("argument {}: {}", at + 1, diag.message);
        diag.code = if diag.code == code::TYPE { code::ARGUMENT_TYPE } else { diag.code };
        diag.label(Origin::NONE, Focus::Argument(at), "")
    })
}

macro_rules! functions {
    ($count:literal $($name:ident $at:literal)*) => {
        impl<F, R, $($name),*> Function<($($name,)*)> for F
        where
            F: Fn($($name),*) -> R + Send + Sync + 'static,
            R: Outcome,
            $($name: FromScript,)*
        {
            const ARITY: usize = $count;

            #[allow(unused_variables)]
            fn run(&self, values: &mut [&mut Dynamic], boundary: &Boundary) -> Result<Dynamic> {
                self($(take::<$name>(values, $at, 1, boundary)?),*).outcome(boundary)
            }
        }

        impl<F, T, R, $($name),*> Method<T, ($($name,)*)> for F
        where
            F: Fn(&mut T, $($name),*) -> R + Send + Sync + 'static,
            T: Object,
            R: Outcome,
            $($name: FromScript,)*
        {
            const ARITY: usize = $count;

            #[allow(unused_variables)]
            fn run(&self, object: &mut T, values: &mut [&mut Dynamic], boundary: &Boundary) -> Result<Dynamic> {
                self(object, $(take::<$name>(values, $at, 0, boundary)?),*).outcome(boundary)
            }
        }
    };
}
functions!(0);
functions!(1 A 0);
functions!(2 A 0 B 1);
functions!(3 A 0 B 1 C 2);
functions!(4 A 0 B 1 C 2 D 3);
functions!(5 A 0 B 1 C 2 D 3 E 4);
functions!(6 A 0 B 1 C 2 D 3 E 4 G 5);
functions!(7 A 0 B 1 C 2 D 3 E 4 G 5 H 6);
functions!(8 A 0 B 1 C 2 D 3 E 4 G 5 H 6 I 7);

/// Runs a function of the host program; its panic is an error of this call.
fn caught(name: &str, work: impl FnOnce() -> Result<Dynamic>) -> Result<Dynamic> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let said = crate::script::values::panics::panic_text(&*payload);
        let diag = Diag::error(code::HOST_FUNCTION, format!("`{name}` of the host program panicked: {said}"));
        Err(diag.help("this is a mistake in the program that runs the script"))
    })
}

/// One registration, kept until the session is built.
pub type Registration = Box<dyn FnOnce(&mut Natives, &Arc<Host>) + Send>;

/// Whether scripts can write this name before a parenthesis.
pub fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `name(..)`.
pub fn function<A, F: Function<A>>(name: &str, function: F) -> Registration {
    let name = name.to_string();
    Box::new(move |module, host| {
        let shared = host.clone();
        let called = name.clone();
        host.registered.write().insert(name.clone());
        rows::raw(module, &name, F::ARITY, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            shared.rt.note_call(shared.origin(&context));
            caught(&called, || function.run(values, &shared.boundary()))
                .map_err(|diag| shared.raise(&context, diag, "here"))
        });
    })
}

/// The methods and properties of a type in scripts; see [`Object`].
pub struct Type<T> {
    registrations: Vec<Registration>,
    of: PhantomData<fn(T)>,
}

impl<T: Object> Type<T> {
    pub(in crate::script) fn new() -> Type<T> {
        let named: Registration = Box::new(|module, _| {
            type_names::note::<T>(T::NAME);
            module.module.set_custom_type::<T>(T::NAME);
        });
        Type { registrations: vec![named], of: PhantomData }
    }

    pub(in crate::script) fn registrations(self) -> Vec<Registration> {
        self.registrations
    }

    /// `object.name(..)`.
    pub fn method<A>(self, name: &str, method: impl Method<T, A>) -> Type<T> {
        self.add(name.to_string(), name, method)
    }

    /// `object.name`.
    pub fn getter(self, name: &str, get: impl Method<T, ()>) -> Type<T> {
        self.add(format!("get${name}"), name, get)
    }

    /// `object.name = value`.
    pub fn setter<A>(self, name: &str, set: impl Method<T, (A,)>) -> Type<T> {
        self.add(format!("set${name}"), name, set)
    }

    fn add<A, M: Method<T, A>>(mut self, registered: String, name: &str, method: M) -> Type<T> {
        let name = name.to_string();
        self.registrations.push(Box::new(move |module, host| {
            if registered == name {
                module.note(&name);
            }
            let shared = host.clone();
            let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
                let context = context.expect("registered with a context");
                shared.rt.note_call(shared.origin(&context));
                let ran = caught(&name, || {
                    let Some((object, rest)) = values.split_first_mut() else {
                        return Err(Diag::error(code::INTERNAL, "a method was called without an object"));
                    };
                    match object.write_lock::<T>() {
                        Some(mut object) => method.run(&mut object, rest, &shared.boundary()),
                        None => Err(Diag::error(code::TYPE, format!("`{name}` is a method of {}", T::NAME))),
                    }
                });
                ran.map_err(|diag| shared.raise(&context, diag, "here"))
            };
            // Getters may be called on a constant.
            let is_pure = registered.starts_with("get$");
            let mut types = vec![TypeId::of::<Dynamic>(); M::ARITY + 1];
            types[0] = TypeId::of::<T>();
            let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure, is_volatile: true };
            FuncRegistration::new(registered).in_global_namespace().place_raw_in(&mut module.module, types, func);
        }));
        self
    }
}

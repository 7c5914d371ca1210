//! What an engine needs to run rewritten text: reserved words as names, and the functions that the pass inserts.
//!
//! The session implements those functions; this file connects them to Rhai.

use crate::base::span::Site;
use crate::script::values::module::MissingField;
use crate::script::values::panics;
use rhai::{Dynamic, Engine, EvalAltResult, EvalContext, Expression, ImmutableString, Module, Position, Shared, Token};
use std::any::Any;
use std::sync::{Arc, Weak};

type RhaiResult = Result<Dynamic, Box<EvalAltResult>>;

/// The session's side of the functions that the pass inserts.
pub trait Hooks: Send + Sync + 'static {
    /// The truth value of a condition; called only for values other than `bool`.
    fn truth(&self, value: Dynamic, at: Position) -> Result<bool, Box<EvalAltResult>>;
    /// The integer for which a value that is none stands as an index of an array or string; waits.
    fn index(&self, _value: &Dynamic, _at: Position) -> Result<Option<i64>, Box<EvalAltResult>> {
        Ok(None)
    }
    /// A call in a user's source is about to be made at this level of calls; its arguments are evaluated first.
    /// Returns the argument of `leave`.
    fn enter(&self, site: Site, level: usize) -> u32;
    /// That call has ended, normally or by an error.
    fn leave(&self, entered: u32);
    /// A `try` block begins; returns the argument of `try_leave`.
    fn try_enter(&self) -> u64 {
        0
    }
    /// The block has ended, normally, by `return`, `break` or `continue` (pseudo errors), or by an error: waits for
    /// work that was queued inside, and decides how the block is left.
    fn try_leave(&self, entered: u64, result: RhaiResult) -> RhaiResult;
    /// So many steps of compiled code; a value ends the script.
    fn step(&self, _count: u32) -> Option<Dynamic> {
        None
    }
    /// The same at the end of a round of a loop; `depth`: how deep the loop is.
    fn round(&self, count: u32, _depth: u32) -> Option<Dynamic> {
        self.step(count)
    }
    /// Whether values are looked at when a variable is read.
    fn looks(&self) -> bool {
        false
    }
    /// A variable's value is used; an error where it is too large, or has too many values inside each other.
    fn look(&self, _value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        Ok(())
    }
    /// Whether the host program has registered a function with this name.
    fn has_function(&self, _name: &str) -> bool {
        false
    }
    /// Whether a change that begins at this name of a copy is lost, if the value is an array or map.
    fn loses(&self, _at: Position) -> bool {
        false
    }
    /// Whether it would be made by a method of the text, and has not been told.
    fn loses_by_call(&self, _at: Position) -> bool {
        false
    }
    /// Whether anybody sees the variables of the top level after an error.
    fn keeps_variables(&self) -> bool {
        true
    }
    /// Such a change is made.
    fn lost(&self, _at: Position) {}
    /// Rhai may call this method in a value of a host program's type, with so many arguments.
    fn method_noted(&self, _name: &ImmutableString, _count: usize) {}
    /// The functions by which it calls methods of modules.
    fn methods(&self) -> Option<Shared<Module>> {
        None
    }
    /// Keeps a compiled closure of this name for calls from other texts.
    fn keep_closure(&self, _name: ImmutableString, _closure: Weak<dyn Any + Send + Sync>) {}
    /// The compiled closure of this name.
    fn kept_closure(&self, _name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
    /// Whether the times of functions are recorded.
    fn profiles(&self) -> bool {
        false
    }
    /// A function of this name, whose body is there, begins to run.
    fn function_begins(&self, _name: &str, _at: Position) {}
    /// It has ended.
    fn function_ends(&self) {}
    /// What a `for` goes over; none where a value has nothing to go over.
    fn items(&self, _value: Dynamic) -> Option<panics::Items> {
        None
    }
    /// Enters `with_device` or one of its kin until what it gives is dropped.
    fn within(
        &self,
        _word: &'static str,
        _value: Option<&Dynamic>,
        _at: Position,
    ) -> Result<Box<dyn std::any::Any>, Box<EvalAltResult>> {
        Ok(Box::new(()))
    }
}

/// A reserved word that Rhai does not use and that is a good name.
pub fn is_free_word(word: &str) -> bool {
    matches!(
        word,
        "var" | "module" | "new" | "sync" | "match" | "is" | "default" | "null" | "nil" | "with" | "spawn" | "use"
    ) || matches!(
        word,
        "case" | "async" | "await" | "public" | "protected" | "package" | "super" | "shared" | "static" | "thread"
    ) || matches!(word, "yield" | "void" | "go" | "goto")
}

/// Functions with a block form, `with_device(d) { .. }`, and with a closure that may run in place.
pub const BLOCK_WORDS: [&str; 8] = [
    "with_device",
    "with_stream",
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "detect_anomaly",
    "autocast",
];

pub fn is_block_word(word: &str) -> bool {
    BLOCK_WORDS.contains(&word)
}

/// A block function without arguments: `no_grad { .. }`, or `no_grad() { .. }`.
pub fn is_bare_word(word: &str) -> bool {
    matches!(word, "no_grad" | "enable_grad" | "inference_mode" | "detect_anomaly")
}

/// A block function with several arguments, which its block form has as a list: `__autocast([d, o]) { .. }`. A closure
/// that it is called with is an ordinary one.
pub fn takes_list(word: &str) -> bool {
    word == "autocast"
}

/// Registers the token mapping and the words `__at`, `__ac`, `__or` and `__try_wait`. The session registers `eval`, which
/// the pass renames to `__eval`.
pub fn install(engine: &mut Engine) {
    // Deprecated means "may change" here; the version is pinned.
    #[allow(deprecated)]
    engine.on_parse_token(|token, _, _| match token {
        Token::Reserved(word) if is_free_word(&word) => Token::Identifier(word),
        // After the pass, `eval` can only be a method, `model.eval()`; Rhai does not allow that name for one.
        Token::Reserved(word) if word.as_str() == "eval" => Token::Identifier(Box::new("__evaluate".into())),
        token => token,
    });

    let words: [&[&str]; 4] = [
        &["__at", "(", "$int$", ",", "$expr$", ")"],
        &["__ac", "(", "$expr$", ")"],
        &["__or", "(", "$int$", ",", "$expr$", ")"],
        &["__try_wait", "$block$"],
    ];
    words.iter().for_each(|word| compiled_word(engine, word));
}

/// A word that Rhai parses and the compiler of `script/machine` knows; nothing is evaluated by it.
pub fn compiled_word(engine: &mut Engine, symbols: &[&str]) {
    let refuse = |_: &mut EvalContext, inputs: &[Expression]| -> RhaiResult {
        let at = inputs.first().map_or(Position::NONE, Expression::position);
        Err(Box::new(EvalAltResult::ErrorSystem("this is compiled, not evaluated".into(), at.to_string().into())))
    };
    // The words are constant and well formed: this cannot fail.
    let registered = engine.register_custom_syntax(symbols, false, refuse).map(drop);
    debug_assert!(registered.is_ok());
}

/// Whether the entry at a position, by name or by bracket, is missing in the map or module.
pub fn is_missing(error: &EvalAltResult, site: Site) -> bool {
    let at = match error {
        EvalAltResult::ErrorPropertyNotFound(_, at) => at,
        EvalAltResult::ErrorRuntime(value, at) if value.is::<MissingField>() => at,
        _ => return false,
    };
    let (line, column) = (at.line().unwrap_or(0), at.position().unwrap_or(0));
    let (expected, from) = (site.line() as usize, site.column() as usize);
    line == expected && (column == from || column == from + 1)
}

/// A call under way whose place is known until this is dropped, also when a native function panics.
pub struct Marked<'a> {
    hooks: &'a dyn Hooks,
    entered: u32,
}

impl Marked<'_> {
    pub fn enter(hooks: &dyn Hooks, site: Site, level: usize) -> Marked<'_> {
        Marked { hooks, entered: hooks.enter(site, level) }
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.hooks.leave(self.entered);
    }
}

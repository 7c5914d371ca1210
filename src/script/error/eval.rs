//! From Rhai's errors at run time to diagnostics: code, message, position, suggestion and the script's call stack.

use super::{Context, Known, names, paths};
use crate::base::code::{self, Code};
use crate::base::diag::{Diag, Focus, Frame, Label};
use crate::base::span::{Origin, Site};
use crate::script::source::pass::written_name;
use crate::script::source::tree::is_assignment;
use crate::script::values::module::MissingField;
use crate::script::values::raise::{ErrorValue, site_of as site};
use crate::script::values::type_names;
use rhai::{Dynamic, EvalAltResult};

/// The diagnostic of an error of the interpreter. An error of ours keeps its own, and only gets the position and the
/// call stack if it has none.
#[expect(clippy::boxed_local, reason = "Rhai hands out its errors boxed")]
pub fn diagnose(error: Box<EvalAltResult>, context: &Context) -> Box<Diag> {
    let mut stack = Vec::new();
    let mut error = *error;
    loop {
        let (function, inner, at) = match error {
            EvalAltResult::ErrorInFunctionCall(name, _, inner, at) => (function_name(&name), inner, at),
            EvalAltResult::ErrorInModule(name, inner, at) => (format!("the module {name:?}"), inner, at),
            other => {
                error = other;
                break;
            }
        };
        stack.push(Frame { function, call: site(at) });
        error = *inner;
    }
    stack.reverse();
    let mut diag = one(error, context, &stack);
    // An error inside a call without a known position is placed at the call.
    if let Some(frame) = stack.iter().find(|frame| !frame.call.is_none()).filter(|_| diag.labels.is_empty()) {
        diag = diag.label(Origin::at(frame.call), Focus::Call, "called here");
    }
    // Work that was queued earlier has the call stack of that time, also if it was empty.
    if diag.stack.is_empty() && !diag.is_late {
        diag.stack = stack;
    }
    lift(&mut diag, context);
    diag
}

/// The users' name of a function.
fn function_name(name: &str) -> String {
    if name.starts_with("anon$") { "a closure".into() } else { written_name(name).into() }
}

/// The primary label must be in the user's code: a position inside the standard library is replaced by the nearest
/// call from a user's source.
fn lift(diag: &mut Diag, context: &Context) {
    let Some(first) = diag.labels.first_mut() else { return };
    let users =
        || diag.stack.iter().map(|frame| frame.call).filter(|call| !call.is_none() && !context.sources.is_std(*call));
    let Some(nearest) = users().next() else { return };
    if first.origin.inner.is_none() {
        if context.sources.is_std(first.origin.user) {
            first.origin = Origin { user: nearest, inner: first.origin.user };
        }
    } else if !diag.is_late && users().any(|call| call == first.origin.user) {
        // The call that was noted may be one around that which led into the library.
        first.origin.user = nearest;
    }
}

pub(super) struct Words {
    code: Code,
    message: String,
    label: String,
    help: Option<String>,
    note: Option<String>,
}

pub(super) fn words(code: Code, message: impl Into<String>, label: impl Into<String>) -> Words {
    Words { code, message: message.into(), label: label.into(), help: None, note: None }
}

impl Words {
    pub(super) fn help(mut self, help: impl Into<String>) -> Words {
        self.help = Some(help.into());
        self
    }

    /// Help, unless there is some already.
    pub(super) fn or_help(mut self, help: impl FnOnce() -> String) -> Words {
        self.help = Some(self.help.unwrap_or_else(help));
        self
    }

    pub(super) fn maybe(mut self, help: Option<String>) -> Words {
        self.help = help;
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Words {
        self.note = Some(note.into());
        self
    }

    fn at(self, at: Site) -> Box<Diag> {
        let mut diag = Diag::error(self.code, self.message);
        if !at.is_none() {
            let origin = Origin::at(at);
            diag.labels.push(Label { origin, focus: Focus::Call, keyword: None, text: self.label });
        }
        diag.notes.extend(self.note);
        diag.help = self.help;
        diag
    }
}

/// The diagnostic of an error without its frames.
fn one(error: EvalAltResult, context: &Context, stack: &[Frame]) -> Box<Diag> {
    use EvalAltResult::*;
    let at = site(error.position());
    let found = match error {
        ErrorRuntime(value, _) | ErrorTerminated(value, _) if value.is::<ErrorValue>() => return ours(&value, at),
        ErrorRuntime(value, _) if value.is::<MissingField>() => names::field(&value),
        ErrorRuntime(value, _) if paths::is_throw(at, context) => thrown(&value),
        ErrorRuntime(value, _) => refused(paths::name_at(at, context), &value),
        ErrorTerminated(..) => words(code::INTERRUPTED, "the script was interrupted", "it had come to here"),
        ErrorParsing(kind, position) => {
            return super::diagnose_parse(&rhai::ParseError(Box::new(kind), position), context);
        }
        ErrorSystem(message, inner) => return system(&message, &*inner, at),
        ErrorVariableNotFound(name, _) => {
            let found = names::variable(written_name(&name), at, context, stack);
            if found.help.is_none() && is_assigned(at, written_name(&name), context) {
                found.help(format!("a variable is declared before it is used: `let {name} = ..`"))
            } else {
                found
            }
        }
        ErrorFunctionNotFound(signature, _) => names::function(&signature, at, context),
        ErrorModuleNotFound(name, _) => names::module(&name, at, context),
        ErrorPropertyNotFound(name, _) => names::entry(&name),
        ErrorDotExpr(text, _) => dot(&text, context.known),
        ErrorIndexNotFound(key, _) => words(code::INDEX, format!("there is no entry {}", shown(&key)), "no such entry"),
        ErrorIndexingType(text, _) => indexing(&text),
        ErrorArrayBounds(length, index, _) => bounds("array", "element", length, index),
        ErrorStringBounds(length, index, _) => bounds("string", "character", length, index),
        ErrorBitFieldBounds(length, index, _) => bounds("bit field", "bit", length, index),
        ErrorMismatchDataType(expected, actual, _) if &*expected == "bool" && is_assignment_at(at, context) => {
            let message = format!("a bit of an integer is set to true or false, not to {}", a_type(&actual));
            words(code::TYPE, message, "set here").help(
                "`n[0]` is the lowest bit of an integer; arrays and tensors have elements: `let xs = [0, 0]; xs[0] = 1;`",
            )
        }
        ErrorMismatchDataType(expected, actual, _) | ErrorMismatchOutputType(expected, actual, _) => {
            mismatch(&expected, &actual)
        }
        ErrorFor(_) => words(code::TYPE, "a `for` loop cannot go over this value", "not iterable")
            .help("arrays, ranges (`0..n`), strings, tensors and loaders can be iterated"),
        ErrorUnboundThis(_) => words(code::TYPE, "`this` is not bound here", "nothing to refer to")
            .help("`this` is the map or value before the dot in a method call: `m.f(x)`, not `m.f.call(x)`"),
        ErrorDataRace(name, _) => data_race(&name),
        ErrorAssignmentToConstant(name, _) => match paths::path_to(at, context) {
            Some(space) if !name.contains("::") => constant(&format!("`{space}::{name}`")),
            _ => constant(&format!("`{name}`")),
        },
        ErrorNonPureMethodCallOnConstant(name, _) => {
            let name = name.trim_start_matches("get$").trim_start_matches("set$");
            let name = if name.contains('$') { "[ ] =" } else { name };
            words(code::CONSTANT, format!("`{name}` would change a constant"), "changed here")
                .help("declare it with `let` instead of `const`")
        }
        ErrorArithmetic(text, _) => arithmetic(&text),
        ErrorTooManyOperations(_) => {
            words(code::LIMIT_OPERATIONS, "the script reached its limit of operations", "it had come to here")
                .help("the program that runs the script sets this limit")
        }
        ErrorStackOverflow(_) => words(code::LIMIT_DEPTH, "calls are nested too deeply", "this call was one too many")
            .help("a function that calls itself needs a case in which it does not; a loop has no such limit"),
        ErrorTooManyVariables(_) => limit("variables"),
        ErrorTooManyModules(_) => limit("modules"),
        ErrorDataTooLarge(what, _) => {
            let what = what.to_lowercase();
            words(code::LIMIT_SIZE, format!("{what} is beyond the limit"), "made here")
                .help("numbers in bulk belong in tensors, which have no such limit")
        }
        ErrorVariableExists(name, _) => words(code::SYNTAX, format!("`{name}` is already defined"), "defined again"),
        ErrorForbiddenVariable(name, _) => {
            words(code::SYNTAX, format!("`{name}` cannot be the name of a variable"), "this name")
        }
        ErrorCustomSyntax(text, ..) => words(code::SYNTAX, lower(&text), "here"),
        LoopBreak(true, ..) => words(code::SYNTAX, "`break` outside a loop", "there is no loop to leave"),
        LoopBreak(false, ..) => words(code::SYNTAX, "`continue` outside a loop", "there is no loop to continue"),
        other => words(code::INTERNAL, format!("the interpreter failed: {other}"), "here"),
    };
    found.at(at)
}

/// Whether `=` or its kin stands at a position.
fn is_assignment_at(at: Site, context: &Context) -> bool {
    let Some(source) = context.sources.source(at) else { return false };
    let rest = source.text.get(source.offset(at)..).unwrap_or("");
    let symbol = rest.split(|c: char| c.is_alphanumeric() || c.is_whitespace()).next().unwrap_or("");
    is_assignment(symbol)
}

/// Whether the name at a position is assigned there: `x = 5`.
fn is_assigned(at: Site, name: &str, context: &Context) -> bool {
    let Some(source) = context.sources.source(at) else { return false };
    let rest = source.text.get(source.offset(at)..).and_then(|text| text.strip_prefix(name)).unwrap_or("");
    let rest = rest.trim_start();
    rest.starts_with('=') && !rest.starts_with("==")
}

fn ours(value: &Dynamic, at: Site) -> Box<Diag> {
    let diag = value.read_lock::<ErrorValue>().map(|error| error.0.clone());
    let diag = diag.unwrap_or_else(|| Diag::error(code::INTERNAL, "an error value was lost"));
    if at.is_none() { diag } else { diag.or_at(Origin::at(at), "here") }
}

fn system(message: &str, inner: &(dyn std::error::Error + Send + Sync + 'static), at: Site) -> Box<Diag> {
    if let Some(error) = inner.downcast_ref::<super::Error>() {
        return Box::new(error.diag().clone());
    }
    let text = if message.is_empty() { inner.to_string() } else { format!("{}: {inner}", lower(message)) };
    words(if inner.is::<std::io::Error>() { code::FILE } else { code::INTERNAL }, text, "here").at(at)
}

/// A value that the script threw.
fn thrown(value: &Dynamic) -> Words {
    let said = |value: &Dynamic| value.as_immutable_string_ref().map_or_else(|_| shown(value), |text| text.to_string());
    let message = value.read_lock::<rhai::Map>().and_then(|map| map.get("message").map(said));
    let text = message.unwrap_or_else(|| said(value));
    let message = if text.is_empty() { "the script threw an error".into() } else { text };
    let found = words(code::THROWN, message, "thrown here");
    match value.is_unit() {
        true => found.help("`throw` tells what it is given: `throw \"what is wrong\"`"),
        false => found,
    }
}

/// Whether a thrown value comes from the script, not from a function of the interpreter.
pub fn is_thrown(at: rhai::Position, context: &Context) -> bool {
    paths::is_throw(site(at), context)
}

/// What a native function of the interpreter said of its arguments.
fn refused(name: &str, value: &Dynamic) -> Words {
    let text = value.as_immutable_string_ref().map_or_else(|_| shown(value), |text| text.to_string());
    let message = if name.is_empty() { lower(&text) } else { format!("`{name}`: {}", lower(&text)) };
    words(code::VALUE, message, "called here")
}

/// A value as the script would write it, shortened.
fn shown(value: &Dynamic) -> String {
    let text = literal(value, 8);
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Formats a value without the session, which would wait for tensors; `depth` nested levels.
fn literal(value: &Dynamic, depth: usize) -> String {
    let inside = |item: &Dynamic| if depth == 0 { "..".into() } else { literal(item, depth - 1) };
    // Bound: more is not shown.
    const MAX_SHOWN: usize = 40;
    if let Some(array) = value.read_lock::<rhai::Array>() {
        let items: Vec<String> = array.iter().take(MAX_SHOWN).map(inside).collect();
        return format!("[{}]", items.join(", "));
    }
    if let Some(map) = value.read_lock::<rhai::Map>() {
        let items = map.iter().take(MAX_SHOWN).map(|(name, item)| format!("{name}: {}", inside(item)));
        return format!("#{{{}}}", items.collect::<Vec<_>>().join(", "));
    }
    if value.is_fnptr() {
        return "a function".into();
    }
    if value.is::<crate::script::values::types::Tensor>() || value.type_name().contains("::") {
        return type_names::of_value(value);
    }
    format!("{value:?}")
}

fn lower(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        // Not: the first letter of a name or an acronym.
        Some(first) if characters.clone().next().is_some_and(|c| c.is_lowercase()) => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_string(),
    }
}

/// Type names as users know them, with an article.
pub(super) fn a_type(name: &str) -> String {
    let word = match name.trim().trim_start_matches("&mut ").trim_start_matches('&') {
        "i64" | "INT" => "integer",
        "f64" | "FLOAT" => "float",
        "str | ImmutableString | String" | "ImmutableString" | "str" | "string" | "String" => "string",
        "char" => "character",
        "Fn" | "FnPtr" => "function",
        "" | "()" => return "`()`".into(),
        "range" | "Range<i64>" | "range=" | "RangeInclusive<i64>" => "range",
        "map" | "Map" => "map",
        "array" | "Array" => "array",
        "?" | "Dynamic" => return "any value".into(),
        // Rhai's own functions use the Rust names of types.
        other => type_names::of(other),
    };
    type_names::with_article(word)
}

pub(super) fn a_type_list(types: &[&str]) -> String {
    let types: Vec<String> = types.iter().map(|name| a_type(name)).collect();
    match types.split_last() {
        None => "no arguments".into(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

pub(super) fn operator(symbol: &str, types: &[&str]) -> Words {
    let message = match types {
        [left, right] => format!("`{symbol}` does not work between {} and {}", a_type(left), a_type(right)),
        _ => format!("`{symbol}` does not work on {}", a_type_list(types)),
    };
    words(code::TYPE, message, "this operator").maybe(operator_help(symbol, types).map(str::to_string))
}

/// Help for an operator that does not work between values of these types.
pub fn operator_help(symbol: &str, types: &[&str]) -> Option<&'static str> {
    Some(match types {
        ["string", _] if symbol == "%" => "values are inserted in text between backticks: `loss ${x:.4f}`",
        [_, _] if types.contains(&"bool") && matches!(symbol, "<" | "<=" | ">" | ">=") => {
            "comparisons do not chain: `a < x && x < b`"
        }
        ["()", _] | [_, "()"] => {
            "`()` is no value: a function gave none, a gradient is not there yet, or `xs.reduce(f)` had no start: `xs.reduce(f, 0)`"
        }
        ["string", "string"] if matches!(symbol, "*" | "/" | "%") => {
            "`int(text)` and `float(text)` are the numbers that texts show"
        }
        [_, _] if types.contains(&"string") => "to put values into text, write `${x}` between backticks",
        [_, _] if matches!(symbol, "|" | "&" | "-" | "^") && types.iter().any(|of| a_type(of) == "a set") => {
            "an array becomes a set by `set(xs)`: `set([1]) | set([2])`"
        }
        _ if types.contains(&"array") => "numbers in an array become a tensor by `tensor(..)`",
        ["f64"] if symbol == "!" => "a number is compared: `x == 0`",
        ["i64" | "f64", "i64" | "f64"] if matches!(symbol, "^" | "&" | "|") => {
            "`&`, `|` and `^` work on the bits of integers; a power is `x ** 2`"
        }
        _ => return None,
    })
}

/// Rhai reports properties of custom types in prose: "Unknown property 'x' - a getter is not registered for type
/// 'tensor'".
fn dot(text: &str, known: &Known) -> Words {
    let quoted: Vec<&str> = text.split('\'').skip(1).step_by(2).collect();
    match quoted[..] {
        [name, of, ..] if text.contains("setter") && names::is_property(name, of, known) => {
            let message = format!("the property `{name}` of {} cannot be assigned", a_type(of));
            words(code::UNKNOWN_PROPERTY, message, "assigned here")
        }
        [name, of, ..] => names::property(name, Some(of), known),
        _ => words(code::UNKNOWN_PROPERTY, lower(text), "here"),
    }
}

/// "tensor [string]", or "cannot index into a value of type 'i64'".
fn indexing(text: &str) -> Words {
    match text.split_once(" [") {
        Some((of, by)) => {
            // `array [string] = i64` if it is a target.
            let by = by.split(']').next().unwrap_or(by);
            let found =
                words(code::TYPE, format!("{} cannot be indexed by {}", a_type(of), a_type(by)), "indexed here");
            // For example, an optimizer has no `param_groups`.
            match a_type(of).as_str() {
                "`()`" => {
                    found.help("an empty map is written `#{}`; `m.get(name)` gives `()` for a name that a map has not")
                }
                "a dataset" => found.help("an integer reads a row, `d[0]`, `d[-1]`; rows are not written"),
                "a loader" => found.help("batches come one after another: `for batch in loader { .. }`"),
                "a tensor" if by.contains("string") || by.contains("String") => {
                    found.help("`\"...\"` means the remaining dimensions: `x[\"...\", 0]`")
                }
                _ => found,
            }
        }
        None => words(code::TYPE, format!("{} cannot be indexed", a_type(text)), "indexed here"),
    }
}

fn bounds(what: &str, part: &str, length: usize, index: i64) -> Words {
    let plural = if length == 1 { "" } else { "s" };
    let message = format!("index {index} is out of range for this {what} of {length} {part}{plural}");
    let found = words(code::INDEX, message, "indexed here");
    match length {
        0 => found.help(format!("the {what} is empty")),
        _ => found.help(format!("indices go from 0 to {}, or from -1 back to -{length}", length - 1)),
    }
}

fn mismatch(expected: &str, actual: &str) -> Words {
    let message = match (expected, actual) {
        ("bool", _) => format!("a condition must be true or false, and this is {}", a_type(actual)),
        ("", _) => format!("{} does not fit here", a_type(actual)),
        (_, "") => format!("{} is needed here", a_type(expected)),
        _ => format!("{} is needed here, and this is {}", a_type(expected), a_type(actual)),
    };
    let found = words(code::TYPE, message, "this value");
    match (expected, actual) {
        ("f64", "i64") => found.help("write the number with a point, `1.0`, or convert it by `.to_float()`"),
        // Only maps are indexed by strings; it is not known which map it is.
        (expected, "i64") if a_type(expected) == "a string" => found.help(
            "the keys of a map are strings, `m[str(i)]`: results have names (`x.max(1).indices`, `lstm.forward(x).output`), \
             the layers of a `sequential` or `module_list` are in `m.layers[0]`, a row of a map of tensors is `data::get(d, i)`",
        ),
        ("i64", _) if a_type(actual) == "a range" => {
            found.help("`xs[1..3]` reads a part of an array, `xs.splice(1..3, [9, 8])` puts others in its place")
        }
        ("i64", "f64") => found.help("convert it by `.to_int()`, which rounds towards zero"),
        ("i64", _) if a_type(actual) == "a tensor" => {
            found.help("the number in a tensor of one element is `.item()`: `xs[i.item()]`")
        }
        _ => found,
    }
}

fn data_race(name: &str) -> Words {
    let name = name.trim_matches('\'');
    if name.is_empty() {
        return words(code::BORROWED, "a closure uses the variable through which it is called", "in use here")
            .help("in `m.f()` the map is `this`; what calls itself is a function: `fn f(n) { .. f(n - 1) .. }`");
    }
    // The interpreter's name of a closure is not shown.
    if name.contains("anon$") {
        return words(code::BORROWED, "a closure uses the value whose method calls it", "in use here")
            .help("take what the closure needs out of the value first: `let n = m.n; m.each(|x| x + n)`");
    }
    words(code::BORROWED, "a value is changed while a method of it is at work", "in use here")
        .note(format!("it concerns {}", name.replacen('\'', "`", 1) + if name.contains('\'') { "`" } else { "" }))
        .help("take what the closure needs out of the value first: `let n = a.len(); a.map(|x| x + n)`")
}

fn constant(what: &str) -> Words {
    if what.contains("::") {
        return words(code::CONSTANT, format!("{what} cannot be changed outside of its module"), "changed here").help(
            "what a module exports is as it was when its text had run; `export const n = cell(0);` holds a value that can change: `m::n.set(1)`",
        );
    }
    words(code::CONSTANT, format!("{what} cannot be changed: it is a constant"), "changed here")
        .help("declare it with `let` instead of `const`")
}

fn arithmetic(text: &str) -> Words {
    // Rhai's `parse_int`, `parse_float` and `range` have no other kind of error.
    if text.contains("parsing") || text.contains("step value") {
        return words(code::VALUE, lower(text), "here");
    }
    let found = words(code::ARITHMETIC, if text.is_empty() { "arithmetic failed".into() } else { lower(text) }, "here");
    match text {
        _ if text.contains("negative power") => found.help("zero has no such power; of floats it is infinite"),
        _ if text.contains("zero") => found.help("floats have a remainder of zero, which is NaN: `1.0 % 0.0`"),
        _ if text.contains("overflow") => found.help("integers have 64 bits; floats reach further: `2.0 ** 100`"),
        _ => found,
    }
}

fn limit(what: &str) -> Words {
    words(code::LIMIT_SIZE, format!("there are too many {what}"), "this is one too many")
}

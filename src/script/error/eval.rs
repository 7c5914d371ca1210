//! From Rhai's errors at run time to diagnostics: code, words, place, suggestion and the script's call stack.

use super::{Context, Known, absent, absent_cuda};
use crate::base::code::{self, Code};
use crate::base::diag::{Diag, Focus, Frame, Label};
use crate::base::dtype::DType;
use crate::base::span::{Origin, Site};
use crate::base::suggest::nearest;
use crate::script::manual;
use crate::script::raise::{ErrorValue, site_of as site};
use crate::script::source::pass::written_name;
use rhai::{Dynamic, EvalAltResult};

/// The diagnostic of an error that came out of the interpreter. An error of ours keeps its own, and only
/// gets the place and the call stack if it has none.
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
    // Of what was queued earlier the stack is the one of that time, also when it was empty.
    if diag.stack.is_empty() && !diag.is_late {
        diag.stack = stack;
    }
    lift(&mut diag, context);
    diag
}

/// What users call a function.
fn function_name(name: &str) -> String {
    if name.starts_with("anon$") { "a closure".into() } else { written_name(name).into() }
}

/// The primary label belongs to the user's line: a place inside the standard library gets the nearest call
/// from a user's source before it.
fn lift(diag: &mut Diag, context: &Context) {
    let Some(first) = diag.labels.first_mut() else { return };
    if context.sources.is_std(first.origin.user) && first.origin.inner.is_none() {
        let users = diag.stack.iter().map(|frame| frame.call);
        if let Some(user) = users.into_iter().find(|call| !call.is_none() && !context.sources.is_std(*call)) {
            first.origin = Origin { user, inner: first.origin.user };
        }
    }
}

struct Words {
    code: Code,
    message: String,
    label: String,
    help: Option<String>,
    note: Option<String>,
}

fn words(code: Code, message: impl Into<String>, label: impl Into<String>) -> Words {
    Words { code, message: message.into(), label: label.into(), help: None, note: None }
}

impl Words {
    fn help(mut self, help: impl Into<String>) -> Words {
        self.help = Some(help.into());
        self
    }

    fn maybe(mut self, help: Option<String>) -> Words {
        self.help = help;
        self
    }

    fn note(mut self, note: impl Into<String>) -> Words {
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
    let known = context.known;
    let found = match error {
        ErrorRuntime(value, _) | ErrorTerminated(value, _) if value.is::<ErrorValue>() => return ours(&value, at),
        ErrorRuntime(value, _) => thrown(&value),
        ErrorTerminated(..) => words(code::INTERRUPTED, "the script was interrupted", "it had come to here"),
        ErrorParsing(kind, position) => {
            return super::diagnose_parse(&rhai::ParseError(Box::new(kind), position), context);
        }
        ErrorSystem(message, inner) => return system(&message, &*inner, at),
        ErrorVariableNotFound(name, _) => {
            let found = variable(written_name(&name), known, stack);
            if found.help.is_none() && is_assigned(at, written_name(&name), context) {
                found.help(format!("a variable is declared before it is used: `let {name} = ..`"))
            } else {
                found
            }
        }
        ErrorFunctionNotFound(signature, _) => function(&signature, known),
        ErrorModuleNotFound(name, _) => module(&name, known),
        ErrorPropertyNotFound(name, _) => entry(&name),
        ErrorDotExpr(text, _) => dot(&text, known),
        ErrorIndexNotFound(key, _) => words(code::INDEX, format!("there is no entry {}", shown(&key)), "no such entry"),
        ErrorIndexingType(text, _) => indexing(&text),
        ErrorArrayBounds(length, index, _) => bounds("array", "element", length, index),
        ErrorStringBounds(length, index, _) => bounds("string", "character", length, index),
        ErrorBitFieldBounds(length, index, _) => bounds("bit field", "bit", length, index),
        ErrorMismatchDataType(wanted, actual, _) | ErrorMismatchOutputType(wanted, actual, _) => {
            mismatch(&wanted, &actual)
        }
        ErrorFor(_) => words(code::TYPE, "a `for` loop cannot go over this value", "not iterable")
            .help("arrays, ranges (`0..n`), strings, tensors and loaders can be iterated"),
        ErrorUnboundThis(_) => words(code::TYPE, "`this` is not bound here", "nothing to refer to")
            .help("`this` is the map or value before the dot in a method call: `m.f(x)`, not `m.f.call(x)`"),
        ErrorDataRace(name, _) => data_race(&name),
        ErrorAssignmentToConstant(name, _) => constant(&format!("`{name}`")),
        ErrorNonPureMethodCallOnConstant(name, _) => {
            let name = name.trim_start_matches("get$").trim_start_matches("set$");
            constant(&format!("a constant by `{}`", if name.contains('$') { "[ ]" } else { name }))
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

/// Whether the name at a place is assigned there: `x = 5`.
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

/// A value that the script threw itself.
fn thrown(value: &Dynamic) -> Words {
    let said = |value: &Dynamic| value.as_immutable_string_ref().map_or_else(|_| shown(value), |text| text.to_string());
    let message = value.read_lock::<rhai::Map>().and_then(|map| map.get("message").map(said));
    let text = message.unwrap_or_else(|| said(value));
    let message = if text.is_empty() { "the script threw an error".into() } else { text };
    words(code::THROWN, message, "thrown here")
}

/// A value as the script would write it, shortened.
fn shown(value: &Dynamic) -> String {
    let text = literal(value, 8);
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A value without asking the session, which would wait for tensors; `depth` levels of it.
fn literal(value: &Dynamic, depth: usize) -> String {
    let inside = |item: &Dynamic| if depth == 0 { "..".into() } else { literal(item, depth - 1) };
    // Bound: more is not shown.
    const MOST: usize = 40;
    if let Some(array) = value.read_lock::<rhai::Array>() {
        let items: Vec<String> = array.iter().take(MOST).map(inside).collect();
        return format!("[{}]", items.join(", "));
    }
    if let Some(map) = value.read_lock::<rhai::Map>() {
        let items = map.iter().take(MOST).map(|(name, item)| format!("{name}: {}", inside(item)));
        return format!("#{{{}}}", items.collect::<Vec<_>>().join(", "));
    }
    if value.is_fnptr() {
        return "a function".into();
    }
    if value.is::<crate::script::value::Tensor>() || value.type_name().contains("::") {
        return crate::script::convert::type_name(value);
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
        other if other.contains("ops::range::") || other.contains("iter_basic::StepRange") => "range",
        "map" | "Map" => "map",
        "array" | "Array" => "array",
        "?" | "Dynamic" => return "any value".into(),
        other => match other.rsplit("::").next().unwrap_or(other) {
            // Rhai's own functions name our types as Rust does.
            "DeviceValue" => "device",
            "DTypeValue" => "dtype",
            "StreamValue" => "stream",
            "EventValue" => "event",
            "SliceValue" => "slice",
            other => other,
        },
    };
    let article = if word.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {word}")
}

fn a_type_list(types: &str) -> String {
    let types: Vec<String> = types.split(", ").filter(|t| !t.is_empty()).map(a_type).collect();
    match types.split_last() {
        None => "no arguments".into(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

fn did_you_mean(name: &str, candidates: &[String]) -> Option<String> {
    let near = nearest(name, candidates.iter().map(String::as_str).filter(|c| *c != name && !c.contains('$')))?;
    Some(format!("did you mean `{}`?", written_name(near)))
}

/// Habits from other languages.
fn foreign(name: &str) -> Option<&'static str> {
    Some(match name {
        "None" | "null" | "nil" | "undefined" | "NULL" => "the empty value is `()`",
        "True" => "write `true`",
        "False" => "write `false`",
        "self" => "write `this`",
        _ if without_prefix(name).is_some() => return without_prefix(name),
        "range" => "write `0..n`, or `range(0, n, step)`",
        "isinstance" | "type" => "write `type_of(x) == \"...\"`",
        "iter" | "next" => {
            "the first of an array is `xs[0]`, of a loader what `for batch in loader { .. break; }` begins with"
        }
        "pass" => "an empty block is `{ }`",
        "deepcopy" => "a module has `model.copy()`, a tensor `x.clone()`; arrays and maps are copied by `let`",
        "sys" => "script arguments are `args`; `exit()` ends a script",
        "os" | "pathlib" | "json" | "random" | "copy" | "time" => {
            "Python's modules are not here: `load(path)`, `to_json(x)`, `parse_json(text)`, `rand([2])`, `timestamp()`"
        }
        "exit" | "quit" => "write `exit()`, or `exit(1)`",
        "inf" => "write `INF`",
        "nan" => "write `NAN`",
        "pi" => "write `PI`",
        "math" => "these functions have no prefix: `sqrt(2.0)`, `PI`",
        "elif" => "write `else if`",
        "lambda" => "write a closure: `|x| x + 1`",
        _ => return None,
    })
}

/// Modules of PyTorch whose functions have no prefix here.
fn without_prefix(name: &str) -> Option<&'static str> {
    let known = ["torch", "np", "numpy", "F", "functional", "linalg", "special"];
    known.contains(&name).then_some("operations have no prefix: `randn([2, 3])`, `x.sum()`")
}

/// `CrossEntropyLoss` → `cross_entropy_loss`, if the module of the library has it.
fn in_our_spelling(module: &str, name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.replace('_', "").to_lowercase();
    let wanted = plain(name);
    manual::functions(module).iter().map(|function| function.name.as_str()).find(|known| plain(known) == wanted)
}

fn variable(name: &str, known: &Known, stack: &[Frame]) -> Words {
    let found = words(code::UNKNOWN_VARIABLE, format!("there is no variable `{name}`"), "not found");
    let inside = stack.iter().any(|frame| !frame.function.contains(' '));
    if inside && known.variables.iter().any(|other| other == name) {
        let help = format!("pass it as an argument; a constant of the top level is `global::{name}`");
        return found.help(help).note("a function sees no variables of the outside, only its arguments");
    }
    if let Some(help) = foreign(name) {
        return found.help(help);
    }
    if DType::parse(name).is_some() {
        let kind = match name {
            "int" => "; the type of a value is asked by `type_of(x) == \"i64\"`",
            "float" => "; the type of a value is asked by `type_of(x) == \"f64\"`",
            "bool" => "; the type of a value is asked by `type_of(x) == \"bool\"`",
            _ => "",
        };
        return found.help(format!("dtypes are strings: `\"{name}\"`{kind}"));
    }
    if known.functions.iter().any(|other| other == name) {
        return found.help(format!("`{name}` is a function: call it, or take it as a value with `Fn(\"{name}\")`"));
    }
    if known.modules.iter().any(|other| other == name) {
        return found.help(format!("`{name}` is a module: import it with `import \"{name}\" as {name};`"));
    }
    let suggestion = did_you_mean(name, &known.variables);
    let found = match (suggestion.is_none(), inside) {
        (true, true) => found.note("a function sees no variables of the outside, only its arguments"),
        _ => found,
    };
    found.maybe(suggestion)
}

fn function(signature: &str, known: &Known) -> Words {
    let (path, types) = signature.split_once(" (").unwrap_or((signature, ""));
    let types = types.trim_end_matches(')');
    let name = written_name(path.rsplit("::").next().unwrap_or(path));
    if path.starts_with("anon$") {
        let message = format!("this closure cannot be called with {}", a_type_list(types));
        return words(code::EXTRA_ARGUMENT, message, "called here")
            .help("a closure takes exactly the arguments between its bars");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return operator(name, types);
    }
    if let Some((space, _)) = path.rsplit_once("::") {
        let message = format!("there is no function `{name}` in the module `{space}`");
        if let Some(help) = space.split("::").find_map(without_prefix) {
            return words(code::UNKNOWN_FUNCTION, message, "not found").help(help);
        }
        let path = format!("{space}::{name}");
        if let Some(native) = manual::native(&path) {
            let message = match types.is_empty() {
                true => format!("`{path}` wants an argument"),
                false => format!("`{path}` does not take {}", a_type_list(types)),
            };
            return words(code::ARGUMENT_TYPE, message, "called here")
                .help(format!("call it as `{space}::{}`", native.call));
        }
        let outer_is_cuda = space == "cuda" || space.starts_with("cuda::");
        if let Some(reason) = absent_cuda::reason(name).filter(|_| outer_is_cuda).or_else(|| absent::reason(name)) {
            return words(code::UNKNOWN_FUNCTION, message, "not found").help(reason);
        }
        // PyTorch's modules have modules inside, as `nn::init`; the library's have not.
        let outer = space.split("::").next().unwrap_or(space);
        if let Some(found) = in_our_spelling(outer, name).filter(|found| outer != space || *found != name) {
            let help =
                format!("it is `{outer}::{found}`{}", if outer == space { ": names are in small letters" } else { "" });
            return words(code::UNKNOWN_FUNCTION, message, "not found").help(help);
        }
        let same: Vec<String> =
            known.functions.iter().filter(|f| f.starts_with(&format!("{space}::"))).cloned().collect();
        let native = manual::natives().filter(|native| native.name.starts_with(&format!("{space}::")));
        let same: Vec<String> = same.into_iter().chain(native.map(|native| native.name.to_string())).collect();
        let help = did_you_mean(&format!("{space}::{name}"), &same).or_else(|| did_you_mean(name, &known.functions));
        if manual::functions(space).iter().any(|function| function.name == name) {
            let message =
                format!("`{space}::{name}` does not take {} arguments by position", types.split(", ").count());
            return words(code::EXTRA_ARGUMENT, message, "called here").maybe(
                manual::signature(&format!("{space}::{name}"), false).map(|call| format!("call it as `{call}`")),
            );
        }
        let taken = same.iter().any(|f| f.rsplit("::").next() == Some(name));
        if taken {
            let message = format!("`{space}::{name}` does not take {}", a_type_list(types));
            return words(code::ARGUMENT_TYPE, message, "called here");
        }
        return words(code::UNKNOWN_FUNCTION, message, "not found").maybe(help);
    }
    if known.functions.iter().any(|other| written_name(other) == name) {
        let message = format!("`{name}` does not take {}", a_type_list(types));
        let call = manual::native(name).filter(|native| !native.call.is_empty()).map(manual::Native::written);
        let help = match name {
            "seed" => Some("write `manual_seed(0)`".to_string()),
            _ => call.map(|call| format!("call it as `{call}`")),
        };
        return words(code::ARGUMENT_TYPE, message, "called here").maybe(help);
    }
    let found = words(code::UNKNOWN_FUNCTION, format!("there is no function `{name}`"), "not found");
    if known.variables.iter().any(|other| other == name) {
        return found.help(format!(
            "`{name}` is a variable; a function held in one is called by `{name}.call(..)`, a module by `{name}.forward(..)`"
        ));
    }
    if known.properties.iter().any(|other| other == name) {
        return found.help(format!("`{name}` is a property: write it without `()`"));
    }
    match of_sequences(name, types).or_else(|| absent::reason(name)).or_else(|| foreign(name)) {
        Some(help) => found.help(help),
        None => found.maybe(did_you_mean(name, &known.functions)),
    }
}

/// Methods that Python's lists and dictionaries have.
fn of_sequences(name: &str, types: &str) -> Option<&'static str> {
    let owner = types.split(", ").next().unwrap_or("");
    Some(match (owner, name) {
        ("array", "index") => "write `xs.index_of(x)`, which gives -1 where it is not",
        ("array", "count") => "write `xs.filter(|x| x == y).len()`",
        ("array" | "map", "copy" | "deepcopy") => "arrays and maps are copied by `let`: `let b = a;`",
        ("map", "setdefault") => "write `if !(key in m) { m[key] = value; }`",
        _ => return None,
    })
}

fn operator(symbol: &str, types: &str) -> Words {
    let message = match types.split_once(", ") {
        Some((left, right)) => format!("`{symbol}` does not work between {} and {}", a_type(left), a_type(right)),
        None => format!("`{symbol}` does not work on {}", a_type(types)),
    };
    let found = words(code::TYPE, message, "this operator");
    match types {
        _ if types.contains("string") && types.contains(", ") => {
            found.help("to put values into text, write `${x}` between backticks")
        }
        _ if types.contains("array") => found.help("numbers in an array become a tensor by `tensor(..)`"),
        _ => found,
    }
}

fn module(name: &str, known: &Known) -> Words {
    words(code::MODULE_NOT_FOUND, format!("there is no module `{name}`"), "not found here").maybe(
        if known.modules.iter().any(|other| other == name) {
            Some(format!("write `import \"{name}\" as {name};` before it; a function cannot see imports made after it"))
        } else {
            without_prefix(name)
                .or_else(|| foreign(name))
                .map(str::to_string)
                .or_else(|| did_you_mean(name, &known.modules))
        },
    )
}

fn property(name: &str, of: Option<&str>, known: &Known) -> Words {
    let of = of.map_or(String::new(), |of| format!(" of {}", a_type(of)));
    let found = words(code::UNKNOWN_PROPERTY, format!("there is no property `{name}`{of}"), "not found");
    if of == " of an error" {
        return found.help(format!("an error has {}", super::PROPERTIES.map(|name| format!("`{name}`")).join(", ")));
    }
    if known.functions.iter().any(|other| other == name) {
        return found.help(format!("`{name}` is a method: call it, `.{name}()`"));
    }
    if let Some(reason) = absent::reason(name) {
        return found.help(reason);
    }
    found.maybe(did_you_mean(name, &known.properties).or_else(|| did_you_mean(name, &known.functions)))
}

/// A name that a map has not. Which map it is, nobody knows here.
fn entry(name: &str) -> Words {
    let found = words(code::UNKNOWN_PROPERTY, format!("this map has no entry `{name}`"), "not found");
    if manual::native(name).is_some_and(|native| matches!(native.form, manual::Form::Of(_))) {
        return found.help(format!("`{name}` is a method: call it, `.{name}()`"));
    }
    if matches!(name, "name" | "__class__") {
        return found.help("what a module has tells what it is: `if \"weight\" in m { .. }`");
    }
    if let Some(reason) = absent::reason(name) {
        return found.help(reason);
    }
    match nearest(name, MEMBERS) {
        Some(near) => found.help(format!("did you mean `{near}`?")),
        None => found.help(format!("`keys()` lists what it has; `m.get(\"{name}\")` gives `()` for what it has not")),
    }
}

/// What modules of the library often have.
const MEMBERS: [&str; 6] = ["weight", "bias", "forward", "layers", "training", "output"];

/// Rhai tells about properties of custom types in prose: "Unknown property 'x' - a getter is not registered
/// for type 'tensor'".
fn dot(text: &str, known: &Known) -> Words {
    let quoted: Vec<&str> = text.split('\'').skip(1).step_by(2).collect();
    match quoted[..] {
        [name, of, ..] if text.contains("setter") => {
            let message = format!("the property `{name}` of {} cannot be assigned", a_type(of));
            words(code::UNKNOWN_PROPERTY, message, "assigned here")
        }
        [name, of, ..] => property(name, Some(of), known),
        _ => words(code::UNKNOWN_PROPERTY, lower(text), "here"),
    }
}

/// "tensor [string]", or "cannot index into a value of type 'i64'".
fn indexing(text: &str) -> Words {
    let text = text.trim_end_matches(" = ?");
    match text.split_once(" [") {
        Some((of, by)) => {
            let by = by.trim_end_matches(']');
            let found =
                words(code::TYPE, format!("{} cannot be indexed by {}", a_type(of), a_type(by)), "indexed here");
            // An optimizer has no `param_groups`, for example.
            match a_type(of).as_str() {
                "`()`" => found.help("a map gives `()` for a name that it has not: `keys()` lists its names"),
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

fn mismatch(wanted: &str, actual: &str) -> Words {
    let message = match (wanted, actual) {
        ("bool", _) => format!("a condition must be true or false, and this is {}", a_type(actual)),
        ("", _) => format!("{} does not fit here", a_type(actual)),
        (_, "") => format!("{} is needed here", a_type(wanted)),
        _ => format!("{} is needed here, and this is {}", a_type(wanted), a_type(actual)),
    };
    let found = words(code::TYPE, message, "this value");
    match (wanted, actual) {
        ("f64", "i64") => found.help("write the number with a point, `1.0`, or convert it by `.to_float()`"),
        // Only maps are indexed by strings; which map it is, nobody knows here.
        (wanted, "i64") if a_type(wanted) == "a string" => found.help(
            "the keys of a map are strings: results have names (`x.max(1).indices`, `lstm.forward(x).output`), \
             the layers of a `sequential` or `module_list` are in `m.layers[0]`",
        ),
        ("i64", _) if a_type(actual) == "a range" => {
            found.help("a part of an array is `xs.extract(1..3)`; of a tensor `x[1..3]`")
        }
        ("i64", "f64") => found.help("convert it by `.to_int()`, which rounds towards zero"),
        _ => found,
    }
}

fn data_race(name: &str) -> Words {
    let name = name.trim_matches('\'');
    words(code::BORROWED, "a value is changed while a method of it is at work", "in use here")
        .note(format!("it concerns {name}"))
        .help("take what the closure needs out of the value first: `let n = a.len(); a.map(|x| x + n)`")
}

fn constant(what: &str) -> Words {
    words(code::CONSTANT, format!("{what} cannot be changed: it is a constant"), "changed here")
        .help("declare it with `let` instead of `const`")
}

fn arithmetic(text: &str) -> Words {
    let found = words(code::ARITHMETIC, if text.is_empty() { "arithmetic failed".into() } else { lower(text) }, "here");
    match text {
        _ if text.contains("overflow") => found.help("integers have 64 bits; floats reach further: `2.0 ** 100`"),
        _ if text.contains("negative power") => found.help("a float has such powers: `2.0 ** -1`"),
        _ if text.contains("zero") => found.help("floats divide by zero without an error: `1.0 / 0.0` is infinite"),
        _ => found,
    }
}

fn limit(what: &str) -> Words {
    words(code::LIMIT_SIZE, format!("there are too many {what}"), "this is one too many")
}

//! Undefined names, and calls that fit no function of their name: finds what was meant, by the type of the value
//! before the dot and by the context in the text.

use super::eval::{Words, a_type, a_type_list, operator, words};
use super::{Context, Known, PROPERTIES, absent, absent_cuda, habits, paths};
use crate::base::code::{self, Code};
use crate::base::diag::Frame;
use crate::base::dtype::DType;
use crate::base::span::Site;
use crate::base::suggest::nearest;
use crate::op::row::{CallForm, Kind};
use crate::op::table;
use crate::script::library::texts;
use crate::script::manual::members;
use crate::script::manual::{self, Form, Native};
use crate::script::source::pass::written_name;
use crate::script::values::module::{Missing, MissingField};
use crate::script::values::native_forms;
use rhai::Dynamic;

pub(super) fn variable(name: &str, at: Site, context: &Context, stack: &[Frame]) -> Words {
    let known: &Known = context.known;
    if let Some(name) = name.strip_prefix("global::") {
        return words(code::UNKNOWN_VARIABLE, format!("there is no constant `{name}` yet"), "not found")
            .help(format!("call the function below the line `const {name} = ..`"));
    }
    let found = match paths::is_import(at, context) {
        true => words(code::SYNTAX, paths::IMPORT, "here"),
        false => words(code::UNKNOWN_VARIABLE, format!("there is no variable `{name}`"), "not found"),
    };
    let inside = stack.iter().any(|frame| !frame.function.contains(' '));
    let is_outside = || known.variables.iter().any(|other| other == name) || paths::is_of_top(name, at, context);
    if inside && is_outside() {
        let help = format!(
            "pass it as an argument; what never changes can be a constant, `const {name} = ..`, which functions see"
        );
        return found.help(help).note("a function sees no variables of the outside, only its arguments and constants");
    }
    if let Some(help) = paths::help(at, context) {
        return found.help(help);
    }
    if let Some((space, function)) = name.rsplit_once("::")
        && paths::has_function(space, function, at, context)
    {
        return found.help(format!("`{name}` is a function: call it, or write a closure that does, `|x| {name}(x)`"));
    }
    if let Some((space, function)) = name.rsplit_once("::")
        && (manual::native(name).is_some()
            || manual::page(name).is_some()
            || manual::functions(paths::library(space, at, context).unwrap_or(space))
                .iter()
                .any(|known| known.name == function))
    {
        return found.help(format!("`{name}` is a function: call it, `{name}(..)`"));
    }
    if paths::is_entry_around(name, at, context) {
        return found.help(format!("a closure in a map reads the map's entries through `this`: `this.{name}`"));
    }
    if let Some(help) = habits::variable(name) {
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
    if matches!(name, "cuda" | "cpu") {
        return found.help(format!("devices are strings: `\"{name}\"`; functions of a module follow `{name}::`"));
    }
    if known.functions.iter().any(|other| other == name) {
        return found.help(format!(
            "`{name}` is a function: call it, or take it as a value with `Fn(\"{name}\")`, as in `xs.map(Fn(\"{name}\"))`"
        ));
    }
    if known.modules.iter().any(|other| other == name) {
        return found.help(format!(
            "`{name}` is a module: after `import \"{name}\" as {name};` what it has is `{name}::f(..)`"
        ));
    }
    if let Some(help) = absent::reason(name).or_else(|| habits::function(name)) {
        return found.help(help);
    }
    // A name that is declared below is no help: the same error would come of it.
    let (below, seen): (Vec<&str>, Vec<&str>) = known
        .variables
        .iter()
        .map(String::as_str)
        .filter(|other| nearest(name, [*other]).is_some())
        .partition(|other| paths::is_declared_later(other, at, context));
    let later = || Some(format!("`{}` is declared below this", nearest(name, below)?));
    let suggestion = did_you_mean(name, seen.into_iter()).or_else(later);
    let found = match (suggestion.is_none(), inside) {
        (true, true) => found.note("a function sees no variables of the outside, only its arguments and constants"),
        _ => found,
    };
    found.maybe(suggestion)
}

pub(super) fn function(signature: &str, at: Site, context: &Context) -> Words {
    let known: &Known = context.known;
    let (path, types) = signature.split_once(" (").unwrap_or((signature, ""));
    let types: Vec<&str> =
        types.strip_suffix(')').unwrap_or(types).split(", ").filter(|name| !name.is_empty()).collect();
    let name = written_name(path.rsplit("::").next().unwrap_or(path));
    if path.starts_with("anon$") {
        return closure(path, &types, at, context);
    }
    if name.is_empty() {
        let text = format!("{} cannot be called", types.first().map_or("this".to_string(), |first| a_type(first)));
        return words(code::TYPE, text, "called here").help("a closure `|x| x + 1` and `Fn(\"name\")` can");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return operator(name, &types);
    }
    if let Some((space, _)) = path.rsplit_once("::") {
        return in_module(space, name, &types, at, context);
    }
    // `f.call(1)` has no receiver.
    let is_method = paths::is_method(at, context) && (name == "call" || paths::name_at(at, context) != "call");
    let receiver = if is_method { types.first().map(|of| native_forms::plain(of)) } else { None };
    if let Some(help) = habits::function(name).filter(|_| receiver.is_none() && is_only_a_method(name)) {
        return words(code::UNKNOWN_FUNCTION, not_found(name, None), "not found").help(help);
    }
    if let Some(found) = native_arity_error(name, &types, receiver.is_some(), known) {
        return found;
    }
    if let Some(help) = receiver.and_then(|owner| habits::method(owner, name)) {
        return words(code::UNKNOWN_FUNCTION, not_found(name, receiver), "not found").help(help);
    }
    if let ("forward", Some(kind @ ("map" | "module"))) = (name, receiver) {
        let found = words(code::UNKNOWN_FUNCTION, format!("this {kind} has no `forward`"), "not found");
        return found.help("a module computes in a closure of that name: `nn::module(#{forward: |x| ..})`");
    }
    if let Some(found) = unsupported_arity(name, &types, receiver, known) {
        return found;
    }
    if let Some(found) = script_method_arity(name, &types, receiver, known) {
        return found;
    }
    if name == "contains" && receiver.is_none() && paths::is_operator_in(at, context) {
        let [of, needle] = types[..] else { return words(code::ARGUMENT_TYPE, "`in` expects two values", "here") };
        let message = format!("`in` does not look for {} in {}", a_type(needle), a_type(of));
        let help = "`x in xs` searches an array, a string, or the keys of a map; of a tensor `(x == 1).any()`";
        return words(code::ARGUMENT_TYPE, message, "this operator").help(help);
    }
    if exists(name, receiver, known) {
        let message = format!("`{name}` does not take {}", a_type_list(&types));
        let call = native_of(name, receiver).filter(|native| !native.call.is_empty()).map(Native::written);
        let help = match name {
            "seed" => Some("write `manual_seed(0)`".to_string()),
            _ => call.map(|call| format!("call it as `{call}`")),
        };
        return words(code::ARGUMENT_TYPE, message, "called here").maybe(help);
    }
    let found = words(code::UNKNOWN_FUNCTION, not_found(name, receiver), "not found");
    if receiver.is_none() && paths::is_declared_later(name, at, context) {
        return found.help(format!(
            "`{name}` is declared below: write `let {name} = ();` above what calls it, or make it a function, `fn {name}(..)`"
        ));
    }
    if receiver.is_none() && known.variables.iter().any(|other| other == name) {
        return found.help(format!(
            "`{name}` is a variable, and what it holds is neither a closure nor a module with a `forward`"
        ));
    }
    if known.properties.iter().any(|other| other == name) {
        return found.help(format!("`{name}` is a property: write it without `()`"));
    }
    // A field of a map is called like a method: a missing name may be either.
    let help = absent::reason(name).or_else(|| habits::function(name)).or_else(|| habits::variable(name));
    match help {
        Some(help) => found.help(help),
        None => found.maybe(suggestion(name, receiver, known)),
    }
}

/// A closure that is called with too many or too few arguments. As a method it gets its receiver as `this`, which is
/// not an argument.
fn closure(path: &str, types: &[&str], at: Site, context: &Context) -> Words {
    let found = |code, message: String| {
        words(code, message, "called here").help("a closure takes exactly the arguments between its bars")
    };
    let is_method = paths::is_method(at, context)
        && types.first().is_some_and(|of| matches!(native_forms::plain(of), "map" | "module"));
    let types = if is_method { &types[1..] } else { types };
    let captured = context.known.captured.get(path).copied().unwrap_or(0);
    let types = types.get(captured..).unwrap_or(types);
    let name = match paths::name_at(at, context) {
        name if is_method && !name.is_empty() => format!("`{name}`"),
        _ => "this closure".to_string(),
    };
    let known: &Known = context.known;
    let written = known.written.iter().find(|(other, _)| other == path).map(|(_, count)| *count);
    let given = |count: usize| count.saturating_sub(captured);
    let of_module = || {
        let mut functions = known.loaded.iter().flat_map(|module| module.iter_script_fn_info());
        functions.find_map(|(_, _, name, params, _)| (name == path).then_some(params))
    };
    match written.or_else(of_module).map(given) {
        Some(arity) if arity != types.len() => {
            let code = if arity > types.len() { code::MISSING_ARGUMENT } else { code::EXTRA_ARGUMENT };
            found(code, format!("{name} takes {}, not {}", arguments(arity), types.len()))
        }
        _ if types.is_empty() => found(code::MISSING_ARGUMENT, format!("{name} expects an argument")),
        _ => found(code::EXTRA_ARGUMENT, format!("{name} cannot be called with {}", a_type_list(types))),
    }
}

/// Whether a name exists only as a method: `c.set(value)`.
fn is_only_a_method(name: &str) -> bool {
    manual::native(name).is_some_and(|native| matches!(native.form, Form::Of(_) | Form::Method))
}

/// The native of a name that values of this type have, if they have one of their own.
fn native_of(name: &str, receiver: Option<&str>) -> Option<&'static Native> {
    let owner = match receiver {
        Some("array") => "xs",
        Some("string" | "char") => "text",
        Some("map") => "m",
        Some("module") => "model",
        _ => return manual::native(name),
    };
    let own = manual::natives().find(|native| native.name == name && native.form == Form::Of(owner));
    own.or_else(|| manual::native(name))
}

/// A number of arguments that no native function of that name takes for this type of receiver.
fn unsupported_arity(name: &str, types: &[&str], receiver: Option<&str>, known: &Known) -> Option<Words> {
    let forms = known.forms.get().get(name)?;
    let of = receiver.filter(|of| *of != "?");
    let fits = |form: &&Vec<String>| match (of, form.first()) {
        (Some(of), Some(first)) => first == of || first == "?",
        _ => true,
    };
    let counts: Vec<usize> = forms.iter().filter(fits).map(Vec::len).collect();
    if counts.is_empty() || counts.contains(&types.len()) {
        return None;
    }
    let before = usize::from(receiver.is_some());
    let takes: Vec<usize> = counts.iter().map(|count| count.saturating_sub(before)).collect();
    let (code, message) = arity_message(name, &takes, types.len() - before)?;
    let call = native_of(name, receiver).filter(|native| !native.call.is_empty()).map(Native::written);
    let help = match name {
        "print" => Some("several values go into an array, `print([1, 2])`, or into two lines".to_string()),
        _ => call.map(|call| format!("call it as `{call}`")),
    };
    Some(words(code, message, "called here").maybe(help))
}

/// A function of the script that is called as a method with a wrong number of arguments.
fn script_method_arity(name: &str, types: &[&str], receiver: Option<&str>, known: &Known) -> Option<Words> {
    receiver.filter(|owner| !members_of(owner).iter().any(|member| member.strip_suffix('(') == Some(name)))?;
    let counts = counts_of(name, known);
    let (code, text) = arity_message(name, &counts, types.len() - 1)?;
    Some(words(code, text, "called here").help(format!(
        "the value before the dot is `this` inside the function and none of its arguments: write `{name}(x, ..)`"
    )))
}

/// The numbers of parameters of the script's functions of that name.
fn counts_of(name: &str, known: &Known) -> Vec<usize> {
    known.written.iter().filter(|(other, _)| other == name).map(|(_, count)| *count).collect()
}

/// Whether a function of that name exists, for other arguments.
fn exists(name: &str, receiver: Option<&str>, known: &Known) -> bool {
    let is_own = |owner: &str| members_of(owner).iter().any(|member| member.strip_suffix('(') == Some(name));
    let is_function = || manual::natives().any(|native| native.name == name && native.form == Form::Function);
    known.functions.iter().any(|other| written_name(other) == name) || receiver.map_or_else(is_function, is_own)
}

fn not_found(name: &str, receiver: Option<&str>) -> String {
    match receiver {
        // `check` does not know the type of the receiver.
        Some("?") => format!("there is no method `{name}`"),
        Some(owner) => format!("there is no method `{name}` of {}", a_type(owner)),
        None => format!("there is no function `{name}`"),
    }
}

/// The nearest name among the receiver's members, or among functions.
fn suggestion(name: &str, receiver: Option<&str>, known: &Known) -> Option<String> {
    let Some(owner) = receiver else {
        let plain = |name: &&String| manual::native(name).is_none_or(|native| !matches!(native.form, Form::Of(_)));
        return did_you_mean(name, known.functions.iter().filter(plain).map(String::as_str));
    };
    let names = members_of(owner);
    let names = names.iter().filter_map(|name| name.strip_suffix('('));
    did_you_mean(name, names.chain(known.written.iter().map(|(name, _)| name.as_str())))
}

/// Methods, which end with a parenthesis, and properties of a type.
pub fn members_of(owner: &str) -> Vec<String> {
    let called = |names: &[&str]| names.iter().map(|name| format!("{name}(")).collect::<Vec<_>>();
    match owner {
        "tensor" => members::of_tensor(),
        "array" => called(members::ARRAY),
        "string" | "char" => members::of_text(),
        "set" => members::of_set(),
        "i64" => called(members::INT),
        "f64" => called(members::FLOAT),
        "Fn" => called(members::CLOSURE),
        "?" => ["tensor", "array", "map", "string"].iter().flat_map(|owner| members_of(owner)).collect(),
        "stream" => members::of_stream(),
        "event" => members::of_event(),
        "module" => {
            let mut names = called(&["keys", "values", "items", "get", "contains", "len", "remove", "pop"]);
            names.extend(members::of_module());
            names
        }
        // Optimizers and schedules are maps.
        "map" => {
            let mut names = called(members::MAP);
            names.extend(members::of_module());
            names.extend(called(&["step", "zero_grad", "state_dict", "load_state_dict", "get_last_lr"]));
            names
        }
        // The manual's placeholder for values of these types.
        // `index` has no help page: it is an operation of PyTorch that tensors do not have here.
        "device" => manual::members_of("d").into_iter().chain(["index".to_string()]).collect(),
        "cell" => manual::members_of("c"),
        other => manual::members_of(other),
    }
}

pub(super) fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = nearest(name, candidates.filter(|other| *other != name && !other.contains('$')))?;
    Some(format!("did you mean `{}`?", written_name(near)))
}

/// The message for a wrong number of arguments of functions of the script with these numbers of parameters.
pub fn arity_message(name: &str, takes: &[usize], given: usize) -> Option<(Code, String)> {
    let (most, least) = (takes.iter().max()?, takes.iter().min()?);
    let code = match given {
        _ if takes.contains(&given) => return None,
        _ if given > *most => code::EXTRA_ARGUMENT,
        _ if given < *least => code::MISSING_ARGUMENT,
        _ => code::ARGUMENT_TYPE,
    };
    let mut numbers = takes.to_vec();
    crate::base::order::by(&mut numbers, Ord::cmp);
    numbers.dedup();
    let plural = if numbers == [1] { "" } else { "s" };
    let in_a_row = numbers.len() > 2 && most - least + 1 == numbers.len();
    let list = match in_a_row {
        true => format!("{least} to {most}"),
        false => numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(" or "),
    };
    Some((code, format!("`{name}` takes {list} argument{plural}, not {given}")))
}

/// More or fewer arguments than any function of that name takes.
fn native_arity_error(name: &str, types: &[&str], is_method: bool, known: &Known) -> Option<Words> {
    let keywords = usize::from(types.last() == Some(&"map") && types.len() > usize::from(is_method));
    let counts = counts_of(name, known);
    // Of a method it is not known whether the receiver is counted.
    if !counts.is_empty() && !is_method {
        let (code, text) = arity_message(name, &counts, types.len())?;
        return Some(words(code, text, "called here"));
    }
    let most = max_arguments(name, types.first() == Some(&"tensor"))?;
    let receiver = usize::from(is_method);
    let given = types.len() - keywords;
    let native = manual::native(name).filter(|native| !native.call.is_empty()).map(Native::written);
    let call = native
        .or_else(|| Some(manual::signature(name, false)?.text.clone()))
        .map(|call| format!("call it as `{call}`"));
    let call = if name == "seed" { Some("write `manual_seed(0)`".to_string()) } else { call };
    if given > most {
        let text = format!(
            "`{name}`: {} given, at most {} taken",
            arguments(given - receiver),
            is_or_are(most.saturating_sub(receiver))
        );
        return Some(words(code::EXTRA_ARGUMENT, text, "called here").maybe(call));
    }
    (types.is_empty() && most > 0)
        .then(|| words(code::MISSING_ARGUMENT, format!("`{name}` expects an argument"), "called here").maybe(call))
}

fn arguments(count: usize) -> String {
    format!("{count} argument{}", if count == 1 { "" } else { "s" })
}

fn is_or_are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "is" } else { "are" })
}

/// The maximum number of positional arguments of an operation or native function, including the receiver; none if it
/// is unknown or unlimited.
fn max_arguments(name: &str, of_tensor: bool) -> Option<usize> {
    let plain = name.strip_suffix('_').unwrap_or(name);
    // `random_` has no plain form.
    let row = table::find(name).filter(|op| op.call != CallForm::InPlace);
    let row = row.or_else(|| table::find(plain).filter(|op| op.inplace && plain != name));
    let row = row.filter(|op| op.call != CallForm::Internal);
    let of_row = row.map(|op| match op.params.iter().any(|param| matches!(param.kind, Kind::Sizes | Kind::Tensors)) {
        true => usize::MAX,
        false => op.params.iter().filter(|param| param.kind != Kind::Ignored).count(),
    });
    let natives = manual::natives().filter(|native| native.name == name);
    let of_natives = natives.map(|native| {
        let receiver = native.form.receivers();
        native.signature().map_or(usize::MAX, |signature| signature.counts().1.saturating_add(receiver))
    });
    let most = of_row.into_iter().chain(of_natives).max().filter(|most| *most < usize::MAX);
    // Methods of Rhai's own values have forms that no table lists.
    most.filter(|_| of_tensor || !members::is_member(name))
}

/// A function of a module, as `nn::linear`.
fn in_module(space: &str, name: &str, types: &[&str], at: Site, context: &Context) -> Words {
    let known: &Known = context.known;
    let message = format!("there is no function `{name}` in the module `{space}`");
    let absent = |help: String| words(code::UNKNOWN_FUNCTION, message.clone(), "not found").help(help);
    let path = format!("{space}::{name}");
    if let Some(native) = manual::native(&path) {
        let most = native.signature().map_or(0, |signature| signature.counts().1);
        let (code, message) = match types.len() {
            0 => (code::MISSING_ARGUMENT, format!("`{path}` expects an argument")),
            given if given > most => (
                code::EXTRA_ARGUMENT,
                format!("`{path}`: {} given, at most {} taken", arguments(given), is_or_are(most)),
            ),
            _ => (code::ARGUMENT_TYPE, format!("`{path}` does not take {}", a_type_list(types))),
        };
        return words(code, message, "called here").help(format!("call it as `{}`", native.written()));
    }
    let outer_is_cuda = space == "cuda" || space.starts_with("cuda::");
    if let Some(reason) = absent_cuda::reason(name).filter(|_| outer_is_cuda) {
        return absent(reason.to_string());
    }
    if manual::MODULES.contains(&space) && !outer_is_cuda {
        let own: Vec<&str> = manual::of_module(space).collect();
        // Natives are called with the number of values that they take: here it is another.
        if own.contains(&name)
            && let Some(call) = manual::signature(&path, false)
        {
            let (_, most) = call.counts();
            let text = format!("`{path}`: {} given, at most {} taken", arguments(types.len()), is_or_are(most));
            return words(code::EXTRA_ARGUMENT, text, "called here").help(format!("call it as `{}`", call.text));
        }
        let help = absent::reason(name).map(str::to_string).or_else(|| did_you_mean(name, own.iter().copied()));
        return absent(help.or_else(|| elsewhere(name)).unwrap_or_else(|| format!("it has {}", own.join(", "))));
    }
    if paths::exports(space, name, at, context) {
        return absent(format!("`{path}` is a value of the module: `({path})(..)` calls what it holds"));
    }
    // What is a function there is no module here.
    if space.split("::").any(|part| part == "functional")
        && let Some(help) = paths::spelled(&[name])
    {
        return absent(help);
    }
    // The library's name of a module that is imported under another.
    let library = paths::library(space, at, context).unwrap_or(space);
    // PyTorch's modules have submodules, such as `nn::init`; the library's do not.
    let outer = space.split("::").next().unwrap_or(space);
    let owner = if outer == space { library } else { outer };
    if let Some(found) = paths::in_our_spelling(owner, name).filter(|found| outer != space || *found != name) {
        let more =
            if outer == space && name.contains(char::is_uppercase) { ": names are in small letters" } else { "" };
        return absent(format!("it is `{outer}::{found}`{more}"));
    }
    let parts: Vec<&str> = space.split("::").chain([name]).collect();
    let is_known =
        manual::MODULES.contains(&space) || library != space || known.modules.iter().any(|other| other == space);
    if let Some(help) = paths::spelled(&parts).filter(|_| !is_known) {
        return absent(help);
    }
    let of_file = paths::imported(space, at, context);
    if let Some(text) = &of_file {
        let takes = texts::public(text).filter(|(other, _)| other == name).map(|(_, count)| count).collect::<Vec<_>>();
        if let Some((code, message)) = arity_message(&path, &takes, types.len()) {
            return words(code, message, "called here");
        }
    }
    let takes = texts::takes(library, name);
    if let Some((code, message)) = arity_message(&path, &takes, types.len()) {
        return words(code, message, "called here");
    }
    if manual::functions(library).iter().any(|function| function.name == name) {
        let message = format!("`{path}` does not take {} by position", arguments(types.len()));
        let call = manual::signature(&format!("{library}::{name}"), false)
            .map(|call| format!("call it as `{space}::{}`", call.text));
        return words(code::EXTRA_ARGUMENT, message, "called here").maybe(call);
    }
    let of_library = manual::functions(library).iter().map(|function| format!("{space}::{}", function.name));
    let own = known.functions.iter().filter(|f| f.starts_with(&format!("{space}::"))).cloned();
    let native = manual::natives().filter(|native| native.name.starts_with(&format!("{space}::")));
    let same: Vec<String> = of_library.chain(own).chain(native.map(|native| native.name.to_string())).collect();
    if same.iter().any(|f| f.rsplit("::").next() == Some(name)) {
        let message = format!("`{path}` does not take {}", a_type_list(types));
        return words(code::ARGUMENT_TYPE, message, "called here");
    }
    let names = || same.iter().filter_map(|path| path.rsplit("::").next());
    // `test::equal` for `assert_equal`.
    let longer = || names().find(|known| known.strip_suffix(name).is_some_and(|rest| rest.ends_with('_')));
    let near = nearest(name, names()).or_else(longer).map(|near| format!("did you mean `{space}::{near}`?"));
    let reason = || absent::reason(name).map(str::to_string);
    let habit = habits::of_module(library, name).map(str::to_string);
    let hidden = || paths::hidden(space, at, context);
    let help = hidden().or(habit).or(near).or_else(reason).or_else(|| elsewhere(name));
    words(code::UNKNOWN_FUNCTION, message, "not found").maybe(help)
}

/// The call of what needs no module before it.
fn elsewhere(name: &str) -> Option<String> {
    manual::page(name).and_then(|page| Some(format!("it is in no module: `{}`", page.calls.first()?)))
}

/// What is said of a name in a module of PyTorch that is none here: `utils::checkpoint::checkpoint`.
fn in_no_module(path: &[&str]) -> Option<String> {
    if let Some(reason) = path.iter().rev().find_map(|part| absent::reason(part)) {
        return Some(reason.to_string());
    }
    let last = path.last().filter(|_| path.len() > 1)?;
    let of_nn = paths::in_our_spelling("nn", last);
    of_nn.map(|found| format!("it is `nn::{found}`, after `import \"nn\" as nn;`")).or_else(|| elsewhere(last))
}

pub(super) fn module(name: &str, at: Site, context: &Context) -> Words {
    let known: &Known = context.known;
    let found = words(code::MODULE_NOT_FOUND, format!("there is no module `{name}`"), "not found here");
    if known.modules.iter().any(|other| other == name) {
        return found.help(format!(
            "write `import \"{name}\" as {name};` before it; a function cannot see imports made after it"
        ));
    }
    let rest = context.sources.source(at).and_then(|source| source.text.get(source.offset(at)..)).unwrap_or("");
    let path: Vec<&str> =
        rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next().unwrap_or("").split("::").collect();
    let spelled = || if path.len() > 1 { paths::spelled(&path) } else { None };
    let habit = || habits::variable(name).map(str::to_string);
    let absent = || in_no_module(&path);
    found.maybe(
        spelled()
            .or_else(habit)
            .or_else(absent)
            .or_else(|| did_you_mean(name, known.modules.iter().map(String::as_str))),
    )
}

pub(super) fn property(name: &str, of: Option<&str>, known: &Known) -> Words {
    let a = of.map_or(String::new(), |of| format!(" of {}", a_type(of)));
    let found = words(code::UNKNOWN_PROPERTY, format!("there is no property `{name}`{a}"), "not found");
    let owner = of.unwrap_or("");
    if a == " of an error" {
        return found.help(format!("an error has {}", PROPERTIES.map(|name| format!("`{name}`")).join(", ")));
    }
    if let Some(help) = habits::property(owner, name) {
        return found.help(help);
    }
    let members = members_of(owner);
    let is_method = match members.is_empty() {
        true => known.functions.iter().any(|other| other == name),
        false => members.iter().any(|member| member.strip_suffix('(') == Some(name)),
    };
    if is_method {
        return found.help(format!("`{name}` is a method: call it, `.{name}()`"));
    }
    if let Some(reason) = absent::reason(name) {
        return found.help(reason);
    }
    let own = (owner == "tensor").then_some(&known.properties).into_iter().flatten().map(String::as_str);
    let near = nearest(name, own.chain(members.iter().map(|member| member.trim_end_matches('('))));
    found.maybe(near.map(|near| match members.iter().any(|member| member.strip_suffix('(') == Some(near)) {
        true => format!("did you mean the method `.{near}()`?"),
        false => format!("did you mean `{near}`?"),
    }))
}

/// Whether a type has a property.
pub(super) fn is_property(name: &str, of: &str, known: &Known) -> bool {
    let is_own = members_of(of).iter().any(|member| member == name);
    is_own || (of == "tensor" && known.properties.iter().any(|other| other == name))
}

/// A name that is no field of a module, or no key of a map.
pub(super) fn field(missing: &Dynamic) -> Words {
    let Some(MissingField { name, fields, of }) = missing.clone().try_cast::<MissingField>() else {
        return entry("");
    };
    let fields: Vec<&str> = fields.iter().map(String::as_str).filter(|field| !field.starts_with('_')).collect();
    let gives_unit = format!("`m.get(\"{name}\")` gives `()` for what it has not");
    match of {
        Missing::InModule => {
            entry_of("module", &name, &fields).or_help(|| format!("it has: {}; {gives_unit}", fields.join(", ")))
        }
        Missing::ChangedInMap => {
            let found = words(code::UNKNOWN_PROPERTY, format!("this map has no entry `{name}`"), "not found");
            let near = nearest(&name, fields.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let begins = || format!("a new entry begins with a value: `m[\"{name}\"] = m.get(\"{name}\", 0) + 1`");
            found.maybe(near).or_help(begins)
        }
        Missing::InMap if fields.is_empty() => entry(&name),
        Missing::InMap => {
            let listed = if fields.len() > LISTED { String::new() } else { format!("it has: {}; ", fields.join(", ")) };
            entry_of("map", &name, &fields).or_help(|| format!("{listed}{gives_unit}"))
        }
    }
}

/// Bound: keys that a message lists.
const LISTED: usize = 8;

/// A missing key of a map. It is not known which map it is.
pub(super) fn entry(name: &str) -> Words {
    entry_of("map", name, &FIELDS)
        .or_help(|| format!("`keys()` lists what it has; `m.get(\"{name}\")` gives `()` for what it has not"))
}

/// The same of a map or module that has these fields, or has them likely.
fn entry_of(kind: &str, name: &str, fields: &[&str]) -> Words {
    // `eval` is the one method that the interpreter knows by another name.
    let name = if name == "__evaluate" { "eval" } else { name };
    let part = if kind == "map" { "entry" } else { "field" };
    let found = words(code::UNKNOWN_PROPERTY, format!("this {kind} has no {part} `{name}`"), "not found");
    let members = members_of(kind);
    if members.iter().any(|member| member.strip_suffix('(') == Some(name)) {
        return found.help(format!("`{name}` is a method: call it, `.{name}()`"));
    }
    if name == "__class__" || (name == "name" && (kind == "module" || fields.contains(&"training"))) {
        return found.help("the entries of a module show what it is: `if \"weight\" in m { .. }`");
    }
    if let Some(help) = habits::property("map", name) {
        return found.help(help);
    }
    // Fields take precedence over reasons why no operation has the name.
    if let Some(near) = nearest(name, fields.iter().copied()).filter(|near| *near != name) {
        return found.help(format!("did you mean `{near}`?"));
    }
    if let Some(help) = absent::reason(name) {
        return found.help(help);
    }
    let near = nearest(name, fields.iter().copied().chain(members.iter().map(String::as_str)));
    match near.filter(|near| near.trim_end_matches('(') != name) {
        Some(near) => match near.strip_suffix('(') {
            Some(method) => found.help(format!("did you mean the method `.{method}()`?")),
            None => found.help(format!("did you mean `{near}`?")),
        },
        None => found,
    }
}

/// Common fields of library modules and of operations' results.
const FIELDS: [&str; 9] =
    ["weight", "bias", "layers", "training", "output", "values", "indices", "param_groups", "hidden"];

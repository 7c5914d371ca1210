//! Help texts of names: signature, description, examples. From the op table, from the doc comments of the standard
//! library, and from a table of the native functions that are not operations.
//!
//! Independent of a running session; functions of the user are added by the session.

mod devices;
pub mod members;
mod methods;
pub mod modules;
mod natives;
mod plain;
mod sparse;
mod std;
mod transforms;

pub use natives::{CHAPTERS, Form, MODULES, Native, members_of, native, natives, of_module};
pub use std::{Function, functions};

use crate::base::signature::Signature;
use crate::op::params;
use crate::op::row::{CallForm, Op};
use crate::op::table;
use crate::script::library::texts::STD;
use ::std::borrow::Cow;

/// The help page of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    pub name: String,
    /// How it is called, one line for each form: `sum(x, dim: (), keepdim: false)`.
    pub calls: Vec<String>,
    pub summary: String,
    pub details: String,
    pub examples: Vec<Sample>,
}

/// An example: code to run, and what it prints, or the code of the error that it ends with, when that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    pub code: String,
    pub result: String,
}

/// The page of an operation, a native function, a property, or `module::function`.
pub fn page(name: &str) -> Option<Page> {
    let name = name.trim_start_matches('.');
    if let Some(found) = native(name) {
        let mut page = found.page();
        // Other types may have a method of the same name.
        for call in natives().filter(|other| other.name == name).flat_map(|other| other.page().calls) {
            if !page.calls.contains(&call) {
                page.calls.push(call);
            }
        }
        return Some(page);
    }
    if let Some((module, function)) = name.split_once("::").filter(|_| find(name).is_none()) {
        return std::functions(module).iter().find(|known| known.name == function).map(Function::page);
    }
    let plain = name.strip_suffix('_').filter(|plain| find(plain).is_some_and(|op| op.inplace));
    let op = find(name).or_else(|| find(plain?)).or_else(|| property_row(name))?;
    let mut page = of_row(op);
    // Other types may have a method of the same name.
    page.calls.extend(natives().filter(|other| other.name == name).flat_map(|other| other.page().calls));
    Some(page)
}

/// The row that a script can call by a name.
fn find(name: &str) -> Option<&'static Op> {
    table::find(name).filter(|op| op.call != CallForm::Internal)
}

/// The row behind a property such as `x.T`.
pub fn property_row(name: &str) -> Option<&'static Op> {
    table::all().find(|op| op.aliases.iter().any(|alias| alias.strip_prefix('.') == Some(name)))
}

fn of_row(op: &'static Op) -> Page {
    let mut calls = Vec::new();
    let signature = params::signature(op);
    match op.call {
        CallForm::Internal => {}
        CallForm::Method | CallForm::InPlace => calls.push(after_dot(&signature)),
        _ => calls.push(signature.text.clone()),
    }
    if op.call == CallForm::Both && op.params.first().is_some_and(|param| param.kind.takes_tensor()) {
        calls.push(after_dot(&signature));
    }
    if op.inplace && matches!(op.call, CallForm::Both | CallForm::Method | CallForm::Function) {
        calls.push(after_dot(&signature.renamed(&format!("{}_", op.name))));
    }
    match (op.operator, op.params.len()) {
        ("", _) => {}
        (symbol, 1) => calls.push(format!("{symbol}x")),
        (symbol, _) => calls.push(format!("x {symbol} y")),
    }
    for alias in op.aliases {
        calls.push(match alias.strip_prefix('.') {
            Some(property) => format!("x.{property}"),
            None => alias.to_string(),
        });
    }
    let examples = op.examples.iter();
    Page {
        name: op.name.to_string(),
        calls,
        summary: op.summary.to_string(),
        details: op.details.to_string(),
        examples: examples.map(|ex| Sample { code: ex.code.to_string(), result: ex.result.to_string() }).collect(),
    }
}

/// `sum(input, dim)` → `x.sum(dim)`.
fn after_dot(signature: &Signature) -> String {
    format!("x.{}", signature.as_method().text)
}

/// The signature of a native function, `module::function`, an operation, its in-place form, or an alias of it; of a
/// method without the value before the dot.
pub fn signature(name: &str, method: bool) -> Option<Cow<'static, Signature>> {
    if let Some(native) = native(name) {
        return native.signature().map(Cow::Borrowed);
    }
    if let Some((module, function)) = name.split_once("::").filter(|_| find(name).is_none()) {
        let found = std::functions(module).iter().find(|known| known.name == function);
        return found.map(|known| Cow::Borrowed(known.widest()));
    }
    let op = find(name).or_else(|| find(name.strip_suffix('_')?))?;
    let signature = params::signature(op).renamed(name);
    Some(Cow::Owned(if method { signature.as_method() } else { signature }))
}

/// Every name that has a page, modules aside.
pub fn names() -> impl Iterator<Item = &'static str> {
    let rows = table::all().filter(|op| op.call != CallForm::Internal);
    let rows =
        rows.flat_map(|op| ::std::iter::once(&op.name).chain(op.aliases)).map(|name| name.trim_start_matches('.'));
    rows.chain(natives().map(|native| native.name))
}

/// The functions of this name that are in modules: `func::vmap`; classes of PyTorch under their names there, too:
/// `AdamW` is `optim::adamw`.
pub fn in_modules(name: &str) -> Vec<String> {
    let class = name.rsplit("::").next().filter(|last| last.starts_with(|c: char| c.is_ascii_uppercase()));
    let class = class.map(str::to_ascii_lowercase);
    let is =
        |function: &str| function == name || class.as_ref().is_some_and(|class| function.replace('_', "") == *class);
    let ends = |full: &&str| full.strip_suffix(name).is_some_and(|path| path.ends_with("::"));
    let mut found: Vec<String> = natives().map(|native| native.name).filter(ends).map(str::to_string).collect();
    found.extend(STD.iter().filter_map(|library| {
        let function = functions(library.name).iter().find(|function| is(&function.name))?;
        Some(format!("{}::{}", library.name, function.name))
    }));
    crate::base::order::by(&mut found, Ord::cmp);
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::session::handle::Session;

    #[test]
    fn pages_come_from_the_table_the_natives_and_the_library() {
        let sum = page("sum").expect("an operation");
        assert!(sum.calls[0].starts_with("sum(") && sum.calls[1].starts_with("x.sum("), "{:?}", sum.calls);
        assert!(!sum.examples.is_empty() && !sum.summary.is_empty());
        assert!(page("add_").expect("a form").calls.iter().any(|call| call.starts_with("x.add_(")));
        assert!(page("T").is_some() && page("x.nope").is_none());
        let import = page("import").expect("a word").summary.clone();
        assert!(STD.iter().all(|library| import.contains(&format!("`{}`", library.name))), "{import}");
        // A function comes before a property of its name.
        assert_eq!(
            page("device").expect("all three").calls,
            ["device(device, index?) -> device", "x.device", "generator.device"]
        );
        assert_eq!(
            page("load").expect("a native").calls,
            ["load(path, device: (), *, dtype: (), columns: false, map_location: ())"]
        );
        let linear = page("nn::linear").expect("of the library");
        assert!(linear.examples[0].code.contains("nn::linear(3, 5)"), "{linear:?}");
        let keywords = |name: &str| {
            let signature = signature(name, false).expect(name);
            signature.keywords().map(|at| signature.params[at].name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(keywords("load"), ["path", "device", "dtype", "columns", "map_location"]);
        assert_eq!(keywords("nn::linear"), ["in_features", "out_features", "bias", "device", "dtype"]);
        assert!(keywords("nn::batch_norm2d").contains(&"momentum".to_string()));
        assert!(keywords("optim::adamw").contains(&"lr".to_string()), "{:?}", keywords("optim::adamw"));
        assert!(keywords("sum").contains(&"keepdim".to_string()) && keywords("ln").is_empty());
    }

    /// Every native function has an entry in the manual.
    #[test]
    fn every_native_function_has_a_page() {
        let session = Session::builder().build().expect("a session");
        let inner = ["debug", "to_string", "to_debug", "print"];
        let natives = session.host.natives.read();
        let forms = crate::script::values::native_forms::forms(
            &session.engine.gen_fn_signatures(true),
            crate::script::source::pass::written_name,
        );
        let named = natives.iter().filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
        let missing: Vec<_> = named.filter(|name| page(name).is_none() && !inner.contains(&name.as_ref())).collect();
        assert!(missing.is_empty(), "no page in script/manual/natives.rs for {missing:?}");
        for native in self::natives() {
            let known = natives.contains(native.name)
                || forms.contains_key(native.name)
                || crate::script::manual::members::is_member(native.name)
                || crate::script::bind::properties::NAMES.contains(&native.name)
                || crate::script::tensor_api::questions::NAMES.contains(&native.name);
            assert!(
                known || matches!(native.form, Form::Syntax | Form::Block | Form::PropertyOf(_)),
                "`{}` has a page and is not there",
                native.name
            );
        }
    }

    #[test]
    fn examples_of_natives_hold() {
        for native in natives().filter(|native| !native.example.is_empty()) {
            let mut session = Session::builder().build().expect("a session");
            let value = session.enter(1, native.example).unwrap_or_else(|e| panic!("{}: {e}", native.name));
            assert_eq!(session.show(&value).expect("shown"), native.result, "{}", native.name);
            // The value of an example that ends in the call has the type that the signature says.
            let last = native.example.rsplit("; ").next().unwrap_or("");
            let is_call = last.ends_with(')') && !last.contains(['[', '{', '+']) && last.matches('(').count() <= 2;
            let given = native.signature().and_then(|signature| signature.result).filter(|_| is_call);
            let ends_in_it =
                last.split('.').next_back().is_some_and(|call| call.starts_with(&format!("{}(", native.name)));
            if let Some(given) = given.filter(|_| ends_in_it) {
                assert!(given.is_called(&session.kind(&value)), "`{}` gives {}", native.call, session.kind(&value));
            }
        }
    }

    /// The interpreter has the forms that the entry says: the numbers of arguments, and one more for keywords.
    #[test]
    fn natives_are_registered_as_their_lines_say() {
        let session = Session::builder().build().expect("a session");
        let forms = crate::script::values::native_forms::forms(
            &session.engine.gen_fn_signatures(true),
            crate::script::source::pass::written_name,
        );
        let counts = |name: &str| crate::base::order::set(forms.get(name).into_iter().flatten().map(|form| form.len()));
        let mut problems = Vec::new();
        for native in natives().filter(|native| !matches!(native.form, Form::Syntax | Form::Block)) {
            let Some(signature) = native.signature() else {
                assert!(!native.call.contains('('), "`{}` is no signature", native.call);
                continue;
            };
            assert_eq!(signature.name.rsplit("::").next(), native.name.rsplit("::").next(), "{}", native.call);
            let receiver = native.form.receivers();
            let (least, most) = signature.counts();
            let found = counts(native.name);
            // A function of one list takes at least one value, and as many as the interpreter allows.
            let least = if most == usize::MAX { 1 } else { least };
            let most = if most == usize::MAX { found.last().map_or(0, |most| most - receiver) } else { most };
            let missing: Vec<usize> = (least + receiver..=most + receiver).filter(|n| !found.contains(n)).collect();
            // Another type, or an operation, may have a method of the same name: sparse tensors have those of their values.
            let alone = natives().filter(|other| other.name == native.name).count() == 1
                && !members::is_member(native.name)
                && !["detach", "requires_grad_", "cpu"].contains(&native.name)
                && table::called(native.name).is_none();
            let keywords = 2 * signature.takes_keywords() as usize;
            let more: Vec<&usize> = found.iter().filter(|&&n| alone && n > most + receiver + keywords).collect();
            if !missing.is_empty() || !more.is_empty() {
                problems.push(format!("{}: {found:?} are registered", native.call));
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

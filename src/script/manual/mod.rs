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

pub use natives::{CHAPTERS, Form, MODULES, Native, member, members_of, native, natives, of_module};
pub use std::{Function, functions};

use crate::base::signature::Signature;
use crate::op::params;
use crate::op::row::{CallForm, Op};
use crate::op::table;
use crate::script::library::texts::STD;
use ::std::borrow::Cow;
use ::std::collections::HashSet;
use ::std::sync::LazyLock;

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
    let op = table::called(name).map(|(op, _)| op).or_else(|| find(name)).or_else(|| property_row(name))?;
    let mut page = of_row(op);
    // Other types may have a method of the same name.
    page.calls.extend(natives().filter(|other| other.name == name).flat_map(|other| other.page().calls));
    Some(page)
}

/// Whether a name has a page. Cost: of each word of a text; a page is made of many parts.
pub fn has_page(name: &str) -> bool {
    static PROPERTIES: LazyLock<HashSet<&str>> =
        LazyLock::new(|| table::all().flat_map(|op| op.aliases).filter_map(|alias| alias.strip_prefix('.')).collect());
    let is_named = native(name).is_some() || table::called(name).is_some() || find(name).is_some();
    is_named || PROPERTIES.contains(name) || (name.contains("::") && page(name).is_some())
}

/// The row that a script can call by a name, or by that name with an underscore.
fn find(name: &str) -> Option<&'static Op> {
    table::find(name).filter(|op| op.call != CallForm::Internal)
}

/// The row behind a property such as `x.T`.
pub fn property_row(name: &str) -> Option<&'static Op> {
    table::all().find(|op| op.aliases.iter().any(|alias| alias.strip_prefix('.') == Some(name)))
}

/// The name by which scripts call a row: with an underscore where it only writes in place.
pub fn written(op: &'static Op) -> &'static str {
    if op.call == CallForm::InPlace { table::inplace_name(op) } else { op.name }
}

fn of_row(op: &'static Op) -> Page {
    let mut calls = Vec::new();
    let signature = params::signature(op);
    match op.call {
        CallForm::Internal => {}
        CallForm::Method => calls.push(after_dot(&signature)),
        CallForm::InPlace => calls.push(after_dot(&signature.renamed(table::inplace_name(op)))),
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
            None if op.call == CallForm::InPlace => format!("{alias}_"),
            None => alias.to_string(),
        });
    }
    let examples = op.examples.iter();
    Page {
        name: written(op).to_string(),
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
    let (op, _) = table::called(name)?;
    let signature = params::signature(op).renamed(name);
    Some(Cow::Owned(if method { signature.as_method() } else { signature }))
}

/// What a name after the dot of a value means, whose type the pages call `owner`: of several methods of one name, that
/// of the type.
fn of_type(owner: &str, name: &str) -> Option<&'static Native> {
    let plain = matches!(owner, "xs" | "m" | "text" | "n" | "set");
    // What arrays have, maps and strings have, too.
    let shared = plain && matches!(name, "len" | "is_empty" | "clear" | "contains" | "copy");
    let own = member(owner, name).or_else(|| member("xs", name).filter(|_| shared));
    own.or_else(|| {
        let other = native(name)?;
        let is_function = other.form == Form::Function;
        (owner != "x" && (is_function || !plain)).then_some(other)
    })
}

/// The signature of a method of a type, without what stands before the dot.
pub fn member_signature(owner: &str, name: &str) -> Option<Cow<'static, Signature>> {
    match of_type(owner, name) {
        Some(native) if native.form == Form::Function => native.signature().map(|found| Cow::Owned(found.as_method())),
        Some(native) => native.signature().map(Cow::Borrowed),
        None if matches!(owner, "xs" | "m" | "text" | "set") => None,
        None => signature(name, true),
    }
}

/// The page of a method or property of a type.
pub fn member_page(owner: &str, name: &str) -> Option<Page> {
    match of_type(owner, name) {
        Some(native) => Some(native.page()),
        None if matches!(owner, "xs" | "m" | "text" | "set") => None,
        None => page(name),
    }
}

/// Every name that has a page, modules aside.
pub fn names() -> impl Iterator<Item = &'static str> {
    let rows = table::all().filter(|op| op.call != CallForm::Internal);
    let rows = rows.flat_map(|op| ::std::iter::once(written(op)).chain(op.aliases.iter().copied()));
    let rows = rows.map(|name| name.trim_start_matches('.'));
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

    #[test]
    fn of_methods_of_one_name_that_of_the_type_is_found() {
        let call = |owner: &str, name: &str| member_signature(owner, name).map(|found| found.text.clone());
        let is = |owner, name, text: &str| assert_eq!(call(owner, name).as_deref(), Some(text), "{owner}.{name}");
        is("text", "split", "split(sep: (), maxsplit: -1)");
        is("xs", "sort", "sort(closure?)");
        is("xs", "insert", "insert(index, value)");
        is("xs", "count", "count(value)");
        is("m", "get", "get(name, default?)");
        is("c", "get", "get()");
        assert!(call("x", "split").is_some_and(|text| text.starts_with("split(split_size_or_sections")));
        assert!(call("x", "sort").is_some_and(|text| text.starts_with("sort(dim: -1")));
        assert_eq!(call("xs", "relu"), None);
        assert_eq!(member_page("xs", "sort").map(|page| page.calls), Some(vec!["xs.sort(closure?)".to_string()]));
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

    /// What a page shows behind `x.` can be called.
    #[test]
    fn methods_that_pages_show_exist() {
        let session = Session::builder().build().expect("a session");
        let natives = session.host.natives.read();
        let mut problems = Vec::new();
        for op in table::all().filter(|op| op.call != CallForm::Internal) {
            let page = of_row(op);
            let methods = page.calls.iter().filter_map(|call| call.strip_prefix("x.")?.split_once('('));
            problems.extend(methods.map(|(name, _)| name.to_string()).filter(|name| !natives.contains(name.as_str())));
            if self::page(&page.name).is_none_or(|found| found.calls[0] != page.calls[0]) {
                problems.push(format!("the page of {}", page.name));
            }
        }
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(page("uniform_").expect("a form").calls, ["x.uniform_(from: 0.0, to: 1.0)"]);
        assert_eq!(page("uniform").expect("the same").name, "uniform_");
        assert!(page("normal_").expect("a form").calls[0].starts_with("x.normal_(mean: 0.0"), "{:?}", page("normal_"));
        assert!(page("normal").expect("a row").calls[0].starts_with("normal("), "{:?}", page("normal"));
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

//! Dotted names as in Python, `torch.nn.Linear`, and their names here: the part before a dot says more than the
//! single word that the interpreter did not find.

use super::{Context, absent, absent_cuda, habits};
use crate::base::dtype::DType;
use crate::base::span::Site;
use crate::op::table;
use crate::script::library::texts;
use crate::script::manual;
use crate::script::source::lex::{Token, lex_partial};
use crate::script::source::tree::{pattern_names, top_declared};
use crate::script::source::{Source, SourceKind};
use std::path::Path;
use std::sync::Arc;

/// The text from a position to the end of its line, and the text before it on that line.
fn line<'a>(at: Site, context: &Context<'a>) -> Option<(&'a str, &'a str)> {
    let source = context.sources.source(at)?;
    let offset = source.offset(at);
    let before = source.text.get(..offset)?;
    let before = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
    Some((before, source.text.get(offset..)?.lines().next().unwrap_or("")))
}

/// Whether the name at a position is called as a method, `x.name(..)`.
pub(super) fn is_method(at: Site, context: &Context) -> bool {
    line(at, context).is_some_and(|(before, _)| before.trim_end().ends_with('.'))
}

/// Whether the operator `in` is at a position.
pub(super) fn is_operator_in(at: Site, context: &Context) -> bool {
    line(at, context).is_some_and(|(_, rest)| {
        let word = rest.trim_start_matches('!').split(|c: char| !c.is_alphanumeric()).next();
        word == Some("in")
    })
}

/// Whether a map literal around a position has an entry of a name: `#{w: x, forward: |y| y @ w}`.
pub(super) fn is_entry_around(name: &str, at: Site, context: &Context) -> bool {
    let Some(source) = context.sources.source(at) else { return false };
    let offset = source.offset(at);
    let (tokens, _) = lex_partial(&source.text);
    let word = |at: usize| tokens.get(at).map_or("", |token: &Token| &source.text[token.range()]);
    let around = |open: &usize| {
        let end = tokens[tokens[*open].partner as usize].start as usize;
        word(*open) == "#{" && (tokens[*open].start as usize) < offset && offset < end
    };
    (0..tokens.len()).filter(around).any(|open| {
        let end = tokens[open].partner as usize;
        let mut entry = open + 1;
        while entry < end {
            if word(entry) == name && word(entry + 1) == ":" {
                return true;
            }
            entry = (tokens[entry].partner as usize).max(entry) + 1;
        }
        false
    })
}

/// Whether the text at a position declares a variable outside of all blocks.
pub(super) fn is_of_top(name: &str, at: Site, context: &Context) -> bool {
    let Some(source) = context.sources.source(at) else { return false };
    let (tokens, _) = lex_partial(&source.text);
    top_declared(&source.text, &tokens, "let").any(|declared| declared == name)
}

/// Whether the text declares a variable below a position, and none of the name above it.
pub(super) fn is_declared_later(name: &str, at: Site, context: &Context) -> bool {
    let Some(source) = context.sources.source(at) else { return false };
    let offset = source.offset(at);
    let (tokens, _) = lex_partial(&source.text);
    let word = |at: usize| tokens.get(at).map_or("", |token: &Token| &source.text[token.range()]);
    let declares = |at: &usize| {
        let keyword = if matches!(word(*at), "let" | "const") { *at + 1 } else { return false };
        match word(keyword) {
            "[" | "#{" => {
                pattern_names(&source.text, &tokens, keyword).iter().any(|found| word(*found as usize) == name)
            }
            found => found == name,
        }
    };
    // The statement that declares it may be the one that calls it.
    let first = (0..tokens.len()).find(declares);
    first.is_some_and(|first| tokens[first].start as usize > offset || declared_around(&tokens, word, first, offset))
}

/// Whether a position is in the value of the `let` at a token, which takes it apart by a pattern.
fn declared_around<'a>(tokens: &[Token], word: impl Fn(usize) -> &'a str, at: usize, offset: usize) -> bool {
    if !matches!(word(at + 1), "[" | "#{") {
        return false;
    }
    let mut end = tokens[at + 1].partner as usize;
    while !matches!(word(end), ";" | "") {
        end = (tokens[end].partner as usize).max(end) + 1;
    }
    tokens.get(end).is_some_and(|token| offset < token.start as usize)
}

/// Whether the file that is imported under a name has this function, or another part whose declaration begins so.
fn declares(space: &str, at: Site, context: &Context, forms: &[String]) -> bool {
    let Some(text) = imported(space, at, context) else { return false };
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let begins =
        |line: &str| forms.iter().any(|form| line.trim_start().strip_prefix(form.as_str()).is_some_and(is_whole));
    text.lines().any(begins)
}

pub(super) fn has_function(space: &str, name: &str, at: Site, context: &Context) -> bool {
    declares(space, at, context, &[format!("fn {name}")])
}

/// Whether a file exports a variable or constant of the name.
pub(super) fn exports(space: &str, name: &str, at: Site, context: &Context) -> bool {
    declares(space, at, context, &["let", "const"].map(|word| format!("export {word} {name}")))
}

/// Whether a `throw` of the script is at a position.
pub(super) fn is_throw(at: Site, context: &Context) -> bool {
    line(at, context).is_none_or(|(_, rest)| rest.starts_with("throw"))
}

/// The path that the text at a position imports under a name.
fn import_of<'a>(space: &str, source: &'a Source) -> Option<&'a str> {
    let (tokens, _) = lex_partial(&source.text);
    let word = |at: usize| tokens.get(at).map_or("", |token: &Token| &source.text[token.range()]);
    let imports = |at: &usize| word(*at) == "import" && word(*at + 2) == "as" && word(*at + 3) == space;
    let at = (0..tokens.len()).find(imports)?;
    source.text[tokens[at + 1].range()].strip_prefix('"')?.strip_suffix('"')
}

/// The module of the library that is imported under a name where a position is.
pub(super) fn library<'a>(space: &str, at: Site, context: &Context<'a>) -> Option<&'a str> {
    import_of(space, context.sources.source(at)?).filter(|path| texts::library(path).is_some())
}

/// The text of the file that is imported under a name where a position is.
pub(super) fn imported(space: &str, at: Site, context: &Context) -> Option<Arc<str>> {
    let path = import_of(space, context.sources.source(at)?)?;
    let path = path.trim_start_matches("./");
    let is_meant = |name: &str| {
        let name = name.strip_suffix(".rhai").unwrap_or(name);
        name.strip_suffix(path.trim_end_matches(".rhai"))
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let mut all = context.sources.sources().iter().filter(|source| source.kind == SourceKind::File);
    all.find(|source| is_meant(&source.name)).map(|source| source.text.clone())
}

/// Help where a file beside the script has the name of a module of the library, which comes first.
pub(super) fn hidden(space: &str, at: Site, context: &Context) -> Option<String> {
    let source = context.sources.source(at)?;
    let path = import_of(space, source)?;
    let beside = Path::new(&*source.name).with_file_name(format!("{path}.rhai"));
    (texts::library(path).is_some() && beside.is_file()).then(|| {
        format!(
            "`{path}` is the library's; the file {path}.rhai beside the script is `import \"./{path}\" as {space};`"
        )
    })
}

/// The module before the name at a position: `lib` of `lib::x`.
pub(super) fn path_to<'a>(at: Site, context: &Context<'a>) -> Option<&'a str> {
    let before = line(at, context)?.0.trim_end().strip_suffix("::")?;
    let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    Some(&before[start..])
}

/// The name at a position.
pub(super) fn name_at<'a>(at: Site, context: &Context<'a>) -> &'a str {
    let rest = line(at, context).map_or("", |(_, rest)| rest);
    &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]
}

/// Help for an unknown name that is followed by a dot, or preceded by `import`.
pub(super) fn help(at: Site, context: &Context) -> Option<String> {
    let (_, rest) = line(at, context)?;
    let path = path(rest);
    if is_import(at, context) {
        return Some(import(&path));
    }
    if path.len() > 1 { spelled(&path) } else { None }
}

/// The names of `torch.nn.Linear(2, 2)`.
pub(super) fn path(text: &str) -> Vec<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(text.len());
    text[..end].split('.').filter(|part| !part.is_empty()).collect()
}

pub(super) const IMPORT: &str = "`import` expects the name of a module in quotes";

/// Whether an `import` precedes a position.
pub(super) fn is_import(at: Site, context: &Context) -> bool {
    line(at, context).is_some_and(|(before, _)| before.trim() == "import")
}

/// The correct form of an `import` without quotes.
pub(super) fn import(path: &[&str]) -> String {
    const LIBRARY: [&str; 5] = ["nn", "optim", "data", "distributions", "test"];
    match path.iter().find(|part| LIBRARY.contains(part)) {
        Some(module) => format!("write `import \"{module}\" as {module};`"),
        None if path.first().is_some_and(|first| PACKAGES.contains(first)) => {
            "operations need no import; `import \"nn\" as nn;` imports layers, \"optim\" and \"data\" the rest"
                .to_string()
        }
        None if path.first().is_some_and(|first| manual::MODULES.contains(first)) => {
            let name = path[0];
            format!("`{name}` needs no import: its functions are `{name}::..`")
        }
        None => {
            let name = path.first().copied().unwrap_or("nn");
            format!(
                "the name is written in quotes: `import \"{name}\" as {name};`, which is the file {name}.rhai or of the library"
            )
        }
    }
}

/// Whether a module's name is that of a Python package.
pub fn is_python(name: &str) -> bool {
    name.split(['.', '/']).any(|part| PACKAGES.contains(&part))
}

/// What to write instead of an `import` of such a package.
pub fn import_help(name: &str) -> String {
    import(&name.split(['.', '/']).collect::<Vec<_>>())
}

/// Modules of Python whose functions have no prefix here.
const PACKAGES: [&str; 11] =
    ["torch", "np", "numpy", "F", "functional", "linalg", "special", "math", "random", "cmath", "torchvision"];

/// What `torch.accelerator` asks.
const ACCELERATOR: &str = "GPUs are those of `cuda`: `if cuda::is_available() { \"cuda\" } else { \"cpu\" }`, `cuda::device_count()`, `synchronize()`, `with_device(d) { .. }`";
/// What `torch.backends` sets.
const BACKENDS: &str = "libraries and kernels are chosen by the session; `set_float32_matmul_precision(\"high\")` and `use_deterministic_algorithms(true)` say what they may do";

/// The name here of a dotted name.
pub(super) fn spelled(path: &[&str]) -> Option<String> {
    match path {
        ["os" | "sys" | "time" | "json" | "copy" | "pickle" | "pathlib", ..] => None,
        [module @ ("func" | "re" | "unicodedata"), name, ..] => {
            let native = manual::native(&format!("{module}::{name}"))?;
            Some(format!("what a module has is reached by `::`: `{}`", native.written()))
        }
        ["fft" | "signal", ..] => {
            let name = path.join("::");
            let row = table::find(&name)?;
            Some(format!("what a module has is reached by `::`: `{}(..)`", row.name))
        }
        ["f64" | "f32" | "i64" | "i32" | "u8" | "usize", "from" | "try_from" | "parse"] => {
            Some("a value is converted by a function: `int(x)`, `float(x)`".into())
        }
        ["f64" | "f32" | "i64" | "i32", "MAX" | "MIN" | "INFINITY" | "EPSILON" | "NAN"] => {
            Some("write `INF`, `-INF`, `NAN`; integers have 64 bits".into())
        }
        ["random", "seed"] => Some("write `manual_seed(0)`".into()),
        ["random", "random"] => Some("write `rand([1]).item()`".into()),
        // `torch.autograd.grad`: if the middle part is unknown, the last name decides.
        [package, rest @ .., last] if PACKAGES.contains(package) => {
            spelled(&[rest, &[*last]].concat()).or_else(|| plain(last))
        }
        ["nn", "functional" | "utils" | "init" | "modules", name] => plain(name).or_else(|| of_module("nn", name)),
        ["cuda", name, ..] => Some(of_cuda(name)),
        ["accelerator", ..] => Some(ACCELERATOR.to_string()),
        ["backends", ..] => Some(BACKENDS.to_string()),
        [module @ ("nn" | "optim" | "data" | "distributions" | "test"), rest @ ..] => {
            rest.iter().rev().find_map(|name| of_module(module, name))
        }
        ["utils", "data", name] => of_module("data", name),
        [name, rest @ ..] => plain(name).filter(|_| rest.is_empty() || manual::page(name).is_none()),
        [] => None,
    }
}

fn of_cuda(name: &str) -> String {
    let path = format!("cuda::{name}");
    match manual::native(&path) {
        Some(native) => format!("what a module has is reached by `::`: `{}`", native.written()),
        None => match absent_cuda::reason(name) {
            Some(reason) => reason.to_string(),
            None => "what a module has is reached by `::`: `cuda::is_available()`".to_string(),
        },
    }
}

fn of_module(module: &str, name: &str) -> Option<String> {
    match in_our_spelling(module, name) {
        Some(found) => Some(format!("what a module has is reached by `::`: `{module}::{found}(..)`")),
        None => absent::reason(name).map(str::to_string),
    }
}

/// A name without a prefix.
fn plain(name: &str) -> Option<String> {
    if let Some(dtype) = DType::parse(name) {
        let name = if matches!(name, "float" | "int" | "bool" | "long" | "half" | "double") {
            dtype.name().to_string()
        } else {
            name.to_string()
        };
        return Some(format!("dtypes are strings: `\"{name}\"`"));
    }
    if let Some(help) = habits::variable(name).or_else(|| habits::function(name)) {
        return Some(help.to_string());
    }
    if manual::page(name).is_some() {
        let call = manual::signature(name, false).map_or_else(|| name.to_string(), |call| call.text.clone());
        return Some(format!("operations have no prefix: `{call}`"));
    }
    if matches!(name, "pi" | "e" | "inf" | "nan") {
        return Some(format!("numbers with a name have no prefix: `{}`", name.to_uppercase()));
    }
    absent::reason(name).map(str::to_string)
}

/// `CrossEntropyLoss` → `cross_entropy_loss`, if the module of the library has it.
pub(super) fn in_our_spelling(module: &str, name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.replace('_', "").to_lowercase();
    let expected = plain(name);
    manual::functions(module).iter().map(|function| function.name.as_str()).find(|known| plain(known) == expected)
}

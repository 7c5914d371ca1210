//! `textDocument/completion`: members by the value's type, names in scope, modules, keywords of a call, words that an
//! argument takes, files, snippets. Documentation comes with `completionItem/resolve`.

use super::meaning::{module_path, signature};
use super::view::View;
use crate::base::order;
use crate::script::check::layers::Layer;
use crate::script::check::value::Value as Known;
use crate::script::edit::around::{Around, around, path_before, tokens_before};
use crate::script::edit::guess::Guess;
use crate::script::edit::names::{ComesFrom, SymbolKind};
use crate::script::edit::values::{BATCH, ERROR, describe, members};
use crate::script::inspect::complete::Completions;
use crate::script::manual;
use crate::script::session::handle::Session;
use crate::script::source::lex::Kind;
use serde_json::{Value, json};
use std::path::Path;

/// Kinds of items, as the protocol numbers them.
mod item {
    pub const METHOD: u64 = 2;
    pub const FUNCTION: u64 = 3;
    pub const FIELD: u64 = 5;
    pub const VARIABLE: u64 = 6;
    pub const MODULE: u64 = 9;
    pub const PROPERTY: u64 = 10;
    pub const VALUE: u64 = 12;
    pub const KEYWORD: u64 = 14;
    pub const SNIPPET: u64 = 15;
    pub const FILE: u64 = 17;
    pub const FOLDER: u64 = 19;
    pub const CONSTANT: u64 = 21;
}

/// Bound: items of an answer.
const ITEMS: usize = 2000;

/// Texts with places to fill in, by the word that asks for them.
const SNIPPETS: &[(&str, &str, &str)] = &[
    ("fn", "fn ${1:name}(${2:x}) {\n    $0\n}", "a function"),
    ("for", "for ${1:x} in ${2:values} {\n    $0\n}", "a loop over values"),
    ("for pairs", "for (${1:i}, ${2:x}) in enumerate(${3:values}) {\n    $0\n}", "a loop with a count"),
    ("if", "if ${1:condition} {\n    $0\n}", "a branch"),
    ("while", "while ${1:condition} {\n    $0\n}", "a loop"),
    ("switch", "switch ${1:value} {\n    ${2:1} => $3,\n    _ => $0,\n}", "a choice"),
    ("try", "try {\n    $1\n} catch (${2:error}) {\n    $0\n}", "catches errors"),
    ("import", "import \"${1:nn}\" as ${2:nn};", "a module"),
    ("no_grad", "no_grad {\n    $0\n}", "a block without gradients"),
    ("with_device", "with_device(\"${1:cuda}\") {\n    $0\n}", "a block on a device"),
    (
        "training loop",
        "for batch in ${1:loader} {\n    let loss = ${2:cross_entropy(model.forward(batch.x), batch.y)};\n    ${3:opt}.zero_grad();\n    loss.backward();\n    ${3:opt}.step();\n}$0",
        "steps of an optimizer",
    ),
];

/// Those that have a value.
const VALUES: &[&str] = &["if", "switch", "no_grad", "with_device"];

/// What the client can show.
#[derive(Clone, Copy, Default)]
pub struct Shows {
    pub snippets: bool,
}

/// The items at a position. `session` knows the words of natives and of strings; it runs nothing.
pub fn complete(view: &View, session: &Session, shows: Shows, params: &Value) -> Value {
    let offset = view.offset(params);
    let Offered { start, mut items, goes_on } = items(view, session, shows, offset);
    let prefix = view.text().get(start..offset).unwrap_or("").to_ascii_lowercase();
    items.retain(|item| {
        let label = item["label"].as_str().unwrap_or("");
        // Names with an underscore are not for everybody.
        label.to_ascii_lowercase().starts_with(&prefix) && (!label.starts_with('_') || prefix.starts_with('_'))
    });
    let is_incomplete = items.len() > ITEMS || goes_on;
    items.truncate(ITEMS);
    let range = view.range(start..offset);
    for item in &mut items {
        let text = item.as_object_mut().and_then(|fields| fields.remove("insertText"));
        let text = text.unwrap_or_else(|| item["label"].clone());
        item["textEdit"] = json!({"range": range, "newText": text});
    }
    json!({"isIncomplete": is_incomplete, "items": items})
}

struct Offered {
    /// Where the word to be replaced begins.
    start: usize,
    items: Vec<Value>,
    /// Whether there is more to offer once a word begins.
    goes_on: bool,
}

impl Offered {
    fn all(start: usize, items: Vec<Value>) -> Offered {
        Offered { start, items, goes_on: false }
    }
}

fn items(view: &View, session: &Session, shows: Shows, offset: usize) -> Offered {
    let reading = &view.reading;
    let count = tokens_before(reading, offset);
    let last = (0..count).rev().find(|&at| !reading.tokens[at].range().is_empty());
    let is_word = |at: &usize| reading.tokens[*at].kind == Kind::Word && reading.tokens[*at].end as usize == offset;
    // In the middle of a word, that is what is replaced up to the cursor.
    let inside = reading
        .tokens
        .get(count)
        .is_some_and(|token| token.kind == Kind::Word && (token.start as usize) < offset && !token.range().is_empty());
    let word = if inside { Some(count) } else { last.filter(is_word) };
    let start = word.map_or(offset, |at| reading.tokens[at].start as usize);
    let before = match word {
        Some(word) => word.checked_sub(1),
        None => last,
    };
    let offered = session.complete(&view.text()[..offset], offset);
    if let Some(keys) = keys(view, offered.start).filter(|_| offered.files) {
        return Offered::all(offered.start, keys);
    }
    if offered.files {
        return Offered::all(offered.start, files(view, &view.text()[offered.start..offset]));
    }
    if let Some((start, modules)) = modules(view, offset, &offered) {
        return Offered::all(start, modules);
    }
    match before.map_or("", |at| view.word(at)) {
        _ if is_in_text(view, offset, &offered) => {
            let start = offered.start;
            let mut items: Vec<Value> = offered.words.iter().map(|word| plain(word, item::VALUE)).collect();
            let quoted = offered.words.iter().any(|word| word.starts_with('"'));
            for device in devices(view, offset) {
                let label = if quoted { format!("\"{device}\"") } else { device.to_string() };
                if items.iter().all(|item| item["label"] != label.as_str()) {
                    items.push(plain(&label, item::VALUE));
                }
            }
            Offered::all(start, items)
        }
        "." | "?." => Offered::all(start, of_value(view, before.unwrap_or(0) + 1)),
        "::" => Offered::all(start, of_module(view, before.unwrap_or(0) + 1)),
        _ => {
            let mut items = keywords(view, offset);
            let is_name = items.is_empty();
            if is_name {
                items = names(view, offset);
                items.extend(natives(&offered));
                if shows.snippets {
                    items.extend(snippets(before.map_or("", |at| view.word(at))));
                }
            }
            // Natives are offered from their first letter on.
            Offered { start, items, goes_on: is_name && start == offset }
        }
    }
}

/// Whether the cursor is in a string, in a comment, or where only strings are offered.
fn is_in_text(view: &View, offset: usize, offered: &Completions) -> bool {
    let in_string = |at: usize| {
        let token = view.reading.tokens.get(at);
        token.is_some_and(|token| {
            let around = (token.start as usize) < offset && offset <= token.end as usize;
            matches!(token.kind, Kind::Str | Kind::Char) && around
        })
    };
    let next = tokens_before(&view.reading, offset);
    // Not: mended places.
    let last = (0..next).rev().find(|&at| !view.reading.tokens[at].range().is_empty());
    let values = !offered.words.is_empty() && offered.words.iter().all(|word| word.starts_with('"'));
    values || in_string(next) || last.is_some_and(in_string) || super::folding::comment_at(view, offset)
}

/// Where a device is written: what scripts for GPUs name, also on a machine without one.
fn devices(view: &View, offset: usize) -> &'static [&'static str] {
    let takes_device = |around: Around| match around.keyword {
        Some(keyword) => keyword == "device",
        None => matches!(view.word(around.name), "to" | "device" | "set_default_device" | "with_device"),
    };
    match around(&view.reading, offset).is_some_and(takes_device) {
        true => &["cpu", "cuda", "cuda:0", "cuda:1"],
        false => &[],
    }
}

/// The keys of a map, where the string that begins before a byte is the index of something: `m["`.
fn keys(view: &View, start: usize) -> Option<Vec<Value>> {
    let tokens = &view.reading.tokens;
    let begins = |at: &usize| view.word(*at) == "[" && tokens[*at].end as usize + 1 == start;
    let name = (0..tokens.len()).rev().find(begins)?.checked_sub(1)?;
    match (tokens[name].kind, view.word(name), view.reading.seen.value(name as u32)) {
        (Kind::Word, _, Known::Map(Some(map))) => Some(map.keys().map(|key| plain(key, item::FIELD)).collect()),
        (Kind::Word, word, _) if !crate::script::source::tree::is_keyword(word) => Some(Vec::new()),
        (_, ")" | "]", _) => Some(Vec::new()),
        _ => None,
    }
}

fn plain(label: &str, kind: u64) -> Value {
    json!({"label": label, "kind": kind})
}

/// A name with what is to be looked up for it.
fn described(name: &str, kind: u64, page: &str) -> Value {
    json!({"label": name, "kind": kind, "data": {"page": page}})
}

/// Members of the value before the dot of a member.
fn of_value(view: &View, member: usize) -> Vec<Value> {
    let known = view.reading.seen.receiver(member as u32);
    let guess = view.receiver(member);
    if matches!(known, Known::Unknown)
        && guess.is_none()
        && let Some(fields) = of_unknown(view, member)
    {
        return fields.iter().map(|name| plain(name, item::FIELD)).collect();
    }
    let owner = guess.and_then(Guess::owner);
    let fields: Vec<&String> = guess.map(|guess| guess.entries().collect()).unwrap_or_default();
    // Under the type's name, since other types may have the name.
    let page = |name: &str| owner.map_or(name.to_string(), |owner| format!("{owner}.{name}"));
    let one = |name: &String| match name.strip_suffix('(') {
        Some(method) => described(method, item::METHOD, &page(method)),
        None if fields.contains(&name) => plain(name, item::FIELD),
        None => described(name, item::PROPERTY, &page(name)),
    };
    // A property goes before the method of its name.
    let names = guess.map_or_else(|| members(known), Guess::members);
    let mut items: Vec<Value> = names.iter().map(one).collect();
    items.dedup_by(|item, before| item["label"] == before["label"]);
    items
}

/// Of a variable of which the text tells no more than where it comes from: what an error has, or a batch.
fn of_unknown(view: &View, member: usize) -> Option<&'static [&'static str]> {
    let holder = &view.names.symbols[view.names.at(member.checked_sub(2)? as u32)?];
    match holder.comes_from {
        ComesFrom::Caught => Some(ERROR),
        ComesFrom::Loop(over) => match view.reading.seen.value(over) {
            Known::Layer(layer) if matches!(**layer, Layer::Loader) => Some(BATCH),
            _ => None,
        },
        ComesFrom::Elsewhere => None,
    }
}

/// Functions and submodules of a module.
fn of_module(view: &View, name: usize) -> Vec<Value> {
    let Some(space) = path_before(&view.reading, name) else { return Vec::new() };
    let path = module_path(view, &space);
    let mut items: Vec<Value> = Vec::new();
    let page = |name: &str| format!("{path}::{name}");
    items.extend(
        manual::functions(&path).iter().map(|found| described(&found.name, item::FUNCTION, &page(&found.name))),
    );
    if items.is_empty() {
        items.extend(manual::of_module(&path).map(|found| described(found, item::FUNCTION, &page(found))));
        let inner = manual::MODULES.iter().filter_map(|module| module.strip_prefix(&format!("{path}::")));
        items.extend(inner.map(|module| plain(module, item::MODULE)));
    }
    if let Some(other) = super::library::of_user(view, &path) {
        let is_private = |token: u32| token > 1 && other.word(token as usize - 2) == "private";
        for symbol in other.names.symbols.iter().filter(|symbol| symbol.is_top && !is_private(symbol.token)) {
            match symbol.kind {
                SymbolKind::Function => {
                    let mut found = plain(&symbol.name, item::FUNCTION);
                    found["detail"] = json!(super::hover::declaration(symbol));
                    items.push(found);
                }
                SymbolKind::Constant => items.push(plain(&symbol.name, item::CONSTANT)),
                SymbolKind::Variable => items.push(plain(&symbol.name, item::VARIABLE)),
                SymbolKind::Parameter | SymbolKind::Import => {}
            }
        }
    }
    items
}

/// Between the braces of a call's `#{ }`: keywords that are not given yet.
fn keywords(view: &View, offset: usize) -> Vec<Value> {
    let Some(around) = around(&view.reading, offset) else { return Vec::new() };
    let (Some(given), None) = (&around.given, &around.keyword) else { return Vec::new() };
    let Some(signature) = signature(view, around.name) else { return Vec::new() };
    let known = signature.keywords().filter(|&at| at >= around.position).map(|at| &signature.params[at]);
    let word = crate::script::edit::around::token_at(&view.reading, offset).map_or("", |token| view.word(token));
    let missing = known.filter(|param| !given.contains(&param.name) || param.name == word);
    missing
        .map(|param| {
            json!({
                "label": param.name,
                "kind": item::PROPERTY,
                "detail": param.to_string(),
                "insertText": format!("{}: ", param.name),
            })
        })
        .collect()
}

/// Names that the text declares.
fn names(view: &View, offset: usize) -> Vec<Value> {
    let token = tokens_before(&view.reading, offset) as u32;
    let mut items: Vec<Value> = Vec::new();
    for symbol in view.names.visible(token).filter(|symbol| !symbol.name.is_empty() && symbol.token + 1 != token) {
        let mut found = plain(
            &symbol.name,
            match symbol.kind {
                SymbolKind::Variable | SymbolKind::Parameter => item::VARIABLE,
                SymbolKind::Constant => item::CONSTANT,
                SymbolKind::Function => item::FUNCTION,
                SymbolKind::Import => item::MODULE,
            },
        );
        let value = describe(view.reading.seen.value(symbol.token));
        if let Some(detail) = match symbol.kind {
            SymbolKind::Function => Some(super::hover::declaration(symbol)),
            SymbolKind::Import => view.names.module(&symbol.name).map(|path| format!("import \"{path}\"")),
            _ => value,
        } {
            found["detail"] = json!(detail);
        }
        // Before what the language has.
        found["sortText"] = json!(format!("0{}", symbol.name));
        items.retain(|item| item["label"] != found["label"]);
        items.push(found);
    }
    items
}

/// Words of the language, natives and operations.
fn natives(offered: &Completions) -> Vec<Value> {
    let one = |word: &String| match (word.strip_suffix('('), word.strip_suffix("::")) {
        (Some(name), _) => described(name, item::FUNCTION, name),
        (_, Some(module)) => plain(module, item::MODULE),
        _ => plain(word, item::KEYWORD),
    };
    offered.words.iter().map(one).collect()
}

/// Those that can stand behind a token: statements where one begins, of what has a value also where a value is written.
fn snippets(before: &str) -> impl Iterator<Item = Value> {
    let begins = matches!(before, "" | ";" | "{" | "}");
    let is_value = matches!(before, "=" | "=>" | "return");
    let fits = move |label: &str| begins || (is_value && VALUES.contains(&label));
    SNIPPETS.iter().filter(move |(label, ..)| fits(label)).map(|(label, text, about)| {
        json!({
            "label": label,
            "kind": item::SNIPPET,
            "detail": about,
            "insertText": text,
            "insertTextFormat": 2,
            "sortText": format!("2{label}"),
        })
    })
}

/// Modules in the string of an import, and where the string begins: those that need no folder, files and folders.
fn modules(view: &View, offset: usize, offered: &Completions) -> Option<(usize, Vec<Value>)> {
    let tokens = &view.reading.tokens;
    let is_around = |at: &usize| {
        let range = tokens[*at].range();
        tokens[*at].kind == Kind::Str && range.start < offset && offset <= range.end && view.before(*at) == "import"
    };
    let start = tokens[(0..tokens.len()).find(is_around)?].start as usize + 1;
    let typed = view.text().get(start..offset)?;
    let folder = typed.rfind('/').map_or("", |end| &typed[..=end]);
    let entries = std::fs::read_dir(view.home().join(folder)).into_iter().flatten().flatten();
    let one = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            _ if name.starts_with('.') => None,
            true => Some((format!("{folder}{name}/"), item::FOLDER)),
            false => Some((format!("{folder}{}", name.strip_suffix(".rhai")?), item::MODULE)),
        }
    };
    let mut found: Vec<(String, u64)> = entries.filter_map(one).collect();
    if folder.is_empty() {
        found.extend(offered.words.iter().map(|name| (name.clone(), item::MODULE)));
    }
    order::by(&mut found, Ord::cmp);
    found.dedup();
    Some((start, found.iter().take(ITEMS).map(|(name, kind)| plain(name, *kind)).collect()))
}

/// Files and folders beside the text, below what is typed of a path.
fn files(view: &View, typed: &str) -> Vec<Value> {
    let folder = match typed.rfind('/') {
        Some(end) => &typed[..=end],
        None => "",
    };
    let base = view.path.parent().unwrap_or(Path::new(".")).join(folder);
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let mut found: Vec<(String, bool)> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir())).collect();
    found.retain(|(name, _)| !name.starts_with('.'));
    order::by(&mut found, Ord::cmp);
    let one = |(name, is_folder): (String, bool)| match is_folder {
        true => plain(&format!("{folder}{name}/"), item::FOLDER),
        false => plain(&format!("{folder}{name}"), item::FILE),
    };
    found.into_iter().take(ITEMS).map(one).collect()
}

/// `completionItem/resolve`: adds signature and documentation.
pub fn resolve(item: &Value) -> Value {
    let mut item = item.clone();
    let page = item["data"]["page"].as_str().and_then(|page| match page.split_once('.') {
        Some((owner, name)) if !owner.is_empty() => manual::member_page(owner, name),
        _ => manual::page(page),
    });
    if let Some(page) = page {
        item["detail"] = json!(page.calls.first());
        item["documentation"] = json!({"kind": "markdown", "value": super::hover::markdown(&page)});
    }
    item
}

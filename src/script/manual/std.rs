//! The functions of the standard library as their sources document them: `///` lines above a `fn`, with examples
//! between fences.

use super::{Page, Sample};
use crate::script::library::signature;
use crate::script::library::texts::STD;
use crate::script::source::lex::{Kind, lex};
use ::std::collections::BTreeMap;
use ::std::sync::OnceLock;

/// A documented function of a module.
#[derive(Clone, Debug)]
pub struct Function {
    pub module: &'static str,
    pub name: String,
    /// Does its form tell the keywords, as those of operations do?
    is_signed: bool,
    /// Parameters of each form.
    pub forms: Vec<String>,
    /// Options of the trailing map.
    pub keywords: Vec<String>,
    pub summary: String,
    pub details: String,
    pub examples: Vec<String>,
}

impl Function {
    /// The widest form.
    pub fn call(&self) -> String {
        let widest = self.forms.iter().max_by_key(|form| form.len()).map_or("", String::as_str);
        let options = match self.keywords.is_empty() || self.is_signed {
            true => String::new(),
            false => format!("   #{{{}}}", self.keywords.join(", ")),
        };
        format!("{}({widest}){options}", self.name)
    }

    pub fn page(&self) -> Page {
        let mut calls: Vec<String> =
            self.forms.iter().map(|form| format!("{}::{}({form})", self.module, self.name)).collect();
        if !self.keywords.is_empty() && !self.is_signed {
            calls.push(format!("options: {}", self.keywords.join(", ")));
        }
        Page {
            name: format!("{}::{}", self.module, self.name),
            calls,
            summary: self.summary.clone(),
            details: self.details.clone(),
            examples: self.examples.iter().map(|code| Sample { code: code.clone(), result: String::new() }).collect(),
        }
    }
}

/// The documented functions of a module of the standard library; none for any other.
pub fn functions(module: &str) -> &'static [Function] {
    static READ: OnceLock<BTreeMap<&'static str, Vec<Function>>> = OnceLock::new();
    let text = |files: &[(&str, &'static str)]| files.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n");
    let all = READ.get_or_init(|| STD.iter().map(|(name, files)| (*name, read(name, &text(files)))).collect());
    all.get(module).map_or(&[], Vec::as_slice)
}

fn read(module: &'static str, text: &str) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let bodies = bodies(text);
    let mut doc: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("///") {
            doc.push(words.strip_prefix(' ').unwrap_or(words));
            continue;
        }
        if let Some((name, form)) = declared(line).filter(|_| !line.starts_with("private ")) {
            if let Some(known) = found.iter_mut().find(|known| known.name == name) {
                known.forms.push(form.to_string());
            } else if !doc.is_empty() {
                found.push(function(module, name, form, &doc, &bodies));
            }
        }
        doc.clear();
    }
    for signature in signature::read(text) {
        let Some(known) = found.iter_mut().find(|known| known.name == signature.name) else { continue };
        known.forms = vec![signature.inside().to_string()];
        known.keywords = signature.optional().map(str::to_string).collect();
        known.is_signed = true;
    }
    found
}

/// `fn linear(d_in, d_out) {` → its name and parameters.
fn declared(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("private ").unwrap_or(line).strip_prefix("fn ")?.split_once('(')?;
    Some((name.trim(), rest.split_once(')')?.0))
}

fn function(module: &'static str, name: &str, form: &str, doc: &[&str], bodies: &BTreeMap<String, String>) -> Function {
    let (mut words, mut examples, mut fence) = (Vec::new(), Vec::new(), None);
    for line in doc {
        match (line.starts_with("```"), fence.take()) {
            (true, None) => fence = Some(Vec::new()),
            (true, Some(code)) => examples.push(code.join("\n")),
            (false, Some(mut code)) => {
                code.push(*line);
                fence = Some(code);
            }
            (false, None) => words.push(*line),
        }
    }
    let end = words.iter().position(|line| line.trim().is_empty()).unwrap_or(words.len());
    Function {
        module,
        name: name.to_string(),
        is_signed: false,
        forms: vec![form.to_string()],
        keywords: keywords(name, bodies),
        summary: words[..end].join(" "),
        details: words[end..].join("\n").trim().to_string(),
        examples,
    }
}

/// The texts of all functions by name, forms of one name together.
fn bodies(text: &str) -> BTreeMap<String, String> {
    let mut bodies: BTreeMap<String, String> = BTreeMap::new();
    let mut name = None;
    for line in text.lines().filter(|line| !line.starts_with("//")) {
        if let Some((started, _)) = declared(line) {
            name = Some(started.to_string());
        }
        if let Some(name) = &name {
            let body = bodies.entry(name.clone()).or_default();
            body.push_str(line);
            body.push('\n');
        }
    }
    bodies
}

/// Bound: helpers between a function and the map of its options.
const HELPERS: usize = 3;

/// The options that a function takes: the defaults in its `_options` call, else those in a map that it writes down,
/// else a helper's.
fn keywords(name: &str, bodies: &BTreeMap<String, String>) -> Vec<String> {
    let takes_options = |body: &&String| body.lines().filter_map(declared).any(|(_, form)| form.contains("options"));
    bodies.get(name).filter(takes_options).map(|_| options(name, bodies, HELPERS)).unwrap_or_default()
}

fn options(name: &str, bodies: &BTreeMap<String, String>, depth: usize) -> Vec<String> {
    let Some(body) = bodies.get(name).filter(|_| depth > 0) else { return Vec::new() };
    let call = body.split_once("_options(").map_or("", |(_, rest)| rest.split(';').next().unwrap_or(""));
    let own = body.match_indices("#{").map(|(at, _)| keys(&body[at..])).find(|keys| !keys.is_empty());
    let helpers = || {
        let called = bodies.keys().filter(|other| *other != name && body.contains(&format!("{other}(")));
        called.map(|other| options(other, bodies, depth - 1)).find(|keys| !keys.is_empty())
    };
    let given = keys(call);
    if given.is_empty() { own.or_else(helpers).unwrap_or_default() } else { given }
}

/// The keys of the first map literal of a text.
fn keys(text: &str) -> Vec<String> {
    let Some(start) = text.find("#{") else { return Vec::new() };
    let Some(end) = closing(&text[start..]) else { return Vec::new() };
    let map = &text[start..start + end];
    let Ok(tokens) = lex(map, 0) else { return Vec::new() };
    let word = |index: usize| tokens.get(index).map_or("", |token| &map[token.range()]);
    let names = (0..tokens.len()).filter(|&index| tokens[index].kind == Kind::Word && word(index + 1) == ":");
    names.map(|index| word(index).to_string()).collect()
}

/// The byte after the brace that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

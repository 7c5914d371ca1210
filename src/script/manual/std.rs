//! The documentation of the standard library's functions: `///` lines above a `fn`, with examples between fences.

use super::{Page, Sample};
use crate::base::signature::{self, Signature};
use crate::script::library::texts::STD;
use ::std::collections::BTreeMap;
use ::std::sync::OnceLock;

/// A documented function of a module.
#[derive(Clone, Debug)]
pub struct Function {
    pub module: &'static str,
    pub name: String,
    /// The signature of each form; a function with a `//:` line has one.
    pub forms: Vec<Signature>,
    pub summary: String,
    pub details: String,
    pub examples: Vec<String>,
}

impl Function {
    /// The form with the most parameters.
    pub fn widest(&self) -> &Signature {
        self.forms.iter().max_by_key(|form| form.params.len()).expect("a function has a form")
    }

    pub fn page(&self) -> Page {
        let call = |form: &Signature| format!("{}::{}", self.module, form.text);
        Page {
            name: format!("{}::{}", self.module, self.name),
            calls: self.forms.iter().map(call).collect(),
            summary: self.summary.clone(),
            details: self.details.clone(),
            examples: self.examples.iter().map(|code| Sample { code: code.clone(), result: String::new() }).collect(),
        }
    }
}

/// The documented functions of a module of the standard library; none for any other.
pub fn functions(module: &str) -> &'static [Function] {
    static READ: OnceLock<BTreeMap<&'static str, Vec<Function>>> = OnceLock::new();
    let all =
        READ.get_or_init(|| STD.iter().map(|library| (library.name, read(library.name, &library.text()))).collect());
    all.get(module).map_or(&[], Vec::as_slice)
}

fn read(module: &'static str, text: &str) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let mut doc: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("///") {
            doc.push(words.strip_prefix(' ').unwrap_or(words));
            continue;
        }
        if let Some(form) = declared(line) {
            if let Some(known) = found.iter_mut().find(|known| known.name == form.name) {
                known.forms.push(form);
            } else if !doc.is_empty() {
                found.push(function(module, form, &doc));
            }
        }
        doc.clear();
    }
    for signature in signature::read(text) {
        let Some(known) = found.iter_mut().find(|known| known.name == signature.name) else { continue };
        known.forms = vec![signature];
    }
    found
}

/// `fn linear(d_in, d_out) {` → its name and parameters.
fn declared(line: &str) -> Option<Signature> {
    let end = line.find(')')? + 1;
    Signature::parse(line[..end].strip_prefix("fn ")?)
}

fn function(module: &'static str, form: Signature, doc: &[&str]) -> Function {
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
        name: form.name.clone(),
        forms: vec![form],
        summary: words[..end].join(" "),
        details: words[end..].join("\n").trim().to_string(),
        examples,
    }
}

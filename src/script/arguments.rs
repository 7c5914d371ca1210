//! `args`, `arg("lr", 1e-3)`, `flag("verbose")`: what stands after `--` on the command line.

use super::bind::Natives;
use super::host::{Host, Native};
use super::properties::number;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use rhai::{Array, Dynamic};
use std::sync::Arc;

/// The words after `--`, and what the script asked for.
#[derive(Default)]
pub struct Arguments {
    pub words: Vec<String>,
    /// Name, default as text (none for a flag): what `-- --help` lists.
    pub asked: Vec<(String, Option<String>)>,
}

impl Arguments {
    /// The value of `--name value` or `--name=value`; of several the last, as command lines have it.
    fn value(&self, name: &str) -> Option<String> {
        let long = format!("--{name}");
        let (mut words, mut found) = (self.words.iter(), None);
        while let Some(word) = words.next() {
            if *word == long {
                found = Some(words.next().cloned().unwrap_or_default());
            } else if let Some(value) = word.strip_prefix(&long).and_then(|rest| rest.strip_prefix('=')) {
                found = Some(value.to_string());
            }
        }
        found
    }

    fn note(&mut self, name: &str, default: Option<String>) {
        if !self.asked.iter().any(|(known, _)| known == name) {
            self.asked.push((name.to_string(), default));
        }
    }
}

/// A word read as the kind of value that the default is.
fn parse(name: &str, word: &str, default: &Dynamic) -> Result<Dynamic> {
    let wrong =
        |what: &str| Diag::error(code::VALUE, format!("the script argument `--{name}` wants {what}, not \"{word}\""));
    if default.is_int() {
        return word.parse().map(|i| number(Scalar::Int(i))).map_err(|_| wrong("an integer"));
    }
    if default.is_float() {
        return word.parse().map(|x| number(Scalar::Float(x))).map_err(|_| wrong("a number"));
    }
    if default.is_bool() {
        return word.parse().map(Dynamic::from_bool).map_err(|_| wrong("true or false"));
    }
    Ok(word.to_string().into())
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    super::bind::raw(module, "arg", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let name = values[0].clone().into_string().unwrap_or_default();
        let default = values[1].clone();
        let mut arguments = shared.arguments.lock();
        arguments.note(&name, Some(default.to_string()));
        match arguments.value(&name) {
            Some(word) => parse(&name, &word, &default).map_err(|diag| shared.raise(&context, diag, "asked for here")),
            None => Ok(default),
        }
    });
    let shared = host.clone();
    super::bind::raw(module, "flag", 1, move |_, values| -> Native {
        let name = values[0].clone().into_string().unwrap_or_default();
        let mut arguments = shared.arguments.lock();
        arguments.note(&name, None);
        let long = format!("--{name}");
        Ok(Dynamic::from_bool(arguments.words.contains(&long)))
    });
}

/// The words as an array, for the variable `args`.
pub fn words(host: &Host) -> Array {
    host.arguments.lock().words.iter().map(|word| word.clone().into()).collect()
}

//! `let [a, b] = xs`, `let #{x, y} = batch` and patterns of `for`: takes a value apart. The source pass writes
//! `__unpack(value, "[a,b]")`, which gives the parts in the order of their names.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::row::{Op, Returns};
use crate::op::table;
use crate::script::bind::iterate;
use crate::script::bind::rows::{Natives, raw};
use crate::script::data::dataset::Dataset;
use crate::script::host::Host;
use crate::script::values::module::fields;
use crate::script::values::panics::Items;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, EvalAltResult, ImmutableString, Map};
use std::sync::Arc;

/// What a value must look like.
#[derive(Debug, PartialEq)]
enum Pattern {
    Name,
    /// `_`
    Ignored,
    /// `[a, b, ..rest]`: `Some(true)` where the rest has a name.
    List(Vec<Pattern>, Option<bool>),
    /// `#{x, y: [a, b], ..rest}`
    Map(Vec<(String, Pattern)>, Option<bool>),
}

/// Why a value does not fit: an error of the language, or one of what is walked.
enum Refused {
    Diag(Box<Diag>),
    Raised(Box<EvalAltResult>),
}

impl From<Box<Diag>> for Refused {
    fn from(diag: Box<Diag>) -> Refused {
        Refused::Diag(diag)
    }
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let host = host.clone();
    raw(module, "__unpack", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let text = values[1].read_lock::<ImmutableString>().map(|text| text.clone()).unwrap_or_default();
        let mut parts = Array::new();
        let unpacked = match Reader::new(&text).whole() {
            Ok(pattern) => take(&host, &pattern, values[0].flatten_clone(), &mut parts),
            Err(diag) => Err(diag.into()),
        };
        match unpacked {
            Ok(()) => Ok(parts.into()),
            Err(Refused::Diag(diag)) => Err(host.raise(&context, diag, "")),
            Err(Refused::Raised(error)) => Err(error),
        }
    });
}

fn take(host: &Host, pattern: &Pattern, value: Dynamic, parts: &mut Array) -> std::result::Result<(), Refused> {
    match pattern {
        Pattern::Ignored => {}
        Pattern::Name => parts.push(value),
        Pattern::List(patterns, rest) => list(host, patterns, *rest, value, parts)?,
        Pattern::Map(patterns, rest) => {
            let of_dataset = || value.read_lock::<Dataset>()?.columns();
            let Some(mut map) = fields(&value).map(|map| map.clone()).or_else(of_dataset) else {
                let kind = type_names::of_value(&value);
                let diag = Diag::error(code::TYPE, format!("`#{{..}}` takes a map apart, and this is {kind}"));
                return Err(diag.help("the parts of an array are `let [a, b] = ..`").into());
            };
            if let Some((key, _)) = patterns.iter().find(|(key, _)| !map.contains_key(key.as_str())) {
                let known: Vec<&str> = map.keys().map(|key| key.as_str()).collect();
                return Err(no_entry(key, &known).into());
            }
            for (key, pattern) in patterns {
                take(host, pattern, map.remove(key.as_str()).unwrap_or(Dynamic::UNIT), parts)?;
            }
            if *rest == Some(true) {
                parts.push(map.into());
            }
        }
    }
    Ok(())
}

fn list(
    host: &Host,
    patterns: &[Pattern],
    rest: Option<bool>,
    value: Dynamic,
    parts: &mut Array,
) -> std::result::Result<(), Refused> {
    let kind = type_names::of_value(&value);
    let known = value.read_lock::<Array>().map(|array| array.len());
    let names =
        value.read_lock::<Map>().map(|map| map.keys().take(4).map(|key| key.as_str()).collect::<Vec<_>>().join(", "));
    let mut items = elements(host, value, patterns.len(), rest == Some(true))?.ok_or_else(|| {
        Diag::error(code::TYPE, format!("`[..]` takes arrays apart, and what `for` goes over; this is {kind}"))
    })?;
    if let Some(diag) = wrong_count(patterns.len(), rest, items.len(), known, &kind, names) {
        return Err(diag.into());
    }
    let further = items.split_off(patterns.len());
    for (pattern, item) in patterns.iter().zip(items) {
        take(host, pattern, item, parts)?;
    }
    if rest == Some(true) {
        parts.push(further.into());
    }
    Ok(())
}

/// What a run says where a pattern does not fit an array of so many elements.
pub fn misfit_of_array(pattern: &str, found: usize) -> Option<Box<Diag>> {
    match Reader::new(pattern).whole().ok()? {
        Pattern::List(patterns, rest) => wrong_count(patterns.len(), rest, found, Some(found), "an array", None),
        _ => None,
    }
}

/// The same of a map with these keys.
pub fn misfit_of_map(pattern: &str, keys: &[&str]) -> Option<Box<Diag>> {
    match Reader::new(pattern).whole().ok()? {
        Pattern::Map(patterns, _) => {
            let (key, _) = patterns.iter().find(|(key, _)| !keys.contains(&key.as_str()))?;
            Some(no_entry(key, keys))
        }
        _ => None,
    }
}

fn no_entry(key: &str, known: &[&str]) -> Box<Diag> {
    Diag::error(code::UNKNOWN_PROPERTY, format!("the map has no entry `{key}`"))
        .help(format!("it has: {}", known.join(", ")))
}

/// The error where a list of so many patterns does not fit so many values; `known`: how many there are, if not more.
fn wrong_count(
    expected: usize,
    rest: Option<bool>,
    found: usize,
    known: Option<usize>,
    kind: &str,
    names: Option<String>,
) -> Option<Box<Diag>> {
    if found < expected || (rest.is_none() && found > expected) {
        let least = if rest.is_some() { "at least " } else { "" };
        let counted = |n: usize| if n == 1 { "1 value".to_string() } else { format!("{n} values") };
        let more = match known {
            None if rest.is_none() && found > expected => "more".to_string(),
            known => counted(known.unwrap_or(found)),
        };
        let text = format!("the pattern expects {least}{}, and {kind} has {more}", counted(expected));
        if let Some(names) = names {
            let help = format!("a map is taken apart by its names: `let #{{{names}}} = ..`");
            return Some(Diag::error(code::VALUE, text).help(help));
        }
        let help = match rest {
            None if found > expected => "`..` at the end of a pattern passes over further values, `..rest` keeps them",
            _ => "leave a name out, or look at the length first",
        };
        return Some(Diag::error(code::VALUE, text).help(help));
    }
    None
}

/// The elements of a value: all of them, or one more than are wanted. None for a value that has no elements.
fn elements(host: &Host, value: Dynamic, wanted: usize, all: bool) -> std::result::Result<Option<Array>, Refused> {
    let value = match value.try_cast_result::<Array>() {
        Ok(array) => return Ok(Some(array)),
        Err(value) => value,
    };
    if let Some(map) = value.read_lock::<Map>() {
        if let Some(results) = results(&map) {
            return Ok(Some(results));
        }
        return Ok(Some(map.keys().map(|key| key.as_str().into()).collect()));
    }
    let Some(items): Option<Items> = iterate::items(host, value) else { return Ok(None) };
    let most = if all { usize::MAX } else { wanted + 1 };
    let mut found = Array::new();
    for item in items.take(most) {
        found.push(item.map_err(Refused::Raised)?);
    }
    Ok(Some(found))
}

/// Names of what layers and functions of the library give, in PyTorch's order; the first is a tensor or a packed sequence, whose
/// own names are the last of these.
const OF_LIBRARY: &[&[&str]] = &[
    &["output", "h_n"],
    &["output", "weights"],
    &["output", "loss"],
    &["data", "batch_sizes", "sorted_indices", "unsorted_indices"],
];

/// Whether a value is a packed sequence, which layers give of one.
fn is_packed(value: &Dynamic) -> bool {
    let packed = OF_LIBRARY[OF_LIBRARY.len() - 1];
    value
        .read_lock::<Map>()
        .is_some_and(|map| map.len() == packed.len() && packed.iter().all(|name| map.contains_key(*name)))
}

/// What operations and layers give under several names, in the order in which PyTorch gives it: `let [v, i] = x.topk(2)`.
fn results(map: &Map) -> Option<Array> {
    let has = |names: &[&str]| names.len() == map.len() && names.iter().all(|name| map.contains_key(*name));
    let is_tensor = |value: &Dynamic| value.is::<Tensor>();
    let part = |name: &str| map[name].flatten_clone();
    let is_result = |name: &&str| is_tensor(&map[*name]) || map[*name].is_unit();
    let is_first = |value: &Dynamic| is_tensor(value) || is_packed(value);
    let of_library =
        OF_LIBRARY.iter().find(|names| has(names) && is_first(&map[names[0]]) && names[1..].iter().all(is_result));
    if let Some(names) = of_library {
        return Some(names.iter().map(|name| part(name)).collect());
    }
    if has(&["output", "h_n", "c_n"]) {
        return Some(vec![part("output"), Dynamic::from_array(vec![part("h_n"), part("c_n")])]);
    }
    let is_list = |value: &Dynamic| value.read_lock::<Array>().is_some_and(|items| items.iter().all(is_tensor));
    let fits = |op: &Op| match op.results {
        Returns::Named(names) if has(names) && map.values().all(is_tensor) => Some(names.to_vec()),
        Returns::NamedRest(first, rest) if has(&[first, rest]) && is_tensor(&map[first]) && is_list(&map[rest]) => {
            Some(vec![first, rest])
        }
        _ => None,
    };
    let names = table::all().find_map(fits)?;
    Some(names.into_iter().map(part).collect())
}

/// Reads a pattern's text, which has no blanks.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    fn whole(mut self) -> Result<Pattern> {
        let pattern = self.pattern()?;
        match self.at == self.text.len() {
            true => Ok(pattern),
            false => self.wrong(),
        }
    }

    fn wrong<T>(&self) -> Result<T> {
        let rest = self.text[self.at..].chars().next().map_or("its end".to_string(), |c| format!("`{c}`"));
        let diag = Diag::error(code::SYNTAX, format!("this is no pattern: a name is expected before {rest}"));
        Err(diag.help("patterns have names, `_`, `[..]`, `#{name: ..}`, and `..rest` at their end"))
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.text[self.at..].starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn name(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    /// A name, or a text in the quotes that the source pass has put there.
    fn key(&mut self) -> Option<&'a str> {
        let Some(rest) = self.text[self.at..].strip_prefix('\'') else { return self.name() };
        let (key, after) = rest.split_once('\'').filter(|(_, after)| after.starts_with(':'))?;
        self.at = self.text.len() - after.len();
        Some(key)
    }

    fn pattern(&mut self) -> Result<Pattern> {
        if self.eat("[") {
            let (patterns, rest) = self.items("]", Reader::pattern)?;
            return Ok(Pattern::List(patterns, rest));
        }
        if self.eat("#{") {
            let (entries, rest) = self.items("}", |reader| {
                let Some(key) = reader.key() else { return reader.wrong() };
                let pattern = if reader.eat(":") { reader.pattern()? } else { Pattern::Name };
                Ok((key.to_string(), pattern))
            })?;
            return Ok(Pattern::Map(entries, rest));
        }
        match self.name() {
            Some("_") => Ok(Pattern::Ignored),
            Some(_) => Ok(Pattern::Name),
            None => self.wrong(),
        }
    }

    /// Items up to a closing bracket, and whether a rest was written, with a name or without.
    fn items<T>(&mut self, end: &str, item: fn(&mut Self) -> Result<T>) -> Result<(Vec<T>, Option<bool>)> {
        let mut items = Vec::new();
        loop {
            if self.eat(end) {
                return Ok((items, None));
            }
            if self.eat("..") {
                let named = self.name().is_some_and(|name| name != "_");
                self.eat(",");
                if !self.eat(end) {
                    fail!(SYNTAX, "`..` is the last part of a pattern");
                }
                return Ok((items, Some(named)));
            }
            items.push(item(self)?);
            if !self.eat(",") && !self.text[self.at..].starts_with(end) {
                return self.wrong();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Pattern> {
        Reader::new(text).whole().ok()
    }

    #[test]
    fn patterns_nest() {
        let inner = Pattern::List(vec![Pattern::Name, Pattern::Ignored], None);
        assert_eq!(read("[a,[b,_],..rest]"), Some(Pattern::List(vec![Pattern::Name, inner], Some(true))));
        let inner = Pattern::List(vec![Pattern::Name], Some(false));
        let quoted = Pattern::Map(vec![("two words".into(), Pattern::Name)], None);
        assert_eq!(read("#{'two words':w}"), Some(quoted));
        let expected = Pattern::Map(vec![("x".into(), Pattern::Name), ("y".into(), inner)], None);
        assert_eq!(read("#{x,y:[a,..]}"), Some(expected));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "[a", "[1.5+2]", "[..a,b]", "#{\"k\":a}", "[a b]]"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}

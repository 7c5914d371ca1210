//! Functions of the library are called as PyTorch's are: parameters by position, by name in a trailing map, or some
//! of each. A line above a function says which parameters there are, in PyTorch's order:
//!
//! `//: conv2d(in_channels, out_channels, kernel_size, stride: 1, padding: 0, last_epoch = -1, *, bias: true)`
//!
//! A name alone must be given; `name: value` has a default; `name: "mean"|"sum"` can be no other text than these, the
//! first being the default; `name = value` can have no other value; what comes after
//! `*` is given by name only; `*name` takes all values of a call, or one array of them. `device` and `dtype`, where the function has no use for them, move what it makes.
//! A function of the library takes the first few of these as its own parameters and the others in a map, its last
//! parameter, called `options`; only what was given stands in the map.
//!
//! Knows no function by name.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::span::Origin;
use crate::base::suggest::{nearest, unknown_keyword};
use crate::fail;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, ImmutableString, Map};

/// The beginning of a line with a signature.
const MARK: &str = "//: ";
/// Bound: values of one call by position. Rhai looks for a function of `n` values in up to 2^n steps.
pub const MOST: usize = 15;
/// They steer how PyTorch computes, not what comes out.
const WITHOUT_EFFECT: &[&str] = &[
    "inplace",
    "foreach",
    "fused",
    "capturable",
    "differentiable",
    "enable_nested_tensor",
    "mask_check",
    "num_workers",
    "timeout",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory_device",
    "in_order",
];
/// Of these, those that count something.
const COUNTS: &[&str] = &["num_workers", "timeout", "prefetch_factor"];
/// What moves a module that was made.
const PLACEMENT: &[&str] = &["device", "dtype"];

enum Rule {
    Required,
    Default(Dynamic),
    /// No other value is possible.
    Only(Dynamic),
    /// All values of the call.
    Several,
}

pub struct Param {
    name: String,
    rule: Rule,
    /// The only texts that it can be; other kinds of values are not told.
    words: Vec<String>,
}

/// What is looked at in the last value of a call, if it is a map.
pub struct Last<'a> {
    pub keys: &'a [&'a str],
    pub has_closures: bool,
}

/// The parameters of a function.
pub struct Signature {
    pub name: String,
    /// As it is written: `step_lr(optimizer, step_size, gamma: 0.1)`.
    pub text: String,
    pub params: Vec<Param>,
    /// How many may be given by position.
    pub positional: usize,
}

/// What a function takes itself: the first `own` parameters, then perhaps a map of the others.
#[derive(Clone, Copy)]
pub struct Form {
    pub own: usize,
    pub rest: bool,
}

/// The values for a function, and where the user wants what it makes.
pub struct Bound {
    pub values: Vec<Dynamic>,
    pub placement: Map,
}

impl Signature {
    /// Reads `name(a, b: 1)`; none if it is not written like that.
    pub fn parse(text: &str) -> Option<Signature> {
        let (name, inside) = text.trim().strip_suffix(')')?.split_once('(')?;
        let mut params = Vec::new();
        let mut positional = None;
        for part in parts(inside) {
            if part == "*" {
                positional = Some(params.len());
                continue;
            }
            if let Some(name) = part.strip_prefix('*') {
                params.push(Param { name: name.to_string(), rule: Rule::Several, words: Vec::new() });
                positional = Some(MOST);
                continue;
            }
            let mut words = Vec::new();
            let (name, rule) = match (part.split_once(": "), part.split_once(" = ")) {
                (Some((name, value)), _) => {
                    let mut values = value.split('|').map(literal);
                    let default = values.next()??;
                    if value.contains('|') {
                        let text = |value: Dynamic| value.into_string().ok();
                        words.extend(default.clone().into_string());
                        words.extend(values.map(|value| value.and_then(text)).collect::<Option<Vec<_>>>()?);
                    }
                    (name, Rule::Default(default))
                }
                (None, Some((name, value))) => (name, Rule::Only(literal(value)?)),
                (None, None) => (part, Rule::Required),
            };
            params.push(Param { name: name.to_string(), rule, words });
        }
        let positional = positional.unwrap_or(params.len());
        Some(Signature { name: name.to_string(), text: text.trim().to_string(), params, positional })
    }

    /// Keywords that may be left out.
    pub fn optional(&self) -> impl Iterator<Item = &str> {
        self.params.iter().filter(|param| !matches!(param.rule, Rule::Required)).map(|param| param.name.as_str())
    }

    /// What stands between the parentheses.
    pub fn inside(&self) -> &str {
        self.text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or("")
    }

    /// The name of the first parameter.
    pub fn first(&self) -> Option<&str> {
        self.params.first().map(|param| param.name.as_str())
    }

    pub fn place(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }

    /// Whether the last value of a call, a map, is one of its values and not its keywords. What the library makes are
    /// maps, too, with closures in them; where a value must be given, such a map is the value. So is any map without
    /// one of the keywords for one of the first `doubtful` parameters, and a first value that looks like none of them.
    pub fn takes_value(&self, given: usize, last: &Last, doubtful: usize) -> bool {
        let rule = self.params[..self.positional].get(given - 1).map(|param| &param.rule);
        let fits = match rule {
            Some(Rule::Required) => {
                let known = || self.params.iter().map(|param| param.name.as_str());
                let strange = || last.keys.iter().all(|key| nearest(key, known()).is_none());
                last.has_closures || (given == 1 && strange())
            }
            Some(_) => given <= doubtful && !last.keys.is_empty(),
            None => false,
        };
        matches!(self.params[..], [Param { rule: Rule::Several, .. }])
            || (fits && !last.keys.iter().any(|key| self.place(key).is_some()))
    }

    /// Whether so many values may be given by position.
    pub fn check_count(&self, given: usize) -> Result<()> {
        if given <= self.positional {
            return Ok(());
        }
        let text = format!("`{}`: {given} arguments given, at most {} are taken", self.name, self.positional);
        Err(self.called_as(Diag::error(code::EXTRA_ARGUMENT, text)))
    }

    /// Whether a call with so many values by position and with these keywords is one.
    pub fn check_names(&self, given: usize, keys: &[&str]) -> Result<()> {
        self.check_count(given)?;
        if matches!(self.params[..], [Param { rule: Rule::Several, .. }]) {
            return Ok(());
        }
        for key in keys {
            let Some(at) = self.place(key) else { return Err(self.unknown(key)) };
            if at < given {
                fail!(EXTRA_ARGUMENT, "`{}`: `{key}` is given both by position and by keyword", self.name);
            }
        }
        let is_missing = |(at, param): &(usize, &Param)| {
            matches!(param.rule, Rule::Required) && *at >= given && !keys.contains(&param.name.as_str())
        };
        match self.params.iter().enumerate().find(is_missing) {
            Some((_, param)) => {
                let text = format!("`{}`: argument `{}` is missing", self.name, param.name);
                Err(self.called_as(Diag::error(code::MISSING_ARGUMENT, text)))
            }
            None => Ok(()),
        }
    }

    /// Whether a string, with its text where that is known, may be the value of the parameter at a place: one of its
    /// words, and no string where a number or a truth is the default.
    pub fn check_text(&self, at: usize, text: Option<&str>, is_string: bool) -> Result<()> {
        let Some(param) = self.params.get(at).filter(|_| is_string) else { return Ok(()) };
        let Rule::Default(default) = &param.rule else { return Ok(()) };
        match text {
            Some(text) if !param.words.is_empty() && !param.words.iter().any(|word| word == text) => {
                let words: Vec<String> = param.words.iter().map(|word| format!("\"{word}\"")).collect();
                let diag = Diag::error(code::VALUE, format!("`{}`: `{}` cannot be \"{text}\"", self.name, param.name));
                Err(match nearest(text, param.words.iter().map(String::as_str)) {
                    Some(near) => diag.help(format!("did you mean \"{near}\"?")),
                    None => diag.help(format!("the choices are: {}", words.join(", "))),
                })
            }
            _ if param.words.is_empty() && (default.is_int() || default.is_float() || default.is_bool()) => {
                let wanted = if default.is_bool() { "true or false" } else { "a number" };
                fail!(ARGUMENT_TYPE, "`{}`: `{}` is {wanted}, not a string", self.name, param.name)
            }
            _ => Ok(()),
        }
    }

    /// The last value of a call if it is a map of keywords.
    fn keywords(&self, given: &mut Vec<Dynamic>, doubtful: usize) -> Option<Map> {
        let map = given.last()?.read_lock::<Map>()?.clone();
        let keys: Vec<&str> = map.keys().map(|key| key.as_str()).collect();
        let last = Last { keys: &keys, has_closures: map.values().any(Dynamic::is_fnptr) };
        if self.takes_value(given.len(), &last, doubtful) {
            return None;
        }
        given.pop();
        Some(map)
    }

    pub fn bind(&self, form: Form, mut given: Vec<Dynamic>, doubtful: usize) -> Result<Bound> {
        if let [Param { rule: Rule::Several, .. }] = self.params[..] {
            let whole = given.len() == 1 && given[0].is_array();
            let all = if whole { given.swap_remove(0) } else { given.into() };
            return Ok(Bound { values: vec![all], placement: Map::new() });
        }
        let keywords = self.keywords(&mut given, doubtful).unwrap_or_default();
        let keys: Vec<&str> = keywords.keys().map(|key| key.as_str()).collect();
        self.check_names(given.len(), &keys)?;
        let mut slots: Vec<Option<Dynamic>> = given.into_iter().map(Some).collect();
        slots.resize_with(self.params.len(), || None);
        for (key, value) in keywords {
            if let Some(at) = self.place(&key) {
                slots[at] = Some(value);
            }
        }
        // Other kinds of values the function itself looks at.
        for (at, slot) in slots.iter().enumerate() {
            let text = slot.as_ref().and_then(|slot| slot.read_lock::<ImmutableString>());
            self.check_text(at, text.as_ref().map(|text| text.as_str()), text.is_some())?;
        }
        let mut bound = Bound { values: Vec::with_capacity(form.own + 1), placement: Map::new() };
        let mut rest = Map::new();
        for (at, (param, slot)) in self.params.iter().zip(slots).enumerate() {
            match &param.rule {
                Rule::Only(value) if slot.as_ref().is_some_and(|slot| !same(slot, value)) => {
                    let value = shown(value);
                    let text = format!("`{}`: `{}` cannot be other than {value} here", self.name, param.name);
                    let diag = Diag::error(code::VALUE, text).keyword(Origin::NONE, &param.name, "this one");
                    // `nn::mse_loss(x, y)`.
                    let has_tensor = slot.as_ref().is_some_and(|slot| slot.is::<Tensor>());
                    return Err(if has_tensor { diag.help(self.of_tensors()) } else { diag });
                }
                Rule::Only(_) => {}
                Rule::Default(_) if WITHOUT_EFFECT.contains(&param.name.as_str()) => {
                    self.check_number(&param.name, slot)?
                }
                Rule::Default(default) if at < form.own => bound.values.push(slot.unwrap_or_else(|| default.clone())),
                Rule::Required if at < form.own => bound.values.push(slot.unwrap_or_default()),
                _ => {
                    // Where `()` is the default it says as much as nothing.
                    let nothing = matches!(&param.rule, Rule::Default(default) if default.is_unit());
                    let Some(value) = slot.filter(|slot| !nothing || !slot.is_unit()) else { continue };
                    let moves = !form.rest || PLACEMENT.contains(&param.name.as_str());
                    if moves { &mut bound.placement } else { &mut rest }.insert(param.name.as_str().into(), value);
                }
            }
        }
        if form.rest {
            bound.values.push(rest.into());
        }
        Ok(bound)
    }

    /// A count is at least 0, also where it has no effect.
    fn check_number(&self, name: &str, slot: Option<Dynamic>) -> Result<()> {
        let Some(value) = slot.filter(|value| !value.is_unit() && COUNTS.contains(&name)) else { return Ok(()) };
        match value.as_float().ok().or_else(|| value.as_int().ok().map(|n| n as f64)) {
            Some(count) if count >= 0.0 => Ok(()),
            Some(_) => fail!(VALUE, "`{}`: `{name}` cannot be negative, as {value} is", self.name),
            None => fail!(ARGUMENT_TYPE, "`{}`: `{name}` is a number, not {}", self.name, type_names::of_value(&value)),
        }
    }

    /// What takes the tensors that were given to a function which makes a module.
    #[cold]
    fn of_tensors(&self) -> String {
        let name = &self.name;
        let forward = format!("settings make a module, which takes tensors: `nn::{name}().forward(x, y)`");
        match crate::op::table::find(name) {
            Some(_) => format!("{forward}; the operation is `{name}(x, y)`"),
            None => forward,
        }
    }

    #[cold]
    fn called_as(&self, diag: Box<Diag>) -> Box<Diag> {
        diag.help(format!("call it as `{}`", self.text))
    }

    #[cold]
    fn unknown(&self, key: &str) -> Box<Diag> {
        let known: Vec<&str> = self.params.iter().map(|param| param.name.as_str()).collect();
        let mut diag = unknown_keyword(key, &known);
        diag.message = format!("`{}`: {}", self.name, diag.message);
        diag
    }
}

/// Whole numbers stand for floats.
fn same(a: &Dynamic, b: &Dynamic) -> bool {
    let number = |x: &Dynamic| x.as_float().ok().or_else(|| x.as_int().ok().map(|i| i as f64));
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => shown(a) == shown(b),
    }
}

fn shown(value: &Dynamic) -> String {
    if value.is_unit() { "()".into() } else { format!("{value:?}") }
}

/// Splits at commas that stand in no bracket.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found.retain(|part| !part.is_empty());
    found
}

fn literal(text: &str) -> Option<Dynamic> {
    let text = text.trim();
    Some(match text {
        "()" => Dynamic::UNIT,
        "true" => Dynamic::TRUE,
        "false" => Dynamic::FALSE,
        _ => {
            if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                return parts(inside).into_iter().map(literal).collect::<Option<Array>>().map(Dynamic::from);
            }
            if let Some(inside) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
                return Some(inside.to_string().into());
            }
            match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(i), _) => Dynamic::from_int(i),
                (_, Ok(x)) => Dynamic::from_float(x),
                _ => return None,
            }
        }
    })
}

/// The signatures that a text writes down.
pub fn read(text: &str) -> impl Iterator<Item = Signature> {
    text.lines().filter_map(|line| line.strip_prefix(MARK)).filter_map(Signature::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(text: &str, own: usize, given: Vec<Dynamic>) -> std::result::Result<String, (u16, String)> {
        let signature = Signature::parse(text).expect("a signature");
        let form = Form { own, rest: true };
        match signature.bind(form, given, 0) {
            Ok(bound) => Ok(format!("{:?} {:?}", bound.values, bound.placement)),
            Err(diag) => Err((diag.code.0, diag.message.clone())),
        }
    }

    fn map(pairs: &[(&str, i64)]) -> Dynamic {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect::<Map>().into()
    }

    #[test]
    fn positions_and_keywords_mix() {
        let text = "f(a, b: 2, c: 3, inplace: false, last = -1, *, device: (), d: 4)";
        let ok = |given| bind(text, 2, given).expect("bound");
        assert_eq!(ok(vec![1.into()]), "[1, 2, #{}] {}");
        assert_eq!(ok(vec![1.into(), 5.into(), 6.into(), true.into(), (-1).into()]), r#"[1, 5, #{"c": 6}] {}"#);
        assert_eq!(ok(vec![map(&[("a", 7), ("d", 8)])]), r#"[7, 2, #{"d": 8}] {}"#);
        assert_eq!(ok(vec![1.into(), map(&[("device", 0)])]), r#"[1, 2, #{}] {"device": 0}"#);
        let wrong = |given| bind(text, 2, given).expect_err("refused").0;
        assert_eq!(wrong(vec![]), code::MISSING_ARGUMENT.0);
        assert_eq!(wrong(vec![1.into(), map(&[("a", 1)])]), code::EXTRA_ARGUMENT.0);
        assert_eq!(wrong(vec![1.into(), map(&[("bb", 1)])]), code::UNKNOWN_KEYWORD.0);
        assert_eq!(wrong(vec![1.into(), map(&[("last", 0)])]), code::VALUE.0);
        assert_eq!(wrong((0..6).map(Dynamic::from_int).collect()), code::EXTRA_ARGUMENT.0);
    }

    /// Every signature of the library is read, names a function, and leaves no parameter without a taker.
    #[test]
    fn signatures_of_the_library_fit_their_functions() {
        for (module, files) in crate::script::library::texts::STD {
            for (file, text) in *files {
                for line in text.lines().filter_map(|line| line.strip_prefix(MARK.trim_end())) {
                    let signature = Signature::parse(line).unwrap_or_else(|| panic!("{file}: {line}"));
                    let start = format!("\nfn {}(", signature.name);
                    let forms: Vec<&str> = text
                        .match_indices(&start)
                        .map(|(at, _)| text[at + start.len()..].split(')').next().unwrap_or(""))
                        .collect();
                    let widest = forms.iter().max_by_key(|form| parts(form).len());
                    let widest =
                        widest.unwrap_or_else(|| panic!("{module}::{} is not defined in {file}", signature.name));
                    let own = parts(widest);
                    let rest = own.last() == Some(&"options");
                    let loose = signature.params[(own.len() - rest as usize).min(signature.params.len())..]
                        .iter()
                        .filter(|param| {
                            let name = param.name.as_str();
                            !rest
                                && !matches!(param.rule, Rule::Only(_))
                                && !WITHOUT_EFFECT.contains(&name)
                                && !PLACEMENT.contains(&name)
                        });
                    assert_eq!(
                        loose.map(|param| param.name.as_str()).collect::<Vec<_>>(),
                        [""; 0],
                        "{module}::{}",
                        signature.name
                    );
                    let taken = signature.params.len();
                    assert!(
                        taken + rest as usize >= own.len(),
                        "{module}::{} has parameters that nobody can give",
                        signature.name
                    );
                }
            }
        }
    }
}

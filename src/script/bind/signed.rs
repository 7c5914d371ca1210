//! How the values of a call find the parameters of a signature (`base/signature.rs`): parameters by position, by name in a
//! trailing map, or some of each, as PyTorch's are.
//!
//! `//: conv2d(in_channels, out_channels, kernel_size, stride: 1, padding: 0, last_epoch = -1, *, bias: true)`
//!
//! A function of the library takes the first few of these as its own parameters and the others in a map, its last
//! parameter, called `options`; only what was given stands in the map. `device` and `dtype`, where the function has no
//! use for them, move what it makes.
//!
//! Knows no function by name.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::signature::{Accepts, Literal, Param, Rule, Signature};
use crate::base::span::Origin;
use crate::base::suggest::{nearest, unknown_keyword};
use crate::fail;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, ImmutableString, Map};

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

/// What is looked at in the last value of a call, if it is a map.
pub struct Last<'a> {
    pub keys: &'a [&'a str],
    pub has_closures: bool,
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
    /// Whether the last value of a call, a map, is one of its values and not its keywords. What the library makes are
    /// maps, too, with closures in them; where a value must be given, such a map is the value. So is any map without
    /// one of the keywords for one of the first `doubtful` parameters, and a first value that looks like none of them.
    pub fn takes_value(&self, given: usize, last: &Last, doubtful: usize) -> bool {
        let rule = self.params.get(given - 1).filter(|_| given <= self.positional).map(|param| &param.rule);
        let fits = match rule {
            Some(Rule::Required) => {
                let strange = || last.keys.iter().all(|key| nearest(key, self.names()).is_none());
                last.has_closures || (given == 1 && strange())
            }
            Some(_) => given <= doubtful && !last.keys.is_empty(),
            None => false,
        };
        self.takes_all() || (fits && !last.keys.iter().any(|key| self.place(key).is_some()))
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
        if self.takes_all() {
            return Ok(());
        }
        for key in keys {
            let Some(at) = self.place(key) else { return Err(self.unknown(key)) };
            if at < given {
                fail!(EXTRA_ARGUMENT, "`{}`: `{key}` is given both by position and by keyword", self.name);
            }
        }
        let is_missing = |(at, param): &(usize, &Param)| {
            param.rule == Rule::Required && *at >= given && !keys.iter().any(|key| self.place(key) == Some(*at))
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
        let wanted = match param.accepts() {
            Accepts::Word => return text.map_or(Ok(()), |text| self.check_word(param, text)),
            Accepts::Flag => "true or false",
            Accepts::Number => "a number",
            Accepts::Any | Accepts::DType | Accepts::Device => return Ok(()),
        };
        fail!(ARGUMENT_TYPE, "`{}`: `{}` is {wanted}, not a string", self.name, param.name)
    }

    fn check_word(&self, param: &Param, text: &str) -> Result<()> {
        if param.words.iter().any(|word| word == text) {
            return Ok(());
        }
        let diag = Diag::error(code::VALUE, format!("`{}`: `{}` cannot be \"{text}\"", self.name, param.name));
        Err(match nearest(text, param.words.iter().map(String::as_str)) {
            Some(near) => diag.help(format!("did you mean \"{near}\"?")),
            None => {
                let words: Vec<String> = param.words.iter().map(|word| format!("\"{word}\"")).collect();
                diag.help(format!("the choices are: {}", words.join(", ")))
            }
        })
    }

    /// The keywords of a call, if its last value has some.
    fn given_by_name(&self, given: usize, last: Option<&Dynamic>, doubtful: usize) -> Option<Map> {
        let map = last?.read_lock::<Map>()?;
        let keys: Vec<&str> = map.keys().map(|key| key.as_str()).collect();
        let last = Last { keys: &keys, has_closures: map.values().any(Dynamic::is_fnptr) };
        (!self.takes_value(given, &last, doubtful)).then(|| map.clone())
    }

    /// Whether a call is one: the count of its values by position, its keywords, and texts among both.
    fn check<'a>(&self, given: &[&Dynamic], keywords: &'a Map) -> Result<Vec<Option<&'a Dynamic>>> {
        let keys: Vec<&str> = keywords.keys().map(|key| key.as_str()).collect();
        self.check_names(given.len(), &keys)?;
        let mut named = vec![None; self.params.len()];
        for (key, value) in keywords {
            if let Some(at) = self.place(key) {
                named[at] = Some(value);
            }
        }
        // Other kinds of values the function itself looks at.
        for (at, param) in self.params.iter().enumerate().filter(|(_, param)| !param.words.is_empty()) {
            let value = given.get(at).copied().or(named[at]);
            if let Some(text) = value.and_then(|value| value.read_lock::<ImmutableString>()) {
                self.check_word(param, &text)?;
            }
        }
        Ok(named)
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

    /// A parameter that can have one value has it.
    fn check_only(&self, param: &Param, given: Option<&Dynamic>, only: &Dynamic) -> Result<()> {
        let Some(given) = given.filter(|given| !same(given, only)) else { return Ok(()) };
        let text = format!("`{}`: `{}` cannot be other than {} here", self.name, param.name, shown(only));
        let diag = Diag::error(code::VALUE, text).keyword(Origin::NONE, &param.name, "this one");
        // `nn::mse_loss(x, y)`.
        Err(if given.is::<Tensor>() { diag.help(self.of_tensors()) } else { diag })
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
        let mut diag = unknown_keyword(key, &self.names().collect::<Vec<_>>());
        diag.message = format!("`{}`: {}", self.name, diag.message);
        diag
    }
}

/// A signature that calls are bound by.
pub struct Binder {
    pub signature: Signature,
    /// A value for each parameter: its default, or `()`.
    defaults: Vec<Dynamic>,
}

impl Binder {
    pub fn new(signature: Signature) -> Binder {
        let default = |param: &Param| match &param.rule {
            Rule::Default(literal) | Rule::Only(literal) => value(literal),
            Rule::Required | Rule::Optional | Rule::Several => Dynamic::UNIT,
        };
        let defaults = signature.params.iter().map(default).collect();
        Binder { signature, defaults }
    }

    /// The values of a call of a native function, one for each parameter, where they lie.
    pub fn lend<R>(&self, values: &[&mut Dynamic], call: impl FnOnce(&[&Dynamic]) -> Result<R>) -> Result<R> {
        let mut given: Vec<&Dynamic> = values.iter().map(|value| &**value).collect();
        let takes = self.signature.takes_keywords();
        let keywords =
            given.last().filter(|_| takes).and_then(|last| self.signature.given_by_name(given.len(), Some(last), 0));
        given.truncate(given.len() - keywords.is_some() as usize);
        let keywords = keywords.unwrap_or_default();
        let named = self.signature.check(&given, &keywords)?;
        let lent =
            (0..self.defaults.len()).map(|at| given.get(at).copied().or(named[at]).unwrap_or(&self.defaults[at]));
        call(&lent.collect::<Vec<_>>())
    }

    /// The values of a call for a function of the library.
    pub fn bind(&self, form: Form, mut given: Vec<Dynamic>, doubtful: usize) -> Result<Bound> {
        let signature = &self.signature;
        if signature.takes_all() {
            let whole = given.len() == 1 && given[0].is_array();
            let all = if whole { given.swap_remove(0) } else { given.into() };
            return Ok(Bound { values: vec![all], placement: Map::new() });
        }
        let keywords = signature.given_by_name(given.len(), given.last(), doubtful);
        given.truncate(given.len() - keywords.is_some() as usize);
        let keywords = keywords.unwrap_or_default();
        let named = signature.check(&given.iter().collect::<Vec<_>>(), &keywords)?;
        let mut slots: Vec<Option<Dynamic>> = given.into_iter().map(Some).collect();
        slots.extend(named.iter().skip(slots.len()).map(|value| value.cloned()));
        let mut bound = Bound { values: Vec::with_capacity(form.own + 1), placement: Map::new() };
        let mut rest = Map::new();
        for (at, (param, slot)) in signature.params.iter().zip(slots).enumerate() {
            match &param.rule {
                Rule::Only(_) => signature.check_only(param, slot.as_ref(), &self.defaults[at])?,
                Rule::Default(_) if WITHOUT_EFFECT.contains(&param.name.as_str()) => {
                    signature.check_number(&param.name, slot)?
                }
                _ if at < form.own => bound.values.push(slot.unwrap_or_else(|| self.defaults[at].clone())),
                _ => {
                    // Where `()` is the default it says as much as nothing.
                    let nothing = param.rule == Rule::Default(Literal::Unit);
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

/// A value as a script has it.
pub fn value(literal: &Literal) -> Dynamic {
    match literal {
        Literal::Unit => Dynamic::UNIT,
        Literal::Bool(b) => Dynamic::from_bool(*b),
        Literal::Int(i) => Dynamic::from_int(*i),
        Literal::Float(x) => Dynamic::from_float(*x),
        Literal::Text(text) => text.clone().into(),
        Literal::List(list) => list.iter().map(value).collect::<Array>().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(text: &str, own: usize, given: Vec<Dynamic>) -> std::result::Result<String, (u16, String)> {
        let signature = Signature::parse(text).expect("a signature");
        let form = Form { own, rest: true };
        match Binder::new(signature).bind(form, given, 0) {
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
}

//! How the arguments of a call are bound to the parameters of a signature (`base/signature.rs`): by position, by name
//! in a trailing map, or both, as in PyTorch.
//!
//! `//: conv2d(in_channels, out_channels, kernel_size, stride: 1, padding: 0, last_epoch = -1, *, bias: true)`
//!
//! A function of the library takes the first few of these as parameters and the others in a map, its last parameter,
//! called `options`; the map holds only what was passed. `device` and `dtype`, where the function does not use them,
//! move the module that it creates.
//!
//! Does not treat any function specially.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::signature::{Accepts, Literal, Param, Rule, Signature};
use crate::base::span::Origin;
use crate::base::suggest::{nearest, unknown_keyword};
use crate::fail;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Bound: positional arguments of one call. Rhai searches for a function of `n` values in up to 2^n steps.
pub const MAX_ARITY: usize = 15;
/// Parameters that change how PyTorch computes, not the result.
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
/// Those of them that are counts.
const COUNTS: &[&str] = &["num_workers", "timeout", "prefetch_factor"];
/// Parameters that move the module which was created.
const PLACEMENT: &[&str] = &["device", "dtype"];

/// What binding needs to know of the last argument of a call, if it is a map.
pub struct Last<'a> {
    pub keys: &'a [&'a str],
    pub has_closures: bool,
}

/// What a function takes itself: the first `own` parameters, then, if `rest`, a map of the others.
#[derive(Clone, Copy)]
pub struct Form {
    pub own: usize,
    pub rest: bool,
}

/// The arguments of a function, and where its result is moved.
pub struct Bound {
    pub values: Vec<Dynamic>,
    pub placement: Map,
}

impl Signature {
    /// Whether the last argument of a call, a map, is a value and not keywords. Modules of the library are maps as
    /// well, with closures in them; where a value is required, such a map is the value. So is any map without a
    /// keyword of this signature for one of the first `doubtful` parameters, and a first argument without similar
    /// names. Where a parameter is itself a map, `metric_dict`, a map at its place is its value unless it names it.
    pub fn takes_value(&self, given: usize, last: &Last, doubtful: usize) -> bool {
        let param = self.params.get(given - 1).filter(|_| given <= self.positional);
        if param.is_some_and(|param| param.rule == Rule::Required && param.name.ends_with("_dict")) {
            return !last.keys.iter().any(|key| self.place(key) == Some(given - 1));
        }
        let rule = param.map(|param| &param.rule);
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

    /// Whether so many positional arguments are allowed.
    pub fn check_count(&self, given: usize) -> Result<()> {
        if given <= self.positional {
            return Ok(());
        }
        let are = if self.positional == 1 { "is" } else { "are" };
        let text = format!("`{}`: {given} arguments given, at most {} {are} taken", self.name, self.positional);
        Err(self.called_as(Diag::error(code::EXTRA_ARGUMENT, text)))
    }

    /// Whether so many positional arguments and these keywords fit the signature.
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

    /// Whether a string (with its text where that is known) may be the argument of the parameter at `at`: one of the
    /// parameter's choices, and no string where the default is a number or a bool.
    pub fn check_text(&self, at: usize, text: Option<&str>, is_string: bool) -> Result<()> {
        let Some(param) = self.params.get(at).filter(|_| is_string) else { return Ok(()) };
        let expected = match param.accepts() {
            Accepts::Word => return text.map_or(Ok(()), |text| self.check_word(param, text)),
            Accepts::Flag => "true or false",
            Accepts::Number => "a number",
            Accepts::Any | Accepts::DType | Accepts::Device => return Ok(()),
        };
        fail!(ARGUMENT_TYPE, "`{}`: `{}` is {expected}, not a string", self.name, param.name)
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

    /// The keywords of a call, if its last argument has any.
    fn given_by_name(&self, given: usize, last: Option<&Dynamic>, doubtful: usize) -> Option<Map> {
        let map = last?.read_lock::<Map>()?;
        let keys: Vec<&str> = map.keys().map(|key| key.as_str()).collect();
        let last = Last { keys: &keys, has_closures: map.values().any(Dynamic::is_fnptr) };
        (!self.takes_value(given, &last, doubtful)).then(|| map.clone())
    }

    /// The value that the keywords have for the parameter at `at`.
    fn keyword_value<'a>(&self, at: usize, keywords: Option<&'a Map>) -> Option<&'a Dynamic> {
        keywords?.iter().find(|(key, _)| self.place(key) == Some(at)).map(|(_, value)| value)
    }

    /// Whether a call fits: the number of positional arguments, the keywords, and strings among both.
    fn check<'a>(&self, given: usize, value: impl Fn(usize) -> &'a Dynamic, keywords: Option<&Map>) -> Result<()> {
        let keys: Vec<&str> = keywords.iter().flat_map(|map| map.keys()).map(|key| key.as_str()).collect();
        self.check_names(given, &keys)?;
        for at in 0..self.params.len() {
            let found = if at < given { Some(value(at)) } else { self.keyword_value(at, keywords) };
            found.map_or(Ok(()), |found| self.check_value(at, found))?;
        }
        Ok(())
    }

    /// Whether a value may be that of the parameter at a place. Other kinds than texts the function itself looks at.
    fn check_value(&self, at: usize, value: &Dynamic) -> Result<()> {
        match value.read_lock::<ImmutableString>() {
            Some(text) => self.check_text(at, Some(&text), true),
            None => Ok(()),
        }
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

    /// A parameter with a single allowed value has that value.
    fn check_only(&self, param: &Param, given: Option<&Dynamic>, only: &Dynamic) -> Result<()> {
        let Some(given) = given.filter(|given| !same(given, only)) else { return Ok(()) };
        let text = format!("`{}`: `{}` cannot be other than {} here", self.name, param.name, shown(only));
        let diag = Diag::error(code::VALUE, text).keyword(Origin::NONE, &param.name, "this one");
        // `nn::mse_loss(x, y)`.
        Err(if given.is::<Tensor>() { diag.help(self.help_for_tensors()) } else { diag })
    }

    /// Help for tensors that were passed to a function which creates a module.
    #[cold]
    fn help_for_tensors(&self) -> String {
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

/// A signature that binds arguments.
pub struct Binder {
    pub signature: Cow<'static, Signature>,
    /// A value for each parameter: its default, or `()`.
    defaults: Vec<Dynamic>,
    /// How many values a call has, at least and at most, that has no keywords.
    counts: RangeInclusive<usize>,
    takes_keywords: bool,
    /// The parameters that can have one value alone.
    only: Vec<usize>,
}

impl Binder {
    pub fn new(signature: Cow<'static, Signature>) -> Binder {
        let default = |param: &Param| match &param.rule {
            Rule::Default(literal) | Rule::Only(literal) => value(literal),
            Rule::Required | Rule::Optional | Rule::Several => Dynamic::UNIT,
        };
        let defaults = signature.params.iter().map(default).collect();
        let is_only = |at: &usize| matches!(signature.params[*at].rule, Rule::Only(_));
        let only = (0..signature.params.len()).filter(is_only).collect();
        let required = signature.params.iter().rposition(|param| param.rule == Rule::Required);
        let counts = required.map_or(0, |last| last + 1)..=signature.positional;
        let takes_keywords = signature.takes_keywords();
        Binder { signature, defaults, counts, takes_keywords, only }
    }

    /// The keywords of a call of a native function.
    pub fn keywords(&self, values: &[&mut Dynamic]) -> Option<Map> {
        let last = values.last().filter(|last| self.takes_keywords && last.is_map())?;
        self.signature.given_by_name(values.len(), Some(last), 0)
    }

    /// The arguments of a call of a native function, one for each parameter, by reference.
    pub fn borrow<'a, const N: usize>(
        &'a self,
        values: &'a [&mut Dynamic],
        keywords: Option<&'a Map>,
    ) -> Result<[&'a Dynamic; N]> {
        let given = &values[..values.len() - keywords.is_some() as usize];
        // Nearly all calls are by position alone: then the texts among the values are all that there is to look at.
        if keywords.is_none() && self.counts.contains(&given.len()) {
            given.iter().enumerate().try_for_each(|(at, value)| self.signature.check_value(at, value))?;
        } else {
            self.signature.check(given.len(), |at| given[at], keywords)?;
        }
        for &at in &self.only {
            let value = given.get(at).map(|value| &**value).or_else(|| self.signature.keyword_value(at, keywords));
            self.signature.check_only(&self.signature.params[at], value, &self.defaults[at])?;
        }
        Ok(std::array::from_fn(|at| {
            let by_position = given.get(at).map(|value| &**value);
            by_position.or_else(|| self.signature.keyword_value(at, keywords)).unwrap_or(&self.defaults[at])
        }))
    }

    /// The arguments of a call of a library function.
    pub fn bind(&self, form: Form, mut given: Vec<Dynamic>, doubtful: usize) -> Result<Bound> {
        let signature = &self.signature;
        if signature.takes_all() {
            let whole = given.len() == 1 && given[0].is_array();
            let all = if whole { given.swap_remove(0) } else { given.into() };
            return Ok(Bound { values: vec![all], placement: Map::new() });
        }
        let keywords = signature.given_by_name(given.len(), given.last(), doubtful);
        given.truncate(given.len() - keywords.is_some() as usize);
        signature.check(given.len(), |at| &given[at], keywords.as_ref())?;
        let mut slots: Vec<Option<Dynamic>> = given.into_iter().map(Some).collect();
        slots.extend(
            (slots.len()..signature.params.len()).map(|at| signature.keyword_value(at, keywords.as_ref()).cloned()),
        );
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
                    // Where `()` is the default, passing it is the same as omitting the argument.
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

/// Integers are accepted for floats.
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

/// The script value of a literal.
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
    use crate::base::signature::{MARK, parts};
    use crate::script::library::texts::STD;
    use std::collections::{BTreeMap, BTreeSet};

    fn bind(text: &str, own: usize, given: Vec<Dynamic>) -> std::result::Result<String, (u16, String)> {
        let signature = Signature::parse(text).expect("a signature");
        let form = Form { own, rest: true };
        match Binder::new(Cow::Owned(signature)).bind(form, given, 0) {
            Ok(bound) => Ok(format!("{:?} {:?}", bound.values, bound.placement)),
            Err(diag) => Err((diag.code.0, diag.message.clone())),
        }
    }

    fn map(pairs: &[(&str, i64)]) -> Dynamic {
        Dynamic::from_map(crate::base::order::map(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into()))))
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

    /// The functions of a module of the library by name, without comments, each in one line; forms of one name together.
    fn bodies(text: &str) -> BTreeMap<String, String> {
        let mut bodies: BTreeMap<String, String> = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if let Some(rest) = line.strip_prefix("private ").unwrap_or(line).strip_prefix("fn ") {
                name = rest.split('(').next().unwrap_or("").to_string();
            }
            let body = bodies.entry(name.clone()).or_default();
            if !body.ends_with('(') {
                body.push(' ');
            }
            body.push_str(line.trim());
        }
        bodies
    }

    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
    }

    /// The parameters of the form with the most parameters.
    fn own<'a>(name: &str, body: &'a str) -> Vec<&'a str> {
        let start = format!("fn {name}(");
        let forms = body.match_indices(&start).map(|(at, _)| body[at + start.len()..].split(')').next().unwrap_or(""));
        forms.map(parts).max_by_key(Vec::len).unwrap_or_default()
    }

    /// The keywords with their defaults of the maps that a text gives to `_options`.
    fn defaults(body: &str) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        for (at, _) in body.match_indices("_options(") {
            let call = body[at..].split(';').next().unwrap_or("");
            let Some(map) = call.split_once("#{").map(|(_, rest)| rest) else { continue };
            let mut depth = 1usize;
            let end = map.find(|c| {
                depth = (depth + (c == '{') as usize) - (c == '}') as usize;
                depth == 0
            });
            let entries = parts(&map[..end.unwrap_or(map.len())]);
            found.extend(entries.into_iter().filter_map(|entry| entry.split_once(": ")));
        }
        found
    }

    #[test]
    fn a_map_where_a_map_is_wanted_is_the_value() {
        let read = Signature::parse("f(hparam_dict, metric_dict, run_name: ())").expect("a signature");
        let takes = |given: usize, keys: &[&str]| read.takes_value(given, &Last { keys, has_closures: false }, 5);
        assert!(takes(2, &["accuracy"]) && takes(2, &["run_name"]) && takes(1, &["lr"]));
        assert!(!takes(2, &["metric_dict", "run_name"]) && !takes(3, &["run_name"]));
    }

    /// Every signature of the library can be parsed and names a function with these parameters; every keyword is
    /// read, and every keyword that is read is in the signature.
    #[test]
    fn signatures_of_the_library_are_those_of_their_functions() {
        let mut problems = Vec::new();
        for library in STD {
            let (module, text) = (library.name, library.text());
            let bodies = bodies(&text);
            let mut names = Vec::new();
            for line in text.lines().filter_map(|line| line.strip_prefix(MARK.trim_end())) {
                let Some(signature) = Signature::parse(line) else {
                    problems.push(format!("{module}: `{line}` is no signature"));
                    continue;
                };
                if names.contains(&signature.name) {
                    problems.push(format!("{module}::{} has two signatures", signature.name));
                }
                let body = bodies.get(&signature.name).map_or("", String::as_str);
                problems.extend(disagreements(&signature, body, &bodies).map(|text| format!("{module}::{text}")));
                names.push(signature.name);
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    fn disagreements<'a>(
        signature: &'a Signature,
        body: &'a str,
        bodies: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = String> + 'a {
        let mut problems = Vec::new();
        let mut own = own(&signature.name, body);
        let rest = own.last() == Some(&"options");
        own.truncate(own.len() - rest as usize);
        let has_effect =
            |param: &&Param| !matches!(param.rule, Rule::Only(_)) && !WITHOUT_EFFECT.contains(&param.name.as_str());
        let taken: Vec<&str> = signature.params.iter().filter(has_effect).map(|param| param.name.as_str()).collect();
        if !taken.starts_with(&own) {
            problems.push(format!("takes {own:?}, and its signature says {taken:?}"));
        }
        // What the function calls, as far as its names show.
        let mut reached = BTreeSet::from([signature.name.as_str()]);
        let mut next = vec![body];
        while let Some(body) = next.pop() {
            let called = words(body).filter_map(|word| bodies.get_key_value(word));
            next.extend(called.filter(|(name, _)| reached.insert(name.as_str())).map(|(_, body)| body.as_str()));
        }
        let read: BTreeSet<&str> = reached.iter().flat_map(|name| words(bodies.get(*name).map_or("", |b| b))).collect();
        for name in taken.iter().skip(own.len()).filter(|name| !PLACEMENT.contains(name)) {
            if !rest || !read.contains(name) {
                problems.push(format!("`{name}` is read by nobody"));
            }
        }
        // Methods have signatures of their own.
        let methods: Vec<Signature> =
            body.split("_callable(\"").skip(1).filter_map(|text| Signature::parse(text.split('"').next()?)).collect();
        let known = |name: &str| methods.iter().chain([signature]).find_map(|s| Some(&s.params[s.place(name)?]));
        for (name, default) in defaults(body) {
            let written = Signature::parse(&format!("f(x: {default})")).map(|parsed| parsed.params[0].rule.clone());
            match (known(name).map(|param| &param.rule), written) {
                (None, _) if body.contains("_callable(`") || body.contains("_callable(name") => {}
                (None, _) => problems.push(format!("`{name}` is read and not in the signature")),
                // `()` is the same as omitting the argument.
                (Some(Rule::Default(Literal::Unit)), _) => {}
                (Some(Rule::Default(said)), Some(Rule::Default(used))) if !same(&value(said), &value(&used)) => {
                    problems.push(format!("`{name}` is {said} in the signature, and {used} where it is read"));
                }
                _ => {}
            }
        }
        problems.into_iter().map(|text| format!("{}: {text}", signature.name))
    }
}

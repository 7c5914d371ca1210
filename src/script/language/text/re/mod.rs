//! Regular expressions: Python's module `re`, by the crate `fancy_regex`
//! (`docs/decisions/0120-regular-expressions.md`).

mod matched;
mod pattern;
mod template;
mod translate;

pub use matched::Match;
pub use pattern::Pattern;

use super::call::{integer, of_function, string, text};
use super::search::{count, is_ascii};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::bind::native::{binder_of, counts};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::language::growing::Growing;
use crate::script::machine::callback::Callback;
use crate::script::manual;
use crate::script::source::scope::EXPORTED;
use crate::script::values::ascii::{byte_of, length};
use crate::script::values::panics::{Guarded, GuardedCall, Place};
use crate::script::values::raise::{Native, Outcome};
use crate::script::values::type_names;
use parking_lot::Mutex;
use pattern::{Groups, How, Matches};
use rhai::{Array, Dynamic, FnPtr, FuncRegistration, ImmutableString, Map, NativeCallContext};
use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use template::Template;

/// Bound: compiled patterns that a session keeps, as many as Python's.
const KEPT: usize = 512;

/// A compiled pattern as a value.
#[derive(Clone)]
pub struct PatternValue(pub Arc<Pattern>);

/// Flags by name.
const FLAGS: [(&str, &str, i64); 6] = [
    ("I", "IGNORECASE", translate::IGNORECASE),
    ("M", "MULTILINE", translate::MULTILINE),
    ("S", "DOTALL", translate::DOTALL),
    ("X", "VERBOSE", translate::VERBOSE),
    ("A", "ASCII", translate::ASCII),
    ("U", "UNICODE", translate::UNICODE),
];

/// A call: where it stands, and what it works on.
struct Site<'a> {
    host: &'a Host,
    context: &'a NativeCallContext<'a>,
    name: &'a str,
}

impl Site<'_> {
    fn told<T>(&self, done: Result<T>) -> Outcome<T> {
        done.map_err(|diag| self.host.raise(self.context, of_function(self.name, diag), ""))
    }
}

/// Patterns that were compiled, by their texts and flags.
#[derive(Default)]
struct Cache(Mutex<HashMap<(ImmutableString, i64), Arc<Pattern>>>);

impl Cache {
    fn compiled(&self, source: ImmutableString, flags: i64) -> Result<Arc<Pattern>> {
        let key = (source, flags);
        if let Some(known) = self.0.lock().get(&key) {
            return Ok(known.clone());
        }
        let pattern = Arc::new(Pattern::new(&key.0, flags)?);
        let mut known = self.0.lock();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, pattern.clone());
        Ok(pattern)
    }

    /// A pattern that is given as a text or compiled.
    fn pattern(&self, value: &Dynamic, flags: &Dynamic) -> Result<Arc<Pattern>> {
        if let Some(pattern) = value.read_lock::<PatternValue>() {
            if flags_of(flags)? != 0 {
                crate::fail!(VALUE, "the flags of a compiled pattern stand in `re::compile`");
            }
            return Ok(pattern.0.clone());
        }
        self.compiled(text("pattern", value)?, flags_of(flags)?)
    }
}

/// Flags as a number, or as letters.
fn flags_of(value: &Dynamic) -> Result<i64> {
    if value.is_unit() {
        return Ok(0);
    }
    let Some(letters) = string(value) else { return integer("flags", value) };
    let wrong =
        |letter| Diag::error(code::VALUE, format!("there is no flag `{letter}`; flags are letters of \"imsxa\""));
    letters.chars().try_fold(0, |flags, letter| Ok(flags | translate::flag(letter).ok_or_else(|| wrong(letter))?))
}

/// The module's functions; their names are `re::name` to the source pass. Not among them `sub` and `subn`, which call
/// closures: the call stack shows them.
pub fn module(host: &Arc<Host>) -> Natives {
    let mut natives = Natives::default();
    for (short, long, flag) in FLAGS {
        natives.module.set_var(short, flag);
        natives.module.set_var(long, flag);
    }
    let cache = Arc::new(Cache::default());
    let shared = cache.clone();
    entry(&mut natives, host, "re::compile", None, move |site, _, [pattern, flags]| {
        Ok(Dynamic::from(PatternValue(site.told(shared.pattern(pattern, flags))?)))
    });
    for (name, how) in [("re::search", How::Search), ("re::match", How::AtStart), ("re::fullmatch", How::Whole)] {
        let shared = cache.clone();
        entry(&mut natives, host, name, None, move |site, _, [pattern, text, flags]| {
            let pattern = site.told(shared.pattern(pattern, flags))?;
            site.told(found(&pattern, how, text, &Dynamic::UNIT, &Dynamic::UNIT))
        });
    }
    for (name, whole) in [("re::findall", false), ("re::finditer", true)] {
        let shared = cache.clone();
        entry(&mut natives, host, name, None, move |site, _, [pattern, text, flags]| {
            let pattern = site.told(shared.pattern(pattern, flags))?;
            site.told(all(site.host, &pattern, whole, text, &Dynamic::UNIT, &Dynamic::UNIT))
        });
    }
    let shared = cache.clone();
    entry(&mut natives, host, "re::split", None, move |site, _, [pattern, text, most, flags]| {
        let pattern = site.told(shared.pattern(pattern, flags))?;
        site.told(split(site.host, &pattern, text, most))
    });
    for (name, counted) in [("re::sub", false), ("re::subn", true)] {
        let shared = cache.clone();
        entry(&mut natives, host, name, None, move |site, _, [pattern, repl, text, count, flags]| {
            let pattern = site.told(shared.pattern(pattern, flags))?;
            replaced(site, &pattern, repl, text, count, counted)
        });
    }
    entry(&mut natives, host, "re::escape", None, |site, _, [whole]| {
        let whole = site.told(text("pattern", whole))?;
        let mut out = String::with_capacity(whole.len());
        for c in whole.chars() {
            if matches!(
                c,
                '(' | ')'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '?'
                    | '*'
                    | '+'
                    | '-'
                    | '|'
                    | '^'
                    | '$'
                    | '\\'
                    | '.'
                    | '&'
                    | '~'
                    | '#'
            ) || matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
            {
                out.push('\\');
            }
            out.push(c);
        }
        site.told(super::call::written(site.host, &out))
    });
    natives
}

/// Methods of patterns and of matches.
pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    fn own(value: &Dynamic) -> Result<Arc<Pattern>> {
        match value.read_lock::<PatternValue>() {
            Some(pattern) => Ok(pattern.0.clone()),
            None => crate::fail!(ARGUMENT_TYPE, "a pattern is expected, not {}", type_names::of_value(value)),
        }
    }
    let pattern = Some(("pattern", TypeId::of::<PatternValue>()));
    for (name, how) in [("search", How::Search), ("match", How::AtStart), ("fullmatch", How::Whole)] {
        entry(natives, host, name, pattern, move |site, this, [text, pos, end]| {
            site.told(own(this).and_then(|pattern| found(&pattern, how, text, pos, end)))
        });
    }
    for (name, whole) in [("findall", false), ("finditer", true)] {
        entry(natives, host, name, pattern, move |site, this, [text, pos, end]| {
            site.told(own(this).and_then(|pattern| all(site.host, &pattern, whole, text, pos, end)))
        });
    }
    entry(natives, host, "split", pattern, move |site, this, [text, most]| {
        site.told(own(this).and_then(|pattern| split(site.host, &pattern, text, most)))
    });
    for (name, counted) in [("sub", false), ("subn", true)] {
        entry(natives, host, name, pattern, move |site, this, [repl, text, count]| {
            replaced(site, &site.told(own(this))?, repl, text, count, counted)
        });
    }
    of_matches(natives, host);
    properties(natives);
}

fn of_matches(natives: &mut Natives, host: &Arc<Host>) {
    let owner = Some(("match", TypeId::of::<Match>()));
    entry(natives, host, "group", owner, |site, this, groups: [&Dynamic; 4]| {
        let found = site.told(matched::of(this))?;
        let given: Vec<&Dynamic> = groups.into_iter().filter(|group| !group.is_unit()).collect();
        match &given[..] {
            [] => site.told(found.group(&Dynamic::from_int(0))),
            [one] => site.told(found.group(one)),
            several => {
                let all: Result<Array> = several.iter().map(|group| found.group(group)).collect();
                site.told(all.map(Dynamic::from))
            }
        }
    });
    entry(natives, host, "groups", owner, |site, this, [default]| Ok(site.told(matched::of(this))?.groups(default)));
    entry(natives, host, "groupdict", owner, |site, this, [default]| {
        Ok(site.told(matched::of(this))?.groupdict(default))
    });
    type Pick = fn([i64; 2]) -> Dynamic;
    let picks: [(&str, Pick); 3] = [
        ("start", |span| span[0].into()),
        ("end", |span| span[1].into()),
        ("span", |span| span.map(Dynamic::from_int).to_vec().into()),
    ];
    for (name, pick) in picks {
        entry(natives, host, name, owner, move |site, this, [group]| {
            site.told(matched::of(this).and_then(|found| found.span(group))).map(pick)
        });
    }
    let shared = host.clone();
    natives.module.set_indexer_get_fn(Guarded(move |context: NativeCallContext, found: &mut Match, group: Dynamic| {
        found.group(&group).map_err(|diag| shared.raise(&context, diag, ""))
    }));
}

fn properties(natives: &mut Natives) {
    ["pattern", "flags", "groups", "groupindex", "string", "re"].iter().for_each(|name| natives.note(name));
    let module = &mut natives.module;
    let get = |name: &str| FuncRegistration::new_getter(name);
    get("pattern").place_in(module, |this: &mut PatternValue| this.0.source.clone());
    get("flags").place_in(module, |this: &mut PatternValue| this.0.flags());
    get("groups").place_in(module, |this: &mut PatternValue| this.0.names.len() as i64 - 1);
    get("groupindex").place_in(module, |this: &mut PatternValue| -> Map {
        let named = this.0.names.iter().enumerate();
        named.filter_map(|(at, name)| Some((name.as_deref()?.into(), Dynamic::from_int(at as i64)))).collect()
    });
    get("string").place_in(module, |this: &mut Match| this.text().clone());
    get("re").place_in(module, |this: &mut Match| PatternValue(this.pattern().clone()));
    FuncRegistration::new("==")
        .in_global_namespace()
        .place_in(module, |a: PatternValue, b: PatternValue| a.0.source == b.0.source && a.0.flags() == b.0.flags());
}

/// Registers what the manual describes: a function of the module, or a method of a type.
fn entry<const N: usize>(
    natives: &mut Natives,
    host: &Arc<Host>,
    path: &'static str,
    owner: Option<(&'static str, TypeId)>,
    body: impl Fn(&Site, &Dynamic, [&Dynamic; N]) -> Native + Send + Sync + 'static,
) {
    let form = owner.map_or(manual::Form::Function, |(owner, _)| manual::Form::Of(owner));
    let receivers = owner.is_some() as usize;
    let binder = binder_of(form, path, N);
    let counts = counts(&binder, receivers);
    let host = host.clone();
    let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let site = Site { host: &host, context: &context, name: path };
        let keywords = binder.keywords(&values[receivers..]);
        let given = site.told(binder.borrow(&values[receivers..], keywords.as_ref()))?;
        let nothing = Dynamic::UNIT;
        body(&site, if receivers == 1 { &*values[0] } else { &nothing }, given)
    });
    let name = path.rsplit("::").next().unwrap_or(path);
    if !matches!(name, "sub" | "subn") {
        natives.note(name);
    }
    // What the source pass makes of the name: of a reserved word, and of a function that may call script code.
    let name: Cow<str> = match (owner, name) {
        (None, "match") => "__match".into(),
        (None, "sub" | "subn") => format!("{name}{EXPORTED}").into(),
        _ => name.into(),
    };
    match owner {
        Some((_, receiver)) => natives.place_on(receiver, &name, counts, &call),
        None => natives.place_qualified(&name, counts, &call),
    }
}

/// The bytes of the part of a text that is searched.
fn bounds(text: &ImmutableString, pos: &Dynamic, end: &Dynamic) -> Result<(usize, usize)> {
    let place = |name: &str, value: &Dynamic, default: usize| -> Result<usize> {
        if value.is_unit() {
            return Ok(default);
        }
        let character = usize::try_from(integer(name, value)?.max(0)).unwrap_or(usize::MAX);
        Ok(byte_of(text, character.min(length(text))))
    };
    Ok((place("pos", pos, 0)?, place("endpos", end, text.len())?))
}

fn found(pattern: &Arc<Pattern>, how: How, whole: &Dynamic, pos: &Dynamic, end: &Dynamic) -> Result<Dynamic> {
    let whole = text("string", whole)?;
    let (from, end) = bounds(&whole, pos, end)?;
    if from > end {
        return Ok(Dynamic::UNIT);
    }
    let groups = pattern.find(&whole[..end], is_ascii(&whole), from, how)?;
    Ok(groups.map_or(Dynamic::UNIT, |groups| {
        // From where the search began: a text that is searched on and on is counted once.
        let begun = if pos.is_unit() { 0 } else { pos.as_int().map_or(0, |pos| pos.clamp(0, length(&whole) as i64)) };
        let before = groups[0].clone().map_or(0, |first| match is_ascii(&whole) {
            true => first.start as i64,
            false => begun + count(&whole[from..first.start]),
        });
        Dynamic::from(Match::new(pattern, &whole, groups, before))
    }))
}

/// `findall`, and `finditer` for whole matches.
fn all(
    host: &Host,
    pattern: &Arc<Pattern>,
    as_matches: bool,
    whole: &Dynamic,
    pos: &Dynamic,
    end: &Dynamic,
) -> Result<Dynamic> {
    let whole = text("string", whole)?;
    let (from, end) = bounds(&whole, pos, end)?;
    let mut out = Array::new();
    if from > end {
        return Ok(out.into());
    }
    let mut matches = Matches::new(host, pattern, &whole[..end], is_ascii(&whole), from);
    let (mut counted, mut before) = (0, 0);
    while let Some(groups) = matches.next()? {
        let first = groups[0].clone().unwrap_or(0..0);
        let item = if as_matches {
            before += count(&whole[counted..first.start]);
            counted = first.start;
            Dynamic::from(Match::new(pattern, &whole, groups, before))
        } else {
            texts(&whole, &groups)
        };
        out.push(item);
        if out.len().is_power_of_two() {
            host.watch.array_fits(out.len())?;
        }
    }
    host.watch.array_fits(out.len())?;
    Ok(out.into())
}

/// What `findall` gives of a match: the match, its one group, or its groups.
fn texts(whole: &str, groups: &Groups) -> Dynamic {
    let piece = |at: usize| -> Dynamic { groups[at].clone().map_or("", |range| &whole[range]).into() };
    match groups.len() {
        1 => piece(0),
        2 => piece(1),
        count => (1..count).map(piece).collect::<Array>().into(),
    }
}

fn split(host: &Host, pattern: &Arc<Pattern>, whole: &Dynamic, most: &Dynamic) -> Result<Dynamic> {
    let (whole, most) = (text("string", whole)?, integer("maxsplit", most)?);
    let most = if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(0) };
    let mut matches = Matches::new(host, pattern, &whole, is_ascii(&whole), 0);
    let (mut found, mut last, mut splits): (Vec<Dynamic>, usize, usize) = (Vec::new(), 0, 0);
    while splits < most
        && let Some(groups) = matches.next()?
    {
        let range = groups[0].clone().unwrap_or(0..0);
        found.push(whole[last..range.start].into());
        let piece =
            |group: &Option<std::ops::Range<usize>>| group.clone().map_or(Dynamic::UNIT, |range| whole[range].into());
        found.extend(groups[1..].iter().map(piece));
        last = range.end;
        splits += 1;
        if splits.is_power_of_two() {
            host.watch.array_fits(found.len())?;
        }
    }
    found.push(whole[last..].into());
    host.watch.array_fits(found.len())?;
    Ok(found.into())
}

fn replaced(
    site: &Site,
    pattern: &Arc<Pattern>,
    repl: &Dynamic,
    whole: &Dynamic,
    most: &Dynamic,
    counted: bool,
) -> Native {
    let host = site.host;
    let whole = site.told(text("string", whole))?;
    let most = site.told(integer("count", most))?;
    let most = if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(0) };
    let closure = repl.read_lock::<FnPtr>().map(|closure| closure.clone());
    let template = match &closure {
        Some(_) => None,
        None => Some(site.told(text("repl", repl).and_then(|repl| Template::parse(&repl, pattern)))?),
    };
    let mut closure = closure.as_ref().map(|closure| Callback::new(site.context, closure));
    let mut out = Growing::new(host);
    let mut matches = Matches::new(host, pattern, &whole, is_ascii(&whole), 0);
    let (mut last, mut done, mut before) = (0, 0, 0);
    while done < most
        && let Some(groups) = site.told(matches.next())?
    {
        let range = groups[0].clone().unwrap_or(0..0);
        site.told(out.push(&whole[last..range.start]))?;
        if let Some(template) = &template {
            site.told(template.filled(&whole, &groups).try_for_each(|piece| out.push(piece)))?;
        } else if let Some(closure) = &mut closure {
            before += count(&whole[last..range.start]);
            let found = Match::new(pattern, &whole, groups, before);
            before += count(&whole[range.clone()]);
            let answer = closure.call([Dynamic::from(found)])?;
            let answer = string(&answer).ok_or_else(|| {
                let kind = type_names::of_value(&answer);
                Diag::error(code::ARGUMENT_TYPE, format!("the closure gives a string for a match, not {kind}"))
            });
            let answer = site.told(answer)?;
            site.told(out.push(&answer))?;
        }
        last = range.end;
        done += 1;
    }
    site.told(out.push(&whole[last..]))?;
    let text: Dynamic = site.told(out.finish())?.into();
    Ok(if counted { vec![text, Dynamic::from_int(done as i64)].into() } else { text })
}

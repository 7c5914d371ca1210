//! A match as a value: `m.group(1)`, `m.start()`, `m[0]`.

use super::pattern::{Groups, Pattern};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::language::text::call;
use crate::script::language::text::search::count;
use crate::script::values::type_names;
use rhai::{Array, Dynamic, ImmutableString};
use std::ops::Range;
use std::sync::Arc;

/// What a search found. Places are counted in characters.
#[derive(Clone)]
pub struct Match(Arc<Found>);

struct Found {
    pattern: Arc<Pattern>,
    text: ImmutableString,
    groups: Groups,
    /// How many characters stand before the match.
    before: i64,
}

impl Match {
    pub fn new(pattern: &Arc<Pattern>, text: &ImmutableString, groups: Groups, before: i64) -> Match {
        Match(Arc::new(Found { pattern: pattern.clone(), text: text.clone(), groups, before }))
    }

    pub fn text(&self) -> &ImmutableString {
        &self.0.text
    }

    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.0.pattern
    }

    /// The number of a group that is given by number or name; `()` is the whole match.
    fn at(&self, group: &Dynamic) -> Result<usize> {
        let most = self.0.groups.len() - 1;
        if group.is_unit() {
            return Ok(0);
        }
        if let Some(name) = call::string(group) {
            return self.0.pattern.group(&name).ok_or_else(|| {
                let names: Vec<&str> = self.0.pattern.names.iter().flatten().map(String::as_str).collect();
                let diag = Diag::error(code::INDEX, format!("the pattern has no group `{name}`"));
                match crate::base::suggest::nearest(&name, names.iter().copied()) {
                    Some(near) => diag.help(format!("did you mean `{near}`?")),
                    None if names.is_empty() => diag.help("a group has a name as in `(?P<word>\\w+)`"),
                    None => diag.help(format!("its groups are: {}", names.join(", "))),
                }
            });
        }
        let number = call::integer("group", group)?;
        match usize::try_from(number) {
            Ok(at) if at <= most => Ok(at),
            _ => Err(Diag::error(
                code::INDEX,
                format!("the pattern has {most} groups, and none with the number {number}"),
            )),
        }
    }

    /// The text of a group; `()` where it took no part.
    pub fn group(&self, group: &Dynamic) -> Result<Dynamic> {
        Ok(self.piece(self.at(group)?).unwrap_or(Dynamic::UNIT))
    }

    fn piece(&self, at: usize) -> Option<Dynamic> {
        let range = self.0.groups[at].clone()?;
        Some(ImmutableString::from(&self.0.text[range]).into())
    }

    /// All groups but the whole match.
    pub fn groups(&self, default: &Dynamic) -> Dynamic {
        let piece = |at| self.piece(at).unwrap_or_else(|| default.clone());
        (1..self.0.groups.len()).map(piece).collect::<Array>().into()
    }

    /// The groups with a name.
    pub fn groupdict(&self, default: &Dynamic) -> Dynamic {
        let named = self.0.pattern.names.iter().enumerate().filter_map(|(at, name)| {
            let value = self.piece(at).unwrap_or_else(|| default.clone());
            Some((name.as_deref()?.into(), value))
        });
        Dynamic::from_map(crate::base::order::map(named))
    }

    /// Where a group starts and ends; -1 where it took no part.
    pub fn span(&self, group: &Dynamic) -> Result<[i64; 2]> {
        let Some(Range { start, end }) = self.0.groups[self.at(group)?].clone() else { return Ok([-1, -1]) };
        let Found { text, groups, before, .. } = &*self.0;
        let first = groups[0].clone().map_or(0, |whole| whole.start);
        // A lookbehind may hold a group before the match.
        let start_at =
            if start >= first { before + count(&text[first..start]) } else { before - count(&text[start..first]) };
        Ok([start_at, start_at + count(&text[start..end])])
    }

    /// What `print` shows.
    pub fn shown(&self) -> String {
        let [start, end] = self.span(&Dynamic::from_int(0)).unwrap_or([0, 0]);
        let whole = self.0.groups[0].clone().map_or("", |range| &self.0.text[range]);
        let short: String = whole.chars().take(50).collect();
        format!("match({start}..{end}, {short:?})")
    }
}

/// The match that a value is.
pub fn of(value: &Dynamic) -> Result<Match> {
    match value.read_lock::<Match>() {
        Some(found) => Ok(found.clone()),
        None => fail!(ARGUMENT_TYPE, "a match is expected, not {}", type_names::of_value(value)),
    }
}

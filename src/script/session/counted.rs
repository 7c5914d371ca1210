//! `for (a, b) in pairs`: in Rhai the second name counts iterations, in Python it is the second element of a pair. A
//! warning says so where the elements are pairs, or the keys of a map, and the second name does not look like that
//! of a counter.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::{Origin, Site};
use crate::script::data::loader::Loader;
use crate::script::host::Host;
use crate::script::source::Source;
use crate::script::source::lex::{lex, script_start};
use crate::script::source::tree;
use crate::script::source::tree::Run;
use crate::script::values::raise::Native;
use crate::script::values::raise::site_of;
use parking_lot::Mutex;
use rhai::{Array, Dynamic, Engine, EvalContext, Expression, Map};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// What a loop with two names iterates over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Arrays of two elements.
    Pairs,
    Map,
    /// Batches, which are maps.
    Batches,
}

/// The syntax that the source pass puts around the iterable of such a loop.
pub fn install(engine: &mut Engine, host: &Arc<Host>) {
    let (host, reported) = (host.clone(), Mutex::new(HashSet::<Site>::new()));
    let check = move |context: &mut EvalContext, inputs: &[Expression]| -> Native {
        let value = context.eval_expression_tree(&inputs[0])?;
        if let Some(what) = kind_of_iterable(&value) {
            let site = site_of(inputs[0].position());
            let source = host.sources.read().source(site).cloned();
            if let Some(source) = source.filter(|_| reported.lock().insert(site))
                && let Some(values) = around(&source, source.offset(site))
            {
                host.rt.warn(warning(what, &source, values));
            }
        }
        Ok(value)
    };
    // The words are constant and well formed: this cannot fail.
    let counted = engine.register_custom_syntax(["__counted", "(", "$expr$", ")"], false, check).map(drop);
    debug_assert!(counted.is_ok());
}

fn kind_of_iterable(value: &Dynamic) -> Option<Counted> {
    if let Some(array) = value.read_lock::<Array>() {
        let is_pair = |item: &Dynamic| item.read_lock::<Array>().is_some_and(|pair| pair.len() == 2);
        return array.first().is_some_and(is_pair).then_some(Counted::Pairs);
    }
    if let Some(map) = value.read_lock::<Map>() {
        return (!map.is_empty()).then_some(Counted::Map);
    }
    value.is::<Loader>().then_some(Counted::Batches)
}

/// The iterable of the loop at a byte.
fn around(source: &Source, at: usize) -> Option<Range<usize>> {
    let tokens = lex(&source.text, script_start(&source.text)).ok()?;
    let bytes = |run: Run| tokens[run.first as usize].start as usize..tokens[run.last as usize].end as usize;
    let loops = tree::read(&source.text, &tokens, &|_| true, &tree::Earlier::NONE).counted;
    loops.into_iter().map(bytes).filter(|values| values.contains(&at)).min_by_key(Range::len)
}

/// The warning for a loop over the iterable at these bytes of a source.
pub fn warning(what: Counted, source: &Source, values: Range<usize>) -> Box<Diag> {
    let (first, second) = names(&source.text[..values.start]).unwrap_or(("a", "b"));
    // The inserted syntax stands for the whole iterable.
    let inner = source.site(values.start);
    let origin = Origin::at(Site::new(inner.line(), inner.column().saturating_sub(1)));
    let values = &source.text[values];
    let plain = values.chars().all(|c| c.is_alphanumeric() || "_.()".contains(c)) && !values.is_empty();
    let values = if plain { values } else { ".." };
    let (are, help) = match what {
        Counted::Pairs => ("the values are pairs", format!("write `for [{first}, {second}] in {values}`")),
        Counted::Map => {
            ("the values are the names of a map", format!("write `for ({first}, {second}) in {values}.items()`"))
        }
        Counted::Batches => ("the values are batches", format!("write `for #{{x, y}} in {values}`")),
    };
    Diag::warning(code::COUNTED, format!("`{second}` counts: it is 0, 1, 2, .. in this loop"))
        .label(origin, Focus::Expression, format!("{are}, and each is `{first}`, whole"))
        .help(help)
}

/// `a` and `b` of source text that ends in `for (a, b) in `.
fn names(before: &str) -> Option<(&str, &str)> {
    let head = before.trim_end().strip_suffix("in")?.trim_end().strip_suffix(')')?;
    let (first, second) = head[head.rfind('(')? + 1..].split_once(',')?;
    Some((first.trim(), second.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_loop_are_read_back() {
        assert_eq!(names("let x = 1; for (name, p) in "), Some(("name", "p")));
        assert_eq!(names("for x in "), None);
    }
}

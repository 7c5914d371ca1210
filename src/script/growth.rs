//! Functions of texts whose results can be larger than what they are given by any factor. Rhai looks at sizes only after
//! it made the value, when the memory may be gone.

use super::bind::Natives;
use rhai::{
    Array, Dynamic, EvalAltResult, FuncRegistration, INT, ImmutableString, Module, NativeCallContext, Position, Variant,
};

type Outcome<T> = Result<T, Box<EvalAltResult>>;

pub fn register(module: &mut Natives) {
    let module = &mut module.module;
    of_delimiter::<ImmutableString>(module);
    of_delimiter::<char>(module);
    let words = |context: NativeCallContext, text: &mut ImmutableString| -> Outcome<Array> {
        fits(&context, text.split_whitespace().count())?;
        // As Rhai has it: nothing is one part.
        Ok(if text.is_empty() { vec![text.clone().into()] } else { parts(text.split_whitespace()) })
    };
    add("split").set_into_module(module, words);
    let characters = |context: NativeCallContext, text: ImmutableString| -> Outcome<Array> {
        fits(&context, text.chars().count())?;
        Ok(text.chars().map(Dynamic::from_char).collect())
    };
    add("to_chars").set_into_module(module, characters);
}

fn add(name: &str) -> FuncRegistration {
    FuncRegistration::new(name).in_global_namespace()
}

/// The forms of `replace`, `split` and `split_rev` that look for a string, or for a character.
fn of_delimiter<D: Variant + Clone + ToString>(module: &mut Module) {
    let replace = |context: NativeCallContext, text: &mut ImmutableString, find: D, with: ImmutableString| {
        replaced(&context, text, &find.to_string(), &with).map(|new| *text = new)
    };
    add("replace").set_into_module(module, replace);
    for (name, backwards) in [("split", false), ("split_rev", true)] {
        let all = move |context: NativeCallContext, text: &mut ImmutableString, by: D| {
            split(&context, text, &by.to_string(), usize::MAX, backwards)
        };
        add(name).set_into_module(module, all);
        let some = move |context: NativeCallContext, text: &mut ImmutableString, by: D, most: INT| {
            split(&context, text, &by.to_string(), usize::try_from(most).unwrap_or(0).max(1), backwards)
        };
        add(name).set_into_module(module, some);
    }
}

fn replaced(context: &NativeCallContext, text: &ImmutableString, find: &str, with: &str) -> Outcome<ImmutableString> {
    if text.is_empty() {
        return Ok(text.clone());
    }
    let found = text.matches(find).count();
    let bytes = found.saturating_mul(with.len()).saturating_add(text.len() - found * find.len());
    let limit = context.engine().max_string_size();
    if limit > 0 && bytes > limit {
        return Err(EvalAltResult::ErrorDataTooLarge("Length of string".to_string(), Position::NONE).into());
    }
    Ok(text.replace(find, with).into())
}

fn split(
    context: &NativeCallContext,
    text: &ImmutableString,
    by: &str,
    most: usize,
    backwards: bool,
) -> Outcome<Array> {
    if text.is_empty() || most == 1 {
        return Ok(vec![text.clone().into()]);
    }
    fits(context, (text.matches(by).count() + 1).min(most))?;
    Ok(if backwards { parts(text.rsplitn(most, by)) } else { parts(text.splitn(most, by)) })
}

fn parts<'a>(parts: impl Iterator<Item = &'a str>) -> Array {
    parts.map(Into::into).collect()
}

/// Whether an array may have so many elements.
fn fits(context: &NativeCallContext, count: usize) -> Outcome<()> {
    let limit = context.engine().max_array_size();
    if limit > 0 && count > limit {
        return Err(EvalAltResult::ErrorDataTooLarge("Size of array/BLOB".to_string(), Position::NONE).into());
    }
    Ok(())
}

//! Functions of texts, arrays and blobs whose results can be larger than their arguments by any factor. Rhai checks
//! sizes only after creating the value, when memory may be used up; here the size is checked first.

use crate::base::arithmetic;
use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::language::text::unicode::is_space;
use crate::script::values::bytes::not_a_byte;
use crate::script::values::panics::Place;
use crate::script::values::raise::raise;
use rhai::{
    Array, Blob, Dynamic, EvalAltResult, FLOAT, FuncRegistration, INT, ImmutableString, Map, Module, NativeCallContext,
    Variant,
};
use std::sync::Arc;

type Outcome<T> = Result<T, Box<EvalAltResult>>;

/// Bytes of an array element that holds a short text.
const ELEMENT: usize = 64;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    let module = &mut natives.module;
    of_delimiter::<ImmutableString>(module, host);
    of_delimiter::<char>(module, host);
    given(module);
    parts_of_texts(module, host);
    of_arrays(module, host);
    of_blobs(module, host);
}

fn add(name: &str) -> FuncRegistration {
    FuncRegistration::new(name).in_global_namespace()
}

/// Changes the value that it is called on: refused for constants.
fn changing(name: &str) -> FuncRegistration {
    add(name).with_purity(false)
}

/// Checks the size of a value before a native function creates it.
pub struct SizeCheck<'a> {
    pub host: &'a Host,
    pub context: &'a NativeCallContext<'a>,
}

impl SizeCheck<'_> {
    /// An error where a text of so many bytes would exceed the session's limits.
    pub fn text(&self, bytes: usize) -> Outcome<()> {
        self.within(bytes, self.host.watch.limits.string_bytes, "Length of string", bytes)
    }

    /// The same for an array of so many elements, including nested ones.
    pub fn array(&self, elements: usize, bytes: usize) -> Outcome<()> {
        self.within(elements, self.host.watch.limits.array_elements, "Size of array/BLOB", bytes)
    }

    /// The same for an array and one more element. Nested elements are counted only after enough elements were added
    /// to arrays to matter, so that a list grows in linear time.
    pub fn one_more(&self, array: &Array, item: &Dynamic) -> Outcome<()> {
        self.array(array.len() + 1, 0)?;
        if !(item.is_array() || item.is_map() || item.is_blob()) {
            return Ok(());
        }
        let (elements, _) = size(item);
        if !self.host.watch.should_count(elements) {
            return Ok(());
        }
        let held = array.iter().fold(elements, |held, item| held.saturating_add(size(item).0));
        self.array(held, 0)
    }

    fn within(&self, count: usize, limit: usize, what: &str, bytes: usize) -> Outcome<()> {
        if limit > 0 && count > limit {
            return Err(EvalAltResult::ErrorDataTooLarge(what.to_string(), self.context.call_position()).into());
        }
        self.host.watch.room(bytes).map_err(|diag| self.host.raise(self.context, diag, ""))
    }
}

/// The forms of `replace`, `split`, `split_rev` and `pad` that take a string or a character.
fn of_delimiter<D: Variant + Clone + ToString>(module: &mut Module, host: &Arc<Host>) {
    replace::<D, ImmutableString>(module, host);
    replace::<D, char>(module, host);
    for (name, backwards) in [("split", false), ("split_rev", true)] {
        let shared = host.clone();
        let all = move |context: NativeCallContext, text: &mut ImmutableString, by: D| {
            split(&SizeCheck { host: &shared, context: &context }, text, &by.to_string(), usize::MAX, backwards)
        };
        add(name).place_in(module, all);
        let shared = host.clone();
        let some = move |context: NativeCallContext, text: &mut ImmutableString, by: D, max_parts: INT| {
            let max_parts = usize::try_from(max_parts).unwrap_or(0).max(1);
            split(&SizeCheck { host: &shared, context: &context }, text, &by.to_string(), max_parts, backwards)
        };
        add(name).place_in(module, some);
    }
    let shared = host.clone();
    fn pad<D: ToString>(
        host: &Host,
        context: &NativeCallContext,
        text: &mut ImmutableString,
        length: INT,
        with: D,
    ) -> Outcome<()> {
        let missing = usize::try_from(length).unwrap_or(0).saturating_sub(text.chars().count());
        let with = with.to_string();
        let characters = with.chars().count();
        // Padding with an empty text never ends.
        if missing == 0 || characters == 0 {
            return Ok(());
        }
        let bytes = (missing / characters + 1).saturating_mul(with.len());
        SizeCheck { host, context }.text(bytes.saturating_add(text.len()))?;
        text.make_mut().extend(with.chars().cycle().take(missing));
        Ok(())
    }
    changing("pad").place_in(
        module,
        move |context: NativeCallContext, text: &mut ImmutableString, length: INT, with: D| {
            pad(&shared, &context, text, length, with)
        },
    );
    let shared = host.clone();
    changing("pad").place_in(
        module,
        move |context: NativeCallContext, text: &mut ImmutableString, length: FLOAT, with: D| {
            pad(&shared, &context, text, whole(&shared, &context, length)?, with)
        },
    );
}

/// `replace` of strings or characters by strings or characters.
fn replace<D: Variant + Clone + ToString, W: Variant + Clone + ToString>(module: &mut Module, host: &Arc<Host>) {
    let (host, shared) = (host.clone(), host.clone());
    let replace = move |context: NativeCallContext, text: &mut ImmutableString, find: D, with: W| {
        let size_check = SizeCheck { host: &host, context: &context };
        *text = replaced(&size_check, text, &find.to_string(), &with.to_string(), usize::MAX)?;
        Ok::<_, Box<EvalAltResult>>(text.clone())
    };
    changing("replace").place_in(module, replace);
    let some = move |context: NativeCallContext, text: &mut ImmutableString, find: D, with: W, count: INT| {
        let size_check = SizeCheck { host: &shared, context: &context };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        *text = replaced(&size_check, text, &find.to_string(), &with.to_string(), count)?;
        Ok::<_, Box<EvalAltResult>>(text.clone())
    };
    changing("replace").place_in(module, some);
}

/// The length for which a float stands. The operation `pad` of tensors takes what no form here takes.
fn whole(host: &Host, context: &NativeCallContext, length: FLOAT) -> Outcome<INT> {
    arithmetic::whole(length).ok_or_else(|| {
        let text = format!("`pad`: the length is an integer, not {length}");
        host.raise(context, Diag::error(code::ARGUMENT_TYPE, text), "")
    })
}

/// A copy with the first `count` places where a text stands replaced.
fn replaced(
    size_check: &SizeCheck,
    text: &ImmutableString,
    find: &str,
    with: &str,
    count: usize,
) -> Outcome<ImmutableString> {
    if text.is_empty() && !find.is_empty() {
        return Ok(text.clone());
    }
    let found = text.matches(find).count().min(count);
    size_check.text(found.saturating_mul(with.len()).saturating_add(text.len() - found * find.len()))?;
    Ok(text.replacen(find, with, count).into())
}

fn split(
    size_check: &SizeCheck,
    text: &ImmutableString,
    by: &str,
    max_parts: usize,
    backwards: bool,
) -> Outcome<Array> {
    if text.is_empty() || max_parts == 1 {
        return Ok(vec![text.clone().into()]);
    }
    let count = (text.matches(by).count() + 1).min(max_parts);
    size_check.array(count, count.saturating_mul(ELEMENT).saturating_add(text.len()))?;
    Ok(if backwards { parts(text.rsplitn(max_parts, by)) } else { parts(text.splitn(max_parts, by)) })
}

fn parts<'a>(parts: impl Iterator<Item = &'a str>) -> Array {
    parts.map(Into::into).collect()
}

/// Methods of Rhai that change a string: here they give it, too, so that `s = s.trim()` is right.
fn given(module: &mut Module) {
    type Change = fn(&str) -> String;
    let forms: [(&str, Change); 3] = [
        ("trim", |text| text.trim().to_string()),
        ("make_upper", |text| text.to_uppercase()),
        ("make_lower", |text| text.to_lowercase()),
    ];
    for (name, change) in forms {
        changing(name).place_in(module, move |text: &mut ImmutableString| {
            *text = change(text).into();
            text.clone()
        });
    }
}

fn parts_of_texts(module: &mut Module, host: &Arc<Host>) {
    let shared = host.clone();
    let words = move |context: NativeCallContext, text: &mut ImmutableString| -> Outcome<Array> {
        let words = || text.split(is_space).filter(|word| !word.is_empty());
        let count = words().count();
        SizeCheck { host: &shared, context: &context }.array(count, count * ELEMENT + text.len())?;
        // As in Rhai: an empty text is one part.
        Ok(if text.is_empty() { vec![text.clone().into()] } else { parts(words()) })
    };
    add("split").place_in(module, words);
    let shared = host.clone();
    let characters = move |context: NativeCallContext, text: ImmutableString| -> Outcome<Array> {
        let count = text.chars().count();
        SizeCheck { host: &shared, context: &context }.array(count, count * size_of::<Dynamic>())?;
        Ok(text.chars().map(Dynamic::from_char).collect())
    };
    add("to_chars").place_in(module, characters);
}

fn of_arrays(module: &mut Module, host: &Arc<Host>) {
    let shared = host.clone();
    let push = move |context: NativeCallContext, array: &mut Array, item: Dynamic| -> Outcome<()> {
        SizeCheck { host: &shared, context: &context }.one_more(array, &item)?;
        array.push(item);
        Ok(())
    };
    changing("push").place_in(module, push);
    let shared = host.clone();
    fn pad(host: &Host, context: &NativeCallContext, array: &mut Array, length: INT, item: Dynamic) -> Outcome<()> {
        let length = usize::try_from(length).unwrap_or(0);
        let missing = length.saturating_sub(array.len());
        if missing == 0 {
            return Ok(());
        }
        let (elements, bytes) = size(&item);
        let elements = array.len().saturating_add(missing.saturating_mul(elements));
        SizeCheck { host, context }.array(elements, missing.saturating_mul(bytes))?;
        array.resize(length, item);
        Ok(())
    }
    changing("pad").place_in(
        module,
        move |context: NativeCallContext, array: &mut Array, length: INT, item: Dynamic| {
            pad(&shared, &context, array, length, item)
        },
    );
    let shared = host.clone();
    changing("pad").place_in(
        module,
        move |context: NativeCallContext, array: &mut Array, length: FLOAT, item: Dynamic| {
            pad(&shared, &context, array, whole(&shared, &context, length)?, item)
        },
    );
}

/// The number of elements, including the value itself, and the bytes that a copy of the value takes.
pub fn size(value: &Dynamic) -> (usize, usize) {
    let own = (1, size_of::<Dynamic>());
    let sum = |found: (usize, usize), item: &Dynamic| {
        let (elements, bytes) = size(item);
        (found.0.saturating_add(elements), found.1.saturating_add(bytes))
    };
    // Copies share cells and texts.
    if value.is_shared() {
        return own;
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().fold(own, sum);
    }
    if let Some(map) = value.read_lock::<Map>() {
        return map.values().fold((1, own.1 + map.len() * ELEMENT), sum);
    }
    value.read_lock::<Blob>().map_or(own, |blob| (1 + blob.len(), own.1 + blob.len()))
}

/// An integer as a byte.
fn byte(context: &NativeCallContext, value: INT) -> Outcome<u8> {
    u8::try_from(value).map_err(|_| raise(not_a_byte(value), context.call_position()))
}

/// Methods that put bytes into a blob, of which Rhai keeps the lowest eight bits.
fn bytes_into_blobs(module: &mut Module, host: &Arc<Host>) {
    let shared = host.clone();
    let push = move |context: NativeCallContext, blob: &mut Blob, value: INT| -> Outcome<()> {
        SizeCheck { host: &shared, context: &context }.array(blob.len() + 1, 1)?;
        blob.push(byte(&context, value)?);
        Ok(())
    };
    changing("push").place_in(module, push);
    let shared = host.clone();
    let insert = move |context: NativeCallContext, blob: &mut Blob, at: INT, value: INT| -> Outcome<()> {
        SizeCheck { host: &shared, context: &context }.array(blob.len() + 1, 1)?;
        let len = blob.len() as INT;
        let at = if at < 0 { at.saturating_add(len).max(0) } else { at.min(len) };
        blob.insert(at as usize, byte(&context, value)?);
        Ok(())
    };
    changing("insert").place_in(module, insert);
    let set = |context: NativeCallContext, blob: &mut Blob, at: INT, value: INT| -> Outcome<()> {
        let at = place(&context, blob, at)?;
        blob[at] = byte(&context, value)?;
        Ok(())
    };
    changing("set").place_in(module, set);
    let remove = |context: NativeCallContext, blob: &mut Blob, at: INT| -> Outcome<INT> {
        Ok(blob.remove(place(&context, blob, at)?).into())
    };
    changing("remove").place_in(module, remove);
}

fn place(context: &NativeCallContext, blob: &Blob, at: INT) -> Outcome<usize> {
    let index = if at < 0 { at.saturating_add(blob.len() as INT) } else { at };
    let index = usize::try_from(index).ok().filter(|index| *index < blob.len());
    index.ok_or_else(|| Box::new(EvalAltResult::ErrorArrayBounds(blob.len(), at, context.call_position())))
}

fn of_blobs(module: &mut Module, host: &Arc<Host>) {
    bytes_into_blobs(module, host);
    let grown = |host: &Arc<Host>| {
        let host = host.clone();
        move |context: &NativeCallContext, blob: &mut Blob, length: INT, value: INT| -> Outcome<()> {
            let length = usize::try_from(length).unwrap_or(0);
            if length > blob.len() {
                SizeCheck { host: &host, context }.array(length, length - blob.len())?;
                blob.resize(length, byte(context, value)?);
            }
            Ok(())
        }
    };
    let pad = grown(host);
    changing("pad").place_in(module, move |context: NativeCallContext, blob: &mut Blob, length: INT, value: INT| {
        pad(&context, blob, length, value)
    });
    let filled = grown(host);
    add("blob").place_in(module, move |context: NativeCallContext, length: INT, value: INT| -> Outcome<Blob> {
        let mut blob = Blob::new();
        filled(&context, &mut blob, length, value).map(|()| blob)
    });
    let zeros = grown(host);
    add("blob").place_in(module, move |context: NativeCallContext, length: INT| -> Outcome<Blob> {
        let mut blob = Blob::new();
        zeros(&context, &mut blob, length, 0).map(|()| blob)
    });
    let shared = host.clone();
    let numbers = move |context: NativeCallContext, blob: &mut Blob| -> Outcome<Array> {
        SizeCheck { host: &shared, context: &context }.array(blob.len(), blob.len() * size_of::<Dynamic>())?;
        Ok(blob.iter().map(|&byte| Dynamic::from_int(byte.into())).collect())
    };
    add("to_array").place_in(module, numbers);
}

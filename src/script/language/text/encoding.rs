//! Strings as bytes and back: `text.encode()`, `blob.decode()`.

use super::call::{method, text};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use rhai::{Blob, Dynamic, FuncRegistration, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    method(natives, host, "encode", |host, whole, [encoding]| {
        let encoding = text("encoding", encoding)?;
        if !matches!(&encoding.to_lowercase().replace(['-', '_'], "")[..], "utf8" | "ascii" | "latin1") {
            fail!(VALUE, "`encoding` is \"utf-8\", \"ascii\" or \"latin-1\", not \"{encoding}\"");
        }
        host.watch.room(whole.len())?;
        encoded(whole, &encoding)
    });
    natives.note("decode");
    for count in 1..=2 {
        let shared = host.clone();
        let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            let bytes = values[0].read_lock::<Blob>().map(|bytes| bytes.clone()).unwrap_or_default();
            let errors = values.get(1).map_or(Ok("strict".into()), |errors| text("errors", errors));
            errors.and_then(|errors| decoded(bytes, &errors)).map_err(|mut diag| {
                diag.message = format!("`decode`: {}", diag.message);
                shared.raise(&context, diag, "")
            })
        });
        let types = [TypeId::of::<Blob>(), TypeId::of::<Dynamic>()];
        let own = FuncRegistration::new("decode").in_global_namespace();
        own.place_shared_in(&mut natives.module, &types[..count], &call);
    }
}

fn encoded(whole: &str, encoding: &str) -> Result<Dynamic> {
    let last = match &encoding.to_lowercase()[..] {
        "ascii" => '\x7f',
        name if name.starts_with("latin") => '\u{ff}',
        _ => return Ok(Dynamic::from_blob(whole.as_bytes().to_vec())),
    };
    match whole.chars().position(|c| c > last) {
        None => Ok(Dynamic::from_blob(whole.chars().map(|c| c as u8).collect())),
        Some(at) => fail!(VALUE, "character {at} of the string is not in \"{encoding}\""),
    }
}

fn decoded(bytes: Blob, errors: &str) -> Result<Dynamic> {
    match errors {
        "strict" => match String::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                Err(Diag::error(code::VALUE, format!("byte {at} is not valid UTF-8"))
                    .help("`decode(\"replace\")` puts `\u{fffd}` there, `decode(\"ignore\")` leaves it out"))
            }
        },
        "replace" => Ok(String::from_utf8_lossy(&bytes).into_owned().into()),
        "ignore" => Ok(bytes.utf8_chunks().map(|chunk| chunk.valid()).collect::<String>().into()),
        _ => fail!(VALUE, "`errors` is \"strict\", \"replace\" or \"ignore\", not \"{errors}\""),
    }
}

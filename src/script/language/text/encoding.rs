//! Strings as bytes and back: `text.encode()`, `blob.decode()`.

use super::call::{method, of_function, text};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::panics::GuardedCall;
use crate::script::values::raise::Native;
use rhai::{Blob, Dynamic, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    method(natives, host, "encode", |host, whole, [encoding]| {
        let encoding = text("encoding", encoding)?;
        host.watch.room(whole.len())?;
        encoded(whole, &encoding)
    });
    natives.note("decode");
    let shared = host.clone();
    let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let bytes = values[0].read_lock::<Blob>().map(|bytes| bytes.clone()).unwrap_or_default();
        let errors = values.get(1).map_or(Ok("strict".into()), |errors| text("errors", errors));
        let done = errors.and_then(|errors| decoded(bytes, &errors));
        done.map_err(|diag| shared.raise(&context, of_function("decode", diag), ""))
    });
    natives.place_on(TypeId::of::<Blob>(), "decode", 1..=2, &call);
}

fn encoded(whole: &str, encoding: &str) -> Result<Dynamic> {
    let last = match encoding {
        "ascii" => '\x7f',
        "latin-1" => '\u{ff}',
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

//! Hostile scripts from bytes, in a session with limits: no panic, no abort, and the session goes on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;

#[path = "../../tests/embed/generator.rs"]
mod generator;

#[global_allocator]
static MEMORY: tscript::Metered = tscript::Metered;

fuzz_target!(|bytes: &[u8]| {
    let (&kind, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    // The bytes are the text itself, or choices.
    let text = if kind % 4 == 0 {
        String::from_utf8_lossy(bytes).into_owned()
    } else {
        let names: Vec<&str> = tscript::internals::op::table::all().map(|op| op.name).collect();
        generator::script(&names, &mut generator::Choices::of(bytes))
    };
    let limited = tscript::Session::builder().untrusted().operation_limit(100_000).time_limit(Duration::from_secs(10));
    let limited = limited.heap_limit(32 << 20).memory_limit(64 << 20).output(|_| {});
    let mut session = limited.build().expect("a session starts");
    if let Err(error) = session.run_str("fuzz", &text) {
        assert_ne!(error.code(), "E0806", "{error}\n{text}");
    }
});

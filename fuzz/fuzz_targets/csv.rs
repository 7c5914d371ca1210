//! Any bytes as a `.csv` file: no panic, no memory beyond libFuzzer's limit, and what is read can be written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tscript::internals::files::{Kind, read_bytes, write_bytes};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = read_bytes(Kind::Csv, bytes) {
        // Not everything that can be read can be written back: a table without columns, an image with alpha as JPEG.
        let _ = write_bytes(Kind::Csv, &value);
    }
});

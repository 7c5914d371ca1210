//! Any bytes as a `.npy` file: no panic, no memory beyond libFuzzer's limit, and what is read is the same after
//! it was written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tscript::internals::files::{Kind, read_bytes, write_bytes};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = read_bytes(Kind::Npy, bytes) {
        let again = write_bytes(Kind::Npy, &value).and_then(|bytes| read_bytes(Kind::Npy, &bytes));
        assert_eq!(again, Ok(value));
    }
});

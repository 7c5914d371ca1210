//! Texts that are packed in the program: `build.rs` packs `std/` and `kernels/`.

use flate2::read::DeflateDecoder;
use std::io::Read;

/// The bytes of a packed text, by its path from the root of the repository.
macro_rules! packed {
    ($path:expr) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $path)) as &[u8]
    };
}
pub(crate) use packed;

/// The text, which stays in memory: for those that are unpacked once.
pub fn unpack(packed: &[u8]) -> &'static str {
    let mut text = String::new();
    if let Err(error) = DeflateDecoder::new(packed).read_to_string(&mut text) {
        unreachable!("what `build.rs` has packed: {error}");
    }
    text.leak()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_was_packed() {
        assert_eq!(unpack(packed!("std/test.rhai")), include_str!("../../std/test.rhai"));
    }
}

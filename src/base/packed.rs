//! Texts that are packed in the program: `build.rs` packs `std/`, `kernels/` and `docs/errors/`.

use flate2::read::DeflateDecoder;
use std::io::Read;
use std::sync::OnceLock;

/// Texts that were packed together: all are unpacked when one of them is asked for.
struct Pack {
    packed: &'static [u8],
    /// Their paths from the root of the repository, and their lengths, in order.
    files: &'static [(&'static str, usize)],
    texts: OnceLock<&'static str>,
}

mod library {
    use super::Pack;

    include!(concat!(env!("OUT_DIR"), "/std.rs"));
}

mod errors {
    use super::Pack;

    include!(concat!(env!("OUT_DIR"), "/errors.rs"));
}

mod kernels {
    use super::Pack;

    #[cfg(feature = "cuda")]
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
    #[cfg(not(feature = "cuda"))]
    pub static PACKS: [Pack; 0] = [];
}

/// A text by its path from the root of the repository. It stays in memory.
pub fn text(path: &str) -> &'static str {
    let found = library::PACKS.iter().chain(&kernels::PACKS).chain(&errors::PACKS).find_map(|pack| pack.find(path));
    found.unwrap_or_else(|| unreachable!("`build.rs` packs {path}"))
}

impl Pack {
    const fn new(packed: &'static [u8], files: &'static [(&'static str, usize)]) -> Pack {
        Pack { packed, files, texts: OnceLock::new() }
    }

    fn find(&self, path: &str) -> Option<&'static str> {
        let at = self.files.iter().position(|(name, _)| *name == path)?;
        let start: usize = self.files[..at].iter().map(|(_, len)| len).sum();
        Some(&self.texts.get_or_init(|| self.unpacked())[start..start + self.files[at].1])
    }

    fn unpacked(&self) -> &'static str {
        let mut text = String::new();
        if let Err(error) = DeflateDecoder::new(self.packed).read_to_string(&mut text) {
            unreachable!("what `build.rs` has packed: {error}");
        }
        text.leak()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_was_packed() {
        assert_eq!(text("std/test.rhai"), include_str!("../../std/test.rhai"));
        assert_eq!(text("std/nn/linear.rhai"), include_str!("../../std/nn/linear.rhai"));
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn headers_are_packed_together() {
        assert_eq!(text("kernels/math/math.cuh"), include_str!("../../kernels/math/math.cuh"));
        assert_eq!(kernels::PACKS.len(), 1);
    }
}

//! The files of an installed kernel: `kernel.json`, which tells Jupyter how it is started, and its logos.

use crate::base::diag::Result as Checked;
use crate::files;
use crate::script::draw::font;
use crate::script::draw::raster::{Raster, Rgb};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const BLUE: Rgb = [31, 119, 180];

/// `kernel.json`: the program, how it is started, and what it is called.
pub fn text(program: &str, display_name: &str, flags: &[String]) -> String {
    let start = ["jupyter", "run", "{connection_file}"].map(str::to_string);
    let words: Vec<String> = std::iter::once(program.to_string()).chain(start).chain(flags.iter().cloned()).collect();
    let spec = json!({
        "argv": words,
        "display_name": display_name,
        "language": "tscript",
        "interrupt_mode": "message",
        "metadata": {"debugger": false},
    });
    format!("{spec:#}\n")
}

/// The program that the kernel in a folder starts, if it is tscript's.
pub fn program(folder: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(folder.join("kernel.json")).ok()?;
    let spec: Value = serde_json::from_str(&text).ok()?;
    let words = spec["argv"].as_array()?;
    let ours = spec["language"] == "tscript" && words.get(1)? == "jupyter" && words.get(2)? == "run";
    words.first()?.as_str().filter(|_| ours).map(PathBuf::from)
}

/// The logos by their file names.
pub fn logos() -> Checked<Vec<(String, Vec<u8>)>> {
    [32, 64].into_iter().map(|side| Ok((format!("logo-{side}x{side}.png"), logo(side)?))).collect()
}

/// Two letters on a square.
fn logo(side: usize) -> Checked<Vec<u8>> {
    let mut picture = Raster::of(side, side, |_, _| BLUE);
    let scale = side / 16;
    let (width, height) = (font::width("TS", scale), 7 * scale);
    let place = |length: usize| ((side - length) / 2) as i64;
    font::write(&mut picture, place(width), place(height), "TS", scale, [255; 3]);
    files::write_bytes(files::Kind::Png, &files::Value::One(picture.array()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(program(folder.path()), None);
        let path = folder.path().join("kernel.json");
        std::fs::write(&path, text("/bin/tscript", "a \"name\"", &["--seed=1".into()])).expect("a file");
        assert_eq!(program(folder.path()), Some("/bin/tscript".into()));
        for other in ["", "{}", "[]", r#"{"language": "python", "argv": ["x", "jupyter", "run"]}"#, r#"{"argv": []}"#] {
            std::fs::write(&path, other).expect("a file");
            assert_eq!(program(folder.path()), None, "{other}");
        }
    }

    #[test]
    fn logos_have_letters() {
        for (name, png) in logos().expect("logos") {
            assert!(name.ends_with(".png") && png.starts_with(b"\x89PNG"));
        }
    }
}

//! A page of the book, cut into fenced blocks.

use crate::scripts::root;
use std::path::{Path, PathBuf};

/// A fenced block.
pub struct Block {
    /// The first word after the fence.
    pub language: String,
    pub text: String,
    /// The line of the opening fence, from 1.
    pub line: usize,
    /// Bytes of the page that `text` takes.
    pub range: std::ops::Range<usize>,
}

pub struct Page {
    pub path: PathBuf,
    pub text: String,
    pub blocks: Vec<Block>,
}

impl Page {
    pub fn read(path: &Path) -> Page {
        let text = std::fs::read_to_string(path).expect("a page");
        let blocks = blocks(&text);
        Page { path: path.to_path_buf(), text, blocks }
    }

    /// The path from the repository on.
    pub fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }

    /// The block that follows another with nothing but blank lines between.
    pub fn next_to(&self, at: usize) -> Option<&Block> {
        let next = self.blocks.get(at + 1)?;
        let between = &self.text[self.blocks[at].range.end..next.range.start];
        // The two fences themselves are between.
        (between.lines().filter(|line| !line.trim().is_empty()).count() == 2).then_some(next)
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut at, mut open) = (0, None::<(String, usize, usize)>);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let Some(rest) = line.strip_prefix("```") else { continue };
        open = match open {
            None => Some((rest.split_whitespace().next().unwrap_or("").to_string(), number + 1, at)),
            Some((language, line, from)) => {
                found.push(Block { language, text: text[from..start].to_string(), line, range: from..start });
                None
            }
        };
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// All pages of the book, and those in the root, in the order of their paths.
pub fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

/// Whether texts are to be rewritten.
pub fn blesses() -> bool {
    std::env::var("TSCRIPT_BLESS").is_ok_and(|value| value == "1")
}

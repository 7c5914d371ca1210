//! Lists in texts that readers take for whole: dtypes, formats of files.

use crate::scripts::{none, root};
use tscript::internals::base::dtype::DType;
use tscript::internals::files::Kind;

fn text(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).expect("a page")
}

#[test]
fn all_dtypes_are_listed() {
    let mut problems = Vec::new();
    for page in ["docs/language.md", "docs/guide/from-pytorch.md"] {
        let text = text(page);
        // `f64 f32 .. bool`
        let lists =
            text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("f64 ") && code.ends_with(" bool"));
        let lists: Vec<Vec<&str>> = lists.map(|code| code.split_whitespace().collect()).collect();
        if lists.is_empty() {
            problems.push(format!("{page} has no list of dtypes"));
        }
        let missing = |list: &Vec<&str>| DType::ALL.into_iter().any(|dtype| !list.contains(&dtype.name()));
        problems.extend(lists.iter().filter(|list| missing(list)).map(|list| format!("{page} lists {list:?} only")));
    }
    none(problems);
}

#[test]
fn all_formats_of_files_are_listed() {
    let mut problems = Vec::new();
    // The reference has what help says of `load`.
    for page in ["docs/errors/E0603.md", "docs/guide/first-steps.md", "docs/reference/tensors.md"] {
        let text = text(page);
        for (extension, kind) in Kind::EXTENSIONS {
            // `.jpeg` is `.jpg` in another spelling.
            let spellings = Kind::EXTENSIONS.iter().filter(|(_, other)| other == kind);
            if !spellings.into_iter().any(|(spelling, _)| text.contains(&format!(".{spelling}"))) {
                problems.push(format!("{page} does not name `.{extension}`"));
            }
        }
    }
    none(problems);
}

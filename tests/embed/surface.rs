//! What the library promises to programs: every public name and signature, as `surface.txt` has them. A name that is
//! added, changed or gone turns this red; `TSCRIPT_BLESS=1` writes the list anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files with types of the same names that are not exported.
const OTHERS: [&str; 6] = [
    "script/check/value.rs",
    "script/machine/unit.rs",
    "script/machine/value.rs",
    "script/manual/std.rs",
    "script/values/types.rs",
    "script/manual/mod.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names after `pub use` in the library's root.
fn exported(root: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut hidden = false;
    for line in root.lines() {
        if let Some(path) = line.strip_prefix("pub use ").filter(|_| !hidden) {
            let last = path.trim_end_matches(';').rsplit("::").next().unwrap_or("");
            let list = path.split_once('{').map_or(last, |(_, list)| list.trim_end_matches(['}', ';']));
            names.extend(list.split(',').map(|name| name.trim().to_string()));
        }
        hidden = line.contains("doc(hidden)");
    }
    names
}

/// The type of `impl .. X {` or `pub struct X`, without its parameters.
fn name_after<'a>(line: &'a str, words: &[&str]) -> Option<&'a str> {
    let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ").map_or(generic, |(_, rest)| rest),
        None => rest.trim_start(),
    };
    Some(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""))
}

/// Public items of exported types in one file; blocks begin and end in the first column, as rustfmt leaves them.
fn items(text: &str, names: &BTreeSet<String>, list: &mut BTreeSet<String>) {
    let mut owner: Option<String> = None;
    let (mut hidden, mut in_trait) = (false, false);
    let mut signature: Option<String> = None;
    for line in text.lines() {
        let code = line.trim();
        if line.starts_with("#[cfg(test)]") {
            return;
        }
        if let Some(begun) = &mut signature {
            begun.push_str(if begun.ends_with('(') { "" } else { " " });
            begun.push_str(code);
        } else if code.starts_with("#[") || code.starts_with("//") || code.is_empty() {
            hidden |= code.contains("doc(hidden)");
            continue;
        } else if !line.starts_with(' ') {
            if line.starts_with('}') {
                owner = None;
            }
            let inherent = name_after(line, &["impl"]).filter(|_| !line.contains(" for "));
            let declared = name_after(line, &["pub struct ", "pub enum ", "pub trait "]);
            if let Some(name) = inherent.or(declared).filter(|name| names.contains(*name) && !hidden) {
                in_trait = line.starts_with("pub trait ");
                owner = (!line.ends_with(';') && !line.ends_with('}')).then(|| name.to_string());
                if declared.is_some() {
                    let fields = line.find('(').filter(|_| line.contains(" struct "));
                    list.insert(line[..fields.unwrap_or(line.len())].trim_end_matches([' ', '{', ';']).to_string());
                }
            }
            hidden = false;
        } else if let Some(owner) = owner.as_ref().filter(|_| line.starts_with("    ") && !line.starts_with("     ")) {
            let method = ["pub fn ", "pub unsafe fn ", "pub const "].iter().any(|word| code.starts_with(word));
            let member = in_trait && ["fn ", "const "].iter().any(|word| code.starts_with(word));
            let variant = code.starts_with(char::is_uppercase) && !code.contains(" => ");
            if (method || member || variant) && !hidden {
                signature = Some(format!("{owner}: {code}"));
            }
            hidden = false;
        }
        if let Some(whole) = signature.take() {
            let ended = ["{", ";", ",", "}"].iter().any(|end| whole.ends_with(end)) && {
                whole.matches('(').count() == whole.matches(')').count()
            };
            if ended {
                let whole = whole.trim_end_matches([' ', '{', ';', ',']).replace(",)", ")").replace(", )", ")");
                list.insert(whole);
            } else {
                signature = Some(whole);
            }
        }
    }
}

#[test]
fn the_public_surface_is_what_it_was() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("src/lib.rs")).expect("the root");
    // A floor that were `pub` would keep the compiler from telling what nobody uses.
    let open: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("pub mod ")).collect();
    assert_eq!(open, ["internals;", "program {"], "modules that the root opens");
    let names = exported(&text);
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let mut list = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        // Other floors have types of the same names.
        let at_home = ["script/", "device/dlpack.rs", "device/metered.rs", "base/dtype.rs", "sched/options.rs"];
        let place = file.strip_prefix(root.join("src")).expect("below src").to_string_lossy().into_owned();
        if at_home.iter().any(|home| place.starts_with(home)) && !OTHERS.contains(&place.as_str()) {
            items(&text, &names, &mut list);
        }
    }
    let found: String =
        names.iter().map(|name| format!("{name}\n")).chain(list.iter().map(|item| format!("{item}\n"))).collect();
    let path = root.join("tests/embed/surface.txt");
    if std::env::var("TSCRIPT_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, found).expect("the list can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let missing: Vec<&str> = expected.lines().filter(|line| !found.lines().any(|other| other == *line)).collect();
    let added: Vec<&str> = found.lines().filter(|line| !expected.lines().any(|other| other == *line)).collect();
    assert!(missing.is_empty() && added.is_empty(), "gone: {missing:#?}\nadded: {added:#?}");
}

/// The code of examples: fenced blocks of a page, or of the comments of a source.
fn examples(text: &str, is_source: bool) -> String {
    let mut code = String::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        let line = match is_source {
            true => line.strip_prefix("///").or(line.strip_prefix("//!")),
            false => Some(line),
        };
        let Some(line) = line else { continue };
        if line.trim().starts_with("```") {
            inside = !inside;
        } else if inside {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// Whether a function of this name is called: its name, perhaps types, a parenthesis.
fn calls(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = &code[at + name.len()..];
        whole && (rest.starts_with('(') || rest.starts_with("::<"))
    })
}

/// Examples are run as tests, those of comments and those of the guide.
#[test]
fn every_public_function_is_in_an_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let pages = ["README.md", "docs/guide/embedding.md", "docs/guide/sandboxing.md", "docs/guide/recipes.md"];
    files.extend(pages.map(|page| root.join(page)));
    let of = |path: &PathBuf| {
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        examples(&std::fs::read_to_string(path).expect("a text"), is_source)
    };
    let code: String = files.iter().map(of).collect();
    let list = std::fs::read_to_string(root.join("tests/embed/surface.txt")).expect("the list");
    let functions = list.lines().filter(|line| line.contains(": pub ")).filter_map(|line| {
        let (_, rest) = line.split_once(" fn ")?;
        rest.split(['(', '<']).next()
    });
    let missing: Vec<&str> = functions.filter(|name| !calls(&code, name)).collect();
    assert!(missing.is_empty(), "no example calls {missing:?}");
}

#[test]
fn an_added_item_is_seen() {
    let names = BTreeSet::from(["Thing".to_string()]);
    let seen = |text: &str| {
        let mut list = BTreeSet::new();
        items(text, &names, &mut list);
        list.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(
        seen("impl Thing {\n    /// Words.\n    pub fn new(\n        a: i64,\n    ) -> Thing {\n        1\n    }\n}"),
        ["Thing: pub fn new(a: i64, ) -> Thing".replace(", )", ")")]
    );
    assert_eq!(
        seen("#[doc(hidden)]\nimpl Thing {\n    pub fn new() {}\n}\nimpl Other {\n    pub fn new() {\n    }\n}"),
        Vec::<String>::new()
    );
    assert_eq!(
        seen("impl Thing {\n    #[doc(hidden)]\n    pub fn a(&self) {\n    }\n\n    fn b() {\n    }\n}"),
        Vec::<String>::new()
    );
    assert_eq!(seen("pub trait Thing {\n    fn b();\n}"), ["Thing: fn b()", "pub trait Thing"]);
}

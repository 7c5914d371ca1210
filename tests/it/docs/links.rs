//! Every link inside the repository leads somewhere, every page is in the book, and what pages for contributors name is
//! there.

use super::page::{Page, pages};
use crate::scripts::{none, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A page without its fenced blocks.
fn prose(page: &Page) -> String {
    let mut text = page.text.clone();
    for block in page.blocks.iter().rev() {
        text.replace_range(block.range.clone(), "");
    }
    text
}

/// Places that a text links to, without what stands in code.
fn links(page: &Page) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page).lines() {
        // Code between backticks is no link: `x[i](y)`.
        let outside: Vec<&str> = line.split('`').collect();
        let line = if outside.len() % 2 == 1 {
            let parts = outside.iter().enumerate();
            parts.map(|(at, part)| if at % 2 == 0 { *part } else { "code" }).collect()
        } else {
            line.to_string()
        };
        for part in line.split("](").skip(1) {
            found.extend(part.split(')').next().map(str::to_string));
        }
        // `[name]: place` under a text that has `[name]`.
        let defined = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        found.extend(defined.map(|(_, place)| place.trim().to_string()));
        for attribute in ["href=\"", "src=\""] {
            found.extend(line.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_string));
        }
    }
    found.retain(|link| !link.contains("://") && !link.starts_with("mailto:"));
    found
}

/// What GitHub and mdBook make of a heading.
fn anchor(heading: &str) -> String {
    let plain = heading.trim().to_lowercase().replace('`', "");
    let kept = plain.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(page: &Page) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for heading in prose(page).lines().filter(|line| line.starts_with('#')) {
        let first = anchor(heading.trim_start_matches('#'));
        // A heading that comes again has a number.
        let again = (1..).map(|number| format!("{first}-{number}"));
        let free = std::iter::once(first.clone()).chain(again).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

#[test]
fn links_lead_somewhere() {
    let (mut problems, mut count) = (Vec::new(), 0);
    let book = root().join("docs").canonicalize().expect("a folder");
    let mut known = BTreeMap::new();
    let headings = |path: &PathBuf| anchors(&Page::read(path));
    for page in pages() {
        let in_book = page.name().starts_with("docs/");
        for link in links(&page) {
            count += 1;
            let (path, place) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path.is_empty() {
                true => page.path.clone(),
                false => page.path.parent().expect("a folder").join(path),
            };
            let inside = || target.canonicalize().is_ok_and(|path| path.starts_with(&book));
            if !target.exists() {
                problems.push(format!("{}: `{link}` is not there", page.name()));
            } else if in_book && (target.is_dir() || !inside()) {
                problems.push(format!("{}: `{link}` is no page of the book, which is read alone too", page.name()));
            } else if in_book && path.ends_with("README.md") && !page.name().ends_with("SUMMARY.md") {
                problems.push(format!("{}: mdBook makes another page of `{link}` and leaves the link", page.name()));
            } else if !place.is_empty() && !known.entry(target).or_insert_with_key(headings).contains(place) {
                problems.push(format!("{}: `{link}`: no such heading", page.name()));
            }
        }
    }
    assert!(count > 1000, "only {count} links were found");
    none(problems);
}

#[test]
fn links_are_found_however_they_are_written() {
    let blocks = Vec::new();
    let text = "[a](one.md) and [b](two.md#x), `c[d](e)`\n[f]: three.md\n<a href=\"four.md\">g</a>\n".to_string();
    let page = Page { path: root().join("docs/none.md"), text, blocks };
    assert_eq!(links(&page), ["one.md", "two.md#x", "three.md", "four.md"]);
    let text = "# A `b` c\n## A b c\n".to_string();
    let page = Page { text, ..page };
    assert_eq!(anchors(&page), ["a-b-c", "a-b-c-1"].map(str::to_string).into());
}

/// What a page names of the repository: paths between backticks, outside of blocks.
fn paths(page: &Page) -> Vec<String> {
    const FOLDERS: &[&str] = &["src/", "kernels/", "std/", "tests/", "docs/", "fuzz/", "scripts/", "editor/", ".ci/"];
    let mut found: Vec<String> = prose(page).split('`').skip(1).step_by(2).map(str::to_string).collect();
    // Not patterns: `kernels/<family>/`, `tests/errors/*.err`, `docs/errors/E0000.md`.
    let is_pattern =
        |path: &str| path.contains(['<', '*', ' ', '\n']) || path.contains("0000") || path.contains("NNNN");
    found.retain(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)) && !is_pattern(path));
    found
}

#[test]
fn files_that_contributors_are_sent_to_exist() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for page in pages() {
        let name = page.name();
        let inside = ["docs/architecture.md", "docs/testing.md", "docs/glossary.md"].contains(&name.as_str());
        if name != "CONTRIBUTING.md" && !inside && !name.starts_with("docs/internals/") {
            continue;
        }
        for path in paths(&page) {
            count += 1;
            if !root().join(&path).exists() {
                problems.push(format!("{name}: `{path}` is not there"));
            }
        }
    }
    assert!(count > 150, "only {count} paths were found");
    none(problems);
}

/// The filters of the tests that a command runs, with the folder of their modules.
fn filters(command: &str) -> Vec<(&'static str, String)> {
    let Some((_, words)) = command.split_once("cargo test ") else { return Vec::new() };
    let folder = match words {
        _ if words.contains("--lib") => "src",
        _ if words.contains("--test it") => "tests/it",
        _ if words.contains("--test embed") => "tests/embed",
        _ => return Vec::new(),
    };
    words.split_whitespace().filter(|word| word.contains("::")).map(|word| (folder, word.to_string())).collect()
}

/// Whether there is such a file, or one below such a folder, with a test.
fn has_tests(path: &Path) -> bool {
    if path.is_dir() {
        let mut entries = std::fs::read_dir(path).expect("a folder");
        return entries.any(|entry| has_tests(&entry.expect("an entry").path()));
    }
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    is_source && std::fs::read_to_string(path).is_ok_and(|text| text.contains("#[test]"))
}

/// A command that runs no test passes, too.
#[test]
fn commands_that_contributors_are_given_run_tests() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for name in ["CONTRIBUTING.md", "docs/testing.md"] {
        let page = Page::read(&root().join(name));
        for block in page.blocks.iter().filter(|block| block.language == "sh") {
            let commands = block.text.lines().flat_map(|line| line.split('#').next().unwrap_or("").split("&&"));
            for (folder, filter) in commands.flat_map(filters) {
                count += 1;
                let module = root().join(folder).join(filter.trim_end_matches("::").replace("::", "/"));
                if !has_tests(&module.with_extension("rs")) && !has_tests(&module) {
                    problems.push(format!("{name}: `{filter}` has no tests in {folder}"));
                }
            }
        }
    }
    assert!(count > 40, "only {count} filters were found");
    none(problems);
}

#[test]
fn every_page_is_in_the_book() {
    let summary = Page::read(&root().join("docs/SUMMARY.md"));
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let mut missing = Vec::new();
    for page in pages() {
        let name = page.name();
        let Some(inside) = name.strip_prefix("docs/").filter(|name| *name != "SUMMARY.md") else { continue };
        if !listed.contains(inside) {
            missing.push(format!("docs/SUMMARY.md does not list {inside}"));
        }
    }
    none(missing);
}

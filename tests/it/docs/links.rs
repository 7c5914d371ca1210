//! Every link inside the repository leads somewhere, every page is in the book, and what pages for contributors name is
//! there.

use super::page::{Page, pages};
use crate::scripts::{none, root};
use std::collections::BTreeSet;

/// Places that a text links to, without what stands in code.
fn links(page: &Page) -> Vec<String> {
    let mut text = page.text.clone();
    for block in page.blocks.iter().rev() {
        text.replace_range(block.range.clone(), "");
    }
    let mut found = Vec::new();
    for line in text.lines() {
        for part in line.split("](").skip(1) {
            found.extend(part.split(')').next().map(str::to_string));
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
    let headings = page.text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut problems = Vec::new();
    for page in pages() {
        for link in links(&page) {
            let (path, place) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path.is_empty() {
                true => page.path.clone(),
                false => page.path.parent().expect("a folder").join(path),
            };
            if !target.exists() {
                problems.push(format!("{}: `{link}` is not there", page.name()));
            } else if !place.is_empty() && !anchors(&Page::read(&target)).contains(place) {
                problems.push(format!("{}: `{link}`: no such heading", page.name()));
            }
        }
    }
    none(problems);
}

/// What a page names of the repository: paths between backticks, outside of blocks.
fn paths(page: &Page) -> Vec<String> {
    const FOLDERS: &[&str] = &["src/", "kernels/", "std/", "tests/", "docs/", "fuzz/", "scripts/", "editor/", ".ci/"];
    let mut text = page.text.clone();
    for block in page.blocks.iter().rev() {
        text.replace_range(block.range.clone(), "");
    }
    let mut found: Vec<String> = text.split('`').skip(1).step_by(2).map(str::to_string).collect();
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

//! Every link inside the repository leads somewhere, and every page is in the book.

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

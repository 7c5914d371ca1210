//! Draws diagnostics as text: the message with its code, the source lines with their labels, notes, help
//! and the script's call stack.
//!
//! ariadne draws the lines; notes, help and the call stack below them are ours. Does not interpret diagnostics.

use crate::base::diag::{Diag, Focus, Label, Severity};
use crate::base::order;
use crate::base::span::Site;
use crate::script::error::{Error, called};
use crate::script::source::{Source, SourceMap};

use super::long_lines::{self, Cut};
use ariadne::{Color, Config, IndexType, ReportKind};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Whether text is colored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coloring {
    On,
    Off,
}

impl Coloring {
    /// On if the standard error is a terminal and `NO_COLOR` is not set.
    pub fn of_stderr() -> Coloring {
        Coloring::of(std::io::stderr().is_terminal())
    }

    /// The same for the standard output.
    pub fn of_stdout() -> Coloring {
        Coloring::of(std::io::stdout().is_terminal())
    }

    fn of(terminal: bool) -> Coloring {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        if terminal && !refused && !dumb { Coloring::On } else { Coloring::Off }
    }

    /// Less important text.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Text between a sequence that sets its style, such as `1;32`, and the one that ends it.
    pub fn wrap(self, style: &str, text: &str) -> String {
        match self {
            Coloring::On => format!("\x1b[{style}m{text}\x1b[0m"),
            Coloring::Off => text.to_string(),
        }
    }
}

/// Bound: frames shown at the inner and at the outer end of the call stack; an endless recursion has a thousand.
const FRAMES_INNER: usize = 6;
const FRAMES_OUTER: usize = 2;

type Span = (usize, Range<usize>);

/// An error with all diagnostics that were reported with it.
pub fn render_error(error: &Error, color: Coloring) -> String {
    let all = std::iter::once(error.diag()).chain(error.extra());
    all.map(|diag| render(diag, error.sources(), color)).collect::<Vec<_>>().join("\n")
}

/// One diagnostic, ending in a line feed.
pub fn render(diag: &Diag, sources: &SourceMap, color: Coloring) -> String {
    let (word, tint) = match diag.severity {
        Severity::Error => ("error", Color::Red),
        Severity::Warning => ("warning", Color::Yellow),
    };
    let title = format!("{word}[{}]", diag.code);
    let mut places = labeled(diag, sources);
    let written = places.first().map(|(source, range, _)| source.line_column(range.start));
    let cuts = shortened(&mut places);
    let mut out = match places.first() {
        Some((source, range, _)) => {
            let id = |source: &Arc<Source>| source.base as usize;
            let config = Config::default().with_index_type(IndexType::Byte).with_color(color == Coloring::On);
            let mut report = ariadne::Report::build(ReportKind::Custom(&title, tint), (id(source), range.clone()))
                .with_config(config)
                .with_message(clean(&diag.message));
            // ariadne draws labels of one source together only if they are in order.
            let mut ordered: Vec<(usize, &Place)> = places.iter().enumerate().collect();
            let rank = |place: &Place| places.iter().position(|other| other.0.base == place.0.base);
            order::by_key(&mut ordered, |(_, place)| (rank(place), place.1.start, place.1.end));
            for (index, (source, range, text)) in ordered {
                let tint = if index == 0 { tint } else { Color::Blue };
                let label = ariadne::Label::<Span>::new((id(source), range.clone())).with_color(tint);
                report.add_label(if text.is_empty() { label } else { label.with_message(clean(text)) });
            }
            // ariadne colors the title in any case.
            let text = drawn(report.finish(), &places, &cuts);
            let text = match (cuts.iter().find(|(base, _)| *base == source.base), written) {
                (Some((_, cut)), Some((line, column))) => text.map(|text| {
                    let shown = cut.text[..range.start].rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
                    text.replacen(&format!("{line}:{shown} "), &format!("{line}:{column} "), 1)
                }),
                // A byte order mark has no column.
                (None, Some((1, column))) if source.text.starts_with('\u{feff}') => {
                    text.map(|text| text.replacen(&format!("1:{} ", column + 1), &format!("1:{column} "), 1))
                }
                _ => text,
            };
            text.map(|text| if color == Coloring::On { merged(&text) } else { without_color(&text) })
        }
        None => None,
    }
    .unwrap_or_else(|| format!("{title}: {}\n", clean(&diag.message)));
    let margin = margin(&without_color(&out));
    for (word, text) in notes(diag, sources) {
        let word = if color == Coloring::On { format!("\x1b[36m{word}\x1b[0m") } else { word.to_string() };
        for (index, line) in text.lines().enumerate() {
            let start = if index == 0 { format!("{word}: ") } else { " ".repeat(without_color(&word).len() + 2) };
            out += &format!("{margin}{start}{}\n", clean(line));
        }
    }
    out
}

/// The texts of places with long lines, cut, by the line that each begins at; the places are those in what is left.
fn shortened(places: &mut [Place]) -> Vec<(u32, Cut)> {
    let mut cuts: Vec<(u32, Cut)> = Vec::new();
    for (source, ..) in places.iter() {
        let labels: Vec<&Range<usize>> =
            places.iter().filter(|(other, ..)| other.base == source.base).map(|(_, range, _)| range).collect();
        if !cuts.iter().any(|(base, _)| *base == source.base)
            && let Some(cut) = long_lines::cut(&source.text, &labels)
        {
            cuts.push((source.base, cut));
        }
    }
    for (source, range, _) in places.iter_mut() {
        if let Some((_, cut)) = cuts.iter().find(|(base, _)| *base == source.base) {
            *range = cut.moved(range.start)..cut.moved(range.end);
        }
    }
    cuts
}

/// The source lines with labels; empty if they cannot be drawn, so that the message is still shown.
fn drawn(report: ariadne::Report<Span>, places: &[Place], cuts: &[(u32, Cut)]) -> Option<String> {
    let mut files: Vec<(usize, String, Rc<Lines>)> = Vec::new();
    for (source, ..) in places {
        if !files.iter().any(|(id, ..)| *id == source.base as usize) {
            let lines = match cuts.iter().find(|(base, _)| *base == source.base) {
                Some((_, cut)) => Rc::new(Lines::from(printable(&cut.text))),
                None => lines(source),
            };
            files.push((source.base as usize, source.name.to_string(), lines));
        }
    }
    let mut bytes = Vec::new();
    report.write(Files(files), &mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    // Rows with only the margin, and the closing rule, only add space.
    let filler = |line: &&str| {
        let plain = without_color(line);
        !matches!(plain.trim(), "" | "│" | "┆") && !plain.starts_with('─')
    };
    Some(text.lines().filter(filler).map(|line| format!("{}\n", line.trim_end())).collect())
}

/// A text in lines, as ariadne wants it.
type Lines = ariadne::Source<String>;

/// The lines of a source; those of the last one are kept, since `check` tells of a text up to thousands of times.
fn lines(source: &Arc<Source>) -> Rc<Lines> {
    thread_local!(static LAST: RefCell<Option<(Arc<Source>, Rc<Lines>)>> = const { RefCell::new(None) });
    LAST.with_borrow_mut(|last| match last {
        Some((of, lines)) if Arc::ptr_eq(of, source) => lines.clone(),
        _ => {
            let lines = Rc::new(Lines::from(printable(&source.text)));
            *last = Some((source.clone(), lines.clone()));
            lines
        }
    })
}

/// The text without color sequences.
fn without_color(text: &str) -> String {
    let mut pieces = text.split('\x1b');
    let first = pieces.next().unwrap_or("").to_string();
    pieces.fold(first, |plain, piece| plain + piece.split_once('m').map_or("", |(_, rest)| rest))
}

/// Neighbors of one style within one pair of sequences; ariadne gives each character its own.
fn merged(text: &str) -> String {
    const NONE: &str = "0";
    let (mut out, mut active, mut wanted) = (String::with_capacity(text.len()), NONE, NONE);
    for (index, piece) in text.split("\x1b[").enumerate() {
        let mut rest = piece;
        if index > 0 {
            (wanted, rest) = piece.split_once('m').unwrap_or((NONE, piece));
        }
        if !rest.is_empty() && wanted != active {
            out += if active == NONE { "" } else { "\x1b[0m" };
            if wanted != NONE {
                out += &format!("\x1b[{wanted}m");
            }
            active = wanted;
        }
        out += rest;
    }
    out + if active == NONE { "" } else { "\x1b[0m" }
}

/// The texts by the line that each begins at.
struct Files(Vec<(usize, String, Rc<Lines>)>);

impl ariadne::Cache<usize> for Files {
    type Storage = String;

    fn fetch(&mut self, id: &usize) -> Result<&Lines, impl std::fmt::Debug> {
        self.0.iter().find(|(base, ..)| base == id).map(|(.., lines)| &**lines).ok_or("a source that is not there")
    }

    fn display<'a>(&self, id: &'a usize) -> Option<impl std::fmt::Display + 'a> {
        self.0.iter().find(|(base, ..)| base == id).map(|(_, name, _)| name.clone())
    }
}

/// A source, bytes of it, and words about them.
pub type Place = (Arc<Source>, Range<usize>, String);

/// Every label in a known source; an operation inside the standard library with both of its positions.
pub fn labeled(diag: &Diag, sources: &SourceMap) -> Vec<Place> {
    let mut out: Vec<Place> = Vec::new();
    let mut add = |site: Site, focus: Focus, keyword: Option<&str>, text: &str| {
        let Some((source, range)) = sources.span(site, focus, keyword) else { return };
        let same = |place: &&mut Place| place.0.base == source.base && place.1 == range;
        match out.iter_mut().find(same) {
            Some(place) if text.is_empty() || place.2 == text => {}
            Some(place) if place.2.is_empty() => place.2 = text.to_string(),
            Some(place) => place.2 = format!("{}; {text}", place.2),
            None => out.push((source.clone(), range, text.to_string())),
        }
    };
    for Label { origin, focus, keyword, text } in &diag.labels {
        if origin.inner.is_none() {
            add(origin.user, *focus, keyword.as_deref(), text);
        } else {
            add(origin.user, Focus::Call, None, text);
            add(origin.inner, *focus, keyword.as_deref(), "at work here, in the standard library");
        }
    }
    out
}

/// What stands under the source lines, each with its leading word.
fn notes(diag: &Diag, sources: &SourceMap) -> Vec<(&'static str, String)> {
    let mut out: Vec<(&str, String)> = diag.notes.iter().map(|note| ("note", note.clone())).collect();
    out.extend(diag.help.iter().map(|help| ("help", help.clone())));
    let count = diag.stack.len();
    for (index, frame) in diag.stack.iter().enumerate() {
        let hidden = count > FRAMES_INNER + FRAMES_OUTER + 1 && index >= FRAMES_INNER && index < count - FRAMES_OUTER;
        if !hidden {
            out.push(("in", called(frame, sources)));
        } else if index == FRAMES_INNER {
            out.push(("in", format!("{} more calls", count - FRAMES_INNER - FRAMES_OUTER)));
        }
    }
    out
}

/// The blanks and bar under the last source line.
fn margin(drawn: &str) -> String {
    let corner = drawn.lines().find_map(|line| line.find('╭').filter(|at| line[..*at].chars().all(|c| c == ' ')));
    match corner {
        Some(width) => format!("{}│ ", " ".repeat(width)),
        None => "   = ".to_string(),
    }
}

/// One line without control characters, which could write anywhere on a terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

/// The same bytes with blanks for characters that move the cursor or that only ariadne treats as line ends.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let keep = matches!(c, '\n' | '\t') || (c == '\r' && characters.peek() == Some(&'\n'));
        if !keep && (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
            out.extend(std::iter::repeat_n(' ', c.len_utf8()));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::code;
    use crate::base::diag::Frame;
    use crate::base::span::Origin;
    use crate::script::source::SourceKind;

    fn add(map: &mut SourceMap, name: &str, text: &str) -> Arc<Source> {
        map.add(SourceKind::File, name, text, &|_| true, crate::script::source::scope::Names::NONE).unwrap().source
    }

    fn at(source: &Source, word: &str) -> Origin {
        Origin::at(source.site(source.text.find(word).unwrap()))
    }

    fn check(diag: &Diag, map: &SourceMap, expected: &str) {
        let shown = render(diag, map, Coloring::Off);
        assert_eq!(shown, expected, "\n{shown}");
    }

    #[test]
    fn as_the_language_page_shows_it() {
        let mut map = SourceMap::new();
        let text =
            "\n\n\n\nlet idx = tensor([3, 11], #{device: \"cuda\"});\n\nlet y = x[idx];\n\nprint(y.sum().item());\n";
        let source = add(&mut map, "lookup.rhai", text);
        let diag =
            crate::base::diag::Diag::error(code::KERNEL_INDEX, "index 11 is out of range for dimension 0 of size 10")
                .label(at(&source, "[idx]"), Focus::Call, "queued here, on cuda:0 stream 0")
                .label(at(&source, "tensor"), Focus::Call, "the index tensor was made here")
                .label(at(&source, "item"), Focus::Call, "noticed here, when its result was needed")
                .note("element 1 of the index; the device and every other tensor are unharmed");
        check(
            &diag,
            &map,
            "\
error[E0401]: index 11 is out of range for dimension 0 of size 10
   ╭─[ lookup.rhai:7:9 ]
 5 │ let idx = tensor([3, 11], #{device: \"cuda\"});
   │           ─────────────────┬────────────────
   │                            ╰────────────────── the index tensor was made here
 7 │ let y = x[idx];
   │         ───┬──
   │            ╰──── queued here, on cuda:0 stream 0
 9 │ print(y.sum().item());
   │               ───┬──
   │                  ╰──── noticed here, when its result was needed
   │ note: element 1 of the index; the device and every other tensor are unharmed
",
        );
    }

    #[test]
    fn wide_text_tabs_and_line_ends_keep_columns() {
        let mut map = SourceMap::new();
        let source = add(&mut map, "wide.rhai", "let 🦀 = 1;\r\n\tlet é = \"日本\" + x;\r\n");
        let diag = crate::base::diag::Diag::error(code::UNKNOWN_VARIABLE, "there is no variable `x`").label(
            at(&source, "x;"),
            Focus::Call,
            "not found",
        );
        check(
            &diag,
            &map,
            "\
error[E0102]: there is no variable `x`
   ╭─[ wide.rhai:2:17 ]
 2 │     let é = \"日本\" + x;
   │                      ┬
   │                      ╰── not found
",
        );
    }

    #[test]
    fn stacks_help_and_other_sources() {
        let mut map = SourceMap::new();
        let inner = map
            .add(
                SourceKind::Std,
                "std/nn.rhai",
                "fn f(x) {\n  x.sum()\n}\n",
                &|_| true,
                crate::script::source::scope::Names::NONE,
            )
            .unwrap()
            .source;
        let user = add(&mut map, "a.rhai", "let y = nn::f(1);\n");
        let mut diag = crate::base::diag::Diag::warning(code::RACE, "a race").help("first\nsecond");
        let origin = Origin { user: user.site(12), inner: inner.site(14) };
        diag = diag.label(origin, Focus::Call, "read here");
        diag.stack.push(Frame { function: "f".into(), call: user.site(12) });
        diag.stack.extend((0..20).map(|_| Frame { function: "a closure".into(), call: Site::NONE }));
        let shown = render(&diag, &map, Coloring::Off);
        assert!(shown.starts_with("warning[E0501]: a race\n"), "{shown}");
        assert!(shown.contains("nn::f(1)") && shown.contains("at work here, in the standard library"), "{shown}");
        assert!(shown.contains("│ help: first\n   │       second\n"), "{shown}");
        assert!(shown.contains("in: `f`, called from a.rhai:1:13\n"), "{shown}");
        assert!(shown.contains("in: 13 more calls\n"), "{shown}");
        assert!(render(&diag, &map, Coloring::On).contains('\x1b'));
    }

    #[test]
    fn colors_are_merged() {
        let text = "\x1b[31ma\x1b[0m\x1b[31mb\x1b[0m c\n\x1b[34md\x1b[0m\x1b[2m\x1b[0m\x1b[34me";
        assert_eq!(merged(text), "\x1b[31mab\x1b[0m c\n\x1b[34mde\x1b[0m");
        assert_eq!(merged("plain"), "plain");
    }

    #[test]
    fn hostile_text_is_drawn_harmlessly() {
        let mut map = SourceMap::new();
        for text in ["\x1b[2J x\u{2028}y\u{85}z\rw", "", "\u{feff}x", "x\n\n\n", "a\tb\u{200d}🦀\u{301}"] {
            let source = add(&mut map, "h.rhai", text);
            for offset in 0..=text.len() + 1 {
                let diag = crate::base::diag::Diag::error(code::SYNTAX, "bad \x1b[31m").label(
                    Origin::at(source.site(offset)),
                    Focus::Expression,
                    "here",
                );
                let shown = render(&diag, &map, Coloring::Off);
                assert!(!shown.contains('\x1b') && shown.contains("E0101"), "{shown:?}");
            }
        }
        let shown = render(&crate::base::diag::Diag::error(code::FILE, "no file").help("look"), &map, Coloring::Off);
        assert_eq!(shown, "error[E0601]: no file\n   = help: look\n");
    }
}

//! Values and diagnostics as the bundles of a notebook: the same thing as plain text, as HTML, as a picture.

use crate::base::diag::Result as Checked;
use crate::files;
use crate::script::Dynamic;
use crate::script::draw::raster::Raster;
use crate::script::draw::terminal::{base64, sized};
use crate::script::error::Error;
use crate::script::inspect::look::Table;
use crate::script::session::handle::Session;
use crate::tools::render::{Coloring, render_error};
use crate::tools::repl::answer;
use serde_json::{Value, json};
use std::fmt::Write;

/// A value as the REPL shows it; tensors also as a table, with what they are above it.
pub fn value(session: &Session, value: &Dynamic) -> Result<Option<Value>, Error> {
    let Some(answer) = answer::of(session, value)? else { return Ok(None) };
    let mut plain = answer.text.clone();
    answer.lines.iter().for_each(|line| plain += &format!("\n    {line}"));
    if answer.lines.is_empty() {
        return Ok(Some(json!({"text/plain": plain})));
    }
    let facts = |line: &String| format!("<div style=\"opacity:0.7\">{}</div>", escaped(line));
    let facts: String = answer.lines.iter().map(facts).collect();
    let html = match session.table(value)? {
        Some(shown) => format!("{facts}{}", table(&shown)),
        None => format!("<pre>{}</pre>{facts}", escaped(&answer.text)),
    };
    Ok(Some(json!({"text/plain": plain, "text/html": html})))
}

/// A table with the indices at its edges; dots where some are left out.
fn table(table: &Table) -> String {
    let gap =
        |indices: &[usize], at: usize| at > 0 && indices.get(at).is_some_and(|&index| index > indices[at - 1] + 1);
    let row = |head: &str, cells: &mut dyn Iterator<Item = String>, cell: &str| {
        let mut text = format!("<tr><th>{head}</th>");
        for (at, content) in cells.enumerate() {
            let dots = if gap(&table.columns, at) { format!("<{cell}>…</{cell}>") } else { String::new() };
            let _ = write!(text, "{dots}<{cell}>{content}</{cell}>");
        }
        text + "</tr>"
    };
    let mut text =
        format!("<table><thead>{}</thead><tbody>", row("", &mut table.columns.iter().map(usize::to_string), "th"));
    for (at, cells) in table.cells.iter().enumerate() {
        if gap(&table.rows, at) {
            let dots = &mut table.columns.iter().map(|_| "…".to_string());
            text += &row("…", dots, "td");
        }
        let head = table.rows.get(at).map(usize::to_string).unwrap_or_default();
        text += &row(&head, &mut cells.iter().map(|cell| escaped(cell)), "td");
    }
    text + "</tbody></table>"
}

/// A picture of `show` or `plot`, and the text in its place. Small ones are enlarged, as in a terminal.
pub fn picture(picture: &Raster, text: &str) -> Checked<Value> {
    let picture = sized(picture);
    let png = files::write_bytes(files::Kind::Png, &files::Value::One(picture.array()?))?;
    Ok(json!({
        "data": {"image/png": base64(&png), "text/plain": text},
        "metadata": {"image/png": {"width": picture.width, "height": picture.height}},
    }))
}

/// A diagnostic with the lines of the cell.
pub fn diagnostic(error: &Error) -> Value {
    let html = format!("<pre>{}</pre>", colored(&render_error(error, Coloring::On)));
    json!({"text/plain": render_error(error, Coloring::Off), "text/html": html})
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text with color sequences of a terminal as HTML.
pub fn colored(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut html = escaped(pieces.next().unwrap_or_default());
    let mut open = false;
    for piece in pieces {
        let (style, rest) = piece.split_once('m').unwrap_or(("", piece));
        if std::mem::take(&mut open) {
            html += "</span>";
        }
        if let Some(css) = css(style) {
            let _ = write!(html, "<span style=\"{css}\">");
            open = true;
        }
        html += &escaped(rest);
    }
    html + if open { "</span>" } else { "" }
}

fn css(style: &str) -> Option<&'static str> {
    Some(match style {
        "1" => "font-weight:bold",
        "2" => "opacity:0.7",
        "31" => "color:#c0392b",
        "33" => "color:#b07d00",
        "34" => "color:#2471a3",
        "36" => "color:#148f77",
        style if style.starts_with("38;5;2") => "opacity:0.7",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> (String, String) {
        let mut session = Session::builder().build().expect("a session");
        let shown = session.enter(1, text).unwrap_or_else(|error| panic!("{text}: {error:#}"));
        let bundle = value(&session, &shown).expect("no error").expect("something to show");
        let part = |name: &str| bundle[name].as_str().unwrap_or_default().to_string();
        (part("text/plain"), part("text/html"))
    }

    #[test]
    fn tensors_are_tables() {
        let (plain, shown) = html("tensor([[1.0, 2.0], [3.0, -4.5]])");
        assert!(plain.starts_with("tensor([[ 1.0000") && plain.ends_with("\n    [2, 2] f32 cpu"), "{plain}");
        assert!(shown.contains("[2, 2] f32 cpu</div>"), "{shown}");
        assert!(shown.contains("<tr><th>1</th><td>3.0000</td><td>-4.5000</td></tr>"), "{shown}");
        let (_, shown) = html("arange(3)");
        assert!(shown.contains("<thead><tr><th></th><th>0</th><th>1</th><th>2</th></tr></thead>"), "{shown}");
        assert!(shown.contains("<tr><th></th><td>0</td><td>1</td><td>2</td></tr>"), "{shown}");
        let (_, shown) = html("complex(tensor([1.0]), tensor([-2.0]))");
        assert!(shown.contains("<td>1.-2.j</td>"), "{shown}");
    }

    #[test]
    fn large_tensors_have_gaps() {
        let (_, shown) = html("arange(10000).reshape([100, 100])");
        assert!(shown.contains("<td>2</td><td>…</td><td>97</td>"), "{shown}");
        assert!(shown.contains("<tr><th>…</th><td>…</td>"), "{shown}");
        assert_eq!(shown.matches("<tr>").count(), 8);
    }

    #[test]
    fn other_values_are_text() {
        assert_eq!(html("1 + 1"), ("2".to_string(), String::new()));
        let (plain, shown) = html("#{w: zeros([2, 1, 1]), name: \"<b>\"}");
        assert!(plain.contains("<b>") && shown.contains("&lt;b&gt;") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("w  [2, 1, 1] f32 cpu"), "{shown}");
        assert!(html("tensor(3)").1.starts_with("<pre>tensor(3)</pre>"));
    }

    #[test]
    fn colors_become_spans() {
        assert_eq!(colored("a\x1b[31m<b>\x1b[0m c"), "a<span style=\"color:#c0392b\">&lt;b&gt;</span> c");
        assert_eq!(colored("\x1b[1mx"), "<span style=\"font-weight:bold\">x</span>");
        assert_eq!(colored("\x1b[9;9mx\x1b"), "x\x1b");
    }

    #[test]
    fn pictures_are_png() {
        let small = Raster::of(2, 1, |x, _| [255 * x as u8; 3]);
        let bundle = picture(&small, "in words").expect("a picture");
        assert!(bundle["data"]["image/png"].as_str().is_some_and(|png| png.starts_with("iVBORw0KGgo")));
        assert_eq!(bundle["data"]["text/plain"], "in words");
        assert_eq!(bundle["metadata"]["image/png"]["width"], 256);
    }
}

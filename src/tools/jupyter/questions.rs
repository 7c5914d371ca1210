//! What editors of cells ask while one types: what can stand at the cursor, what stands there, whether a cell is
//! complete. Positions are in characters.

use super::display::colored;
use crate::script::session::handle::Session;
use crate::tools::render::Coloring;
use crate::tools::repl;
use crate::tools::repl::offers::Offers;
use serde_json::{Value, json};

/// The byte of the cursor; the end of the text unless it is given.
fn cursor(code: &str, request: &Value) -> usize {
    let place = request["cursor_pos"].as_u64().map_or(usize::MAX, |place| place as usize);
    code.char_indices().nth(place).map_or(code.len(), |(at, _)| at)
}

fn code(request: &Value) -> &str {
    request["code"].as_str().unwrap_or_default()
}

/// The reply to `complete_request`.
pub fn complete(session: &Session, offers: &Offers, request: &Value) -> Value {
    let code = code(request);
    let at = cursor(code, request);
    let (start, found) = offers.complete(session, code, at).unwrap_or((at, Vec::new()));
    let matches: Vec<&str> = found.iter().map(|pair| pair.replacement.as_str()).collect();
    let [start, end] = [start, at].map(|at| code[..at].chars().count());
    let typed = |word: &&str| json!({"text": word, "type": kind(word), "start": start, "end": end});
    let types: Vec<Value> = matches.iter().map(typed).collect();
    json!({
        "status": "ok",
        "matches": matches,
        "cursor_start": start,
        "cursor_end": end,
        "metadata": {"_jupyter_types_experimental": types},
    })
}

/// What a completion is, by its end.
fn kind(word: &str) -> &'static str {
    match word {
        word if word.ends_with('(') => "function",
        word if word.ends_with("::") => "module",
        word if word.ends_with(": ") => "param",
        word if word.ends_with('/') => "path",
        _ => "instance",
    }
}

/// The reply to `inspect_request`: what the variable at the cursor is, or what `:help` says of the name there, or of the
/// call around it.
pub fn inspect(session: &Session, request: &Value) -> Value {
    let code = code(request);
    let at = cursor(code, request);
    let around = session.signature(&code[..at]);
    let of_call = around.as_deref().map(|signature| signature.split('(').next().unwrap_or_default());
    let names = [name_at(code, at), of_call];
    let told = |name: &str, color: Coloring| {
        repl::variable(session, name).or_else(|| repl::described(session, color, name).ok())
    };
    let page = |color: Coloring| names.iter().flatten().find_map(|name| told(name, color));
    match (page(Coloring::Off), page(Coloring::On)) {
        (Some(plain), Some(shown)) => {
            let html = format!("<pre>{}</pre>", colored(&shown));
            json!({
                "status": "ok",
                "found": true,
                "data": {"text/plain": plain, "text/html": html},
                "metadata": {},
            })
        }
        _ => json!({"status": "ok", "found": false, "data": {}, "metadata": {}}),
    }
}

/// The name around a byte: `nn::linear`, `x.sum`.
fn name_at(code: &str, at: usize) -> Option<&str> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.');
    let start = code[..at]
        .rfind(|c: char| !inside(c))
        .map_or(0, |before| before + code[before..].chars().next().map_or(0, char::len_utf8));
    // Only as far as the word goes on: of `x.sum.y` at `sum` not the rest.
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let end = code[at..].find(|c: char| !word(c)).map_or(code.len(), |length| at + length);
    let name = code[start..end].trim_matches(['.', ':']);
    name.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(name)
}

/// The reply to `is_complete_request`.
pub fn is_complete(session: &Session, request: &Value) -> Value {
    let code = code(request);
    if repl::is_finished(session, code) {
        return json!({"status": "complete"});
    }
    let last = code.lines().last().unwrap_or_default();
    let indent = last.len() - last.trim_start().len();
    let deeper = if last.trim_end().ends_with(['{', '[', '(']) { 4 } else { 0 };
    json!({"status": "incomplete", "indent": " ".repeat(indent + deeper)})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        let mut session = Session::builder().build().expect("a session");
        drop(session.enter(1, "let size = tensor([1.0]); /// Doubles.\nfn twice(x) { x * 2 }").expect("runs"));
        session
    }

    #[test]
    fn positions_are_in_characters() {
        let code = "let s = \"größe 🦀\"; size.rel";
        let request = json!({"code": code, "cursor_pos": code.chars().count()});
        let reply = complete(&session(), &Offers::new(), &request);
        assert_eq!((&reply["cursor_start"], &reply["cursor_end"]), (&json!(24), &json!(27)));
        let words = reply["matches"].as_array().expect("a list");
        assert!(words.contains(&json!("relu(")), "{reply}");
        assert_eq!(reply["metadata"]["_jupyter_types_experimental"][0]["type"], "function");
        // In the middle, beyond the end, and without a place.
        let reply = complete(&session(), &Offers::new(), &json!({"code": "siz + \"é\"", "cursor_pos": 3}));
        assert_eq!(reply["matches"], json!(["size"]));
        for place in [json!(99), json!(-1), Value::Null] {
            let reply = complete(&session(), &Offers::new(), &json!({"code": "\"é\" + s.rel", "cursor_pos": place}));
            assert_eq!(reply["cursor_end"], 11);
        }
    }

    #[test]
    fn commands_are_completed() {
        let reply = complete(&session(), &Offers::new(), &json!({"code": ":pl", "cursor_pos": 3}));
        assert_eq!((&reply["matches"], &reply["cursor_start"]), (&json!(["plan "]), &json!(1)));
    }

    #[test]
    fn names_and_calls_are_inspected() {
        let text = |code: &str, at: usize| {
            let reply = inspect(&session(), &json!({"code": code, "cursor_pos": at, "detail_level": 0}));
            assert_eq!(reply["status"], "ok");
            reply["data"]["text/plain"].as_str().unwrap_or_default().to_string()
        };
        assert!(text("softmax(x, 1)", 3).contains("softmax("));
        assert!(text("size.relu()", 8).contains("relu("));
        assert!(text("twice(3)", 2).contains("twice(x)"));
        assert!(text("size", 4).contains("[1] f32 cpu"));
        assert!(text("nn::linear(2, ", 14).contains("linear("));
        assert_eq!(text("nothing_like_it", 3), "");
        assert_eq!(text("", 0), "");
        let shown = inspect(&session(), &json!({"code": "sum", "cursor_pos": 3}));
        assert!(shown["data"]["text/html"].as_str().is_some_and(|html| html.starts_with("<pre>")));
    }

    #[test]
    fn unfinished_cells_are_indented() {
        let status = |code: &str| is_complete(&session(), &json!({"code": code}));
        assert_eq!(status("1 + 1"), json!({"status": "complete"}));
        assert_eq!(status(":plan x"), json!({"status": "complete"}));
        assert_eq!(status("for i in 0..3 {"), json!({"status": "incomplete", "indent": "    "}));
        assert_eq!(status("f(1,"), json!({"status": "incomplete", "indent": ""}));
        assert_eq!(status("if x {\n    y("), json!({"status": "incomplete", "indent": "        "}));
    }
}

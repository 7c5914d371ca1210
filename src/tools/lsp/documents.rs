//! The texts that are open in the client, kept up to date by whole texts or by changed ranges.

use super::protocol::position::{Encoding, Lines};
use super::protocol::uri;
use super::view::View;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

pub struct Document {
    pub text: String,
    pub version: Option<i64>,
    pub path: PathBuf,
    /// What is known of this text, once somebody has asked.
    pub view: Option<Rc<View>>,
}

/// Open texts by their URI.
#[derive(Default)]
pub struct Documents(pub BTreeMap<String, Document>);

impl Documents {
    pub fn open(&mut self, item: &Value) -> Option<String> {
        let name = item["uri"].as_str()?;
        // What is not saved yet has no folder.
        let path = uri::path(name).unwrap_or_else(|| PathBuf::from("untitled.rhai"));
        let text = item["text"].as_str().unwrap_or("").to_string();
        self.0.insert(name.to_string(), Document { text, version: item["version"].as_i64(), path, view: None });
        Some(name.to_string())
    }

    /// Applies changes in their order. False if the text is not open.
    pub fn change(&mut self, name: &str, version: Option<i64>, changes: &Value, encoding: Encoding) -> bool {
        let Some(document) = self.0.get_mut(name) else { return false };
        for change in changes.as_array().into_iter().flatten() {
            let new = change["text"].as_str().unwrap_or("");
            match change.get("range") {
                Some(range) if !range.is_null() => {
                    let bytes = Lines::new(&document.text, encoding).bytes(&document.text, range);
                    document.text.replace_range(bytes, new);
                }
                _ => document.text = new.to_string(),
            }
        }
        document.version = version;
        document.view = None;
        true
    }

    pub fn close(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Something else changed that what is known may rest on.
    pub fn forget_views(&mut self) {
        self.0.values_mut().for_each(|document| document.view = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_apply_in_their_order() {
        let mut documents = Documents::default();
        documents.open(&json!({"uri": "file:///a.rhai", "version": 1, "text": "let \u{1f600} = 1;\r\nx"}));
        let at = |line: u32, from: u32, to: u32, text: &str| json!({"range": {"start": {"line": line, "character": from}, "end": {"line": line, "character": to}}, "text": text});
        let changes = json!([at(0, 4, 6, "y"), at(0, 8, 9, "2"), at(1, 0, 1, "print(y);")]);
        assert!(documents.change("file:///a.rhai", Some(2), &changes, Encoding::Utf16));
        assert_eq!(documents.0["file:///a.rhai"].text, "let y = 2;\r\nprint(y);");
        assert!(documents.change("file:///a.rhai", Some(3), &json!([{"text": "new"}]), Encoding::Utf16));
        assert_eq!(documents.0["file:///a.rhai"].text, "new");
        assert!(!documents.change("file:///b.rhai", Some(3), &json!([]), Encoding::Utf16));
    }
}

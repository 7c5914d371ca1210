//! The beginning of a session: what the client can, what the server can, and settings.

use super::completion::Shows;
use super::execute::{CHECK_FOLDER, RUN, TEST};
use super::protocol::position::Encoding;
use super::protocol::uri;
use super::semantic;
use crate::script::format::WIDTH;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What the user can turn off, or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Inlay hints of shapes.
    pub shapes: bool,
    /// Inlay hints of parameter names.
    pub parameter_names: bool,
    /// Characters of a line that is formatted.
    pub width: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { shapes: true, parameter_names: true, width: WIDTH }
    }
}

impl Settings {
    /// `{"inlayHints": {"shapes": false, "parameterNames": false}}`, `{"inlayHints": false}`, `{"format": {"width": 80}}`, or the
    /// same below `tscript`.
    pub fn read(&mut self, settings: &Value) {
        let own = if settings["tscript"].is_object() { &settings["tscript"] } else { settings };
        let hints = &own["inlayHints"];
        if let Some(on) = hints.as_bool() {
            (self.shapes, self.parameter_names) = (on, on);
        }
        self.shapes = hints["shapes"].as_bool().unwrap_or(self.shapes);
        self.parameter_names = hints["parameterNames"].as_bool().unwrap_or(self.parameter_names);
        let width = own["format"]["width"].as_u64().and_then(|width| usize::try_from(width).ok());
        self.width = width.filter(|&width| width > 0).unwrap_or(self.width);
    }
}

/// What the client can.
#[derive(Clone, Default)]
pub struct Client {
    pub encoding: Encoding,
    pub shows: Shows,
    /// It asks for diagnostics itself.
    pub pulls: bool,
    /// It shows how far work is.
    pub progress: bool,
    /// It can be asked to watch files.
    pub watches: bool,
    /// It can be asked to show hints anew.
    pub refreshes: bool,
}

impl Client {
    pub fn read(params: &Value) -> Client {
        let can = &params["capabilities"];
        let is = |value: &Value| value.as_bool().unwrap_or(false);
        Client {
            encoding: Encoding::chosen(&can["general"]["positionEncodings"]),
            shows: Shows { snippets: is(&can["textDocument"]["completion"]["completionItem"]["snippetSupport"]) },
            pulls: can["textDocument"]["diagnostic"].is_object(),
            progress: is(&can["window"]["workDoneProgress"]),
            watches: is(&can["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"]),
            refreshes: is(&can["workspace"]["inlayHint"]["refreshSupport"]),
        }
    }
}

/// The folders that the client works in.
pub fn folders(params: &Value) -> Vec<PathBuf> {
    let listed = params["workspaceFolders"].as_array();
    let mut found: Vec<PathBuf> =
        listed.into_iter().flatten().filter_map(|folder| uri::path(folder["uri"].as_str()?)).collect();
    if listed.is_none() {
        let root = params["rootUri"].as_str().and_then(uri::path);
        found.extend(root.or_else(|| params["rootPath"].as_str().map(PathBuf::from)));
    }
    found
}

/// The answer to `initialize`.
pub fn answer(client: &Client) -> Value {
    let mut can: Value = serde_json::from_str(CAPABILITIES).unwrap_or_default();
    can["positionEncoding"] = json!(client.encoding.name());
    can["semanticTokensProvider"]["legend"] =
        json!({"tokenTypes": semantic::TYPES, "tokenModifiers": semantic::MODIFIERS});
    can["executeCommandProvider"] = json!({"commands": [RUN, TEST, CHECK_FOLDER]});
    json!({"capabilities": can, "serverInfo": {"name": "tscript", "version": env!("CARGO_PKG_VERSION")}})
}

/// What does not depend on the client. `workspaceDiagnostics` would make Visual Studio Code ask for all files every other second;
/// `tscript.checkFolder` is for when somebody wants them.
const CAPABILITIES: &str = r#"{
    "textDocumentSync": {"openClose": true, "change": 2, "save": true},
    "completionProvider": {"triggerCharacters": [".", ":", "\"", "{", "/"], "resolveProvider": true},
    "signatureHelpProvider": {"triggerCharacters": ["(", ","], "retriggerCharacters": [":", "{"]},
    "hoverProvider": true,
    "definitionProvider": true,
    "referencesProvider": true,
    "documentHighlightProvider": true,
    "documentSymbolProvider": true,
    "workspaceSymbolProvider": true,
    "renameProvider": {"prepareProvider": true},
    "documentFormattingProvider": true,
    "documentRangeFormattingProvider": true,
    "foldingRangeProvider": true,
    "selectionRangeProvider": true,
    "callHierarchyProvider": true,
    "documentLinkProvider": {"resolveProvider": false},
    "inlayHintProvider": {"resolveProvider": false},
    "codeActionProvider": {"codeActionKinds": ["quickfix", "refactor.rewrite"]},
    "codeLensProvider": {"resolveProvider": false},
    "semanticTokensProvider": {"full": {"delta": true}, "range": true},
    "diagnosticProvider": {"identifier": "tscript", "interFileDependencies": true, "workspaceDiagnostics": false},
    "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}}
}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_turn_hints_off() {
        let read = |settings: Value| {
            let mut known = Settings::default();
            known.read(&settings);
            (known.shapes, known.parameter_names)
        };
        assert_eq!(read(json!({})), (true, true));
        assert_eq!(read(json!({"inlayHints": false})), (false, false));
        assert_eq!(read(json!({"tscript": {"inlayHints": {"shapes": false}}})), (false, true));
        let mut known = Settings::default();
        known.read(&json!({"tscript": {"format": {"width": 80}}}));
        known.read(&json!({"format": {"width": 0}}));
        assert_eq!(known.width, 80);
        let can = &answer(&Client::default())["capabilities"];
        assert_eq!(
            (&can["textDocumentSync"]["change"], &can["diagnosticProvider"]["workspaceDiagnostics"]),
            (&json!(2), &json!(false))
        );
    }
}

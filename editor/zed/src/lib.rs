//! Tells Zed how the language server of tscript is started: the program of the settings (`lsp.tscript.binary.path`), else
//! `tscript` on the path.

use zed_extension_api::settings::LspSettings;
use zed_extension_api::{self as zed, serde_json, Command, LanguageServerId, Result, Worktree};

struct Tscript;

impl zed::Extension for Tscript {
    fn new() -> Self {
        Tscript
    }

    fn language_server_command(&mut self, server: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let binary = LspSettings::for_worktree(server.as_ref(), worktree)?.binary;
        let written = binary.as_ref().and_then(|binary| binary.path.clone());
        let command = written.or_else(|| worktree.which("tscript")).ok_or(
            "the program `tscript` is not on the path; `lsp.tscript.binary.path` in the settings names another",
        )?;
        let args = binary.and_then(|binary| binary.arguments).unwrap_or_else(|| vec!["lsp".into()]);
        Ok(Command { command, args, env: worktree.shell_env() })
    }

    /// The section `tscript` of the server: `lsp.tscript.settings` in the settings.
    fn language_server_workspace_configuration(
        &mut self,
        server: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<serde_json::Value>> {
        let settings = LspSettings::for_worktree(server.as_ref(), worktree)?.settings;
        Ok(Some(serde_json::json!({ "tscript": settings.unwrap_or_default() })))
    }
}

zed::register_extension!(Tscript);

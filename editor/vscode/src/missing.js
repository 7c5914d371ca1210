// What is said where the program is not found, with what can be done about it.

import * as vscode from 'vscode';
import * as settings from './settings.js';

const CHOOSE = 'Choose the Program…';
const INSTALL = 'How to Install';
const SETTINGS = 'Open Settings';

/** @param {vscode.ExtensionContext} context */
async function tell(context) {
  const setting = settings.programPath();
  const message =
    setting === ''
      ? 'The program `tscript` is not found: neither in the workspace (target/release, target/debug, .venv, venv) nor on the path.'
      : `The program of the setting \`tscript.path\` is not found: ${setting}`;
  const chosen = await vscode.window.showErrorMessage(message, CHOOSE, INSTALL, SETTINGS);
  if (chosen === CHOOSE) {
    await choose();
  } else if (chosen === INSTALL) {
    await vscode.commands.executeCommand('markdown.showPreview', vscode.Uri.joinPath(context.extensionUri, 'README.md'));
  } else if (chosen === SETTINGS) {
    await vscode.commands.executeCommand('workbench.action.openSettings', 'tscript.path');
  }
}

/** The change of the setting starts the server. */
async function choose() {
  const files = await vscode.window.showOpenDialog({ canSelectMany: false, openLabel: 'Choose', title: 'The program tscript' });
  if (files?.[0]) {
    const section = vscode.workspace.getConfiguration('tscript');
    await section.update('path', files[0].fsPath, vscode.ConfigurationTarget.Global);
  }
}

export { tell };

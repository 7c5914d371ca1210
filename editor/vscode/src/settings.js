// The section `tscript` of the settings.

import * as vscode from 'vscode';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as program from './program.js';

/** @param {vscode.Uri} [of] */
function section(of) {
  return vscode.workspace.getConfiguration('tscript', of);
}

/**
 * The flags that stand behind `tscript run` or `tscript test`.
 * @param {'run' | 'test'} command
 * @param {vscode.Uri} of
 * @returns {string[]}
 */
function flags(command, of) {
  return section(of).get(`${command}.flags`, []);
}

/** @returns {string} */
function programPath() {
  return section().get('path', '');
}

/** What the server is told at its start; later changes come to it as the section `tscript`. */
function ofServer() {
  const { inlayHints, format } = section();
  return { inlayHints, format };
}

/** The program `tscript`, or null. What a folder holds is only run if the folder is trusted. */
function findProgram() {
  const folders = vscode.workspace.isTrusted ? (vscode.workspace.workspaceFolders ?? []) : [];
  return program.find({
    setting: programPath(),
    folders: folders.filter((folder) => folder.uri.scheme === 'file').map((folder) => folder.uri.fsPath),
    env: process.env,
    home: os.homedir(),
    platform: process.platform,
    isProgram,
  });
}

/** @param {string} path */
function isProgram(path) {
  try {
    fs.accessSync(path, fs.constants.X_OK);
    return fs.statSync(path).isFile();
  } catch {
    return false;
  }
}

export { findProgram, flags, ofServer, programPath };

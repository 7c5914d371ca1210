// The beginning and the end of the extension: the server, the commands, the tasks, the tests.

import * as vscode from 'vscode';
import * as missing from './missing.js';
import { Server } from './server.js';
import * as settings from './settings.js';
import { Status } from './status.js';
import { Tasks, execute } from './tasks.js';
import { Testing } from './testing.js';

/** @type {Server | undefined} */
let server;

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  const status = new Status();
  const testing = new Testing();
  server = new Server(status, {
    run: (uri) => execute('run', uri),
    test: (uri, name) => testing.runNamed(uri, name),
  });
  const own = server;
  const restart = async () => {
    const program = settings.findProgram();
    await own.restart(program);
    // What an untrusted folder has of its own is found once it is trusted.
    if (program === null && vscode.workspace.isTrusted) {
      // Not awaited: the message stays until somebody answers.
      void missing.tell(context);
    }
  };
  /** @param {'run' | 'test'} command */
  const ofFile = (command) => (/** @type {vscode.Uri | undefined} */ uri) => {
    const file = uri ?? vscode.window.activeTextEditor?.document.uri;
    return file && execute(command, file);
  };
  context.subscriptions.push(
    status,
    testing,
    vscode.commands.registerCommand('tscript.restartServer', restart),
    vscode.commands.registerCommand('tscript.showOutput', () => own.output.show()),
    vscode.commands.registerCommand('tscript.runFile', ofFile('run')),
    vscode.commands.registerCommand('tscript.testFile', ofFile('test')),
    vscode.tasks.registerTaskProvider('tscript', new Tasks()),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration('tscript.path') && restart()),
  );
  await restart();
}

function deactivate() {
  return server?.dispose();
}

export { activate, deactivate };

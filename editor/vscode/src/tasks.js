// `tscript run`, `test` and `check` as tasks: in a terminal, with their messages in the list of problems.

import * as vscode from 'vscode';
import * as path from 'node:path';
import * as settings from './settings.js';

/** @typedef {{type: 'tscript', command: 'run' | 'test' | 'check', file?: string, args?: string[]}} Definition */

/** @implements {vscode.TaskProvider} */
class Tasks {
  /** What can be done with a whole folder. */
  provideTasks() {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return folders.flatMap((folder) =>
      /** @type {const} */ (['test', 'check']).map((command) => task(folder, { type: 'tscript', command })),
    );
  }

  /** @param {vscode.Task} written */
  resolveTask(written) {
    const scope = typeof written.scope === 'object' ? written.scope : vscode.workspace.workspaceFolders?.[0];
    const made = task(scope, /** @type {Definition} */ (written.definition), written.definition);
    return made;
  }
}

/**
 * A file is run in its own folder, as by the server.
 * @param {vscode.WorkspaceFolder | undefined} folder
 * @param {Definition} definition
 * @param {vscode.TaskDefinition} [same]   the object that the editor knows the task by
 */
function task(folder, definition, same = definition) {
  const { command, file, args = [] } = definition;
  const uri = file === undefined ? folder?.uri : vscode.Uri.file(path.resolve(folder?.uri.fsPath ?? '', file));
  const what = uri === undefined ? '.' : uri.fsPath;
  const flags = command === 'check' || uri === undefined ? [] : settings.flags(command, uri);
  const words =
    command === 'run' ? ['run', ...flags, what, ...(args.length > 0 ? ['--', ...args] : [])] : [command, what, ...flags, ...args];
  const cwd = file === undefined ? what : path.dirname(what);
  const program = settings.findProgram() ?? 'tscript';
  const execution = new vscode.ProcessExecution(program, words, { cwd });
  const name = file === undefined ? command : `${command} ${path.basename(what)}`;
  const made = new vscode.Task(same, folder ?? vscode.TaskScope.Workspace, name, 'tscript', execution, '$tscript');
  made.group = command === 'test' ? vscode.TaskGroup.Test : undefined;
  made.presentationOptions = { clear: true, focus: false, panel: vscode.TaskPanelKind.Dedicated };
  return made;
}

/**
 * Saves a file and runs or tests it.
 * @param {'run' | 'test'} command
 * @param {vscode.Uri} uri
 */
async function execute(command, uri) {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  if (open?.isDirty && !(await open.save())) {
    return;
  }
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  await vscode.tasks.executeTask(task(folder, { type: 'tscript', command, file: uri.fsPath }));
}

export { Tasks, execute };

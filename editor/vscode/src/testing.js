// The tests of `*_test.rhai` files in the editor's list of tests.

import * as vscode from 'vscode';
import { spawn } from 'node:child_process';
import * as path from 'node:path';
import * as outcome from './outcome.js';
import * as settings from './settings.js';

const FILES = '**/*_test.rhai';

class Testing {
  constructor() {
    this.controller = vscode.tests.createTestController('tscript', 'tscript');
    this.controller.resolveHandler = (item) => (item ? this.read(item) : this.findAll());
    this.controller.refreshHandler = () => this.findAll();
    this.controller.createRunProfile('Run', vscode.TestRunProfileKind.Run, (request, stop) => this.run(request, stop), true);
    const watcher = vscode.workspace.createFileSystemWatcher(FILES);
    watcher.onDidCreate((uri) => this.read(this.file(uri)));
    watcher.onDidChange((uri) => this.read(this.file(uri)));
    watcher.onDidDelete((uri) => this.controller.items.delete(uri.toString()));
    // The buttons of a text that is open do not wait until the list is looked at.
    const opened = vscode.workspace.onDidOpenTextDocument((document) => this.opened(document));
    vscode.workspace.textDocuments.forEach((document) => this.opened(document));
    this.parts = [this.controller, watcher, opened];
  }

  dispose() {
    this.parts.forEach((part) => part.dispose());
  }

  /** @param {vscode.TextDocument} document */
  opened(document) {
    if (document.uri.scheme === 'file' && document.fileName.endsWith('_test.rhai')) {
      return this.read(this.file(document.uri));
    }
  }

  async findAll() {
    const files = await vscode.workspace.findFiles(FILES, '**/{target,node_modules}/**');
    await Promise.all(files.map((uri) => this.read(this.file(uri))));
  }

  /**
   * The item of a file.
   * @param {vscode.Uri} uri
   */
  file(uri) {
    const known = this.controller.items.get(uri.toString());
    if (known) {
      return known;
    }
    const item = this.controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri), uri);
    item.canResolveChildren = true;
    this.controller.items.add(item);
    return item;
  }

  /**
   * The functions of a file.
   * @param {vscode.TestItem} item
   */
  async read(item) {
    const uri = /** @type {vscode.Uri} */ (item.uri);
    const text = Buffer.from(await vscode.workspace.fs.readFile(uri)).toString();
    const children = outcome.tests(text).map(({ name, line }) => {
      const child = this.controller.createTestItem(`${item.id}::${name}`, name, uri);
      child.range = new vscode.Range(line, 0, line, 0);
      return child;
    });
    item.children.replace(children);
  }

  /**
   * Runs one test, or all of a file.
   * @param {vscode.Uri} uri
   * @param {string} [name]
   */
  async runNamed(uri, name) {
    const file = this.file(uri);
    await this.read(file);
    const item = name === undefined ? file : file.children.get(`${file.id}::${name}`);
    if (item) {
      const stop = new vscode.CancellationTokenSource();
      await this.run(new vscode.TestRunRequest([item]), stop.token);
    }
  }

  /**
   * Runs the files of what was asked for, one after another.
   * @param {vscode.TestRunRequest} request
   * @param {vscode.CancellationToken} stop
   */
  async run(request, stop) {
    if (request.include === undefined) {
      await this.findAll();
    }
    const run = this.controller.createTestRun(request);
    const asked = request.include ?? [...this.controller.items].map(([, item]) => item);
    const skipped = new Set(request.exclude ?? []);
    const files = new Map();
    for (const item of asked) {
      const file = item.parent ?? item;
      if (!item.parent && item.children.size === 0) {
        await this.read(item);
      }
      const wanted = item.parent ? [item] : [...item.children].map(([, child]) => child);
      files.set(file, [...(files.get(file) ?? []), ...wanted.filter((child) => !skipped.has(child))]);
    }
    for (const [file, wanted] of files) {
      if (!stop.isCancellationRequested) {
        await runFile(run, file, wanted, stop);
      }
    }
    run.end();
  }
}

/**
 * One run of the program, which runs all tests of a file; those that were not asked for are not told.
 * @param {vscode.TestRun} run
 * @param {vscode.TestItem} file
 * @param {vscode.TestItem[]} wanted
 * @param {vscode.CancellationToken} stop
 * @returns {Promise<void>}
 */
function runFile(run, file, wanted, stop) {
  const uri = /** @type {vscode.Uri} */ (file.uri);
  const program = settings.findProgram() ?? 'tscript';
  const args = ['test', uri.fsPath, ...settings.flags('test', uri)];
  const child = spawn(program, args, { cwd: path.dirname(uri.fsPath), env: { ...process.env, NO_COLOR: '1' } });
  stop.onCancellationRequested(() => child.kill());
  wanted.forEach((item) => run.started(item));
  let [out, err] = ['', ''];
  /** @param {string} text */
  const show = (text) => run.appendOutput(text.replace(/\r?\n/g, '\r\n'));
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text;
    show(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
    show(text);
  });
  return new Promise((done) => {
    child.on('error', (error) => {
      wanted.forEach((item) => run.errored(item, new vscode.TestMessage(`${program}: ${error.message}`)));
      done();
    });
    child.on('close', () => {
      tell(run, wanted, out, err);
      done();
    });
  });
}

/**
 * @param {vscode.TestRun} run
 * @param {vscode.TestItem[]} wanted
 * @param {string} out
 * @param {string} err
 */
function tell(run, wanted, out, err) {
  const results = new Map(out.split('\n').flatMap((line) => {
    const found = outcome.result(line);
    return found ? [[found.name, found.passed]] : [];
  }));
  const failures = outcome.failures(err);
  for (const item of wanted) {
    if (results.get(item.label)) {
      run.passed(item);
      continue;
    }
    const failure = failures.get(item.label);
    const message = new vscode.TestMessage(failure?.message ?? (err.trim() || 'the test was not run'));
    if (failure && path.isAbsolute(failure.file)) {
      const place = new vscode.Position(failure.line - 1, failure.column - 1);
      message.location = new vscode.Location(vscode.Uri.file(failure.file), place);
    }
    results.has(item.label) ? run.failed(item, message) : run.errored(item, message);
  }
}

export { Testing };

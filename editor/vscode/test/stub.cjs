// @ts-nocheck: a stand-in has no types.
//
// A stand-in for the module `vscode`, as much of it as the extension and its client use: what they register is kept, and events
// are fired by the test.

const { EventEmitter: Emitter } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL, fileURLToPath } = require('node:url');

class Disposable {
  constructor(dispose = () => {}) {
    this.dispose = dispose;
  }
  static from(...parts) {
    return new Disposable(() => parts.forEach((part) => part.dispose()));
  }
}

class EventEmitter {
  constructor() {
    this.emitter = new Emitter().setMaxListeners(0);
    this.event = (listener, self) => {
      const bound = self ? listener.bind(self) : listener;
      this.emitter.on('event', bound);
      return new Disposable(() => this.emitter.off('event', bound));
    };
  }
  fire(value) {
    this.emitter.emit('event', value);
  }
  dispose() {
    this.emitter.removeAllListeners();
  }
}

class CancellationTokenSource {
  constructor() {
    this.token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() };
  }
  cancel() {}
  dispose() {}
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(start, end, line, character) {
    const places = typeof start === 'number' ? [new Position(start, end), new Position(line, character)] : [start, end];
    [this.start, this.end] = places;
  }
}

class Uri {
  constructor(text) {
    this.text = text;
    this.scheme = text.split(':')[0];
    this.fsPath = this.scheme === 'file' ? fileURLToPath(text) : text;
    this.path = this.fsPath;
  }
  toString() {
    return this.text;
  }
  static file(file) {
    return new Uri(pathToFileURL(file).toString());
  }
  static parse(text) {
    return new Uri(text);
  }
  static joinPath(uri, ...parts) {
    return Uri.file(path.join(uri.fsPath, ...parts));
  }
}

/** A class that keeps what it is made of; its members are whatever is asked for. */
function anything(name) {
  const made = { [name]: class { constructor(...args) { this.args = args; } } }[name];
  return new Proxy(made, {
    get: (of, key, self) => (key in of || typeof key === 'symbol' ? Reflect.get(of, key, self) : `${name}.${key}`),
  });
}

/** An object whose members are, by their names: events, functions that register something, others. */
function space(known, record) {
  return new Proxy(known, {
    get(of, key) {
      if (typeof key === 'symbol' || key in of) {
        return of[key];
      }
      if (key.startsWith('on')) {
        const emitter = new EventEmitter();
        of[key] = Object.assign(emitter.event, { fire: (value) => emitter.fire(value) });
      } else {
        of[key] = (...args) => {
          (record[key] ??= []).push(args);
          return new Disposable();
        };
      }
      return of[key];
    },
  });
}

/** `record` has what was registered and shown, by the function's name. */
function make(config) {
  const record = { commands: new Map(), diagnostics: new Map(), tasks: [], context: new Map(), status: {} };
  const section = (values) => ({ ...values, get: (key, fallback) => key.split('.').reduce((of, part) => of?.[part], values) ?? fallback, update: async () => {} });
  const channel = () => space({ append() {}, appendLine() {}, logLevel: 0, dispose() {} }, record);
  const collection = {
    set: (uri, found) => record.diagnostics.set(uri.toString(), found),
    delete: (uri) => record.diagnostics.delete(uri.toString()),
    clear: () => record.diagnostics.clear(),
    dispose() {},
    has: () => false,
  };
  const known = {
    version: '1.96.0',
    Disposable, EventEmitter, CancellationTokenSource, Position, Range, Uri,
    CancellationError: class extends Error {},
    commands: space({
      registerCommand(name, call) {
        record.commands.set(name, call);
        return new Disposable(() => record.commands.delete(name));
      },
      async executeCommand(name, ...args) {
        name === 'setContext' ? record.context.set(args[0], args[1]) : await record.commands.get(name)?.(...args);
      },
    }, record),
    env: { appName: 'test', language: 'en', appRoot: '' },
    extensions: { all: [], getExtension: () => undefined },
    languages: space({
      createDiagnosticCollection: () => collection,
      createLanguageStatusItem: () => Object.assign(record.status, { dispose() {} }),
      match: (selector, document) => (document.languageId === 'tscript' ? 10 : 0),
    }, record),
    tasks: space({ executeTask: async (task) => record.tasks.push(task) }, record),
    tests: { createTestController: () => ({ items: new Map(), createRunProfile() {}, dispose() {} }) },
    window: space({
      createOutputChannel: channel,
      visibleTextEditors: [],
      activeTextEditor: undefined,
      tabGroups: { all: [], onDidChangeTabGroups: () => new Disposable(), onDidChangeTabs: () => new Disposable() },
      showErrorMessage: async (...args) => void (record.showErrorMessage ??= []).push(args),
    }, record),
    workspace: space({
      isTrusted: true,
      textDocuments: [],
      notebookDocuments: [],
      workspaceFolders: undefined,
      name: undefined,
      getConfiguration: (name) => section(name === 'tscript' ? config : name === undefined ? { tscript: config } : {}),
      getWorkspaceFolder: () => undefined,
      createFileSystemWatcher: () => space({ dispose() {} }, record),
      asRelativePath: (uri) => path.basename(uri.fsPath),
    }, record),
  };
  // A bundle copies the members that are there: all classes and enumerations have to be.
  const types = fs.readFileSync(require.resolve('@types/vscode/index.d.ts'), 'utf8');
  for (const [, name] of types.matchAll(/^\texport (?:abstract )?(?:class|enum) (\w+)/gm)) {
    known[name] ??= anything(name);
  }
  return { vscode: known, record };
}

module.exports = { make };

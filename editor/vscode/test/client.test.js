// The bundle that is shipped, in a stand-in for the editor, with the real program.

import assert from 'node:assert';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { EXTENSION, PROGRAM, SKIP, folder } from './running.js';

const require = createRequire(import.meta.url);
/** @type {{_load: (name: string, ...rest: unknown[]) => unknown}} */
const Module = require('node:module');
/** @type {{make: (config: object) => {vscode: any, record: any}}} */
const { make } = require('./stub.cjs');
const BUNDLE = path.join(EXTENSION, 'dist', 'extension.cjs');
const skip = SKIP || (!fs.existsSync(BUNDLE) && 'there is no bundle: `npm run bundle`');

/**
 * The extension, started.
 * @param {object} config   the settings `tscript`
 */
async function start(config) {
  const { vscode, record } = make(config);
  const load = Module._load;
  Module._load = (name, ...rest) => (name === 'vscode' ? vscode : load(name, ...rest));
  try {
    delete require.cache[BUNDLE];
    const extension = require(BUNDLE);
    const context = { subscriptions: [], extensionUri: vscode.Uri.file(EXTENSION) };
    await extension.activate(context);
    return { extension, vscode, record };
  } finally {
    Module._load = load;
  }
}

/**
 * A text that the editor opens.
 * @param {any} vscode
 * @param {string} text
 */
function open(vscode, text) {
  const uri = vscode.Uri.file(path.join(folder({ 'script.rhai': text }), 'script.rhai'));
  const document = { uri, fileName: uri.fsPath, languageId: 'tscript', version: 1, getText: () => text, isDirty: false, lineCount: text.split('\n').length };
  vscode.workspace.textDocuments.push(document);
  vscode.workspace.onDidOpenTextDocument.fire(document);
  return document;
}

test('the server starts, and answers', { skip }, async () => {
  const { extension, vscode, record } = await start({ path: PROGRAM, inlayHints: { shapes: true } });
  try {
    assert.match(record.status.text, /^tscript \d/);
    assert.equal(record.context.get('tscript.running'), true);
    const document = open(vscode, 'let x = zeros([2, 3]);\nprint(x.sum(#{keepdin: true}));\n');
    const [[, hover]] = record.registerHoverProvider;
    const told = await hover.provideHover(document, new vscode.Position(0, 4), new vscode.CancellationTokenSource().token);
    assert.match(JSON.stringify(told), /\[2, 3\]/);
    const [[, lenses]] = record.registerCodeLensProvider;
    const [lens] = await lenses.provideCodeLenses(document, new vscode.CancellationTokenSource().token);
    await record.commands.get('tscript.run')(...(lens.command?.arguments ?? lens.args[1].arguments));
    const [, , , , execution] = record.tasks[0].args;
    assert.deepEqual(execution.args.slice(0, 2), [PROGRAM, ['run', document.uri.fsPath]]);
  } finally {
    await extension.deactivate();
  }
});

test('the lenses, the palette and the tasks have their commands', { skip }, async () => {
  const { extension, record } = await start({ path: PROGRAM });
  const manifest = JSON.parse(fs.readFileSync(path.join(EXTENSION, 'package.json'), 'utf8'));
  for (const { command } of manifest.contributes.commands) {
    assert.ok(record.commands.has(command), command);
  }
  assert.ok(record.commands.has('tscript.run') && record.commands.has('tscript.test'));
  await extension.deactivate();
  assert.ok(!record.commands.has('tscript.run'), 'the server has ended');
});

test('a program that is missing is told, with what can be done', { skip }, async () => {
  const { extension, record } = await start({ path: '/nowhere/tscript' });
  const [[message, ...buttons]] = record.showErrorMessage;
  assert.match(message, /\/nowhere\/tscript/);
  assert.equal(buttons.length, 3);
  assert.equal(record.status.text, 'tscript is not found');
  await extension.deactivate();
});

test('what is no server is told in the status', { skip }, async () => {
  const { extension, record } = await start({ path: process.execPath });
  assert.equal(record.status.text, 'tscript does not start');
  await extension.deactivate();
});

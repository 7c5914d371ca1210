import assert from 'node:assert';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { EXTENSION, SKIP, folder, run } from './running.js';

const manifest = JSON.parse(fs.readFileSync(path.join(EXTENSION, 'package.json'), 'utf8'));

/**
 * What a problem matcher finds in a text: as the editor does, one pattern a line.
 * @param {string} name
 * @param {string} text
 */
function problems(name, text) {
  /** @type {{pattern: any}} */
  const matcher = manifest.contributes.problemMatchers.find((/** @type {{name: string}} */ one) => one.name === name);
  const patterns = [matcher.pattern].flat();
  const lines = text.split('\n');
  return lines.flatMap((_, first) => {
    const found = patterns.map((pattern, at) => new RegExp(pattern.regexp).exec(lines[first + at] ?? ''));
    if (found.includes(null)) {
      return [];
    }
    const problem = Object.fromEntries(
      patterns.flatMap((pattern, at) =>
        Object.entries(pattern).flatMap(([key, group]) => (typeof group === 'number' ? [[key, found[at]?.[group]]] : [])),
      ),
    );
    return [problem];
  });
}

const WRONG = 'let y = 1;\nprint(nope(2));\n';
const UNUSED = { severity: 'warning', code: 'E0115', message: 'the variable `y` is never used', file: 'b.rhai', line: '1', column: '5' };
const UNKNOWN = { severity: 'error', code: 'E0103', message: 'there is no function `nope`', file: 'b.rhai', line: '2', column: '7' };

test('what `check` prints is found', { skip: SKIP }, () => {
  const here = folder({ 'b.rhai': WRONG });
  assert.deepEqual(problems('tscript', run(['check', 'b.rhai'], here).stderr), [UNUSED, UNKNOWN]);
  const short = run(['check', '--message-format', 'short', 'b.rhai'], here).stdout;
  assert.deepEqual(problems('tscript-short', short), [UNUSED, UNKNOWN]);
});

test('what `run` prints is found, with the script for its file', { skip: SKIP }, () => {
  const here = folder({ 'a b.rhai': 'let x = tensor([1.0]);\nprint(x[5]);\n' });
  const file = path.join(here, 'a b.rhai');
  const [found, ...more] = problems('tscript', run(['run', file], here).stderr);
  assert.deepEqual([found.code, found.file, found.line, found.column], ['E0207', file, '2', '7']);
  assert.deepEqual(more, []);
});

test('the text around messages is none', () => {
  assert.deepEqual(problems('tscript', 'error: no such file\n   ╭─[ a.rhai:1:2 ]\n'), []);
  assert.deepEqual(problems('tscript', 'error[E0101]: text without a place\nmore\n'), []);
});

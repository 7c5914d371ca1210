import assert from 'node:assert';
import { test } from 'node:test';
import { candidates, find } from '../src/program.js';

/** @type {import('../src/program.js').Places} */
const PLACES = {
  setting: '',
  folders: ['/work/a', '/work/b'],
  env: { PATH: '/usr/local/bin::/usr/bin' },
  home: '/home/ada',
  platform: 'linux',
  isProgram: () => false,
};

/**
 * @param {Partial<import('../src/program.js').Places>} some
 * @param {string[]} there
 */
const found = (some, ...there) => find({ ...PLACES, ...some, isProgram: (path) => there.includes(path) });

test('the workspace comes before the path, and a release before a debug build', () => {
  const [path, debug, release] = ['/usr/bin/tscript', '/work/b/target/debug/tscript', '/work/b/target/release/tscript'];
  assert.equal(found({}), null);
  assert.equal(found({}, path), path);
  assert.equal(found({}, path, debug), debug);
  assert.equal(found({}, path, debug, release), release);
  assert.equal(found({}, path, '/work/a/.venv/bin/tscript'), '/work/a/.venv/bin/tscript');
  assert.equal(found({ folders: [] }, '/home/ada/.cargo/bin/tscript'), '/home/ada/.cargo/bin/tscript');
});

test('a setting is the only place', () => {
  assert.equal(found({ setting: '/opt/tscript' }, '/usr/bin/tscript'), null);
  assert.equal(found({ setting: ' /opt/../opt/tscript ' }, '/opt/tscript'), '/opt/tscript');
  assert.equal(found({ setting: '~/bin/ts' }, '/home/ada/bin/ts'), '/home/ada/bin/ts');
  assert.equal(found({ setting: 'ts' }, '/usr/bin/ts', '/work/a/ts'), '/usr/bin/ts');
  assert.equal(found({ setting: 'out/ts' }, '/work/b/out/ts'), '/work/b/out/ts');
  assert.equal(found({ setting: '${workspaceFolder}/../ts' }, '/work/ts'), '/work/ts');
  assert.equal(found({ setting: '${workspaceFolder}/ts', folders: ['/a$&b'] }, '/a$&b/ts'), '/a$&b/ts');
});

test('on Windows', () => {
  /** @type {Partial<import('../src/program.js').Places>} */
  const windows = { platform: 'win32', folders: ['C:\\a'], env: { Path: 'C:\\bin;D:\\x' }, home: 'C:\\ada' };
  const all = candidates({ ...PLACES, ...windows });
  assert.ok(all.includes('C:\\a\\.venv\\Scripts\\tscript.exe'), all.join('\n'));
  assert.ok(all.includes('D:\\x\\tscript.exe') && all.includes('C:\\ada\\.cargo\\bin\\tscript.exe'), all.join('\n'));
  assert.equal(found({ ...windows, setting: 'C:/opt/tscript.exe' }, 'C:\\opt\\tscript.exe'), 'C:\\opt\\tscript.exe');
});

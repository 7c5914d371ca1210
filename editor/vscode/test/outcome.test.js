import assert from 'node:assert';
import path from 'node:path';
import { test } from 'node:test';
import { failures, result, tests } from '../src/outcome.js';
import { SKIP, folder, run } from './running.js';

const TESTS = `import "test" as test;
fn test_good() { test::assert(true); }
fn test_bad() {
    let x = randn([2, 3]);
    x @ x
}
fn helper(x) { x }
fn test_other() { test::assert_equal(1, 2); }
fn test_with(x) { x }
`;

test('the tests of a text', () => {
  const names = [['test_good', 1], ['test_bad', 2], ['test_other', 7]];
  assert.deepEqual(tests(TESTS).map(({ name, line }) => [name, line]), names);
});

test('results and failures of `tscript test`', { skip: SKIP }, () => {
  const here = folder({ 'some_test.rhai': TESTS });
  const file = path.join(here, 'some_test.rhai');
  const { stdout, stderr } = run(['test', file], here);
  const results = stdout.split('\n').map(result).filter((one) => one !== null);
  assert.deepEqual(results.map(({ name, passed }) => [name, passed]), [['test_good', true], ['test_bad', false], ['test_other', false]]);
  const failed = failures(stderr);
  assert.deepEqual([...failed.keys()], ['test_bad', 'test_other']);
  const bad = failed.get('test_bad');
  assert.deepEqual([bad?.file, bad?.line, bad?.column], [file, 5, 7]);
  assert.match(bad?.message ?? '', /^error\[E0201\]: `matmul`/);
  assert.deepEqual([failed.get('test_other')?.line, failed.get('test_other')?.file], [8, file]);
});

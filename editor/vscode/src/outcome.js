// What `tscript test` prints: a line for each test on its output, a message for each failure on its error output.

/** @typedef {{message: string, file: string, line: number, column: number}} Failure */

/**
 * The name and result in `test ./model_test.rhai::test_shape ... ok`.
 * @param {string} line
 * @returns {{name: string, passed: boolean} | null}
 */
function result(line) {
  const found = /^test .*::(\w+) \.\.\. (ok|FAILED)$/.exec(line);
  return found && { name: found[1], passed: found[2] === 'ok' };
}

/**
 * The messages by the test that they are of. Each tells the calls that led to it, the test's own last.
 * @param {string} text
 * @returns {Map<string, Failure>}
 */
function failures(text) {
  /** @type {Map<string, Failure>} */
  const found = new Map();
  for (const message of text.split(/^(?=error\[E\d{4}\])/m)) {
    const place = /^\s*╭─\[ (.+):(\d+):(\d+) \]$/m.exec(message);
    const calls = [...message.matchAll(/^\s*│ in: `(\w+)`, called from/gm)];
    const test = calls.at(-1)?.[1];
    if (place && test) {
      found.set(test, { message: message.trimEnd(), file: place[1], line: Number(place[2]), column: Number(place[3]) });
    }
  }
  return found;
}

/**
 * The tests of a text with their lines, from 0.
 * @param {string} text
 * @returns {{name: string, line: number}[]}
 */
function tests(text) {
  return text.split('\n').flatMap((written, line) => {
    const found = /^(?:private\s+)?fn\s+(test_\w+)\s*\(\s*\)/.exec(written);
    return found ? [{ name: found[1], line }] : [];
  });
}

export { failures, result, tests };

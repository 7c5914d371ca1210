// The program that the tests run: that of TSCRIPT, or what the repository has built.

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { find } from '../src/program.js';

export const EXTENSION = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const ROOT = path.resolve(EXTENSION, '../..');

export const PROGRAM = find({
  setting: process.env.TSCRIPT ?? '',
  folders: [ROOT],
  env: process.env,
  home: os.homedir(),
  platform: process.platform,
  isProgram: fs.existsSync,
});

/** Why the tests that need the program are left out; false where there is one. */
export const SKIP = PROGRAM === null && 'there is no program: `cargo build`, or set TSCRIPT';

/**
 * A new folder with files.
 * @param {Record<string, string>} files
 */
export function folder(files) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tscript-'));
  for (const [name, text] of Object.entries(files)) {
    fs.writeFileSync(path.join(made, name), text);
  }
  return made;
}

/**
 * What the program prints.
 * @param {string[]} args
 * @param {string} cwd
 */
export function run(args, cwd) {
  const { stdout, stderr } = spawnSync(/** @type {string} */ (PROGRAM), args, { cwd, encoding: 'utf8' });
  return { stdout, stderr };
}

// Where the program `tscript` is: the setting, the workspace, the path, the folders of installers.

import * as path from 'node:path';

/**
 * @typedef {object} Places
 * @property {string} setting      the setting `tscript.path`, empty unless given
 * @property {string[]} folders    the workspace's folders, if they are trusted
 * @property {NodeJS.ProcessEnv} env
 * @property {string} home
 * @property {NodeJS.Platform} platform
 * @property {(path: string) => boolean} isProgram   whether a file is there that can be run
 */

/** Where a folder may have its own program: what was built there, and environments of Python. */
const IN_FOLDER = ['target/release', 'target/debug'];
const ENVIRONMENTS = ['.venv', 'venv'];

/** Where `cargo install` and `pip install --user` put it. */
const IN_HOME = ['.cargo/bin', '.local/bin'];

/**
 * The program, or null.
 * @param {Places} places
 * @returns {string | null}
 */
function find(places) {
  const isProgram = places.isProgram;
  return candidates(places).find((candidate) => isProgram(candidate)) ?? null;
}

/**
 * All places in the order in which they are looked at. Of a setting that is given, only its own.
 * @param {Places} places
 */
function candidates(places) {
  const { setting, folders, env, home, platform } = places;
  const to = platform === 'win32' ? path.win32 : path.posix;
  const name = platform === 'win32' ? 'tscript.exe' : 'tscript';
  if (setting.trim() !== '') {
    return ofSetting(setting.trim(), places, to);
  }
  const inFolder = [...IN_FOLDER, ...ENVIRONMENTS.map((folder) => `${folder}/${platform === 'win32' ? 'Scripts' : 'bin'}`)];
  return [
    ...folders.flatMap((folder) => inFolder.map((place) => to.join(folder, place, name))),
    ...search(env, to).map((folder) => to.join(folder, name)),
    ...IN_HOME.map((place) => to.join(home, place, name)),
  ];
}

/**
 * A setting is a path, from the workspace's folders unless it is absolute, or a name that is looked for on the path.
 * @param {string} setting
 * @param {Places} places
 * @param {path.PlatformPath} to
 */
function ofSetting(setting, { folders, env, home }, to) {
  const written = setting.replace(/^~(?=$|[\\/])/, () => home);
  if (written.includes('${workspaceFolder}')) {
    return folders.map((folder) => to.normalize(written.replaceAll('${workspaceFolder}', () => folder)));
  }
  if (to.isAbsolute(written)) {
    return [to.normalize(written)];
  }
  if (/[\\/]/.test(written)) {
    return folders.map((folder) => to.join(folder, written));
  }
  return search(env, to).map((folder) => to.join(folder, written));
}

/**
 * The folders of the path.
 * @param {NodeJS.ProcessEnv} env
 * @param {path.PlatformPath} to
 */
function search(env, to) {
  const list = env.PATH ?? env.Path ?? '';
  return list.split(to.delimiter).filter((folder) => folder !== '');
}

export { find, candidates };

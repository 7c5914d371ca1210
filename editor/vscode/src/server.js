// The language server `tscript lsp`: its start, its end, and what of it is done here.

import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';
import * as settings from './settings.js';

/** The commands of the server's lenses, which run in a terminal here instead of in the server. */
const RUN = 'tscript.run';
const TEST = 'tscript.test';

class Server {
  /**
   * @param {import('./status.js').Status} status
   * @param {{run: (file: vscode.Uri) => unknown, test: (file: vscode.Uri, name?: string) => unknown}} lenses
   */
  constructor(status, lenses) {
    this.status = status;
    this.lenses = lenses;
    this.output = vscode.window.createOutputChannel('tscript', { log: true });
    /** @type {LanguageClient | null} */
    this.client = null;
    /** Starts and ends, one after another. */
    this.last = Promise.resolve();
  }

  /**
   * Ends what runs, and starts a program if there is one.
   * @param {string | null} program
   */
  restart(program) {
    this.last = this.last.then(() => this.end()).then(() => this.start(program));
    return this.last;
  }

  /** @param {string | null} program */
  async start(program) {
    if (program === null) {
      this.status.missing();
      return;
    }
    this.status.starting(program);
    this.client = new LanguageClient('tscript', 'tscript', { command: program, args: ['lsp'] }, this.options());
    try {
      await this.client.start();
      this.status.running(program, this.client.initializeResult?.serverInfo?.version ?? '');
    } catch (error) {
      this.output.error(`${program} lsp: ${error}`);
      this.status.failed(program);
    }
  }

  async end() {
    const client = this.client;
    this.client = null;
    // One that did not start cannot be stopped.
    await client?.dispose().catch(() => {});
  }

  dispose() {
    this.output.dispose();
    return this.end();
  }

  /** @returns {import('vscode-languageclient/node').LanguageClientOptions} */
  options() {
    return {
      documentSelector: [
        { scheme: 'file', language: 'tscript' },
        { scheme: 'untitled', language: 'tscript' },
      ],
      outputChannel: this.output,
      initializationOptions: settings.ofServer(),
      synchronize: { configurationSection: 'tscript' },
      middleware: {
        executeCommand: (command, args, next) => {
          if (command === RUN) {
            return this.lenses.run(vscode.Uri.parse(args[0]));
          }
          if (command === TEST) {
            return this.lenses.test(vscode.Uri.parse(args[0]), args[1]);
          }
          return next(command, args);
        },
      },
    };
  }
}

export { Server };

// The state of the server, beside the name of the language in the status bar.

import * as vscode from 'vscode';

class Status {
  constructor() {
    this.item = vscode.languages.createLanguageStatusItem('tscript.server', { language: 'tscript' });
    this.item.name = 'tscript';
  }

  /** @param {string} program */
  starting(program) {
    this.show('tscript starts', program, vscode.LanguageStatusSeverity.Information);
    this.item.busy = true;
  }

  /**
   * @param {string} program
   * @param {string} version
   */
  running(program, version) {
    this.show(`tscript ${version}`.trim(), program, vscode.LanguageStatusSeverity.Information);
    this.tell(true);
  }

  /** @param {string} program */
  failed(program) {
    this.show('tscript does not start', program, vscode.LanguageStatusSeverity.Error);
    this.item.command = { title: 'Show Output', command: 'tscript.showOutput' };
  }

  missing() {
    this.show('tscript is not found', '', vscode.LanguageStatusSeverity.Error);
    this.item.command = { title: 'Find', command: 'tscript.restartServer' };
  }

  /**
   * @param {string} text
   * @param {string} detail
   * @param {vscode.LanguageStatusSeverity} severity
   */
  show(text, detail, severity) {
    this.tell(false);
    this.item.busy = false;
    this.item.text = text;
    this.item.detail = detail;
    this.item.severity = severity;
    this.item.command = { title: 'Restart', command: 'tscript.restartServer' };
  }

  /**
   * Whether the commands of the server can be called.
   * @param {boolean} running
   */
  tell(running) {
    void vscode.commands.executeCommand('setContext', 'tscript.running', running);
  }

  dispose() {
    this.item.dispose();
  }
}

export { Status };

;;; test.el --- the mode, and Eglot as a client of `tscript lsp'  -*- lexical-binding: t; -*-

;;     emacs --batch -l test.el        after install.sh

;;; Code:

(setq debug-on-error t)
(add-to-list 'load-path (expand-file-name "tscript" (or (getenv "EMACS_FOLDER") "~/.emacs.d")))
(when (getenv "EMACS_FOLDER")
  (setq treesit-extra-load-path (list (expand-file-name "tree-sitter" (getenv "EMACS_FOLDER")))))
(require 'tscript-ts-mode)
(require 'eglot)
(require 'imenu)

(defun expect (what holds &optional told)
  "Say that WHAT is good if it HOLDS; else end with what was TOLD."
  (if holds
      (message "ok - %s" what)
    (message "failed: %s: %S" what told)
    (kill-emacs 1)))

(defun face-of (text)
  "The face at the first TEXT of the buffer."
  (goto-char (point-min))
  (search-forward text)
  (get-text-property (match-beginning 0) 'face))

(defconst script "/// Doubles.
fn double(x) {
2 * x
}

let xs = [
1,
double(2),
];
let y = if xs.len() > 1 {
`a ${double(3):.2f}`
} else {
#{
key: 1,
}
};
print(xs, y, zeros([2]).sum(#{keepdin: true}));
")

(defconst indented "/// Doubles.
fn double(x) {
    2 * x
}

let xs = [
    1,
    double(2),
];
let y = if xs.len() > 1 {
    `a ${double(3):.2f}`
} else {
    #{
        key: 1,
    }
};
print(xs, y, zeros([2]).sum(#{keepdin: true}));
")

(let* ((folder (file-name-as-directory (make-temp-file "tscript" t)))
       (file (concat folder "script.rhai")))
  (with-temp-file file (insert script))
  (find-file file)
  (expect "the mode" (eq major-mode 'tscript-ts-mode) major-mode)
  (expect "the parser" (treesit-parser-list))
  (setq-local treesit-font-lock-level 4)
  (treesit-font-lock-recompute-features)
  (font-lock-ensure)
  (dolist (one '(("Doubles" font-lock-doc-face) ("fn" font-lock-keyword-face) ("double(x)" font-lock-function-name-face)
                 ("2 *" font-lock-number-face) ("print" font-lock-function-call-face) (":.2f" font-lock-escape-face)
                 ("key" font-lock-property-name-face)))
    (expect (format "face of %s" (car one)) (memq (cadr one) (ensure-list (face-of (car one)))) (face-of (car one))))
  (indent-region (point-min) (point-max))
  (expect "indentation" (equal (buffer-string) indented) (buffer-string))
  (expect "index" (assoc "double" (cdr (assoc "Function" (funcall imenu-create-index-function))))
          (funcall imenu-create-index-function))
  (save-buffer)
  (setq eglot-sync-connect 20)
  (call-interactively #'eglot)
  (expect "the server starts" (eglot-current-server))
  (let ((end (+ (float-time) 20)))
    (while (and (null (flymake-diagnostics)) (< (float-time) end))
      (flymake-start)
      (accept-process-output nil 0.1)))
  (let ((told (mapcar #'flymake-diagnostic-text (flymake-diagnostics))))
    (expect "diagnostics" (seq-some (lambda (text) (string-match-p "keepdin" text)) told) told))
  (goto-char (point-min))
  (search-forward "print(xs, y, zeros([2]).")
  (let* ((answer (jsonrpc-request (eglot-current-server) :textDocument/completion (eglot--CompletionParams)))
         (items (append (if (vectorp answer) answer (plist-get answer :items)) nil)))
    (expect "completion" (seq-some (lambda (item) (equal (plist-get item :label) "sum")) items) answer))
  (search-backward "zeros")
  (let ((answer (jsonrpc-request (eglot-current-server) :textDocument/hover (eglot--TextDocumentPositionParams))))
    (expect "hover" (string-match-p "zeros" (format "%S" answer)) answer))
  (goto-char (point-min))
  (search-forward "xs.len() > 1")
  (replace-match "xs.len()>1")
  (eglot-format-buffer)
  (expect "formatting" (string-match-p "xs.len() > 1" (buffer-string)) (buffer-string))
  (eglot-shutdown (eglot-current-server))
  (set-buffer-modified-p nil))

;;; test.el ends here

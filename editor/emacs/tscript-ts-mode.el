;;; tscript-ts-mode.el --- tscript: Rhai with tensors  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "29.1"))
;; Keywords: languages tree-sitter
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Colors, indentation and an index of functions by tree-sitter; the language server `tscript lsp' by Eglot.
;;
;; The parser is compiled by `editor/emacs/install.sh' of the repository.  Then, in the init file:
;;
;;     (add-to-list 'load-path "~/.emacs.d/tscript")
;;     (require 'tscript-ts-mode)
;;     (add-hook 'tscript-ts-mode-hook #'eglot-ensure)

;;; Code:

(require 'treesit)
(eval-when-compile (require 'rx))

(declare-function treesit-parser-create "treesit.c")

(defgroup tscript nil
  "Scripts of tscript."
  :group 'languages)

(defcustom tscript-ts-mode-indent-offset 4
  "Columns of a step."
  :type 'natnum
  :safe #'natnump)

(defcustom tscript-program "tscript"
  "The program, which is the language server, too."
  :type 'string)

(defvar tscript-ts-mode--keywords
  '("as" "break" "catch" "const" "do" "else" "export" "fn" "for" "if" "import" "in" "let" "loop" "private" "return"
    "switch" "throw" "try" "until" "while"))

(defvar tscript-ts-mode--operators
  '("=" "+=" "-=" "*=" "/=" "%=" "**=" "<<=" ">>=" "&=" "|=" "^=" "||" "&&" "==" "!=" "<" "<=" ">" ">=" "??" "|" "^"
    "&" "+" "-" "*" "/" "%" "@" "<<" ">>" "**" "!" ".." "..=" "=>" "!in"))

(defvar tscript-ts-mode--font-lock-settings
  (treesit-font-lock-rules
   :language 'tscript
   :feature 'comment
   '([(line_comment) (block_comment) (shebang)] @font-lock-comment-face
     (doc_comment) @font-lock-doc-face)

   :language 'tscript
   :feature 'string
   '([(string) (raw_string) (template) (character)] @font-lock-string-face)

   :language 'tscript
   :feature 'escape
   :override t
   '((escape_sequence) @font-lock-escape-face
     (format_spec) @font-lock-escape-face)

   :language 'tscript
   :feature 'keyword
   `([,@tscript-ts-mode--keywords (continue_statement)] @font-lock-keyword-face
     (with_expression context: (identifier) @font-lock-keyword-face)
     (with_expression context: (call function: (identifier) @font-lock-keyword-face))
     ((identifier) @font-lock-keyword-face (:match "\\`this\\'" @font-lock-keyword-face)))

   :language 'tscript
   :feature 'definition
   '((function_definition name: (identifier) @font-lock-function-name-face)
     (let_declaration name: (identifier) @font-lock-variable-name-face)
     (const_declaration name: (identifier) @font-lock-constant-face)
     (parameters (identifier) @font-lock-variable-name-face)
     (closure_parameters (identifier) @font-lock-variable-name-face)
     (array_pattern (identifier) @font-lock-variable-name-face)
     (map_pattern (identifier) @font-lock-variable-name-face)
     (pair_pattern (identifier) @font-lock-variable-name-face)
     (rest_pattern (identifier) @font-lock-variable-name-face)
     (for_expression name: (identifier) @font-lock-variable-name-face)
     (import_statement alias: (identifier) @font-lock-constant-face))

   :language 'tscript
   :feature 'constant
   '((boolean) @font-lock-constant-face
     ((identifier) @font-lock-constant-face (:match "\\`[A-Z][A-Z0-9_]*\\'" @font-lock-constant-face)))

   :language 'tscript
   :feature 'number
   '([(integer) (float)] @font-lock-number-face)

   :language 'tscript
   :feature 'function
   '((call function: (identifier) @font-lock-function-call-face)
     (call function: (scoped_identifier name: (identifier) @font-lock-function-call-face))
     (method_call name: (identifier) @font-lock-function-call-face))

   :language 'tscript
   :feature 'property
   '((scoped_identifier path: (identifier) @font-lock-constant-face)
     (member name: (identifier) @font-lock-property-use-face)
     (entry key: (identifier) @font-lock-property-name-face)
     (field_pattern key: (identifier) @font-lock-property-name-face))

   :language 'tscript
   :feature 'operator
   `([,@tscript-ts-mode--operators] @font-lock-operator-face)

   :language 'tscript
   :feature 'bracket
   '(["(" ")" "[" "]" "{" "}" "#{" "?["] @font-lock-bracket-face)

   :language 'tscript
   :feature 'delimiter
   '(["," ";" "::" ":" "." "?."] @font-lock-delimiter-face))
  "Faces by what tree-sitter reads.")

(defvar tscript-ts-mode--indent-rules
  `((tscript
     ((parent-is "source_file") column-0 0)
     ((node-is ,(rx bos (or ")" "]" "}") eos)) standalone-parent 0)
     ((parent-is ,(rx bos (or "string" "raw_string" "template" "block_comment") eos)) no-indent 0)
     ((node-is "else_clause") parent-bol 0)
     ((node-is "catch_clause") parent-bol 0)
     ((parent-is ,(rx bos (or "block" "switch_body" "map" "array" "arguments" "index" "parameters" "parenthesized"
                              "map_pattern" "array_pattern" "interpolation")
                      eos))
      standalone-parent tscript-ts-mode-indent-offset)
     ((parent-is ,(rx bos (or "binary_expression" "method_call" "member" "assignment" "let_declaration"
                              "const_declaration" "return_statement" "closure")
                      eos))
      standalone-parent tscript-ts-mode-indent-offset)
     (no-node parent-bol 0)))
  "Steps as `tscript fmt' makes them.")

(defvar tscript-ts-mode--syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?_ "_" table)
    (modify-syntax-entry ?/ ". 124b" table)
    (modify-syntax-entry ?* ". 23n" table)
    (modify-syntax-entry ?\n "> b" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?` "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (dolist (char '(?+ ?- ?% ?& ?| ?^ ?! ?< ?> ?= ?@ ?? ?. ?# ?$))
      (modify-syntax-entry char "." table))
    table)
  "Characters of scripts.")

(defun tscript-ts-mode--name (node)
  "The name of the function at NODE."
  (treesit-node-text (treesit-node-child-by-field-name node "name") t))

;;;###autoload
(define-derived-mode tscript-ts-mode prog-mode "tscript"
  "Scripts of tscript, read by tree-sitter."
  :syntax-table tscript-ts-mode--syntax-table
  (setq-local comment-start "// ")
  (setq-local comment-end "")
  (setq-local comment-start-skip (rx (or (seq "//" (* (any "/!"))) (seq "/*")) (* blank)))
  (setq-local indent-tabs-mode nil)
  (setq-local electric-indent-chars (append "{}[]()" electric-indent-chars))
  (setq-local compile-command (concat tscript-program " check --message-format short ."))
  (when (treesit-ready-p 'tscript)
    (treesit-parser-create 'tscript)
    (setq-local treesit-font-lock-settings tscript-ts-mode--font-lock-settings)
    (setq-local treesit-font-lock-feature-list
                '((comment definition)
                  (keyword string)
                  (constant escape number function property)
                  (operator bracket delimiter)))
    (setq-local treesit-simple-indent-rules tscript-ts-mode--indent-rules)
    (setq-local treesit-defun-type-regexp (rx bos "function_definition" eos))
    (setq-local treesit-defun-name-function #'tscript-ts-mode--name)
    (setq-local treesit-simple-imenu-settings
                `(("Function" ,(rx bos "function_definition" eos) nil nil)))
    (treesit-major-mode-setup)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.rhai\\'" . tscript-ts-mode))
(add-to-list 'interpreter-mode-alist '("tscript" . tscript-ts-mode))

(defvar eglot-server-programs)
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               `((tscript-ts-mode :language-id "tscript") . ,(lambda (&rest _) (list tscript-program "lsp")))))

(provide 'tscript-ts-mode)

;;; tscript-ts-mode.el ends here

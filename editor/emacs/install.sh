#!/bin/sh
# Installs what Emacs 29 or newer needs for tscript: the mode, and its parser, for which a C compiler is needed. Again, it
# replaces both. The init file names them, as the guide shows.
set -eu
editor=$(cd "$(dirname "$0")/.." && pwd)
emacs=${EMACS_FOLDER:-$HOME/.emacs.d}
mkdir -p "$emacs/tree-sitter" "$emacs/tscript"
cp "$editor/emacs/tscript-ts-mode.el" "$emacs/tscript/"
cd "$editor/tree-sitter-tscript/src"
"${CC:-cc}" -O2 -shared -fPIC -I . -o "$emacs/tree-sitter/libtree-sitter-tscript.so" parser.c scanner.c
echo "$emacs"

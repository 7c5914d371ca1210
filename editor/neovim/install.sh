#!/bin/sh
# Installs what Neovim needs for tscript as a package of its own: colors, the language server, and, where a C compiler is
# found, the parser of tree-sitter. Again, it replaces what is there.
set -eu
editor=$(cd "$(dirname "$0")/.." && pwd)
package=${XDG_DATA_HOME:-$HOME/.local/share}/nvim/site/pack/tscript/start/tscript
rm -rf "$package"
mkdir -p "$package/parser"
cp -R "$editor/vim/." "$editor/neovim/lsp" "$editor/neovim/plugin" "$editor/tree-sitter-tscript/queries" "$package/"
cp "$editor/neovim/ftplugin/tscript.lua" "$package/ftplugin/"
if command -v "${CC:-cc}" > /dev/null; then
  cd "$editor/tree-sitter-tscript/src"
  "${CC:-cc}" -O2 -shared -fPIC -I . -o "$package/parser/tscript.so" parser.c scanner.c
else
  echo "no C compiler: colors are those of Vim" >&2
fi
echo "$package"

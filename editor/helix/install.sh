#!/bin/sh
# Installs what Helix needs for tscript: the language server in `languages.toml`, and the colors, for which a C compiler is
# needed. Again, it replaces the colors.
set -eu
editor=$(cd "$(dirname "$0")/.." && pwd)
config=${XDG_CONFIG_HOME:-$HOME/.config}/helix
mkdir -p "$config/runtime/grammars" "$config/runtime/queries/tscript"
for query in highlights indents injections locals textobjects; do
  sed -f "$editor/helix/captures.sed" "$editor/tree-sitter-tscript/queries/tscript/$query.scm" \
    > "$config/runtime/queries/tscript/$query.scm"
done
cd "$editor/tree-sitter-tscript/src"
"${CC:-cc}" -O2 -shared -fPIC -I . -o "$config/runtime/grammars/tscript.so" parser.c scanner.c
if ! grep -qs '^\[language-server.tscript\]' "$config/languages.toml"; then
  cat "$editor/helix/languages.toml" >> "$config/languages.toml"
fi
echo "$config"

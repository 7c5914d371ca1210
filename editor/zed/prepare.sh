#!/bin/sh
# Writes the extension for Zed into a folder, ~/.local/share/tscript/zed unless given: Zed fetches the grammar by the address
# and the commit of a repository, which are those of this one here. Then, in Zed: "zed: install dev extension", and the folder.
set -eu
zed=$(cd "$(dirname "$0")" && pwd)
out=${1:-${XDG_DATA_HOME:-$HOME/.local/share}/tscript/zed}
root=$(git -C "$zed" rev-parse --show-toplevel)
rev=$(git -C "$zed" rev-parse HEAD)
mkdir -p "$out"
cp -R "$zed/Cargo.toml" "$zed/src" "$zed/languages" "$out/"
sed -e "s|@REPOSITORY@|file://$root|" -e "s|@REV@|$rev|" "$zed/extension.toml" > "$out/extension.toml"
for query in highlights indents injections textobjects; do
  # Zed has another meaning for `@outdent`.
  sed 's/ @outdent//' "$zed/../tree-sitter-tscript/queries/tscript/$query.scm" > "$out/languages/tscript/$query.scm"
done
echo "$out"

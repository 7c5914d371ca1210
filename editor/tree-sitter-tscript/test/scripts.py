#!/usr/bin/env python3
"""Every script of the repository, and every script on its pages, is read without an error: all but those of `refused.txt`,
which are no tscript, and must be errors here too.

usage: scripts.py TREE_SITTER      the program `tree-sitter`
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BLOCK = re.compile(r"^```(?:tscript|rhai)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, check=True, capture_output=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def scripts():
    """Names with texts; the n-th script of a page is `page.md:n`."""
    for name in tracked("*.rhai"):
        yield name, (ROOT / name).read_bytes()
    for page in tracked("*.md"):
        text = (ROOT / page).read_text()
        for count, block in enumerate(BLOCK.findall(text), 1):
            yield f"{page}:{count}", block.encode()


def main():
    program = sys.argv[1]
    refused = set((HERE / "refused.txt").read_text().split())
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for count, (name, text) in enumerate(scripts()):
            path = pathlib.Path(folder, f"{count}.rhai")
            path.write_bytes(text)
            names[str(path)] = name
        paths = pathlib.Path(folder, "paths")
        paths.write_text("\n".join(names) + "\n")
        # Only the files with an error are told.
        command = [program, "parse", "--quiet", "--paths", str(paths)]
        told = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True).stdout
    wrong = {}
    for line in told.splitlines():
        found = re.match(r"(\S+)\s.*?(\((?:ERROR|MISSING).*)", line)
        if found and found.group(1) in names:
            wrong[names[found.group(1)]] = found.group(2)
    missed = refused - set(wrong)
    unknown = set(wrong) - refused
    for name in sorted(unknown):
        print(f"{name}: {wrong[name]}")
    for name in sorted(missed):
        print(f"{name}: is in refused.txt, and has no error")
    if not names:
        print("no script was found")
    print(f"{len(names)} scripts read, {len(unknown) + len(missed)} wrong")
    sys.exit(bool(missed or unknown or not names))


main()

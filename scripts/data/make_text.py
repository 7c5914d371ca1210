"""Writes text.txt from the two public-domain texts of the Canterbury corpus.

Run: python make_text.py FOLDER
FOLDER holds alice29.txt and asyoulik.txt, for example `tests/testdata` of the source archive of the Python
package brotli 1.2. Spacing is made plain (no carriage returns, tabs, trailing or doubled blanks); no word changes.
"""

import pathlib
import re
import sys

folder, here = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent


def read(name):
    text = (folder / name).read_bytes().decode("ascii").replace("\x1a", "").replace("\r", "")
    return text.strip("\n")


alice = re.sub(r"[ \t]+", " ", read("alice29.txt"))
# A speaker's name and the speech are parted by a tab.
play = re.sub(r"^([A-Z][A-Z ]+)\t", r"\1: ", read("asyoulik.txt"), flags=re.M)
play = re.sub(r"[ \t]+", " ", play)
text = "\n\n".join([alice, play])
text = re.sub(r"^ | $", "", text, flags=re.M)
text = re.sub(r"\n{3,}", "\n\n", text) + "\n"
(here / "text.txt").write_text(text, newline="\n")

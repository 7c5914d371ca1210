"""Writes digits.npz: scikit-learn's digits, `x` u8 [1797, 8, 8] with values 0 to 16, `y` i64 [1797].

Run: python make_digits.py
"""

import pathlib

import numpy
from sklearn.datasets import load_digits

digits = load_digits()
x = digits.images.astype(numpy.uint8)
assert (x == digits.images).all() and x.max() == 16
numpy.savez_compressed(pathlib.Path(__file__).parent / "digits.npz", x=x, y=digits.target.astype(numpy.int64))

//! Entries of functions and methods of plain values: numbers, strings, arrays, maps and ranges.

use super::natives::Form::{Function, Of};
use super::natives::{Native, entry};

#[rustfmt::skip]
pub const PLAIN: &[Native] = &[
    entry(Function, "format", "format(value, spec?) -> string",
        "A value as Python's format specifications write it; a text with places in braces takes several: `\"{:.2f}\".format(x)`. Between backticks a colon does the same: `${x:.2f}`.",
        "\"{} of {}: {:.2f}\".format(1, 10, 0.12345)", "1 of 10: 0.12"),
    entry(Function, "str", "str(value) -> string", "The text that `print` shows.", "str(1.5) + \"!\"", "1.5!"),
    entry(Function, "to_json", "to_json(value) -> string", "A value as JSON; tensors as nested lists. `parse_json` reads it.", "to_json(#{lr: 0.5, w: ones([2])})", "{\"lr\":0.5,\"w\":[1.0,1.0]}"),
    entry(Function, "list", "list(values) -> array", "An array of what a range, a string, an array or a tensor holds; the keys of a map.", "list(range(3))", "[0, 1, 2]"),
    entry(Function, "enumerate", "enumerate(values, start?)", "Pairs of a count from 0 and a value: `for (i, x) in enumerate(xs)`; a loader works too.", "enumerate([5, 6])", "[[0, 5], [1, 6]]"),
    entry(Function, "zip", "zip(xs, ys, zs?, ws?)", "The first values of all, then the second ones, as long as all have one: `for (x, y) in zip(xs, ys)`.", "zip([1, 2], [3, 4])", "[[1, 3], [2, 4]]"),
    entry(Function, "range", "range(start, stop?, step?)", "The integers below `stop`, as `0..stop`.", "range(3).map(|i| i * i)", "[0, 1, 4]"),
    entry(Function, "sorted", "sorted(values, compare?)", "An ordered copy of an array.", "sorted([3, 1.5, 2])", "[1.5, 2, 3]"),
    entry(Function, "reversed", "reversed(values)", "A copy of an array from the last element to the first.", "reversed([1, 2, 3])", "[3, 2, 1]"),
    entry(Function, "assert", "assert(condition, message?)", "An error where the condition does not hold.", "assert(1 + 1 == 2)", "()"),
    entry(Of("text"), "strip", "strip(characters?) -> string", "A copy without blanks, or these characters, at both ends.", "\" a \".strip()", "a"),
    entry(Of("text"), "lstrip", "lstrip(characters?) -> string", "A copy without blanks, or these characters, at the start.", "\"xxa\".lstrip(\"x\")", "a"),
    entry(Of("text"), "rstrip", "rstrip(characters?) -> string", "A copy without blanks, or these characters, at the end.", "\"a\\n\".rstrip()", "a"),
    entry(Of("text"), "upper", "upper() -> string", "A copy in capital letters.", "\"abc\".upper()", "ABC"),
    entry(Of("text"), "lower", "lower() -> string", "A copy in small letters.", "\"ABC\".lower()", "abc"),
    entry(Of("text"), "startswith", "startswith(text) -> bool", "Whether a string begins with another, as `starts_with`.", "\"model.pt\".startswith(\"model\")", "true"),
    entry(Of("text"), "endswith", "endswith(text) -> bool", "Whether a string ends with another, as `ends_with`.", "\"model.pt\".endswith(\".npy\")", "false"),
    entry(Of("text"), "join", "join(values) -> string", "The values as one text, the string between them.", "\", \".join([1, 2])", "1, 2"),
    entry(Of("text"), "find", "find(text)", "Where another string begins in a string, or -1; of an array, the first element that a closure accepts.", "\"abc\".find(\"c\")", "2"),
    entry(Of("xs"), "append", "append(value)", "Puts a value at the end of an array; joins another array to it.", "let xs = [1]; xs.append(2.5); xs", "[1, 2.5]"),
    entry(Of("xs"), "extend", "extend(values)", "Joins another array to an array.", "let xs = [1]; xs.extend([2, 3]); xs", "[1, 2, 3]"),
    entry(Of("xs"), "filter", "filter(closure)", "The elements for which a closure is true.", "[1, -2, 3].filter(|x| x > 0)", "[1, 3]"),
    entry(Of("xs"), "retain", "retain(closure)", "Keeps the elements for which a closure is true; gives the others.", "let xs = [1, -2]; xs.retain(|x| x > 0)", "[-2]"),
    entry(Of("xs"), "drain", "drain(closure)", "Takes out the elements for which a closure is true, and gives them.", "let xs = [1, -2]; xs.drain(|x| x > 0)", "[1]"),
    entry(Of("xs"), "some", "some(closure)", "Whether a closure is true for an element.", "[1, -2].some(|x| x < 0)", "true"),
    entry(Of("xs"), "index_of", "index_of(value) -> int", "The first index of a value, or of one that a closure accepts; -1 if there is none.", "[5, 6].index_of(|x| x > 5)", "1"),
    entry(Of("xs"), "map", "map(closure)", "What a closure makes of each element of an array or range.", "(0..3).map(|i| 2 * i)", "[0, 2, 4]"),
    entry(super::natives::Form::Method, "contains", "contains(value)", "Whether an element equals the value, as `value in x`. Waits.", "2 in tensor([1, 2])", "true"),
    entry(Of("m"), "items", "items() -> array", "Keys and values of a map, as an array of pairs.", "#{a: 1}.items()", "[[\"a\", 1]]"),
    entry(Of("m"), "update", "update(other)", "Puts the entries of another map into a map.", "let m = #{a: 1}; m.update(#{b: 2}); m", "#{a: 1, b: 2}"),
    entry(Of("m"), "pop", "pop(key?, default?)", "Takes an entry out of a map, or the element with a number out of an array, and gives it.", "let m = #{a: 1}; m.pop(\"a\")", "1"),
];

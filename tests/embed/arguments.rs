//! Calls of a row with arguments that nobody would give: those of its examples with a few literals exchanged, and ones
//! made from the kinds of its parameters. Most of a call is right, so that what is wrong gets as far as it can.

use super::random::Random;
use tscript::internals::op::row::{CallForm, Default, Kind, Op, Param};

/// What calls are made with. Each tensor of a shape that many operations take; others are odd in one way each.
pub const PRELUDE: &str = "
    let v = tensor([3.0, -1.0, 2.0]); let m = arange(6).reshape([2, 3]).float(); let q = rand([3, 3]);
    let b3 = rand([2, 3, 4]); let im = rand([1, 2, 5, 5]); let vol = rand([1, 2, 4, 4, 4]); let i = tensor([2, 0, 1]);
    let im1 = rand([2, 3, 9]); let mask = m > 2; let i2 = tensor([[0, 1, 2], [2, 1, 0]]);
    let none = zeros([0]); let rows0 = zeros([0, 3]); let cols0 = zeros([3, 0]); let batch0 = rand([2, 0, 3, 3]);
    let im0 = rand([0, 2, 5, 5]); let ch0 = rand([1, 0, 5, 5]); let zero = tensor(2.0); let izero = tensor(1);
    let nan = tensor([0.0, 0.0, 1.0]) / tensor([0.0, 1.0, 0.0]); let big = tensor([1e38, -1e38, 1e-45]);
    let d = rand([2, 3]).double(); let h = rand([2, 3]).half(); let bf = rand([3, 3]).bfloat16();
    let i8 = tensor([-128, 127, 0], #{dtype: \"i8\"}); let u8 = tensor([0, 255, 3], #{dtype: \"u8\"});
    let ibig = tensor([9223372036854775807, -9223372036854775807, 0]); let ineg = tensor([-1, 3, -4]);
    let wide = ones([1]).expand([1000000000000]); let wide2 = ones([3, 1]).expand([3, 1000000000]);
    let iwide = zeros([1], #{dtype: \"i64\"}).expand([10000000000]); let e = ones([1, 3]).expand([2, 3]);
    let t = rand([3, 2]).T; let st = arange(12).float().reshape([4, 3])[[slice(0, 4, 2), 0..3]];
    let lap = arange(6).float().as_strided([4, 3], [1, 1]); let g = rand([2, 3], #{requires_grad: true});
    let gq = rand([3, 3], #{requires_grad: true}); let gim = rand([1, 2, 5, 5], #{requires_grad: true});
    let sing = ones([3, 3]); let deep = ones([1, 1, 1, 1, 1, 1, 1, 1]); let far = rand([2, 3]).to(other);
    let tall = zeros([1000000, 0]); let flat = zeros([0, 1000000000000]);
";

const TENSORS: &[&str] = &[
    "v", "m", "q", "b3", "im", "vol", "i", "im1", "mask", "i2", "none", "rows0", "cols0", "batch0", "im0", "ch0",
    "zero", "izero", "nan", "big", "d", "h", "bf", "i8", "u8", "ibig", "ineg", "wide", "wide2", "iwide", "e", "t",
    "st", "lap", "g", "gq", "gim", "sing", "deep", "far", "tall", "flat",
];

/// Tensors that go together as operands.
const THEMES: &[&[&str]] = &[
    &["m", "m", "d", "h", "e", "t", "st", "g", "mask", "i2", "far"],
    &["v", "v", "i", "nan", "big", "i8", "u8", "ibig", "ineg", "izero"],
    &["q", "q", "bf", "gq", "sing", "q.T"],
    &["b3", "b3", "b3.half()", "b3.transpose(1, 2)", "b3.long()"],
    &["im", "gim", "im", "im.double()", "ch0", "im0"],
    &["vol", "vol[0]", "vol"],
    &["im1", "im1", "im1[0]"],
    &["none", "none", "none.long()", "zeros([0]).bool()"],
    &["rows0", "rows0", "cols0.T", "rows0.long()"],
    &["cols0", "cols0", "rows0.T"],
    &["zero", "izero", "zero", "tensor(true)"],
    &["wide", "wide", "iwide", "wide.half()", "wide > 0"],
    &["wide2", "wide2", "wide2.T", "wide2.long()"],
    &["tall", "flat", "tall.T", "flat.T"],
];

const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "-2",
    "3",
    "5",
    "7",
    "63",
    "64",
    "-65",
    "255",
    "1000",
    "65536",
    "10000000",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967296",
    "1000000000000",
    "4611686018427387904",
    "9223372036854775807",
    "-9223372036854775807",
    "(-9223372036854775807 - 1)",
    "2.0",
    "0.5",
    "()",
    "true",
    "izero",
    "\"1\"",
    "[]",
    "[1]",
];

const FLOATS: &[&str] = &[
    "0.0",
    "-0.0",
    "0.5",
    "1.0",
    "-1.0",
    "1e-45",
    "1e-320",
    "1e38",
    "-1e308",
    "(0.0/0.0)",
    "(1.0/0.0)",
    "(-1.0/0.0)",
    "3",
    "-7",
    "9223372036854775807",
    "()",
    "false",
    "zero",
    "\"x\"",
    "[0.5]",
    "1e19",
];

const WORDS: &[&str] = &[
    "\"\"",
    "\"mean\"",
    "\"sum\"",
    "\"none\"",
    "\"same\"",
    "\"valid\"",
    "\"reflect\"",
    "\"circular\"",
    "\"bilinear\"",
    "\"nearest\"",
    "\"bicubic\"",
    "\"fro\"",
    "\"nuc\"",
    "\"inf\"",
    "\"ij,jk->ik\"",
    "\"...->\"",
    "\"ii\"",
    "\"amax\"",
    "\"tanh\"",
    "\"left\"",
    "\"floor\"",
    "\"trunc\"",
    "1",
    "()",
    "\"\u{0}\u{1f600}\"",
];

const DTYPES: &[&str] =
    &["\"f16\"", "\"bf16\"", "\"f64\"", "\"i8\"", "\"u8\"", "\"bool\"", "\"i64\"", "\"f33\"", "()", "1"];

/// Whether a call is one of the examples' with other literals, or made from parameters.
pub fn call(op: &'static Op, random: &mut Random) -> String {
    if !op.examples.is_empty() && random.below(2) == 0 {
        let example = &op.examples[random.below(op.examples.len())];
        return exchanged(example.code, random);
    }
    made(op, random)
}

fn made(op: &'static Op, random: &mut Random) -> String {
    let theme = THEMES[random.below(THEMES.len())];
    let mut positional = Vec::new();
    let mut keywords = Vec::new();
    let mut named = false;
    for param in op.params {
        let needed = param.default == Default::Required;
        if param.kind == Kind::Ignored || (!needed && random.below(2) == 0) {
            named = true;
            continue;
        }
        // Defaults are given by name more often than in order.
        named |= !needed && random.below(3) > 0;
        let value = value(param, theme, random);
        if named { keywords.push(format!("{}: {value}", param.name)) } else { positional.push(value) }
    }
    let written = if op.inplace && (op.call == CallForm::InPlace || random.once_in(3)) {
        format!("{}_", op.name)
    } else {
        op.name.to_string()
    };
    let method =
        written.ends_with('_') || op.call == CallForm::Method || (op.call == CallForm::Both && random.once_in(3));
    let receiver = (method && op.receiver < positional.len()).then(|| positional.remove(op.receiver));
    if !keywords.is_empty() {
        positional.push(format!("#{{{}}}", keywords.join(", ")));
    }
    let list = positional.join(", ");
    receiver.map_or(format!("{written}({list})"), |receiver| format!("({receiver}).{written}({list})"))
}

fn list(random: &mut Random, of: impl Fn(&mut Random) -> String) -> String {
    let count = [0, 1, 1, 2, 2, 3, 4, 7][random.below(8)];
    let items: Vec<String> = (0..count).map(|_| of(random)).collect();
    format!("[{}]", items.join(", "))
}

fn integer(random: &mut Random) -> String {
    let known = if random.once_in(3) { INTEGERS.len() } else { 8 };
    INTEGERS[random.below(known)].to_string()
}

fn float(random: &mut Random) -> String {
    random.one(FLOATS).to_string()
}

fn tensor(theme: &[&str], random: &mut Random) -> String {
    match random.below(24) {
        0..=15 => random.one(theme).to_string(),
        16..=21 => random.one(TENSORS).to_string(),
        22 => random.one(INTEGERS).to_string(),
        _ => random.one(&["()", "[1.0, 2.0]", "\"x\"", "#{}", "|x| x", "0..3"]).to_string(),
    }
}

fn value(param: &Param, theme: &[&str], random: &mut Random) -> String {
    let integers = |random: &mut Random| list(random, integer);
    match param.kind {
        Kind::Tensor => tensor(theme, random),
        Kind::Operand if random.once_in(4) => float(random),
        Kind::Operand => tensor(theme, random),
        Kind::Tensors | Kind::OptTensors => list(random, |random| tensor(theme, random)),
        Kind::Int | Kind::Dim => integer(random),
        Kind::Float | Kind::NumberOrText => float(random),
        Kind::Number if random.once_in(2) => integer(random),
        Kind::Number => float(random),
        Kind::Bool => random.one(&["true", "false", "1", "()"]).to_string(),
        Kind::DimsOrFlag if random.once_in(3) => "true".to_string(),
        Kind::Axes => format!("[{}, {}]", integers(random), integers(random)),
        Kind::IntsOr(words) if random.once_in(3) => words.first().map_or("\"\"".into(), |word| format!("\"{word}\"")),
        Kind::Floats | Kind::FloatsOrTensors if random.once_in(2) => list(random, float),
        Kind::Floats => float(random),
        Kind::FloatsOrTensors | Kind::IntsOrTensors if random.once_in(2) => {
            list(random, |random| tensor(theme, random))
        }
        Kind::Str(words) if random.below(4) > 0 => format!("\"{}\"", random.one(words)),
        Kind::Str(_) | Kind::Text => random.one(WORDS).to_string(),
        Kind::DType => random.one(DTYPES).to_string(),
        Kind::Device => random.one(&["\"cpu\"", "\"cuda\"", "\"cuda:7\"", "\"\"", "()"]).to_string(),
        _ if random.once_in(3) => integer(random),
        _ => integers(random),
    }
}

/// The text with one to three of its literals exchanged for others.
fn exchanged(text: &str, random: &mut Random) -> String {
    let mut text = text.to_string();
    for _ in 0..=random.below(3) {
        let places = literals(&text);
        if places.is_empty() {
            break;
        }
        let (start, end) = places[random.below(places.len())];
        let old = &text[start..end];
        let new = match old.as_bytes()[0] {
            b'"' => random.one(WORDS).to_string(),
            b't' | b'f' => random.one(&["true", "false", "()", "1"]).to_string(),
            b'[' => random.one(&["[]", "[0]", "none", "wide", "rows0", "m", "[[1.0], [2.0]]", "1", "ibig"]).to_string(),
            _ if old.contains(['.', 'e']) => float(random),
            _ => random.one(INTEGERS).to_string(),
        };
        text.replace_range(start..end, &new);
    }
    text
}

/// Where numbers, texts, truths and innermost lists stand.
fn literals(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'"' => {
                at = text[at + 1..].find('"').map_or(bytes.len(), |end| at + end + 2);
                found.push((start, at));
            }
            b'[' => {
                let end = text[at..].find([']', '(', '#']).map(|end| at + end);
                let inner = end.filter(|&end| bytes[end] == b']' && !text[at + 1..end].contains('['));
                found.extend(inner.map(|end| (start, end + 1)));
                at += 1;
            }
            byte if is_word(byte) => {
                let dotted = |at: usize| byte.is_ascii_digit() && bytes[at] == b'.' && bytes.get(at + 1) != Some(&b'.');
                while at < bytes.len() && (is_word(bytes[at]) || dotted(at)) {
                    at += 1;
                }
                let word = &text[start..at];
                if byte.is_ascii_digit() || ["true", "false"].contains(&word) {
                    found.push((start, at));
                }
            }
            _ => at += 1,
        }
    }
    found
}

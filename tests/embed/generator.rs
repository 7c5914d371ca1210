//! Hostile scripts from bytes: for the tests, where a seed makes the bytes, and for the fuzzer.
//!
//! Half of a script's statements call something real with arguments that nobody would give; the rest builds values
//! that grow, nest, refer to themselves, or change while they are gone over.

/// Choices, made by bytes; zeros when they are used up.
pub struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Choices<'_> {
    pub fn of(bytes: &[u8]) -> Choices<'_> {
        Choices { bytes: bytes.iter() }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 0
    }

    fn number(&mut self, below: usize) -> usize {
        let two = || self.bytes.next().copied().map_or(0, usize::from);
        let mut two = two;
        (two() << 8 | two()) % below
    }

    fn one<'b, T: ?Sized>(&mut self, of: &[&'b T]) -> &'b T {
        of[self.number(of.len())]
    }
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "64",
    "1000",
    "100000",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775807",
    "0.0",
    "-0.5",
    "1e308",
    "-1e308",
    "1e-320",
    "(0.0/0.0)",
    "(1.0/0.0)",
    "4294967296",
    "65536",
];

const VALUES: &[&str] = &[
    "x",
    "y",
    "z",
    "m",
    "e",
    "i8",
    "s",
    "a",
    "d",
    "f",
    "c",
    "()",
    "true",
    "\"\"",
    "\"mean\"",
    "\"cuda:7\"",
    "\"f16\"",
    "[]",
    "[0]",
    "[1, -1]",
    "[[1, 2], [3]]",
    "[x, y]",
    "[x]",
    "#{}",
    "#{dim: 0}",
    "#{dim: 99}",
    "#{dtype: \"f64\"}",
    "0..3",
    "..",
    "|q| q",
    "|q, r| r",
    "|q| throw q",
    "x.shape",
    "'c'",
    "tensor([])",
    "zeros([0, 3])",
    "ones([1, 1, 1])",
    "slice(3, 0, -1)",
    "\"../../etc/passwd\"",
];

const STATEMENTS: &[&str] = &[
    "a.push(a);",
    "a = [a, a];",
    "d[`k${d.len()}`] = d;",
    "d.me = #{me: d};",
    "s += s;",
    "s = `${s}${s}`;",
    "c.set(c);",
    "c.set([c.get(), c]);",
    "c = cell(c);",
    "{ let old = f; f = || old; }",
    "f = f.curry(f);",
    "f = |q| f.call(q);",
    "for v in a { a.push(v); a.pop(); }",
    "a.sort(|p, q| { a.push(1); p - q });",
    "a.sort(|p, q| throw \"no\");",
    "a.map(|v| { a.clear(); v });",
    "a.for_each(|| { this = [this, this]; });",
    "a.retain(|v| { d.clear(); true });",
    "x = x.reshape([-1]);",
    "x += x.clone();",
    "x[0] = x;",
    "x = x.expand([1000, x.numel]);",
    "y = y.reshape([1, -1]).expand([100, y.numel]);",
    "z.requires_grad_(true); z.sum().backward();",
    "let q = z * z; z.add_(1);",
    "eval(\"let t = 1; \" + s);",
    "eval(\"eval(\\\"eval(1)\\\")\");",
    "eval(`[`.pad(200, '['));",
    "import \"nn\" as nn; nn::linear(2, 2).forward(x);",
    "import \"data\" as data; for b in data::loader(data::tensors(x, y), #{batch_size: 1}) { x = b; }",
    "print(a); print(d); print(f); print(c);",
    "print(x);",
    "let n = 0; while n < 50 { n += 1; a = [a]; }",
    "fn_that_is_not(a, d);",
    "switch a { _ => a = 1 }",
    "throw #{a: a, d: d};",
    "sleep(0.001);",
    "x = x.to(\"cuda\");",
    "with_device(\"cuda\", || ones([3]));",
    "x.save(\"/tmp/stolen.npy\");",
    "load(\"/etc/passwd\");",
    "a = parse_json(`[[[[[[1]]]]]]`);",
    "a = a.chunks(1);",
    "s.pad(100000, 'x'); s = s.to_upper();",
    "a.pad(100000, a);",
    "let b = blob(100000, 7); b += b;",
    "a.reduce(|p, q| [p, q, a]);",
    "a = a.drain(|v| true) + a.extract(0, 9999999);",
    "s = s.split(\"\");",
    "s = s.replace(\"x\", s);",
    "d = d + d; d.fill_with(d);",
    "for i in 0..9223372036854775807 { if i > 20 { break } a.push(i); }",
    "for i in range(0, 10, -1) { a = i; }",
    "for r in x { x = r; }",
    "1 / 0;",
    "9223372036854775807 + 1;",
    "2 ** 9999;",
    "1 << 200;",
    "a[99999999999] = 1;",
    "a[-1];",
    "s[0] = 'ß';",
    "d.a.b.c = 1;",
    "timestamp().elapsed;",
];

fn argument(choices: &mut Choices) -> String {
    match choices.number(3) {
        0 => choices.one(NUMBERS).to_string(),
        _ => choices.one(VALUES).to_string(),
    }
}

/// A script that calls functions of these names.
pub fn script(names: &[&str], choices: &mut Choices) -> String {
    let mut text = String::from(
        "let x = arange(6).reshape([2, 3]).float(); let y = tensor([1, 0]); let z = rand([3, 3]); let m = x > 2;
         let e = zeros([0]); let i8 = tensor([1, -128], #{dtype: \"i8\"}); let s = \"text ü\"; let a = [1, 2.0, \"three\"];
         let d = #{k: 1}; let f = |q| q; let c = cell(1);\n",
    );
    while !choices.is_empty() && text.len() < 6000 {
        text.push_str("try { ");
        if choices.number(2) == 0 {
            text.push_str(choices.one(STATEMENTS));
        } else {
            let name = names.get(choices.number(names.len().max(1))).copied().unwrap_or("print");
            let count = choices.number(5);
            let list: Vec<String> = (0..count).map(|_| argument(choices)).collect();
            let keep = ["", "x = ", "a = ", "z = "][choices.number(4)];
            text.push_str(&format!("{keep}{name}({});", list.join(", ")));
        }
        text.push_str(" } catch (error) { }\n");
    }
    text.push_str("print(x); print(z.sum());\n");
    text
}

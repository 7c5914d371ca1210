//! Expressions of a program, as text. Kinds are followed roughly: now and then an operand is of another kind, and what
//! comes of it is an error that all sessions must tell alike.

use super::statements::Maker;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Int,
    Float,
    Bool,
    Text,
    Array,
    Map,
    Closure,
    Any,
}

const KINDS: [Kind; 7] = [Kind::Int, Kind::Float, Kind::Bool, Kind::Text, Kind::Array, Kind::Map, Kind::Closure];

impl Maker {
    pub fn pick(&mut self, of: &[&str]) -> String {
        self.random.one(of).to_string()
    }

    /// An expression of this kind, most of the time.
    pub fn expr(&mut self, kind: Kind, depth: usize) -> String {
        let kind = match kind {
            Kind::Any => KINDS[self.random.below(KINDS.len())],
            _ if self.random.once_in(40) => KINDS[self.random.below(KINDS.len())],
            kind => kind,
        };
        if depth > 0 && self.random.once_in(9) {
            return self.wrapped(kind, depth - 1);
        }
        match kind {
            Kind::Int | Kind::Any => self.int(depth),
            Kind::Float => self.float(depth),
            Kind::Bool => self.truth(depth),
            Kind::Text => self.words(depth),
            Kind::Array => self.array(depth),
            Kind::Map => self.map(depth),
            Kind::Closure => self.closure(depth),
        }
    }

    /// A value in the clothes of control flow, a call or a container.
    fn wrapped(&mut self, kind: Kind, depth: usize) -> String {
        let value = self.expr(kind, depth);
        match self.random.below(15) {
            0 => format!("({value})"),
            1 => format!("if {} {{ {value} }} else {{ {} }}", self.expr(Kind::Bool, depth), self.expr(kind, depth)),
            2 => format!("{{ let t = {value}; t }}"),
            3 => format!("[{value}, {}][0]", self.expr(Kind::Any, depth)),
            4 => format!("#{{k: {value}}}.k"),
            5 => format!("id({value})"),
            6 => format!("(|v| v).call({value})"),
            7 => format!("(() ?? {value})"),
            8 => format!(
                "switch {} {{ 1 => {value}, 3..6 => {value}, _ => {} }}",
                self.expr(Kind::Int, depth),
                self.expr(kind, depth)
            ),
            9 => format!("#{{k: [{value}]}}[\"k\"][-1]"),
            10 => format!("(m0.get(\"zz\", {value}))"),
            11 => format!("{{ if i0 == {} {{ i0 += 1; }} {value} }}", self.random.below(5)),
            12 => format!("({}.zz ?? {value})", self.pick(&["m0", "m0.c", "m1"])),
            13 => format!("two({value}, {})", self.expr(Kind::Any, depth)),
            _ => format!("(loop {{ break {value}; }})"),
        }
    }

    fn int(&mut self, depth: usize) -> String {
        if depth == 0 {
            let number = self.random.below(9) as i64 - 3;
            return match self.random.below(9) {
                0 if self.in_method => self.pick(&["this", "this.a", "this[0]", "this.len()", "this.c.d"]),
                0 => format!("({number})"),
                1 | 2 => self.random.below(6).to_string(),
                3 => self.pick(&["K", "a0[0]", "a0[-1]", "m0.a", "m0.c.d", "a0.len()", "m1.n", "L[1]", "global::G"]),
                _ => self.local(Kind::Int),
            };
        }
        let depth = depth - 1;
        match self.random.below(17) {
            0..=5 => {
                let op = self.pick(&["+", "-", "*", "+", "-", "/", "%", "<<", ">>", "&", "|", "^"]);
                format!("({} {op} {})", self.expr(Kind::Int, depth), self.expr(Kind::Int, depth))
            }
            6 => format!("-{}", self.expr(Kind::Int, 0)),
            7 => format!("{}[{}]", self.array_place(), self.expr(Kind::Int, depth)),
            8 => format!("{}.len()", self.expr(Kind::Array, depth)),
            9 => format!("{}.len()", self.expr(Kind::Text, depth)),
            10 => self.called(depth),
            11 => format!("{}.call({})", self.pick(&["c0", "c0", "c2"]), self.expr(Kind::Int, depth)),
            12 => format!("c1.call({}, {})", self.expr(Kind::Int, depth), self.expr(Kind::Int, depth)),
            13 if self.random.once_in(2) => {
                let callee = self.pick(&["c0", "c2", "[c0, c2][1]", "(|v| v)", "id", "i1", "K", "a0", "m1.add"]);
                format!("{callee}({})", self.expr(Kind::Int, depth))
            }
            13 => format!("m1.add({})", self.expr(Kind::Int, depth)),
            14 => format!("{}.abs()", self.expr(Kind::Int, depth)),
            15 => format!("{}.to_int()", self.expr(Kind::Float, depth)),
            _ => format!(
                "{}.{}(|x| {})",
                self.expr(Kind::Array, depth),
                self.pick(&["find", "index_of"]),
                self.inner(Kind::Bool)
            ),
        }
    }

    /// A call of a function of the program.
    fn called(&mut self, depth: usize) -> String {
        match self.random.below(6) {
            0 => format!("rec({}, {})", self.random.below(5), self.expr(Kind::Int, depth)),
            1 => format!("two({}, {})", self.expr(Kind::Int, depth), self.expr(Kind::Int, depth)),
            2 => format!("{}.meth({})", self.local(Kind::Int), self.expr(Kind::Int, depth)),
            3 => format!("{}.meth({})", self.pick(&["a0", "m0", "a1[0]", "m0.c"]), self.expr(Kind::Int, depth)),
            4 => format!("Fn(\"id\").call({})", self.expr(Kind::Int, depth)),
            _ => format!("fails({})", self.expr(Kind::Int, depth)),
        }
    }

    fn float(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.random.below(4) {
                0 => self.pick(&["0.5", "2.0", "1e300", "PI", "(0.0/0.0)", "-1.5"]),
                _ => self.local(Kind::Float),
            };
        }
        let depth = depth - 1;
        let (a, b) = (self.expr(Kind::Float, depth), self.expr(Kind::Float, depth));
        match self.random.below(7) {
            0..=3 => format!("({a} {} {b})", self.pick(&["+", "-", "*", "/", "%", "**"])),
            4 => format!("({a} + {})", self.expr(Kind::Int, depth)),
            5 => format!("({} * {b})", self.expr(Kind::Int, depth)),
            _ => format!("{a}.{}()", self.pick(&["floor", "sqrt", "abs", "round", "sin"])),
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.pick(&["true", "false", "b0", "i0 > 2", "i1 < 0", "s0 == \"abc\"", "a0.is_empty()"]);
        }
        let depth = depth - 1;
        match self.random.below(10) {
            0..=2 => {
                let kind = [Kind::Int, Kind::Float, Kind::Text, Kind::Int, Kind::Any][self.random.below(5)];
                let op = self.pick(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.expr(kind, depth), self.expr(kind, depth))
            }
            3 => format!("({} && {})", self.expr(Kind::Bool, depth), self.expr(Kind::Bool, depth)),
            4 => format!("({} || {})", self.expr(Kind::Bool, depth), self.expr(Kind::Bool, depth)),
            5 => format!("!{}", self.expr(Kind::Bool, 0)),
            6 => format!("({} in {})", self.expr(Kind::Int, depth), self.expr(Kind::Array, depth)),
            7 => format!("({} in {})", self.expr(Kind::Text, 0), self.expr(Kind::Map, depth)),
            8 => format!(
                "({} {} {})",
                self.expr(Kind::Bool, depth),
                self.pick(&["&", "|", "^", "=="]),
                self.expr(Kind::Bool, depth)
            ),
            _ => format!("{}.contains({})", self.expr(Kind::Array, depth), self.expr(Kind::Int, depth)),
        }
    }

    fn words(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.random.below(3) {
                0 => self.pick(&["\"\"", "\"k\"", "\"a\"", "\"zz\"", "\"é x\"", "'c'"]),
                _ => self.local(Kind::Text),
            };
        }
        let depth = depth - 1;
        match self.random.below(10) {
            0 | 1 => format!("({} + {})", self.expr(Kind::Text, depth), self.expr(Kind::Any, depth)),
            2 | 3 => format!("`<${{{}}}|${{{}}}>`", self.expr(Kind::Any, depth), self.expr(Kind::Any, depth)),
            4 => format!("{}.{}()", self.expr(Kind::Text, depth), self.pick(&["to_upper", "to_lower", "to_string"])),
            5 => format!(
                "{}.sub_string({}, {})",
                self.expr(Kind::Text, depth),
                self.expr(Kind::Int, depth),
                self.random.below(4)
            ),
            6 => format!("{}[{}]", self.local(Kind::Text), self.expr(Kind::Int, depth)),
            7 => format!("type_of({})", self.expr(Kind::Any, depth)),
            8 => format!("({} + {})", self.expr(Kind::Int, depth), self.expr(Kind::Text, depth)),
            _ => format!("{}.to_string()", self.expr(Kind::Any, depth)),
        }
    }

    fn array(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.random.below(4) {
                0 => self.pick(&["[]", "[3, 1, 2]", "a1[0]", "m0.b", "L", "a1[1]"]),
                _ => self.local(Kind::Array),
            };
        }
        let depth = depth - 1;
        match self.random.below(12) {
            0 | 1 => format!("[{}, {}]", self.expr(Kind::Any, depth), self.expr(Kind::Any, depth)),
            2 => format!("{}.map(|x| {})", self.expr(Kind::Array, depth), self.inner(Kind::Int)),
            3 => format!("{}.filter(|x| {})", self.expr(Kind::Array, depth), self.inner(Kind::Bool)),
            4 => format!(
                "[{}.reduce(|s, x| s + {}, {})]",
                self.expr(Kind::Array, depth),
                self.inner(Kind::Int),
                self.random.below(3)
            ),
            5 => format!("({} + {})", self.expr(Kind::Array, depth), self.expr(Kind::Array, depth)),
            6 => format!("({}..{}).to_array()", self.random.below(3), self.random.below(6)),
            7 => format!("{}.keys()", self.expr(Kind::Map, depth)),
            8 => format!("{}.values()", self.expr(Kind::Map, depth)),
            9 => format!("sorted({})", self.expr(Kind::Array, depth)),
            10 => format!("{}.split({})", self.expr(Kind::Text, depth), self.expr(Kind::Text, 0)),
            _ => format!("[{}, ..{}]", self.random.below(4), self.random.below(4)),
        }
    }

    fn map(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.random.below(4) {
                0 => self.pick(&["#{}", "#{a: 1}", "m0.c"]),
                _ => self.local(Kind::Map),
            };
        }
        let depth = depth - 1;
        match self.random.below(4) {
            0 | 1 => format!("#{{a: {}, k: {}}}", self.expr(Kind::Any, depth), self.expr(Kind::Any, depth)),
            2 => format!("({} + {})", self.expr(Kind::Map, depth), self.expr(Kind::Map, depth)),
            _ => format!("#{{f: {}, b: {}}}", self.expr(Kind::Closure, depth), self.expr(Kind::Array, depth)),
        }
    }

    fn closure(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.pick(&["c0", "c1", "c2", "Fn(\"id\")", "Fn(\"two\")"]);
        }
        let depth = depth - 1;
        match self.random.below(6) {
            0 => format!("|x| {}", self.inner(Kind::Int)),
            1 => {
                let value = self.expr(Kind::Any, depth);
                format!("|x| {{ {} += 1; {value} }}", self.local(Kind::Int))
            }
            2 => format!("c1.curry({})", self.expr(Kind::Int, depth)),
            3 => "|x| { let y = x; |z| y + z }".to_string(),
            4 => format!("|x| {{ if x > {} {{ return {}; }} x }}", self.random.below(4), self.inner(Kind::Any)),
            _ => format!("|x| {{ let f = |y| {{ {} -= y; x + y }}; f.call(x) }}", self.local(Kind::Int)),
        }
    }

    /// Of a closure's parameter `x`.
    fn inner(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Bool => match self.random.below(4) {
                0 => "x > 1".to_string(),
                1 => format!("x != {}", self.local(Kind::Int)),
                2 => "x % 2 == 0".to_string(),
                _ => self.expr(Kind::Bool, 1),
            },
            _ => match self.random.below(5) {
                0 => "x * 2".to_string(),
                1 => format!("x + {}", self.local(Kind::Int)),
                2 => "id(x)".to_string(),
                3 => format!("{{ {} += 1; x }}", self.local(Kind::Int)),
                _ => self.expr(kind, 1),
            },
        }
    }

    /// What an element can be read from or written to.
    pub fn array_place(&mut self) -> String {
        match self.random.below(5) {
            0 => self.pick(&["a1[0]", "m0.b", "a1[1]", "m0[\"b\"]"]),
            1 if self.in_method => self.pick(&["this", "this.b", "this[0]"]),
            _ => self.local(Kind::Array),
        }
    }
}

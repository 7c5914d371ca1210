//! Statements and functions of a program.

use super::expressions::Kind;
use super::program::Line;
use crate::random::Random;

/// Makes a program: the names that are in scope are those of `BEGINNING`, and inside functions their parameters.
pub struct Maker {
    pub random: Random,
    /// Inside a function, where the variables of the text are not seen.
    in_function: bool,
    /// Inside one that is called as a method.
    pub in_method: bool,
    loops: usize,
    /// Numbers of the names that counters of loops have.
    counters: usize,
}

/// What every function begins with, so that the same names are there.
const LOCALS: &str = "let i0 = p; let i1 = 2; let i2 = 5; let f0 = 0.5; let f1 = 3.0; let b0 = false; let s0 = \"fn\"; \
    let s1 = \"ü\"; let a0 = [4, 5]; let a1 = [[7], [8, 9], [1]]; let m0 = #{a: 2, b: [3], c: #{d: 6}}; \
    let m1 = #{n: 1, add: |x| { this.n -= x; this.n }}; let c0 = |x| x - i0; let c1 = |x, y| { i1 -= 1; x - y }; \
    let c2 = |x| x; const K = 5; const L = [4];";

impl Maker {
    pub fn new(seed: u64) -> Maker {
        Maker { random: Random::new(seed), in_function: false, in_method: false, loops: 0, counters: 0 }
    }

    pub fn program(&mut self) -> Vec<Line> {
        let mut lines = vec![
            Line::of("const G = 4; let c2 = |x| x * 10; fn id(v) { v } fn two(a, b) { if a == b { return 0; } a }"),
            Line::of(
                "fn rec(n, x) { if n <= 0 { return x; } rec(n - 1, x + n) + 0 } fn fails(n) { if n > 2 { throw n; } n }",
            ),
        ];
        let meth = self.pick(&["this", "x", "{ this = x; x }", "{ let t = this; x }", "this + x", "type_of(this)"]);
        lines.push(Line::of(format!("fn meth(x) {{ {meth} }}")));
        for number in 0..self.random.below(3) {
            self.in_function = true;
            self.in_method = self.random.once_in(2);
            let body = self.body(3);
            let value = self.expr(Kind::Any, 1);
            let is_method = self.in_method;
            (self.in_function, self.in_method) = (false, false);
            let mut inner = vec![Line::of(LOCALS)];
            inner.extend(body);
            inner.push(Line::of(if self.random.once_in(3) { format!("return {value};") } else { value }));
            lines.push(Line { head: format!("fn f{number}(p) {{"), bodies: vec![(inner, "}".to_string())] });
            let receivers = ["a0.", "m0.", "i0.", "a1[0].", "m0.c.", "m0.b.", "s0.", ""];
            let on = if is_method { self.pick(&receivers) } else { String::new() };
            let argument = self.random.below(5);
            lines.push(Line::of(format!("try {{ print({on}f{number}({argument})); }} catch (e) {{ print(e); }}")));
        }
        for _ in 0..2 + self.random.below(6) {
            let line = self.statement(3);
            // What a statement cannot do is mostly caught, so that the next one runs.
            if self.random.once_in(6) {
                lines.push(line);
            } else {
                let end = self.pick(&[
                    "} catch (e) { print(e); }",
                    "} catch (e) { print(e); print(e.line); }",
                    "} catch (e) { print([e]); }",
                ]);
                lines.push(Line { head: "try {".to_string(), bodies: vec![(vec![line], end)] });
            }
        }
        lines
    }

    /// The name of a variable of this kind.
    pub fn local(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Int => self.pick(&["i0", "i1", "i2"]),
            Kind::Float => self.pick(&["f0", "f1"]),
            Kind::Bool => "b0".to_string(),
            Kind::Text => self.pick(&["s0", "s1"]),
            Kind::Array => self.pick(&["a0", "a0", "a1"]),
            Kind::Map => self.pick(&["m0", "m0", "m1"]),
            Kind::Closure => self.pick(&["c0", "c1", "c2"]),
            Kind::Any => self.pick(&["i0", "s0", "a0", "m0", "f0", "b0"]),
        }
    }

    fn body(&mut self, depth: usize) -> Vec<Line> {
        (0..1 + self.random.below(3)).map(|_| self.statement(depth)).collect()
    }

    fn one_body(&mut self, head: String, depth: usize) -> Line {
        Line { head, bodies: vec![(self.body(depth), "}".to_string())] }
    }

    fn statement(&mut self, depth: usize) -> Line {
        if depth == 0 {
            return Line::of(self.simple());
        }
        let depth = depth - 1;
        match self.random.below(28) {
            0..=9 => Line::of(self.simple()),
            10 | 11 => {
                let head = format!("if {} {{", self.expr(Kind::Bool, 2));
                let yes = self.body(depth);
                if self.random.once_in(2) {
                    return Line { head, bodies: vec![(yes, "}".to_string())] };
                }
                Line { head, bodies: vec![(yes, "} else {".to_string()), (self.body(depth), "}".to_string())] }
            }
            12..=14 => self.repeated(depth),
            15 => {
                // What is caught is shown: the judge must see what Rhai refuses and compiled code does not.
                let end = "} catch (e) { print(e);".to_string();
                let body = self.body(depth);
                let mut handler = self.body(depth);
                if self.random.once_in(3) {
                    let thrown = self.pick(&["throw;", "throw e;", "print(e.line);"]);
                    handler.push(Line::of(thrown));
                }
                Line { head: "try {".to_string(), bodies: vec![(body, end), (handler, "}".to_string())] }
            }
            16 => self.one_body("{".to_string(), depth),
            17 => {
                let value = self.expr(Kind::Int, 2);
                let inner = self.body(depth);
                let guard = self.expr(Kind::Bool, 1);
                let cases =
                    self.pick(&["", "0 if GUARD => print(7), ", "1 | 0 if GUARD => { i0 + 1 }, 1 if !b0 => (), "]);
                let condition = self.pick(&["", "", " if GUARD"]);
                let head = format!("switch {value} {{ {cases}0 | 2{condition} => {{").replace("GUARD", &guard);
                let other =
                    self.pick(&["} 1..5 if b0 => print(5), _ => print(6) }", "} 5..=9 => { print(i0); } }", "} }"]);
                Line { head, bodies: vec![(inner, other)] }
            }
            26 => {
                let text = self.pick(&[
                    "i0 += 1;",
                    "let i0 = 7; let late = [i0]; late.push(b0);",
                    "let a0 = i0; b0 = !b0; a0",
                    "const I0 = i0; let f9 = || I0 + i0; i0 = 3; f9.call()",
                    "if b0 { let i0 = 2; } i0 + nothing",
                    "fn own(x) { x + 1 } own(i0)",
                ]);
                let variable = self.pick(&["print(eval(TEXT));", "eval(TEXT);", "let i9 = eval(TEXT); print(i9);"]);
                Line::of(variable.replace("TEXT", &format!("{text:?}")))
            }
            18 => {
                let inner = self.body(depth);
                let (variable, value) = (self.local(Kind::Any), self.expr(Kind::Any, 1));
                Line { head: format!("{variable} = {{"), bodies: vec![(inner, format!("{value} }};"))] }
            }
            19 => {
                let kind = self.expr(Kind::Closure, 2);
                Line::of(format!("{} = {kind};", self.local(Kind::Closure)))
            }
            20 => self.one_body("no_grad {".to_string(), depth),
            21 if self.loops > 0 => {
                Line::of(self.pick(&["break;", "continue;", "if b0 { break; }", "if i0 > 1 { continue; }"]))
            }
            22 if self.in_function => {
                let value = self.expr(Kind::Any, 1);
                Line::of(format!("if {} {{ return {value}; }}", self.expr(Kind::Bool, 1)))
            }
            24 if self.in_method => {
                let value = self.expr(Kind::Any, 2);
                let write = self.pick(&["this", "this.a", "this[0]", "this.c.d", "this.b[0]", "let t"]);
                Line::of(format!(
                    "{write} {} {value};",
                    if write == "let t" { "=".to_string() } else { self.pick(&["=", "+=", "="]) }
                ))
            }
            23 => {
                let (variable, body) = (self.local(Kind::Int), self.body(depth));
                Line {
                    head: format!("let f = |x| {{ {variable} += x;"),
                    bodies: vec![(body, "x }; print(f.call(1));".to_string())],
                }
            }
            _ => Line::of(self.simple()),
        }
    }

    fn repeated(&mut self, depth: usize) -> Line {
        self.counters += 1;
        let n = self.counters;
        self.loops += 1;
        let line = match self.random.below(9) {
            0 | 1 => {
                let end = self.random.below(5);
                self.one_body(format!("for k{n} in 0..{end} {{ i1 += k{n};"), depth)
            }
            2 if self.random.once_in(3) => {
                let values = self.expr(Kind::Array, 1);
                self.one_body(format!("for [k{n}, ..q{n}] in [{values}, {values}] {{ print(q{n});"), depth)
            }
            2 => {
                let values = self.expr(Kind::Array, 2);
                self.one_body(format!("for k{n} in {values} {{ print(k{n});"), depth)
            }
            3 => {
                let values = self.expr(Kind::Array, 1);
                self.one_body(format!("for (k{n}, q{n}) in {values} {{ i0 += q{n};"), depth)
            }
            4 => {
                let values = self.expr(Kind::Text, 1);
                self.one_body(format!("for k{n} in {values} {{ s1 += k{n};"), depth)
            }
            5 => {
                let condition = self.expr(Kind::Bool, 1);
                self.one_body(format!("let w{n} = 0; while w{n} < 4 && {condition} {{ w{n} += 1;"), depth)
            }
            6 => {
                let body = self.body(depth);
                let end = self.pick(&["while", "until"]);
                let last = if end == "while" { format!("}} while w{n} < 3;") } else { format!("}} until w{n} >= 3;") };
                Line { head: format!("let w{n} = 0; do {{ w{n} += 1;"), bodies: vec![(body, last)] }
            }
            7 => {
                let body = self.body(depth);
                let value = self.expr(Kind::Any, 1);
                let head = format!("let w{n} = 0; let r{n} = loop {{ w{n} += 1; if w{n} > 3 {{ break {value}; }}");
                Line { head, bodies: vec![(body, format!("}}; print(r{n});"))] }
            }
            _ => {
                let values = self.expr(Kind::Map, 1);
                self.one_body(format!("for (k{n}, v{n}) in {values}.items() {{ print(k{n});"), depth)
            }
        };
        self.loops -= 1;
        line
    }

    /// A statement of one line.
    fn simple(&mut self) -> String {
        let any = self.expr(Kind::Any, 2);
        match self.random.below(24) {
            0..=3 => format!("print({any});"),
            4 | 5 => {
                let kind =
                    [Kind::Int, Kind::Float, Kind::Text, Kind::Array, Kind::Map, Kind::Bool][self.random.below(6)];
                format!("{} = {};", self.local(kind), self.expr(kind, 3))
            }
            6 | 7 => {
                let op = self.pick(&["+=", "-=", "*=", "<<=", "&=", "|="]);
                format!("{} {op} {};", self.local(Kind::Int), self.expr(Kind::Int, 2))
            }
            8 => format!("{} += {};", self.local(Kind::Text), self.expr(Kind::Any, 2)),
            9 => format!("{}[{}] = {any};", self.array_place(), self.expr(Kind::Int, 1)),
            10 => {
                let op = self.pick(&["+=", "-=", "*=", "="]);
                format!("{}[{}] {op} {};", self.array_place(), self.expr(Kind::Int, 1), self.expr(Kind::Int, 2))
            }
            11 => {
                let place = self.pick(&[
                    "m0.a",
                    "m0.c.d",
                    "m0[\"a\"]",
                    "m0.c[\"d\"]",
                    "m0.b[0]",
                    "m1.n",
                    "m0.new",
                    "a1[0][1]",
                    "m0.c.e",
                ]);
                let op = self.pick(&["=", "+=", "-=", "*="]);
                format!("{place} {op} {};", self.expr(Kind::Int, 2))
            }
            12 => format!("{}.push({any});", self.array_place()),
            13 => {
                let call = self.pick(&[
                    "pop()",
                    "shift()",
                    "reverse()",
                    "clear()",
                    "sort()",
                    "remove(0)",
                    "insert(1, 9)",
                    "truncate(2)",
                    "drain(0, 1)",
                    "dedup()",
                    "sort(|a, b| a - b)",
                    "retain(|x| x > 1)",
                    "for_each(|x| print(x))",
                ]);
                format!("{}.{call};", self.array_place())
            }
            14 => format!(
                "{}.{};",
                self.local(Kind::Map),
                self.pick(&["remove(\"a\")", "clear()", "set(\"z\", 1)", "mixin(#{a: 5})", "fill_with(#{q: 1})"])
            ),
            15 => format!("let {} = {any};", self.local(Kind::Any)),
            16 => format!("print({}.add({}));", self.pick(&["m1", "m0"]), self.expr(Kind::Int, 1)),
            17 => format!("throw {any};"),
            18 if self.random.once_in(2) => {
                let pattern = self.pick(&[
                    "[i0, s0]",
                    "[_, a0]",
                    "[i0, ..a0]",
                    "#{a: i0}",
                    "#{b: [i1, ..], c: m0}",
                    "[[i0], ..]",
                ]);
                format!("let {pattern} = {any};")
            }
            18 => format!("print(`${{{any}}}`);"),
            19 => format!("print({}?.{});", self.pick(&["m0", "()", "m0.c"]), self.pick(&["a", "d.e", "zz", "len()"])),
            20 => format!("{} = {};", self.pick(&["K", "L", "this", "m0.a", "nosuch"]), any),
            21 => format!(
                "print({});",
                self.pick(&[
                    "nosuch",
                    "i0.nosuch",
                    "i0.nosuch()",
                    "nosuch(1)",
                    "m0.nosuch.x",
                    "a0[99]",
                    "i0[0]",
                    "s0[9]",
                    "f9(1)",
                    "id()",
                    "c0.call()"
                ])
            ),
            22 => {
                let (a, b) = (self.expr(Kind::Any, 1), self.expr(Kind::Any, 1));
                format!("let t{} = tensor([1.0, 2.0]); t{} += {a}; print(t{}); print({b});", 0, 0, 0)
            }
            _ => format!("print([{any}, i0, s0, a0, m0]);"),
        }
    }
}

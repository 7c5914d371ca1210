//! From a program to CUDA text: the straight-line code for one element, as a function over memory-typed structs.
//!
//! The text depends on the program's structure and the views' dtypes alone, never on sizes, scalars or addresses.

use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::headers;
use crate::kernel::program::{Check, Class, Draw, Epilogue, Instr, Program, ReduceKind, Reg};
use std::fmt::Write;

/// The memory type of a dtype in the text.
pub fn memory_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "ts_b8",
        DType::U8 => "ts_u8",
        DType::I8 => "ts_i8",
        DType::I16 => "ts_i16",
        DType::I32 => "ts_i32",
        DType::I64 => "ts_i64",
        DType::F16 => "ts_f16",
        DType::BF16 => "ts_bf16",
        DType::F32 => "ts_f32",
        // Invariant: the engine computes complex numbers by their real parts; no program names their dtypes.
        DType::C64 | DType::C128 => unreachable!("programs compute complex numbers by their real parts"),
        DType::F64 => "ts_f64",
    }
}

fn class_type(class: Class) -> &'static str {
    match class {
        Class::Bool => "bool",
        Class::I64 => "ts_i64",
        Class::F32 => "float",
        Class::F64 => "double",
    }
}

/// The name of a function of `program` that the headers do not define.
pub(super) fn undefined_function(program: &Program) -> Option<&'static str> {
    let epilogue = program.epilogue.iter().flat_map(|epilogue| &epilogue.program.instrs);
    program.instrs.iter().chain(epilogue).find_map(|instr| match instr {
        Instr::Apply { function, .. } if !is_known(function.cuda) => Some(function.name),
        _ => None,
    })
}

pub(super) fn is_known(cuda: &str) -> bool {
    headers().iter().any(|(_, text)| defines(text, cuda))
}

/// Whether the header defines the function that an expression calls, if it calls one.
fn defines(header: &str, cuda: &str) -> bool {
    let Some(start) = cuda.find("ts_") else { return true };
    let name: String = cuda[start..].chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
    header.contains(&format!(" {name}(")) || header.contains(&format!("({name},"))
}

/// One `Reduce` of a program.
pub(super) struct Task {
    /// Its accumulator's type in the text, for example `ts_sum<float>`; none for an extreme value whose position is looked
    /// for too, since that accumulator knows it.
    accumulator: Option<String>,
    kind: ReduceKind,
    /// What is added for an element.
    value: String,
    /// The member or method of the accumulators that is the result.
    pub result: String,
    /// An upper bound of its bytes.
    pub size_bytes: usize,
    pub slot: usize,
}

impl Task {
    /// Whether the result is a position.
    pub fn is_position(&self) -> bool {
        matches!(self.kind, ReduceKind::ArgMin | ReduceKind::ArgMax)
    }

    /// Leaves the extreme value to the accumulator of `other`, if that looks for the position of the same values' extreme.
    fn share(&mut self, other: &Task, at: usize) {
        let pair = matches!(
            (self.kind, other.kind),
            (ReduceKind::Min, ReduceKind::ArgMin) | (ReduceKind::Max, ReduceKind::ArgMax)
        );
        if pair && self.value == other.value && other.accumulator.is_some() {
            (self.accumulator, self.size_bytes, self.result) = (None, 0, format!("t{at}.v"));
        }
    }
}

/// What an epilogue's function `epilogue(g, in, out)` reads and writes, as members `a{slot}` of `struct Results`.
pub(super) struct EpilogueText {
    /// Slots of reductions that it reads.
    pub results: Vec<usize>,
    /// Slots that it reads from memory.
    pub loads: Vec<usize>,
    pub stores: Vec<usize>,
    /// Slots of reductions that it alone reads.
    pub unread: Vec<usize>,
}

/// The parts of a program's text, and what its launches need to know.
pub(super) struct Parts {
    /// `#include` lines.
    pub includes: String,
    /// Slots that are loaded and stored, in order.
    pub loads: Vec<usize>,
    pub stores: Vec<usize>,
    pub tasks: Vec<Task>,
    /// For each entry of the scalar table the class as which it is passed; `None` for raw words.
    pub scalars: Vec<Option<Class>>,
    pub fallible: usize,
    pub positions: bool,
    pub random: bool,
    /// `struct In`, `struct Out`, `element(g, in, pos, out)`, and the epilogue's.
    pub element: String,
    pub epilogue: Option<EpilogueText>,
}

impl Parts {
    /// Slots whose places at the end of a reduction are needed.
    pub fn result_slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.tasks.iter().map(|task| task.slot).collect();
        if let Some(epilogue) = &self.epilogue {
            slots.retain(|slot| !epilogue.unread.contains(slot));
            slots.extend(epilogue.loads.iter().chain(&epilogue.stores));
            slots.sort_unstable();
            slots.dedup();
        }
        slots
    }
}

/// Writes the element function of `program`.
pub(super) fn parts(program: &Program, views: &[RawView], scalar_count: usize) -> Parts {
    let mut w = writer(program, views, scalar_count);
    for instr in &program.instrs {
        w.instr(instr, program);
    }
    let mut parts = w.finish();
    if let Some(epilogue) = &program.epilogue {
        add_epilogue(&mut parts, epilogue, views);
    }
    parts
}

/// Adds the text of the epilogue, one thread's code for one result.
fn add_epilogue(parts: &mut Parts, epilogue: &Epilogue, views: &[RawView]) {
    let program = epilogue.over_all_slots();
    let mut w = writer(&program, views, parts.scalars.len());
    for instr in &program.instrs {
        w.instr(instr, &program);
    }
    let Writer { parts: made, code, special, .. } = w;
    if special && !parts.includes.contains(SPECIAL) {
        parts.includes.push_str(SPECIAL);
    }
    for (scalar, own) in parts.scalars.iter_mut().zip(made.scalars) {
        *scalar = scalar.or(own);
    }
    let mut accessed = [&made.loads[..], &made.stores].concat();
    accessed.sort_unstable();
    accessed.dedup();
    let is_result = |slot: &usize| parts.tasks.iter().any(|task| task.slot == *slot);
    let fields = fields(&accessed, views);
    let text = format!(
        "struct Results {{{fields} }};\nTS_FN void epilogue(const Args& g, const Results& in, Results& out) {{\n{code}}}\n"
    );
    parts.element.push_str(&text);
    let (results, loads) = made.loads.into_iter().partition(is_result);
    let unread = epilogue.unread.iter().map(|&slot| slot as usize).collect();
    parts.epilogue = Some(EpilogueText { results, loads, stores: made.stores, unread });
}

/// Members of a struct that holds an element of each slot.
fn fields(slots: &[usize], views: &[RawView]) -> String {
    slots.iter().map(|&slot| format!(" {} a{slot};", memory_type(views[slot].dtype))).collect()
}

fn writer<'a>(program: &Program, views: &'a [RawView], scalar_count: usize) -> Writer<'a> {
    Writer {
        views,
        now: vec![String::new(); program.regs.len()],
        code: String::new(),
        next: 0,
        parts: Parts {
            includes: String::new(),
            loads: Vec::new(),
            stores: Vec::new(),
            tasks: Vec::new(),
            scalars: vec![None; scalar_count],
            fallible: 0,
            positions: false,
            random: false,
            element: String::new(),
            epilogue: None,
        },
        special: false,
    }
}

const SPECIAL: &str = "#include \"math/special.cuh\"\n";

struct Writer<'a> {
    views: &'a [RawView],
    /// The name of the value that each register has at this point.
    now: Vec<String>,
    code: String,
    next: usize,
    parts: Parts,
    special: bool,
}

/// Whether the function of an expression is in `math/special.cuh`, which is included only then because it takes long to
/// compile.
fn is_special(cuda: &str) -> bool {
    !headers().iter().any(|(name, text)| *name == "math/math.cuh" && defines(text, cuda))
}

impl Writer<'_> {
    fn define(&mut self, out: Reg, class: Class, value: &str) {
        let name = format!("v{}", self.next);
        self.next += 1;
        let _ = writeln!(self.code, "    const {} {name} = {value};", class_type(class));
        self.now[out as usize] = name;
    }

    fn read(&self, reg: Reg) -> String {
        self.now[reg as usize].clone()
    }

    fn instr(&mut self, instr: &Instr, program: &Program) {
        match *instr {
            Instr::Load { slot, out } => {
                if !self.parts.loads.contains(&(slot as usize)) {
                    self.parts.loads.push(slot as usize);
                }
                self.define(out, program.regs[out as usize], &format!("ts_upcast(in.a{slot})"));
            }
            Instr::Scalar { index, class, out } => {
                self.parts.scalars[index as usize] = Some(class);
                let value = match class {
                    Class::Bool => format!("g.s[{index}] != 0"),
                    Class::I64 => format!("(ts_i64)g.s[{index}]"),
                    Class::F32 => format!("__uint_as_float((ts_u32)g.s[{index}])"),
                    Class::F64 => format!("__longlong_as_double((ts_i64)g.s[{index}])"),
                };
                self.define(out, class, &value);
            }
            Instr::Position { out } => {
                self.parts.positions = true;
                self.define(out, Class::I64, "(ts_i64)pos");
            }
            Instr::Random { draw, class, seed, out } => {
                self.parts.positions = true;
                self.parts.random = true;
                let wide = class == Class::F64;
                let s = |i: u16| format!("g.s[{}]", seed + i);
                let value = match draw {
                    Draw::Uniform => format!("ts_draw_uniform_{}", if wide { "f64" } else { "f32" }),
                    Draw::Normal => format!("ts_draw_normal_{}", if wide { "f64" } else { "f32" }),
                    Draw::Word => "ts_draw_word".to_string(),
                    Draw::Integer => "ts_draw_integer".to_string(),
                };
                let more = if draw == Draw::Integer { format!(", {}, {}", s(2), s(3)) } else { String::new() };
                self.define(out, class, &format!("{value}({}, {}{more}, pos)", s(0), s(1)));
            }
            Instr::Apply { function, variant, ref args, out } => {
                let variant = &function.variants[variant as usize];
                self.special |= is_special(function.cuda);
                let values: Vec<String> = args[..variant.args.len()].iter().map(|&reg| self.read(reg)).collect();
                let value = apply(function.cuda, variant.args, &values);
                self.define(out, variant.out, &value);
            }
            Instr::Cast { reg, from, to, out } => {
                let value = self.read(reg);
                let same = matches!(
                    (from, to),
                    (Class::Bool, DType::Bool)
                        | (Class::I64, DType::I64)
                        | (Class::F32, DType::F32)
                        | (Class::F64, DType::F64)
                );
                if same {
                    self.now[out as usize] = value;
                } else {
                    self.define(out, Class::of(to), &format!("ts_round_to<{}>({value})", memory_type(to)));
                }
            }
            Instr::Check { check, reg, node } => {
                self.parts.positions = true;
                self.parts.fallible = self.parts.fallible.max(node as usize + 1);
                let value = self.read(reg);
                let (bad, kind) = match check {
                    Check::NonZero => (format!("{value} == 0"), "TS_DIVISION"),
                    Check::Probability => (format!("!({value} >= 0 && {value} <= 1)"), "TS_PROBABILITY"),
                    Check::Deviation => (format!("!({value} >= 0)"), "TS_DEVIATION"),
                    Check::Finite => (format!("!({value} - {value} == 0)"), "TS_RANGE"),
                };
                let bound = check.fault().1;
                let _ = writeln!(self.code, "    if ({bad}) ts_fault(g.f[{node}], {kind}, 0, pos, 0, {bound});");
            }
            Instr::Store { reg, slot } => {
                self.parts.stores.push(slot as usize);
                let (value, memory) = (self.read(reg), memory_type(self.views[slot as usize].dtype));
                let _ = writeln!(self.code, "    out.a{slot} = ts_downcast<{memory}>({value});");
            }
            Instr::Reduce { kind, reg, class, slot } => self.reduce(kind, reg, class, slot, program),
        }
    }

    fn reduce(&mut self, kind: ReduceKind, reg: Reg, class: Class, slot: u16, program: &Program) {
        let arg = matches!(kind, ReduceKind::ArgMin | ReduceKind::ArgMax);
        let have = program.regs[reg as usize];
        let class = if arg { have } else { class };
        let value = self.read(reg);
        // A bool accumulates as an integer, except in `any` and `all`.
        let truth = matches!(kind, ReduceKind::Any | ReduceKind::All);
        let wide = if class == Class::Bool { Class::I64 } else { class };
        let (accumulator, size_bytes) = match kind {
            ReduceKind::Any => ("ts_any".to_string(), 4),
            ReduceKind::All => ("ts_all".to_string(), 4),
            ReduceKind::Sum => (format!("ts_sum<{}>", class_type(wide)), wide.size_bytes()),
            ReduceKind::Prod => (format!("ts_prod<{}>", class_type(wide)), wide.size_bytes()),
            ReduceKind::Min => (format!("ts_min<{}>", class_type(wide)), wide.size_bytes()),
            ReduceKind::Max => (format!("ts_max<{}>", class_type(wide)), wide.size_bytes()),
            ReduceKind::ArgMin => (format!("ts_arg<{}, -1, ts_index>", class_type(wide)), 16),
            ReduceKind::ArgMax => (format!("ts_arg<{}, 1, ts_index>", class_type(wide)), 16),
        };
        let n = self.parts.tasks.len();
        let converted = if truth { format!("{value} != 0") } else { format!("({})({value})", class_type(wide)) };
        let converted = match (have, wide) {
            (Class::F32 | Class::F64, Class::I64) if !truth => format!("ts_to_i64({value})"),
            _ => converted,
        };
        let mut task = Task {
            accumulator: Some(accumulator),
            kind,
            value: converted,
            result: format!("t{n}.result()"),
            size_bytes,
            slot: slot as usize,
        };
        for (at, other) in self.parts.tasks.iter_mut().enumerate() {
            task.share(other, at);
            other.share(&task, n);
        }
        self.parts.tasks.push(task);
    }

    fn finish(self) -> Parts {
        let Writer { mut parts, code, special, views, .. } = self;
        parts.includes.push_str("#include \"common/reduce.cuh\"\n");
        if parts.random {
            parts.includes.push_str("#include \"random/philox.cuh\"\n");
        }
        if special {
            parts.includes.push_str(SPECIAL);
        }
        let mut text = String::new();
        let _ = writeln!(text, "struct In {{{} }};", fields(&parts.loads, views));
        let _ = writeln!(text, "struct Out {{{} }};", fields(&parts.stores, views));
        let (mut members, mut init, mut merge) = (String::new(), String::new(), String::new());
        let mut code = code;
        for (n, task) in parts.tasks.iter().enumerate() {
            let Some(accumulator) = &task.accumulator else { continue };
            let _ = writeln!(code, "    acc.t{n}.add({}, at);", task.value);
            let _ = write!(members, " {accumulator} t{n};");
            let _ = write!(init, " t{n}.init();");
            let _ = write!(merge, " t{n}.merge(o.t{n});");
        }
        let _ = writeln!(text, "struct Acc {{{members}");
        let _ = writeln!(text, "    TS_METHOD void init() {{{init} }}");
        let _ = writeln!(text, "    TS_METHOD void merge(const Acc& o) {{{merge} }}\n}};");
        let _ = writeln!(
            text,
            "TS_FN void element(const Args& g, const In& in, ts_u64 pos, ts_i64 at, Out& out, Acc& acc) {{\n{code}}}"
        );
        parts.element = text;
        parts
    }
}

/// The expression of a function with `values` in place of its letters `a` to `d`.
fn apply(cuda: &str, classes: &[Class], values: &[String]) -> String {
    let integer = classes.contains(&Class::I64);
    // Plain arithmetic of integers wraps, which C++ defines only for unsigned ones.
    let wraps = integer && cuda.chars().all(|c| "abcd +-*()".contains(c));
    let mut text = String::new();
    let chars: Vec<char> = cuda.chars().collect();
    let in_word = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    for (at, &c) in chars.iter().enumerate() {
        let alone = !in_word(at.checked_sub(1).and_then(|before| chars.get(before))) && !in_word(chars.get(at + 1));
        match "abcd".find(c).and_then(|n| values.get(n)).filter(|_| alone) {
            Some(value) if wraps => {
                let _ = write!(text, "(ts_u64){value}");
            }
            Some(value) => text.push_str(value),
            None => text.push(c),
        }
    }
    if wraps { format!("(ts_i64)({text})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_become_values() {
        let values = ["v1".to_string(), "v2".to_string()];
        let f32s = [Class::F32, Class::F32];
        assert_eq!(apply("ts_pow(a, b)", &f32s, &values), "ts_pow(v1, v2)");
        assert_eq!(apply("a * (1 - b * b)", &f32s, &values), "v1 * (1 - v2 * v2)");
        let integers = [Class::I64, Class::I64];
        assert_eq!(apply("a + b", &integers, &values), "(ts_i64)((ts_u64)v1 + (ts_u64)v2)");
        assert_eq!(apply("a == b", &integers, &values), "v1 == v2");
    }
}

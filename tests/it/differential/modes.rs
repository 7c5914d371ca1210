//! The ways to run a program, and what it shows in each.
//!
//! A session runs many programs, each in a block of its own, and is made anew now and then: making one takes longer than
//! a program. What differs is looked at again in new sessions.

use super::program::{BEGINNINGS, EVENTS, FLOATS, Kind, MADE, PARAMETERS, Program, Statement, TYPED};
use crate::random::Random;
use crate::scripts::builder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use tscript::{Builder, Session};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Cpu,
    /// On the CPU, every operation by itself.
    Window,
    CpuBlocking,
    /// Two simulated GPUs, with threads.
    Gpu,
    GpuBlocking,
    /// In virtual time, with an order drawn from this seed.
    Seed(u64),
}

impl Mode {
    /// What the others are compared with.
    pub const BASE: Mode = Mode::Cpu;

    pub fn all(kind: Kind) -> Vec<Mode> {
        let mut all = vec![Mode::Cpu, Mode::Window, Mode::Gpu, Mode::Seed(1), Mode::Seed(2), Mode::Seed(3)];
        if kind == Kind::Strict {
            all.extend([Mode::CpuBlocking, Mode::GpuBlocking]);
        }
        all
    }

    /// Those in which a program is run, besides the base: three, by its seed.
    pub fn some(kind: Kind, seed: u64) -> Vec<Mode> {
        let mut random = Random::new(seed ^ 0x5eed);
        let mut others = Mode::all(kind).split_off(1);
        while others.len() > 3 {
            others.swap_remove(random.below(others.len()));
        }
        // Orders in which work ends, other ones now and then: a session has one order.
        let later = 3 * (seed / RUNS as u64);
        let other = |mode| if let Mode::Seed(order) = mode { Mode::Seed(order + later) } else { mode };
        others.into_iter().map(other).collect()
    }

    fn on_gpu(self) -> bool {
        matches!(self, Mode::Gpu | Mode::GpuBlocking | Mode::Seed(_))
    }

    pub fn builder(self) -> Builder {
        // Both devices are there in every mode, so that tensors can travel.
        let builder = builder().simulate_gpus(2).module("shown", SHOW);
        let builder = if self.on_gpu() { builder.device("cuda:0") } else { builder };
        match self {
            Mode::Cpu | Mode::Gpu => builder,
            Mode::Window => builder.window(1),
            Mode::CpuBlocking | Mode::GpuBlocking => builder.blocking(true),
            Mode::Seed(seed) => builder.simulate_seed(seed),
        }
    }
}

/// Shows a variable: all of its elements, whether it has a history, its gradient.
pub const SHOW: &str = "fn show(name, v) { \
    try { print(`${name} ${v.dtype} ${v.shape} ${v.requires_grad} ${v.to_array()}`); } \
    catch (e) { print(`${name} is ${e.code} of line ${e.line}`); } \
    if v.requires_grad && v.is_leaf && v.grad != () { show(name + \".grad\", v.grad); } }";

impl Program {
    /// Statement `n` is on line `n + 2`, so that lines in what is printed are those of the statements.
    pub fn text(&self, mode: Mode) -> String {
        let mut text = format!("{}\n", self.beginning(mode));
        for (n, statement) in self.statements.iter().enumerate() {
            let own = &statement.text;
            let line = match statement.caught {
                true => format!(
                    "try {{ {own} }} catch (e) {{ print(`{n}: ${{e.code}} ${{e.line}}`);{} }}",
                    undone(statement)
                ),
                false => own.clone(),
            };
            text += &match (mode.on_gpu(), statement.stream) {
                (false, _) | (_, 0) => line,
                (true, stream) if stream >= EVENTS => {
                    let s = format!("s{}", stream - EVENTS + 1);
                    format!(
                        "let before = current_stream().record_event(); {s}.wait_event(before); with_stream({s}) {{ {line} }} let after = {s}.record_event(); after.wait();"
                    )
                }
                (true, stream) => format!(
                    "s{stream}.wait_stream(current_stream()); with_stream(s{stream}) {{ {line} }} current_stream().wait_stream(s{stream});"
                ),
            };
            text.push('\n');
        }
        for name in FLOATS.into_iter().chain(PARAMETERS).chain(TYPED) {
            text += &format!("shown::show(\"{name}\", {name});\n");
        }
        text += "print(rand([2]).to_array()); }\n";
        text.replace("DEV", if mode.on_gpu() { "\"cuda:0\"" } else { "\"cpu\"" })
    }

    fn beginning(&self, mode: Mode) -> String {
        let mut text = "{ import \"optim\" as optim; import \"shown\" as shown; manual_seed(5);".to_string();
        for (name, elements, _) in BEGINNINGS {
            let keywords = match (name.starts_with('p'), self.kind) {
                (true, Kind::Torch) => ", #{dtype: \"f64\", requires_grad: true}",
                (false, Kind::Torch) => ", #{dtype: \"f64\"}",
                (true, _) => ", #{requires_grad: true}",
                _ => "",
            };
            text += &format!(" let {name} = tensor({elements}{keywords});");
        }
        for (name, made) in MADE {
            text += &format!(" let {name} = {made};");
        }
        text += &format!(" let o = optim::{};", self.optimizer);
        if mode.on_gpu() {
            text += " let s1 = stream(); let s2 = stream();";
        }
        text
    }
}

/// What a statement's `catch` does after a fault that may have been raised earlier or later.
fn undone(statement: &Statement) -> String {
    match statement.undone.as_str() {
        "" => String::new(),
        undone => format!(" if e.code.starts_with(\"E04\") {{{undone} }}"),
    }
}

/// A session that runs programs in a mode.
struct Runner {
    session: Session,
    /// What is printed and warned of.
    reported: Arc<Mutex<Vec<String>>>,
    runs: usize,
}

impl Runner {
    fn new(mode: Mode) -> Runner {
        let reported: Arc<Mutex<Vec<String>>> = Arc::default();
        let (prints, warns) = (reported.clone(), reported.clone());
        let builder = mode.builder().output(move |line| prints.lock().expect("no panic").push(line.to_string()));
        let builder = builder.on_warning(move |warning| {
            let line = warning.location().map_or(0, |at| at.line);
            warns.lock().expect("no panic").push(format!("warning {} {line}", warning.code()));
        });
        let mut session = builder.build().expect("a session starts");
        // Faults that nobody saw are raised at the end, as in the program.
        session.runs_one_script();
        Runner { session, reported, runs: 0 }
    }

    /// All that a program shows: lines that it prints, warnings, and how it ends.
    fn run(&mut self, text: &str) -> Vec<String> {
        self.runs += 1;
        let result = catch_unwind(AssertUnwindSafe(|| self.session.run_str("random", text)));
        let mut lines = std::mem::take(&mut *self.reported.lock().expect("no panic"));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let line = error.location().map_or(0, |at| at.line);
                lines.push(format!("ends with {} of line {line}", error.code()));
            }
            Err(_) => lines.push("panicked".to_string()),
        }
        // Warnings come when a device gets to them.
        lines.sort_by_key(|line| line.starts_with("warning"));
        lines
    }
}

/// Bound: programs that one session runs; it keeps the lines of each.
const RUNS: usize = 50;

/// Bound: sessions in use, which is what the modes need that are drawn at one time. A session holds some megabytes, and
/// its GPUs have threads.
const SESSIONS: usize = 8;

/// Sessions in use, one for each mode, the oldest first.
#[derive(Default)]
pub struct Runners(Vec<(Mode, Runner)>);

impl Runners {
    fn run(&mut self, program: &Program, mode: Mode) -> Vec<String> {
        let at = self.0.iter().position(|(known, _)| *known == mode).unwrap_or_else(|| {
            if self.0.len() == SESSIONS {
                self.0.remove(0);
            }
            self.0.push((mode, Runner::new(mode)));
            self.0.len() - 1
        });
        let lines = self.0[at].1.run(&program.text(mode));
        let ended = lines.last().is_some_and(|line| line.starts_with("ends") || line == "panicked");
        if ended || self.0[at].1.runs == RUNS {
            self.0.remove(at);
        }
        lines
    }

    /// The first of the modes in which a program shows something else than in the base mode, and what.
    pub fn differ(&mut self, program: &Program, modes: &[Mode]) -> Option<(Mode, String)> {
        let expected = self.run(program, Mode::BASE);
        modes.iter().find_map(|&mode| unlike(&expected, &self.run(program, mode)).map(|why| (mode, why)))
    }
}

/// What a program shows in a session of its own.
pub fn run(program: &Program, mode: Mode) -> Vec<String> {
    run_text(&program.text(mode), mode)
}

pub fn run_text(text: &str, mode: Mode) -> Vec<String> {
    Runner::new(mode).run(text)
}

/// Where it shows something else than in the base mode, in sessions of their own.
pub fn differs(program: &Program, mode: Mode) -> Option<String> {
    unlike(&run(program, Mode::BASE), &run(program, mode))
}

/// The first difference, or an internal error in any of the two.
fn unlike(expected: &[String], got: &[String]) -> Option<String> {
    if let Some(line) = got.iter().chain(expected).find(|line| line.contains("E0806") || *line == "panicked") {
        return Some(line.clone());
    }
    let at = expected.iter().zip(got).take_while(|(a, b)| alike(a, b)).count();
    let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "nothing".to_string());
    (expected.len() != got.len() || at < expected.len())
        .then(|| format!("wanted: {}\nfound:  {}", line(expected), line(got)))
}

/// Whether two lines are the same but for what sums lose to rounding: their order depends on what is computed with them.
fn alike(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let parts = |line: &str| -> Vec<String> {
        line.split_inclusive([' ', ',', '[', ']'])
            .map(|part| part.trim_matches([' ', ',', '[', ']']).to_string())
            .collect()
    };
    let (a, b) = (parts(a), parts(b));
    let near = |(a, b): (&String, &String)| match (a.parse::<f64>(), b.parse::<f64>()) {
        // Whole numbers are lines, codes and integers.
        (Ok(x), Ok(y)) if a.contains('.') => (x - y).abs() <= 1e-5 + 1e-4 * x.abs() || x.is_nan() && y.is_nan(),
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(&b).all(near)
}

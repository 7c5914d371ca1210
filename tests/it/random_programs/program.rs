//! A program as a tree of lines, so that any of them can be left out, and how one is made from a seed.

use super::statements::Maker;

/// Runs behind each program, in the same session.
pub const AFTER: &str = "for name in [\"i0\", \"s0\", \"a0\", \"m0\"] { print(is_def_var(name)); } \
    print(i0); print(f0); print(s0); print(a0); print(m0);";

/// A statement: a line, or a head with bodies between which further lines stand (`} else {`).
#[derive(Clone, Debug)]
pub struct Line {
    pub head: String,
    pub bodies: Vec<(Vec<Line>, String)>,
}

impl Line {
    pub fn of(head: impl Into<String>) -> Line {
        Line { head: head.into(), bodies: Vec::new() }
    }

    fn write(&self, depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        text.push_str(&format!("{indent}{}\n", self.head));
        for (body, end) in &self.bodies {
            for line in body {
                line.write(depth + 1, text);
            }
            text.push_str(&format!("{indent}{end}\n"));
        }
    }
}

#[derive(Clone, Debug)]
pub struct Program {
    pub lines: Vec<Line>,
}

/// The variables that every program has.
const BEGINNING: &str = "let i0 = 3; let i1 = -2; let i2 = 7; let f0 = 1.5; let f1 = -0.25; let b0 = true; \
    let s0 = \"abc\"; let s1 = \"héé\"; let a0 = [1, 2, 3]; let a1 = [[1, 2], [\"x\", 4.5], []]; \
    let m0 = #{a: 1, b: [1, 2], c: #{d: 5}}; let m1 = #{n: 0, add: |x| { this.n += x; this.n }}; \
    let c0 = |x| x + i0; let c1 = |x, y| { i1 += 1; x * y }; const K = 11; const L = [1, 2, 3];";

impl Program {
    pub fn of(seed: u64) -> Program {
        Program { lines: Maker::new(seed).program() }
    }

    pub fn text(&self) -> String {
        let mut text = format!("{BEGINNING}\n");
        for line in &self.lines {
            line.write(0, &mut text);
        }
        text
    }

    /// The shortest program found in which `fails` still holds: lines are left out, and bodies take the place of their heads.
    pub fn shortened(&self, fails: &dyn Fn(&str) -> bool) -> Program {
        let mut best = self.clone();
        loop {
            let shorter =
                (0..count(&best.lines)).rev().flat_map(|at| [Cut::Whole(at), Cut::Head(at)]).find_map(|cut| {
                    let mut lines = best.lines.clone();
                    remove(&mut lines, &mut cut.at(), &cut).then_some(())?;
                    let program = Program { lines };
                    fails(&program.text()).then_some(program)
                });
            match shorter {
                Some(program) => best = program,
                None => return best,
            }
        }
    }
}

enum Cut {
    Whole(usize),
    Head(usize),
}

impl Cut {
    fn at(&self) -> usize {
        match self {
            Cut::Whole(at) | Cut::Head(at) => *at,
        }
    }
}

fn count(lines: &[Line]) -> usize {
    lines.iter().map(|line| 1 + line.bodies.iter().map(|(body, _)| count(body)).sum::<usize>()).sum()
}

/// Cuts the line with this number, counted in the order of the text.
fn remove(lines: &mut Vec<Line>, left: &mut usize, cut: &Cut) -> bool {
    for at in 0..lines.len() {
        if *left == 0 {
            let line = lines.remove(at);
            if let Cut::Head(_) = cut {
                if line.bodies.is_empty() || line.head.starts_with("fn ") {
                    return false;
                }
                let inner: Vec<Line> = line.bodies.into_iter().flat_map(|(body, _)| body).collect();
                lines.splice(at..at, inner);
            }
            return true;
        }
        *left -= 1;
        for (body, _) in &mut lines[at].bodies {
            let inside = count(body);
            if *left < inside {
                return remove(body, left, cut);
            }
            *left -= inside;
        }
    }
    false
}

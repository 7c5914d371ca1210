//! Random programs, statement by statement, from a seed. Any statement can be left out, and the rest is still a program:
//! all variables exist from the beginning.
//!
//! Shapes are followed roughly, so that most operands fit; what a statement cannot do is an error that its `try` prints.
//! Knows nothing of modes, and runs nothing.

use crate::random::Random;

mod statements;
mod typed;
mod values;

/// What a program may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Every fault is raised where its statement ends: the same with `--blocking`.
    Strict,
    /// Faults are left lying, and what is computed from them goes on.
    Late,
    /// What PyTorch has as well, in `f64`, without random numbers and late faults.
    Torch,
}

/// A line of a program.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Statement {
    pub text: String,
    /// In a `try` of its own that prints what it catches.
    pub caught: bool,
    /// What is done where that happens, so that it does not matter how early a fault is raised: a blocking run has not
    /// done what comes after it.
    pub undone: String,
    /// On a GPU it runs on this stream, ordered before and behind by waits, or by events from `EVENTS` on; 0 is the
    /// current one.
    pub stream: usize,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub kind: Kind,
    /// `adam([p0, p1], #{lr: 0.1})`.
    pub optimizer: String,
    pub statements: Vec<Statement>,
}

/// Streams that are ordered by events.
pub const EVENTS: usize = 3;

/// Variables that hold floats, those that hold parameters, and those that keep another dtype and their shape.
pub const FLOATS: [&str; 4] = ["t0", "t1", "t2", "t3"];
pub const PARAMETERS: [&str; 2] = ["p0", "p1"];
pub const TYPED: [&str; 8] = ["k", "h", "g", "i", "b", "u", "e", "z"];

/// Where each variable begins: `(name, elements, shape)`.
pub const BEGINNINGS: [(&str, &str, &[usize]); 6] = [
    ("t0", "[[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]", &[2, 3]),
    ("t1", "[[1.0, 2.0], [-1.0, 0.25], [0.5, -2.0]]", &[3, 2]),
    ("t2", "[0.25, -0.75, 1.75]", &[3]),
    ("t3", "[[[0.1, -0.2], [0.3, 0.4]], [[-0.5, 0.6], [0.7, -0.8]]]", &[2, 2, 2]),
    ("p0", "[[0.2, -0.4, 0.6], [0.8, 1.0, -1.2]]", &[2, 3]),
    ("p1", "[1.5, -0.5, 0.5]", &[3]),
];

/// Those of other dtypes: `(name, what makes it)`. One that holds nothing and one without dimensions are among them.
pub const MADE: [(&str, &str); 8] = [
    ("k", "tensor([[3, -1, 2], [0, 5, -4]])"),
    ("h", "tensor([0.5, -1.5, 2.0], #{dtype: \"f16\"})"),
    ("g", "tensor([[1.0, -0.25], [0.5, 3.0]], #{dtype: \"bf16\"})"),
    ("i", "tensor([7, -2, 0, 100], #{dtype: \"i32\"})"),
    ("b", "tensor([[true, false, true], [false, true, false]])"),
    ("u", "tensor([0, 7, 250], #{dtype: \"u8\"})"),
    ("e", "zeros([0, 3])"),
    ("z", "tensor(1.5)"),
];

const OPTIMIZERS: &[&str] = &[
    "sgd([p0, p1], #{lr: 0.1})",
    "sgd([p0, p1], #{lr: 0.1, momentum: 0.9, weight_decay: 0.01})",
    "sgd([p0, p1], #{lr: 0.1, momentum: 0.9, nesterov: true})",
    "sgd([p0, p1], #{lr: 0.1, momentum: 0.5, dampening: 0.5, maximize: true})",
    "adam([p0, p1], #{lr: 0.1})",
    "adam([p0, p1], #{lr: 0.1, amsgrad: true, weight_decay: 0.1})",
    "adamw([p0, p1], #{lr: 0.1})",
    "adagrad([p0, p1], #{lr: 0.1, lr_decay: 0.1})",
    "adadelta([p0, p1], #{lr: 0.5})",
    "adamax([p0, p1], #{lr: 0.1})",
    "rmsprop([p0, p1], #{lr: 0.01})",
    "rmsprop([p0, p1], #{lr: 0.01, momentum: 0.5, centered: true, eps: 0.1})",
    "nadam([p0, p1], #{lr: 0.1})",
    "radam([p0, p1], #{lr: 0.1})",
    "lion([p0, p1], #{lr: 0.01})",
    "asgd([p0, p1], #{lr: 0.1, lambd: 0.1, t0: 1.0})",
    "rprop([p0, p1], #{lr: 0.1})",
];

/// The last of them that are not compared with PyTorch: it has no Lion, keeps rates of ASGD in f32, and what Rprop does
/// is the sign of a rounding error where a gradient is 0.
const OPEN: usize = 3;

impl Program {
    pub fn of(kind: Kind, seed: u64) -> Program {
        let mut maker =
            Maker { random: Random::new(seed), kind, shapes: BEGINNINGS.map(|(_, _, shape)| shape.to_vec()) };
        let open = if kind == Kind::Torch { OPEN } else { 0 };
        let optimizer = OPTIMIZERS[maker.random.below(OPTIMIZERS.len() - open)].to_string();
        let length = 2 + maker.random.below(12);
        let mut statements = Vec::with_capacity(length);
        while statements.len() < length {
            statements.push(maker.statement());
        }
        Program { kind, optimizer, statements }
    }
}

struct Maker {
    random: Random,
    kind: Kind,
    /// Of the variables that hold floats and parameters, as far as it is known.
    shapes: [Vec<usize>; BEGINNINGS.len()],
}

/// A text with the shape of its value.
type Shaped = (String, Vec<usize>);

fn list(shape: &[usize]) -> String {
    format!("{shape:?}")
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// What makes the variables that a statement assigns the same wherever in it a fault was raised.
fn undone(text: &str) -> String {
    let mut undone = String::new();
    for name in FLOATS {
        let assigns = text.starts_with(&format!("{name} = ")) || text.contains(&format!(" {name} = "));
        // `x[i] += v` reads first.
        let writes = text.starts_with(&format!("{name}[")) && text.contains("tensor(");
        if assigns || writes {
            undone += &format!(" {name} = ones([2]);");
        }
    }
    if text.contains("backward(") {
        undone += " p0.grad = (); p1.grad = ();";
    }
    if text.contains(".data.") {
        undone += " p0.data.fill_(0.5); p1.data.fill_(0.5);";
    }
    undone
}

impl Maker {
    fn statement(&mut self) -> Statement {
        let others = self.kind != Kind::Torch;
        let text = match self.random.below(26) {
            0..=5 => self.assignment(),
            6..=11 => self.in_place(),
            12..=14 => self.gradients(),
            15..=16 => self.optimizer(),
            17..=19 => self.typed(),
            20..=21 => self.by_index(),
            22 => self.shared(),
            23 if others => self.wait(),
            24 if others => self.nested(),
            25 if others => self.fault(),
            _ => self.in_place(),
        };
        let caught = self.kind != Kind::Late || !self.random.once_in(4);
        let stream = if others { self.random.below(10).saturating_sub(5) } else { 0 };
        let undone = if self.kind == Kind::Strict { undone(&text) } else { String::new() };
        Statement { text, caught, undone, stream }
    }
}

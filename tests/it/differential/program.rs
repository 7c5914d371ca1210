//! Random programs, statement by statement, from a seed. Any statement can be left out, and the rest is still a program:
//! all variables exist from the beginning.
//!
//! Shapes are followed roughly, so that most operands fit; what a statement cannot do is an error that its `try` prints.
//! Knows nothing of modes, and runs nothing.

use crate::random::Random;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    /// In a `try` of its own that prints what it catches.
    pub caught: bool,
    /// On a GPU it runs on this stream, ordered before and behind; 0 is the current one.
    pub stream: usize,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub kind: Kind,
    /// `adam([p0, p1], #{lr: 0.1})`.
    pub optimizer: String,
    pub statements: Vec<Statement>,
}

/// Variables that hold floats, those that hold parameters, and integers.
pub const FLOATS: [&str; 4] = ["t0", "t1", "t2", "t3"];
pub const PARAMETERS: [&str; 2] = ["p0", "p1"];
pub const WHOLE: &str = "k";

/// Where each variable begins: `(name, elements, shape)`.
pub const BEGINNINGS: [(&str, &str, &[usize]); 7] = [
    ("t0", "[[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]", &[2, 3]),
    ("t1", "[[1.0, 2.0], [-1.0, 0.25], [0.5, -2.0]]", &[3, 2]),
    ("t2", "[0.25, -0.75, 1.75]", &[3]),
    ("t3", "[[[0.1, -0.2], [0.3, 0.4]], [[-0.5, 0.6], [0.7, -0.8]]]", &[2, 2, 2]),
    ("p0", "[[0.2, -0.4, 0.6], [0.8, 1.0, -1.2]]", &[2, 3]),
    ("p1", "[1.5, -0.5, 0.5]", &[3]),
    ("k", "[[3, -1, 2], [0, 5, -4]]", &[2, 3]),
];

const OPTIMIZERS: &[&str] = &[
    "sgd([p0, p1], #{lr: 0.1})",
    "sgd([p0, p1], #{lr: 0.1, momentum: 0.9, weight_decay: 0.01})",
    "adam([p0, p1], #{lr: 0.1})",
    "adamw([p0, p1], #{lr: 0.1})",
    "adagrad([p0, p1], #{lr: 0.1})",
    "rmsprop([p0, p1], #{lr: 0.01})",
];

impl Program {
    pub fn of(kind: Kind, seed: u64) -> Program {
        let mut maker =
            Maker { random: Random::new(seed), kind, shapes: BEGINNINGS.map(|(_, _, shape)| shape.to_vec()) };
        let optimizer = maker.random.one(OPTIMIZERS).to_string();
        let length = 2 + maker.random.below(12);
        let mut statements = Vec::with_capacity(length);
        while statements.len() < length {
            let statement = maker.statement();
            if !is_left_out(kind, &statement.text) {
                statements.push(statement);
            }
        }
        Program { kind, optimizer, statements }
    }
}

/// What is known to differ, by issue 14: `DIFFERENT` has words and the kinds of programs that do without them for now.
/// Whoever cures one takes its line out; with `TSCRIPT_FUZZ_ALL=1` nothing is left out.
const DIFFERENT: &[(&[Kind], &[&str])] = &[
    // A2: the order of random numbers; what a refused draw draws with `--blocking`.
    (&[Kind::Strict, Kind::Late], &["rand", "normal", "dropout", "bernoulli", "uniform_", "multinomial"]),
    // A6: which fault a `try` raises; what a fault in place leaves behind with `--blocking`.
    (&[Kind::Strict], &["= grad(", "tensor([50])"]),
    // A5: optimizers after a fault.
    (&[Kind::Late], &["o.step()"]),
    // A1 and A8: masks hand back what is computed from them; writes into expanded tensors.
    (&[Kind::Torch], &["> 0].sum()", ".expand("]),
    // Sums of nothing on a GPU with `--blocking` leave their result as it was.
    (&[Kind::Strict, Kind::Late], &["0..0]", "1..1]", "2..2]", "3..3]", "4..4]", "6..6]"]),
];

fn is_left_out(kind: Kind, text: &str) -> bool {
    if std::env::var("TSCRIPT_FUZZ_ALL").is_ok_and(|value| value == "1") {
        return false;
    }
    DIFFERENT.iter().any(|(kinds, words)| kinds.contains(&kind) && words.iter().any(|word| text.contains(word)))
}

struct Maker {
    random: Random,
    kind: Kind,
    /// Of the variables, as far as it is known.
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

impl Maker {
    fn statement(&mut self) -> Statement {
        let text = match self.random.below(20) {
            0..=5 => self.assignment(),
            6..=11 => self.in_place(),
            12..=14 => self.gradients(),
            15..=16 => self.optimizer(),
            17 if self.kind != Kind::Torch => self.wait(),
            18 if self.kind != Kind::Torch => self.nested(),
            _ if self.kind != Kind::Torch => self.fault(),
            _ => self.in_place(),
        };
        let caught = self.kind != Kind::Late || !self.random.once_in(4);
        let stream = if self.kind == Kind::Torch { 0 } else { self.random.below(8).saturating_sub(5) };
        Statement { text, caught, stream }
    }

    fn assignment(&mut self) -> String {
        let to = self.random.below(FLOATS.len());
        let (mut value, mut shape) = self.value(3);
        // Values that grow from statement to statement would soon be infinite.
        if self.random.once_in(3) {
            value = format!("({value}).tanh()");
        }
        if count(&shape) > 40 {
            (value, shape) = (format!("({value}).sum()"), vec![]);
        }
        self.shapes[to] = shape;
        format!("{} = {value};", FLOATS[to])
    }

    /// A variable that holds floats, a parameter now and then.
    fn variable(&mut self) -> Shaped {
        let at = match self.random.below(8) {
            0 | 1 => FLOATS.len() + self.random.below(PARAMETERS.len()),
            _ => self.random.below(FLOATS.len()),
        };
        (BEGINNINGS[at].0.to_string(), self.shapes[at].clone())
    }

    fn value(&mut self, depth: usize) -> Shaped {
        if depth == 0 {
            return self.variable();
        }
        match self.random.below(12) {
            0..=2 => self.elementwise(depth),
            3..=4 => self.reduction(depth),
            5..=7 => {
                let of = self.value(depth - 1);
                self.view(of)
            }
            8..=9 => self.binary(depth),
            10 if self.kind != Kind::Torch => self.drawn(depth),
            10 => self.binary(depth),
            _ => self.picked(depth),
        }
    }

    fn elementwise(&mut self, depth: usize) -> Shaped {
        let (x, shape) = self.value(depth - 1);
        let forms = &[
            "#.tanh()",
            "#.sigmoid()",
            "#.relu()",
            "-#",
            "#.abs()",
            "#.sin()",
            "#.cos()",
            "# * 2",
            "# + 1.5",
            "# / 3",
            "#.square()",
            "#.clamp(-1, 1)",
            "#.abs().sqrt()",
            "(#.abs() + 1).log()",
            "gelu(#)",
            "1 - #",
            "#.clamp(-3, 3).exp()",
            "# ** 2",
            "2 / (#.abs() + 1)",
            "#.sign()",
            "softplus(#)",
        ];
        (format!("({})", self.random.one(forms).replace('#', &format!("({x})"))), shape)
    }

    fn reduction(&mut self, depth: usize) -> Shaped {
        let (x, shape) = self.value(depth - 1);
        if shape.is_empty() || self.random.once_in(4) {
            return (
                format!("({x}).{}()", self.random.one(&["sum", "mean", "norm", "amax", "logsumexp(0).sum"])),
                vec![],
            );
        }
        let dim = self.random.below(shape.len());
        let mut without = shape.clone();
        without.remove(dim);
        let mut kept = shape.clone();
        kept[dim] = 1;
        match self.random.below(9) {
            0 => (format!("({x}).sum({dim})"), without),
            1 => (format!("({x}).sum({dim}, true)"), kept),
            2 => (format!("({x}).mean({dim})"), without),
            3 => (format!("({x}).amax({dim})"), without),
            4 => (format!("({x}).cumsum({dim})"), shape),
            5 => (format!("({x}).softmax({dim})"), shape),
            6 => (format!("({x}).log_softmax({dim})"), shape),
            7 => (format!("({x}).logsumexp({dim})"), without),
            _ => (format!("({x}).sort({dim}).values"), shape),
        }
    }

    /// A view of it, most of the time.
    fn view(&mut self, (x, shape): Shaped) -> Shaped {
        let n = shape.len();
        if n == 0 {
            let forms = [
                ("unsqueeze(0)", vec![1]),
                ("reshape([1, 1])", vec![1, 1]),
                ("expand([3])", vec![3]),
                ("detach()", vec![]),
            ];
            let (form, shape) = forms[self.random.below(forms.len())].clone();
            return (format!("({x}).{form}"), shape);
        }
        let dim = self.random.below(n);
        let size = shape[dim];
        let mut other = shape.clone();
        match self.random.below(19) {
            0 if n == 2 => (format!("({x}).T"), vec![shape[1], shape[0]]),
            1 if shape[0] > 0 => {
                let at = self.random.below(shape[0]);
                (format!("({x})[{at}]"), shape[1..].to_vec())
            }
            2 => {
                // Views of nothing have histories of their own in PyTorch.
                let least = usize::from(self.kind == Kind::Torch && shape[0] > 0);
                let from = self.random.below(shape[0] + 1 - least);
                let to = from + least + self.random.below(shape[0] - from + 1 - least);
                other[0] = to - from;
                (format!("({x})[{from}..{to}]"), other)
            }
            3 if n >= 2 && size > 0 => {
                let at = self.random.below(shape[1]);
                other.remove(1);
                (format!("({x})[.., {at}]"), other)
            }
            4 => (format!("({x}).flatten()"), vec![count(&shape)]),
            5 => {
                other.insert(dim, 1);
                (format!("({x}).unsqueeze({dim})"), other)
            }
            6 => {
                other.insert(0, 2);
                (format!("({x}).expand({})", list(&other)), other)
            }
            7 => {
                let last = n - 1;
                other.swap(dim, last);
                (format!("({x}).transpose({dim}, {last})"), other)
            }
            8 if size >= 2 => {
                other[dim] = 2;
                let from = self.random.below(size - 1);
                (format!("({x}).narrow({dim}, {from}, 2)"), other)
            }
            9 if size > 0 => {
                other.remove(dim);
                let at = self.random.below(size);
                (format!("({x}).select({dim}, {at})"), other)
            }
            10 if n == 2 => (format!("({x}).diagonal()"), vec![shape[0].min(shape[1])]),
            11 if size >= 2 => {
                other[dim] = size - 1;
                other.push(2);
                (format!("({x}).unfold({dim}, 2, 1)"), other)
            }
            12 if size > 0 => {
                other[dim] = 1;
                let at = self.random.below(size);
                (format!("({x}).split(1, {dim})[{at}]"), other)
            }
            13 if size > 0 => {
                other.remove(dim);
                let at = self.random.below(size);
                (format!("({x}).unbind({dim})[{at}]"), other)
            }
            14 => (format!("({x}).view([-1])"), vec![count(&shape)]),
            15 => (format!("({x}).{}", self.random.one(&["detach()", "clone()", "contiguous()"])), shape),
            16 => (format!("({x}).flip([{dim}])"), shape),
            17 if count(&shape) == 6 => {
                let to = [vec![3, 2], vec![2, 3], vec![6], vec![1, 6]][self.random.below(4)].clone();
                (format!("({x}).reshape({})", list(&to)), to)
            }
            18 if count(&shape) >= 4 => (format!("({x}).as_strided([2, 2], [1, 1])"), vec![2, 2]),
            _ => (format!("({x}).squeeze()"), shape.into_iter().filter(|&size| size != 1).collect()),
        }
    }

    /// Something that fits a shape: a number, a variable, or a view that was made to fit.
    fn operand(&mut self, shape: &[usize]) -> String {
        let fitting: Vec<usize> = (0..FLOATS.len() + PARAMETERS.len())
            .filter(|&at| {
                let own = &self.shapes[at];
                own.len() <= shape.len() && own.iter().rev().zip(shape.iter().rev()).all(|(a, b)| a == b || *a == 1)
            })
            .collect();
        match self.random.below(10) {
            0..=1 => self.random.one(&["0.5", "2", "-1.5"]).to_string(),
            2 => self.variable().0,
            3 if self.kind != Kind::Torch => format!("{}({})", self.random.one(&["rand", "randn"]), list(shape)),
            3 => format!("ones({}).double()", list(shape)),
            4..=5 => {
                let (x, own) = self.variable();
                let fits = own.len() <= shape.len();
                format!("({x}){}", if fits { "" } else { ".sum()" })
            }
            _ if fitting.is_empty() => format!("({}).sum()", self.variable().0),
            _ => BEGINNINGS[fitting[self.random.below(fitting.len())]].0.to_string(),
        }
    }

    /// An operand of a write. PyTorch leaves it open what becomes of one that lies on what is written.
    fn written(&mut self, shape: &[usize]) -> String {
        let operand = self.operand(shape);
        if self.kind == Kind::Torch { format!("(({operand}) * 1)") } else { operand }
    }

    fn binary(&mut self, depth: usize) -> Shaped {
        let (x, shape) = self.value(depth - 1);
        let y = self.operand(&shape);
        if shape.len() == 2 && self.random.once_in(3) {
            let rows = shape[0];
            return (format!("(({x}) @ ({x}).T)"), vec![rows, rows]);
        }
        let stacked = |shape: &[usize]| [&[2], shape].concat();
        match self.random.below(9) {
            0..=1 => (format!("(({x}) + {y})"), shape),
            2 => (format!("(({x}) - {y})"), shape),
            3..=4 => (format!("(({x}) * {y})"), shape),
            5 => (format!("maximum({x}, ({x}) * 0.5)"), shape),
            6 => (format!("where(({x}) > 0.1, ({x}), ({x}) * 0.5)"), shape),
            7 => (format!("stack([{x}, ({x}) * 2])"), stacked(&shape)),
            _ if shape.is_empty() => (format!("(({x}) * {y})"), shape),
            _ => {
                let mut other = shape.clone();
                other[0] *= 2;
                (format!("cat([{x}, -({x})])"), other)
            }
        }
    }

    /// By index tensors and masks.
    fn picked(&mut self, depth: usize) -> Shaped {
        let (x, shape) = self.value(depth - 1);
        let Some(&size) = shape.first().filter(|&&size| size > 0) else { return (format!("(({x}) * 1)"), shape) };
        let (a, b) = (self.random.below(size), self.random.below(size));
        let mut other = shape.clone();
        other[0] = 2;
        match self.random.below(6) {
            0 => (format!("({x})[tensor([{a}, {b}])]"), other),
            1 => (format!("({x}).index_select(0, tensor([{a}, {b}]))"), other),
            2 => (format!("({x})[({x}) > 0].sum()"), vec![]),
            3 => (format!("({x}).masked_fill(({x}) > 0.5, 0.25)"), shape),
            4 => (format!("({x}).take(tensor([{a}, {b}]))"), vec![2]),
            _ => (format!("({x}).index_add(0, tensor([{a}]), ({x})[{b}..{}])", b + 1), shape),
        }
    }

    fn drawn(&mut self, depth: usize) -> Shaped {
        let (x, shape) = self.value(depth - 1);
        let size = list(&shape);
        let form = match self.random.below(10) {
            0 => format!("rand({size})"),
            1 => format!("randn({size})"),
            2 => format!("randint(0, 10, {size}).float()"),
            3 => format!("dropout({x}, 0.5, true)"),
            4 => format!("bernoulli(({x}).sigmoid())"),
            5 => format!("rand_like({x})"),
            6 => return ("randperm(5).float()".to_string(), vec![5]),
            7 => format!("normal({x}, 0.5)"),
            8 => format!("(({x}) + randn_like({x}))"),
            _ => return ("multinomial(tensor([0.2, 0.3, 0.5]), 4, true).float()".to_string(), vec![4]),
        };
        (form, shape)
    }

    fn in_place(&mut self) -> String {
        let mut target = self.variable();
        for _ in 0..self.random.below(3) {
            let view = self.view(target.clone());
            // PyTorch leaves it open what a write does to elements that lie on one another, and has rules of its own
            // for views that come several at a time.
            let open = [".as_strided", ".unfold", ".split", ".unbind"].iter().any(|form| view.0.contains(form));
            if self.kind != Kind::Torch || !open {
                target = view;
            }
        }
        let (x, shape) = target;
        let y = self.written(&shape);
        let mut forms = vec![
            format!("({x}).add_({y});"),
            format!("({x}).mul_({y});"),
            format!("({x}).sub_({y});"),
            format!("({x}).copy_({y});"),
            format!("({x}).fill_(0.75);"),
            format!("({x}).zero_();"),
            format!("({x}).clamp_(-0.5, 0.5);"),
            format!("({x}).neg_();"),
            format!("({x}).tanh_();"),
            format!("({x}).masked_fill_(({x}) > 0.2, 0.125);"),
            format!("({x}).div_(2);"),
        ];
        let at = self.random.below(FLOATS.len());
        let (name, own) = (FLOATS[at], self.shapes[at].clone());
        forms.push(format!("{name} += {};", self.written(&own)));
        forms.push(format!("{name} *= 0.5;"));
        if let Some(&size) = own.first().filter(|&&size| size > 0) {
            let row = self.random.below(size);
            let part = self.written(&own[1..]);
            forms.push(format!("{name}[{row}] = {part};"));
            forms.push(format!("{name}[{row}] += {part};"));
            forms.push(format!("{name}[tensor([{row}])] = {part};"));
            forms.push(format!("{name}[{name} > 0.3] = 0.5;"));
            forms.push(format!("{name}.index_fill_(0, tensor([{row}]), 0.25);"));
            forms.push(format!("{name}.index_add_(0, tensor([{row}]), {name}[0..1] * 0.5);"));
            forms.push(format!("{name}[0..1] *= 0.5;"));
        }
        if self.kind != Kind::Torch {
            forms.push(format!("({x}).uniform_();"));
            forms.push(format!("({x}).normal_();"));
            forms.push(format!("({x}).bernoulli_(0.5);"));
            forms.push(format!("no_grad(|| ({x}).add_(1));"));
            forms.push(format!("for i in 0..3 {{ ({x}).mul_(0.5).add_(i); }}"));
            forms.push("k[0] += 1; k %= 7;".to_string());
        }
        forms.swap_remove(self.random.below(forms.len()))
    }

    fn loss(&mut self) -> String {
        let (x, _) = self.value(3);
        let p = self.random.one(&PARAMETERS);
        match self.random.below(4) {
            0 => format!("({x}).sum()"),
            1 => format!("(({x}).square().mean() + {p}.sum())"),
            2 => format!("(({x}).sum() * {p}).sum()"),
            _ => format!("(({p}.tanh() * 2).sum() + ({x}).mean())"),
        }
    }

    fn gradients(&mut self) -> String {
        let loss = self.loss();
        let p = self.random.one(&PARAMETERS);
        match self.random.below(8) {
            0..=3 => format!("{loss}.backward();"),
            4 => format!("{p}.grad = ();"),
            5 => format!("{}.requires_grad_();", self.variable().0),
            6 => {
                let at = self.random.below(FLOATS.len());
                let own = PARAMETERS.iter().position(|name| *name == p).unwrap_or(0);
                self.shapes[at] = self.shapes[FLOATS.len() + own].clone();
                format!("{} = grad({loss}, [{p}])[0];", FLOATS[at])
            }
            _ => {
                let at = self.random.below(FLOATS.len());
                format!("{0} = {0}.detach();", FLOATS[at])
            }
        }
    }

    fn optimizer(&mut self) -> String {
        let loss = self.loss();
        match self.random.below(3) {
            0 => "o.step();".to_string(),
            1 => "o.zero_grad();".to_string(),
            _ => format!("o.zero_grad(); {loss}.backward(); o.step();"),
        }
    }

    /// Something that the host waits for, or that passes over another device.
    fn wait(&mut self) -> String {
        let (x, _) = self.value(2);
        let at = self.random.below(FLOATS.len());
        match self.random.below(7) {
            0 => format!("print(({x}).sum().item());"),
            1 => "synchronize();".to_string(),
            2 => format!("print(({x}).to_array());"),
            3 => format!("if (({x}).sum() > 0).item() {{ {0} = {0} * 0.5; }}", FLOATS[at]),
            4 => format!("{0} = {0}.to(\"cuda:1\").to(DEV);", FLOATS[at]),
            // On the CPU the copies are none, so that a leaf would stay one.
            5 => format!("{0} = ({0} * 1).cpu().to(DEV);", FLOATS[at]),
            _ => format!("print(`${{({x}).shape}} ${{({x}).requires_grad}}`);"),
        }
    }

    /// A `try` with more inside, left in different ways.
    fn nested(&mut self) -> String {
        let (first, fault) = (self.in_place(), self.fault());
        let second = self.in_place();
        match self.random.below(6) {
            0 => format!("try {{ {first} {fault} }} catch (e) {{ print(`in ${{e.code}} ${{e.line}}`); }} {second}"),
            1 => format!(
                "let f = || {{ try {{ {first} return 1; }} catch (e) {{ print(e.code); }} 2 }}; print(f.call());"
            ),
            2 => format!("for i in 0..2 {{ try {{ {first} break; }} catch (e) {{ print(`in ${{e.code}}`); }} }}"),
            3 => format!("try {{ {first} throw \"no\"; }} catch (e) {{ {second} }}"),
            4 => format!(
                "try {{ try {{ {fault} }} catch (e) {{ throw e; }} }} catch (e) {{ print(`out ${{e.code}}`); }}"
            ),
            _ => format!("try {{ {first} }} catch (e) {{ {second} }}"),
        }
    }

    /// Something that only the kernel can refuse.
    fn fault(&mut self) -> String {
        let (x, shape) = self.variable();
        let size = shape.first().copied().unwrap_or(0);
        let bad = size + self.random.below(5);
        let forms = [
            format!("({x})[tensor([{bad}])]"),
            format!("({x}).index_select(0, tensor([0, {bad}]))"),
            format!("({x}).take(tensor([100]))"),
            "cross_entropy(p0, tensor([0, 7]))".to_string(),
            format!("embedding(tensor([1, {bad}]), p0)"),
            "k % k".to_string(),
            "bernoulli(t2 + 5)".to_string(),
            "cholesky(-eye(2))".to_string(),
            "one_hot(tensor([9]), 3)".to_string(),
        ];
        let made = self.random.one(&forms.each_ref().map(String::as_str)).to_string();
        let at = self.random.below(FLOATS.len());
        let name = FLOATS[at];
        // In place, the poison is the same however it was found; a new value is one only if the script went on.
        match (self.kind, self.random.below(5)) {
            (Kind::Late, 0..=2) => format!("{name} = ({made}).float().sum() * {name};"),
            (Kind::Late, 3) => format!("(({made}).float().sum() * p0.sum()).backward();"),
            (_, 4) => format!("{name}[tensor([{bad}, 50])] = 1.0;"),
            (_, 3) => format!("{name}.index_add_(0, tensor([50]), {name}[0..1]);"),
            _ => format!("{made};"),
        }
    }
}

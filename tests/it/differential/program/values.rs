//! Expressions: texts with the shapes of their values.

use super::{BEGINNINGS, FLOATS, Kind, Maker, PARAMETERS, Shaped, count, list};

impl Maker {
    /// A variable that holds floats, a parameter now and then.
    pub(super) fn variable(&mut self) -> Shaped {
        let at = match self.random.below(8) {
            0 | 1 => FLOATS.len() + self.random.below(PARAMETERS.len()),
            _ => self.random.below(FLOATS.len()),
        };
        (BEGINNINGS[at].0.to_string(), self.shapes[at].clone())
    }

    pub(super) fn value(&mut self, depth: usize) -> Shaped {
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

    pub(super) fn elementwise(&mut self, depth: usize) -> Shaped {
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

    pub(super) fn reduction(&mut self, depth: usize) -> Shaped {
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
    pub(super) fn view(&mut self, (x, shape): Shaped) -> Shaped {
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
    pub(super) fn operand(&mut self, shape: &[usize]) -> String {
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
    pub(super) fn written(&mut self, shape: &[usize]) -> String {
        let operand = self.operand(shape);
        if self.kind == Kind::Torch { format!("(({operand}) * 1)") } else { operand }
    }

    pub(super) fn binary(&mut self, depth: usize) -> Shaped {
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
    pub(super) fn picked(&mut self, depth: usize) -> Shaped {
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

    pub(super) fn drawn(&mut self, depth: usize) -> Shaped {
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
}

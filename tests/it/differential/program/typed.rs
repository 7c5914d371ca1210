//! Statements over other dtypes, tensors of nothing and of no dimensions; reads and writes by masks and index tensors; and
//! several names for one memory.

use super::{FLOATS, Kind, Maker, count};

/// Each keeps the dtype and the shape of what it assigns.
const TYPED: &[&str] = &[
    "k += 3;",
    "k *= 2; k %= 50;",
    "k = k & 6;",
    "k = (k | 1) ^ 2;",
    "k[0] += 1;",
    "k.neg_();",
    "k.clamp_(-3, 4);",
    "k = k.sort(1).values;",
    "k = k.flip([0]);",
    "k.T.add_(1);",
    "k -= k[0] * 1;",
    "k = (k * 1.5).long();",
    "k.floor_divide_(2);",
    "k = k.cumsum(1) % 50;",
    "k += b;",
    "i *= 3;",
    "i += u.sum().int();",
    "i = i << 1;",
    "i.remainder_(9);",
    "i = i.abs();",
    "i = i.sort().values;",
    "i[1..3] = 4;",
    "i[slice(0, (), 2)] += 1;",
    "i.view([2, 2]).T.mul_(2);",
    "i += 0.5;",
    "i = gcd(i, i.flip([0]));",
    "u += 100;",
    "u *= 3;",
    "u -= 1;",
    "u = u.flip([0]);",
    "u[u > 200] = 3;",
    "u = u & 15;",
    "b = !b;",
    "b = b & (k > 0);",
    "b |= k == 5;",
    "b.logical_not_();",
    "b[0] = true;",
    "b = b ^ b.flip([1]);",
    "b = (k % 2) == 0;",
    "b.T[1] = false;",
    "b = b.logical_or(k < 0);",
    "h = h * 2 + 0.1; h.clamp_(-9, 9);",
    "h += 0.3;",
    "h.mul_(0.7);",
    "h = h.tanh();",
    "h += h.sum() * 0.1;",
    "h[0] = 0.1;",
    "h = (h.float() * 1.5).half();",
    "h = h / 3;",
    "h.copy_(t2.detach());",
    "h += u;",
    "g = g @ g * 0.25;",
    "g = g.softmax(0);",
    "g += 0.1;",
    "g = g.T * 1;",
    "g.mul_(1.1);",
    "g[0] = g[1] * 1;",
    "g.fill_diagonal_(0.5);",
    "e = e * 2;",
    "e += 1;",
    "e.fill_(3);",
    "e = cat([e, e]);",
    "e[0..0] = 1.0;",
    "e = e.softmax(0);",
    "e = e[tensor([], #{dtype: \"i64\"})];",
    "e[e > 0] = 2.0;",
    "z = e.sum() + 1;",
    "z += e.sum();",
    "z = e.prod();",
    "z = z * 0.5;",
    "z.add_(1);",
    "z.fill_(0.25);",
    "z[()] = 1.0;",
    "z = z.unsqueeze(0).squeeze();",
    "z += t2.detach().sum() * 0.1;",
    "z = h.float().sum() + z;",
    "z = b.sum() * 0.5;",
    "z = z.view([1])[0];",
    "z[z > 0] = 0.75;",
    "z.copy_(k.sum());",
];

/// What reads and writes `k`.
const WHOLE: &[&str] = &[
    "k[b] = 7;",
    "k[b] += 1;",
    "k[k > 2] *= 2; k %= 50;",
    "k[tensor([0, 1]), tensor([2, 0])] = 5;",
    "k[tensor([1, 0])] += k; k %= 50;",
    "k[.., tensor([0, 2])] = 1;",
    "k[tensor([0, 0]), 1] += 1;",
    "k.index_put_([tensor([0, 0]), tensor([1, 1])], tensor([1, 2]), true);",
    "k.masked_fill_(b, -1);",
    "k.scatter_(1, tensor([[0], [2]]), 9);",
    "k.scatter_add_(1, tensor([[0, 0], [2, 1]]), k[.., 0..2] * 1);",
    "k[1, 0..2] = k[0, 1..3] * 1;",
    "k[slice(0, (), 2)] = 4;",
    "k.index_copy_(0, tensor([1]), k[0..1] * 2);",
    "k.put_(tensor([0, 5]), tensor([8, 9]));",
    "k.masked_scatter_(b, arange(6) + 10);",
    "k[0, \"...\"] = k[\"...\", 1, ()] * 1;",
    "k[tensor(1)] = 3;",
    "k[tensor([true, false])] = 2;",
    "k = k.take(tensor([[5, 0, 1], [2, 2, 4]]));",
    "k = k[tensor([1, 1]), ..];",
];

impl Maker {
    pub(super) fn typed(&mut self) -> String {
        self.random.one(TYPED).to_string()
    }

    /// Index tensors and masks.
    pub(super) fn by_index(&mut self) -> String {
        if self.random.once_in(3) {
            return self.random.one(WHOLE).to_string();
        }
        let at = self.random.below(FLOATS.len());
        let (name, shape) = (FLOATS[at], self.shapes[at].clone());
        let other = FLOATS[self.random.below(FLOATS.len())];
        let mut forms = vec![
            (format!("{name}[{name} > 0.3] = 0.5;"), shape.clone()),
            (format!("{name}[{name} < 0] *= 2;"), shape.clone()),
            (format!("{name}[b] = 0.25;"), shape.clone()),
            (format!("{name}[b] += {name}[b] * 0.5;"), shape.clone()),
            (format!("{name} = {name} + {other}[{other} > 0].sum();"), shape.clone()),
            (format!("{name} = {name} * {name}.masked_select({name} > 0).sum().tanh();"), shape.clone()),
            (format!("{name}.scatter_(0, zeros_like({name}).long(), 0.5);"), shape.clone()),
            (format!("{name} = {name}.gather(0, zeros_like({name}).long());"), shape.clone()),
            (format!("{name} = where(b, {name}, -{name});"), shape.clone()),
            (format!("{name} = {name}[()];"), [&[1], &shape[..]].concat()),
        ];
        if let Some((&size, rest)) = shape.split_first().filter(|(size, _)| **size > 0) {
            forms.push((format!("{name} = {name}[tensor([[0], [0]])];"), [&[2, 1], rest].concat()));
            forms.push((format!("{name}[tensor([-1])] = 0.125;"), shape.clone()));
            forms.push((format!("{name}[slice(0, (), 2)] = 0.5;"), shape.clone()));
            forms.push((format!("{name}[0, \"...\"] *= 2;"), shape.clone()));
            forms.push((format!("{name}.index_copy_(0, tensor([0]), {name}[0..1] * 2);"), shape.clone()));
            forms.push((format!("{name} = {name}.index_fill(0, tensor([0]), 0.5);"), shape.clone()));
            forms.push((format!("{name}[tensor({})] *= 0.5;", size - 1), shape.clone()));
            forms.push((format!("{name} = {name}[tensor(0)] * 1;"), rest.to_vec()));
            if let Some((&second, rest)) = rest.split_first().filter(|(size, _)| **size > 0) {
                forms.push((format!("{name} = {name}[.., tensor([0, 0])];"), [&[size, 2], rest].concat()));
                forms.push((format!("{name}[tensor([0]), tensor([{}])] += 1.0;", second - 1), shape.clone()));
                forms.push((format!("{name}[tensor([0, 0]), 0] -= 0.5;"), shape.clone()));
            }
        }
        let (text, shape) = forms.swap_remove(self.random.below(forms.len()));
        if count(&shape) > 40 {
            return "z.add_(1);".to_string();
        }
        self.shapes[at] = shape;
        text
    }

    /// More than one name, or none that gradients see.
    pub(super) fn shared(&mut self) -> String {
        let (at, to) = (self.random.below(FLOATS.len()), self.random.below(FLOATS.len()));
        let (a, b) = (FLOATS[at], FLOATS[to]);
        let mut forms = vec![
            format!("let y = {a}; y += 0.5;"),
            format!("let y = {a}; y *= 2; {a} += y;"),
            format!("{a}.data.mul_(0.5);"),
            format!("let d = {a}.detach(); d.mul_(2);"),
            format!("no_grad(|| {a}.add_(0.5));"),
            format!("no_grad(|| {{ {a}.mul_(2); {a}.clamp_(-2, 2); }});"),
            format!("let v = no_grad(|| {a}[0..1]); v.mul_(2);"),
            format!("let vs = {a}.unbind(0); vs[0].mul_(2);"),
            format!("let vs = unsafe_split({a}, 1); vs[0].add_(1);"),
            format!("let vs = unsafe_chunk({a}, 2); let w = vs[0] * 2; {a}.add_(1); (w * p1.sum()).sum().backward();"),
            format!("let vs = {a}.split(1); let w = vs[0] * 2; {a}.add_(1); (w * p1.sum()).sum().backward();"),
            format!("{a} = no_grad(|| {a} * 2);"),
            format!("{a} = {a}.detach().requires_grad_();"),
            format!("{a}.detach_();"),
            format!("{a}.retain_grad();"),
            format!("let q = {a}; {a} = {a} * 2; q.add_(1);"),
            format!("let xs = [{a}, {a}]; xs[0] *= 2; xs[1].add_(1);"),
            "p0.data.sub_(0.1);".to_string(),
            "p0.grad.mul_(0.5);".to_string(),
            "p0.grad = ones_like(p0);".to_string(),
            "let g0 = p0.grad; p0.sum().backward(); g0.mul_(0.5);".to_string(),
            "no_grad(|| { p0 -= p0 * 0.1; p1[0] = 0.5; });".to_string(),
            "o.set_lr(0.05);".to_string(),
        ];
        if self.kind != Kind::Torch {
            forms.push(format!("let m = #{{a: {a}}}; m.a += 1; m.a[m.a > 0] *= 0.5;"));
            forms.push(format!("let f = || {a} * 2; {a}.add_(1); print(f.call().sum().item());"));
            forms.push(format!("for row in {a} {{ row.mul_(0.5); }}"));
            forms.push("import \"optim\" as opts; opts::clip_grad_norm_([p0, p1], 0.5);".to_string());
            forms.push("import \"optim\" as opts; opts::clip_grad_value_([p0, p1], 0.25);".to_string());
            forms.push("let state = o.state_dict(); o.step(); o.load_state_dict(state);".to_string());
        }
        let swap = forms.len();
        forms.push(format!("let y = {a}; {a} = {b}; {b} = y;"));
        let form = self.random.below(forms.len());
        if form == swap {
            self.shapes.swap(at, to);
        }
        forms.swap_remove(form)
    }
}

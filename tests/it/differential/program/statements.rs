//! Statements over floats: assignments, writes in place, gradients, steps of optimizers, waits, `try` and faults.

use super::{FLOATS, Kind, Maker, PARAMETERS, count};

impl Maker {
    pub(super) fn assignment(&mut self) -> String {
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

    pub(super) fn in_place(&mut self) -> String {
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

    pub(super) fn loss(&mut self) -> String {
        let (x, _) = self.value(3);
        let p = self.random.one(&PARAMETERS);
        match self.random.below(4) {
            0 => format!("({x}).sum()"),
            1 => format!("(({x}).square().mean() + {p}.sum())"),
            2 => format!("(({x}).sum() * {p}).sum()"),
            _ => format!("(({p}.tanh() * 2).sum() + ({x}).mean())"),
        }
    }

    pub(super) fn gradients(&mut self) -> String {
        let loss = self.loss();
        let p = self.random.one(&PARAMETERS);
        match self.random.below(11) {
            0..=3 => format!("{loss}.backward();"),
            8 => format!("let l = {loss}; l.backward(#{{retain_graph: true}}); l.backward();"),
            9 => format!("{loss}.backward(#{{inputs: [{p}]}});"),
            10 => {
                format!("let l = {loss}; l.backward(#{{retain_graph: true}}); {p}.data.mul_(0.5); (l * 2).backward();")
            }
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

    pub(super) fn optimizer(&mut self) -> String {
        let loss = self.loss();
        match self.random.below(3) {
            0 => "o.step();".to_string(),
            1 => self.random.one(&["o.zero_grad();", "o.zero_grad(false);"]).to_string(),
            _ => format!("o.zero_grad(); {loss}.backward(); o.step();"),
        }
    }

    /// Something that the host waits for, or that passes over another device.
    pub(super) fn wait(&mut self) -> String {
        let (x, _) = self.value(2);
        let name = FLOATS[self.random.below(FLOATS.len())];
        let far = "\"cuda:1\"";
        match self.random.below(13) {
            0 => format!("print(({x}).sum().item());"),
            1 => "synchronize();".to_string(),
            2 => format!("print(({x}).to_array());"),
            3 => format!("if (({x}).sum() > 0).item() {{ {name} = {name} * 0.5; }}"),
            4 => format!("{name} = {name}.to({far}).to(DEV);"),
            // On the CPU the copies are none, so that a leaf would stay one.
            5 => format!("{name} = ({name} * 1).cpu().to(DEV);"),
            6 => format!("{name} = with_device({far}, || ({name}.to({far}) * 2 + ones([1]).sum()).to(DEV));"),
            7 => format!("let r = with_device({far}, || rand([3]).to(DEV)); {name} = {name}.detach() * r.sum();"),
            8 => "print(rand([2]).to_array(), randint(9, [2]).to_array());".to_string(),
            // Copies between GPUs order what follows on both, which those to the CPU do not: on the current stream, a fault that
            // lies there may be ordered before the event, by the device that a program runs on.
            9 => {
                let stream = if self.kind == Kind::Late { "stream()" } else { "current_stream()" };
                format!(
                    "with_device({far}) {{ let s = {stream}; with_stream(s) {{ let e = event(); let w = ones([2]) * 2; e.record(); e.synchronize(); print(e.query(), w.to_array()); }} }}"
                )
            }
            10 => format!(
                "let s = stream(#{{device: {far}}}); let w = ({x}).detach().to({far}); s.wait_stream(default_stream(1)); let q = with_stream(s, || w * 2); default_stream(1).wait_stream(s); print(q.sum().item());"
            ),
            11 => format!(
                "let q = ({x}).detach(); let c = ones([3, 2]); with_device({far}) {{ c.copy_(q.to({far}).sum()); }} {name} = c.to(DEV) * 1;"
            ),
            _ => format!("print(`${{({x}).shape}} ${{({x}).requires_grad}}`);"),
        }
    }

    /// A `try` with more inside, left in different ways.
    pub(super) fn nested(&mut self) -> String {
        // Not one in place: what stands after a fault is not queued at all in a blocking run.
        let (first, fault) = (self.in_place(), format!("{};", self.made()));
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
    pub(super) fn fault(&mut self) -> String {
        let made = self.made();
        let at = self.random.below(FLOATS.len());
        let (name, bad) = (FLOATS[at], 20 + self.random.below(5));
        // In place, the poison is the same however it was found; a new value is one only if the script went on.
        match (self.kind, self.random.below(5)) {
            (Kind::Late, 0..=2) => format!("{name} = ({made}).float().sum() * {name};"),
            (Kind::Late, 3) => format!("(({made}).float().sum() * p0.sum()).backward();"),
            (Kind::Late, 4) => format!("{name}[tensor([{bad}, 50])] = 1.0;"),
            (Kind::Late, _) => format!("{name}.index_add_(0, tensor([50]), {name}[0..1]);"),
            // Never expanded: a write into expanded tensors is several operations, of which a blocking run does not begin
            // the last.
            (_, 4) => format!("h[tensor([{bad}, 50])] = 1.0;"),
            (_, 3) => "k.index_add_(0, tensor([50]), k[0..1]);".to_string(),
            _ => format!("{made};"),
        }
    }

    /// A value that only a kernel refuses to make.
    fn made(&mut self) -> String {
        let (x, shape) = self.variable();
        let bad = shape.first().copied().unwrap_or(0) + self.random.below(5);
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
        self.random.one(&forms.each_ref().map(String::as_str)).to_string()
    }
}

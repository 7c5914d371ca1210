//! Statements and constructs with blocks: `if`, loops, `switch`, `try`, functions.

use super::{
    CopyOf, Definition, Destructured, Expr, Method, NodeKind, Pairs, Pattern, Reader, Recursive, Run, Shape,
    block_statement, is_assignment, pattern_names,
};
use crate::base::limits::EXPR_DEPTH;
use crate::script::source::counters::{gives_pairs, is_counter, is_index};
use crate::script::source::hooks::is_free_word;
use crate::script::source::lex::Kind;
use crate::script::source::scope::parameters;

impl Reader<'_> {
    /// Statements up to the token `end`, which is a closing brace or the end of the text.
    pub(super) fn statements(&mut self, end: usize) {
        let (head, pattern) = (std::mem::take(&mut self.head), std::mem::take(&mut self.pattern));
        while self.at < end {
            let before = self.at;
            match block_statement(self.src, self.tokens, before) {
                Some(_) => self.block_form(),
                None => self.statement(),
            }
            if self.at == before {
                self.at += 1;
            }
        }
        (self.head, self.pattern) = (head, pattern);
    }

    /// `no_grad { .. }` as a statement, which ends at its `}`.
    fn block_form(&mut self) {
        let mut marks = Vec::new();
        self.nested(|reader| reader.word(&mut marks));
        self.tree.marks.append(&mut marks);
        if !matches!(self.text_at(self.at), "" | "}" | ";") {
            self.tree.ended.push(self.at as u32 - 1);
        }
    }

    /// `{ ... }`; does nothing if there is none.
    pub(super) fn block(&mut self) -> Option<Run> {
        if self.peek() != "{" {
            return None;
        }
        let first = self.at;
        let end = self.tokens[first].partner as usize;
        let (visible, copies) = (self.visible.len(), self.copies.len());
        self.blocks += 1;
        self.nested(|reader| {
            reader.at += 1;
            reader.statements(end);
            reader.at = end + 1;
            Some(())
        });
        self.blocks -= 1;
        self.copies_end(copies);
        self.visible.truncate(visible);
        Some(Run { first: first as u32, last: end as u32 })
    }

    pub(super) fn statement(&mut self) {
        self.nested(|reader| {
            reader.statement_here();
            Some(())
        });
    }

    pub(super) fn statement_here(&mut self) {
        match self.peek() {
            ";" => self.at += 1,
            "{" => drop(self.block()),
            "fn" | "private" => self.function(),
            "let" | "const" => self.declaration(),
            "export" => self.at += 1,
            "import" => {
                self.at += 1;
                self.expression();
                if self.eat("as") {
                    let visible = self.visible.len();
                    self.declare_one();
                    // An alias is no variable.
                    self.visible.truncate(visible);
                }
            }
            "return" | "throw" | "break" => {
                self.at += 1;
                if self.starts_expression() {
                    self.expression();
                }
            }
            "continue" | "as" => self.at += 1,
            "if" | "while" | "loop" | "do" | "for" | "switch" | "try" => drop(self.flow()),
            _ => {
                let first = self.at;
                let Some(target) = self.expression() else { return };
                if is_assignment(self.peek()) {
                    let focus = self.at;
                    self.at += 1;
                    self.field = matches!(self.peek(), "|" | "||") && target.run.first != target.run.last;
                    self.entry = Some(self.text_at(target.run.last as usize));
                    let value = self.expression();
                    let args = std::iter::once(target.run).chain(value.map(|value| value.run)).collect();
                    self.node(NodeKind::Binary, focus, first, Run { first: focus as u32, last: focus as u32 }, args);
                    self.note_change(first);
                    let of = self.temporary(target.run);
                    let whole = self.run_from(first);
                    self.tree.temporaries.extend(of.map(|of| (whole, of)));
                    return;
                }
                self.note_change(first);
                let last = self.at.saturating_sub(1);
                let is_property = last >= first + 2
                    && self.tokens[last].kind == Kind::Word
                    && matches!(self.text_at(last - 1), "." | "?.");
                if is_property && self.peek() == ";" {
                    self.tree.unused_properties.push(last as u32);
                }
                let ends_in_call = self.text_at(self.at.saturating_sub(1)) == ")";
                if ends_in_call && self.peek() == ";" && !matches!(self.text_at(self.at + 1), "" | "}" | ";") {
                    self.tree.dropped.push(self.at as u32);
                }
            }
        }
    }

    /// `let x = 1`, `const [a, b] = f()`. The names are in scope behind the value.
    fn declaration(&mut self) {
        let is_constant = self.peek() == "const";
        let exported = self.at > 0 && self.text_at(self.at - 1) == "export";
        self.at += 1;
        if matches!(self.peek(), "[" | "#{") {
            let (first, visible) = (self.at, self.visible.len());
            let names = self.pattern();
            let run = self.run_from(first);
            let declared = self.visible.split_off(visible);
            let mut part = None;
            if self.eat("=")
                && let Some(value) = self.expression()
            {
                let of = if is_constant { Destructured::Const(value.run) } else { Destructured::Let(value.run) };
                self.tree.patterns.push(Pattern { run, names, of });
                part = Some(value.run).filter(|_| !is_constant && !exported);
            }
            self.visible.extend(declared);
            if let Some(value) = part {
                self.note_part(visible, value);
            }
            return;
        }
        let name = self.at;
        let visible = self.visible.len();
        self.declare_one();
        let declared = self.visible.split_off(visible);
        let mut part = None;
        if self.eat("=") {
            let holds_closure = matches!(self.peek(), "|" | "||") && declared.iter().all(|name| !self.is_own(name));
            let (holders, first) = (self.holders.len(), self.at);
            self.holders.extend(declared.iter().filter(|_| holds_closure).map(|name| (*name, false)));
            part = self.expression().map(|value| value.run).filter(|_| !is_constant && !exported);
            if self.holders.drain(holders..).any(|(_, named)| named) {
                self.recursive(name, first);
            }
        }
        self.visible.extend(declared);
        if let Some(value) = part {
            self.note_part(visible, value);
        }
    }

    /// Whether this text has a variable of the name in scope.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.visible.place(name).is_some_and(|at| at >= self.earlier)
    }

    /// Notes the closure at a token, which names the variable that will hold it.
    fn recursive(&mut self, name: usize, bar: usize) {
        let end = self.at.saturating_sub(1);
        let body = match self.text_at(bar) {
            "||" => bar + 1,
            _ => match (bar + 1..end).find(|&at| self.text_at(at) == "|" && self.tokens[at].kind == Kind::Symbol) {
                Some(close) => close + 1,
                None => return,
            },
        };
        let parameters = (bar + 1..body.max(bar + 1) - 1).filter(|&at| self.tokens[at].kind == Kind::Word).count();
        if body <= end {
            let body = Run { first: body as u32, last: end as u32 };
            self.tree.recursive.push(Recursive { name: name as u32, parameters, body });
        }
    }

    /// Declares the names of the pattern here and skips it.
    fn pattern(&mut self) -> Vec<u32> {
        let names = pattern_names(self.src, self.tokens, self.at);
        self.pattern_depth();
        self.tree.declared.extend(&names);
        self.visible.extend(names.iter().map(|&name| &self.src[self.tokens[name as usize].range()]));
        self.at = self.tokens[self.at].partner as usize + 1;
        names
    }

    /// Notes where the pattern here is nested beyond the limit of expressions.
    fn pattern_depth(&mut self) {
        let mut open = 0;
        for at in self.at..self.tokens[self.at].partner as usize {
            match self.text_at(at) {
                "[" | "#{" => open += 1,
                "]" | "}" => open -= 1,
                _ => {}
            }
            if open > EXPR_DEPTH {
                self.tree.too_deep.get_or_insert(at as u32);
                return;
            }
        }
    }

    /// `y.view([6])` of the target `y.view([6])[0]`: Rhai cannot assign to the result of a call.
    pub(super) fn temporary(&self, target: Run) -> Option<Run> {
        let (first, last) = (target.first as usize, target.last as usize);
        let end = match self.text_at(last) {
            "]" => self.tokens[last].partner as usize,
            _ if last > first && self.text_at(last - 1) == "." => last - 1,
            _ => return None,
        };
        let mut at = first;
        while at < end {
            if self.text_at(at) == "(" {
                return Some(Run { first: target.first, last: end as u32 - 1 });
            }
            at = (self.tokens[at].partner as usize).max(at) + 1;
        }
        None
    }

    pub(super) fn function(&mut self) {
        self.eat("private");
        if self.eat("fn") && is_free_word(self.peek()) && matches!(self.text_at(self.at + 1), "(") {
            self.tree.renamed.push(self.at as u32);
        }
        let name = self.at;
        while self.at < self.tokens.len() && !matches!(self.peek(), "(" | "{" | ";" | "}") {
            self.at += 1;
        }
        // Not `fn type.name()`, a method of one type.
        let named = self.at == name + 1 && self.peek() == "(" && self.tokens[name].kind == Kind::Word;
        let parameters = if self.peek() == "(" { parameters(self.tokens, self.at) } else { 0 };
        let outside = std::mem::take(&mut self.visible);
        let (earlier, holders) = (std::mem::take(&mut self.earlier), std::mem::take(&mut self.holders));
        let in_function = std::mem::replace(&mut self.in_function, true);
        if self.peek() == "(" {
            self.declare_all();
        }
        let body = self.at;
        let (methods, copies) = (std::mem::take(&mut self.methods), std::mem::take(&mut self.copies));
        let own = Some(self.text_at(name)).filter(|_| named);
        self.methods.push(Method { name: own, is_function: true, ..Method::default() });
        self.with_copies(CopyOf::Argument, 0, Self::block);
        self.method_ends(self.run_from(body));
        (self.methods, self.copies) = (methods, copies);
        (self.visible, self.earlier, self.holders, self.in_function) = (outside, earlier, holders, in_function);
        if named {
            let uses_this = (body..self.at).any(|index| self.text_at(index) == "this");
            self.tree.definitions.push(Definition { name: name as u32, parameters, uses_this });
        }
    }

    /// Notes the names between the parenthesis here and its partner, and skips both.
    fn declare_all(&mut self) {
        let end = self.tokens[self.at].partner as usize;
        while self.at < end {
            self.declare();
            self.at += 1;
        }
        self.at = end + 1;
    }

    /// Notes the name or `_` here and skips it.
    fn declare_one(&mut self) {
        self.declare();
        self.at += (self.is_name() || self.peek() == "_") as usize;
    }

    /// The loop over pairs whose names begin at a token, if the last call of its iterable returns pairs.
    fn pairs(&self, names: usize, over: Run, body: Run) -> Option<Pairs> {
        let two = [0, 2, 4].map(|at| self.text_at(names + at)) == ["(", ",", ")"];
        let last = over.last as usize;
        if !two || self.text_at(last) != ")" {
            return None;
        }
        let open = self.tokens[last].partner as usize;
        let name = open.checked_sub(1)?;
        let (word, stands_alone) = (self.text_at(name), name == over.first as usize);
        let is_method = name > 0 && matches!(self.text_at(name - 1), "." | "?.");
        let loop_ =
            |counts| Some(Pairs { first: names as u32 + 1, second: names as u32 + 3, body: body.first, counts });
        match word {
            _ if is_method && gives_pairs(word) => loop_(None),
            "zip" if stands_alone => loop_(None),
            "enumerate" if stands_alone && self.has_one_argument(open, last) => loop_(Some(name as u32)),
            "enumerate" if stands_alone => loop_(None),
            _ => None,
        }
    }

    /// Whether the text shows that pairs are walked: `sorted(m.items(), key)`, `zip(xs, ys)[1..]`, `m.items().filter(f)`.
    fn walks_pairs(&self, over: Run) -> bool {
        let (first, last) = (over.first as usize, over.last as usize);
        let is_called = |at: usize| self.text_at(at + 1) == "(" && at < last;
        let mut at = first;
        let mut found = match self.text_at(first) {
            "sorted" | "reversed" | "list" if is_called(first) => {
                let inside = Run { first: over.first + 2, last: self.tokens[first + 1].partner - 1 };
                inside.first <= inside.last && self.walks_pairs(self.first_argument(inside))
            }
            "zip" | "enumerate" => is_called(first),
            _ => false,
        };
        while at <= last {
            match self.text_at(at) {
                "." | "?." => {
                    let method = self.text_at(at + 1);
                    found = gives_pairs(method)
                        || (found && matches!(method, "filter" | "extract"))
                        || method == "enumerate";
                }
                "(" | "[" | "#{" | "{" => at = self.tokens[at].partner as usize,
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// What stands before the first comma.
    fn first_argument(&self, all: Run) -> Run {
        let mut at = all.first as usize;
        while at <= all.last as usize {
            if self.text_at(at) == "," {
                return Run { first: all.first, last: at as u32 - 1 };
            }
            at = (self.tokens[at].partner as usize).max(at) + 1;
        }
        all
    }

    /// Whether there is no top-level comma between two brackets, but for one at the end.
    fn has_one_argument(&self, open: usize, close: usize) -> bool {
        let mut at = open + 1;
        while at < close {
            if self.text_at(at) == "," && at + 1 < close {
                return false;
            }
            at = (self.tokens[at].partner as usize).max(at) + 1;
        }
        close > open + 1
    }

    /// The condition of an `if` or loop.
    pub(super) fn condition(&mut self) {
        if let Some(expr) = self.head_expression() {
            self.truth(expr);
        }
    }

    pub(super) fn head_expression(&mut self) -> Option<Expr> {
        if self.peek() == "{" {
            return None;
        }
        let head = std::mem::replace(&mut self.head, true);
        let expr = self.expression();
        self.head = head;
        expr
    }

    /// `if`, loops, `switch` and `try`, as statements or as expressions.
    pub(super) fn flow(&mut self) -> Option<Expr> {
        let first = self.at;
        let word = self.peek();
        self.at += 1;
        self.flow_of(word);
        if matches!(word, "while" | "loop" | "do" | "for") {
            self.loops.push(self.run_from(first));
        }
        Some(Expr { run: self.run_from(first), shape: Shape::Other })
    }

    fn flow_of(&mut self, word: &str) {
        match word {
            "if" => {
                self.condition();
                self.block();
                if self.eat("else") {
                    if self.peek() == "if" {
                        self.nested(Self::flow);
                    } else {
                        self.block();
                    }
                }
            }
            "while" => {
                self.condition();
                self.block();
            }
            "loop" => drop(self.block()),
            "do" => {
                self.block();
                if (self.eat("while") || self.eat("until"))
                    && let Some(expr) = self.expression()
                {
                    self.truth(expr);
                }
            }
            "for" => {
                let names = self.at;
                let visible = self.visible.len();
                let mut counts = false;
                let mut pattern = None;
                if self.peek() == "(" {
                    counts = self.text_at(self.at + 2) == ",";
                    self.declare_all();
                } else if matches!(self.peek(), "[" | "#{") {
                    pattern = Some(self.pattern());
                } else {
                    self.declare_one();
                }
                let run = self.run_from(names);
                // The names are in scope in the body only.
                let declared = self.visible.split_off(visible);
                let over = if self.eat("in") { self.head_expression() } else { None };
                let walks_pairs = over.is_some_and(|over| self.walks_pairs(over.run));
                let second = self.text_at(names + 3);
                counts &= if walks_pairs { !is_index(second) } else { !is_counter(second) };
                let is_map = |run: &Run| {
                    let opens = self.text_at(run.first as usize) == "#{";
                    opens && self.tokens[run.first as usize].partner == run.last
                };
                let veiled = over.map(|over| over.run).filter(is_map);
                self.tree.veiled.extend(veiled);
                self.visible.extend(declared);
                let body = self.with_copies(CopyOf::Element, visible, Self::block);
                self.visible.truncate(visible);
                if let Some(body) = body {
                    if let Some(names) = pattern {
                        let of = Destructured::Each(body.first);
                        self.tree.patterns.push(Pattern { run, names, of });
                    }
                    match over.map(|over| (over.run, self.pairs(names, over.run, body))) {
                        Some((_, Some(pairs))) => self.tree.pairs.push(pairs),
                        Some((values, None)) if counts => {
                            self.tree.counted.push(values);
                            self.tree.counted_pairs.extend(walks_pairs.then_some(values));
                        }
                        _ => {}
                    }
                    if body.last == body.first + 1 {
                        self.tree.idle_loops.push(body);
                    }
                }
            }
            "switch" => {
                if let Some(value) = self.head_expression()
                    && !matches!(value.shape, Shape::Bool | Shape::Opaque)
                {
                    self.tree.switches.push(value.run);
                }
                self.switch_body();
            }
            _ => {
                if let Some(block) = self.block() {
                    self.tree.tries.push(block);
                }
                if self.eat("catch") {
                    let visible = self.visible.len();
                    if self.peek() == "(" {
                        self.declare_all();
                    }
                    self.block();
                    self.visible.truncate(visible);
                }
            }
        }
    }

    pub(super) fn switch_body(&mut self) {
        if self.peek() != "{" {
            return;
        }
        let end = self.tokens[self.at].partner as usize;
        let (head, pattern) = (std::mem::take(&mut self.head), std::mem::take(&mut self.pattern));
        self.at += 1;
        while self.at < end {
            let before = self.at;
            self.pattern = true;
            while self.at < end && !matches!(self.peek(), "=>" | "if") {
                if self.expression().is_none() || self.peek() == "|" {
                    self.at += 1;
                }
            }
            self.pattern = false;
            if self.eat("if") {
                self.condition();
            }
            if self.eat("=>") {
                self.statement();
            }
            self.eat(",");
            if self.at == before {
                self.at += 1;
            }
        }
        self.at = end + 1;
        (self.head, self.pattern) = (head, pattern);
    }
}

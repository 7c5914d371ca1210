//! Expressions: operators, chains of calls, properties and indexers, literals, closures.

use super::{
    ARGUMENTS, CHAIN_MARKS, CallForm, CallSite, CopyOf, Expr, Lent, Mark, Method, NodeKind, Reader, Run, Shape,
    binary_precedence, block_in_head, calls_a_value, is_assignment, is_keyword, runs, starts_expression,
};
use crate::script::source::counters::is_counter;
use crate::script::source::hooks::{is_bare_word, is_block_word, is_free_word, takes_list};
use crate::script::source::lex::Kind;

impl<'a> Reader<'a> {
    pub(super) fn starts_expression(&self) -> bool {
        starts_expression(self.kind(), self.peek())
    }

    pub(super) fn truth(&mut self, expr: Expr) {
        if expr.shape != Shape::Bool {
            self.tree.truths.push(expr.run);
        }
    }

    pub(super) fn expression(&mut self) -> Option<Expr> {
        if !self.starts_expression() {
            return None;
        }
        self.nested(|reader| reader.binary(0))
    }

    pub(super) fn binary(&mut self, minimum: u8) -> Option<Expr> {
        let first = self.at;
        let mut left = if matches!(self.peek(), ".." | "..=") {
            // An open start: the operator has no left operand.
            Expr { run: Run { first: first as u32, last: first as u32 }, shape: Shape::Other }
        } else {
            self.unary()?
        };
        loop {
            let symbol = self.peek();
            let Some(power) = binary_precedence(symbol) else { break };
            if power <= minimum || (self.pattern && symbol == "|") {
                break;
            }
            let focus = self.at;
            self.at += 1;
            let open_start = left.run.first as usize == focus;
            if symbol == "??" && !open_start {
                self.asks(left.run);
            }
            let right = if self.starts_operand(symbol) { self.operand(power) } else { None };
            if let Some(right) = right.filter(|_| symbol == "??" && self.peek() == "??") {
                self.asks(right.run);
            }
            let mut args = Vec::with_capacity(2);
            if !open_start {
                args.push(left.run);
            }
            args.extend(right.map(|right| right.run));
            let orders = matches!(symbol, "<" | "<=" | ">" | ">=");
            // Not `a <> b` and `Vec<f32>`, which lead elsewhere.
            if let (true, Shape::Ordered(before)) = (orders, left.shape)
                && self.text_at(before as usize).starts_with(&symbol[..1])
            {
                self.tree.chained.push((before, focus as u32));
            }
            let logical = matches!(symbol, "&&" | "||");
            let bits = matches!(symbol, "&" | "^" | "|");
            if logical {
                self.truth(left);
                if let Some(right) = right {
                    self.truth(right);
                }
            } else {
                // In Rhai `^` and `|` have equal precedence, from left to right.
                let operands = [(!bits).then_some(left), right].into_iter().flatten();
                let grouped = operands.filter(|operand| operand.shape == Shape::Bits).map(|operand| operand.run);
                self.tree.groups.extend(grouped);
            }
            let opaque = left.shape == Shape::Opaque || right.is_some_and(|right| right.shape == Shape::Opaque);
            let compared = matches!(symbol, "==" | "!=") && opaque;
            let shape = match symbol {
                "in" | "!in" => Shape::Bool,
                _ if logical || compared => Shape::Bool,
                _ if bits => Shape::Bits,
                _ if orders => Shape::Ordered(focus as u32),
                _ => Shape::Other,
            };
            let call = Run { first: focus as u32, last: focus as u32 };
            self.node(NodeKind::Binary, focus, first, call, args);
            left = Expr { run: self.run_from(first), shape };
        }
        Some(left)
    }

    /// Notes the expression before `??`, if it ends in an element or property.
    pub(super) fn asks(&mut self, run: Run) {
        // Cost: all nodes of a chain that began long ago are behind those that end here.
        let mut ends = self.tree.nodes.iter().rev().take_while(|node| node.whole.last == run.last);
        let last = ends.find(|node| node.whole == run && matches!(node.kind, NodeKind::Index | NodeKind::Property));
        let place = last.map(|node| node.focus).filter(|&focus| {
            let close = self.tokens[focus as usize].partner.max(focus);
            close == run.last
        });
        self.tree.asked.extend(place.map(|place| (run, place)));
    }

    /// Whether the operator just passed has a right operand; a range may have none, and in a head a `{` after a range
    /// is the body.
    pub(super) fn starts_operand(&self, symbol: &str) -> bool {
        let statement = symbol == "??" && matches!(self.peek(), "break" | "continue" | "return" | "throw");
        let body = self.head && self.peek() == "{" && matches!(symbol, ".." | "..=");
        statement || (self.starts_expression() && !body)
    }

    /// Whether the `{` here, behind a word, begins the body of the statement whose head this is.
    fn is_body(&self, word: usize) -> bool {
        self.head && !block_in_head(self.src, self.tokens, word, self.at)
    }

    pub(super) fn operand(&mut self, power: u8) -> Option<Expr> {
        if matches!(self.peek(), "break" | "continue" | "return" | "throw") {
            let first = self.at;
            self.statement();
            return Some(Expr { run: self.run_from(first), shape: Shape::Other });
        }
        self.nested(|reader| reader.binary(power))
    }

    pub(super) fn unary(&mut self) -> Option<Expr> {
        let first = self.at;
        if !matches!(self.peek(), "-" | "+" | "!") {
            return self.power();
        }
        let sign = self.peek();
        self.at += 1;
        let operand = if self.starts_expression() { self.nested(Self::unary) } else { None }?;
        if operand.shape == Shape::Power {
            self.tree.groups.push(operand.run);
        }
        if sign == "-" && self.is_least(operand.run) {
            self.tree.veiled.push(operand.run);
        }
        let call = Run { first: first as u32, last: first as u32 };
        self.node(NodeKind::Unary, first, first, call, vec![operand.run]);
        let shape = if sign == "!" && operand.shape == Shape::Bool { Shape::Bool } else { Shape::Other };
        Some(Expr { run: self.run_from(first), shape })
    }

    /// Whether an operand is the literal of the smallest integer, which Rhai's parser negates to a float.
    fn is_least(&self, operand: Run) -> bool {
        let (mut first, mut last) = (operand.first as usize, operand.last as usize);
        while self.text_at(first) == "(" && self.tokens[first].partner as usize == last && last > first + 1 {
            (first, last) = (first + 1, last - 1);
        }
        let is_negated = self.text_at(first) == "-" && first + 1 == last;
        if self.tokens[last].kind != Kind::Number || (first != last && !is_negated) {
            return false;
        }
        let digits = self.text_at(last).replace('_', "").to_ascii_lowercase();
        let of_radix = |prefix: &str, radix| u64::from_str_radix(digits.strip_prefix(prefix)?, radix).ok();
        let value = match is_negated {
            true => digits.parse().ok(),
            false => of_radix("0x", 16).or_else(|| of_radix("0b", 2)).or_else(|| of_radix("0o", 8)),
        };
        value == Some(1 << 63)
    }

    pub(super) fn power(&mut self) -> Option<Expr> {
        let first = self.at;
        let base = self.chain()?;
        if self.peek() != "**" {
            return Some(base);
        }
        let focus = self.at;
        self.at += 1;
        let right = if self.starts_expression() { self.nested(Self::unary) } else { None };
        let args = std::iter::once(base.run).chain(right.map(|right| right.run)).collect();
        self.node(NodeKind::Binary, focus, first, Run { first: focus as u32, last: focus as u32 }, args);
        Some(Expr { run: self.run_from(first), shape: Shape::Power })
    }

    /// A primary with its properties, calls and indexers.
    pub(super) fn chain(&mut self) -> Option<Expr> {
        let first = self.at;
        let mut marks = Vec::new();
        let mut root = self.primary(&mut marks)?;
        let first_end = self.at;
        let mut elvis = false;
        loop {
            match self.peek() {
                "[" | "?[" => {
                    elvis |= self.peek() == "?[";
                    let open = self.at;
                    let close = self.tokens[open].partner;
                    let (args, commas) = self.group();
                    if open == first_end && self.is_refused(open + 1, close as usize) {
                        self.tree.veiled.extend(args.first().map(|index| index.run));
                    }
                    // `x["..."]` alone too: a tensor has no indexer for strings, since Rhai would call it for unknown
                    // properties.
                    if commas > 0 || self.text_at(open + 1) == "\"...\"" {
                        self.tree.index_lists.push(Run { first: open as u32, last: close });
                    }
                    // `x[i]` is one focus; after a call only the brackets are the focus.
                    let named = open > first && self.tokens[open - 1].kind == Kind::Word;
                    let call = Run { first: (open - named as usize) as u32, last: close };
                    self.node(NodeKind::Index, open, first, call, runs(&args));
                }
                "(" if calls_a_value(self.src, self.tokens, first, self.at) => {
                    let open = self.at;
                    let (args, _) = self.group();
                    self.tree.applied_values.push(open as u32);
                    let call = self.run_from(first);
                    self.node(NodeKind::Call, open, first, call, runs(&args));
                    if !elvis {
                        marks.push(Mark { call, name: open as u32, is_plain: false });
                    }
                }
                "." | "?." => {
                    elvis |= self.peek() == "?.";
                    self.at += 1;
                    if self.kind() != Some(Kind::Word) {
                        break;
                    }
                    let name = self.at;
                    self.at += 1;
                    if self.peek() == "(" {
                        self.note_changer(first, name);
                        self.call(first, name, self.text_at(name), !elvis, &mut marks);
                    } else {
                        let call = Run { first: name as u32, last: name as u32 };
                        self.node(NodeKind::Property, name, first, call, Vec::new());
                    }
                }
                _ => break,
            }
            root.shape = Shape::Other;
        }
        // The target of an assignment must stay one; a call in it is given a name first.
        let assigned = is_assignment(self.peek());
        let end = if assigned { self.temporary(self.run_from(first)).map_or(0, |of| of.last + 1) } else { u32::MAX };
        self.tree.marks.extend(marks.into_iter().filter(|mark| mark.call.last < end).take(CHAIN_MARKS));
        Some(Expr { run: self.run_from(first), shape: root.shape })
    }

    /// Whether a number with a point or a character, and nothing else, stands between two brackets.
    fn is_refused(&self, from: usize, close: usize) -> bool {
        if from + 1 == close && self.tokens[from].kind == Kind::Char {
            return true;
        }
        let number = from + (self.text_at(from) == "-") as usize;
        number + 1 == close && self.tokens[number].kind == Kind::Number && self.text_at(number).contains(['.', 'e'])
    }

    /// Whether a name that no variable has is that of a constant, which `global::` reaches.
    fn is_outer_constant(&self, name: &str) -> bool {
        (self.in_function && self.constants.contains(name)) || self.around.contains(name)
    }

    /// The argument list of a call whose name is the token `name`, and a mark if it may enter script code.
    pub(super) fn call(&mut self, first: usize, name: usize, path: &str, may_mark: bool, marks: &mut Vec<Mark>) {
        let (args, _) = self.group();
        let call = self.run_from(name);
        self.node(NodeKind::Call, name, first, call, runs(&args));
        self.call_site(name, &args, path);
        if may_mark && (self.own_functions.contains(path) || !(self.is_native)(path)) {
            marks.push(Mark { call: self.run_from(first), name: name as u32, is_plain: name == first });
        }
    }

    pub(super) fn call_site(&mut self, name: usize, args: &[Expr], path: &str) {
        if self.text_at(name) == "for_each"
            && let [closure] = args
        {
            self.note_each(name, closure.run);
        }
        let form = match name.checked_sub(1).map_or("", |before| self.text_at(before)) {
            "." | "?." => CallForm::Method,
            "::" => CallForm::Qualified,
            _ => CallForm::Plain,
        };
        self.tree.calls.push(CallSite { name: name as u32, arguments: args.len(), form });
        if form == CallForm::Qualified && !(self.is_native)(path) {
            self.tree.qualified.push(name as u32);
        }
        let names_function = form == CallForm::Plain && matches!(self.text_at(name), "Fn" | "is_def_fn");
        if let Some(&Run { first, last }) = args.first().map(|first| &first.run)
            && names_function
            && first == last
            && self.text_at(first as usize).starts_with('"')
        {
            self.tree.quoted.push(first);
        }
    }

    /// `xs.for_each(|x| ..)`: `x` is the number of the element, which is `this`.
    fn note_each(&mut self, name: usize, closure: Run) {
        let first = closure.first as usize;
        let is_single = self.text_at(first) == "|" && self.text_at(first + 2) == "|";
        let uses_this = (first..=closure.last as usize).any(|at| self.text_at(at) == "this");
        if is_single && !uses_this && !is_counter(self.text_at(first + 1)) {
            self.tree.each_counted.push((name as u32, closure.first + 1));
        }
    }

    /// Items between the delimiter here and its partner, with the number of commas between them.
    pub(super) fn group(&mut self) -> (Vec<Expr>, usize) {
        let end = self.tokens[self.at].partner as usize;
        let (head, pattern) = (std::mem::take(&mut self.head), std::mem::take(&mut self.pattern));
        let (mut items, mut commas) = (Vec::new(), 0);
        self.at += 1;
        while self.at < end {
            if let Some(item) = self.expression() {
                items.push(item);
            }
            if self.at < end {
                commas += (self.peek() == ",") as usize;
                self.at += 1;
            }
        }
        self.at = end + 1;
        (self.head, self.pattern) = (head, pattern);
        (items, commas)
    }

    pub(super) fn primary(&mut self, marks: &mut Vec<Mark>) -> Option<Expr> {
        let first = self.at;
        let mut shape = Shape::Other;
        match self.kind()? {
            Kind::Number | Kind::Char | Kind::Unknown => self.at += 1,
            Kind::Str => {
                self.at += 1;
                shape = Shape::Opaque;
            }
            Kind::TextOpen => {
                self.interpolation();
                shape = Shape::Opaque;
            }
            Kind::TextEnd => return None,
            Kind::Word => return self.word(marks),
            Kind::Symbol => match self.peek() {
                "(" => {
                    let unit = self.tokens[first].partner as usize == first + 1;
                    let (items, _) = self.group();
                    shape = match items[..] {
                        [] if unit => Shape::Opaque,
                        [item] if !matches!(item.shape, Shape::Power | Shape::Bits | Shape::Ordered(_)) => item.shape,
                        _ => Shape::Other,
                    };
                }
                "[" => drop(self.group()),
                "#{" => self.map(),
                "{" => drop(self.block()),
                "|" | "||" => self.closure(),
                "..." | "--" | "++" => self.at += 1,
                _ => return None,
            },
        }
        Some(Expr { run: self.run_from(first), shape })
    }

    pub(super) fn word(&mut self, marks: &mut Vec<Mark>) -> Option<Expr> {
        let first = self.at;
        if self.peek() == "this"
            && let Some(method) = self.methods.last_mut()
        {
            method.own.push(first as u32);
        }
        match self.peek() {
            "true" | "false" => {
                self.at += 1;
                return Some(Expr { run: self.run_from(first), shape: Shape::Bool });
            }
            "if" | "while" | "loop" | "do" | "for" | "switch" => return self.flow(),
            word if is_keyword(word) => return None,
            _ => self.at += 1,
        }
        let mut name = first;
        while self.peek() == "::" && self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Word) {
            name = self.at + 1;
            self.at += 2;
        }
        match self.peek() {
            "(" if self.text_at(first) != "this" => {
                self.rename(first, name);
                let path = &self.src[self.tokens[first].start as usize..self.tokens[name].end as usize];
                let (before, open) = (marks.len(), self.at);
                let is_name = name == first && !is_block_word(path);
                let holds = is_name && self.is_visible(path);
                let is_outer = is_name && !holds && self.is_outer_constant(path);
                self.call(first, name, path, true, marks);
                if is_name && path == "eval" {
                    self.note_all(first);
                }
                if holds || is_outer {
                    if holds {
                        self.name_holder(path);
                        self.note_use(first);
                        self.note_captured(first);
                    }
                    self.tree.applied.push((self.run_from(first), is_outer));
                    if marks.len() == before {
                        marks.push(Mark { call: self.run_from(first), name: name as u32, is_plain: false });
                    }
                    if let Some(mark) = marks.last_mut() {
                        mark.is_plain = false;
                    }
                }
                // `with_device(d) { ... }`, a block form of the engine: not a function, so it is not marked.
                if self.peek() == "{" && !self.is_body(first) {
                    marks.truncate(before);
                    self.block();
                    if name == first && is_block_word(path) {
                        self.tree.renamed.push(name as u32);
                        let arguments = Run { first: open as u32, last: self.tokens[open].partner };
                        if takes_list(path) {
                            self.tree.listed.push(arguments);
                        } else if is_bare_word(path) && arguments.last == arguments.first + 1 {
                            self.tree.bare.push(arguments);
                        }
                    }
                } else if name == first
                    && is_block_word(path)
                    && !takes_list(path)
                    && !self.own_functions.contains(path)
                {
                    self.inline(name, open);
                }
            }
            // `f!(x)` passes its variables; it is unchanged.
            "!" if self.text_at(self.at + 1) == "(" && self.tokens[self.at].start == self.tokens[first].end => {
                self.at += 1;
                let (args, _) = self.group();
                let call = self.run_from(name);
                self.node(NodeKind::Call, name, first, call, runs(&args));
                let path = &self.src[self.tokens[first].start as usize..self.tokens[name].end as usize];
                self.call_site(name, &args, path);
            }
            "{" if !self.is_body(first) && !self.pattern => {
                self.block();
                // `no_grad { .. }`
                if name == first && is_bare_word(self.text_at(first)) {
                    self.tree.renamed.push(name as u32);
                }
            }
            _ if name == first => {
                self.tree.values.push(name as u32);
                self.note_use(first);
                let word = self.text_at(first);
                if word == ARGUMENTS && !self.is_visible(word) {
                    self.tree.arguments.push(name as u32);
                } else if !self.is_visible(word) {
                    self.tree.free.push(name as u32);
                    if self.is_outer_constant(word) {
                        self.tree.outer_constants.push(name as u32);
                    }
                } else {
                    self.name_holder(word);
                    self.note_captured(name);
                }
            }
            _ => {}
        }
        Some(Expr { run: self.run_from(first), shape: Shape::Other })
    }

    /// Whether a name is that of a variable here, or of the one that will hold the closure that is read.
    fn is_visible(&self, name: &str) -> bool {
        self.visible.contains(name) || self.holders.iter().any(|(holder, _)| *holder == name)
    }

    /// Notes the name of a variable here, if a closure takes the variable along: one outside, or one that will hold a closure
    /// around.
    fn note_captured(&mut self, name: usize) {
        let word = self.text_at(name);
        if self.outside > 0 && self.visible.place(word).is_none_or(|at| at < self.outside) {
            self.tree.captured.push(name as u32);
        }
    }

    /// Notes that the closure which is read names the variable that will hold it.
    fn name_holder(&mut self, name: &str) {
        if self.is_own(name) {
            return;
        }
        if let Some((_, named)) = self.holders.iter_mut().rev().find(|(holder, _)| *holder == name) {
            *named = true;
        }
    }

    /// A closure without parameters that is written as the last argument of a block function.
    pub(super) fn inline(&mut self, name: usize, open: usize) {
        let close = self.tokens[open].partner as usize;
        let Some(args) = self.tree.nodes.iter().rev().find(|node| node.focus as usize == name) else { return };
        let Some(&Run { first: bar, last }) = args.args.last() else { return };
        let is_closure = self.text_at(bar as usize) == "||" && self.tokens[bar as usize].kind == Kind::Symbol;
        if is_closure && bar < last && last as usize + 1 == close {
            self.tree.inlined.push((name as u32, bar, Run { first: bar + 1, last }));
        }
    }

    /// `eval`, and a reserved word that can only be a script function.
    pub(super) fn rename(&mut self, first: usize, name: usize) {
        let word = self.text_at(name);
        let script = name > first || self.own_functions.contains(word) || !(self.is_native)(word);
        if (name == first && word == "eval") || (is_free_word(word) && script) {
            self.tree.renamed.push(name as u32);
        }
    }

    pub(super) fn closure(&mut self) {
        let visible = self.visible.len();
        let is_field = std::mem::take(&mut self.field);
        let outside = std::mem::replace(&mut self.outside, visible);
        let body = self.closure_here(is_field);
        self.outside = outside;
        self.visible.truncate(visible);
        self.method_ends(self.run_from(body));
    }

    /// The function or closure that was read last has this body.
    pub(super) fn method_ends(&mut self, body: Run) {
        let Some(method) = self.methods.pop() else { return };
        let uses = || method.own.iter().chain(&method.inner).copied();
        match self.methods.last_mut() {
            // A closure inside another function has its `this`.
            Some(around) if !method.is_field && !method.is_function => around.inner.extend(uses()),
            _ if !method.inner.is_empty() && (method.is_field || !method.own.is_empty()) => {
                let uses = uses().collect();
                self.tree.lent.push(Lent { body, is_function: method.is_function, uses });
            }
            _ => {}
        }
    }

    /// The token at which the body begins.
    fn closure_here(&mut self, is_field: bool) -> usize {
        let visible = self.visible.len();
        if !self.eat("||") {
            self.at += 1;
            while self.at < self.tokens.len() && !matches!(self.peek(), "|" | "(" | ")" | "{" | "}" | "]" | ";") {
                self.declare();
                self.at += 1;
            }
            self.eat("|");
        }
        let name = self.entry.take().filter(|_| is_field);
        self.methods.push(Method { name, is_field, ..Method::default() });
        // A body is a statement. Not: past a separator, which belongs to the enclosing construct.
        let body = self.at;
        if self.starts_expression() || matches!(self.peek(), "try" | "let" | "const") {
            // What it ends with is its value: `|| m.name;` throws nothing away.
            let (unused, open) = (self.tree.unused_properties.len(), self.peek() == "{");
            self.with_copies(CopyOf::Argument, visible, Self::statement);
            if !open {
                self.tree.unused_properties.truncate(unused);
            }
        }
        body
    }

    /// Notes the name here, if there is one, as that of a variable.
    pub(super) fn declare(&mut self) {
        if self.peek() == "_" {
            self.tree.ignored.push(self.at as u32);
        } else if self.is_name() {
            self.tree.declared.push(self.at as u32);
            self.visible.push(self.text_at(self.at));
        }
    }

    pub(super) fn interpolation(&mut self) {
        while self.kind() == Some(Kind::TextOpen) {
            self.at += 1;
            self.block();
        }
        self.at += (self.kind() == Some(Kind::TextEnd)) as usize;
    }
}

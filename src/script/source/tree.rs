//! The shape of a script's expressions: what each operator, call and indexer spans, and which places the
//! source pass rewrites.
//!
//! A tolerant reading of Rhai's grammar: it accepts every text that `lex` accepts and says nothing about
//! errors (Rhai's parser does), so it may be wrong about texts that Rhai refuses. It builds no syntax
//! tree, only one flat list of nodes by token index. Precedences are Rhai's, save that `**` binds
//! tighter than a sign on its left, and `&`, `^` and `|` tighter than comparisons.

use super::hooks::{is_bare_word, is_block_word, is_free_word};
use super::lex::{Kind, Token};
use std::collections::HashSet;

mod statements;

/// Bound: nesting that is followed; Rhai's own limit is `base::limits::EXPR_DEPTH`. Keeps the stack small.
const DEPTH: usize = 300;
/// Bound: marked calls of one chain, since each is an expression level to Rhai.
const CHAIN_MARKS: usize = 16;

/// Tokens `first..=last`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub first: u32,
    pub last: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// `a + b`, also `a += b` and `a = b`; `args` are the operands.
    Binary,
    Unary,
    /// `f(a)`, `ns::f(a)`, `r.f(a)`, with the argument list.
    Call,
    Index,
    Property,
}

/// An operation at its focus, the token that Rhai reports as its position.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub kind: NodeKind,
    pub focus: u32,
    pub whole: Run,
    /// The focus with its argument list or brackets.
    pub call: Run,
    pub args: Vec<Run>,
}

/// A call that may enter script code.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mark {
    pub call: Run,
    pub name: u32,
    /// `f(x)`: the call begins with the name.
    pub is_plain: bool,
}

/// How a call names its function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallForm {
    /// `f(x)`
    Plain,
    /// `x.f()`
    Method,
    /// `module::f(x)`
    Qualified,
}

/// A call: its name and the number of arguments in the parentheses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallSite {
    pub name: u32,
    pub arguments: usize,
    pub form: CallForm,
}

/// `for (a, b) in xs {` where what stands for `xs` gives pairs, and each of the two names is to get its part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pairs {
    pub first: u32,
    pub second: u32,
    /// The `{` of the body.
    pub body: u32,
    /// The `enumerate` of `enumerate(xs)`: Rhai counts itself, but names the value first.
    pub counts: Option<u32>,
}

/// A function that the text defines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Definition {
    pub name: u32,
    pub parameters: usize,
    pub uses_this: bool,
}

/// All that one reading finds.
#[derive(Default, Debug)]
pub struct Tree {
    /// By focus.
    pub nodes: Vec<Node>,
    /// Expressions whose truth is asked and that are not `bool` for certain.
    pub truths: Vec<Run>,
    /// What a `switch` looks at, where a tensor may be.
    pub switches: Vec<Run>,
    /// Powers under a sign, and operands that `&`, `^` or `|` make: Rhai binds both otherwise.
    pub groups: Vec<Run>,
    /// `[` and `]` of `x[a, b]`.
    pub index_lists: Vec<Run>,
    /// `{` and `}` of `try` blocks.
    pub tries: Vec<Run>,
    /// `;` after a call whose value nobody takes, with another statement after it.
    pub dropped: Vec<u32>,
    /// `{` and `}` of `for` loops without a statement.
    pub idle_loops: Vec<Run>,
    /// The values of `for (a, b) in values`, where `b` is not called as a counter is.
    pub counted: Vec<Run>,
    pub marks: Vec<Mark>,
    /// Assignments to an element or property of what a call gives: the whole, and what the call gives.
    pub temporaries: Vec<(Run, Run)>,
    /// `m[k]` and `m.k` before `??`, and their `[` or name: that there is no such entry is no error.
    pub asked: Vec<(Run, u32)>,
    /// Names before a `;` that end a statement which does nothing but read a property: `opt.step;`.
    pub unread: Vec<u32>,
    /// Names of functions that Rhai reserves.
    pub renamed: Vec<u32>,
    /// `(` and `)` of `no_grad() { .. }`.
    pub bare: Vec<Run>,
    /// `with_device(d, || body)`: the name, the `||`, and the body, which runs in place.
    pub inlined: Vec<(u32, u32, Run)>,
    pub calls: Vec<CallSite>,
    pub definitions: Vec<Definition>,
    /// Strings that name functions: `Fn("f")`.
    pub quoted: Vec<u32>,
    /// Names that stand for values.
    pub values: Vec<u32>,
    /// Names that are declared: variables, parameters, aliases.
    pub declared: Vec<u32>,
    /// Names of calls `module::f(x)` that no native module has.
    pub qualified: Vec<u32>,
    /// `_` where a name is declared: nobody wants the value.
    pub ignored: Vec<u32>,
    /// Loops over pairs.
    pub pairs: Vec<Pairs>,
    /// The token at which nesting goes beyond all limits.
    pub too_deep: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Surely `bool`.
    Bool,
    /// Never equal to a tensor element by element: a string or `()`.
    Opaque,
    Power,
    /// By `&`, `^` or `|`.
    Bits,
    Other,
}

#[derive(Clone, Copy)]
struct Expr {
    run: Run,
    shape: Shape,
}

struct Reader<'a> {
    src: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// In the head of `if`, `while`, `for`, `switch`: a `{` starts the body.
    head: bool,
    /// In the pattern of a `switch` case: `|` separates.
    pattern: bool,
    own_functions: HashSet<&'a str>,
    is_native: &'a dyn Fn(&str) -> bool,
    tree: Tree,
}

/// Reads the whole text. `is_native(name)` says that a function, method or `ns::name` never runs script
/// code; such calls are not marked.
pub fn read(src: &str, tokens: &[Token], is_native: &dyn Fn(&str) -> bool) -> Tree {
    let text = |token: &Token| &src[token.range()];
    let own_functions = tokens.windows(2).filter(|pair| text(&pair[0]) == "fn").map(|pair| text(&pair[1])).collect();
    let tree = Tree::default();
    let (depth, head, pattern) = (0, false, false);
    let mut reader = Reader { src, tokens, at: 0, depth, head, pattern, own_functions, is_native, tree };
    reader.statements(tokens.len());
    reader.tree.nodes.sort_by_key(|node| node.focus);
    reader.tree
}

/// Words that are no names. `eval`, `print` and the like are names that Rhai reserves.
pub fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "let" | "const" | "if" | "else" | "switch" | "do" | "while" | "until" | "loop" | "for" | "in" | "continue"
    ) || matches!(
        word,
        "break"
            | "return"
            | "throw"
            | "try"
            | "catch"
            | "fn"
            | "private"
            | "import"
            | "export"
            | "as"
            | "true"
            | "false"
    )
}

pub fn binary_power(symbol: &str) -> Option<u8> {
    Some(match symbol {
        "||" => 30,
        "&&" => 60,
        "==" | "!=" => 90,
        "in" | "!in" => 110,
        "<" | "<=" | ">" | ">=" => 130,
        "??" => 135,
        ".." | "..=" => 140,
        "|" => 142,
        "^" => 144,
        "&" => 146,
        "+" | "-" => 150,
        "*" | "/" | "%" | "@" => 180,
        "<<" | ">>" => 210,
        _ => return None,
    })
}

/// `=`, `+=` and the like.
pub fn is_assignment(symbol: &str) -> bool {
    matches!(symbol, "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "**=" | "<<=" | ">>=" | "&=" | "|=" | "^=")
}

fn runs(exprs: &[Expr]) -> Vec<Run> {
    exprs.iter().map(|expr| expr.run).collect()
}

impl<'a> Reader<'a> {
    fn text_at(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| &self.src[token.range()])
    }

    /// The current token's text if it is a word or symbol, so that a string `"if"` is never taken for one.
    fn peek(&self) -> &'a str {
        match self.tokens.get(self.at) {
            Some(token) if matches!(token.kind, Kind::Word | Kind::Symbol) => self.text_at(self.at),
            _ => "",
        }
    }

    fn kind(&self) -> Option<Kind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn is_name(&self) -> bool {
        self.kind() == Some(Kind::Word) && !is_keyword(self.text_at(self.at))
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.peek() == text && !text.is_empty();
        self.at += found as usize;
        found
    }

    fn run_from(&self, first: usize) -> Run {
        Run { first: first as u32, last: self.at.max(first + 1) as u32 - 1 }
    }

    /// Goes one level down if that is still allowed; where it is not, the rest of the text is passed over.
    fn down(&mut self) -> bool {
        self.depth += 1;
        if self.depth > DEPTH {
            self.tree.too_deep.get_or_insert(self.at.min(self.tokens.len().saturating_sub(1)) as u32);
            self.at = self.tokens.len();
        }
        self.depth <= DEPTH
    }

    /// What `read` finds one level down, if that is still allowed.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let found = if self.down() { read(self) } else { None };
        self.depth -= 1;
        found
    }

    fn node(&mut self, kind: NodeKind, focus: usize, first: usize, call: Run, args: Vec<Run>) {
        let whole = self.run_from(first);
        self.tree.nodes.push(Node { kind, focus: focus as u32, whole, call, args });
    }

    fn starts_expression(&self) -> bool {
        match self.kind() {
            None => false,
            Some(Kind::Word) => !matches!(
                self.peek(),
                "let" | "const" | "else" | "until" | "in" | "catch" | "fn" | "private" | "import" | "export" | "as"
            ),
            Some(Kind::Symbol) => matches!(
                self.peek(),
                "(" | "[" | "{" | "#{" | "-" | "+" | "!" | "|" | "||" | ".." | "..=" | "..." | "--" | "++"
            ),
            Some(Kind::TextEnd) => false,
            Some(_) => true,
        }
    }

    fn truth(&mut self, expr: Expr) {
        if expr.shape != Shape::Bool {
            self.tree.truths.push(expr.run);
        }
    }

    fn expression(&mut self) -> Option<Expr> {
        if !self.starts_expression() {
            return None;
        }
        self.nested(|reader| reader.binary(0))
    }

    fn binary(&mut self, minimum: u8) -> Option<Expr> {
        let first = self.at;
        let mut left = if matches!(self.peek(), ".." | "..=") {
            // An open start: the operator has no left operand.
            Expr { run: Run { first: first as u32, last: first as u32 }, shape: Shape::Other }
        } else {
            self.unary()?
        };
        loop {
            let symbol = self.peek();
            let Some(power) = binary_power(symbol) else { break };
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
            let logical = matches!(symbol, "&&" | "||");
            let bits = matches!(symbol, "&" | "^" | "|");
            if logical {
                self.truth(left);
                if let Some(right) = right {
                    self.truth(right);
                }
            } else {
                // To Rhai `^` and `|` are alike, from left to right.
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
                _ => Shape::Other,
            };
            let call = Run { first: focus as u32, last: focus as u32 };
            self.node(NodeKind::Binary, focus, first, call, args);
            left = Expr { run: self.run_from(first), shape };
        }
        Some(left)
    }

    /// Notes what was just read, before `??`, if it ends in an element or property.
    fn asks(&mut self, run: Run) {
        // Cost: all nodes of a chain that began long ago are behind those that end here.
        let mut ends = self.tree.nodes.iter().rev().take_while(|node| node.whole.last == run.last);
        let last = ends.find(|node| node.whole == run && matches!(node.kind, NodeKind::Index | NodeKind::Property));
        let place = last.map(|node| node.focus).filter(|&focus| {
            let close = self.tokens[focus as usize].partner.max(focus);
            close == run.last
        });
        self.tree.asked.extend(place.map(|place| (run, place)));
    }

    /// Whether the operator just passed has a right operand; a range may go without, and in a head a `{`
    /// after a range is the body.
    fn starts_operand(&self, symbol: &str) -> bool {
        let statement = symbol == "??" && matches!(self.peek(), "break" | "continue" | "return" | "throw");
        let body = self.head && self.peek() == "{" && matches!(symbol, ".." | "..=");
        statement || (self.starts_expression() && !body)
    }

    fn operand(&mut self, power: u8) -> Option<Expr> {
        if matches!(self.peek(), "break" | "continue" | "return" | "throw") {
            let first = self.at;
            self.statement();
            return Some(Expr { run: self.run_from(first), shape: Shape::Other });
        }
        self.nested(|reader| reader.binary(power))
    }

    fn unary(&mut self) -> Option<Expr> {
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
        let call = Run { first: first as u32, last: first as u32 };
        self.node(NodeKind::Unary, first, first, call, vec![operand.run]);
        let shape = if sign == "!" && operand.shape == Shape::Bool { Shape::Bool } else { Shape::Other };
        Some(Expr { run: self.run_from(first), shape })
    }

    fn power(&mut self) -> Option<Expr> {
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
    fn chain(&mut self) -> Option<Expr> {
        let first = self.at;
        let mut marks = Vec::new();
        let mut root = self.primary(&mut marks)?;
        let mut elvis = false;
        loop {
            match self.peek() {
                "[" | "?[" => {
                    elvis |= self.peek() == "?[";
                    let open = self.at;
                    let close = self.tokens[open].partner;
                    let (args, commas) = self.group();
                    // `x["..."]` alone too: a tensor has no indexer for strings, since Rhai would ask it for unknown properties.
                    if commas > 0 || self.text_at(open + 1) == "\"...\"" {
                        self.tree.index_lists.push(Run { first: open as u32, last: close });
                    }
                    // `x[i]` belongs together; after a call only the brackets are the focus.
                    let named = open > first && self.tokens[open - 1].kind == Kind::Word;
                    let call = Run { first: (open - named as usize) as u32, last: close };
                    self.node(NodeKind::Index, open, first, call, runs(&args));
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
        // An assignment's target must stay one; what a call in it gives has a name by then.
        let assigned = is_assignment(self.peek());
        let end = if assigned { self.temporary(self.run_from(first)).map_or(0, |of| of.last + 1) } else { u32::MAX };
        self.tree.marks.extend(marks.into_iter().filter(|mark| mark.call.last < end).take(CHAIN_MARKS));
        Some(Expr { run: self.run_from(first), shape: root.shape })
    }

    /// The argument list of a call whose name is the token `name`, and a mark if it may enter script code.
    fn call(&mut self, first: usize, name: usize, path: &str, may_mark: bool, marks: &mut Vec<Mark>) {
        let (args, _) = self.group();
        let call = self.run_from(name);
        self.node(NodeKind::Call, name, first, call, runs(&args));
        self.call_site(name, &args, path);
        if may_mark && (self.own_functions.contains(path) || !(self.is_native)(path)) {
            marks.push(Mark { call: self.run_from(first), name: name as u32, is_plain: name == first });
        }
    }

    fn call_site(&mut self, name: usize, args: &[Expr], path: &str) {
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

    /// Items between the delimiter here and its partner, with the number of commas between them.
    fn group(&mut self) -> (Vec<Expr>, usize) {
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

    fn primary(&mut self, marks: &mut Vec<Mark>) -> Option<Expr> {
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
                        [item] if !matches!(item.shape, Shape::Power | Shape::Bits) => item.shape,
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

    fn word(&mut self, marks: &mut Vec<Mark>) -> Option<Expr> {
        let first = self.at;
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
            "(" => {
                self.rename(first, name);
                let path = &self.src[self.tokens[first].start as usize..self.tokens[name].end as usize];
                let (before, open) = (marks.len(), self.at);
                self.call(first, name, path, true, marks);
                // `with_device(d) { ... }`, a block form of the engine: no function, so nothing to mark.
                if !self.head && self.peek() == "{" {
                    marks.truncate(before);
                    self.block();
                    if name == first && is_block_word(path) {
                        self.tree.renamed.push(name as u32);
                        if is_bare_word(path) && self.tokens[open].partner as usize == open + 1 {
                            self.tree.bare.push(Run { first: open as u32, last: self.tokens[open].partner });
                        }
                    }
                } else if name == first && is_block_word(path) && !self.own_functions.contains(path) {
                    self.inline(name, open);
                }
            }
            // `f!(x)` lends its variables; it is left alone.
            "!" if self.text_at(self.at + 1) == "(" && self.tokens[self.at].start == self.tokens[first].end => {
                self.at += 1;
                let (args, _) = self.group();
                let call = self.run_from(name);
                self.node(NodeKind::Call, name, first, call, runs(&args));
                let path = &self.src[self.tokens[first].start as usize..self.tokens[name].end as usize];
                self.call_site(name, &args, path);
            }
            "{" if !self.head && !self.pattern => {
                self.block();
                // `no_grad { .. }`
                if name == first && is_bare_word(self.text_at(first)) {
                    self.tree.renamed.push(name as u32);
                }
            }
            _ if name == first => self.tree.values.push(name as u32),
            _ => {}
        }
        Some(Expr { run: self.run_from(first), shape: Shape::Other })
    }

    /// A closure without parameters that is written as the last argument of a block word.
    fn inline(&mut self, name: usize, open: usize) {
        let close = self.tokens[open].partner as usize;
        let Some(args) = self.tree.nodes.iter().rev().find(|node| node.focus as usize == name) else { return };
        let Some(&Run { first: bar, last }) = args.args.last() else { return };
        let is_closure = self.text_at(bar as usize) == "||" && self.tokens[bar as usize].kind == Kind::Symbol;
        if is_closure && bar < last && last as usize + 1 == close {
            self.tree.inlined.push((name as u32, bar, Run { first: bar + 1, last }));
        }
    }

    /// `eval`, and a reserved word that can only be a script function.
    fn rename(&mut self, first: usize, name: usize) {
        let word = self.text_at(name);
        let script = name > first || self.own_functions.contains(word) || !(self.is_native)(word);
        if (name == first && word == "eval") || (is_free_word(word) && script) {
            self.tree.renamed.push(name as u32);
        }
    }

    fn map(&mut self) {
        let end = self.tokens[self.at].partner as usize;
        let (head, pattern) = (std::mem::take(&mut self.head), std::mem::take(&mut self.pattern));
        self.at += 1;
        while self.at < end {
            if self.text_at(self.at + 1) == ":" {
                self.at += 2;
            }
            self.expression();
            if self.at < end {
                self.at += 1;
            }
        }
        self.at = end + 1;
        (self.head, self.pattern) = (head, pattern);
    }

    fn closure(&mut self) {
        if !self.eat("||") {
            self.at += 1;
            while self.at < self.tokens.len() && !matches!(self.peek(), "|" | "(" | ")" | "{" | "}" | "]" | ";") {
                self.declare();
                self.at += 1;
            }
            self.eat("|");
        }
        // A body is a statement. Not: past a separator, which belongs to what is around.
        if self.starts_expression() || matches!(self.peek(), "try" | "let" | "const") {
            self.statement();
        }
    }

    /// Notes the name here, if there is one, as a variable's.
    fn declare(&mut self) {
        if self.peek() == "_" {
            self.tree.ignored.push(self.at as u32);
        } else if self.is_name() {
            self.tree.declared.push(self.at as u32);
        }
    }

    fn interpolation(&mut self) {
        while self.kind() == Some(Kind::TextOpen) {
            self.at += 1;
            self.block();
        }
        self.at += (self.kind() == Some(Kind::TextEnd)) as usize;
    }
}

//! From tokens to a syntax tree. The text is known to be valid: what this parser does not expect becomes
//! `Kind::Other`, of which nothing is known.

use super::literals::{number, string};
use super::syntax::{Arm, Block, Entry, Expr, Function, Kind, Param, Shown, Stmt, StmtKind};
use crate::script::source::lex::{self, Token};
use crate::script::source::pass;
use crate::script::source::tree::{
    binary_precedence, block_in_head, block_statement, calls_a_value, is_assignment, is_keyword, pattern_names,
};
use std::ops::Range;

/// Bound: nesting that is analyzed.
const DEPTH: usize = 200;

pub fn parse(src: &str, tokens: &[Token]) -> Vec<Stmt> {
    let formats = pass::specifications(src, tokens);
    let mut parser = Parser { src, tokens, at: 0, end: tokens.len(), depth: 0, head: false, pattern: false, formats };
    parser.statements()
}

struct Parser<'a> {
    src: &'a str,
    tokens: &'a [Token],
    at: usize,
    /// Tokens from here on belong to the enclosing construct.
    end: usize,
    depth: usize,
    /// In the head of a statement, where a `{` begins its body.
    head: bool,
    /// In the cases of a `switch`, where `|` stands between them.
    pattern: bool,
    /// Format specifications in interpolated texts.
    formats: Vec<Range<usize>>,
}

impl<'a> Parser<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.src[token.range()])
    }

    /// The token here if it is a word or symbol.
    fn peek(&self) -> &'a str {
        match self.kind() {
            Some(lex::Kind::Word | lex::Kind::Symbol) => self.text(self.at),
            _ => "",
        }
    }

    fn kind(&self) -> Option<lex::Kind> {
        self.tokens.get(self.at).filter(|_| self.at < self.end).map(|token| token.kind)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = !text.is_empty() && self.peek() == text;
        self.at += found as usize;
        found
    }

    fn partner(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(at, |token| token.partner as usize)
    }

    fn expr(&self, first: usize, focus: usize, kind: Kind) -> Expr {
        Expr { first: first as u32, focus: focus as u32, kind }
    }

    fn name(&mut self) -> Option<Param> {
        let is_name = self.kind() == Some(lex::Kind::Word) && !is_keyword(self.text(self.at));
        let name = Param { name: self.text(self.at).to_string(), token: self.at as u32 };
        self.at += is_name as usize;
        is_name.then_some(name)
    }

    /// Parses what lies before the token `end`, with the parser's state as at the start of a text.
    fn inside<T>(&mut self, end: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (self.end, self.head, self.pattern);
        (self.end, self.head, self.pattern) = (end.min(self.end), false, false);
        let found = read(self);
        (self.end, self.head, self.pattern) = outer;
        found
    }

    fn statements(&mut self) -> Vec<Stmt> {
        let mut found = Vec::new();
        while self.at < self.end {
            let before = self.at;
            let mut statement = match block_statement(self.src, self.tokens, before) {
                Some(close) => self.block_form(close),
                None => self.statement(),
            };
            statement.ended = self.eat(";");
            if self.at == before {
                self.at += 1;
            }
            found.push(statement);
        }
        found
    }

    /// `no_grad { .. }` as a statement, which ends at its `}`.
    fn block_form(&mut self, close: usize) -> Stmt {
        let first = self.at as u32;
        let kind = StmtKind::Expr(self.word());
        Stmt { first, last: close as u32, ended: false, kind }
    }

    /// `{ .. }`, an empty block where there is none.
    fn block(&mut self) -> Block {
        let first = self.at;
        if self.peek() != "{" {
            return Block { body: Vec::new(), open: first as u32, close: first as u32 };
        }
        let end = self.partner(first);
        self.depth += 1;
        self.at += 1;
        let body = if self.depth < DEPTH { self.inside(end, Self::statements) } else { Vec::new() };
        self.depth -= 1;
        self.at = end + 1;
        Block { body, open: first as u32, close: end as u32 }
    }

    fn statement(&mut self) -> Stmt {
        let first = self.at;
        let kind = self.statement_kind();
        let last = self.at.max(first + 1) - 1;
        Stmt { first: first as u32, last: last as u32, ended: false, kind }
    }

    fn statement_kind(&mut self) -> StmtKind {
        let first = self.at;
        match self.peek() {
            ";" => StmtKind::Empty,
            "{" => {
                let block = self.block();
                StmtKind::Expr(self.expr(first, first, Kind::Block(block)))
            }
            "private" | "fn" => {
                self.eat("private");
                self.function()
            }
            word @ ("let" | "const") => {
                self.at += 1;
                if matches!(self.peek(), "[" | "#{") {
                    let first = self.at;
                    let names = self.pattern();
                    let pattern =
                        ((first..self.at).map(|at| self.text(at)).collect::<String>().replace('"', "'"), first as u32);
                    let value = if self.eat("=") { Some(self.expression()) } else { None };
                    return StmtKind::Unpack { names, pattern, constant: word == "const", value };
                }
                let Some(name) = self.name() else { return StmtKind::Empty };
                let value = if self.eat("=") { Some(self.expression()) } else { None };
                StmtKind::Let { name, constant: word == "const", value }
            }
            "export" => {
                self.at += 1;
                StmtKind::Export
            }
            "import" => {
                self.at += 1;
                let path = self.expression();
                let alias = if self.eat("as") { self.name() } else { None };
                StmtKind::Import { path, alias }
            }
            "return" => StmtKind::Return(self.after_word()),
            "throw" => StmtKind::Throw(self.after_word()),
            "break" => StmtKind::Break(self.after_word()),
            "continue" => {
                self.at += 1;
                StmtKind::Continue
            }
            "if" | "while" | "loop" | "do" | "for" | "switch" | "try" => StmtKind::Expr(self.flow()),
            _ => {
                let target = self.expression();
                // `export x as y`
                if self.eat("as") {
                    self.name();
                }
                if is_assignment(self.peek()) {
                    let (op, focus) = (self.peek().to_string(), self.at as u32);
                    self.at += 1;
                    let value = self.expression();
                    return StmtKind::Assign { op, focus, target, value };
                }
                StmtKind::Expr(target)
            }
        }
    }

    fn after_word(&mut self) -> Option<Expr> {
        self.at += 1;
        self.starts_expression().then(|| self.expression())
    }

    fn function(&mut self) -> StmtKind {
        self.eat("fn");
        let Some(name) = self.name() else { return StmtKind::Empty };
        while self.at < self.end && !matches!(self.peek(), "(" | "{" | ";") {
            self.at += 1;
        }
        let params = if self.peek() == "(" { self.names() } else { Vec::new() };
        StmtKind::Fn(Function { name, params, body: self.block() })
    }

    /// The names between the parenthesis here and its partner.
    fn names(&mut self) -> Vec<Param> {
        let end = self.partner(self.at);
        let mut names = Vec::new();
        while self.at < end {
            match self.name() {
                Some(name) => names.push(name),
                None => self.at += 1,
            }
        }
        self.at = end + 1;
        names
    }

    /// The names that the pattern here declares; skips it.
    fn pattern(&mut self) -> Vec<Param> {
        let names = pattern_names(self.src, self.tokens, self.at).into_iter();
        self.at = self.partner(self.at) + 1;
        names.map(|token| Param { name: self.text(token as usize).to_string(), token }).collect()
    }

    fn starts_expression(&self) -> bool {
        match self.kind() {
            None | Some(lex::Kind::TextEnd) => false,
            Some(lex::Kind::Word) => {
                let word = self.peek();
                !is_keyword(word)
                    || matches!(word, "if" | "switch" | "do" | "while" | "loop" | "for" | "true" | "false" | "try")
            }
            Some(lex::Kind::Symbol) => {
                matches!(self.peek(), "(" | "[" | "{" | "#{" | "-" | "+" | "!" | "|" | "||" | ".." | "..=")
            }
            Some(_) => true,
        }
    }

    fn expression(&mut self) -> Expr {
        let first = self.at;
        self.depth += 1;
        let found = if self.depth < DEPTH && self.starts_expression() {
            self.binary(0)
        } else {
            self.expr(first, first, Kind::Other)
        };
        self.depth -= 1;
        found
    }

    fn binary(&mut self, minimum: u8) -> Expr {
        let first = self.at;
        let mut left = if matches!(self.peek(), ".." | "..=") { None } else { Some(self.unary()) };
        loop {
            let op = self.peek();
            let Some(precedence) = binary_precedence(op) else { break };
            if (precedence <= minimum && left.is_some()) || (self.pattern && op == "|") {
                break;
            }
            let focus = self.at;
            self.at += 1;
            let is_range = matches!(op, ".." | "..=");
            let body = is_range && self.head && self.peek() == "{";
            let right = if matches!(self.peek(), "return" | "break" | "continue" | "throw") {
                let at = self.at;
                self.statement_kind();
                Some(self.expr(at, at, Kind::Other))
            } else if self.starts_expression() && !body {
                self.depth += 1;
                let right = if self.depth < DEPTH { Some(self.binary(precedence)) } else { None };
                self.depth -= 1;
                right
            } else {
                None
            };
            let kind = match (left, right) {
                (start, end) if is_range => {
                    let inclusive = op == "..=";
                    Kind::Range { start: start.map(Box::new), end: end.map(Box::new), inclusive }
                }
                (Some(left), Some(right)) => {
                    Kind::Binary { op: op.to_string(), left: Box::new(left), right: Box::new(right) }
                }
                _ => Kind::Other,
            };
            left = Some(self.expr(first, focus, kind));
        }
        left.unwrap_or_else(|| self.expr(first, first, Kind::Other))
    }

    fn unary(&mut self) -> Expr {
        let first = self.at;
        if !matches!(self.peek(), "-" | "+" | "!") {
            return self.power();
        }
        let op = self.peek().to_string();
        self.at += 1;
        self.depth += 1;
        let of = if self.depth < DEPTH { self.unary() } else { self.expr(first, first, Kind::Other) };
        self.depth -= 1;
        let kind = match (&op[..], &of.kind) {
            ("-", Kind::Int(value)) => Kind::Int(value.and_then(i64::checked_neg)),
            ("-", Kind::Float(value)) => Kind::Float(value.map(|x| -x)),
            _ => Kind::Unary { op, of: Box::new(of) },
        };
        self.expr(first, first, kind)
    }

    fn power(&mut self) -> Expr {
        let first = self.at;
        let base = self.chain();
        if self.peek() != "**" {
            return base;
        }
        let focus = self.at;
        self.at += 1;
        let right = self.unary();
        let kind = Kind::Binary { op: "**".to_string(), left: Box::new(base), right: Box::new(right) };
        self.expr(first, focus, kind)
    }

    /// A primary with its properties, calls and indexers.
    fn chain(&mut self) -> Expr {
        let first = self.at;
        let mut found = self.primary();
        loop {
            match self.peek() {
                "[" | "?[" => {
                    let open = self.at;
                    let may_be_unit = self.peek() == "?[";
                    let items = self.group();
                    found = self.expr(first, open, Kind::Index { of: Box::new(found), items, may_be_unit });
                }
                "(" if calls_a_value(self.src, self.tokens, first, self.at) => {
                    let open = self.at;
                    let args = self.group();
                    found = self.expr(first, open, Kind::Apply { of: Box::new(found), args });
                }
                "." | "?." => {
                    let may_be_unit = self.peek() == "?.";
                    self.at += 1;
                    if self.kind() != Some(lex::Kind::Word) {
                        break;
                    }
                    let (at, name) = (self.at, self.text(self.at).to_string());
                    self.at += 1;
                    let of = Box::new(found);
                    let kind = if self.peek() == "(" {
                        let args = self.group();
                        Kind::Method { of, name, args, may_be_unit }
                    } else {
                        Kind::Property { of, name, may_be_unit }
                    };
                    found = self.expr(first, at, kind);
                }
                _ => return found,
            }
        }
        found
    }

    /// Expressions between the delimiter here and its partner.
    fn group(&mut self) -> Vec<Expr> {
        let end = self.partner(self.at);
        self.at += 1;
        let items = self.inside(end, |parser| {
            let mut items = Vec::new();
            while parser.at < end {
                let before = parser.at;
                if parser.starts_expression() {
                    items.push(parser.expression());
                }
                if !parser.eat(",") && parser.at < end {
                    // Syntax that this parser does not know.
                    parser.at = if parser.at == before { parser.at + 1 } else { parser.at };
                }
            }
            items
        });
        self.at = end + 1;
        items
    }

    fn primary(&mut self) -> Expr {
        let first = self.at;
        let text = self.text(first);
        match self.kind() {
            Some(lex::Kind::Number) => {
                self.at += 1;
                self.expr(first, first, number(text))
            }
            Some(lex::Kind::Str) => {
                self.at += 1;
                self.expr(first, first, Kind::Str(string(text)))
            }
            Some(lex::Kind::Char) => {
                self.at += 1;
                self.expr(first, first, Kind::Char)
            }
            Some(lex::Kind::TextOpen) => self.interpolation(),
            Some(lex::Kind::Word) => self.word(),
            Some(lex::Kind::Symbol) => match text {
                "(" => {
                    let unit = self.partner(first) == first + 1;
                    let mut items = self.group();
                    match items.pop() {
                        Some(inner) if items.is_empty() => Expr { first: first as u32, ..inner },
                        None if unit => self.expr(first, first, Kind::Unit),
                        _ => self.expr(first, first, Kind::Other),
                    }
                }
                "[" => {
                    let items = self.group();
                    self.expr(first, first, Kind::Array(items))
                }
                "#{" => self.map(),
                "{" => {
                    let block = self.block();
                    self.expr(first, first, Kind::Block(block))
                }
                "|" | "||" => self.closure(),
                _ => {
                    self.at += 1;
                    self.expr(first, first, Kind::Other)
                }
            },
            _ => {
                self.at += 1;
                self.expr(first, first, Kind::Other)
            }
        }
    }

    fn word(&mut self) -> Expr {
        let first = self.at;
        match self.peek() {
            word @ ("true" | "false") => {
                self.at += 1;
                return self.expr(first, first, Kind::Bool(word == "true"));
            }
            "if" | "while" | "loop" | "do" | "for" | "switch" | "try" => return self.flow(),
            _ => self.at += 1,
        }
        let mut last = first;
        while self.peek() == "::" && self.at + 1 < self.end {
            last = self.at + 1;
            self.at += 2;
        }
        let name = self.text(last).to_string();
        let space = (last > first).then(|| {
            let range = self.tokens[first].start as usize..self.tokens[last - 2].end as usize;
            self.src[range].to_string()
        });
        let lends = self.peek() == "!" && self.text(self.at + 1) == "(";
        let lends = lends && self.tokens[self.at].start == self.tokens[last].end;
        self.at += lends as usize;
        // `this(x)` calls what `this` is.
        if self.peek() == "(" && name != "this" {
            let args = self.group();
            let block = (self.peek() == "{" && !self.is_body(first)).then(|| self.block());
            return self.expr(first, last, Kind::Call { space, name, args, block });
        }
        if self.peek() == "{" && !self.is_body(first) && !self.pattern {
            let block = Some(self.block());
            return self.expr(first, last, Kind::Call { space, name, args: Vec::new(), block });
        }
        let kind = if space.is_some() { Kind::Path } else { Kind::Name(name) };
        self.expr(first, last, kind)
    }

    /// Whether the `{` here, behind a word, begins the body of the statement whose head this is.
    fn is_body(&self, word: usize) -> bool {
        self.head && !block_in_head(self.src, self.tokens, word, self.at)
    }

    fn map(&mut self) -> Expr {
        let first = self.at;
        let end = self.partner(first);
        self.at += 1;
        let mut entries = Vec::new();
        self.inside(end, |parser| {
            while parser.at < end {
                if parser.text(parser.at + 1) == ":" {
                    let key = parser.text(parser.at);
                    let key = if key.starts_with('"') { string(key).unwrap_or_default() } else { key.to_string() };
                    parser.at += 2;
                    let value = parser.expression();
                    entries.push(Entry { key, value });
                }
                if !parser.eat(",") && parser.at < end {
                    parser.at += 1;
                }
            }
        });
        self.at = end + 1;
        self.expr(first, first, Kind::Map(entries))
    }

    fn closure(&mut self) -> Expr {
        let first = self.at;
        let mut params = Vec::new();
        if !self.eat("||") {
            self.at += 1;
            while self.at < self.end && self.peek() != "|" {
                match self.name() {
                    Some(name) => params.push(name),
                    None => self.at += 1,
                }
            }
            self.eat("|");
        }
        let (head, pattern) = (std::mem::take(&mut self.head), std::mem::take(&mut self.pattern));
        let body = Box::new(self.statement());
        (self.head, self.pattern) = (head, pattern);
        self.expr(first, first, Kind::Closure { params, body })
    }

    fn interpolation(&mut self) -> Expr {
        let first = self.at;
        let mut values = Vec::new();
        while self.kind() == Some(lex::Kind::TextOpen) {
            let open = self.at + 1;
            let end = self.partner(open);
            self.at = open + 1;
            // The expression ends where its format begins.
            let (from, to) =
                (self.tokens[open].end as usize, self.tokens.get(end).map_or(0, |token| token.start as usize));
            let format = self.formats.iter().find(|format| from < format.start && format.end == to).cloned();
            let begins = |format: &Range<usize>| {
                (self.at..end).find(|&at| self.tokens[at].start as usize + 1 >= format.start).unwrap_or(end)
            };
            let stop = format.as_ref().map_or(end, begins);
            let body = self.inside(stop, Self::statements);
            let block = Block { body, open: open as u32, close: end as u32 };
            self.at = stop;
            let widths = self.widths(end);
            self.at = end + 1;
            let value = self.expr(open, open, Kind::Block(block));
            values.push(Shown { value, colon: stop as u32, format: format.map(|format| self.src[format].to_string()) });
            values.extend(widths);
        }
        self.at += (self.kind() == Some(lex::Kind::TextEnd)) as usize;
        self.expr(first, first, Kind::Text(values))
    }

    /// The values in a specification, `>{width}`.
    fn widths(&mut self, end: usize) -> Vec<Shown> {
        let mut found = Vec::new();
        while self.at < end {
            let open = self.at;
            let close = self.partner(open);
            self.at += 1;
            if self.src[self.tokens[open].range()] == *"{" && close < end {
                let body = self.inside(close, Self::statements);
                let block = Block { body, open: open as u32, close: close as u32 };
                found.push(Shown {
                    value: self.expr(open, open, Kind::Block(block)),
                    colon: open as u32,
                    format: None,
                });
                self.at = close + 1;
            }
        }
        found
    }

    fn head(&mut self) -> Expr {
        let head = std::mem::replace(&mut self.head, true);
        let found = self.expression();
        self.head = head;
        found
    }

    /// `if`, loops, `switch` and `try`.
    fn flow(&mut self) -> Expr {
        let first = self.at;
        let word = self.peek();
        self.at += 1;
        let kind = match word {
            "if" => {
                let condition = Box::new(self.head());
                let then = self.block();
                let otherwise = self.eat("else").then(|| {
                    let at = self.at;
                    Box::new(if self.peek() == "if" {
                        self.flow()
                    } else {
                        let block = self.block();
                        self.expr(at, at, Kind::Block(block))
                    })
                });
                Kind::If { condition, then, otherwise }
            }
            "while" => {
                let condition = Box::new(self.head());
                Kind::While { condition, body: self.block() }
            }
            "loop" => Kind::Loop { body: self.block(), condition: None },
            "do" => {
                let body = self.block();
                let has_end = self.eat("while") || self.eat("until");
                Kind::Loop { body, condition: has_end.then(|| Box::new(self.expression())) }
            }
            "for" => {
                let names = match self.peek() {
                    "(" => self.names(),
                    "[" | "#{" => self.pattern(),
                    _ => self.name().into_iter().collect(),
                };
                self.eat("in");
                let values = Box::new(self.head());
                Kind::For { names, values, body: self.block() }
            }
            "switch" => {
                let value = Box::new(self.head());
                Kind::Switch { value, arms: self.arms() }
            }
            _ => {
                let body = self.block();
                self.eat("catch");
                let name = if self.peek() == "(" { self.names().into_iter().next() } else { None };
                Kind::Try { body, name, caught: self.block() }
            }
        };
        self.expr(first, first, kind)
    }

    fn arms(&mut self) -> Vec<Arm> {
        let mut arms = Vec::new();
        if self.peek() != "{" {
            return arms;
        }
        let end = self.partner(self.at);
        self.at += 1;
        self.inside(end, |parser| {
            while parser.at < end {
                let before = parser.at;
                let mut cases = Vec::new();
                parser.pattern = true;
                while parser.at < end && !matches!(parser.peek(), "=>" | "if") {
                    if parser.starts_expression() {
                        cases.push(parser.expression());
                    }
                    if !matches!(parser.peek(), "=>" | "if") {
                        parser.at += 1;
                    }
                }
                parser.pattern = false;
                let guard = parser.eat("if").then(|| parser.expression());
                parser.eat("=>");
                let body = parser.statement();
                arms.push(Arm { cases, guard, body });
                parser.eat(",");
                if parser.at == before {
                    parser.at += 1;
                }
            }
        });
        self.at = end + 1;
        arms
    }
}

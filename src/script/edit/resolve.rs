//! Walks over a syntax tree with the scopes of Rhai: blocks, functions that see only constants, modules and functions
//! of the outside, closures that see everything around them.

use super::names::{Call, ComesFrom, Names, Qualified, Symbol, SymbolKind};
use crate::script::check::reading::Reading;
use crate::script::check::syntax::{Block, Expr, Function, Kind, Param, Stmt, StmtKind};
use std::collections::HashMap;

pub(super) struct Resolver<'a> {
    reading: &'a Reading,
    names: Names,
    /// The functions of the text, by name.
    functions: HashMap<&'a str, Vec<usize>>,
    /// Variables that can be named here, the latest last.
    visible: Vec<usize>,
    /// Their places in `visible`, by name.
    places: HashMap<String, Vec<usize>>,
    /// Symbols of the top level, by name.
    top: HashMap<String, Vec<usize>>,
    /// Those before are of the function around.
    base: usize,
    owner: Option<usize>,
    /// The block around ends before this token.
    end: u32,
    /// The statement around.
    whole: (u32, u32),
    depth: usize,
}

impl<'a> Resolver<'a> {
    pub fn new(reading: &'a Reading) -> Resolver<'a> {
        Resolver {
            reading,
            names: Names::default(),
            functions: HashMap::new(),
            visible: Vec::new(),
            places: HashMap::new(),
            top: HashMap::new(),
            base: 0,
            owner: None,
            end: reading.tokens.len() as u32 + 1,
            whole: (0, 0),
            depth: 0,
        }
    }

    pub fn names(mut self) -> Names {
        let body: &'a [Stmt] = &self.reading.body;
        for stmt in body {
            if let StmtKind::Fn(function) = &stmt.kind {
                self.whole = (stmt.first, stmt.last);
                self.functions.entry(&function.name.name).or_default().push(self.names.symbols.len());
                self.declare(&function.name, SymbolKind::Function);
                if let Some(symbol) = self.names.symbols.last_mut() {
                    symbol.params = function.params.iter().map(|param| param.name.clone()).collect();
                    symbol.visible = 0..u32::MAX;
                }
            }
        }
        self.hide(0);
        self.stmts(body);
        // What functions name may be declared below them.
        for stmt in body {
            if let StmtKind::Fn(function) = &stmt.kind {
                self.whole = (stmt.first, stmt.last);
                self.function(function);
            }
        }
        self.names
    }

    fn declare(&mut self, name: &Param, kind: SymbolKind) {
        let (token, symbol) = (name.token, self.names.symbols.len());
        self.names.symbols.push(Symbol {
            name: name.name.clone(),
            kind,
            token,
            visible: token..self.end,
            owner: self.owner,
            is_top: self.depth == 0,
            params: Vec::new(),
            whole: self.whole,
            is_entry: false,
            comes_from: ComesFrom::Elsewhere,
        });
        self.places.entry(name.name.clone()).or_default().push(self.visible.len());
        self.visible.push(symbol);
        if self.depth == 0 {
            self.top.entry(name.name.clone()).or_default().push(symbol);
        }
    }

    /// What was declared since cannot be named any more.
    fn hide(&mut self, from: usize) {
        for symbol in self.visible.drain(from..) {
            if let Some(places) = self.places.get_mut(&self.names.symbols[symbol].name) {
                places.pop();
            }
        }
    }

    /// Names of a pattern: of entries, where they stand in `#{ }` without a key.
    fn declare_pattern(&mut self, names: &[Param], kind: SymbolKind) {
        for name in names {
            self.declare(name, kind);
            let at = name.token as usize;
            let mut before =
                (0..at).rev().take_while(|&before| !matches!(self.reading.word(before), "let" | "const" | "for"));
            let open = before.find(|&before| {
                matches!(self.reading.word(before), "[" | "#{") && self.reading.tokens[before].partner as usize > at
            });
            // `#{key: x, ..rest}`
            let keyed = at > 0 && matches!(self.reading.word(at - 1), ":" | "..");
            if let Some(symbol) = self.names.symbols.last_mut() {
                symbol.is_entry = !keyed && open.is_some_and(|open| self.reading.word(open) == "#{");
            }
        }
    }

    fn last_comes_from(&mut self, comes_from: ComesFrom) {
        if let Some(symbol) = self.names.symbols.last_mut() {
            symbol.comes_from = comes_from;
        }
    }

    /// What happens in a block that ends before a token.
    fn inside(&mut self, end: u32, walk: impl FnOnce(&mut Self)) {
        let (depth, outer) = (self.visible.len(), self.end);
        self.end = end.max(1);
        self.depth += 1;
        walk(self);
        self.depth -= 1;
        self.end = outer;
        self.hide(depth);
    }

    fn function(&mut self, function: &Function) {
        let owner = self.names.symbols.iter().position(|symbol| symbol.token == function.name.token);
        let base = std::mem::replace(&mut self.base, self.visible.len());
        self.owner = owner;
        self.inside(function.body.close + 1, |resolver| {
            for param in &function.params {
                resolver.declare(param, SymbolKind::Parameter);
            }
            resolver.stmts(&function.body.body);
        });
        (self.owner, self.base) = (None, base);
    }

    fn block(&mut self, block: &Block) {
        self.inside(block.close + 1, |resolver| resolver.stmts(&block.body));
    }

    fn stmts(&mut self, body: &[Stmt]) {
        for stmt in body {
            let outer = self.whole;
            self.whole = (stmt.first, stmt.last);
            self.stmt(stmt);
            self.whole = outer;
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let kind = |constant: bool| if constant { SymbolKind::Constant } else { SymbolKind::Variable };
        match &stmt.kind {
            StmtKind::Let { name, constant, value } => {
                // A closure may name the variable that holds it.
                let holds = value.as_ref().is_some_and(|value| matches!(value.kind, Kind::Closure { .. }));
                let recursive = holds && self.variable(&name.name).is_none();
                if recursive {
                    self.declare(name, kind(*constant));
                }
                value.iter().for_each(|value| self.expr(value));
                if !recursive {
                    self.declare(name, kind(*constant));
                }
            }
            StmtKind::Unpack { names, constant, value, .. } => {
                value.iter().for_each(|value| self.expr(value));
                self.declare_pattern(names, kind(*constant));
            }
            StmtKind::Assign { target, value, .. } => {
                self.expr(target);
                self.expr(value);
            }
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::Return(value) | StmtKind::Throw(value) | StmtKind::Break(value) => {
                value.iter().for_each(|value| self.expr(value));
            }
            StmtKind::Import { path, alias } => {
                self.expr(path);
                alias.iter().for_each(|alias| self.declare(alias, SymbolKind::Import));
            }
            // Functions are read at the end.
            StmtKind::Fn(_) | StmtKind::Empty | StmtKind::Continue | StmtKind::Export => {}
        }
    }

    fn exprs(&mut self, all: &[Expr]) {
        all.iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::Name(name) => {
                if let Some(symbol) = self.variable(name).or_else(|| self.function_of(name, None)) {
                    self.names.uses.insert(expr.focus, symbol);
                }
            }
            Kind::Path => self.qualified(expr.focus, false),
            Kind::Call { space, name, args, block } => {
                match space {
                    Some(_) => self.qualified(expr.focus, true),
                    None => self.call(expr.focus, name, args),
                }
                self.exprs(args);
                block.iter().for_each(|block| self.block(block));
            }
            Kind::Method { of, name, args, .. } => {
                self.expr(of);
                if let Some(function) = self.function_of(name, Some(args.len())) {
                    self.note_call(expr.focus, function);
                }
                self.exprs(args);
            }
            Kind::Closure { params, body } => self.inside(body.last + 1, |resolver| {
                for param in params {
                    resolver.declare(param, SymbolKind::Parameter);
                }
                resolver.stmts(std::slice::from_ref(body));
            }),
            Kind::Block(block) => self.block(block),
            Kind::If { .. }
            | Kind::Switch { .. }
            | Kind::While { .. }
            | Kind::Loop { .. }
            | Kind::For { .. }
            | Kind::Try { .. } => self.flow(expr),
            Kind::Text(items) => items.iter().for_each(|item| self.expr(&item.value)),
            Kind::Array(items) => self.exprs(items),
            Kind::Map(entries) => entries.iter().for_each(|entry| self.expr(&entry.value)),
            Kind::Apply { of, args } => {
                self.expr(of);
                self.exprs(args);
            }
            Kind::Property { of, .. } | Kind::Unary { of, .. } => self.expr(of),
            Kind::Index { of, items, .. } => {
                self.expr(of);
                self.exprs(items);
            }
            Kind::Binary { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            Kind::Range { start, end, .. } => start.iter().chain(end).for_each(|end| self.expr(end)),
            Kind::Unit | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Str(_) | Kind::Char | Kind::Other => {}
        }
    }

    fn flow(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::If { condition, then, otherwise } => {
                self.expr(condition);
                self.block(then);
                otherwise.iter().for_each(|otherwise| self.expr(otherwise));
            }
            Kind::Switch { value, arms } => {
                self.expr(value);
                for arm in arms {
                    self.exprs(&arm.cases);
                    arm.guard.iter().for_each(|guard| self.expr(guard));
                    let end = arm.body.last + 1;
                    self.inside(end, |resolver| resolver.stmts(std::slice::from_ref(&arm.body)));
                }
            }
            Kind::While { condition, body } => {
                self.expr(condition);
                self.block(body);
            }
            Kind::Loop { body, condition } => {
                self.block(body);
                condition.iter().for_each(|condition| self.expr(condition));
            }
            Kind::For { names, values, body } => {
                self.expr(values);
                self.inside(body.close + 1, |resolver| {
                    resolver.declare_pattern(names, SymbolKind::Variable);
                    resolver.last_comes_from(ComesFrom::Loop(looped(values)));
                    resolver.stmts(&body.body);
                });
            }
            Kind::Try { body, name, caught } => {
                self.block(body);
                self.inside(caught.close + 1, |resolver| {
                    if let Some(name) = name {
                        resolver.declare(name, SymbolKind::Variable);
                        resolver.last_comes_from(ComesFrom::Caught);
                    }
                    resolver.stmts(&caught.body);
                });
            }
            _ => {}
        }
    }

    /// `f(x)`: of a variable, or of a function of the text.
    fn call(&mut self, token: u32, name: &str, args: &[Expr]) {
        // `Fn("f")`
        if let (true, [Expr { kind: Kind::Str(Some(named)), first, .. }]) = (name == "Fn", args)
            && let Some(function) = self.function_of(named, None)
        {
            self.names.uses.insert(*first, function);
        }
        let variable = self.variable(name);
        match self.function_of(name, Some(args.len())) {
            Some(function) if !variable.is_some_and(|variable| self.may_be_called(variable)) => {
                self.note_call(token, function);
            }
            _ => self.names.uses.extend(variable.map(|variable| (token, variable))),
        }
    }

    /// Whether a variable may hold what can be called: a function of its name is hidden by no other value.
    fn may_be_called(&self, variable: usize) -> bool {
        self.reading.seen.value(self.names.symbols[variable].token).may_be_called()
    }

    fn note_call(&mut self, token: u32, function: usize) {
        self.names.uses.insert(token, function);
        self.names.calls.push(Call { token, function, owner: self.owner });
    }

    /// `nn::linear`, `global::K`.
    fn qualified(&mut self, token: u32, is_call: bool) {
        let mut head = token as usize;
        while head >= 2 && self.reading.word(head - 1) == "::" {
            head -= 2;
        }
        let space = self.reading.word(head).to_string();
        if space == "global" {
            if let Some(constant) = self.outside(self.reading.word(token as usize), SymbolKind::Constant) {
                self.names.uses.insert(token, constant);
            }
            return;
        }
        if let Some(import) = self.variable(&space).or_else(|| self.outside(&space, SymbolKind::Import)) {
            self.names.uses.insert(head as u32, import);
        }
        self.names.qualified.push(Qualified { token, space, is_call, owner: self.owner });
    }

    /// The latest variable of a name that can be named here.
    fn named(&self, name: &str) -> Option<usize> {
        let place = self.places.get(name)?.last().copied().filter(|&place| place >= self.base)?;
        self.visible.get(place).copied()
    }

    /// A variable, a constant, a parameter or an import that can be named here.
    fn variable(&self, name: &str) -> Option<usize> {
        let here = self.named(name);
        let of_function = || self.owner.and_then(|_| self.outside(name, SymbolKind::Constant));
        here.or_else(of_function)
    }

    /// The last one of the top level.
    fn outside(&self, name: &str, kind: SymbolKind) -> Option<usize> {
        let of_name = self.top.get(name)?.iter().rev();
        of_name.copied().find(|&symbol| self.names.symbols[symbol].kind == kind)
    }

    /// A function of the text, if possible with this number of parameters.
    fn function_of(&self, name: &str, count: Option<usize>) -> Option<usize> {
        let all = self.functions.get(name)?;
        let fits = |at: &&usize| count.is_none_or(|count| self.names.symbols[**at].params.len() == count);
        all.iter().find(fits).or(all.first()).copied()
    }
}

/// The focus of what gives the last name of a loop its values: `loader` of `enumerate(loader)`.
fn looped(values: &Expr) -> u32 {
    match &values.kind {
        Kind::Call { space: None, name, args, .. } if name == "enumerate" && !args.is_empty() => args[0].focus,
        _ => values.focus,
    }
}

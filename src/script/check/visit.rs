//! Walks over a syntax tree, and what follows from such a walk alone: which variables a text changes.

use super::judged::{changes_modules, is_reading, relays};
use super::syntax::{Block, Expr, Kind, Param, Stmt, StmtKind};
use super::value::Value;
use std::cell::RefCell;
use std::collections::HashSet;

/// Calls `see` with every statement and expression inside, outer ones first.
pub struct Visit<'v> {
    pub stmt: &'v mut dyn FnMut(&Stmt),
    pub expr: &'v mut dyn FnMut(&Expr),
}

impl Visit<'_> {
    pub fn block(&mut self, block: &Block) {
        self.stmts(&block.body);
    }

    pub fn stmts(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    pub fn stmt(&mut self, stmt: &Stmt) {
        (self.stmt)(stmt);
        match &stmt.kind {
            StmtKind::Let { value, .. }
            | StmtKind::Unpack { value, .. }
            | StmtKind::Return(value)
            | StmtKind::Throw(value)
            | StmtKind::Break(value) => {
                value.iter().for_each(|value| self.expr(value));
            }
            StmtKind::Assign { target, value, .. } => {
                self.expr(target);
                self.expr(value);
            }
            StmtKind::Expr(value) => self.expr(value),
            StmtKind::Fn(function) => self.block(&function.body),
            StmtKind::Import { path, .. } => self.expr(path),
            StmtKind::Empty | StmtKind::Continue | StmtKind::Export => {}
        }
    }

    fn exprs(&mut self, all: &[Expr]) {
        all.iter().for_each(|expr| self.expr(expr));
    }

    pub fn expr(&mut self, expr: &Expr) {
        (self.expr)(expr);
        match &expr.kind {
            Kind::Text(items) => items.iter().for_each(|item| self.expr(&item.value)),
            Kind::Array(items) => self.exprs(items),
            Kind::Map(entries) => entries.iter().for_each(|entry| self.expr(&entry.value)),
            Kind::Call { args, block, .. } => {
                self.exprs(args);
                block.iter().for_each(|block| self.block(block));
            }
            Kind::Method { of, args, .. } | Kind::Apply { of, args } => {
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
            Kind::Closure { body, .. } => self.stmt(body),
            Kind::Block(block) => self.block(block),
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
                    self.stmt(&arm.body);
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
            Kind::For { values, body, .. } => {
                self.expr(values);
                self.block(body);
            }
            Kind::Try { body, caught, .. } => {
                self.block(body);
                self.block(caught);
            }
            _ => {}
        }
    }
}

/// The variable at the root of an expression: `x` of `x.a[0].b`.
pub fn root(expr: &Expr) -> Option<&str> {
    root_name(expr).map(|(name, _)| name)
}

/// The same, with its token.
pub fn root_name(expr: &Expr) -> Option<(&str, u32)> {
    match &expr.kind {
        Kind::Name(name) => Some((name, expr.focus)),
        Kind::Property { of, .. } | Kind::Index { of, .. } | Kind::Method { of, .. } => root_name(of),
        _ => None,
    }
}

/// Whether something inside catches errors.
pub fn catches(body: &[Stmt]) -> bool {
    let mut found = false;
    let mut expr = |expr: &Expr| found |= matches!(expr.kind, Kind::Try { .. });
    Visit { stmt: &mut |_| {}, expr: &mut expr }.stmts(body);
    found
}

/// Names of functions, and of variables with closures, that catch errors.
pub fn catchers(body: &[Stmt]) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut stmt = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Fn(function) if catches(&function.body.body) => {
            names.insert(function.name.name.clone());
        }
        StmtKind::Let { name, value: Some(Expr { kind: Kind::Closure { body, .. }, .. }), .. }
            if catches(std::slice::from_ref(&**body)) =>
        {
            names.insert(name.name.clone());
        }
        _ => {}
    };
    Visit { stmt: &mut stmt, expr: &mut |_| {} }.stmts(body);
    names
}

/// Whether an assignment to this gives a tensor another content: `x.data = y`.
fn sets_data(target: &Expr) -> bool {
    matches!(&target.kind, Kind::Property { name, .. } if name == "data")
}

/// Variables that statements change after their declaration.
#[derive(Default, Debug)]
pub struct Changes {
    /// By `x = ..`.
    pub assigned: HashSet<String>,
    /// By `x += ..`: a tensor keeps its shape.
    pub compound: HashSet<String>,
    /// By `x[0] = ..`, `x.a = ..` and perhaps by methods: the type stays.
    pub touched: HashSet<String>,
    /// Some tensor gets another shape in place, and perhaps is that of other variables, too.
    pub relays: bool,
    /// By `x[0] = ..`, `x.a = ..` and methods that give a module other parts, likewise.
    pub parts: HashSet<String>,
}

impl Changes {
    pub fn of(body: &[Stmt]) -> Changes {
        let found = RefCell::new(Changes::default());
        let mut stmt = |stmt: &Stmt| {
            let StmtKind::Assign { op, target, .. } = &stmt.kind else { return };
            let Some(name) = root(target) else { return };
            let mut found = found.borrow_mut();
            match target.kind {
                Kind::Name(_) if op == "=" => found.assigned.insert(name.to_string()),
                Kind::Name(_) => found.compound.insert(name.to_string()),
                _ => found.touched.insert(name.to_string()),
            };
            found.relays |= sets_data(target);
            if op == "=" && name != "this" && !matches!(target.kind, Kind::Name(_)) {
                found.parts.insert(name.to_string());
            }
        };
        let mut expr = |expr: &Expr| {
            let mut found = found.borrow_mut();
            match &expr.kind {
                Kind::Method { of, name, .. } if !is_reading(name) => {
                    let root = root(of).map(str::to_string);
                    let rebuilt = root.clone().filter(|root| changes_modules(name) && root != "this");
                    found.relays |= relays(name);
                    found.parts.extend(rebuilt);
                    found.touched.extend(root);
                }
                Kind::Call { name, .. } => found.relays |= relays(name),
                _ => {}
            }
        };
        Visit { stmt: &mut stmt, expr: &mut expr }.stmts(body);
        found.into_inner()
    }

    /// Changes by closures, which may happen whenever the closures are called.
    pub fn of_closures(body: &[Stmt]) -> Changes {
        let found = RefCell::new(Changes::default());
        let mut expr = |expr: &Expr| {
            if let Kind::Closure { body, .. } = &expr.kind {
                let inner = Changes::of(std::slice::from_ref(&**body));
                let mut found = found.borrow_mut();
                found.assigned.extend(inner.assigned);
                found.compound.extend(inner.compound);
                found.touched.extend(inner.touched);
                found.relays |= inner.relays;
                found.parts.extend(inner.parts);
            }
        };
        // A function changes what its arguments lead to.
        let mut stmt = |stmt: &Stmt| {
            if let StmtKind::Fn(function) = &stmt.kind {
                let inner = Changes::of(&function.body.body);
                let changed = |param: &&Param| inner.parts.contains(&param.name);
                let mut found = found.borrow_mut();
                found.relays |= inner.relays;
                found.parts.extend(function.params.iter().filter(changed).map(|param| param.name.clone()));
            }
        };
        Visit { stmt: &mut stmt, expr: &mut expr }.stmts(body);
        found.into_inner()
    }

    /// What remains known of a variable's value after these changes, whenever they happen.
    pub fn left(&self, name: &str, value: &Value) -> Value {
        let value = &if self.relays { value.relaid() } else { value.clone() };
        match () {
            () if self.assigned.contains(name) => Value::Unknown,
            () if self.compound.contains(name) && !matches!(value, Value::Tensor(_)) => Value::Unknown,
            () if self.touched.contains(name) => value.widened(),
            () => value.clone(),
        }
    }
}

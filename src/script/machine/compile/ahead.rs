//! What the statements behind one do with variables. One walk over the statements of a block answers for each of them.

use super::last_use::sees_all;
use super::{lending, walk};
use rhai::{ASTNode, Expr, ImmutableString, Stmt};
use std::cell::OnceCell;
use std::collections::HashMap;

/// The statements of a block.
pub struct Block<'a> {
    statements: &'a [Stmt],
    known: OnceCell<Known>,
}

type Places = HashMap<ImmutableString, Vec<usize>>;

#[derive(Default)]
struct Known {
    /// The statements in which a name stands, in order.
    named: Places,
    /// Those that declare it.
    declared: Places,
    /// The last one in which something may name a variable without its name in the text.
    sees_all: Option<usize>,
    /// Those that may lead elsewhere, in order.
    leads: Vec<usize>,
}

impl<'a> Block<'a> {
    pub fn of(statements: &'a [Stmt]) -> Block<'a> {
        Block { statements, known: OnceCell::new() }
    }

    fn known(&self) -> &Known {
        self.known.get_or_init(|| {
            let mut known = Known::default();
            for (at, statement) in self.statements.iter().enumerate() {
                known.add(at, statement);
            }
            known
        })
    }

    /// Whether nothing behind a statement names a variable.
    pub fn is_last(&self, at: usize, name: &str) -> bool {
        let is_before = |last: Option<usize>| last.is_none_or(|last| last <= at);
        let known = self.known();
        let in_text = || known.named.get(name).and_then(|places| places.last().copied());
        is_before(known.sees_all) && is_before(in_text())
    }

    /// Whether a variable gets another value behind a statement, before anything reads it or leads elsewhere.
    pub fn is_overwritten(&self, at: usize, name: &str) -> bool {
        let known = self.known();
        let next = |places: &[usize]| places.get(places.partition_point(|place| *place <= at)).copied();
        let of_name = |places: &Places| places.get(name).and_then(|places| next(places));
        let Some(first) = of_name(&known.named) else { return false };
        let Stmt::Assignment(assignment) = &self.statements[first] else { return false };
        let (info, pair) = &**assignment;
        let is_target =
            matches!(&pair.lhs, Expr::Variable(variable, ..) if variable.1 == name && variable.2.path.is_empty());
        is_target
            && next(&known.leads).is_none_or(|leads| leads > first)
            && of_name(&known.declared).is_none_or(|declared| declared > first)
            && !info.is_op_assignment()
            && !lending::mentions_in(&pair.rhs, name)
    }
}

impl Known {
    fn add(&mut self, at: usize, statement: &Stmt) {
        if !matches!(statement, Stmt::Assignment(..) | Stmt::Var(..) | Stmt::Expr(_) | Stmt::FnCall(..)) {
            self.leads.push(at);
        }
        if let Stmt::Var(declared, ..) = statement {
            note(&mut self.declared, at, &declared.0.name);
        }
        walk::statement(statement, &mut |node| {
            match node {
                ASTNode::Expr(Expr::Variable(variable, ..)) => note(&mut self.named, at, &variable.1),
                ASTNode::Stmt(Stmt::Share(shared)) => {
                    shared.iter().for_each(|(name, _)| note(&mut self.named, at, &name.name));
                }
                _ => {}
            }
            true
        });
        if sees_all(statement) {
            self.sees_all = Some(at);
        }
    }
}

fn note(all: &mut Places, at: usize, name: &ImmutableString) {
    match all.get_mut(name) {
        Some(places) if places.last() == Some(&at) => {}
        Some(places) => places.push(at),
        None => drop(all.insert(name.clone(), vec![at])),
    }
}

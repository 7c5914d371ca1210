//! Statements behind one that declares variables when it runs: `eval("let x = 1;")`, or a host program's syntax. They are
//! compiled when it is known what there is.

use super::compile::walk;
use super::compile::{Compiler, Outer};
use super::run::{Frame, Machine, R};
use super::tree::{Block, Code, Rest};
use super::unit::too_large;
use super::value::Value;
use parking_lot::Mutex;
use rhai::{ASTNode, CustomExpr, Dynamic, Expr, ImmutableString, Position, Stmt};
use std::sync::Arc;

/// A variable that a fragment has declared.
pub struct Declared {
    pub name: ImmutableString,
    pub value: Dynamic,
    pub is_constant: bool,
}

/// What the source pass writes for `eval`.
pub const EVAL: &str = "__eval";

/// Whether this may declare variables.
pub fn declares(custom: &CustomExpr) -> bool {
    custom.scope_may_be_changed || custom.tokens.first().is_some_and(|word| word.as_str() == EVAL)
}

/// Whether a statement may declare variables by other means than `let`.
pub fn may_declare(statement: &Stmt) -> bool {
    !walk::statement(statement, &mut |node| !matches!(node, ASTNode::Expr(Expr::Custom(custom, _)) if declares(custom)))
}

/// The variable that a statement declares or assigns, after what its value declares: `let x = f(eval("let x = 1; x"))`.
pub fn own_name(statement: &Stmt) -> Option<&ImmutableString> {
    match statement {
        Stmt::Var(declared, ..) => Some(&declared.0.name),
        Stmt::Assignment(assignment) => match &assignment.1.lhs {
            Expr::Variable(variable, ..) if variable.2.path.is_empty() => Some(&variable.1),
            _ => None,
        },
        _ => None,
    }
}

impl Machine<'_> {
    /// A block whose declared variables end with it.
    pub(super) fn evaluating(&mut self, frame: &mut Frame, block: &Block) -> R {
        let result = self.block(frame, block);
        frame.declared.clear();
        result
    }

    pub(super) fn rest(&mut self, frame: &mut Frame, rest: &Rest) -> R {
        if frame.declared.is_empty() {
            return self.eval(frame, &rest.plain);
        }
        let declared = std::mem::take(&mut frame.declared);
        let names: Vec<Outer> = declared.iter().map(|one| (one.name.clone(), one.is_constant)).collect();
        let code = rest
            .known
            .among(&names, || Compiler::among(rest, &names))
            .ok_or_else(|| Some(too_large(rest.statements.first().map_or(Position::NONE, Stmt::position))))?;
        let count = frame.slots.len();
        let mut slots = vec![Value::Unit; code.slots.max(count)];
        let swap = |slots: &mut [Value], frame: &mut Frame| slots[..count].swap_with_slice(frame.slots);
        swap(&mut slots, frame);
        for (slot, one) in slots[rest.next..].iter_mut().zip(declared) {
            let value = if one.is_constant { one.value.into_read_only() } else { one.value };
            *slot = Value::unboxed(value);
        }
        let mut inner = Frame {
            slots: &mut slots,
            rest: &mut *frame.rest,
            this: frame.this.as_deref_mut(),
            lent: frame.lent.take(),
            declared: Vec::new(),
            bytecode: None,
        };
        let result = self.run_body(&mut inner, &code);
        frame.lent = inner.lent;
        swap(&mut slots, frame);
        result
    }
}

/// The code of a part among the variables that there were the last time.
#[derive(Default)]
pub struct LastCode(Mutex<Option<(Vec<Outer>, Arc<Code>)>>);

impl LastCode {
    /// The code among these variables; `None` where it is too large.
    pub fn among(&self, variables: &[Outer], compile: impl FnOnce() -> Option<Code>) -> Option<Arc<Code>> {
        let mut last = self.0.lock();
        if let Some((_, code)) = last.as_ref().filter(|(known, _)| known == variables) {
            return Some(code.clone());
        }
        let code = Arc::new(compile()?);
        *last = Some((variables.to_vec(), code.clone()));
        Some(code)
    }
}

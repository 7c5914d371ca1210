//! What Rhai's evaluator is asked for: an expression whose operands are at hand, or a part of a body in a scope that
//! mirrors the variables of its frame.

use super::native::{again_with_integers, again_with_texts, keeping};
use super::rest::Declared;
use super::run::{Fault, Frame, Jump, Machine, R};
use super::tree::{Fragment, Operands};
use super::unit::CAPTURED;
use super::value::Value;
use rhai::{Caches, Dynamic, EvalAltResult, EvalContext, Expr, Expression, ImmutableString, Scope};
use smallvec::SmallVec;
use std::sync::LazyLock;

/// The name of the operand that is so many from the end.
pub fn operand_name(from_end: usize) -> ImmutableString {
    static NAMES: LazyLock<[ImmutableString; 32]> = LazyLock::new(|| std::array::from_fn(|at| format!("${at}").into()));
    NAMES.get(from_end).cloned().unwrap_or_else(|| format!("${from_end}").into())
}

impl Machine<'_> {
    /// Evaluates an expression of Rhai's in a scope.
    fn evaluate(
        &mut self,
        expr: &Expr,
        scope: &mut Scope,
        this: Option<&mut Dynamic>,
        caches: &mut Caches,
        declares: bool,
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        let libraries = self.global.lib.len();
        self.global.lib.extend(self.hooks.methods());
        let mut context = EvalContext::new(self.engine, self.global, caches, scope, this);
        // Deprecated means "may change" here; the version is pinned.
        #[allow(deprecated)]
        let result = context.eval_expression_tree_raw(&Expression::from(expr), !declares);
        self.global.lib.truncate(libraries);
        result
    }

    /// `import` of a path that is at hand. The module stays until the block ends.
    pub fn import(&mut self, operands: &Operands, path: Dynamic) -> R {
        let mut scope = Scope::new();
        scope.push_dynamic(operand_name(1), path);
        self.evaluate(&operands.expr, &mut scope, None, &mut Caches::new(), true).map(Value::of).map_err(Some)
    }

    /// Evaluates an expression whose operands are these values, in order. They come back as Rhai left them.
    pub fn operate(
        &mut self,
        expr: &Expr,
        values: &mut [&mut Dynamic],
        caches: &mut Caches,
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        let mut scope = Scope::with_capacity(values.len());
        let count = values.len();
        for (at, value) in values.iter_mut().enumerate() {
            let name = operand_name(count - at);
            if value.is_read_only() {
                scope.push_constant_dynamic(name, value.clone());
            } else {
                scope.push_dynamic(name, value.take());
            }
        }
        let result = self.evaluate(expr, &mut scope, None, caches, false);
        scope.rewind(count);
        for (from_end, value) in values.iter_mut().rev().enumerate() {
            if let Some(left) = scope.get_mut(&operand_name(from_end + 1)) {
                **value = left.take();
            }
            scope.pop();
        }
        result
    }

    /// As `operate`, of values that nobody needs afterwards.
    pub fn operate_on(&mut self, operands: &Operands, values: &mut [Dynamic]) -> R<Dynamic> {
        let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
        Ok(self.operate(&operands.expr, &mut list, &mut Caches::new())?)
    }

    /// Evaluates a part of a body among the variables that are visible there.
    pub fn mirror(&mut self, frame: &mut Frame, fragment: &Fragment) -> R {
        self.step(rhai::Position::NONE)?;
        let mut scope = Scope::with_capacity(fragment.variables.len());
        for variable in &fragment.variables {
            if variable.name == CAPTURED {
                scope.push_constant(CAPTURED, ());
                continue;
            }
            let slot = &mut frame.slots[variable.slot as usize];
            if variable.is_constant {
                scope.push_constant_dynamic(variable.name.clone(), slot.clone().boxed());
            } else {
                scope.push_dynamic(variable.name.clone(), slot.take().boxed());
            }
        }
        let this = frame.this.as_deref_mut();
        // Distances that Rhai's parser knows count no variables of `eval`.
        let by_name = std::mem::replace(&mut self.global.always_search_scope, true);
        let result = self.evaluate(&fragment.expr, &mut scope, this, &mut Caches::new(), fragment.declares);
        self.global.always_search_scope = by_name;
        if fragment.declares {
            let new = scope.len() - fragment.variables.len();
            // Rhai iterates from the latest to the earliest.
            let latest = scope.iter_raw().take(new);
            let mut declared: Vec<Declared> = latest
                .map(|(name, is_constant, value)| Declared { name: name.into(), value: value.clone(), is_constant })
                .collect();
            declared.reverse();
            frame.declared.extend(declared);
        }
        scope.rewind(fragment.variables.len());
        for variable in fragment.variables.iter().rev() {
            if let Some(left) = scope.get_mut(&variable.name).filter(|_| !variable.is_constant) {
                frame.slots[variable.slot as usize] = Value::unboxed(left.take());
            }
            scope.pop();
        }
        match result {
            Ok(value) => Ok(Value::of(value)),
            Err(error) => Err(self.jump_of(error)),
        }
    }

    /// `return`, `break` and `continue` travel as errors inside Rhai.
    pub fn jump_of(&mut self, error: Box<EvalAltResult>) -> Fault {
        if !matches!(*error, EvalAltResult::Return(..) | EvalAltResult::LoopBreak(..)) {
            return Some(error);
        }
        self.jump = match *error {
            EvalAltResult::Return(value, _) => Some(Jump::Return(Value::of(value))),
            EvalAltResult::LoopBreak(true, value, _) => Some(Jump::Break(Value::of(value))),
            _ => Some(Jump::Continue),
        };
        None
    }

    /// A native call that no place remembers: Rhai looks for the function, and the place keeps it.
    pub fn search(&mut self, native: &super::tree::Native, values: &mut [&mut Dynamic]) -> R<Dynamic> {
        let types = values.iter().map(|value| value.type_id()).collect();
        let mut caches = keeping();
        let result = self.operate(&native.operands.expr, values, &mut caches);
        if !super::native::is_keyword(&native.name) {
            native.site.remember(types, &mut caches, false);
        }
        let all = 0..values.len();
        let mut call = |values: &mut [&mut Dynamic]| self.operate(&native.operands.expr, values, &mut Caches::new());
        let result = again_with_integers(result, &native.name, values, all, &mut call);
        Ok(again_with_texts(result, &native.name, values, call)?)
    }
}

//! Code in the hands of Rhai: the expressions and blocks of a host program's own syntax, the text of `eval`, and functions
//! that are called with the variables of their caller, `f!(x)`. Each is compiled among the variables of the scope that it
//! is given.

use super::compile::{self, Outer};
use super::rest::{self, LastCode};
use super::run::Machine;
use super::tree::Code;
use super::unit::{Unit, run_statement, too_large};
use rhai::{CustomExpr, Dynamic, Engine, EvalAltResult, EvalContext, Expr, Stmt};
use std::sync::{Arc, Weak};

/// The word that stands for the code.
const WORD: &str = "__code";

/// A statement that is compiled among the variables of a scope.
pub struct ScopeCode {
    unit: Weak<Unit>,
    statement: Stmt,
    known: LastCode,
}

/// Registers the word.
pub fn install(engine: &mut Engine) {
    // Deprecated means "may change" here; the version is pinned.
    #[allow(deprecated)]
    engine.register_custom_syntax_with_state_raw(
        WORD,
        |_, _, _| Ok(None),
        true,
        |context, _, state| match state.read_lock::<Arc<ScopeCode>>().map(|code| code.clone()) {
            Some(code) => code.run(context),
            // The word is not one that a script can write.
            None => Ok(Dynamic::UNIT),
        },
    );
}

/// Puts the word in the place of an input, unless the input stands for itself: a name, or a plain value.
pub fn enclose(input: &mut Expr, unit: &Weak<Unit>) {
    let is_plain = matches!(
        input,
        Expr::Variable(..) | Expr::StringConstant(..) | Expr::IntegerConstant(..) | Expr::FloatConstant(..)
    ) || matches!(input, Expr::BoolConstant(..) | Expr::CharConstant(..) | Expr::Unit(..));
    if is_plain {
        return;
    }
    let at = input.start_position();
    let statement = Stmt::Expr(Box::new(std::mem::replace(input, Expr::Unit(at))));
    let code = Arc::new(ScopeCode::new(statement, unit.clone()));
    let word = CustomExpr {
        inputs: Default::default(),
        tokens: [WORD.into()].into_iter().collect(),
        state: Dynamic::from(code),
        scope_may_be_changed: true,
        self_terminated: false,
    };
    *input = Expr::Custom(Box::new(word), at);
}

impl ScopeCode {
    pub fn new(statement: Stmt, unit: Weak<Unit>) -> ScopeCode {
        ScopeCode { unit, statement, known: LastCode::default() }
    }

    /// Runs it among the variables of a scope, which keeps what they become.
    pub fn run(&self, context: &mut EvalContext) -> Result<Dynamic, Box<EvalAltResult>> {
        let Some(unit) = self.unit.upgrade() else { return Ok(Dynamic::UNIT) };
        let mut variables: Vec<Outer> =
            context.scope().iter_raw().map(|(name, is_constant, _)| (name.into(), is_constant)).collect();
        // Rhai iterates from the latest to the earliest.
        variables.reverse();
        let Some(code) = self.code(&variables, &unit) else { return Err(too_large(self.statement.position())) };
        let engine = context.engine();
        // State, scope and `this` are behind one borrow: two of them are out of their places while the code runs.
        let mut this = context.this_ptr_mut().map(Dynamic::take);
        let mut global = engine.new_global_runtime_state();
        std::mem::swap(&mut global, context.global_runtime_state_mut());
        let mut machine = Machine::new(engine, &mut global, &*unit.hooks);
        let result = machine.at_home(&self.unit, |machine| {
            run_statement(
                machine,
                (&code, rest::own_name(&self.statement)),
                context.scope_mut(),
                &variables,
                this.as_mut(),
            )
        });
        let result = machine.as_rhai_has_it(result);
        std::mem::swap(&mut global, context.global_runtime_state_mut());
        if let (Some(place), Some(value)) = (context.this_ptr_mut(), this) {
            *place = value;
        }
        result
    }

    fn code(&self, variables: &[Outer], unit: &Arc<Unit>) -> Option<Arc<Code>> {
        let compile = || compile::statement(&self.statement, variables, true, Arc::downgrade(unit)).ok();
        self.known.among(variables, compile)
    }
}

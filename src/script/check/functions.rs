//! Functions and closures of the script: their bodies, and the result of a call for what is known of its arguments.

use super::flow::Flow;
use super::syntax::{Expr, Function, Kind, Param, Stmt, StmtKind};
use super::value::Value;

/// Bound: nested functions of the script that are analyzed again for the arguments of a call.
const CALLS: usize = 4;

impl<'a> Flow<'a> {
    /// A closure's body, which runs at another time.
    pub(super) fn closure(&mut self, params: &'a [Param], body: &'a Stmt) {
        let depth = self.vars.len();
        let (returns, doubt) = (std::mem::take(&mut self.returns), self.doubt);
        for param in params {
            self.declare(param, Value::Unknown, false);
        }
        let mark = self.vars.mark();
        self.later += 1;
        self.doubt += 1;
        if let StmtKind::Expr(Expr { kind: Kind::Block(block), .. }) = &body.kind {
            self.value_of_try(&block.body);
        }
        let kept = std::mem::replace(&mut self.kept, true);
        self.stmt(body);
        self.kept = kept;
        self.later -= 1;
        self.doubt = doubt;
        self.returns = returns;
        self.vars.back(mark);
        self.leave(depth);
    }

    /// The result of a function of the script for these arguments.
    pub(super) fn function(&mut self, function: &'a Function, args: Vec<Value>) -> Value {
        let vars = std::mem::take(&mut self.vars);
        let returns = std::mem::take(&mut self.returns);
        let (doubt, quiet, later) = (self.doubt, self.quiet, self.later);
        if self.replay == 0 {
            (self.doubt, self.quiet) = (0, 0);
        }
        self.later = 0;
        for (param, value) in function.params.iter().zip(args) {
            self.declare(param, value, false);
        }
        self.value_of_try(&function.body.body);
        self.active.push(&function.name.name);
        let kept = std::mem::replace(&mut self.kept, true);
        let done = self.block(&function.body);
        self.kept = kept;
        self.active.pop();
        (self.doubt, self.quiet, self.later) = (doubt, quiet, later);
        self.vars = vars;
        let mut all = std::mem::replace(&mut self.returns, returns);
        if !done.ends {
            all.push(done.value);
        }
        all.into_iter().reduce(|a, b| a.join(&b)).unwrap_or(Value::Unknown)
    }

    /// A call of a function of the script: analyzes it again with what is known of the arguments.
    pub(super) fn called(&mut self, name: &str, args: Vec<Value>) -> Value {
        let of_name = self.functions.get_key_value(name);
        let Some((name, &function)) = of_name.and_then(|(name, all)| Some((*name, all.get(&args.len())?))) else {
            return Value::Unknown;
        };
        if self.active.len() >= CALLS || self.active.contains(&name) || !self.step() {
            return Value::Unknown;
        }
        let doubt = self.doubt;
        // From here on only code that certainly runs counts; the call itself runs if the surrounding code does.
        if self.replay == 0 {
            self.doubt = 0;
        }
        self.replay += 1;
        let value = self.function(function, args);
        self.replay -= 1;
        self.doubt = doubt;
        value
    }
}

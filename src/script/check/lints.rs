//! Messages of findings that no run has: suspicious code that may run, conditions and loops.

use super::flow::Flow;
use super::judged;
use super::syntax::{Expr, Kind};
use super::value::Value;
use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::op::row::CallForm;
use crate::op::table;
use crate::script::host::uncalled;
use crate::script::manual::members;

pub fn unused(name: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::UNUSED, format!("the variable `{name}` is never used"))
        .label(at, Focus::Call, "its value is never read")
        .help(format!("leave it out, or call it `_{name}` if it is meant so"))
}

pub fn unused_import(name: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::UNUSED, format!("the import `{name}` is never used"))
        .label(at, Focus::Call, "nothing of this module is used")
        .help(format!("leave it out, or call it `_{name}` if the module is imported for what it does"))
}

pub fn unreachable(at: Origin) -> Box<Diag> {
    Diag::warning(code::UNREACHABLE, "this statement is never reached").label(
        at,
        Focus::Expression,
        "the code before it always leaves the block",
    )
}

/// A case of a `switch` after another with the same value.
pub fn case_again(value: &str, at: Origin) -> Box<Diag> {
    let text = format!("the case `{value}` stands in this `switch` twice");
    Diag::warning(code::UNREACHABLE, text).label(at, Focus::Expression, "the first one is taken")
}

fn lost(what: &str, at: Origin, help: Option<String>) -> Box<Diag> {
    let diag = Diag::warning(code::LOST, format!("the value of {what} is thrown away")).label(
        at,
        Focus::Call,
        "it is not used",
    );
    match help {
        Some(help) => diag.help(help),
        None => diag.help("give it a name with `let`, print it, or leave it out"),
    }
}

pub fn value_of_try(at: Origin) -> Box<Diag> {
    let help = "a `try` has no value: write `return` inside, or assign to a variable declared before it";
    lost("this block", at, Some(help.to_string()))
}

pub fn value_of_nothing(name: &str, help: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::LOST, format!("`{name}` changes what it is called on, and gives `()`"))
        .label(at, Focus::Call, "this has no value")
        .help(help)
}

pub fn changes_too(name: &str, variable: &str, help: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::LOST, format!("`{name}` changes `{variable}`, too"))
        .label(at, Focus::Call, "changes what it is called on")
        .help(help)
}

pub fn never_equal(op: &str, left: &Value, right: &Value, at: Origin) -> Box<Diag> {
    let always = if op == "==" { "false" } else { "true" };
    Diag::warning(code::NEVER_EQUAL, format!("{} never equals {}", left.kind(), right.kind()))
        .label(at, Focus::Expression, format!("always {always}"))
        .help("convert one of them first: `parse_int`, `parse_float`, `to_string`")
}

/// `type_of(x) == "int"`: a name of Python's for the name that `type_of` gives.
pub fn no_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "int" | "integer" | "long" => "\"i64\"",
        "float" | "double" => "\"f64\"",
        "str" | "String" => "\"string\"",
        "list" | "tuple" | "Array" => "\"array\"",
        "dict" | "Map" => "\"map\"",
        "function" | "lambda" | "closure" | "fn" => "\"Fn\"",
        "boolean" => "\"bool\"",
        "None" | "NoneType" | "null" | "unit" => "\"()\"",
        "Tensor" | "torch.Tensor" => "\"tensor\"",
        _ => return None,
    })
}

/// The warning for a comparison with such a name.
pub fn type_never_equal(op: &str, name: &str, is: &str, at: Origin) -> Box<Diag> {
    let always = if op == "==" { "false" } else { "true" };
    Diag::warning(code::NEVER_EQUAL, format!("`type_of` never gives \"{name}\""))
        .label(at, Focus::Expression, format!("always {always}"))
        .help(format!("it is called {is} here"))
}

/// `x.dtype == "flaot32"`.
pub fn names_nothing(op: &str, wrong: &Diag, at: Origin) -> Box<Diag> {
    let always = if op == "==" { "false" } else { "true" };
    let diag = Diag::warning(code::NEVER_EQUAL, wrong.message.clone());
    let diag = diag.label(at, Focus::Expression, format!("always {always}"));
    match &wrong.help {
        Some(help) => diag.help(help.clone()),
        None => diag,
    }
}

pub fn no_truth(value: &Value, at: Origin) -> Box<Diag> {
    Diag::error(code::TYPE, format!("a condition must be true or false, and this is {}", value.kind())).label(
        at,
        Focus::Expression,
        "no truth value",
    )
}

pub fn no_iterable(value: &Value, at: Origin) -> Box<Diag> {
    Diag::error(code::TYPE, format!("a `for` loop cannot go over {}", value.kind()))
        .label(at, Focus::Expression, "not iterable")
        .help("arrays, ranges (`0..n`), strings, tensors and loaders can be iterated")
}

impl<'a> Flow<'a> {
    /// `type_of(x) == "int"`: an operand, and the value of the other.
    pub(super) fn compared_type(&mut self, op: &str, token: u32, of: &Expr, other: &Value) {
        let asks = match &of.kind {
            Kind::Call { space: None, name, .. } | Kind::Method { name, .. } => name == "type_of",
            _ => false,
        };
        if asks
            && matches!(op, "==" | "!=")
            && let Value::Str(Some(name)) = other
            && let Some(is) = no_type(name)
        {
            self.warn(token, type_never_equal(op, name, is, self.world.origin(token)));
        }
    }

    /// Warns of a statement that only computes a value.
    pub(super) fn lost(&mut self, expr: &'a Expr) {
        let at = self.world.origin(expr.focus);
        let diag = match &expr.kind {
            Kind::Binary { op, .. } if op == "==" => {
                lost("this comparison", at, Some("an assignment has one `=`".to_string()))
            }
            // `a && f()`, `x ?? return` have the effects of their right side.
            Kind::Binary { op, .. } if matches!(&op[..], "&&" | "||" | "??") => return,
            Kind::Binary { .. } | Kind::Unary { .. } => lost("this operation", at, None),
            Kind::Name(name) if matches!(&name[..], "_" | "this") => return,
            Kind::Name(name) if self.functions.contains_key(&name[..]) => {
                lost(&format!("`{name}`"), at, Some(format!("a call has parentheses: `{name}()`")))
            }
            Kind::Name(name) if matches!(&name[..], "quit" | "exit" | "help") => {
                lost(&format!("`{name}`"), at, Some(format!("a call has parentheses: `{name}()`")))
            }
            Kind::Name(_) | Kind::Int(_) | Kind::Float(_) | Kind::Bool(_) | Kind::Char | Kind::Str(_) => {
                lost("this expression", at, None)
            }
            Kind::Text(_) | Kind::Array(_) | Kind::Map(_) | Kind::Closure { .. } | Kind::Range { .. } => {
                lost("this expression", at, None)
            }
            Kind::Property { name, .. } => match table::find(name).is_some() || uncalled::is_method(name) {
                true => uncalled::warning(name, at),
                false => lost(&format!("`.{name}`"), at, None),
            },
            Kind::Index { .. } => lost("this element", at, None),
            Kind::Method { of, name, .. }
                if judged::is_pure_plain(name)
                    && !self.is_own(name)
                    && matches!(self.peek_value(of), Value::Str(_) | Value::Array(_)) =>
            {
                lost(&format!("`{name}`"), at, None)
            }
            Kind::Method { of, name, .. } => {
                let known = matches!(self.peek_value(of), Value::Tensor(_));
                let method = format!("{name}(");
                let elsewhere = members::is_member(name)
                    || members::of_module().contains(&method)
                    || members::of_set().contains(&method);
                let may_be_another =
                    elsewhere || self.world.keys.contains(&name[..]) || self.world.is_open || self.is_own(name);
                let only_gives = computes(name, true) || (known && judged::is_pure(name));
                if (!known && may_be_another) || !only_gives {
                    return;
                }
                let inplace = table::find(name).is_some_and(|op| op.inplace);
                let help = inplace.then(|| format!("`{name}_` changes the tensor in place; or give the result a name"));
                lost(&format!("`{name}`"), at, help)
            }
            Kind::Call { space: None, name, .. }
                if (computes(name, false) || judged::is_pure_plain(name)) && !self.is_users(name) =>
            {
                lost(&format!("`{name}`"), at, None)
            }
            _ => return,
        };
        self.warn(expr.focus, diag);
    }

    pub(super) fn is_own(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Whether a call of this name is one of the script's: of a function, or of what a variable holds.
    pub(super) fn is_users(&self, name: &str) -> bool {
        let held = self.vars.find(name);
        self.is_own(name) || held.is_some_and(|var| var.value.may_be_called())
    }

    /// The value of a plain name; does not count as a use.
    pub(super) fn peek_value(&self, expr: &Expr) -> Value {
        match &expr.kind {
            Kind::Name(name) => self.vars.find(name).map_or(Value::Unknown, |var| var.value.clone()),
            _ => Value::Unknown,
        }
    }
}

/// Whether a name is an operation without side effects.
fn computes(name: &str, method: bool) -> bool {
    let Some(op) = table::find(name) else { return false };
    let native = crate::script::manual::native(name).is_some();
    let form = match op.call {
        CallForm::Both => true,
        CallForm::Function => !method,
        CallForm::Method => method,
        CallForm::InPlace | CallForm::Internal => false,
    };
    form && !native && !op.guarded && !name.ends_with('_') && !name.starts_with('_')
}

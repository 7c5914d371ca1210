//! Conditions over what is known: their truth, so that what never runs is not judged, and the variables that they ask
//! for. Under a condition whose truth is not known, a variable that it asks for may be another than before it.

use super::flow::Flow;
use super::flow::Mark;
use super::plain::never_equal;
use super::syntax::{Arm, Expr, Kind};
use super::value::Value;
use super::visit::Visit;
use crate::op::table;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What conditions around have asked about a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Asked {
    No,
    /// About a part or property: its type is known all the same.
    Part,
    Whole,
}

impl Asked {
    /// What remains known of the value under such a condition.
    pub(super) fn left(self, value: &Value) -> Value {
        match self {
            Asked::No => value.clone(),
            Asked::Part => value.widened(),
            Asked::Whole => Value::Unknown,
        }
    }
}

impl<'a> Flow<'a> {
    /// Marks what a condition asks for, and returns the marks from before.
    pub(super) fn ask<'e>(&mut self, conditions: impl IntoIterator<Item = &'e Expr>) -> Mark {
        let before = self.vars.asks();
        for condition in conditions {
            for (name, asked) in self.asked_by(condition) {
                if let Some(place) = self.vars.place(&name) {
                    self.vars.ask(place, self.vars.at(place).asked.max(asked));
                }
            }
        }
        before
    }

    pub(super) fn unask(&mut self, before: &Mark) {
        self.vars.unask(before);
    }

    fn asked_by(&self, condition: &Expr) -> HashMap<String, Asked> {
        let mut names: HashMap<String, Asked> = HashMap::new();
        let mut parts: HashSet<u32> = HashSet::new();
        let mut expr = |expr: &Expr| {
            let mut part = |of: &Expr| parts.extend([of.focus]);
            match &expr.kind {
                Kind::Property { of, .. } | Kind::Index { of, .. } | Kind::Unary { of, .. } => part(of),
                Kind::Method { of, name, .. } if name != "type_of" && !self.is_own(name) => part(of),
                Kind::Call { space: None, name, args, .. } if table::called(name).is_some() && !self.is_users(name) => {
                    args.iter().for_each(part);
                }
                Kind::Binary { op, left, right } if !matches!(&op[..], "==" | "!=" | "in" | "!in" | "??") => {
                    part(left);
                    part(right);
                }
                Kind::Binary { op, right, .. } if matches!(&op[..], "in" | "!in") => part(right),
                Kind::Name(name) => {
                    let asked = if parts.contains(&expr.focus) { Asked::Part } else { Asked::Whole };
                    let known = names.entry(name.clone()).or_insert(asked);
                    *known = asked.max(*known);
                }
                _ => {}
            }
        };
        Visit { stmt: &mut |_| {}, expr: &mut expr }.expr(condition);
        names
    }

    /// The right side of `&&`, `||` and `??`, which runs if the left side does not decide.
    pub(super) fn right(&mut self, op: &str, left: (&'a Expr, &Value), right: &'a Expr) -> Value {
        let (condition, value) = left;
        let decides = match (op, value) {
            ("&&", Value::Bool(Some(truth))) => Some(!truth),
            ("||", Value::Bool(Some(truth))) => Some(*truth),
            ("??", Value::Unit) => Some(false),
            _ => None,
        };
        let asked = self.ask(decides.is_none().then_some(condition));
        self.doubt += decides.is_none() as usize;
        self.dead += (decides == Some(true)) as usize;
        let value = self.expr(right);
        self.dead -= (decides == Some(true)) as usize;
        self.doubt -= decides.is_none() as usize;
        self.unask(&asked);
        value
    }

    /// Which arms of a `switch` are taken for a value, as far as that is known, and whether none may be; and the
    /// conditions whose truth is not known.
    pub(super) fn taken(
        &mut self,
        value: (&'a Expr, &Value),
        arms: &'a [Arm],
    ) -> (Vec<Option<bool>>, bool, Vec<&'a Expr>) {
        let (mut all, mut open, mut asked) = (Vec::new(), true, Vec::new());
        let before = self.ask([]);
        self.doubt += 1;
        for arm in arms {
            let case = self.takes(arm, value.1).filter(|_| open).or((!open).then_some(false));
            if case.is_none() {
                asked.push(value.0);
                self.ask([value.0]);
            }
            self.dead += (case == Some(false)) as usize;
            let guard = arm.guard.as_ref().map_or(Some(true), |guard| truth(&self.condition(guard)));
            self.dead -= (case == Some(false)) as usize;
            asked.extend(arm.guard.as_ref().filter(|_| guard.is_none()));
            let taken = both(case, guard);
            open &= taken != Some(true);
            all.push(taken);
        }
        self.doubt -= 1;
        self.unask(&before);
        (all, open, asked)
    }

    /// Whether an arm is taken, its guard aside.
    fn takes(&mut self, arm: &'a Arm, value: &Value) -> Option<bool> {
        let mut is_same = |case: &'a Expr| match &case.kind {
            Kind::Name(name) if name == "_" => Some(true),
            Kind::Range { .. } => {
                self.expr(case);
                None
            }
            _ => equal(value, &self.expr(case)),
        };
        let all: Vec<Option<bool>> = arm.cases.iter().map(&mut is_same).collect();
        any(all.into_iter())
    }
}

/// The truth of a condition.
pub(super) fn truth(value: &Value) -> Option<bool> {
    if let Value::Bool(truth) = value { *truth } else { None }
}

pub(super) fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// `a && b`, `a || b`.
pub(super) fn logical(op: &str, left: &Value, right: &Value) -> Value {
    let (left, right) = (truth(left), truth(right));
    Value::Bool(if op == "&&" { both(left, right) } else { either(left, right) })
}

fn either(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    both(left.map(|truth| !truth), right.map(|truth| !truth)).map(|neither| !neither)
}

/// Whether two values are equal.
pub(super) fn equal(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Unit, Value::Unit) => Some(true),
        (Value::Unit, other) | (other, Value::Unit) => other.is_known().then_some(false),
        (Value::Bool(a), Value::Bool(b)) => Some((*a)? == (*b)?),
        (Value::Int(a), Value::Int(b)) => Some((*a)? == (*b)?),
        (Value::Float(a), Value::Float(b)) => Some((*a)? == (*b)?),
        (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => Some((*a)? as f64 == (*b)?),
        (Value::Str(a), Value::Str(b)) => Some(a.as_ref()? == b.as_ref()?),
        (Value::DType(a), Value::DType(b)) => Some((*a)? == (*b)?),
        (Value::Array(a), Value::Array(b)) => {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            all(a.len() == b.len(), a.iter().zip(b.iter()))
        }
        (Value::Map(a), Value::Map(b)) => {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            all(a.keys().eq(b.keys()), a.values().zip(b.values()))
        }
        _ => never_equal(left, right).then_some(false),
    }
}

fn all<'v>(alike: bool, pairs: impl Iterator<Item = (&'v Value, &'v Value)>) -> Option<bool> {
    let mut all = Some(alike);
    for (a, b) in pairs {
        all = both(all, equal(a, b));
    }
    all
}

/// `x in xs`
pub(super) fn contained(item: &Value, holder: &Value) -> Option<bool> {
    match (item, holder) {
        (Value::Str(Some(key)), Value::Map(Some(map))) => Some(map.contains_key(&**key)),
        (Value::Str(Some(part)), Value::Str(Some(text))) => Some(text.contains(&**part)),
        (_, Value::Array(Some(items))) => any(items.iter().map(|one| equal(item, one))),
        _ => None,
    }
}

fn any(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all.fold(Some(false), either)
}

/// What the language's own questions about values of plain types give.
pub(super) fn answer(name: &str, values: &[Value]) -> Option<Value> {
    let count = |value: &Value| match value {
        Value::Array(Some(items)) => Some(items.len()),
        Value::Map(Some(map)) => Some(map.len()),
        Value::Str(Some(text)) => Some(text.chars().count()),
        _ => None,
    };
    match (name, values) {
        ("len", [of]) => Some(Value::Int(Some(count(of)? as i64))),
        ("is_empty", [of]) => Some(Value::Bool(Some(count(of)? == 0))),
        ("contains", [of, item]) => Some(Value::Bool(Some(contained(item, of)?))),
        ("type_of", [Value::Tensor(_)]) => Some(Value::Str(Some(Rc::from("tensor")))),
        ("type_of", [of]) => Some(Value::Str(Some(Rc::from(of.type_name()?)))),
        _ => None,
    }
}

//! Walks a script's statements in order and tracks what is known of each variable. Knowledge that depends on a
//! branch, on a loop or on a closure that runs later is dropped: better to miss a mistake than to report a wrong one.

mod vars;

use super::guards::{self, Asked};
use super::layers::{Layer, Stepped};
use super::lints;
use super::loops::{has_break, leaves};
use super::seen::Seen;
use super::syntax::{Arm, Block, Expr, Function, Kind, Param, Stmt, StmtKind};
use super::value::Value;
use super::visit::{self, Changes};
use super::world::World;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Severity};
use crate::script::host::each_counted;
use crate::script::language::unpack;
use crate::script::nn::optimizer_state::ASSIGNED;
use crate::script::source::tree::CopyOf;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
pub(super) use vars::Mark;
use vars::{Changed, Var, Vars};

/// Bound: expressions that are analyzed, including those of functions that are analyzed again.
const STEPS: usize = 200_000;

/// A finding: its token and message.
pub type Finding = (u32, Box<Diag>);

pub struct Flow<'a> {
    pub(super) world: &'a World<'a>,
    /// The script's functions of each name, by their numbers of parameters.
    pub(super) functions: HashMap<&'a str, BTreeMap<usize, &'a Function>>,
    pub(super) vars: Vars,
    pub(super) found: Vec<Finding>,
    reported: HashSet<(u32, u16)>,
    /// Variables that closures change, at any time; variables that anything changes.
    by_closures: Changes,
    by_anything: Changes,
    /// Inside a closure, which runs later or never.
    pub(super) later: usize,
    /// Inside a `try`, where an error may be intended.
    pub(super) quiet: usize,
    /// Above 0: a function is analyzed again for the arguments of a call.
    pub(super) replay: usize,
    /// Inside code that may not run; only relevant while a function is analyzed again.
    pub(super) doubt: usize,
    /// Inside code that never runs, as a known condition tells: what values are there does not count.
    pub(super) dead: usize,
    /// Functions and closures that catch errors: their arguments may fail on purpose.
    pub(super) catchers: HashSet<String>,
    pub(super) active: Vec<&'a str>,
    pub(super) returns: Vec<Value>,
    steps: usize,
    /// Whether the value of the current block is used: its last statement is its value, with or without a `;`.
    pub(super) kept: bool,
    /// Code that looks up variables by name: then no variable counts as unused.
    hidden: bool,
    /// The values on the way, for editors.
    pub(super) seen: Option<Seen>,
    /// Names, and whether they are entries of the library's maps: to find that out takes a while.
    pub(super) entries_of_library: HashMap<String, bool>,
}

/// The value of a statement, and whether anything after it runs.
#[derive(Clone)]
pub(super) struct Done {
    pub value: Value,
    pub ends: bool,
    /// What follows never runs, since a known condition leads to an end.
    pub dead: bool,
}

impl Done {
    fn value(value: Value) -> Done {
        Done { value, ends: false, dead: false }
    }

    const END: Done = Done { value: Value::Unknown, ends: true, dead: false };
}

/// All mistakes of a text that concern values; and the values on the way, if somebody asks for them.
pub fn findings<'a>(
    world: &'a World<'a>,
    body: &'a [Stmt],
    hidden: bool,
    seen: Option<Seen>,
) -> (Vec<Finding>, Option<Seen>) {
    let mut flow = Flow {
        world,
        functions: HashMap::new(),
        vars: Vars::default(),
        found: Vec::new(),
        reported: HashSet::new(),
        by_closures: Changes::of_closures(body),
        by_anything: Changes::of(body),
        later: 0,
        quiet: 0,
        replay: 0,
        doubt: 0,
        dead: 0,
        catchers: visit::catchers(body),
        active: Vec::new(),
        returns: Vec::new(),
        steps: 0,
        kept: false,
        hidden,
        seen,
        entries_of_library: HashMap::new(),
    };
    for stmt in body {
        if let StmtKind::Fn(function) = &stmt.kind {
            let of_name = flow.functions.entry(&function.name.name).or_default();
            of_name.insert(function.params.len(), function);
        }
    }
    flow.body(body);
    for stmt in body {
        if let StmtKind::Fn(function) = &stmt.kind {
            flow.function(function, vec![Value::Unknown; function.params.len()]);
        }
    }
    (flow.found, flow.seen)
}

/// One branch.
struct Way<'w, 'a> {
    /// A known condition tells that it is not taken.
    dead: bool,
    run: Box<dyn FnOnce(&mut Flow<'a>) -> Done + 'w>,
}

impl<'w, 'a> Way<'w, 'a> {
    fn new(taken: Option<bool>, run: impl FnOnce(&mut Flow<'a>) -> Done + 'w) -> Way<'w, 'a> {
        Way { dead: taken == Some(false), run: Box::new(run) }
    }
}

impl<'a> Flow<'a> {
    /// Reports a mistake in values.
    pub(super) fn report(&mut self, token: u32, diag: Box<Diag>) {
        if self.dead > 0 && (diag.severity == Severity::Error || diag.code == code::NEVER_EQUAL) {
            return;
        }
        if self.quiet == 0 && (self.replay == 0 || self.doubt == 0) && self.reported.insert((token, diag.code.0)) {
            self.found.push((token, diag));
        }
    }

    /// Reports a mistake at an operation, with its own label.
    pub(super) fn report_at(&mut self, token: u32, mut diag: Box<Diag>, text: &str) {
        let origin = self.world.origin(token);
        if diag.labels.is_empty() {
            diag = diag.label(origin, Focus::Call, text);
        }
        for label in diag.labels.iter_mut().filter(|label| label.origin.user.is_none()) {
            label.origin = origin;
        }
        self.report(token, diag);
    }

    /// Reports code that is valid but suspicious; not where a function is analyzed again.
    pub(super) fn warn(&mut self, token: u32, diag: Box<Diag>) {
        if self.replay == 0 && self.quiet == 0 {
            self.report(token, diag);
        }
    }

    /// A change of an array or map that a variable holds: nobody sees it where that is a function's copy.
    pub(super) fn changes(&mut self, target: &Expr, container: &Value) {
        if let Some((name, token)) = visit::root_name(target)
            && let Some(&of) = self.world.lost.get(&token)
            && of != CopyOf::Result
            && self.quiet == 0
            && matches!(container, Value::Array(_) | Value::Map(_))
        {
            let diag = crate::script::host::lost::warning(name, of, self.world.origin(token));
            self.report(token, diag);
        }
    }

    /// A method at a token changes what it is called on, which no variable may hold.
    pub(super) fn changes_result(&mut self, name: &str, token: u32, of: &Expr, container: &Value) {
        let is_lost = self.world.lost.get(&token) == Some(&CopyOf::Result);
        let is_set = matches!(&of.kind, Kind::Call { space: None, name, .. } if name == "set");
        if is_lost && self.quiet == 0 && (is_set || matches!(container, Value::Array(_) | Value::Map(_))) {
            let diag = crate::script::host::lost::warning(name, CopyOf::Result, self.world.origin(token));
            self.report(token, diag);
        }
    }

    /// A `for_each` at a token whose closure takes a number for the element.
    pub(super) fn counts_each(&mut self, token: u32, receiver: &Value) {
        if let Some(&parameter) = self.world.each_counted.get(&token)
            && self.quiet == 0
            && matches!(receiver, Value::Array(_))
        {
            let diag = each_counted::warning(&self.world.path(parameter), self.world.origin(parameter));
            self.warn(parameter, diag);
        }
    }

    /// A value that a pattern takes apart.
    fn taken_apart(&mut self, (pattern, token): &(String, u32), given: &Value) {
        let misfit = match given {
            Value::Array(Some(items)) => unpack::misfit_of_array(pattern, items.len()),
            Value::Map(Some(map)) => {
                let keys: Vec<&str> = map.keys().map(String::as_str).collect();
                unpack::misfit_of_map(pattern, &keys)
            }
            _ => None,
        };
        if let Some(diag) = misfit {
            self.report_at(*token, diag, "");
        }
    }

    /// What an assignment to an element or property changes, or to a variable by `+=` and its kin.
    fn assigns(&mut self, op: &str, target: &'a Expr) {
        if !visit::root_name(target).is_some_and(|(_, token)| self.world.lost.contains_key(&token)) {
            return;
        }
        let of = match &target.kind {
            Kind::Index { of, .. } | Kind::Property { of, .. } => of,
            _ if op != "=" => target,
            _ => return,
        };
        self.quiet += 1;
        let container = self.expr(of);
        self.quiet -= 1;
        self.changes(target, &container);
    }

    /// Whether the bound allows to analyze more.
    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps < STEPS
    }

    /// Marks a variable as used and returns its value, as far as it counts here.
    pub(super) fn read(&mut self, name: &str) -> Option<Value> {
        let var = self.vars.find_mut(name)?;
        var.read = true;
        let asked = var.asked;
        Some(asked.left(&self.held(name)?))
    }

    /// The value of a variable, whatever conditions have asked about it.
    pub(super) fn held(&self, name: &str) -> Option<Value> {
        let var = self.vars.find(name)?;
        let value = self.by_closures.left(name, &var.value);
        let value = if self.later > 0 { self.by_anything.left(name, &value) } else { value };
        Some(if self.by_closures.parts.is_empty() { value } else { value.rebuilt() })
    }

    pub(super) fn declare(&mut self, name: &Param, value: Value, watched: bool) {
        let watched = watched && self.replay == 0 && !name.name.starts_with('_') && !self.hidden;
        if let Some(seen) = &mut self.seen {
            seen.note(name.token, &value, self.replay > 0);
        }
        self.vars.push(Var {
            name: name.name.clone(),
            token: name.token,
            value,
            read: false,
            watched,
            constant: false,
            asked: Asked::No,
        });
    }

    pub(super) fn assign(&mut self, name: &str, value: Value) {
        if let Some(place) = self.vars.place(name) {
            self.vars.set(place, value);
            self.vars.ask(place, Asked::No);
        }
    }

    /// Leaves a block: its variables are dropped.
    pub(super) fn leave(&mut self, depth: usize) {
        while self.vars.len() > depth {
            let Some(var) = self.vars.pop() else { return };
            // Beyond the bound nothing is read.
            if var.watched && !var.read && self.steps < STEPS {
                self.warn(var.token, lints::unused(&var.name, self.world.origin(var.token)));
            }
        }
    }

    pub(super) fn forget(&mut self, changes: &Changes) {
        if changes.parts.iter().any(|name| self.may_hold_module(name)) {
            self.rebuilt();
        }
        if changes.relays {
            return self.vars.set_all(|var| changes.left(&var.name, &var.value));
        }
        let names: HashSet<&String> =
            changes.assigned.iter().chain(&changes.compound).chain(&changes.touched).collect();
        for name in names {
            for place in self.vars.places(name) {
                let value = changes.left(name, &self.vars.at(place).value);
                self.vars.set(place, value);
            }
        }
    }

    /// A method may have changed the variable that it was called on.
    pub(super) fn touch(&mut self, of: &Expr) {
        if let Some(name) = visit::root(of)
            && let Some(place) = self.vars.place(name)
        {
            self.vars.set(place, self.vars.at(place).value.widened());
        }
    }

    /// Some tensor has got another shape in place: every variable may lead to it.
    pub(super) fn relaid(&mut self) {
        self.vars.set_all(|var| var.value.relaid());
    }

    /// Some module has got other parts: every variable may lead to it.
    pub(super) fn rebuilt(&mut self) {
        self.vars.set_all(|var| var.value.rebuilt());
    }

    /// Analyzes several branches, and continues with what holds after all that return.
    fn branches(&mut self, ways: Vec<Way<'_, 'a>>) -> Done {
        let mut after: Option<(Changed, Value)> = None;
        let (mut some_end, mut goes_on) = (false, false);
        for Way { dead, run } in ways {
            let mark = self.vars.mark();
            self.doubt += 1;
            self.dead += dead as usize;
            let done = run(self);
            self.dead -= dead as usize;
            self.doubt -= 1;
            some_end |= done.ends || done.dead;
            goes_on |= !(dead || done.ends || done.dead);
            let changed = self.vars.back(mark);
            if done.ends {
                continue;
            }
            after = Some(match after {
                None => (changed, done.value),
                Some((all, value)) => (self.vars.joined(&all, &changed), value.join(&done.value)),
            });
        }
        // Code after a branch that leaves may not run.
        self.doubt += some_end as usize;
        match after {
            Some((changed, value)) => {
                self.vars.put(changed);
                Done { dead: !goes_on, ..Done::value(value) }
            }
            None => Done::END,
        }
    }

    /// The same under conditions: what they ask for is not known there, unless their truth is. After a branch that
    /// leaves, what follows is under them, too.
    fn under<'e>(&mut self, conditions: impl IntoIterator<Item = &'e Expr>, ways: Vec<Way<'_, 'a>>) -> Done {
        let (asked, doubt) = (self.ask(conditions), self.doubt);
        let done = self.branches(ways);
        if self.doubt == doubt {
            self.unask(&asked);
        }
        done
    }

    pub(super) fn block(&mut self, block: &'a Block) -> Done {
        self.body(&block.body)
    }

    /// Statements in order, with the value of the last.
    fn body(&mut self, body: &'a [Stmt]) -> Done {
        let depth = self.vars.len();
        let mut done = Done::value(Value::Unit);
        let mut told = false;
        let mut exported = false;
        let (kept, dead) = (self.kept, self.dead);
        for (at, stmt) in body.iter().enumerate() {
            if matches!(stmt.kind, StmtKind::Empty | StmtKind::Fn(_)) {
                continue;
            }
            if done.ends {
                if !told {
                    told = true;
                    self.warn(stmt.first, lints::unreachable(self.world.origin(stmt.first)));
                }
                // Analyzed for its names only.
                self.quiet += 1;
                self.stmt(stmt);
                self.quiet -= 1;
                continue;
            }
            let is_last = at + 1 == body.len();
            let is_value = is_last && (kept || !stmt.ended);
            if let StmtKind::Expr(expr) = &stmt.kind
                && !is_value
                && !exported
                && self.replay == 0
            {
                self.lost(expr);
            }
            self.kept = !matches!(stmt.kind, StmtKind::Expr(_)) || (is_last && kept);
            let found = self.stmt(stmt);
            self.kept = kept;
            if let (true, StmtKind::Let { .. }, Some(var)) = (exported, &stmt.kind, self.vars.last_mut()) {
                var.read = true;
            }
            exported = matches!(stmt.kind, StmtKind::Export);
            self.dead += found.dead as usize;
            let value = if is_last { found.value } else { Value::Unit };
            done = Done { value, ends: found.ends, dead: self.dead > dead };
        }
        self.dead = dead;
        self.leave(depth);
        done
    }

    pub(super) fn stmt(&mut self, stmt: &'a Stmt) -> Done {
        match &stmt.kind {
            StmtKind::Let { name, constant, value } => {
                let given = value.as_ref().map_or(Value::Unit, |value| self.expr(value));
                if let Some(value) = value {
                    self.value_of_change(value, &given, &name.name);
                }
                self.declare(name, given, !constant);
                if let Some(var) = self.vars.last_mut() {
                    var.constant = *constant;
                }
            }
            StmtKind::Unpack { names, pattern, constant, value } => {
                if let Some(value) = value {
                    let given = self.expr(value);
                    self.taken_apart(pattern, &given);
                }
                for name in names {
                    self.declare(name, Value::Unknown, !constant);
                    if let Some(var) = self.vars.last_mut() {
                        var.constant = *constant;
                    }
                }
            }
            StmtKind::Assign { op, focus, target, value } => self.assignment(op, *focus, target, value),
            StmtKind::Expr(expr) => return self.flow(expr),
            StmtKind::Return(value) => {
                let value = value.as_ref().map_or(Value::Unit, |value| self.expr(value));
                self.returns.push(value);
                return Done::END;
            }
            StmtKind::Throw(value) | StmtKind::Break(value) => {
                if let Some(value) = value {
                    self.expr(value);
                }
                return Done::END;
            }
            StmtKind::Continue => return Done::END,
            StmtKind::Import { path, alias } => {
                self.expr(path);
                if let Some(alias) = alias {
                    self.declare(alias, Value::Unknown, false);
                }
            }
            StmtKind::Empty | StmtKind::Fn(_) | StmtKind::Export => {}
        }
        Done::value(Value::Unit)
    }

    fn assignment(&mut self, op: &'a str, focus: u32, target: &'a Expr, value: &'a Expr) {
        let new = self.expr(value);
        self.assigns(op, target);
        if let Kind::Name(name) = &target.kind {
            if op == "=" {
                self.value_of_change(value, &new, name);
                // Not a use of the old value.
                return self.assign(name, new);
            }
            let old = self.read(name).unwrap_or(Value::Unknown);
            let result = match &old {
                Value::Tensor(Some(tensor)) => {
                    self.in_place(op, focus, tensor, &new);
                    old.clone()
                }
                Value::Tensor(None) => old.clone(),
                // What is no array is appended.
                Value::Array(_) if op == "+=" => Value::Array(None),
                _ => self.operator(op.trim_end_matches('='), focus, &old, &new),
            };
            return self.assign(name, result);
        }
        if self.part_of_module(target) || self.part_of_constant(target) {
            return;
        }
        self.may_rebuild(target);
        match &target.kind {
            // The target of an assignment need not exist yet.
            Kind::Property { of, name, .. } => {
                let holder = self.expr(of);
                match (&of.kind, holder) {
                    (Kind::Name(variable), Value::Map(Some(map))) if op == "=" => {
                        let mut map = (*map).clone();
                        map.insert(name.clone(), new);
                        self.assign(variable, Value::Map(Some(Rc::new(map))));
                    }
                    (_, Value::Tensor(_)) if name == "data" => self.relaid(),
                    (_, Value::Layer(layer)) if matches!(*layer, Layer::Stepped(Stepped::Optimizer)) => {
                        let diag = Diag::error(
                            code::UNKNOWN_PROPERTY,
                            format!("an optimizer has no property `{name}` to assign"),
                        );
                        self.report_at(target.focus, diag.help(ASSIGNED), "assigned here, which changes nothing");
                    }
                    // Schedules are modules.
                    (_, Value::Layer(layer)) if matches!(*layer, Layer::Stepped(_)) => self.touch(target),
                    (_, Value::Tensor(tensor)) if name == "requires_grad" && matches!(new, Value::Bool(Some(true))) => {
                        self.wants_gradients(target.focus, tensor.as_ref());
                    }
                    (_, holder @ Value::Tensor(_)) => self.assigned(target.focus, &holder, name),
                    (_, holder)
                        if holder.is_known() && !matches!(holder, Value::Map(_) | Value::Unit | Value::Closure(_)) =>
                    {
                        self.assigned(target.focus, &holder, name);
                    }
                    _ => self.touch(target),
                }
            }
            Kind::Index { of, items, .. } => {
                self.written_to_a_copy(target);
                let holder = self.expr(of);
                let values: Vec<Value> = items.iter().map(|item| self.expr(item)).collect();
                if matches!(holder, Value::Tensor(_)) {
                    let part = self.element(target.focus, &holder, items, &values);
                    self.fits(target.focus, &part, &new);
                }
                self.touch(target);
            }
            _ => {
                self.expr(target);
            }
        }
    }

    /// `net[1] = nn::linear(8, 3)`, `layer.weight = w`, also by another name.
    fn may_rebuild(&mut self, target: &'a Expr) {
        if visit::root(target).is_some_and(|name| self.may_hold_module(name)) {
            self.rebuilt();
        }
    }

    /// Whether a variable may lead to a module of the library.
    fn may_hold_module(&self, name: &str) -> bool {
        match self.held(name) {
            Some(Value::Layer(layer)) => !matches!(*layer, Layer::Stepped(_)),
            Some(value) => matches!(value, Value::Unknown | Value::Array(_) | Value::Map(_)),
            // Declared inside of what changes it.
            None => true,
        }
    }

    /// An expression that may leave its block.
    pub(super) fn flow(&mut self, expr: &'a Expr) -> Done {
        if !self.step() {
            return Done::value(Value::Unknown);
        }
        match &expr.kind {
            Kind::Block(block) => self.block(block),
            Kind::If { condition, then, otherwise } => {
                let truth = guards::truth(&self.condition(condition));
                // The branch is known if a function is analyzed again for these arguments, and in a last iteration.
                if let (Some(truth), true) = (truth, self.replay > 0) {
                    return match (truth, otherwise) {
                        (true, _) => self.block(then),
                        (false, Some(otherwise)) => self.flow(otherwise),
                        (false, None) => Done::value(Value::Unit),
                    };
                }
                let ways = vec![
                    Way::new(truth, move |flow| flow.block(then)),
                    Way::new(truth.map(|truth| !truth), move |flow| match otherwise {
                        Some(otherwise) => flow.flow(otherwise),
                        None => Done::value(Value::Unit),
                    }),
                ];
                self.under(truth.is_none().then_some(&**condition), ways)
            }
            Kind::Switch { value, arms } => {
                let given = self.expr(value);
                self.cases_again(arms);
                let (taken, open, asked) = self.taken((value, &given), arms);
                let way = |(arm, taken): (&'a Arm, _)| Way::new(taken, move |flow| flow.stmt(&arm.body));
                let mut ways: Vec<Way<'_, 'a>> = arms.iter().zip(taken).map(way).collect();
                // Perhaps none of them.
                ways.push(Way::new(Some(open), |_| Done::value(Value::Unknown)));
                self.under(asked, ways)
            }
            Kind::While { condition, body } => {
                let endless = matches!(condition.kind, Kind::Bool(true)) && !has_break(body);
                self.repeat(body, |flow| Some((flow.condition(condition), &**condition)), endless)
            }
            Kind::Loop { body, condition } => {
                let endless = condition.is_none() && !has_break(body);
                self.repeat(
                    body,
                    |flow| {
                        if let Some(condition) = condition {
                            flow.condition(condition);
                        }
                        None
                    },
                    endless,
                )
            }
            Kind::For { names, values, body } => {
                // `for wrong in [|| f(x)] { try { wrong.call() } .. }`
                let catches = visit::catches(&body.body);
                self.quiet += catches as usize;
                let over = self.expr(values);
                self.quiet -= catches as usize;
                if matches!(over, Value::Unit | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Closure(_)) {
                    self.report(values.first, lints::no_iterable(&over, self.world.origin(values.focus)));
                }
                let depth = self.vars.len();
                let item = if names.len() == 1 { over.item() } else { Value::Unknown };
                self.forget(&Changes::of(&body.body));
                for name in names {
                    self.declare(name, item.clone(), false);
                }
                let is_empty = matches!(over, Value::Range(Some((start, end))) if start >= end)
                    || matches!(&over, Value::Array(Some(items)) if items.is_empty());
                self.dead += is_empty as usize;
                self.repeat(body, |_| None, false);
                self.dead -= is_empty as usize;
                self.leave(depth);
                self.last_iteration(&over, names, body);
                Done::value(Value::Unit)
            }
            Kind::Try { body, name, caught } => self.attempt(body, name.as_ref(), caught),
            Kind::Call { space: None, name, .. } if name == "exit" && !self.is_users(name) => {
                self.expr(expr);
                Done::END
            }
            _ => Done::value(self.expr(expr)),
        }
    }

    /// A loop. Its head tells on which condition the body runs, with the value of that.
    pub(super) fn repeat(
        &mut self,
        body: &'a Block,
        head: impl FnOnce(&mut Self) -> Option<(Value, &'a Expr)>,
        endless: bool,
    ) -> Done {
        let changes = Changes::of(&body.body);
        self.forget(&changes);
        let head = head(self);
        let truth = head.as_ref().map_or(Some(true), |(value, _)| guards::truth(value));
        let asked = self.ask(head.map(|(_, condition)| condition).filter(|_| truth.is_none()));
        self.doubt += 1;
        self.dead += (truth == Some(false)) as usize;
        let kept = std::mem::take(&mut self.kept);
        let done = self.block(body);
        self.kept = kept;
        self.dead -= (truth == Some(false)) as usize;
        self.doubt -= 1;
        self.unask(&asked);
        // A `return` or `throw` inside.
        self.doubt += (done.ends || leaves(body)) as usize;
        self.forget(&changes);
        Done { ends: endless, ..Done::value(Value::Unknown) }
    }

    fn attempt(&mut self, body: &'a Block, name: Option<&'a Param>, caught: &'a Block) -> Done {
        let changes = Changes::of(&body.body);
        self.branches(vec![
            Way::new(None, move |flow| {
                flow.quiet += 1;
                let done = flow.block(body);
                flow.quiet -= 1;
                done
            }),
            Way::new(None, move |flow| {
                flow.forget(&changes);
                let depth = flow.vars.len();
                if let Some(name) = name {
                    flow.declare(name, Value::Unknown, false);
                }
                let done = flow.block(caught);
                flow.leave(depth);
                done
            }),
        ])
    }

    /// The condition of a branch or loop.
    pub(super) fn condition(&mut self, expr: &'a Expr) -> Value {
        let value = self.expr(expr);
        self.truth(expr, &value);
        value
    }
}

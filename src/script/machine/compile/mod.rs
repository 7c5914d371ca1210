//! From Rhai's tree to ours: names become slots, operators and calls are bound. What has no node of its own is a fragment,
//! which Rhai evaluates; what stands behind a fragment that declares variables is compiled again when they are known.

mod ahead;
mod chain_tree;
pub mod entries;
mod last_use;
mod lending;
mod moved_parts;
pub mod names;
mod pairs;
mod scope;
mod unpack;
pub mod walk;

use super::bytecode;
use super::fragment::operand_name;
use super::input_code;
use super::native::Site;
use super::numeric::Numeric;
use super::places::exchange::{is_path, is_quiet, only_asks};
use super::qualified::Qualified;
use super::quick::{self, Luck};
use super::quick_store;
use super::rest;
use super::tree::*;
use super::unit::{self, CAPTURED, MOST_SLOTS, Unit};
use super::value::Value;
use crate::base::span::Site as Place;
use crate::script::source::hooks::BLOCK_WORDS;
use crate::script::source::tree::CallForm;
use crate::script::values::raise::site_of;
use lending::Changed;
use names::{Called, Met};
use rhai::{
    ASTFlags, CustomExpr, Expr, FlowControl, FnCallExpr, Ident, ImmutableString, Position, ScriptFuncDef, Stmt,
    StmtBlock,
};
use scope::Scope;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::sync::{OnceLock, Weak};

pub struct Compiler {
    pub unit: Weak<Unit>,
    /// Variables in the order of Rhai's scope, so that its distances from the end are right.
    pub visible: Scope,
    /// Rhai must see all variables of the session.
    needs_all: Cell<bool>,
    next: usize,
    most: usize,
    /// Nodes so far: what a round of a loop costs.
    nodes: u32,
    has_loops: bool,
    /// How many loops are around.
    depth: u8,
    /// Variables that may be changed.
    pub changed: Changed,
    /// How many blocks are around behind which a variable may be read after a `return`: those of `try` and
    /// `with_device`.
    tries: usize,
    /// What was met, if anybody asks; and how many parts are around in which there may be more variables.
    pub met: Option<RefCell<Met>>,
    open: usize,
    /// The function that is compiled, and how many parameters it has.
    running: Option<(ImmutableString, usize)>,
}

/// The body of a function; `None` where it is too large.
pub fn function(def: &ScriptFuncDef, statements: &[Stmt], unit: Weak<Unit>) -> Option<Code> {
    let mut compiler = Compiler::for_function(def, unit);
    let mut body = compiler.statements(statements)?;
    lending::move_out(&mut body, def.params.len(), &mut |slot| compiler.changed.note(slot));
    let lends = compiler.changed.lends(def.params.len());
    let at = statements.first().map_or(Position::NONE, Stmt::position);
    Some(bytecode::lower(Code { body: Body::Tree(body), slots: compiler.most, lends, at }))
}

/// A variable of the session: its name, and whether it is a constant.
pub type Outer = (ImmutableString, bool);

/// Why a statement of the top level has no code.
pub enum Left {
    /// It is too large.
    TooLarge,
    /// Parts of it are left to Rhai, which must see all variables of the session there.
    NeedsAll,
}

/// A statement of the top level. `variables` are those of the session that it names, or all of them.
pub fn statement(statement: &Stmt, variables: &[Outer], are_all: bool, unit: Weak<Unit>) -> Result<Code, Left> {
    let mut compiler = Compiler::new(unit);
    for (name, is_constant) in variables {
        compiler.declare(name.clone(), *is_constant).ok_or(Left::TooLarge)?;
    }
    let body = compiler.statement(statement).ok_or(Left::TooLarge)?;
    match !are_all && compiler.needs_all.get() {
        true => Err(Left::NeedsAll),
        false => {
            let at = statement.position();
            let code = Code { body: Body::Tree(body), slots: compiler.most, lends: 0, at };
            Ok(if compiler.has_loops { bytecode::lower(code) } else { code })
        }
    }
}

/// An operand of an expression that Rhai evaluates: so many from the end of its scope.
pub fn operand(from_end: usize, at: Position) -> Expr {
    let name = operand_name(from_end);
    Expr::Variable(Box::new((NonZeroUsize::new(from_end), name, Default::default(), 0)), None, at)
}

/// A `switch` whose value is the number of the arm. Its operands are the value, then for each arm with a condition
/// whether it counts.
fn numbered(switch: &Stmt) -> Stmt {
    let mut numbered = switch.clone();
    let at = numbered.position();
    if let Stmt::Switch(switch, _) = &mut numbered {
        let arms = &mut switch.1.expressions;
        let is_guarded = |arm: &rhai::BinaryExpr| !matches!(arm.lhs, Expr::BoolConstant(true, ..));
        let mut guards = arms.iter().filter(|arm| is_guarded(arm)).count();
        switch.0 = operand(guards + 1, at);
        for (number, arm) in arms.iter_mut().enumerate() {
            if is_guarded(arm) {
                arm.lhs = operand(guards, at);
                guards -= 1;
            }
            arm.rhs = Expr::IntegerConstant(number as i64, at);
        }
    }
    numbered
}

/// A statement as an expression.
fn as_expr(statement: Stmt) -> Expr {
    let at = statement.position();
    Expr::Stmt(Box::new(StmtBlock::new([statement], at, at)))
}

impl Compiler {
    pub fn for_function(def: &ScriptFuncDef, unit: Weak<Unit>) -> Compiler {
        let mut compiler = Compiler::new(unit);
        compiler.running = Some((def.name.clone(), def.params.len()));
        for parameter in &def.params {
            // Rhai's parser lets no function have so many.
            let _ = compiler.declare(parameter.clone(), false);
        }
        compiler
    }

    pub fn new(unit: Weak<Unit>) -> Compiler {
        Compiler {
            unit,
            visible: Scope::default(),
            needs_all: Cell::new(false),
            next: 0,
            most: 0,
            nodes: 0,
            has_loops: false,
            depth: 0,
            changed: Changed::default(),
            tries: 0,
            met: None,
            open: 0,
            running: None,
        }
    }

    fn declare(&mut self, name: ImmutableString, is_constant: bool) -> Option<Slot> {
        if self.next >= MOST_SLOTS {
            return None;
        }
        let slot = self.next as Slot;
        self.next += 1;
        self.most = self.most.max(self.next);
        self.visible.push(Visible { name, slot, is_constant });
        Some(slot)
    }

    /// Where a variable is among those that are visible: the latest of its name. Rhai's distances count none that `eval`
    /// declares.
    fn find(&self, name: &str) -> Option<usize> {
        self.visible.place(name)
    }

    /// The variable that an expression names; none where it is a name of another kind.
    pub fn variable(&self, expr: &Expr) -> Option<&Visible> {
        let Expr::Variable(variable, ..) = expr else { return None };
        if !variable.2.path.is_empty() {
            return None;
        }
        self.find(&variable.1).map(|at| self.visible.at(at))
    }

    fn note_unknown(&self, at: Position) {
        if let (Some(met), 0) = (&self.met, self.open) {
            met.borrow_mut().variables.push(at);
        }
    }

    /// A call of no function of this text.
    pub fn note_call(&self, name: &ImmutableString, form: CallForm, at: Position) {
        if let Some(met) = &self.met {
            met.borrow_mut().calls.push(Called { at, form, name: name.clone() });
        }
    }

    fn fragment(&self, expr: Expr) -> Fragment {
        self.needs_all.set(true);
        self.changed.note_all();
        Fragment { expr, variables: self.visible.all().into(), declares: false }
    }

    fn left_to_rhai(&self, statement: &Stmt) -> Option<Node> {
        Some(Node::Fragment(Box::new(self.fragment(as_expr(statement.clone())))))
    }

    /// Statements with a scope of their own.
    pub fn statements(&mut self, statements: &[Stmt]) -> Option<Node> {
        let (visible, first) = (self.visible.len(), self.next);
        let evaluates = statements.iter().any(rest::may_declare);
        let nodes = self.in_order(statements);
        let declares =
            first as Slot..self.visible.all()[visible..].iter().map(|v| v.slot + 1).max().unwrap_or(first as Slot);
        self.visible.truncate(visible);
        self.next = first;
        let mut nodes = unpack::folded(nodes?);
        let imports = statements.iter().any(|statement| matches!(statement, Stmt::Import(..)));
        if nodes.len() == 1 && declares.is_empty() && !imports && !evaluates {
            return nodes.pop();
        }
        let block = Block { statements: nodes.into(), declares, imports };
        Some(if evaluates { Node::Evaluating(Box::new(block)) } else { Node::Block(Box::new(block)) })
    }

    pub fn in_order(&mut self, statements: &[Stmt]) -> Option<Vec<Node>> {
        let mut nodes = Vec::with_capacity(statements.len());
        let first = self.visible.len();
        let block = ahead::Block::of(statements);
        for (at, statement) in statements.iter().enumerate() {
            let mut node = self.statement(statement)?;
            let behind = &statements[at + 1..];
            let is_own =
                |slot, name: &str| self.find(name).is_some_and(|at| at >= first && self.visible.at(at).slot == slot);
            last_use::move_last(&mut node, (&block, at), statement, &is_own);
            if let Node::Let(_, value) = &mut node {
                self.move_dead(value, (&block, at));
            }
            nodes.push(node);
            if rest::may_declare(statement) && !behind.is_empty() {
                nodes.push(self.rest(behind, rest::own_name(statement))?);
                break;
            }
        }
        Some(nodes)
    }

    /// Whether nobody sees the variables after an error.
    fn ends_with_errors(&self) -> bool {
        let is_last = || self.unit.upgrade().is_some_and(|unit| !unit.hooks.keeps_variables());
        self.tries == 0 && (self.running.is_some() || is_last())
    }

    /// Moves the variables into a call that what follows gives another value.
    fn move_dead(&self, value: &mut Node, (block, at): (&ahead::Block, usize)) {
        if !self.ends_with_errors() {
            return;
        }
        lending::move_to_call(value, &|slot| {
            self.visible.of_slot(slot).is_some_and(|visible| {
                let is_latest = self.find(&visible.name).is_some_and(|at| self.visible.at(at).slot == slot);
                is_latest && !visible.is_constant && block.is_overwritten(at, &visible.name)
            })
        });
    }

    /// What stands behind a statement that may declare variables when it runs.
    fn rest(&mut self, statements: &[Stmt], own: Option<&ImmutableString>) -> Option<Node> {
        let (visible, next) = (self.visible.all().to_vec(), self.next);
        self.open += 1;
        let plain = self.statements(statements);
        self.open -= 1;
        let plain = plain?;
        Some(Node::Rest(Box::new(Rest {
            plain,
            statements: statements.into(),
            visible,
            own: own.cloned(),
            next,
            unit: self.unit.clone(),
            running: self.running.clone(),
            known: Default::default(),
        })))
    }

    /// The code of a rest among variables that are known by now.
    pub fn among(rest: &Rest, declared: &[Outer]) -> Option<Code> {
        let mut compiler = Compiler::new(rest.unit.clone());
        compiler.running.clone_from(&rest.running);
        compiler.visible = Scope::of(&rest.visible);
        (compiler.next, compiler.most) = (rest.next, rest.next);
        // A `return` may lead to what reads a variable of the frame around it.
        compiler.tries = 1;
        for (name, is_constant) in declared {
            compiler.declare(name.clone(), *is_constant)?;
            if rest.own.as_ref() == Some(name) {
                compiler.visible.truncate(compiler.visible.len() - 1);
            }
        }
        let body = compiler.statements(&rest.statements)?;
        let at = rest.statements.first().map_or(Position::NONE, Stmt::position);
        Some(Code { body: Body::Tree(body), slots: compiler.most, lends: 0, at })
    }

    pub fn statement(&mut self, statement: &Stmt) -> Option<Node> {
        self.nodes += 1;
        Some(match statement {
            Stmt::Noop(_) => Node::Literal(Value::Unit),
            Stmt::Expr(expr) => self.expr(expr)?,
            Stmt::Block(block) => self.statements(block.statements())?,
            Stmt::FnCall(call, at) => self.call(call, *at)?,
            Stmt::Assignment(assignment) => return self.assignment(assignment),
            Stmt::Var(declared, flags, _) => {
                if flags.contains(ASTFlags::EXPORTED) {
                    return None;
                }
                let (Ident { name, .. }, expr, reused) = &**declared;
                let value = Box::new(self.expr(expr)?);
                let value = self.counted(value, declared.0.pos)?;
                let is_constant = flags.contains(ASTFlags::CONSTANT);
                let slot = match reused.and_then(|_| self.find(name)) {
                    Some(at) => {
                        self.visible.make_constant(at, is_constant);
                        let slot = self.visible.at(at).slot;
                        self.changed.note(slot);
                        slot
                    }
                    None => self.declare(name.clone(), is_constant)?,
                };
                if is_constant { Node::LetConstant(slot, value) } else { Node::Let(slot, value) }
            }
            Stmt::Import(import, _) => {
                let path = self.expr(&import.0)?;
                let mut of_operand = statement.clone();
                if let Stmt::Import(import, _) = &mut of_operand {
                    import.0 = operand(1, import.0.position());
                }
                Node::Import(Box::new((path, Operands { expr: as_expr(of_operand) })))
            }
            Stmt::If(flow, _) => {
                let FlowControl { expr, body, branch } = &**flow;
                let condition = self.expr(expr)?;
                let yes = self.statements(body.statements())?;
                let no = self.statements(branch.statements())?;
                Node::If(Box::new(If { condition, at: expr.position(), yes, no }))
            }
            Stmt::Switch(..) => return self.switch(statement),
            Stmt::While(flow, at) => {
                let endless = matches!(flow.expr, Expr::Unit(..) | Expr::BoolConstant(true, ..));
                self.repeat(flow, endless, false, false, *at)?
            }
            Stmt::Do(flow, flags, at) => self.repeat(flow, false, true, flags.contains(ASTFlags::NEGATED), *at)?,
            Stmt::For(parts, at) => {
                self.has_loops = true;
                let (Ident { name, .. }, counter, flow) = &**parts;
                let values = self.expr(&flow.expr)?;
                let pairs = pairs::of(self, &flow.expr, &values);
                let (visible, first, before) = (self.visible.len(), self.next, self.nodes);
                let counter = match counter {
                    Some(counter) => Some(self.declare(counter.name.clone(), false)?),
                    None => None,
                };
                let variable = self.declare(name.clone(), false)?;
                let begun = self.changed.begin(variable);
                let depth = self.depth;
                self.depth = depth.saturating_add(1);
                let body = self.statements(flow.body.statements());
                self.depth = depth;
                let is_read = self.changed.end(variable, begun);
                self.visible.truncate(visible);
                self.next = first;
                let lent = match (&values, &flow.expr) {
                    (Node::Local(slot), Expr::Variable(over, ..)) if is_read => {
                        (!lending::mentions(flow.body.statements(), &over.1)).then_some(*slot)
                    }
                    _ => None,
                };
                Node::For(Box::new(For {
                    variable,
                    lent,
                    counter,
                    values,
                    pairs,
                    values_at: flow.expr.start_position(),
                    body: body?,
                    is_empty: flow.body.is_empty(),
                    at: *at,
                    weight: self.nodes - before + 1,
                    depth,
                }))
            }
            Stmt::BreakLoop(value, flags, _) => {
                let value = match value {
                    Some(value) => Some(Box::new(self.expr(value)?)),
                    None => None,
                };
                if flags.contains(ASTFlags::BREAK) { Node::Break(value) } else { Node::Continue }
            }
            Stmt::Return(value, flags, at) => {
                let mut value = match value {
                    Some(value) => Some(self.expr(value)?),
                    None => None,
                };
                let returns = !flags.contains(ASTFlags::BREAK);
                if let Some(value) = value.as_mut().filter(|_| returns && self.running.is_some() && self.tries == 0) {
                    let parameters = self.running.as_ref().map_or(0, |(_, count)| *count);
                    lending::move_out(value, parameters, &mut |slot| self.changed.note(slot));
                }
                if !returns {
                    Node::Throw(Box::new((value.unwrap_or(Node::Literal(Value::Unit)), *at)))
                } else {
                    Node::Return(value.map(Box::new))
                }
            }
            Stmt::TryCatch(flow, _) => {
                self.tries += 1;
                let body = self.statements(flow.body.statements());
                self.tries -= 1;
                let body = body?;
                let (visible, first) = (self.visible.len(), self.next);
                let variable = match &flow.expr {
                    Expr::Variable(variable, ..) => Some(self.declare(variable.1.clone(), false)?),
                    _ => None,
                };
                let handler = self.statements(flow.branch.statements());
                self.visible.truncate(visible);
                self.next = first;
                Node::Try(Box::new(Try { body, variable, handler: handler? }))
            }
            Stmt::Share(shared) => {
                if !shared.iter().all(|(name, _)| self.find(&name.name).is_some()) {
                    return self.left_to_rhai(statement);
                }
                let slots: Option<Vec<(Slot, bool)>> = shared
                    .iter()
                    .map(|(name, _)| {
                        let at = self.find(&name.name)?;
                        let visible = self.visible.at(at);
                        self.changed.note(visible.slot);
                        Some((visible.slot, visible.is_constant))
                    })
                    .collect();
                Node::Share(slots?.into())
            }
            _ => return None,
        })
    }

    /// A value for a variable, which may be one too many where the session limits them.
    fn counted(&self, value: Box<Node>, at: Position) -> Option<Box<Node>> {
        let is_one_too_many = self.visible.len() >= self.unit.upgrade()?.most_variables;
        Some(if is_one_too_many { Box::new(Node::OneTooMany(at)) } else { value })
    }

    fn repeat(&mut self, flow: &FlowControl, endless: bool, is_do: bool, ends_at: bool, at: Position) -> Option<Node> {
        let before = self.nodes;
        self.has_loops = true;
        let condition = match endless {
            true => None,
            false => Some((self.expr(&flow.expr)?, flow.expr.position())),
        };
        let depth = self.depth;
        self.depth = depth.saturating_add(1);
        let body = self.statements(flow.body.statements());
        self.depth = depth;
        let (body, weight) = (body?, self.nodes - before + 1);
        Some(Node::While(Box::new(While { condition, body, is_do, ends_at, at, weight, depth })))
    }

    fn switch(&mut self, statement: &Stmt) -> Option<Node> {
        let Stmt::Switch(switch, _) = statement else { return None };
        let (value, cases) = &**switch;
        let (value, case) = match self.expr(value)? {
            Node::Native(mut native) if &*native.name == "__case" && native.arguments.len() == 1 => {
                let argument = std::mem::take(&mut native.arguments).into_iter().next();
                (argument.unwrap_or(Node::Literal(Value::Unit)), Some(*native))
            }
            value => (value, None),
        };
        let mut arms = Vec::with_capacity(cases.expressions.len());
        for arm in &cases.expressions {
            let guard = match &arm.lhs {
                Expr::BoolConstant(true, ..) => None,
                guard => Some((self.expr(guard)?, guard.position())),
            };
            arms.push(Arm { guard, body: self.expr(&arm.rhs)? });
        }
        let operands = Operands { expr: as_expr(numbered(statement)) };
        let default = cases.def_case.and_then(|arm| u32::try_from(arm).ok());
        let (arms, known, recent) = (arms.into(), Default::default(), Default::default());
        Some(Node::Switch(Box::new(Switch {
            value,
            case,
            arms,
            operands,
            default,
            targets: Box::default(),
            known,
            recent,
        })))
    }

    fn assignment(&mut self, assignment: &(rhai::OpAssignment, rhai::BinaryExpr)) -> Option<Node> {
        let (info, pair) = assignment;
        let op = info.get_op_assignment_info().map(|(.., op)| Op::of(op));
        if matches!(pair.lhs, Expr::Dot(..) | Expr::Index(..)) {
            let value_at = pair.rhs.start_position();
            let (mut value, is_open) = self.in_sight(&pair.rhs)?;
            let chain = chain_tree::chain(self, &pair.lhs)?;
            if op.is_none() && !info.is_op_assignment() && !is_open && self.ends_with_errors() {
                moved_parts::move_part_to_call(&mut value, &chain);
            }
            if let Root::Local(slot) = chain.root {
                self.changed.note(slot);
            }
            let (info, luck, rests) = (info.clone(), Luck::default(), OnceLock::new());
            let mut assign = AssignChain { chain, op, info, value, value_at, is_quick: false, luck, rests };
            assign.is_quick = quick_store::may_store(&assign);
            return Some(Node::AssignChain(Box::new(assign)));
        }
        let at = pair.lhs.position();
        let is_this = matches!(pair.lhs, Expr::ThisPtr(..));
        let target = self.variable(&pair.lhs).cloned();
        let (mut value, is_open) = self.in_sight(&pair.rhs)?;
        if let Some(target) = target.as_ref().filter(|target| op.is_none() && !target.is_constant) {
            let is_alone = || !is_open && lending::count_in(&pair.rhs, &target.name) == 1;
            lending::move_into(&mut value, target.slot, is_alone);
            if self.ends_with_errors() {
                lending::move_to_call(&mut value, &|slot| slot == target.slot);
            }
        }
        if target.is_none() && !is_this {
            // Rhai says that there is no such variable.
            let mut lhs = pair.lhs.clone();
            if let Expr::Variable(variable, index, at) = &mut lhs {
                if variable.2.path.is_empty() {
                    self.note_unknown(*at);
                }
                (variable.0, *index) = (None, None);
            }
            let of_operand = rhai::BinaryExpr { lhs, rhs: operand(1, pair.rhs.start_position()) };
            let expr = as_expr(Stmt::Assignment(Box::new((info.clone(), of_operand))));
            return Some(Node::Operated(Box::new((Operands { expr }, [value].into()))));
        }
        let of_operands = rhai::BinaryExpr { lhs: operand(2, at), rhs: operand(1, pair.rhs.start_position()) };
        let expr = as_expr(Stmt::Assignment(Box::new((info.clone(), of_operands))));
        if let Some(target) = &target {
            self.changed.note(target.slot);
        }
        let (slot, name, is_constant) = match target {
            Some(target) => (target.slot, target.name, target.is_constant),
            None => (0, "this".into(), false),
        };
        let is_lost = !is_this && self.unit.upgrade()?.hooks.loses(at);
        let operands = Operands { expr };
        let (is_quick, luck) = (quick_store::may_assign(&value, is_constant), Luck::default());
        let is_part_of_itself = op.is_none()
            && !is_this
            && matches!(&value, Node::Chain(chain) if is_path(chain) && matches!(chain.root, Root::Local(root) if root == slot));
        let assign =
            Assign { slot, op, value, operands, name, is_constant, is_lost, is_part_of_itself, is_quick, luck, at };
        let assign = Box::new(assign);
        Some(if is_this { Node::AssignThis(assign) } else { Node::Assign(assign) })
    }

    /// A node, and whether a part of it is evaluated by Rhai, which may name any variable.
    fn in_sight(&mut self, expr: &Expr) -> Option<(Node, bool)> {
        let needs_all = self.needs_all.replace(false);
        let value = self.expr(expr);
        let is_open = self.needs_all.replace(needs_all | self.needs_all.get());
        value.map(|value| (value, is_open))
    }

    pub fn expr(&mut self, expr: &Expr) -> Option<Node> {
        self.nodes += 1;
        Some(match expr {
            Expr::DynamicConstant(value, _) => Node::Literal(Value::unboxed((**value).clone())),
            Expr::BoolConstant(value, _) => Node::Literal(Value::Bool(*value)),
            Expr::IntegerConstant(value, _) => Node::Literal(Value::Int(*value)),
            Expr::FloatConstant(value, _) => Node::Literal(Value::Float(**value)),
            Expr::CharConstant(value, _) => Node::Literal(Value::Other((*value).into())),
            Expr::StringConstant(value, _) => Node::Literal(Value::Other(value.clone().into())),
            Expr::Unit(_) => Node::Literal(Value::Unit),
            Expr::InterpolatedString(parts, _) => {
                let nodes: Option<Vec<Node>> = parts.iter().map(|part| self.expr(part)).collect();
                let mut of_operands = expr.clone();
                if let Expr::InterpolatedString(parts, _) = &mut of_operands {
                    let count = parts.len();
                    for (at, part) in parts.iter_mut().enumerate() {
                        *part = operand(count - at, part.position());
                    }
                }
                Node::Text(Box::new(Text { parts: nodes?.into(), operands: Operands { expr: of_operands } }))
            }
            Expr::Array(items, _) => {
                let items: Option<Vec<Node>> = items.iter().map(|item| self.expr(item)).collect();
                Node::Array(items?.into())
            }
            Expr::Map(map, _) => {
                let entries: Option<Vec<_>> =
                    map.0.iter().map(|(name, value)| Some((name.name.clone(), self.expr(value)?))).collect();
                Node::Map(Box::new(MapLiteral { template: map.1.clone(), entries: entries?.into() }))
            }
            Expr::Variable(..) => return self.name(expr),
            Expr::ThisPtr(at) => Node::This(*at),
            Expr::Stmt(block) => self.statements(block.statements())?,
            Expr::FnCall(call, at) => self.call(call, *at)?,
            Expr::Dot(..) | Expr::Index(..) => Node::Chain(Box::new(chain_tree::chain(self, expr)?)),
            Expr::And(parts, _) => Node::And(self.conditions(parts)?),
            Expr::Or(parts, _) => Node::Or(self.conditions(parts)?),
            Expr::Coalesce(parts, _) => {
                let parts: Option<Vec<Node>> = parts.iter().map(|part| self.expr(part)).collect();
                Node::Coalesce(parts?.into())
            }
            Expr::Custom(custom, _) => return self.custom(custom, expr),
            _ => return None,
        })
    }

    fn conditions(&mut self, parts: &[Expr]) -> Option<Box<[(Node, Position)]>> {
        let parts: Option<Vec<_>> = parts.iter().map(|part| Some((self.expr(part)?, part.position()))).collect();
        Some(parts?.into())
    }

    /// A variable, a constant of a module, or the name of a function.
    fn name(&self, expr: &Expr) -> Option<Node> {
        let Expr::Variable(variable, ..) = expr else { return None };
        if let Some(visible) = self.variable(expr) {
            return Some(Node::Local(visible.slot));
        }
        if variable.2.path.is_empty() {
            self.note_unknown(expr.position());
        }
        // What is no variable needs none, and is looked for by its name.
        let mut by_name = variable.clone();
        by_name.0 = None;
        by_name.2.index = None;
        let expr = Expr::Variable(by_name, None, expr.position());
        let fragment = Fragment { expr, variables: Box::default(), declares: false };
        let path = &variable.2.path;
        Some(match path.first().map(|first| first.as_str()) {
            Some("global") if path.len() == 1 => Node::Global(Box::new(Global { name: variable.1.clone(), fragment })),
            Some(crate::script::source::scope::CONSTANTS) if path.len() == 1 => {
                Node::Constant(Box::new(Constant { value: OnceLock::new(), fragment }))
            }
            _ => Node::Fragment(Box::new(fragment)),
        })
    }

    fn call(&mut self, call: &FnCallExpr, at: Position) -> Option<Node> {
        if call.capture_parent_scope || matches!(&*call.name, "is_def_var" | "is_shared") {
            let mut call = call.clone();
            for argument in call.args.iter_mut() {
                input_code::enclose(argument, &self.unit);
            }
            let captures = call.capture_parent_scope;
            let mut fragment = self.fragment(Expr::FnCall(Box::new(call), at));
            if captures {
                let mark = Visible { name: CAPTURED.into(), slot: 0, is_constant: true };
                fragment.variables = fragment.variables.iter().cloned().chain([mark]).collect();
            }
            return Some(Node::Fragment(Box::new(fragment)));
        }
        if call.op_token.is_some() {
            return self.operator(call, at);
        }
        if let Some(parts) = entries::parts(call) {
            return self.entries(parts);
        }
        if &*call.name == "curry" && call.args.len() > 1 {
            if let Expr::DynamicConstant(pointer, _) = &call.args[0]
                && let Some(pointer) = pointer.read_lock::<rhai::FnPtr>()
                && let Some(function) = unit::closure(&*self.unit.upgrade()?.hooks, pointer.fn_name())
            {
                function.takes_along(call.args.len() - 1);
            }
            let closure = self.expr(&call.args[0])?;
            let captured: Option<Vec<Node>> = call.args[1..].iter().map(|arg| self.expr(arg)).collect();
            return Some(Node::Curry(Box::new((closure, captured?.into()))));
        }
        if let ("__me", [Expr::IntegerConstant(parameters, _)], Some((name, count))) =
            (&*call.name, &*call.args, &self.running)
        {
            let function = self.unit.upgrade()?.find(name, *count)?;
            let taken = count.saturating_sub(*parameters as usize);
            return Some(Node::Running(std::sync::Arc::downgrade(&function), taken));
        }
        if &*call.name == "__lend" && call.args.is_empty() {
            return Some(Node::Lend(at));
        }
        if &*call.name == "__truth" && call.args.len() == 1 {
            let inner = self.expr(&call.args[0])?;
            return Some(Node::Truth(Box::new((inner, at))));
        }
        let arguments: Option<Vec<Node>> = call.args.iter().map(|arg| self.expr(arg)).collect();
        let arguments: Box<[Node]> = arguments?.into();
        let first = self.first(call.args.first())?;
        let is_qualified = !call.namespace.path.is_empty();
        let own = if is_qualified { None } else { self.unit.upgrade()?.find(&call.name, call.args.len()) };
        if let Some(function) = own {
            let first_is_variable = matches!(call.args.first(), Some(Expr::Variable(..) | Expr::ThisPtr(..)));
            let operands = Operands { expr: of_operands(call, at) };
            let function = std::sync::Arc::downgrade(&function);
            let lendable = self.lendable(call, &arguments);
            let is_simple = arguments.iter().all(quick::calls_nothing);
            let call = Call { function, arguments, first_is_variable, lendable, is_simple, operands, at };
            return Some(Node::Call(Box::new(call)));
        }
        self.note_call(&call.name, if is_qualified { CallForm::Qualified } else { CallForm::Plain }, at);
        if let First::Variable(slot) = first
            && (is_qualified || !lending::only_reads(&call.name))
        {
            self.changed.note(slot);
        }
        Some(Node::Native(Box::new(self.native(call, arguments, first, at))))
    }

    /// Arguments that are variables which no other argument names. The first one is read when the others are known, which may
    /// ask it something.
    fn lendable(&self, call: &FnCallExpr, arguments: &[Node]) -> SmallVec<[(usize, Slot); 2]> {
        let alone = |at: usize, expr: &Expr| {
            let Expr::Variable(variable, ..) = expr else { return false };
            let others = call.args.iter().enumerate().filter(|(other, _)| *other != at);
            others.into_iter().all(|(_, other)| {
                !lending::mentions_in(other, &variable.1) || (at == 0 && lending::only_asked_in(other, &variable.1))
            })
        };
        let slots = arguments.iter().zip(&call.args).enumerate().filter_map(|(at, (node, expr))| match node {
            Node::Local(slot) if alone(at, expr) => Some((at, *slot)),
            _ => None,
        });
        slots.collect()
    }

    /// `__either(f,f(x))`
    fn either(&mut self, custom: &CustomExpr) -> Option<Node> {
        let Expr::FnCall(call, at) = &custom.inputs[1] else { return self.expr(&custom.inputs[1]) };
        let holder = match self.variable(&custom.inputs[0]).map(|visible| visible.slot) {
            Some(slot) => {
                self.changed.note(slot);
                Node::Local(slot)
            }
            // A constant of the text, in a function.
            None => self.expr(&custom.inputs[0]).filter(|node| matches!(node, Node::Global(_)))?,
        };
        let arguments: Option<Vec<Node>> = call.args.iter().map(|argument| self.expr(argument)).collect();
        let own = self.unit.upgrade()?.find(&call.name, call.args.len());
        Some(Node::Either(Box::new(Either {
            holder,
            arguments: arguments?.into(),
            function: own.as_ref().map_or(Weak::new(), std::sync::Arc::downgrade),
            native: self.native(call, Box::default(), First::Value, *at),
            at: *at,
        })))
    }

    /// How the first argument of a native function is given: a variable by reference.
    fn first(&self, argument: Option<&Expr>) -> Option<First> {
        Some(match argument {
            Some(Expr::ThisPtr(..)) => First::This,
            Some(argument) => match self.variable(argument) {
                Some(visible) if !visible.is_constant => First::Variable(visible.slot),
                _ => First::Value,
            },
            None => First::Value,
        })
    }

    fn native(&self, call: &FnCallExpr, arguments: Box<[Node]>, first: First, at: Position) -> Native {
        let operands = Operands { expr: of_operands(call, at) };
        let (site, qualified) = (Site::default(), Qualified::of(call));
        let asks = only_asks(&call.name) && arguments.iter().skip(1).all(is_quiet);
        let count = arguments.len();
        let is_own = || self.unit.upgrade().is_some_and(|unit| unit.find(&call.name, count).is_some());
        let is_library = || qualified.is_none() && self.is_library(&call.name);
        let plain = match (&*call.name, count) {
            ("contains", 2) if !is_own() => Some(Plain::Contains),
            ("chr", 1) if !is_own() && is_library() => Some(Plain::Chr),
            _ => None,
        };
        let numeric = if is_library() { Numeric::of(&call.name, count) } else { None };
        let (name, luck) = (call.name.clone(), Luck::default());
        Native { name, arguments, first, operands, site, asks, plain, numeric, luck, qualified, at }
    }

    /// Whether no function of the host program has this name.
    pub fn is_library(&self, name: &str) -> bool {
        self.unit.upgrade().is_some_and(|unit| !unit.hooks.has_function(name))
    }

    fn operator(&mut self, call: &FnCallExpr, at: Position) -> Option<Node> {
        let native = self.native(call, Box::default(), First::Value, at);
        Some(match &*call.args {
            [operand] if matches!(&*call.name, "-" | "!") => {
                let is_not = &*call.name == "!";
                Node::Unary(Box::new(Unary { is_not, operand: self.expr(operand)?, native }))
            }
            [_, _] if &*call.name == "contains" => {
                let arguments: Option<Vec<Node>> = call.args.iter().map(|arg| self.expr(arg)).collect();
                let first = self.first(call.args.first())?;
                Node::Native(Box::new(self.native(call, arguments?.into(), first, at)))
            }
            [left, right] => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let op = Op::of(&call.name);
                let is_quick = op.computes() && quick::is_quick(&left) && quick::is_quick(&right);
                Node::Binary(Box::new(Binary { op, left, right, native, is_quick, luck: Luck::default() }))
            }
            all => {
                let arguments: Option<Vec<Node>> = all.iter().map(|arg| self.expr(arg)).collect();
                Node::Native(Box::new(Native { arguments: arguments?.into(), ..native }))
            }
        })
    }

    /// Words that the source pass inserts, and custom syntax of a host program.
    fn custom(&mut self, custom: &CustomExpr, expr: &Expr) -> Option<Node> {
        let word = custom.tokens.first()?.as_str();
        let site = |expr: &Expr| match expr {
            Expr::IntegerConstant(site, _) => Some(Place(*site as u32)),
            _ => None,
        };
        Some(match word {
            "__at" => Node::Mark(Box::new((site(&custom.inputs[0])?, self.expr(&custom.inputs[1])?))),
            "__ac" => {
                let place = site_of(custom.inputs[0].position());
                Node::Mark(Box::new((place, self.expr(&custom.inputs[0])?)))
            }
            "__or" => Node::Missing(Box::new((site(&custom.inputs[0])?, self.expr(&custom.inputs[1])?))),
            "__try_wait" => {
                let at = custom.inputs[0].position();
                Node::TryWait(Box::new((self.expr(&custom.inputs[0])?, at)))
            }
            "__either" => return self.either(custom),
            "__counted" => {
                let value = self.expr(&custom.inputs[0])?;
                let mut of_operand = custom.clone();
                of_operand.inputs[0] = operand(1, custom.inputs[0].position());
                let operands = Operands { expr: Expr::Custom(Box::new(of_operand), expr.position()) };
                Node::Operated(Box::new((operands, [value].into())))
            }
            word => match block_word(word) {
                Some((word, is_closure)) => {
                    let (body, before) = custom.inputs.split_last()?;
                    let at = custom.inputs[0].position();
                    let value = match before.first() {
                        Some(value) => Some(self.expr(value)?),
                        None => None,
                    };
                    // A `return` in it may lead to what stands behind it.
                    self.tries += 1;
                    let body = self.expr(body);
                    self.tries -= 1;
                    let body = body?;
                    Node::Within(Box::new(Within { word, value, at, body, is_closure }))
                }
                None => {
                    let mut syntax = custom.clone();
                    for input in &mut syntax.inputs {
                        input_code::enclose(input, &self.unit);
                    }
                    let fragment = self.fragment(Expr::Custom(Box::new(syntax), expr.position()));
                    Node::Fragment(Box::new(Fragment { declares: rest::declares(custom), ..fragment }))
                }
            },
        })
    }
}

/// The word of `__with_device` or `__written_with_device`, and whether it is the latter, a closure's.
fn block_word(word: &str) -> Option<(&'static str, bool)> {
    let (word, is_closure) = match word.strip_prefix("__written_") {
        Some(word) => (word, true),
        None => (word.strip_prefix("__")?, false),
    };
    BLOCK_WORDS.into_iter().find(|known| *known == word).map(|word| (word, is_closure))
}

/// A call whose arguments are operands. A module is looked for by its name, the latest first: of several under one name
/// Rhai's parser counts to the earliest.
fn of_operands(call: &FnCallExpr, at: Position) -> Expr {
    let mut call = call.clone();
    call.namespace.index = None;
    let count = call.args.len();
    for (index, argument) in call.args.iter_mut().enumerate() {
        *argument = operand(count - index, argument.start_position());
    }
    Expr::FnCall(Box::new(call), at)
}

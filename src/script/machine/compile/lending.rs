//! Values that are lent instead of copied. A function that only reads a parameter gets the caller's array or map itself,
//! and the caller has it back when the call has ended; a loop whose variable is only read goes over the elements
//! themselves; a variable that nobody reads any more is moved out. So a call costs the same however large its values are.
//!
//! Here is what the compiler knows of this: which variables may be changed, and where names stand.

use super::walk;
use crate::script::machine::tree::{Call, Code, Node, Slot};
use rhai::{ASTNode, Expr, Stmt};
use std::cell::Cell;

/// Variables that something may change or keep: bits of their slots. Those beyond the bits count as changed.
#[derive(Default)]
pub struct Changed(Cell<u64>);

/// Bound: slots that are told apart.
const BITS: Slot = 64;

impl Changed {
    pub fn note(&self, slot: Slot) {
        if slot < BITS {
            self.0.set(self.0.get() | 1 << slot);
        }
    }

    /// Something that is not looked into may change any of them.
    pub fn note_all(&self) {
        self.0.set(u64::MAX);
    }

    fn has(&self, slot: Slot) -> bool {
        slot >= BITS || self.0.get() >> slot & 1 == 1
    }

    /// Begins a part in which a slot belongs to another variable; what is given ends it.
    pub fn begin(&self, slot: Slot) -> u64 {
        let before = self.0.get();
        if slot < BITS {
            self.0.set(before & !(1 << slot));
        }
        before
    }

    /// Whether the variable was left alone since `begin`.
    pub fn end(&self, slot: Slot, before: u64) -> bool {
        let alone = !self.has(slot);
        self.0.set(self.0.get() | before);
        alone
    }

    /// The parameters that a function leaves alone, as bits.
    pub fn lends(&self, parameters: usize) -> u64 {
        let all = if parameters >= BITS as usize { u64::MAX } else { (1 << parameters) - 1 };
        all & !self.0.get()
    }
}

impl Code {
    /// Whether an argument comes back from a call as it was.
    pub fn lends(&self, argument: usize) -> bool {
        argument < BITS as usize && self.lends >> argument & 1 == 1
    }
}

/// Methods and functions of Rust that read their first value and keep nothing of it.
pub fn only_reads(name: &str) -> bool {
    // Not: `split` and `set`, which change arrays, although they do not change strings.
    matches!(
        name,
        "len"
            | "is_empty"
            | "contains"
            | "keys"
            | "values"
            | "get"
            | "index_of"
            | "to_string"
            | "type_of"
            | "items"
            | "__unpack"
    ) || matches!(name, "sum" | "min" | "max" | "any" | "all" | "sorted" | "reversed" | "list" | "zip" | "enumerate")
        || matches!(
            name,
            "str" | "join" | "strip" | "upper" | "lower" | "starts_with" | "ends_with" | "chars" | "bytes"
        )
        || matches!(name, "to_int" | "to_float" | "parse_int" | "parse_float" | "abs" | "sqrt" | "floor" | "count")
}

/// The last expression of a function's body: a variable of the body moves out, also into the array or map that it is a
/// part of. `moves` is told its slot. What is no parameter moves into a call, too.
pub fn move_out(node: &mut Node, parameters: usize, moves: &mut dyn FnMut(Slot)) {
    match node {
        Node::Call(call) => move_all(call, |slot| usize::from(slot) >= parameters),
        Node::Mark(marked) if matches!(marked.1, Node::Call(_)) => move_out(&mut marked.1, parameters, moves),
        Node::Local(slot) => {
            let slot = *slot;
            moves(slot);
            *node = Node::Take(slot);
        }
        Node::Block(block) => {
            if let Some(last) = block.statements.last_mut() {
                move_out(last, parameters, moves);
            }
        }
        Node::If(branch) => {
            move_out(&mut branch.yes, parameters, moves);
            move_out(&mut branch.no, parameters, moves);
        }
        Node::Array(_) | Node::Map(_) => {
            let mut parts = Vec::new();
            add_parts(node, &mut parts);
            for at in 0..parts.len() {
                let Node::Local(slot) = *parts[at] else { continue };
                let is_other = |part: &&mut Node| match &**part {
                    Node::Local(other) => *other != slot,
                    part => matches!(part, Node::Literal(_)),
                };
                if parts[at + 1..].iter().all(is_other) {
                    moves(slot);
                    *parts[at] = Node::Take(slot);
                }
            }
        }
        _ => {}
    }
}

/// What an array or map is made of, in the order in which it is evaluated; arrays and maps in it by their parts.
fn add_parts<'a>(node: &'a mut Node, parts: &mut Vec<&'a mut Node>) {
    match node {
        Node::Array(items) => items.iter_mut().for_each(|item| add_parts(item, parts)),
        Node::Map(map) => map.entries.iter_mut().for_each(|entry| add_parts(&mut entry.1, parts)),
        other => parts.push(other),
    }
}

/// `l = #{value: 1, next: l}`: the old value moves into the new one. A part of the literal itself moves when all others are
/// made, which may fail if nothing in them names the variable (`is_alone`); a part of a literal in it, where nothing
/// behind it can fail.
pub fn move_into(value: &mut Node, target: Slot, is_alone: impl Fn() -> bool) {
    let is_target = |node: &Node| matches!(node, Node::Local(slot) if *slot == target);
    let own = match value {
        Node::Array(items) => items.iter_mut().find(|item| is_target(item)),
        Node::Map(map) => map.entries.iter_mut().map(|entry| &mut entry.1).find(|part| is_target(part)),
        _ => return,
    };
    if let Some(part) = own
        && is_alone()
    {
        *part = Node::Take(target);
        return;
    }
    let mut parts = Vec::new();
    add_parts(value, &mut parts);
    let is_safe = |node: &Node| matches!(node, Node::Local(_) | Node::Literal(_));
    let Some(at) = parts.iter().rposition(|part| is_target(part)) else { return };
    if parts[at + 1..].iter().all(|part| is_safe(part)) {
        *parts[at] = Node::Take(target);
    }
}

/// `h = push(h, x)`: the old value moves into the call, where nobody sees the variable if the call fails. `let [top, rest] =
/// take(h); h = rest;` is the same, and so is `let [value, rest] = h; h = rest;`.
pub fn move_to_call(value: &mut Node, is_dead: &dyn Fn(Slot) -> bool) {
    match value {
        Node::Mark(marked) => move_to_call(&mut marked.1, is_dead),
        Node::Native(native) if &*native.name == "__unpack" => {
            let Some(value) = native.arguments.first_mut() else { return };
            match value {
                Node::Local(slot) if is_dead(*slot) => *value = Node::Take(*slot),
                value => move_to_call(value, is_dead),
            }
        }
        Node::Call(call) => move_all(call, is_dead),
        _ => {}
    }
}

/// Moves variables that no other argument names into a call.
fn move_all(call: &mut Call, is_dead: impl Fn(Slot) -> bool) {
    let Call { lendable, arguments, is_simple, .. } = call;
    lendable.retain(|(argument, slot)| {
        let moves = is_dead(*slot);
        if moves {
            arguments[*argument] = Node::Take(*slot);
            // It moves when what asks it is known.
            *is_simple = false;
        }
        !moves
    });
}

/// Whether statements mention a variable of a name.
pub fn mentions(statements: &[Stmt], name: &str) -> bool {
    !statements.iter().all(|statement| walk::statement(statement, &mut |node| !names(node, name)))
}

/// How often an expression names a variable.
pub fn count_in(expr: &Expr, name: &str) -> usize {
    let mut count = 0;
    walk::expr(expr, &mut |node| {
        count += names(node, name) as usize;
        true
    });
    count
}

/// Whether an expression mentions a variable of a name.
pub fn mentions_in(expr: &Expr, name: &str) -> bool {
    !walk::expr(expr, &mut |node| !names(node, name))
}

/// Whether an expression does nothing with the variables of a name but ask them: `h.len() - 1`, `xs[0]`.
pub fn only_asked_in(expr: &Expr, name: &str) -> bool {
    let is_itself = matches!(expr, Expr::Variable(variable, ..) if variable.1 == name);
    !is_itself
        && walk::expr(expr, &mut |node| match node {
            ASTNode::Expr(Expr::FnCall(call, _)) => call.is_operator_call(),
            ASTNode::Expr(Expr::MethodCall(call, _)) => only_reads(&call.name),
            ASTNode::Expr(Expr::Stmt(_) | Expr::Custom(..)) | ASTNode::Stmt(_) => false,
            _ => true,
        })
}

fn names(node: &ASTNode, name: &str) -> bool {
    match node {
        ASTNode::Expr(Expr::Variable(variable, ..)) => variable.1 == name,
        ASTNode::Stmt(Stmt::Share(shared)) => shared.iter().any(|(shared, _)| shared.name == name),
        _ => false,
    }
}

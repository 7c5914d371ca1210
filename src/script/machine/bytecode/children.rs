//! The nodes inside a node.

use crate::script::machine::tree::{Chain, Node, Root};

impl Node {
    /// Gives the nodes right below to a visitor, each once.
    pub fn children(&mut self, visit: &mut dyn FnMut(&mut Node)) {
        match self {
            Node::Literal(_) | Node::Local(_) | Node::Take(_) | Node::This(_) | Node::Global(_) | Node::Constant(_) => {
            }
            Node::Continue | Node::Running(..) | Node::Lend(_) | Node::Share(_) | Node::Fragment(_) => {}
            Node::OneTooMany(_) | Node::Rest(_) | Node::Loop(..) => {}
            Node::Binary(binary) => {
                visit(&mut binary.left);
                visit(&mut binary.right);
            }
            Node::Unary(unary) => visit(&mut unary.operand),
            Node::And(parts) | Node::Or(parts) => parts.iter_mut().for_each(|part| visit(&mut part.0)),
            Node::Coalesce(nodes) | Node::Array(nodes) => nodes.iter_mut().for_each(visit),
            Node::Map(map) => map.entries.iter_mut().for_each(|entry| visit(&mut entry.1)),
            Node::Text(text) => text.parts.iter_mut().for_each(visit),
            Node::Truth(inner) | Node::TryWait(inner) | Node::Throw(inner) => visit(&mut inner.0),
            Node::Call(call) => call.arguments.iter_mut().for_each(visit),
            Node::Native(native) => native.arguments.iter_mut().for_each(visit),
            Node::Either(either) => {
                visit(&mut either.holder);
                either.arguments.iter_mut().for_each(visit);
            }
            Node::Curry(curry) => {
                visit(&mut curry.0);
                curry.1.iter_mut().for_each(visit);
            }
            Node::Chain(chain) => of_chain(chain, visit),
            Node::Block(block) | Node::Evaluating(block) => block.statements.iter_mut().for_each(visit),
            Node::If(branch) => {
                visit(&mut branch.condition);
                visit(&mut branch.yes);
                visit(&mut branch.no);
            }
            Node::While(repeat) => {
                if let Some(condition) = &mut repeat.condition {
                    visit(&mut condition.0);
                }
                visit(&mut repeat.body);
            }
            Node::For(each) => {
                visit(&mut each.values);
                each.pairs.iter_mut().for_each(|pairs| pairs.of.iter_mut().for_each(&mut *visit));
                visit(&mut each.body);
            }
            Node::Switch(switch) => {
                visit(&mut switch.value);
                for arm in &mut switch.arms {
                    if let Some(guard) = &mut arm.guard {
                        visit(&mut guard.0);
                    }
                    visit(&mut arm.body);
                }
            }
            Node::Break(value) | Node::Return(value) => value.iter_mut().for_each(|value| visit(value)),
            Node::Let(_, value) | Node::LetConstant(_, value) => visit(value),
            Node::Unpack(unpack) => visit(&mut unpack.value),
            Node::Assign(assign) | Node::AssignThis(assign) => visit(&mut assign.value),
            Node::AssignChain(assign) => {
                of_chain(&mut assign.chain, visit);
                visit(&mut assign.value);
            }
            Node::Try(attempt) => {
                visit(&mut attempt.body);
                visit(&mut attempt.handler);
            }
            Node::Mark(mark) | Node::Missing(mark) => visit(&mut mark.1),
            Node::Within(within) => {
                within.value.iter_mut().for_each(&mut *visit);
                visit(&mut within.body);
            }
            Node::Operated(operated) => operated.1.iter_mut().for_each(visit),
            Node::Import(import) => visit(&mut import.0),
        }
    }
}

fn of_chain(chain: &mut Chain, visit: &mut dyn FnMut(&mut Node)) {
    if let Root::Value(node) = &mut chain.root {
        visit(node);
    }
    chain.operands.iter_mut().for_each(visit);
}

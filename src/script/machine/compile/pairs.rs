//! Which loops go over pairs: `for [k, v] in m.items()`, `xs.enumerate()`, `enumerate(xs)` and `zip(xs, ys)`.

use super::Compiler;
use crate::script::machine::tree::{Chain, Native, Node, Pairs, PairsOf, Root, StepKind};
use rhai::{ASTFlags, BinaryExpr, Expr};

/// What the pairs of a loop's values are made of; none of other values.
pub fn of(compiler: &mut Compiler, expr: &Expr, values: &Node) -> Option<Pairs> {
    if compiler.met.is_some() {
        return None;
    }
    match (values, expr) {
        (Node::Mark(mark), Expr::Custom(custom, _)) => of(compiler, custom.inputs.last()?, &mark.1),
        (Node::Native(native), Expr::FnCall(call, _)) => {
            let kind = kind_of_function(native)?;
            let of: Option<Vec<Node>> = call.args.iter().map(|argument| compiler.expr(argument)).collect();
            Some(Pairs { kind, of: of?.into() })
        }
        (Node::Chain(chain), expr) => {
            let kind = kind_of_method(chain)?;
            let of = match &*chain.steps {
                [_] => before_the_dot(compiler, chain, expr)?,
                _ => compiler.expr(&without_last(expr)?)?,
            };
            Some(Pairs { kind, of: [of].into() })
        }
        _ => None,
    }
}

fn kind_of_function(native: &Native) -> Option<PairsOf> {
    match (&*native.name, native.arguments.len()) {
        _ if native.qualified.is_some() => None,
        ("enumerate", 1) => Some(PairsOf::Enumerate),
        ("zip", 2) => Some(PairsOf::Zip),
        _ => None,
    }
}

fn kind_of_method(chain: &Chain) -> Option<PairsOf> {
    let last = chain.steps.last().filter(|last| !last.or_unit)?;
    match &last.kind {
        StepKind::Method { name, count: 0, function, is_word: false, .. } if function.strong_count() == 0 => {
            match &**name {
                "items" => Some(PairsOf::Items),
                "enumerate" => Some(PairsOf::Enumerate),
                _ => None,
            }
        }
        _ => None,
    }
}

fn before_the_dot(compiler: &mut Compiler, chain: &Chain, expr: &Expr) -> Option<Node> {
    match (&chain.root, expr) {
        (Root::Local(slot), _) => Some(Node::Local(*slot)),
        (Root::Value(_), Expr::Dot(pair, ..)) => compiler.expr(&pair.lhs),
        _ => None,
    }
}

/// The chain without its last step: that of `a.b.c()` is `a.b`.
fn without_last(expr: &Expr) -> Option<Expr> {
    let (Expr::Dot(pair, flags, at) | Expr::Index(pair, flags, at)) = expr else { return None };
    let is_index = matches!(expr, Expr::Index(..));
    let rest = match &pair.rhs {
        Expr::Dot(next, ..) | Expr::Index(next, ..) if !(is_index && flags.contains(ASTFlags::BREAK)) => {
            let is_last = matches!(&pair.rhs, Expr::Dot(next, ..) if matches!(next.rhs, Expr::MethodCall(..)));
            if is_last { next.lhs.clone() } else { without_last(&pair.rhs)? }
        }
        _ => return None,
    };
    // An index that is a chain itself ends the chain around it.
    let ends = is_index && matches!(&pair.rhs, Expr::Dot(next, ..) if matches!(next.rhs, Expr::MethodCall(..)));
    let flags = if ends { *flags | ASTFlags::BREAK } else { *flags };
    let pair = Box::new(BinaryExpr { lhs: pair.lhs.clone(), rhs: rest });
    Some(if is_index { Expr::Index(pair, flags, *at) } else { Expr::Dot(pair, flags, *at) })
}

//! The device of a value, where the text names it: `#{device: "cuda:1"}`, `.to("cuda")`, `.cuda()`, and what is computed
//! from such values. What the text does not name is on the default device, which is the program's.

use super::names::Names;
use crate::script::check::reading::Reading;
use crate::script::check::syntax::{Expr, Kind, StmtKind};
use crate::script::check::visit::Visit;
use std::collections::HashMap;

/// Devices by the tokens at which expressions have their focus, and of variables by the tokens that declare them.
pub fn devices(reading: &Reading, names: &Names) -> HashMap<u32, String> {
    let mut found = HashMap::new();
    if !["device", "cuda", "cpu"].iter().any(|word| reading.text.contains(word)) {
        return found;
    }
    let known = std::cell::RefCell::new(&mut found);
    let assigned = assigned(reading, names);
    let mut stmt = |stmt: &crate::script::check::syntax::Stmt| {
        let StmtKind::Let { name, value: Some(value), .. } = &stmt.kind else { return };
        let symbol = names.at(name.token);
        let device = device(value, names, &known.borrow());
        if let Some(device) = device.filter(|_| !symbol.is_some_and(|symbol| assigned.contains(&symbol))) {
            known.borrow_mut().insert(name.token, device);
        }
    };
    let mut expr = |expr: &Expr| {
        let device = device(expr, names, &known.borrow());
        if let Some(device) = device {
            known.borrow_mut().insert(expr.focus, device);
        }
    };
    Visit { stmt: &mut stmt, expr: &mut expr }.stmts(&reading.body);
    found
}

/// The variables that get another value after their declaration.
fn assigned(reading: &Reading, names: &Names) -> Vec<usize> {
    let mut found = Vec::new();
    let mut stmt = |stmt: &crate::script::check::syntax::Stmt| {
        if let StmtKind::Assign { target, .. } = &stmt.kind
            && matches!(target.kind, Kind::Name(_))
        {
            found.extend(names.at(target.focus));
        }
    };
    Visit { stmt: &mut stmt, expr: &mut |_| {} }.stmts(&reading.body);
    found
}

fn device(expr: &Expr, names: &Names, known: &HashMap<u32, String>) -> Option<String> {
    match &expr.kind {
        Kind::Name(_) => known.get(&names.symbols.get(names.at(expr.focus)?)?.token).cloned(),
        Kind::Call { args, .. } => keyword(args).or_else(|| common(args.iter(), names, known)),
        Kind::Method { of, name, args, .. } => match (&name[..], &args[..]) {
            ("cpu", []) => Some("cpu".into()),
            ("cuda", []) => Some("cuda:0".into()),
            ("cuda", [Expr { kind: Kind::Int(Some(index)), .. }, ..]) => Some(format!("cuda:{index}")),
            ("to", [Expr { kind: Kind::Str(Some(text)), .. }, ..]) if is_device(text) => Some(numbered(text)),
            ("to", _) => keyword(args).or_else(|| device(of, names, known)),
            _ => common(std::iter::once(&**of).chain(args), names, known),
        },
        Kind::Binary { left, right, .. } => common([&**left, &**right].into_iter(), names, known),
        Kind::Unary { of, .. } | Kind::Index { of, .. } => device(of, names, known),
        Kind::Property { of, name, .. } if matches!(&name[..], "T" | "mT" | "H" | "mH" | "data" | "grad") => {
            device(of, names, known)
        }
        _ => None,
    }
}

/// The one device of all operands that have one.
fn common<'e>(all: impl Iterator<Item = &'e Expr>, names: &Names, known: &HashMap<u32, String>) -> Option<String> {
    let mut found = all.filter_map(|expr| device(expr, names, known));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// `#{device: "cuda"}`
fn keyword(args: &[Expr]) -> Option<String> {
    let Kind::Map(entries) = &args.last()?.kind else { return None };
    match &entries.iter().find(|entry| entry.key == "device")?.value.kind {
        Kind::Str(Some(text)) if is_device(text) => Some(numbered(text)),
        _ => None,
    }
}

fn is_device(text: &str) -> bool {
    text == "cpu" || text == "cuda" || text.strip_prefix("cuda:").is_some_and(|index| index.parse::<u32>().is_ok())
}

/// `cuda` is the first one unless the script makes another current.
fn numbered(text: &str) -> String {
    if text == "cuda" { "cuda:0".to_string() } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_follow_from_the_text() {
        let text =
            "let a = ones([2], #{device: \"cuda:1\"}); let b = a * 2 + 1; let c = b.sum().cpu(); let d = ones([2]);";
        let reading = Reading::of_text(text);
        let names = Names::of(&reading);
        let found = devices(&reading, &names);
        let of = |name: &str| {
            let symbol = names.symbols.iter().find(|symbol| symbol.name == name).expect("declared");
            found.get(&symbol.token).map(String::as_str)
        };
        assert_eq!([of("a"), of("b"), of("c"), of("d")], [Some("cuda:1"), Some("cuda:1"), Some("cpu"), None]);
    }
}

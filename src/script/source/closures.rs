//! Calls of values, and what closures see besides the variables around them: themselves, and the `this` of a method.

use super::edit::{Edit, widen, wrap};
use super::lex::Token;
use super::tree::{Recursive, Run, Tree};

/// Calls of what variables, elements and results hold.
pub fn applications<'a>(edits: &mut Vec<Edit<'a>>, src: &'a str, tokens: &[Token], tree: &Tree) {
    for &(Run { first, last }, is_outer) in &tree.applied {
        let (name, end) = (tokens[first as usize].range(), tokens[last as usize].end as usize);
        let of_name = |edit: Edit<'a>| edit.around(end - name.start).standing_for(name.start..name.start);
        let open = if is_outer { "__either(global::" } else { "__either(" };
        edits.extend([open, &src[name.clone()], ","].map(|text| of_name(Edit::before(name.start, text))));
        edits.push(of_name(Edit::behind(end, ")")));
    }
    for &open in &tree.applied_values {
        edits.push(Edit::behind(tokens[open as usize].start as usize, ".__apply").outermost());
    }
}

/// Methods whose closures see their `this`: a variable takes its place while they run.
pub fn lent(edits: &mut Vec<Edit>, tokens: &[Token], tree: &Tree) {
    for method in &tree.lent {
        let range = |token: u32| tokens[token as usize].range();
        let (start, end) = (range(method.body.first).start, range(method.body.last).end);
        // An error of a call without a `this` is shown where it is named.
        let used = method.uses.iter().copied().min().map_or(start..end, range);
        if method.is_function {
            let open = Edit::behind(range(method.body.first).end, "let __this=__lend();");
            edits.push(open.standing_for(used));
        } else {
            let open = Edit::before(start, "{let __this=__lend();").outermost();
            edits.push(open.standing_for(used.clone()));
            edits.push(Edit::behind(end, "}").outermost().standing_for(used));
        }
        edits.extend(method.uses.iter().map(|&token| Edit::before(range(token).start, "__")));
    }
}

/// What the bodies of closures begin with that name the variables which will hold them.
pub fn openings(src: &str, tokens: &[Token], tree: &Tree) -> Vec<String> {
    let opening =
        |found: &Recursive| format!("{{let {}=__me({});", &src[tokens[found.name as usize].range()], found.parameters);
    tree.recursive.iter().map(opening).collect()
}

/// Closures that name the variables which will hold them.
pub fn recursive<'a>(edits: &mut Vec<Edit<'a>>, tokens: &[Token], tree: &Tree, openings: &'a [String]) {
    for (found, opening) in tree.recursive.iter().zip(openings) {
        let (first, last) = (tokens[found.body.first as usize], tokens[found.body.last as usize]);
        let body = first.start as usize..last.end as usize;
        wrap(edits, body.clone(), body, opening, "}");
        widen(edits);
    }
}

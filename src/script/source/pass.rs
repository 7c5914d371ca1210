//! The source pass: from the text a user wrote to the text Rhai sees, with a map back to original bytes.
//!
//! Rhai's hooks cannot give what the language has here (`docs/language.md`), so one linear pass over tokens inserts a few
//! short texts and takes away a byte order mark and a `#!` line. It never changes the number of lines.
//!
//! | written | Rhai sees | why |
//! |---|---|---|
//! | `if x {`, `while x {`, `until x`, a `switch` guard | `if __truth(x) {` | Rhai's conditions take only `bool` |
//! | `a && b`, `a \|\| b` | `__truth(a) && __truth(b)` | the same |
//! | `switch x {` | `switch __case(x) {` | to Rhai a tensor is none of the cases |
//! | `x[0, 1..3]` | `x[[',', 0, 1..3]]` | Rhai's indexers take one value; the mark tells it from `x[[0, 2]]` |
//! | `-a ** b` | `-(a ** b)` | Rhai's sign binds tighter |
//! | `a & b == c`, and with `^`, `\|` | `(a & b) == c` | Rhai's comparisons bind tighter |
//! | `try { .. } catch` | `try {__try_wait { .. }} catch` | late faults of the block are raised in it |
//! | `nn::f(x)`, `m.f(x)` in a user's source | `__at(0x000a0007,nn::f(x))` | the user's line while `std/` runs, the call stack |
//! | `f(x)` in a user's source, if `f` may be the script's | `__ac(f(x))` | the same; the place is the expression's own |
//! | `for x in xs { }` | `for x in xs {() }` | Rhai passes over what an iterator raises where a body is empty |
//! | `for (a, b) in xs {` in a user's source | `for (a, b) in __counted(xs) {` | who means pairs is told (`counted.rs`) |
//! | `f(x); y` in a user's source | `f(x);(); y` | Rhai keeps a statement's value until the next one has ended |
//! | `for (k, v) in m.items() {`, also over `named_parameters()` and similar, `zip(..)` | `.. {let v=k[1];let k=k[0];` | Rhai gives the value and a count |
//! | `for (i, x) in enumerate(xs) {` | `.. in __enumerate(xs) {let __p=i;let i=x;let x=__p;` | the same, the count first |
//! | `x.view([6])[0] = v` | `{let __t=__target(x.view([6]));__t[0] = v}` | Rhai assigns to nothing that a call gives |
//! | `for _ in xs`, `\|_\| f()`, `let _ =` | `for __any_ in xs` | Rhai knows `_` only as the last case of a `switch` |
//! | `m[k] ?? 0`, `m.k ?? 0` | `__or(0x000a0007,m[k]) ?? 0` | an entry that is not there is an error to Rhai |
//! | `eval(s)` | `__eval(s)` | Rhai's own would lose the source |
//! | `fn new(x)`, `new(x)`, `nn::module(x)` | `fn __new(x)`, ... | Rhai lets no script function have a reserved name |
//! | `f(x)` where a module defines `f` | `f__in3(x)` | Rhai mixes up functions of several modules (`scope.rs`) |
//! | `f(x)` where `f` is a variable | `__either(f,f(x))` | a closure or module in it wins over a function of its name |
//! | `K(x)` in a function, where the text has `const K` | `__either(global::K,K(x))` | the same of a constant |
//! | `fs[0](x)`, `make(1)(x)` | `fs[0].__apply(x)` | Rhai calls names only |
//! | `#{..}` of very many entries | `__entries([#{..},#{..}])` | Rhai compares each key with all before it |
//! | `let [a, b] = f();` | `let a = __unpack(f(),"[a,b]");let b=a[1];a=a[0];` | Rhai's `let` takes one name |
//! | `for #{x, y} in xs {` | `for x in xs {let x=__unpack(x,"..");let y=x[1];x=x[0];` | the same |
//! | `let f = \|n\| f(n - 1)` | `let f = \|n\| {let f=__me(1);f(n - 1)}` | a closure cannot take along what is not there yet |
//! | `this` in a closure inside a method | `__this`, and `let __this=__lend();` where the method begins | Rhai's closures have a `this` of their own only |
//! | `K` in a function, where the text has `const K` | `global::K` | Rhai's functions see no constants |
//! | `/// text` that stands before no function | `// / text` | Rhai takes documentation nowhere else |
//! | `PI` | `__c::PI` | a closure would look for a variable to take along |
//! | `nn::f(x)` | `nn::f__x(x)` | the name under which others call it |
//! | `${x:.4f}` between backticks | `${__format(x,".4f")}` | Python's formats |
//! | `${x}` between backticks | `${__text({x})}` | Rhai passes over what making a text of a value raises |
//! | `_` in an entry of the REPL | `__last_` | Rhai knows `_` only as the last case of a `switch` |
//! | `with_device(d) { .. }` | `__with_device(d) { .. }` | a block that is custom syntax |
//! | `no_grad() { .. }`, `no_grad { .. }` | `__no_grad { .. }` | the same; Rhai reads `()` as a value |
//! | `autocast(d, o) { .. }` | `__autocast([d, o]) { .. }` | the same, with arguments as a list |
//! | `no_grad { .. } -1` as a statement | `__no_grad { .. }; -1` | Rhai's custom syntax goes on behind its block |
//! | `for k in #{a: 1} {`, `[1, 2][1.0]` | `for k in ({#{a: 1}}) {`, `[1, 2][({1.0})]` | Rhai's parser refuses the literals |
//! | `with_device(d, \|\| f)` | `__written_with_device(d, {f})` | the closure runs in place: no call, nothing captured |
//!
//! What is surely `bool` (a literal, `&&`, `in`, a comparison with a string or `()`) is not wrapped.
//! `__truth` and `__eval` are functions or custom syntax; `__try_wait $block$`, `__at($int$, $expr$)`, `__or($int$, $expr$)` and
//! `__ac($expr$)` are custom syntax, so that they see every way out (`hooks.rs` registers them).
//! Reserved words as variables, properties, keys, methods and native functions need no rewriting:
//! `hooks.rs` maps their tokens. `written_name` undoes the renaming for what users read.
//!
//! Decision (marks): the user's line and the calls under way are known by wrapping calls, which costs one custom-syntax
//! step for each call from a user's source into script code, and nothing for operations: 5 % of the instructions of a
//! script that does nothing but call functions. The `debugging` feature
//! costs 8 to 29 % of everything and 120 ns for each native call, as measured. Not: a mark in the last
//! argument; a closure of the user that `std/` calls would leave its own line behind.

use super::closures;
use super::comments::documentation;
use super::edit::{Edit, widen, wrap};
use super::hooks::{is_block_word, is_free_word};
use super::lex::{self, Kind, LexError, Token};
use super::parts;
use super::patterns::Patterns;
use super::scope::{self, Names};
use super::tree::{self, Lost, Run, Tree};
use crate::base::limits::MAX_COLUMNS;
use crate::base::order;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The first element of the array that `x[a, b]` becomes.
pub const INDEX_MARK: char = ',';

/// Columns and lines count as in Rhai: characters and line feeds, both from 1.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    pub text: String,
    pieces: Vec<Piece>,
    /// Copied ranges only: original byte and rewritten byte of their starts.
    copies: Vec<(u32, u32)>,
    /// The same of names that stand elsewhere now.
    moved: Vec<(u32, u32)>,
    line_starts: Vec<u32>,
    /// The brackets and property names that are assigned to, by line and column.
    targets: Vec<((u32, u32), Assignment)>,
    /// Where changes of copies begin that nobody sees, by line and column.
    lost: Vec<((u32, u32), Lost)>,
    /// Names of `for_each` whose closures take a counter for the element, and the parameters' bytes.
    each_counted: Vec<((u32, u32), std::ops::Range<usize>)>,
    /// Original bytes of the names of properties that a statement reads without using them.
    pub unused_properties: Vec<Range<usize>>,
    /// It defines no function or closure, imports nothing and catches no error: no code of it is left behind its run.
    pub is_passing: bool,
}

/// How `x[i]` or `x.grad` is assigned to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assignment {
    /// `x[i] = v`
    Plain,
    /// `x[i] += v`
    Compound,
}

/// A range of the rewritten text, from `at` to the next piece.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: u32,
    /// Original byte of its first byte; for an insertion, the position that it stands for.
    original: u32,
    /// For an insertion that stands for a whole expression: its original end. Copied text has 0.
    end: u32,
    inserted: bool,
}

/// The original position of a position in the rewritten text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    At(usize),
    /// Inserted for this expression.
    For(Range<usize>),
}

/// What the pass needs to know about calls.
pub struct Options<'a> {
    /// Functions, methods and `ns::name`s that never run script code.
    pub is_native: &'a dyn Fn(&str) -> bool,
    pub marks: Marks,
    pub underscore: Underscore,
    pub names: Names<'a>,
    /// Global lines before the first one of this source.
    pub base: u32,
}

/// Whether calls that may enter script code are marked: in users' sources yes, in `std/` no.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    Set,
    None,
}

/// What `_` means outside the last case of a `switch`: nothing, or the last value of the REPL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Underscore {
    Nothing,
    LastValue,
}

/// The variable that holds the last value of the REPL.
pub const LAST: &str = "__last_";

/// The replacement of `_` where a name is declared: two adjacent ones need two names.
pub(super) const IGNORED: [&str; 4] = ["__any_", "__anyb_", "__anyc_", "__anyd_"];

/// The name that the user wrote for a function of the rewritten text.
pub fn written_name(name: &str) -> &str {
    if name == LAST || IGNORED.contains(&name) {
        return "_";
    }
    let name = scope::written(name);
    match name.strip_prefix("__") {
        Some(word) if matches!(word, "eval" | "format" | "enumerate") || is_free_word(word) || is_block_word(word) => {
            word
        }
        _ => name,
    }
}

const MARK: &str = "__at(0x00000000,";
/// As long as `MARK`.
const ASK: &str = "__or(0x00000000,";

/// The unchanged text, for a source that the pass refuses.
pub fn unchanged(src: &str) -> Rewritten {
    emit(src, &[], Vec::new(), 0)
}

/// The error of `a < b < c`, by its two operators.
fn comparisons_do_not_chain(src: &str, tokens: &[Token], (first, second): (u32, u32)) -> LexError {
    let has_bits =
        tokens[first as usize..second as usize].iter().any(|token| matches!(&src[token.range()], "&" | "|" | "^"));
    let help = match has_bits {
        true => "`&`, `|` and `^` bind tighter than comparisons, as in Python: `(x > 1) & (x > y)`",
        false => "write `a < x && x < b`; of tensors, `(a < x) & (x < b)`",
    };
    LexError {
        message: "comparisons do not chain".into(),
        labels: vec![
            (tokens[second as usize].range(), "this compares with a truth value, `true` or `false`".into()),
            (tokens[first as usize].range(), "which this gives".into()),
        ],
        help: Some(help.into()),
        incomplete: false,
    }
}

/// Rewrites one source.
pub fn rewrite(src: &str, options: &Options) -> Result<Rewritten, LexError> {
    let start = lex::script_start(src);
    let tokens = lex::lex(src, start)?;
    let tree = tree::read(src, &tokens, options.is_native, options.names.earlier);
    if let Some(token) = tree.too_deep {
        return Err(LexError {
            message: "the text is nested too deeply".into(),
            labels: vec![(tokens[token as usize].range(), "beyond every limit here".into())],
            help: Some("give parts of the expression names with `let`, or move blocks into functions".into()),
            incomplete: false,
        });
    }
    if let Some(&chained) = tree.chained.first() {
        return Err(comparisons_do_not_chain(src, &tokens, chained));
    }
    for pattern in &tree.patterns {
        parts::check(src, &tokens, pattern.run)?;
    }
    // First of all at its byte: the suffix belongs to the name.
    let start_of = |token: u32| tokens[token as usize].start as usize;
    let end_of = |token: u32| tokens[token as usize].end as usize;
    let own = scope::places(src, &tokens, &tree, &options.names).into_iter();
    let mut edits: Vec<Edit> = own.map(|at| Edit::behind(at, options.names.suffix)).collect();
    edits.extend(tree.qualified.iter().map(|&name| Edit::behind(end_of(name), scope::EXPORTED)));
    let constants = scope::constants(src, &tokens, &tree, &options.names).into_iter();
    edits.extend(constants.map(|at| Edit::before(at, "__c::")));
    for token in tree.arguments.iter().map(|&name| &tokens[name as usize]) {
        edits.push(
            Edit::before(token.start as usize, "__args()").removing(token.range().len()).standing_for(token.range()),
        );
    }
    edits.extend(tree.outer_constants.iter().map(|&name| Edit::before(start_of(name), "global::")));
    let patterns = Patterns::new(src, &tokens, &tree);
    patterns.edit(&mut edits, &tokens);
    let bytes = |run: Run| start_of(run.first)..end_of(run.last);
    let openings = closures::openings(src, &tokens, &tree);
    closures::recursive(&mut edits, &tokens, &tree, &openings);
    closures::lent(&mut edits, &tokens, &tree);
    edits.extend(blanks(src, &tokens, start));
    edits.extend(match options.marks {
        Marks::None => comments(src, &tokens, start),
        Marks::Set => documentation(src, &tokens, start),
    });
    for &run in &tree.truths {
        wrap(&mut edits, bytes(run), bytes(run), "__truth(", ")");
    }
    for &run in &tree.switches {
        wrap(&mut edits, bytes(run), bytes(run), "__case(", ")");
    }
    for &run in &tree.groups {
        wrap(&mut edits, bytes(run), bytes(run), "(", ")");
    }
    for &Run { first, last } in &tree.index_lists {
        let inside = end_of(first)..start_of(last);
        wrap(&mut edits, inside.clone(), inside, "[',',", "]");
    }
    for &(whole, of) in &tree.temporaries {
        wrap(&mut edits, bytes(whole), bytes(whole), "{let __t=", "}");
        wrap(&mut edits, bytes(of), bytes(of), "__target(", ");__t");
        widen(&mut edits);
    }
    for &run in &tree.tries {
        wrap(&mut edits, bytes(run), tokens[run.last as usize].range(), "{__try_wait ", "}");
    }
    for &run in tree.counted.iter().filter(|_| options.marks == Marks::Set) {
        wrap(&mut edits, bytes(run), bytes(run), "__counted(", ")");
    }
    for &semicolon in tree.dropped.iter().filter(|_| options.marks == Marks::Set) {
        edits.push(Edit::behind(end_of(semicolon), "();"));
    }
    // `__counted(..)` hides them, too.
    let counted: HashSet<u32> = tree.counted.iter().map(|run| run.first).collect();
    let is_hidden = |run: &Run| options.marks == Marks::Set && counted.contains(&run.first);
    for &run in tree.veiled.iter().filter(|run| !is_hidden(run)) {
        wrap(&mut edits, bytes(run), bytes(run), "({", "})");
    }
    edits.extend(tree.ended.iter().map(|&brace| Edit::behind(end_of(brace), ";")));
    for parenthesis in tree.bare.iter().flat_map(|run| [run.first, run.last]) {
        edits.push(Edit::behind(start_of(parenthesis), "").removing(1));
    }
    for run in &tree.listed {
        let inside = end_of(run.first)..start_of(run.last);
        if run.last == run.first + 1 {
            edits.push(Edit::behind(inside.end, "[]"));
            continue;
        }
        wrap(&mut edits, inside.clone(), inside, "[", "]");
        widen(&mut edits);
    }
    pairs(&mut edits, src, &tokens, &tree);
    for &Run { first, .. } in &tree.idle_loops {
        edits.push(Edit::behind(end_of(first), "()"));
    }
    let formats = formats(src, &tokens);
    let formatted: HashSet<usize> = formats.iter().map(|format| format.start).collect();
    for inside in interpolations(&tokens).filter(|inside| !formatted.contains(&inside.start)) {
        wrap(&mut edits, inside.clone(), inside, "__text({", "})");
        widen(&mut edits);
    }
    // A format specification is not code, but for the values in it: nothing else is rewritten.
    let mut by_colon: Vec<&Format> = formats.iter().collect();
    order::by_key(&mut by_colon, |format| format.colon.end);
    edits.retain(|edit| is_code(&by_colon, edit.at));
    for format in formats {
        edits.extend(format.values.iter().map(|value| Edit::before(value.start - 1, "$")));
        let quotes = if format.values.is_empty() { [",\"", "\")"] } else { [",`", "`)"] };
        let (width, whole) = (format.end - format.start, format.start..format.colon.start);
        let of_whole = |edit: Edit<'static>| edit.around(width).standing_for(whole.clone());
        edits.push(of_whole(Edit::before(format.start, "__format(")));
        edits.push(of_whole(Edit::behind(format.colon.start, quotes[0])).removing(format.colon.len()));
        edits.push(of_whole(Edit::behind(format.end, quotes[1])));
    }
    for mark in tree.marks.iter().filter(|_| options.marks == Marks::Set) {
        if mark.is_plain {
            wrap(&mut edits, bytes(mark.call), bytes(mark.call), "__ac(", ")");
            continue;
        }
        wrap(&mut edits, bytes(mark.call), bytes(mark.call), MARK, ")");
        if let Some(edit) = edits.iter_mut().rev().nth(1) {
            edit.mark = Some(mark.name);
        }
    }
    // Behind the marks: they stand around these.
    closures::applications(&mut edits, src, &tokens, &tree);
    for &(run, place) in &tree.asked {
        wrap(&mut edits, bytes(run), bytes(run), ASK, ")");
        widen(&mut edits);
        if let Some(edit) = edits.iter_mut().rev().nth(1) {
            edit.mark = Some(place);
        }
    }
    edits.extend(tree.renamed.iter().map(|&token| Edit::before(start_of(token), "__")));
    if options.underscore == Underscore::LastValue {
        let text = |index: usize| tokens.get(index).map_or("", |token: &Token| &src[token.range()]);
        let is_value = |&index: &usize| text(index) == "_" && text(index + 1) != "=>";
        let ignored: HashSet<u32> = tree.ignored.iter().copied().collect();
        for index in (0..tokens.len()).filter(is_value).filter(|&index| !ignored.contains(&(index as u32))) {
            edits.push(Edit::before(tokens[index].start as usize, "__last"));
        }
    }
    for &(name, bar, body) in &tree.inlined {
        let (bar, end) = (tokens[bar as usize].range(), end_of(body.last));
        edits.push(Edit::before(start_of(name), "__written_"));
        edits.push(Edit::before(bar.start, "{").removing(bar.len()));
        edits.push(Edit::behind(end, "}").around(end - bar.start));
    }
    long_maps(&mut edits, &tokens, &tree);
    order::by(&mut edits, |a, b| {
        let order = |edit: &Edit| (edit.at, edit.opens);
        let width = if a.opens { b.width.cmp(&a.width) } else { a.width.cmp(&b.width) };
        order(a).cmp(&order(b)).then(width)
    });
    let unused_properties = tree.unused_properties.iter().map(|&name| tokens[name as usize].range()).collect();
    let out = emit(src, &tokens, edits, options.base);
    let lost = tree.lost.iter().filter(|_| options.marks == Marks::Set);
    let lost = by_place(lost.map(|lost| (out.position(start_of(lost.token)), *lost)));
    let each_counted = tree.each_counted.iter().filter(|_| options.marks == Marks::Set);
    let each_counted =
        by_place(each_counted.map(|&(at, name)| (out.position(start_of(at)), tokens[name as usize].range())));
    let leaves = |token: &Token| matches!(&src[token.range()], "fn" | "Fn" | "|" | "||" | "import" | "catch");
    let is_passing = !tokens.iter().any(leaves);
    Ok(Rewritten { unused_properties, lost, each_counted, is_passing, ..out })
}

/// Map literals of very many entries are read in parts.
fn long_maps(edits: &mut Vec<Edit>, tokens: &[Token], tree: &Tree) {
    for map in &tree.long_maps {
        let bytes = tokens[map.run.first as usize].start as usize..tokens[map.run.last as usize].end as usize;
        // Inside of all else that stands around the literal.
        let width = bytes.len() - 1;
        edits.push(Edit::before(bytes.start, "__entries([").around(width).standing_for(bytes.clone()));
        edits.push(Edit::behind(bytes.end, "])").around(width).standing_for(bytes));
        let between =
            |comma: &u32| Edit::behind(tokens[*comma as usize].start as usize, "},#{").removing(1).outermost();
        edits.extend(map.commas.iter().map(between));
    }
}

/// What stands at places, in their order.
fn by_place<T>(found: impl Iterator<Item = ((u32, u32), T)>) -> Vec<((u32, u32), T)> {
    let mut found: Vec<_> = found.collect();
    order::by_key(&mut found, |(place, _)| *place);
    found
}

/// The first of what stands at a place.
fn at_place<T>(found: &[((u32, u32), T)], line: u32, column: u32) -> Option<&T> {
    let at = found.partition_point(|(place, _)| *place < (line, column));
    found.get(at).filter(|(place, _)| *place == (line, column)).map(|(_, what)| what)
}

/// Loops over pairs get names for the parts, and ignored values get a name that Rhai accepts.
fn pairs<'a>(edits: &mut Vec<Edit<'a>>, src: &'a str, tokens: &[Token], tree: &Tree) {
    for (index, &token) in tree.ignored.iter().enumerate() {
        let name = IGNORED[index % IGNORED.len()];
        edits.push(Edit::before(tokens[token as usize].start as usize, &name[..name.len() - 1]));
    }
    let text = |token: u32| &src[tokens[token as usize].range()];
    let enumerates_itself = tree.definitions.iter().any(|definition| text(definition.name) == "enumerate");
    let ignored: HashMap<u32, usize> = tree.ignored.iter().enumerate().map(|(index, &token)| (token, index)).collect();
    let name = |token: u32| match ignored.get(&token) {
        Some(index) => IGNORED[index % IGNORED.len()],
        None => text(token),
    };
    for pair in &tree.pairs {
        let (first, second) = (name(pair.first), name(pair.second));
        let body = tokens[pair.body as usize].end as usize;
        // A function of the script may return anything.
        let parts = match pair.counts {
            Some(counts) if !enumerates_itself => {
                edits.push(Edit::before(tokens[counts as usize].start as usize, "__"));
                ["let __p=", first, ";let ", first, "=", second, ";let ", second, "=__p;"]
            }
            _ => ["let ", second, "=", first, "[1];let ", first, "=", first, "[0];"],
        };
        edits.extend(parts.map(|part| Edit::behind(body, part)));
    }
}

/// `${x:.4f}`: where the expression begins, its colon, where the specification ends, and the values in it: `${x:>{w}}`.
struct Format {
    start: usize,
    colon: Range<usize>,
    end: usize,
    values: Vec<Range<usize>>,
}

/// Whether a byte is in no specification, or in a value of one.
fn is_code(formats: &[&Format], at: usize) -> bool {
    let after = formats.partition_point(|format| format.colon.end <= at);
    let Some(format) = after.checked_sub(1).map(|index| formats[index]) else { return true };
    at >= format.end || format.values.iter().any(|value| (value.start..=value.end).contains(&at))
}

/// The specifications of a text's interpolations. No expression has a colon outside of brackets.
fn formats(src: &str, tokens: &[Token]) -> Vec<Format> {
    let mut found = Vec::new();
    for open in (0..tokens.len()).filter(|&index| tokens[index].kind == Kind::TextOpen).map(|index| index + 1) {
        let close = tokens.get(open).map_or(0, |token| token.partner as usize);
        let mut index = open + 1;
        while index < close {
            let token = &tokens[index];
            if begins_format(src, tokens, index) && index > open + 1 {
                let (colon, end) = (token.start as usize..token.start as usize + 1, tokens[close].start as usize);
                // Bound: these would end the string that it becomes.
                if !src[colon.end..end].contains(['"', '`', '\\', '\n', '\r']) {
                    let values = (index..close).filter(|&at| &src[tokens[at].range()] == "{");
                    let inside =
                        |at: usize| tokens[at].end as usize..tokens[tokens[at].partner as usize].start as usize;
                    let values = values.map(inside).collect();
                    found.push(Format { start: tokens[open].end as usize, colon, end, values });
                }
                break;
            }
            index = (token.partner as usize).max(index) + 1;
        }
    }
    found
}

/// Whether a token begins with the colon of a specification, which may begin with `=` or fill with `:`.
fn begins_format(src: &str, tokens: &[Token], index: usize) -> bool {
    let token = tokens[index].range();
    match &src[token.clone()] {
        ":" | ":=" | "::<" => true,
        "::" => src[token.end..].starts_with(['<', '>', '^', '=']),
        _ => false,
    }
}

/// The content of the braces of each `${x}` that is not empty.
fn interpolations(tokens: &[Token]) -> impl Iterator<Item = Range<usize>> {
    let opens = (1..tokens.len()).filter(|&open| tokens[open - 1].kind == Kind::TextOpen);
    let filled = opens.filter(|&open| tokens[open].partner as usize > open + 1);
    filled.map(|open| tokens[open].end as usize..tokens[tokens[open].partner as usize].start as usize)
}

/// Bytes of the specifications in `${x:.4f}`, which are no code.
pub fn specifications(src: &str, tokens: &[Token]) -> Vec<Range<usize>> {
    formats(src, tokens).into_iter().map(|format| format.colon.end..format.end).collect()
}

/// What Rhai would not accept between tokens: a byte order mark, a `#!` line, and a single carriage return, which
/// ends a comment and counts as a line for Rhai but for no editor.
fn blanks(src: &str, tokens: &[Token], start: usize) -> Vec<Edit<'static>> {
    let mut edits = Vec::new();
    let mut replace = |range: Range<usize>, text: &'static str| {
        edits.push(Edit::behind(range.start, text).removing(range.len()));
    };
    let alone = |at: usize| src.as_bytes().get(at) == Some(&b'\r') && src.as_bytes().get(at + 1) != Some(&b'\n');
    if start > 0 {
        replace(0..start, "");
    }
    let mut from = start;
    for gap_end in tokens.iter().map(|token| token.start as usize).chain([src.len()]).enumerate() {
        let (index, end) = gap_end;
        for (offset, _) in src[from..end].match_indices('\r').filter(|(offset, _)| alone(from + offset)) {
            replace(from + offset..from + offset + 1, " ");
        }
        let Some(token) = tokens.get(index) else { break };
        from = token.end as usize;
        if src[token.range()].starts_with('`') && alone(end + 1) {
            replace(end + 1..end + 2, "");
        }
    }
    edits
}

/// Removes line comments: nearly half of the library's text, which Rhai would read character by character and keep.
/// Documentation is read from the original text.
fn comments(src: &str, tokens: &[Token], start: usize) -> Vec<Edit<'static>> {
    let ends = tokens.iter().map(|token| token.end as usize);
    let starts = tokens.iter().map(|token| token.start as usize);
    let mut edits = Vec::new();
    for (from, end) in std::iter::once(start).chain(ends).zip(starts.chain([src.len()])) {
        let gap = src.get(from..end).unwrap_or("");
        // Most gaps are a blank; gaps without line comments, or with block comments, stay.
        if !gap.as_bytes().contains(&b'/') || gap.contains("/*") {
            continue;
        }
        let mut at = from;
        for line in gap.split_inclusive('\n') {
            if let Some(comment) = line.find("//") {
                let (first, removed) = (at + comment, line.trim_end_matches('\n').len() - comment);
                edits.push(Edit::behind(first, "").removing(removed));
            }
            at += line.len();
        }
    }
    edits
}

fn emit(src: &str, tokens: &[Token], edits: Vec<Edit<'_>>, base: u32) -> Rewritten {
    let mut out = Rewritten { text: String::with_capacity(src.len() + 16 * edits.len()), ..Rewritten::default() };
    let mut holes = Vec::new();
    let mut from = 0;
    for edit in &edits {
        out.copy(src, from..edit.at.max(from));
        from = edit.at.max(from) + edit.removed;
        if edit.text.is_empty() {
            continue;
        }
        let Range { start, end } = edit.stands_for;
        if edit.is_moved {
            out.moved.push((start as u32, out.text.len() as u32));
        }
        out.pieces.push(Piece { at: out.text.len() as u32, original: start as u32, end: end as u32, inserted: true });
        let is_part = |letter: char| letter == '_' || letter.is_alphanumeric();
        // `if(x)`: what begins there is no part of the word before it.
        if edit.opens && edit.text.starts_with(is_part) && out.text.ends_with(is_part) {
            out.text.push(' ');
        }
        if let Some(name) = edit.mark {
            holes.push((out.text.len() + MARK.len() - 9, tokens[name as usize].start as usize));
        }
        out.text.push_str(edit.text);
    }
    out.copy(src, from..src.len());
    order::by_key(&mut out.moved, |(start, _)| *start);
    out.line_starts = std::iter::once(0).chain(out.text.match_indices('\n').map(|(at, _)| at as u32 + 1)).collect();
    out.fill(&holes, base);
    let targets = assigned(src, tokens).map(|(at, how)| (out.position(at), how)).collect();
    Rewritten { targets, ..out }
}

/// Positions at which Rhai reports a write of an indexer or a property, and the text contains one.
fn assigned(src: &str, tokens: &[Token]) -> impl Iterator<Item = (usize, Assignment)> {
    let text = |index: usize| tokens.get(index).map_or("", |token: &Token| &src[token.range()]);
    (0..tokens.len()).filter_map(move |index| {
        let end = match text(index) {
            "[" | "?[" => tokens[index].partner as usize,
            _ if tokens[index].kind == Kind::Word && index > 0 && matches!(text(index - 1), "." | "?.") => index,
            _ => return None,
        };
        let how = match text(end + 1) {
            "=" => Assignment::Plain,
            symbol if tree::is_assignment(symbol) => Assignment::Compound,
            _ => return None,
        };
        Some((tokens[index].start as usize, how))
    })
}

impl Rewritten {
    fn copy(&mut self, src: &str, range: Range<usize>) {
        if !range.is_empty() || self.pieces.is_empty() {
            let (at, original) = (self.text.len() as u32, range.start as u32);
            self.pieces.push(Piece { at, original, end: 0, inserted: false });
            self.copies.push((original, at));
            self.text.push_str(&src[range]);
        }
    }

    /// Writes the packed site of each marked call's name over the zeros that reserve its space.
    fn fill(&mut self, holes: &[(usize, usize)], base: u32) {
        let sites: Vec<(usize, u32)> = holes
            .iter()
            .map(|&(hole, original)| {
                let (line, column) = self.position(original);
                let line = line + base;
                let fits = line <= u16::MAX as u32 && column <= u16::MAX as u32;
                (hole, if fits { line << 16 | column } else { 0 })
            })
            .collect();
        for (hole, site) in sites {
            self.text.replace_range(hole..hole + 8, &format!("{site:08x}"));
        }
    }

    /// Lines and columns of assignment targets.
    pub fn targets(&self) -> impl Iterator<Item = (u32, u32)> {
        self.targets.iter().map(|(place, _)| *place)
    }

    /// How the bracket or property at a line and column, both from 1, is assigned to, if it is.
    pub fn assignment(&self, line: u32, column: u32) -> Option<Assignment> {
        let found = self.targets.binary_search_by_key(&(line, column), |(place, _)| *place).ok()?;
        Some(self.targets[found].1)
    }

    /// If a change that nobody sees begins at the name at a line and column, both from 1: of what copy.
    /// The bytes of the parameter where a `for_each` at a place counts in it.
    pub fn each_counted(&self, line: u32, column: u32) -> Option<std::ops::Range<usize>> {
        at_place(&self.each_counted, line, column).cloned()
    }

    pub fn lost(&self, line: u32, column: u32) -> Option<Lost> {
        at_place(&self.lost, line, column).copied()
    }

    pub fn line_count(&self) -> u32 {
        self.line_starts.len() as u32
    }

    /// The first line with more columns than Rhai can count.
    pub fn long_line(&self) -> Option<u32> {
        let mut lines = self.text.split('\n');
        lines
            .position(|line| line.len() > MAX_COLUMNS && line.chars().count() > MAX_COLUMNS)
            .map(|line| line as u32 + 1)
    }

    /// Line and column, from 1, of an original byte in the rewritten text.
    pub fn position(&self, original: usize) -> (u32, u32) {
        let after = self.copies.partition_point(|(start, _)| *start as usize <= original);
        let copied = after.checked_sub(1).map(|index| self.copies[index]);
        let found = self.moved.partition_point(|(start, _)| (*start as usize) < original);
        let moved = self.moved.get(found).filter(|(start, _)| *start as usize == original).copied();
        let at = match moved.or(copied) {
            Some((start, at)) => at as usize + (original - start as usize),
            None => 0,
        };
        let at = self.text.floor_char_boundary(at);
        let line = self.line_starts.partition_point(|start| *start as usize <= at);
        let start = self.line_starts[line - 1] as usize;
        (line as u32, self.text[start..at].chars().count() as u32 + 1)
    }

    /// The original position of a line and column, both from 1; past the end of a line is its end.
    pub fn place(&self, line: u32, column: u32) -> Place {
        let index = (line.max(1) as usize - 1).min(self.line_starts.len() - 1);
        let start = self.line_starts[index] as usize;
        let rest = &self.text[start..];
        let length = rest.find('\n').unwrap_or(rest.len());
        let characters = rest[..length].char_indices().nth(column.max(1) as usize - 1);
        let at = start + characters.map_or(length, |(offset, _)| offset);
        let piece = match self.pieces.partition_point(|piece| piece.at as usize <= at).checked_sub(1) {
            Some(index) => self.pieces[index],
            None => return Place::At(0),
        };
        match (piece.inserted, piece.end > piece.original) {
            (false, _) => Place::At(piece.original as usize + (at - piece.at as usize)),
            (true, false) => Place::At(piece.original as usize),
            (true, true) => Place::For(piece.original as usize..piece.end as usize),
        }
    }
}

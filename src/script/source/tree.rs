//! The structure of a script's expressions: the range of each operator, call and indexer, and the positions that the
//! source pass rewrites.
//!
//! A tolerant parser of Rhai's grammar: it accepts every text that `lex` accepts and reports no errors (Rhai's parser
//! does), so it may misread texts that Rhai refuses. It builds no syntax tree, only a flat list of nodes by token
//! index. Precedences are Rhai's, except that `**` binds tighter than a sign on its left, and `&`, `^` and `|`
//! tighter than comparisons.

use super::hooks::{is_bare_word, is_block_word};
use super::lex::{Kind, Token};
use crate::base::order;
use std::collections::HashSet;

pub use lost::{CopyOf, Lost};
pub use maps::LongMap;
use visible::Visible;

mod expressions;
mod lost;
mod maps;
mod statements;
mod uses;
mod visible;

/// Bound: nesting that is parsed; Rhai's own limit is `base::limits::EXPR_DEPTH`. Keeps the stack small.
const DEPTH: usize = 300;
/// Bound: marked calls of one chain, since each is an expression level for Rhai.
const CHAIN_MARKS: usize = 16;

/// The constant of the session that holds the words of the command line.
const ARGUMENTS: &str = "args";

/// Tokens `first..=last`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub first: u32,
    pub last: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// `a + b`, also `a += b` and `a = b`; `args` are the operands.
    Binary,
    Unary,
    /// `f(a)`, `ns::f(a)`, `r.f(a)`, with the argument list.
    Call,
    Index,
    Property,
}

/// An operation at its focus, the token that Rhai reports as its position.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub kind: NodeKind,
    pub focus: u32,
    pub whole: Run,
    /// The focus with its argument list or brackets.
    pub call: Run,
    pub args: Vec<Run>,
}

/// A call that may enter script code.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mark {
    pub call: Run,
    pub name: u32,
    /// `f(x)`: the call begins with the name.
    pub is_plain: bool,
}

/// How a call names its function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CallForm {
    /// `f(x)`
    Plain,
    /// `x.f()`
    Method,
    /// `module::f(x)`
    Qualified,
}

/// A call: its name and the number of arguments in the parentheses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallSite {
    pub name: u32,
    pub arguments: usize,
    pub form: CallForm,
}

/// `for (a, b) in xs {` where `xs` is an expression that returns pairs: each name gets its part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pairs {
    pub first: u32,
    pub second: u32,
    /// The `{` of the body.
    pub body: u32,
    /// The `enumerate` of `enumerate(xs)`: Rhai counts itself, but names the value first.
    pub counts: Option<u32>,
}

/// `let [a, b] = xs`, `for #{x, y} in batches {`.
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern {
    pub run: Run,
    /// The names that it declares, in order; `_` is none.
    pub names: Vec<u32>,
    pub of: Destructured,
}

/// What a pattern takes apart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Destructured {
    Let(Run),
    Const(Run),
    /// Each value of a loop with this `{`.
    Each(u32),
}

/// `let f = |n| .. f(n - 1)`: the name, the number of parameters, and the body.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recursive {
    pub name: u32,
    pub parameters: usize,
    pub body: Run,
}

/// A method with closures that use its `this`.
#[derive(Clone, PartialEq, Debug)]
pub struct Lent {
    /// The body; of a function with its braces.
    pub body: Run,
    pub is_function: bool,
    /// Each `this` that means the method's.
    pub uses: Vec<u32>,
}

/// A function or closure that is read.
#[derive(Default)]
struct Method<'a> {
    /// The entry or field that holds it, or its own.
    name: Option<&'a str>,
    is_function: bool,
    /// A closure that a map or a field holds: `this` is the map when it is called.
    is_field: bool,
    own: Vec<u32>,
    /// Of closures inside, which have no `this` of their own.
    inner: Vec<u32>,
}

/// A function that the text defines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Definition {
    pub name: u32,
    pub parameters: usize,
    pub uses_this: bool,
}

/// Everything that is found in one pass.
#[derive(Default, Debug)]
pub struct Tree {
    /// By focus.
    pub nodes: Vec<Node>,
    /// Conditions that are not certainly `bool`.
    pub truths: Vec<Run>,
    /// The value of a `switch`, which may be a tensor.
    pub switches: Vec<Run>,
    /// Powers under a sign, and operands made by `&`, `^` or `|`: Rhai's precedence differs.
    pub groups: Vec<Run>,
    /// `[` and `]` of `x[a, b]`.
    pub index_lists: Vec<Run>,
    /// The two operators of `a < b < c`.
    pub chained: Vec<(u32, u32)>,
    /// `{` and `}` of `try` blocks.
    pub tries: Vec<Run>,
    /// `;` after a call whose value is not used, followed by another statement.
    pub dropped: Vec<u32>,
    /// `{` and `}` of `for` loops without a statement.
    pub idle_loops: Vec<Run>,
    /// The iterable of `for (a, b) in values`, if `b` does not look like a counter.
    pub counted: Vec<Run>,
    /// Those of them that certainly give pairs.
    pub counted_pairs: Vec<Run>,
    pub marks: Vec<Mark>,
    /// Assignments to an element or property of a call's result: the whole, and the call.
    pub temporaries: Vec<(Run, Run)>,
    /// `m[k]` and `m.k` before `??`, with their `[` or name: a missing entry is no error there.
    pub asked: Vec<(Run, u32)>,
    /// Names before a `;` that end a statement which only reads a property: `opt.step;`.
    pub unused_properties: Vec<u32>,
    /// Names of functions that are reserved in Rhai.
    pub renamed: Vec<u32>,
    /// `(` and `)` of `no_grad() { .. }`.
    pub bare: Vec<Run>,
    /// `(` and `)` of `autocast(d, o) { .. }`.
    pub listed: Vec<Run>,
    /// Literals that Rhai's parser refuses where they stand, although a variable with their value works.
    pub veiled: Vec<Run>,
    /// `}` of block forms that are statements, with another statement behind them.
    pub ended: Vec<u32>,
    /// `with_device(d, || body)`: the name, the `||`, and the body, which runs in place.
    pub inlined: Vec<(u32, u32, Run)>,
    pub calls: Vec<CallSite>,
    pub definitions: Vec<Definition>,
    /// Strings that name functions: `Fn("f")`.
    pub quoted: Vec<u32>,
    /// Names that are used as values.
    pub values: Vec<u32>,
    /// Those of them that no variable has where they stand.
    pub free: Vec<u32>,
    /// Names of variables that closures take along, where they use them.
    pub captured: Vec<u32>,
    /// Names that are declared: variables, parameters, aliases.
    pub declared: Vec<u32>,
    /// Names of calls `module::f(x)` that are not in a native module.
    pub qualified: Vec<u32>,
    /// `_` where a name is declared: the value is ignored.
    pub ignored: Vec<u32>,
    /// Loops over pairs.
    pub pairs: Vec<Pairs>,
    /// `f(x)` where `f` is a variable: the name and the parenthesis at the end; and whether it is a constant that a
    /// function names.
    pub applied: Vec<(Run, bool)>,
    /// `(` of a call of what an element or another call gives: `fs[0](x)`.
    pub applied_values: Vec<u32>,
    /// Constants of the text, or of earlier ones, that a function names.
    pub outer_constants: Vec<u32>,
    /// `args` where no variable has the name: in functions and modules.
    pub arguments: Vec<u32>,
    /// `for_each` with a closure of one parameter that does not use `this`, and the parameter.
    pub each_counted: Vec<(u32, u32)>,
    pub patterns: Vec<Pattern>,
    /// Closures that name the variable which will hold them.
    pub recursive: Vec<Recursive>,
    /// Methods whose closures see their `this`.
    pub lent: Vec<Lent>,
    /// Where changes of copies begin that nobody sees if the values are arrays or maps.
    pub lost: Vec<Lost>,
    /// Map literals of very many entries.
    pub long_maps: Vec<LongMap>,
    /// The token at which nesting exceeds the limit.
    pub too_deep: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Certainly `bool`.
    Bool,
    /// Never equal to a tensor element by element: a string or `()`.
    Opaque,
    Power,
    /// By `&`, `^` or `|`.
    Bits,
    /// By `<`, `<=`, `>` or `>=`, whose operator is the token.
    Ordered(u32),
    Other,
}

#[derive(Clone, Copy)]
struct Expr {
    run: Run,
    shape: Shape,
}

struct Reader<'a> {
    src: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// In the head of `if`, `while`, `for`, `switch`: a `{` starts the body.
    head: bool,
    /// In the pattern of a `switch` case: `|` separates.
    pattern: bool,
    own_functions: HashSet<&'a str>,
    is_native: &'a dyn Fn(&str) -> bool,
    /// Variables in scope, the latest last; first come those of earlier texts.
    visible: Visible<'a>,
    /// How many of them are of earlier texts.
    earlier: usize,
    /// How many of them are outside of the closure that is read.
    outside: usize,
    /// Constants of the top level, which functions see.
    constants: HashSet<&'a str>,
    /// Constants that code sees everywhere, see `Earlier`.
    around: HashSet<&'a str>,
    in_function: bool,
    /// The variables whose values are the closures that are read, and whether they were named there.
    holders: Vec<(&'a str, bool)>,
    /// The functions and closures around.
    methods: Vec<Method<'a>>,
    /// The bodies around whose variables are copies.
    copies: Vec<uses::Uses>,
    /// The loops so far.
    loops: uses::Loops,
    /// How many blocks are around.
    blocks: usize,
    /// Names of methods that change their `this`.
    changers: HashSet<&'a str>,
    /// The closure that comes next is the value of a map's entry or of a field.
    field: bool,
    /// The entry or field.
    entry: Option<&'a str>,
    tree: Tree,
}

/// Parses the whole text. `is_native(name)` says that a function, method or `ns::name` never runs script code; such
/// calls are not marked. `earlier` has the variables of earlier texts.
pub fn read(src: &str, tokens: &[Token], is_native: &dyn Fn(&str) -> bool, earlier: &Earlier) -> Tree {
    let text = |token: &Token| &src[token.range()];
    let own_functions = tokens.windows(2).filter(|pair| text(&pair[0]) == "fn").map(|pair| text(&pair[1])).collect();
    let constants = top_declared(src, tokens, "const").chain(earlier.constants.iter().map(String::as_str)).collect();
    let around = earlier.around.iter().map(String::as_str).collect();
    let mut reader = Reader {
        src,
        tokens,
        at: 0,
        depth: 0,
        head: false,
        pattern: false,
        own_functions,
        is_native,
        earlier: earlier.variables.len(),
        outside: 0,
        visible: earlier.variables.iter().map(String::as_str).collect(),
        constants,
        around,
        in_function: false,
        holders: Vec::new(),
        methods: Vec::new(),
        copies: Vec::new(),
        loops: uses::Loops::default(),
        blocks: 0,
        changers: HashSet::new(),
        field: false,
        entry: None,
        tree: Tree::default(),
    };
    reader.statements(tokens.len());
    reader.copies_end(0);
    reader.settle_lost();
    order::by_key(&mut reader.tree.nodes, |node| node.focus);
    reader.tree
}

/// Names that texts which ran before have left.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Earlier {
    pub variables: Vec<String>,
    /// Those of them that cannot be changed.
    pub constants: Vec<String>,
    /// Constants that are no variables here: those of the text around the function in which an `eval` stands.
    pub around: Vec<String>,
}

impl Earlier {
    pub const NONE: Earlier = Earlier { variables: Vec::new(), constants: Vec::new(), around: Vec::new() };
}

/// What a text declares outside of all blocks by a keyword, `let` or `const`, also with patterns.
pub fn top_declared<'a>(src: &'a str, tokens: &'a [Token], keyword: &'a str) -> impl Iterator<Item = &'a str> {
    let text = |at: usize| tokens.get(at).map_or("", |token| &src[token.range()]);
    let is_symbol = |at: usize| tokens[at].kind == Kind::Symbol;
    let mut at = 0;
    let mut found = Vec::new();
    while at < tokens.len() {
        let declares = tokens[at].kind == Kind::Word && text(at) == keyword;
        at = if text(at) == "{" && is_symbol(at) { tokens[at].partner as usize } else { at } + 1;
        match tokens.get(at).map(|next| next.kind) {
            Some(Kind::Word) if declares => found.push(at as u32),
            Some(Kind::Symbol) if declares && matches!(text(at), "[" | "#{") => {
                found.extend(pattern_names(src, tokens, at));
            }
            _ => {}
        }
    }
    found.into_iter().map(|name| &src[tokens[name as usize].range()])
}

/// Whether an expression may begin with a token: its kind, None at the end, and its text.
pub fn starts_expression(kind: Option<Kind>, text: &str) -> bool {
    match kind {
        None | Some(Kind::TextEnd) => false,
        Some(Kind::Word) => !matches!(
            text,
            "let" | "const" | "else" | "until" | "in" | "catch" | "fn" | "private" | "import" | "export" | "as"
        ),
        Some(Kind::Symbol) => {
            matches!(text, "(" | "[" | "{" | "#{" | "-" | "+" | "!" | "|" | "||" | ".." | "..=" | "..." | "--" | "++")
        }
        Some(_) => true,
    }
}

/// Keywords. `eval`, `print` and the like are names that Rhai reserves.
pub fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "let" | "const" | "if" | "else" | "switch" | "do" | "while" | "until" | "loop" | "for" | "in" | "continue"
    ) || matches!(
        word,
        "break"
            | "return"
            | "throw"
            | "try"
            | "catch"
            | "fn"
            | "private"
            | "import"
            | "export"
            | "as"
            | "true"
            | "false"
    )
}

pub fn binary_precedence(symbol: &str) -> Option<u8> {
    Some(match symbol {
        "||" => 30,
        "&&" => 60,
        "==" | "!=" => 90,
        "in" | "!in" => 110,
        "<" | "<=" | ">" | ">=" => 130,
        "??" => 135,
        ".." | "..=" => 140,
        "|" => 142,
        "^" => 144,
        "&" => 146,
        "+" | "-" => 150,
        "*" | "/" | "%" | "@" => 180,
        "<<" | ">>" => 210,
        _ => return None,
    })
}

/// `=`, `+=` and so on.
pub fn is_assignment(symbol: &str) -> bool {
    matches!(symbol, "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "**=" | "<<=" | ">>=" | "&=" | "|=" | "^=")
}

/// Whether the parenthesis `open` of an expression that began at `first` calls what stands before it: an element, the result of
/// a call, what is in parentheses, or `this`. On a line of its own it does not.
pub fn calls_a_value(src: &str, tokens: &[Token], first: usize, open: usize) -> bool {
    if open <= first {
        return false;
    }
    let before = &tokens[open - 1];
    let is_this = open == first + 1 && &src[before.range()] == "this";
    (is_this || before.kind == Kind::Symbol && matches!(&src[before.range()], "]" | ")"))
        && !src[before.end as usize..tokens[open].start as usize].contains('\n')
}

/// The `}` of the block form here if it is a statement of its own, which begins with the token `at`: as an `if`, it ends
/// there. Not where a property of its value follows.
pub fn block_statement(src: &str, tokens: &[Token], at: usize) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |token| &src[token.range()]);
    let partner = |at: usize| tokens[at].partner as usize;
    let open = match text(at + 1) {
        "(" if is_block_word(text(at)) => partner(at + 1) + 1,
        "{" if is_bare_word(text(at)) => at + 1,
        _ => return None,
    };
    let close = (text(open) == "{" && tokens[at].kind == Kind::Word).then(|| partner(open))?;
    (!matches!(text(close + 1), "." | "?.")).then_some(close)
}

/// Whether the brace `open` behind the word `at`, or behind its arguments, begins a block form in the head of a statement:
/// the condition goes on behind its `}`, as in `if no_grad { y } > 0 { .. }`. Otherwise it begins the body.
pub fn block_in_head(src: &str, tokens: &[Token], at: usize, open: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| &src[token.range()]);
    let is_form = if open == at + 1 { is_bare_word(text(at)) } else { is_block_word(text(at)) };
    let mut next = tokens[open].partner as usize + 1;
    let goes_on = || binary_precedence(text(next)).is_some() || matches!(text(next), "{" | "." | "?." | "[" | "**");
    if !is_form || !goes_on() {
        return false;
    }
    while !matches!(text(next), "{" | "" | ";" | "," | "}" | ")" | "]") {
        next = tokens[next].partner as usize + 1;
    }
    text(next) == "{"
}

/// The names that a pattern declares, which begins with the bracket `open`: those before a `:` are keys.
pub fn pattern_names(src: &str, tokens: &[Token], open: usize) -> Vec<u32> {
    let text = |at: usize| tokens.get(at).map_or("", |token| &src[token.range()]);
    let is_name =
        |&at: &usize| tokens[at].kind == Kind::Word && !is_keyword(text(at)) && text(at) != "_" && text(at + 1) != ":";
    (open + 1..tokens[open].partner as usize).filter(is_name).map(|at| at as u32).collect()
}

fn runs(exprs: &[Expr]) -> Vec<Run> {
    exprs.iter().map(|expr| expr.run).collect()
}

impl<'a> Reader<'a> {
    fn text_at(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| &self.src[token.range()])
    }

    /// The current token's text if it is a word or symbol, so that a string `"if"` is not a keyword.
    fn peek(&self) -> &'a str {
        match self.tokens.get(self.at) {
            Some(token) if matches!(token.kind, Kind::Word | Kind::Symbol) => self.text_at(self.at),
            _ => "",
        }
    }

    fn kind(&self) -> Option<Kind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn is_name(&self) -> bool {
        self.kind() == Some(Kind::Word) && !is_keyword(self.text_at(self.at))
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.peek() == text && !text.is_empty();
        self.at += found as usize;
        found
    }

    fn run_from(&self, first: usize) -> Run {
        Run { first: first as u32, last: self.at.max(first + 1) as u32 - 1 }
    }

    /// Enters a nested level if that is allowed; otherwise skips the rest of the text.
    fn down(&mut self) -> bool {
        self.depth += 1;
        if self.depth > DEPTH {
            self.tree.too_deep.get_or_insert(self.at.min(self.tokens.len().saturating_sub(1)) as u32);
            self.at = self.tokens.len();
        }
        self.depth <= DEPTH
    }

    /// Parses a nested level, if that is allowed.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let found = if self.down() { read(self) } else { None };
        self.depth -= 1;
        found
    }

    fn node(&mut self, kind: NodeKind, focus: usize, first: usize, call: Run, args: Vec<Run>) {
        let whole = self.run_from(first);
        self.tree.nodes.push(Node { kind, focus: focus as u32, whole, call, args });
    }
}

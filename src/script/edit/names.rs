//! The names that a text declares, and where it uses them.

use super::resolve::Resolver;
use crate::script::check::reading::Reading;
use crate::script::source::lex::Kind;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolKind {
    Variable,
    Constant,
    Parameter,
    Function,
    /// The name of an imported module.
    Import,
}

/// A declared name.
#[derive(Debug)]
pub struct Symbol {
    pub name: String,
    pub kind: SymbolKind,
    /// Where it is declared.
    pub token: u32,
    /// Tokens among which it can be named; functions see only constants, imports and functions of the outside.
    pub visible: Range<u32>,
    /// The function around, as a symbol.
    pub owner: Option<usize>,
    /// Outside of all blocks: other files may use it.
    pub is_top: bool,
    /// Of a function.
    pub params: Vec<String>,
    /// First and last token of its declaration.
    pub whole: (u32, u32),
    /// `#{x}` in a pattern: the name is also that of the entry.
    pub is_entry: bool,
    /// What gives it a value, other than an assignment.
    pub comes_from: ComesFrom,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComesFrom {
    Elsewhere,
    /// `catch (e)`
    Caught,
    /// A loop over what has its focus at a token.
    Loop(u32),
}

/// `nn::linear`: a name in a module.
#[derive(Debug)]
pub struct Qualified {
    /// Of the name after the last `::`.
    pub token: u32,
    /// What stands before it: `nn`.
    pub space: String,
    pub is_call: bool,
    pub owner: Option<usize>,
}

/// A call of a function of the text.
#[derive(Debug)]
pub struct Call {
    pub token: u32,
    pub function: usize,
    pub owner: Option<usize>,
}

/// `import "path" as alias`
#[derive(Debug)]
pub struct Import {
    pub path: String,
    /// The string.
    pub path_token: u32,
    pub alias: String,
    /// The `import`.
    pub first: u32,
}

/// All names of a text.
#[derive(Default, Debug)]
pub struct Names {
    pub symbols: Vec<Symbol>,
    /// Symbols by the tokens that declare them.
    pub declared: BTreeMap<u32, usize>,
    /// Symbols by the tokens that use them; declarations are not among them.
    pub uses: BTreeMap<u32, usize>,
    pub qualified: Vec<Qualified>,
    pub calls: Vec<Call>,
    pub imports: Vec<Import>,
}

impl Names {
    pub fn of(reading: &Reading) -> Names {
        let mut names = Resolver::new(reading).names();
        names.imports = imports(reading);
        names.declared = names.symbols.iter().enumerate().map(|(at, symbol)| (symbol.token, at)).collect();
        names
    }

    /// The symbol that a token declares or uses.
    pub fn at(&self, token: u32) -> Option<usize> {
        self.uses.get(&token).or_else(|| self.declared.get(&token)).copied()
    }

    /// The tokens that name a symbol, its declaration first.
    pub fn all(&self, symbol: usize) -> Vec<u32> {
        let used = self.uses.iter().filter(|(_, used)| **used == symbol).map(|(token, _)| *token);
        self.symbols.get(symbol).map(|symbol| symbol.token).into_iter().chain(used).collect()
    }

    /// What a name at a token could mean; inner declarations come later.
    pub fn visible(&self, token: u32) -> impl Iterator<Item = &Symbol> {
        let function = self.function_around(token);
        self.symbols.iter().filter(move |symbol| {
            let outside = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Constant | SymbolKind::Import);
            let seen = symbol.kind == SymbolKind::Function || symbol.visible.contains(&token);
            seen && (symbol.owner == function || (symbol.owner.is_none() && outside))
        })
    }

    /// The function whose definition contains a token.
    pub fn function_around(&self, token: u32) -> Option<usize> {
        let inside =
            |symbol: &Symbol| symbol.kind == SymbolKind::Function && (symbol.whole.0..=symbol.whole.1).contains(&token);
        self.symbols.iter().position(inside)
    }

    /// The functions that the text defines.
    pub fn functions(&self) -> impl Iterator<Item = (usize, &Symbol)> {
        self.symbols.iter().enumerate().filter(|(_, symbol)| symbol.kind == SymbolKind::Function)
    }

    /// The path of the module that a name stands for.
    pub fn module(&self, alias: &str) -> Option<&str> {
        self.imports.iter().find(|import| import.alias == alias).map(|import| import.path.as_str())
    }
}

fn imports(reading: &Reading) -> Vec<Import> {
    let begins = |at: &usize| {
        reading.tokens[*at].kind == Kind::Word
            && reading.word(*at) == "import"
            && reading.tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Str)
    };
    let import = |at: usize| {
        let alias = if reading.word(at + 2) == "as" { reading.word(at + 3) } else { "" };
        let path = reading.word(at + 1).trim_matches('"').to_string();
        Import { path, path_token: at as u32 + 1, alias: alias.to_string(), first: at as u32 }
    };
    (0..reading.tokens.len()).filter(begins).map(import).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> (Reading, Names) {
        let reading = Reading::of_text(text);
        let names = Names::of(&reading);
        (reading, names)
    }

    /// For each use of a name: on which line it is declared.
    fn declared(text: &str, name: &str) -> Vec<usize> {
        let (reading, names) = names(text);
        let line = |token: u32| text[..reading.tokens[token as usize].start as usize].matches('\n').count() + 1;
        let of_name = names.uses.iter().filter(|(token, _)| reading.word(**token as usize) == name);
        of_name.map(|(_, symbol)| line(names.symbols[*symbol].token)).collect()
    }

    #[test]
    fn names_mean_the_innermost_declaration() {
        assert_eq!(declared("let x = 1;\n{ let x = x;\n x }\nx", "x"), [1, 2, 1]);
        assert_eq!(declared("let x = 1;\nlet f = |x| x + 1;\nx", "x"), [2, 1]);
        assert_eq!(declared("let x = 1;\nfor x in [x] {\n x }\nx", "x"), [1, 2, 1]);
        assert_eq!(declared("try { 1 }\ncatch (e) { e }", "e"), [2]);
        assert_eq!(declared("let a = 1;\nprint(`${a} ${a + 1}`);", "a"), [1, 1]);
        assert_eq!(declared("let #{a, b: c} = m();\na + c", "a"), [1]);
    }

    #[test]
    fn functions_see_constants_and_functions_of_the_outside() {
        assert_eq!(
            declared("let x = 1;\nconst K = 2;\nfn f(y) { x + K + global::K + g(y) }\nfn g(z) { z }", "x"),
            [0; 0]
        );
        let text = "const K = 2;\nfn f(y) { K + global::K + g(y) }\nfn g(z) { z }\nlet h = Fn(\"g\");";
        assert_eq!(declared(text, "K"), [1, 1]);
        assert_eq!(declared(text, "g"), [3]);
        assert_eq!(declared(text, "\"g\""), [3]);
        assert_eq!(declared("fn f(a) { a }\nfn f(a, b) { b }\nf(1, 2);\nf(1)", "f"), [2, 1]);
    }

    #[test]
    fn modules_are_used_by_what_stands_before_the_colons() {
        let text = "import \"nn\" as n;\nlet f = n::linear(1, 2);\nfn g() { n::relu() }";
        assert_eq!(declared(text, "n"), [1, 1]);
        let (_, names) = names(text);
        assert_eq!(names.module("n"), Some("nn"));
        assert_eq!(names.qualified.len(), 2);
    }

    #[test]
    fn what_is_visible_ends_with_its_block() {
        let text = "let a = 1; { let b = 2; here } let c = 3; fn f(p) { there }";
        let (reading, names) = names(text);
        let at = |word: &str| {
            let token = (0..reading.tokens.len()).find(|&at| reading.word(at) == word).expect("a token");
            names.visible(token as u32).map(|symbol| symbol.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(at("here"), ["f", "a", "b"]);
        assert_eq!(at("there"), ["f", "p"]);
    }
}

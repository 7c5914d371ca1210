//! Habits from other languages that cause parse errors: which word is wrong, and what to write instead.
//!
//! Uses the words around an error, not a grammar.

use super::parse::Around;
use super::paths;
use rhai::ParseErrorType;

/// What is wrong and what to write.
pub(super) struct Habit {
    /// The word that is wrong; with `None` the parser's own message is used.
    pub word: Option<Word>,
    /// A message in place of "has no meaning here".
    pub message: Option<&'static str>,
    pub help: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Before,
    Found,
}

fn help(help: impl Into<String>) -> Option<Habit> {
    Some(Habit { word: None, message: None, help: help.into() })
}

fn word(word: Word, help: impl Into<String>) -> Option<Habit> {
    Some(Habit { word: Some(word), message: None, help: help.into() })
}

fn message_or(message: &'static str, help: impl Into<String>) -> Option<Habit> {
    Some(Habit { word: Some(Word::Found), message: Some(message), help: help.into() })
}

const CHOICE: &str = "a choice has a value: `let x = if a { 1 } else { 2 };`";
const BLOCKS: &str = "blocks need braces: `if x { .. }`";
const RESULTS: &str = "several names stand in brackets, `let [a, b] = [1, 2];`; results have names of their own: `let #{values, indices} = x.max(1);`";
const ONE_LET: &str = "several names stand in brackets: `let [a, b] = x.shape;`, of a map `let #{x, y} = batch;`";
const TWO_NAMES: &str =
    "several names stand in brackets: `for [i, x] in enumerate(xs)`, `for [a, b, c] in zip(xs, ys, zs)`";
const SPREAD: &str = "values are not spread: give the array or map itself, `f(x.shape)`";
const MAPS: &str = "a map is written `#{a: 1}`, and `m.a` or `m[\"a\"]` reads it";
const DEFAULTS: &str =
    "parameters have no default values; functions of one name may take different numbers: `fn f(x) { f(x, 2) }`";
const UNPACK: &str = "take the value apart inside: `|pair| { let [a, b] = pair; a + b }`";
const NO_TYPES: &str = "names have no types here: `fn f(x) { x + 1 }`, `let x = 1;`";
const LISTS: &str = "a list is made of another by `xs.map(|x| 2 * x)` and `xs.filter(|x| x > 0)`";
const COUNTED: &str = "write `for i in 0..n { .. }`, `for x in xs { .. }`";
const CASES: &str = "a case is a number, a string, a range or `_`: `switch x { 1 => .., 2..5 => .., _ if x > 9 => .., _ => .. }`; what a value is made of is asked by `if`";
const TRIES: &str = "write `try { .. } catch (e) { .. }`";
/// For `a // b`.
pub(super) const FLOOR: &str = "`//` begins a comment; division without a remainder is `a.floor_divide(b)`";

/// Whether the parser expected this symbol here.
fn misses(kind: &ParseErrorType, symbol: &str) -> bool {
    matches!(kind, ParseErrorType::MissingToken(token, _) if token == symbol)
}

/// The habit that explains an error, if any.
pub(super) fn habit(kind: &ParseErrorType, near: &Around) -> Option<Habit> {
    separators(kind, near).or_else(|| by_start(near)).or_else(|| by_neighbors(kind, near))
}

/// Errors where `,`, `)`, `{` or `;` was expected.
fn separators(kind: &ParseErrorType, near: &Around) -> Option<Habit> {
    let in_parameters = matches!(kind, ParseErrorType::MissingToken(_, text) if text.contains("parameters") || text.contains("anonymous"));
    if in_parameters && !misses(kind, ",") && matches!(near.found, "[" | "(" | "#{") {
        return message_or("a parameter is a name, and no pattern", UNPACK);
    }
    if misses(kind, ",") && near.found == ";" && near.statement.starts_with("switch") {
        return help("arms end with commas: `switch x { 1 => a, 2 => { b; }, _ => c }`");
    }
    if misses(kind, ",") {
        return match near.found {
            ":" if is_format(near.rest) => message_or(
                "a format belongs inside `${..}`",
                "text with values in it is written between backticks: `loss ${loss:.4f}`",
            ),
            "=" if near.start == "for" => help(COUNTED),
            "=" if in_parameters => message_or("a parameter has no default value", DEFAULTS),
            ":" if in_parameters => message_or("a parameter has no type", NO_TYPES),
            "=" | ":" => message_or("an argument has no name", keyword(near)),
            "for" => word(Word::Found, LISTS),
            "if" => word(Word::Found, CHOICE),
            "::" => message_or(
                "`::` is no part of an index",
                "a part with a step is `x[slice(0, (), 2)]`, `()` for an open end",
            ),
            found if found.starts_with(['"', '\'']) => match near.before {
                "f" => help("text with values in it is written between backticks: `loss ${x:.4f}`"),
                "r" | "b" => help("text between backticks has no escapes"),
                _ => None,
            },
            _ => None,
        };
    }
    if misses(kind, ")")
        && near.found == ","
        && matches!(kind, ParseErrorType::MissingToken(_, text) if text.contains("catch"))
    {
        return message_or("`catch` takes one name", TRIES);
    }
    if misses(kind, ")") && near.found == "," && near.start != "for" {
        return help("several values are an array: `zeros([2, 3])`, `x.sum([0, 1])`");
    }
    if misses(kind, ")") && near.found == ":" && near.statement.contains("catch") {
        return message_or("a name has no type", TRIES);
    }
    if misses(kind, "{") {
        return match (near.before, near.found) {
            ("catch", _) => message_or("the name after `catch` stands in parentheses", TRIES),
            (_, "not") if near.after == "in" => word(Word::Found, "write `!(x in xs)`"),
            (_, ":") => help(BLOCKS),
            _ => None,
        };
    }
    if misses(kind, ";") && near.found == ":" && (near.before.starts_with(['"', '\'']) || near.earlier == "{") {
        return help(MAPS);
    }
    if misses(kind, ";") && near.in_braces && near.found == "," {
        return help("several values are an array: `[1, 2]`; a map is written `#{a: 1}`");
    }
    if misses(kind, ";") && near.found == "{" && near.statement.contains("function") {
        return help("a function without a name is a closure: `|x| x + 1`");
    }
    if misses(kind, "=>") && near.before == "default" {
        return word(Word::Before, "the last arm of a `switch` is `_ => ..`");
    }
    if misses(kind, "(") && near.earlier == "vec" {
        return help("an array is written `[1, 2]`, the empty one `[]`");
    }
    if misses(kind, ":") && matches!(near.found, "," | "}") {
        return help(format!("each entry has its value: `#{{{0}: {0}}}`", near.before));
    }
    if matches!(kind, ParseErrorType::ExprExpected(what) if what.ends_with("literal")) {
        return message_or("this is no case of a `switch`", CASES);
    }
    if misses(kind, ":") && near.found == "=" {
        return message_or("an entry of a map is written with `:`", MAPS);
    }
    None
}

/// `:.4f` of Python's formats, right after a value.
fn is_format(rest: &str) -> bool {
    let Some(format) = rest.strip_prefix(':') else { return false };
    let end = format.find([',', ')', '}', ' ', '"', '`']).unwrap_or(format.len());
    let format = &format[..end];
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | '<' | '>' | '^' | '+' | '_');
    let kind = format.trim_start_matches(digits);
    format.len() > kind.len() && matches!(kind, "f" | "e" | "g" | "d" | "%" | "s" | "x")
}

/// `f(x, lr=0.1)`: shows the map to write.
fn keyword(near: &Around) -> String {
    let rest = near.rest.trim_start_matches(['=', ':', ' ']);
    let end = match rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
        None => rest.find([',', ')', '\n']).unwrap_or(rest.len()),
    };
    let value = rest[..end].trim();
    let is_plain = !value.is_empty() && !value.contains(['(', '[', '{', '|']);
    let value = match value {
        "True" => "true".to_string(),
        "False" => "false".to_string(),
        "None" => "()".to_string(),
        // `'cuda'`, `torch.float32`.
        other if other.starts_with('\'') => other.replace('\'', "\""),
        other if other.contains('.') && !other.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            format!("\"{}\"", other.rsplit('.').next().unwrap_or(other))
        }
        other => other.to_string(),
    };
    // `print(x, end="")`
    if near.before == "end" && near.start == "print" {
        return "`print` ends the line: join the pieces and print them at once, `print(parts.join(\"\"))`".to_string();
    }
    match is_plain {
        true => format!("arguments with a name go into a map at the end: `#{{{}: {value}}}`", near.before),
        false => format!("arguments with a name go into a map at the end: `#{{{}: ..}}`", near.before),
    }
}

/// Habits recognized by the first word of the statement.
fn by_start(near: &Around) -> Option<Habit> {
    let first = near.is_first;
    match near.start {
        "import" if !near.statement.contains(['"', '`']) => {
            let path = paths::path(near.statement.trim_start_matches("import").trim_start());
            let message = Some(paths::IMPORT);
            return Some(Habit { word: Some(Word::Before), message, help: paths::import(&path) });
        }
        "import" if near.found == "," => return help("each `import` is a statement of its own"),
        "from" if first => {
            let path: Vec<&str> =
                near.statement.split([' ', '.', ',']).filter(|part| !part.is_empty()).skip(1).collect();
            return word(Word::Before, paths::import(&path));
        }
        _ if near.found == "," && (near.start == "return" || near.earlier == "return") => {
            return help("several values are an array: `return [1, 2];`");
        }
        "let" | "const" if near.found == ":" && matches!(near.earlier, "let" | "const" | "mut") => {
            return message_or("a variable has no type", NO_TYPES);
        }
        "let" if near.found == "=>" || near.found == "->" => {
            return word(Word::Found, "a closure is written `|x| x + 1`, and called as `f(1)`");
        }
        "from" if near.statement.contains(" import ") => {
            return help(
                "files beside the script are imported whole: `import \"utils\" as utils;`, then `utils::f(x)`",
            );
        }
        _ if near.found == "," && first && near.statement.contains('(') => {
            return help("several results have names: `let r = x.max(1);`, then `r.values` and `r.indices`");
        }
        _ if near.found == "," && first => {
            return help("one assignment for each variable: `let t = a; a = b; b = t;`");
        }
        _ if near.found == ":" && first && near.start.starts_with(char::is_alphabetic) => match near.start {
            "else" | "try" | "loop" | "do" | "finally" | "except" => return help(BLOCKS),
            _ => return message_or("a variable has no type", NO_TYPES),
        },
        _ => {}
    }
    None
}

/// Habits recognized by the words on both sides of the position.
fn by_neighbors(kind: &ParseErrorType, near: &Around) -> Option<Habit> {
    use Word::{Before, Found};
    match (near.before, near.found) {
        ("var" | "auto" | "mut" | "int" | "float" | "double" | "string" | "bool" | "val", _) => {
            word(Before, "declare a variable with `let`: `let x = 1;`")
        }
        ("def" | "function" | "func" | "fun", _) => word(Before, "define a function with `fn`: `fn f(x) { x + 1 }`"),
        ("import", "*") => help("a module is imported under a name: `import \"nn\" as nn;`, then `nn::linear(2, 3)`"),
        (_, "import") => help("`import \"nn\" as nn;` is a statement of its own; what it has is `nn::linear(2, 3)`"),
        (_, "\\") => help("lines need no mark at their end: open brackets continue on the next one"),
        (_, "elif") => word(Found, "write `else if`"),
        ("elif", _) => word(Before, "write `else if`"),
        (_, "and") => word(Found, "write `&&`"),
        (_, "or") => word(Found, "write `||`"),
        (_, "not") if near.after == "in" => word(Found, "write `!(x in xs)`"),
        ("not", _) => word(Before, "write `!`"),
        (_, "is") => word(Found, "compare with `==`, or with `!=`"),
        ("is", _) => word(Before, "compare with `==`, or with `!=`"),
        (_, "elsif" | "elseif") => word(Found, "write `else if`"),
        ("elsif" | "elseif", _) => word(Before, "write `else if`"),
        ("foreach", _) => word(Before, "write `for x in xs { .. }`"),
        ("repeat", _) => word(Before, "write `for i in 0..n { .. }`"),
        ("unless", _) => word(Before, "write `if !x { .. }`"),
        ("use" | "include" | "require" | "using", _) => word(Before, "write `import \"nn\" as nn;`"),
        ("echo" | "puts", _) => word(Before, "`print` is a function: `print(x, y)`"),
        ("export", "fn") => word(Before, "functions of a file are seen from outside, unless they are `private`"),
        (_, "let" | "const" | "var") if near.start == "for" => help(COUNTED),
        ("in", "{") if near.start == "for" => help(COUNTED),
        (_, "of") if near.start == "for" => word(Found, "write `for x in xs { .. }`"),
        ("if" | "while", "let") => {
            help("a pattern is no condition: `let v = m.get(\"a\"); if v != () { let [a, b] = v; .. }`")
        }
        ("typeof", _) => word(Before, "write `type_of(x)`"),
        (_, "instanceof") => word(Found, "write `type_of(x) == \"array\"`"),
        (_, "as") if misses(kind, ";") => {
            word(Found, "a value is converted by a function: `int(x)`, `float(x)`, `str(x)`")
        }
        ("pub", _) => {
            word(Before, "leave it out: functions of a file are seen from outside, unless they are `private`")
        }
        ("mod", _) => word(Before, "write `import \"layers\" as layers;`"),
        ("(" | "," | "=" | "[" | "return", "&") => {
            help("leave it out: tensors are shared, and arrays and maps are copied when a function gets them")
        }
        ("match", _) => word(Before, "write `switch x { 1 => .., _ => .. }`"),
        ("case", _) => word(Before, "write `switch x { 1 => .., _ => .. }`"),
        ("new", _) => {
            word(Before, "there is no `new`: call the function that makes the value, or write a map `#{ .. }`")
        }
        ("lambda", _) => word(Before, "write a closure: `|x| x + 1`"),
        ("class" | "struct" | "impl" | "interface" | "trait" | "enum", _) => word(
            Before,
            "there are no classes: a map `#{ .. }` holds values and closures, which see it as `this`; a layer is `nn::module(#{ .. })`",
        ),
        ("del" | "delete", _) => word(
            Before,
            "leave it out: memory is freed when no variable holds a value any more; `m.remove(key)` takes out an entry",
        ),
        ("raise", _) => word(Before, "write `throw \"what is wrong\"`"),
        ("global" | "nonlocal", _) => word(
            Before,
            "a function changes no variable of the outside: it takes arguments and returns what is new; a `cell(v)` is shared",
        ),
        ("yield", _) => {
            word(Before, "there are no generators: collect the values in an array, or take a closure and call it")
        }
        (_, "except" | "finally") => word(Found, TRIES),
        ("except" | "finally", _) => word(Before, TRIES),
        ("assert", _) => word(Before, "`assert` is a function: `assert(x == y, \"why\")`"),
        (_, "try") => message_or(
            "`try` has no value",
            "declare the variable before it and assign it inside: `let v = (); try { v = f(); } catch (e) { v = 2; }`",
        ),
        (_, "print") if near.rest.starts_with("print(*") => help(SPREAD),
        (_, "print") if matches!(kind, ParseErrorType::Reserved(_)) => help("`print` is a function: `print(x, y)`"),
        (_, "else") => {
            message_or("`else` belongs to no `if`", "it follows the block of an `if` at once; loops have none")
        }
        ("f", found) if found.starts_with(['"', '\'']) => {
            help("text with values in it is written between backticks: `loss ${x:.4f}`")
        }
        ("r" | "b", found) if found.starts_with(['"', '\'']) => word(Before, "text between backticks has no escapes"),
        ("(" | "," | "=" | "return", "fn") => help("a function without a name is a closure: `|| 1`, `|x| x + 1`"),
        (_, ",") if near.in_parentheses => help("several values in a row are an array: `[8, 42]`"),
        ("let", "{") => help("a map is taken apart by `let #{x, y} = m;`"),
        ("let", "(" | "[") if near.statement.contains(") =") && near.statement.ends_with(");") => help(RESULTS),
        ("let", "[" | "(") => help(ONE_LET),
        (_, "," | "(" | ")") if near.start == "for" && near.before != "in" => help(TWO_NAMES),
        (")", "{") if near.start == "cuda" => help("write `with_stream(s) { .. }`, `with_device(1) { .. }`"),
        ("(" | "," | "[" | "{", "*" | "**") => help(SPREAD),
        // Rhai reads `(*` as one symbol.
        (_, "(") if matches!(near.after, "*" | "**") => help(SPREAD),
        (_, "(*") => help(SPREAD),
        (_, ",") if near.start == "let" => help(ONE_LET),
        (_, "if") if near.start == "let" || near.start == "return" => word(Found, CHOICE),
        ("await" | "async", _) => word(Before, "operations are asynchronous by themselves: leave it out"),
        ("with", "open") => word(Before, "files are read and written whole: `load(path)`, `save(path, x)`"),
        ("with", _) => {
            word(Before, "write the block alone: `no_grad { .. }`, `with_device(1) { .. }`, `with_stream(s) { .. }`")
        }
        ("@", "=") => help("write `x = x @ w`"),
        ("+", "+") | (_, "++") | ("++", _) => help("write `x += 1`"),
        (_, "--") | ("--", _) => help("write `x -= 1`, or `- -x` for two signs"),
        ("<", ">") | (_, "<>") => help("write `!=`"),
        (_, "?") if matches!(near.after, ";" | ")" | "." | "") => {
            help("leave it out: an error ends the function by itself; `try { .. } catch (e) { .. }` takes it")
        }
        (_, "?") if near.after == ":" => help("write `x ?? y`, which is `y` where `x` is `()`"),
        (_, "?") => help("`if a { b } else { c }` has a value"),
        ("(", "...") => help(SPREAD),
        ("[" | "," | "#{", "...") if near.after.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            help("values are not spread: arrays and maps are joined by `+`, as in `xs + [4]`, `m + #{b: 2}`")
        }
        (_, "...") => help("write the dots in quotes: `x[\"...\", 0]`"),
        (_, "~") => help("write `!`, which is bitwise on integers"),
        (_, "#") => help("comments are `// ..` and `/* .. */`"),
        ("" | ";" | "}", "@") => {
            message_or("there are no decorators", "call the function with the other one: `no_grad { .. }`, `f(|x| ..)`")
        }
        (_, "->") => word(Found, NO_TYPES),
        (_, "=>") if near.start != "switch" => word(Found, "a closure is written `|x| x + 1`, and called as `f(1)`"),
        (_, "=") if matches!(kind, ParseErrorType::FnMissingBody(_)) => word(Found, "write `fn f(x) { x + 1 }`"),
        (_, ":")
            if matches!(
                near.start,
                "if" | "for"
                    | "while"
                    | "else"
                    | "def"
                    | "with"
                    | "fn"
                    | "class"
                    | "try"
                    | "autocast"
                    | "with_device"
                    | "with_stream"
            ) =>
        {
            help(BLOCKS)
        }
        ("[" | ",", "::") if near.after == "-" => message_or(
            "`::` is no part of an index",
            "backwards is `x.flip([0])`, of an array `reversed(xs)`; a view has no negative steps",
        ),
        ("[" | ",", "::") => message_or("`::` is no part of an index", "a part with a step is `x[slice((), (), 2)]`"),
        ("[" | ",", ":") => help("a whole dimension is `..`, a part of it `1..3`: `x[.., 0]`"),
        (_, ":") if near.after == "]" || near.after.starts_with(|c: char| c.is_ascii_digit()) => {
            help("a part of a dimension is `1..3` or `1..`: `x[1..]`")
        }
        (before, found)
            if misses(kind, ";") && is_number(before) && near.touches && found.starts_with(char::is_alphabetic) =>
        {
            suffix(found)
        }
        (")" | "]", "(") if misses(kind, ";") => help("the parenthesis of a call stands on the line of what is called"),
        (_, "*" | "/") if near.after == near.found => help("write `x / y` and round by `.floor()`"),
        _ if misses(kind, "{") => help(BLOCKS),
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// `3j`, `1.0f`.
fn suffix(found: &str) -> Option<Habit> {
    match found {
        "j" | "J" => message_or("a number has no suffix", "a complex number is a tensor: `complex(0, 1)`"),
        _ => message_or(
            "a number has no suffix",
            "floats are written `1.0` or `1e3`; dtypes belong to tensors: `tensor(1, #{dtype: \"f16\"})`",
        ),
    }
}

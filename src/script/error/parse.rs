//! From Rhai's parse errors to diagnostics, and parsing that continues after an error.
//!
//! Rhai's parser stops at the first error, and its messages assume knowledge of its grammar; here the tokens around
//! the error show what was meant.

use super::{Context, syntax};
use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::script::source::Source;
use crate::script::source::lex::{Kind, Token, lex, script_start};
use crate::script::source::pass::written_name;
use crate::script::values::raise::site_of as site;
use rhai::{AST, Engine, LexError, ParseError, ParseErrorType, Scope};

/// Bound: errors reported for one text; more do not help.
const ERRORS: usize = 8;

/// Compiles a source at its own lines; returns all errors that can be found in one pass, at least one.
#[allow(clippy::vec_box)]
pub fn compile(
    engine: &Engine,
    scope: &Scope,
    source: &Source,
    context: &Context,
) -> std::result::Result<AST, Vec<Box<Diag>>> {
    let compiled = compiled(engine, scope, source, context);
    if compiled.is_err() {
        source.refuse();
    }
    compiled
}

#[allow(clippy::vec_box)]
fn compiled(
    engine: &Engine,
    scope: &Scope,
    source: &Source,
    context: &Context,
) -> std::result::Result<AST, Vec<Box<Diag>>> {
    let [blank, mut text] = source.compiled();
    let (mut errors, mut reserved): (Vec<Box<Diag>>, Option<String>) = (Vec::new(), None);
    loop {
        let error = match engine.compile_scripts_with_scope(scope, [&blank, &text]) {
            Ok(ast) if errors.is_empty() => return Ok(ast),
            Ok(_) => return Err(errors),
            Err(error) => error,
        };
        let diag = diagnose_parse(&error, context);
        // What is declared under a reserved name is used under it.
        if let ParseErrorType::Reserved(name) = error.err_type() {
            if reserved.as_ref() == Some(name) {
                return Err(errors);
            }
            reserved = Some(name.clone());
        }
        let told = errors.iter().any(|other| other.labels.first() == diag.labels.first());
        if !told {
            errors.push(diag);
        }
        // After removing the wrong statement or function, the rest may have further errors.
        let at = site(error.position());
        let local = (at.line() as u32).saturating_sub(source.base);
        if told || errors.len() >= ERRORS || at.is_none() || !blank_out(&mut text, local, at.column() as u32) {
            return Err(errors);
        }
    }
}

/// For `[a, b] = [b, a]`.
const ASSIGNED: &str =
    "`let [a, b] = ..` declares names; those that there are get values one by one: `let t = a; a = b; b = t;`";

/// Overwrites the top-level statement or function at a position with blanks; false if there is none or it is already
/// blank.
fn blank_out(text: &mut String, line: u32, column: u32) -> bool {
    let Some(start) =
        text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).reduce(|a, b| a + b)
    else {
        return line <= 1 && blank_item(text, offset(text, column));
    };
    let at = start + offset(&text[start..], column);
    blank_item(text, at)
}

fn offset(line: &str, column: u32) -> usize {
    line.char_indices().nth(column.max(1) as usize - 1).map_or(line.len(), |(at, _)| at)
}

fn blank_item(text: &mut String, at: usize) -> bool {
    let Ok(tokens) = lex(text, 0) else { return false };
    let word = |index: usize| tokens.get(index).map_or("", |token: &Token| &text[token.range()]);
    let (mut first, mut index) = (0, 0);
    while index < tokens.len() {
        let closes = tokens[index].partner as usize > index;
        let brace = word(index) == "{";
        if closes {
            index = tokens[index].partner as usize;
        }
        let next = word(index + 1);
        let goes_on = matches!(next, "else" | "catch" | "while" | "until" | ";" | "." | "[" | ")" | ",")
            || tokens
                .get(index + 1)
                .is_some_and(|next| next.kind == Kind::Symbol && !matches!(next_text(text, next), "#{" | "{"));
        let ends = word(index) == ";" || (brace && !goes_on) || index + 1 == tokens.len();
        if ends {
            let range = tokens[first].start as usize..tokens[index].end as usize;
            // An error at the end of the text belongs to the last item.
            if at < range.end || index + 1 == tokens.len() {
                let blank: String = text[range.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
                text.replace_range(range, &blank);
                return true;
            }
            first = index + 1;
        }
        index += 1;
    }
    false
}

fn next_text<'a>(text: &'a str, token: &Token) -> &'a str {
    &text[token.range()]
}

/// The tokens around an error.
pub(super) struct Around<'a> {
    pub before: &'a str,
    /// The word before `before`.
    pub earlier: &'a str,
    before_end: usize,
    pub found: &'a str,
    found_start: usize,
    /// Whether the two are adjacent.
    pub touches: bool,
    pub after: &'a str,
    /// Whether the position is inside parentheses that are not a call.
    pub in_parentheses: bool,
    /// Whether it is inside braces after `=`, `(` or `,`, which are not a block.
    pub in_braces: bool,
    /// The first word of the line of `before`.
    pub start: &'a str,
    /// Whether `before` is that word.
    pub is_first: bool,
    /// That line, from its first word.
    pub statement: &'a str,
    /// The text from `found` on.
    pub rest: &'a str,
    same_line: bool,
}

fn around<'a>(source: &'a Source, tokens: &[Token], at: usize) -> Around<'a> {
    let text = |index: usize| tokens.get(index).map_or("", |token: &Token| &source.text[token.range()]);
    let index = tokens.partition_point(|token| token.end as usize <= at);
    let before = index.checked_sub(1);
    let end = before.map_or(0, |index| tokens[index].end as usize);
    let line = source.text[..end].rfind('\n').map_or(0, |at| at + 1);
    let first = tokens.partition_point(|token| (token.start as usize) < line);
    let found_start = tokens.get(index).map_or(source.text.len(), |token| token.start as usize);
    let rest = source.text.get(found_start..).unwrap_or("");
    Around {
        before: before.map_or("", text),
        earlier: before.and_then(|index| index.checked_sub(1)).map_or("", text),
        before_end: end,
        found: text(index),
        found_start,
        touches: found_start == end,
        after: text(index + 1),
        in_parentheses: in_delimiter(source, tokens, index, "(", |before| before.kind != Kind::Word),
        in_braces: in_delimiter(source, tokens, index, "{", |before| {
            matches!(&source.text[before.range()], "=" | "(" | "," | "return")
        }),
        start: text(first),
        is_first: before == Some(first),
        statement: source.text[line..].lines().next().unwrap_or("").trim_start(),
        rest,
        same_line: !source.text[end..found_start.max(end)].contains('\n'),
    }
}

/// Whether the innermost open delimiter before a token is this one, after a token of some kind, or after none.
fn in_delimiter(source: &Source, tokens: &[Token], index: usize, open: &str, behind: impl Fn(&Token) -> bool) -> bool {
    let opens = |&at: &usize| (tokens[at].partner as usize) >= index && (tokens[at].partner as usize) > at;
    let Some(at) = (0..index.min(tokens.len())).rev().find(opens) else { return false };
    let before = at.checked_sub(1).map(|at| &tokens[at]);
    source.text[tokens[at].range()] == *open && before.is_none_or(behind)
}

/// The diagnostic of a parse error.
pub fn diagnose_parse(error: &ParseError, context: &Context) -> Box<Diag> {
    let at = site(error.position());
    let Some(source) = context.sources.source(at) else {
        return Diag::error(code::SYNTAX, message(error.err_type(), ""));
    };
    let tokens = lex(&source.text, script_start(&source.text)).unwrap_or_default();
    let near = around(source, &tokens, source.offset(at));
    if let ParseErrorType::MissingToken(_, text) = error.err_type()
        && let Some(rest) = text.split("'__with_").nth(1)
    {
        let name = format!("with_{}", rest.split('\'').next().unwrap_or(""));
        return Diag::error(code::SYNTAX, format!("`{name}` expects a value in its parentheses"))
            .label(Origin::at(at), Focus::Call, "nothing here")
            .help("for example `with_device(1) { .. }`, `with_stream(s) { .. }`");
    }
    let kind = error.err_type();
    // The same mistakes can be found at run time, without the parser.
    let code = match kind {
        ParseErrorType::AssignmentToConstant(name) if !name.is_empty() => code::CONSTANT,
        ParseErrorType::MismatchedType(..) => code::TYPE,
        ParseErrorType::MalformedIndexExpr(text) if text.contains("expects") => code::TYPE,
        _ => code::SYNTAX,
    };
    let between = source.text.get(near.before_end..source.offset(at).max(near.before_end)).unwrap_or("");
    let missing_end = matches!(kind, ParseErrorType::MissingToken(token, _) if token == ";");
    let habit = match missing_end && between.trim_start_matches(' ').starts_with("//") {
        true => Some(syntax::Habit { word: None, message: None, help: syntax::FLOOR.into() }),
        // The next line is a separate statement, whatever it begins with.
        false if missing_end && !near.same_line && !matches!(near.start, "import" | "from") => None,
        false => syntax::habit(kind, &near),
    };
    if let Some(syntax::Habit { word: Some(word), message, help }) = &habit {
        let (start, text) = match word {
            syntax::Word::Before => (near.before_end - near.before.len(), near.before),
            syntax::Word::Found => (near.found_start, near.found),
        };
        let message = message.map_or_else(|| format!("`{text}` has no meaning here"), str::to_string);
        let origin = Origin::at(source.site(start));
        return Diag::error(code, message).label(origin, Focus::Call, "here").help(help.clone());
    }
    let message = match kind {
        ParseErrorType::Reserved(name) if matches!(near.before, "let" | "const" | "for") => {
            format!("`{name}` cannot be the name of a variable")
        }
        // The parser reads a condition there.
        ParseErrorType::ExprExpected(_) if near.before == "in" && near.start == "for" => {
            format!("what the loop goes over is missing before {}", quoted(near.found))
        }
        _ => message(kind, near.found),
    };
    let diag = Diag::error(code, message);
    let diag = if let Some((start, count)) = escape(kind, &near) {
        diag.label(Origin::at(source.site(start)), Focus::Characters(count), "here")
    } else if missing_end && !near.same_line && near.before_end > 0 {
        let before = source.site(near.before_end - 1);
        diag.label(Origin::at(before), Focus::Call, "a `;` is missing after this")
    } else {
        diag.label(Origin::at(at), Focus::Call, label(kind, near.found))
    };
    let is_list = near.found == "["
        && match kind {
            ParseErrorType::AssignmentToConstant(name) => name.is_empty(),
            kind => matches!(kind, ParseErrorType::AssignmentToInvalidLHS(_)),
        };
    let list = || is_list.then(|| ASSIGNED.to_string());
    match habit.map(|habit| habit.help).or_else(list).or_else(|| help(kind)) {
        Some(help) => diag.help(help),
        None => diag,
    }
}

/// Where in a string the escape is that there is not, and its characters.
fn escape(kind: &ParseErrorType, near: &Around) -> Option<(usize, u16)> {
    let ParseErrorType::BadInput(LexError::MalformedEscapeSequence(wrong)) = kind else { return None };
    let mut at = 0;
    while let Some(ahead) = near.found.get(at..)?.find('\\') {
        at += ahead;
        if near.found[at..].starts_with(wrong.as_str()) {
            return Some((near.found_start + at, u16::try_from(wrong.chars().count()).ok()?));
        }
        at += 1 + near.found[at + 1..].chars().next()?.len_utf8();
    }
    None
}

/// The function in a message, as users write it.
fn named<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let (_, name) = text.split_once(before)?;
    Some(written_name(name.trim_end_matches('\'')))
}

fn quoted(found: &str) -> String {
    if found.is_empty() { "the end of the text".into() } else { format!("`{}`", found.lines().next().unwrap_or(found)) }
}

fn message(kind: &ParseErrorType, found: &str) -> String {
    use ParseErrorType::*;
    match kind {
        UnexpectedEOF => "the text ends in the middle of a statement".into(),
        BadInput(lex) => lexical(lex),
        UnknownOperator(symbol) => format!("`{symbol}` is not an operator"),
        MissingToken(token, text) if token == ";" => match text.contains("terminate") {
            true => "a `;` is missing at the end of a statement".into(),
            false => format!("`;` is missing {text}"),
        },
        MissingToken(token, text) => match named(text, "the arguments to function call '") {
            Some(name) => format!("`{token}` is missing between the arguments of `{name}`"),
            // Block forms are custom syntax under an internal name.
            None => format!("`{token}` is missing {}", text.replace("'__", "'")),
        },
        MissingSymbol(text) if !text.is_empty() => lower(text),
        MissingSymbol(_) => "a symbol is missing".into(),
        MalformedIndexExpr(text) if text.contains("expects") => index(text),
        MalformedIndexExpr(text) | MalformedCapture(text) if !text.is_empty() => lower(text),
        MalformedIndexExpr(_) => "this cannot be an index".into(),
        DuplicatedProperty(name) => format!("the key `{name}` is given twice"),
        DuplicatedVariable(name) => format!("the name `{name}` is given twice"),
        WrongSwitchIntegerCase => "the numbers of a `switch` stand before its ranges".into(),
        WrongSwitchDefaultCase => "the case `_` of a `switch` must be the last".into(),
        WrongSwitchCaseCondition => "the case `_` of a `switch` takes no condition".into(),
        PropertyExpected => format!("the name of a property is missing before {}", quoted(found)),
        VariableExpected => format!("the name of a variable is missing before {}", quoted(found)),
        ForbiddenVariable(name) => format!("`{name}` cannot be the name of a variable"),
        Reserved(name) if name == "print" => "`print` is called with its values in parentheses".into(),
        Reserved(name) => format!("`{name}` has a meaning of its own and is not allowed here"),
        MismatchedType(wanted, actual) => {
            let actual = match actual.as_str() {
                "a number" => "an integer",
                "a floating-point number" => "a float",
                other => other,
            };
            format!("{wanted} is needed here, not {actual}")
        }
        ExprExpected(what) => format!("{what} is missing before {}", quoted(found)),
        WrongDocComment => "a doc comment must be right before a function".into(),
        WrongFnDefinition => "a function can be defined only at the top level of a file".into(),
        FnDuplicatedDefinition(name, 1) => format!("a function `{name}` with 1 parameter is already defined"),
        FnDuplicatedDefinition(name, n) => format!("a function `{name}` with {n} parameters is already defined"),
        FnMissingName => "the name of a function is missing after `fn`".into(),
        FnMissingParams(name) => format!("the function `{name}` needs parameters: `fn {name}()`"),
        FnDuplicatedParam(_, name) => format!("the parameter `{name}` is given twice"),
        FnMissingBody(name) if name.is_empty() => "a closure needs a body".into(),
        FnMissingBody(name) => format!("the function `{name}` needs a body in braces"),
        WrongExport => "`export` is allowed only at the top level of a file".into(),
        AssignmentToConstant(name) if name.is_empty() => "this cannot be assigned".into(),
        AssignmentToConstant(name) => format!("`{name}` is a constant and cannot be assigned"),
        AssignmentToInvalidLHS(_) => "this cannot be assigned".into(),
        VariableExists(name) => format!("`{name}` is already defined"),
        VariableUndefined(name) => format!("there is no variable `{name}`"),
        ModuleUndefined(name) => format!("there is no module `{name}`"),
        ExprTooDeep => "an expression is nested too deeply".into(),
        TooManyFunctions => "there are too many functions".into(),
        LiteralTooLarge(what, limit) => format!("{} is beyond the limit of {limit}", lower(what)),
        LoopBreak => "`break` and `continue` are allowed only in loops".into(),
        other => lower(&other.to_string()),
    }
}

/// "Array, string or bit-field expects integer index, not a float"
fn index(text: &str) -> String {
    let given = text.rsplit_once("not ").map_or("this", |(_, given)| given);
    let given = given.replace("a boolean", "a bool");
    match text.starts_with("Object map") {
        true => format!("the keys of a map are strings, not {given}"),
        false => format!("the index of an array or a string is an integer, not {given}"),
    }
}

fn lexical(error: &LexError) -> String {
    match error {
        LexError::UnexpectedInput(text) if text.is_empty() => "the text ends where something is missing".into(),
        LexError::UnexpectedInput(text) if text.chars().all(|c| c.is_control() || c.is_whitespace()) => {
            let names: Vec<String> = text.chars().map(|c| format!("U+{:04X}", c as u32)).collect();
            format!("the character {} is not allowed here", names.join(" "))
        }
        LexError::UnexpectedInput(text) => format!("`{text}` is not allowed here"),
        LexError::UnterminatedString => "a string is never closed".into(),
        LexError::StringTooLong(limit) => format!("a string is longer than the limit of {limit}"),
        LexError::MalformedEscapeSequence(text) => format!("`{text}` is not an escape sequence"),
        LexError::MalformedNumber(text) if text.is_empty() => "a number has no digits".into(),
        LexError::MalformedNumber(text) => format!("`{text}` is not a number"),
        LexError::MalformedChar(text) => format!("`'{text}'` is not one character"),
        LexError::MalformedIdentifier(text) => format!("`{text}` is not a name"),
        LexError::ImproperSymbol(symbol, text) if text.contains("typo of '=='") => {
            format!("`{symbol}` assigns, and a condition compares with `==`")
        }
        LexError::ImproperSymbol(symbol, text) if text.contains("only be used in functions") => {
            format!("`{symbol}` has no meaning outside functions and closures")
        }
        LexError::ImproperSymbol(symbol, _) => format!("`{symbol}` is not an operator"),
        other => lower(&other.to_string()),
    }
}

fn lower(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_lowercase().chain(characters).collect())
}

fn label(kind: &ParseErrorType, found: &str) -> String {
    match kind {
        ParseErrorType::UnexpectedEOF => "the text ends here".into(),
        ParseErrorType::MissingToken(token, _) => match found {
            "" => format!("`{token}` was expected here"),
            _ => format!("found {} where `{token}` was expected", quoted(found)),
        },
        _ => "here".into(),
    }
}

fn help(kind: &ParseErrorType) -> Option<String> {
    use ParseErrorType::*;
    let text = match kind {
        BadInput(LexError::MalformedEscapeSequence(text)) if text == "\\'" => {
            "between double quotes it stands without a backslash: `\"don't\"`"
        }
        BadInput(LexError::MalformedEscapeSequence(_)) => {
            "the escapes are `\\n`, `\\r`, `\\t`, `\\\\`, `\\\"`, `\\'`, `\\x41`, `\\u0041` and `\\U00000041`"
        }
        BadInput(LexError::UnexpectedInput(text)) => return look_alike(text),
        Reserved(name) if name == "#" => "comments are `// ..` and `/* .. */`",
        BadInput(LexError::MalformedChar(_)) => "single quotes hold one character; a string has double quotes",
        BadInput(LexError::MalformedNumber(text)) if text.is_empty() => "digits follow: `0xff`, `0b101`, `0o17`",
        BadInput(LexError::MalformedNumber(_)) => "integers have 64 bits; larger numbers are floats: `1e20`",
        BadInput(LexError::ImproperSymbol(symbol, _)) => match symbol.as_str() {
            "===" => "write `==`",
            "!==" => "write `!=`",
            ":=" => "write `=`",
            "<-" => "write `<=`, or `< -x` with a blank",
            "(*" | "*)" => "comments are `// ..` and `/* .. */`",
            "::<" => "functions take no type parameters",
            "# {" | "#" => "a map is written `#{ .. }`, without a blank",
            _ => return None,
        },
        WrongFnDefinition => "inside a block, use a closure: `let f = |x| x + 1;`, called as `f.call(1)`",
        ExprTooDeep => "give parts of the expression names with `let`",
        DuplicatedVariable(_) | FnDuplicatedParam(..) => "give each its own name",
        WrongSwitchIntegerCase => "move this case up, before the first range",
        WrongSwitchDefaultCase => "move `_ => ..` to the end",
        LoopBreak => "to leave a function, write `return`",
        AssignmentToConstant(name) if !name.is_empty() => "declare it with `let` instead of `const`",
        AssignmentToConstant(_) | AssignmentToInvalidLHS(_) => {
            "what can be assigned is a variable, a property, or an indexed value"
        }
        MismatchedType(wanted, _) if wanted.contains("iterable") => "a range counts: `for i in 0..5 { .. }`",
        MismatchedType(wanted, _) if wanted.contains("boolean") => "compare it, as in `x != 0`",
        _ => return None,
    };
    Some(text.to_string())
}

/// The ASCII character that a typographic one stands for, as copied from a web page or letter.
fn look_alike(text: &str) -> Option<String> {
    let c = text.chars().next().filter(|c| text.len() == c.len_utf8())?;
    let meant = match c {
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ff02}' | '\u{ab}' | '\u{bb}' => "`\"`",
        '\u{2018}' | '\u{2019}' | '\u{201a}' => "`'`",
        '\u{37e}' | '\u{ff1b}' => "`;`",
        '\u{ff0c}' => "`,`",
        '\u{ff08}' => "`(`",
        '\u{ff09}' => "`)`",
        '\u{2212}' | '\u{2013}' | '\u{2014}' | '\u{ff0d}' => "`-`",
        '\u{d7}' | '\u{2217}' => "`*`",
        '\u{f7}' => "`/`",
        '\u{2264}' => "`<=`",
        '\u{2265}' => "`>=`",
        '\u{2260}' => "`!=`",
        '\u{ff1d}' => "`=`",
        '\u{ff5b}' => "`{`",
        '\u{ff5d}' => "`}`",
        _ if c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{feff}') => {
            "a plain blank"
        }
        _ if c.is_alphabetic() => return Some("names have the letters `a` to `z`, digits and `_`".into()),
        _ => return None,
    };
    Some(format!("this is the character U+{:04X}; write {meant}", c as u32))
}

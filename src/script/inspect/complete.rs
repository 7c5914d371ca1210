//! Completion at a position of an unfinished text: names, members of the value before the dot, keywords of a call,
//! words in quotes; and the signature of the call around the position. Runs no script code. The REPL calls it from
//! `tools/repl/line.rs`.

use crate::base::dtype::DType;
use crate::op::row::{CallForm, Returns};
use crate::op::table;
use crate::script::manual;
use crate::script::manual::members;
use crate::script::session::handle::Session;
use crate::script::source::LAST;
use crate::script::source::lex::{Kind, LexError, Token, lex_partial};
use crate::script::source::pass::written_name;
use crate::script::source::scope::EXPORTED;
use crate::script::values::module::{ModuleValue, fields};
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic};

/// The completions at a position.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Completions {
    /// Byte at which the word to be replaced begins.
    pub start: usize,
    /// Sorted, without duplicates. A function's name ends with `(`, a module's with `::`, a keyword's with `: `.
    pub words: Vec<String>,
    /// File names are also possible.
    pub files: bool,
}

/// What is known of the value before a dot.
#[derive(Clone, Debug)]
enum OperandKind {
    Value(Dynamic),
    Tensor,
    Text,
    Array,
    Keys(Vec<String>),
    Int,
    Float,
    /// Created by a function of `nn`.
    Module,
    Unknown,
}

/// Words of the language that begin or continue a statement.
const KEYWORDS: &[&str] = &[
    "break", "catch", "const", "continue", "do", "else", "false", "fn", "for", "if", "import", "in", "let", "loop",
    "return", "switch", "this", "throw", "true", "try", "until", "while",
];

/// A text up to the cursor.
struct Typed<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    problem: Option<LexError>,
}

/// The call whose parentheses are open at the cursor.
struct Around {
    /// `sum`, `nn::linear`.
    name: String,
    method: bool,
    /// Index of its `(`.
    open: usize,
}

impl<'a> Typed<'a> {
    fn new(text: &'a str) -> Typed<'a> {
        let (tokens, problem) = lex_partial(text);
        Typed { text, tokens, problem }
    }

    fn word(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| &self.text[token.range()])
    }

    /// Where the string literal at the cursor begins.
    fn open_text(&self) -> Option<usize> {
        let start = self.problem.as_ref()?.labels.first()?.0.start;
        let inside = self.tokens.last().is_none_or(|token| token.end as usize <= start);
        (inside && self.text[start..].starts_with('"')).then_some(start)
    }

    /// Whether the cursor is in a comment or in a string without completion.
    fn has_no_completion(&self) -> bool {
        let last = self.tokens.last().map_or(0, |token| token.end as usize);
        let open = self.problem.as_ref().and_then(|problem| problem.labels.first()).map(|label| label.0.start);
        let gap = &self.text[last..];
        let line = gap.rfind("//").is_some_and(|at| !gap[at..].contains('\n'));
        line || open.is_some_and(|start| start >= last && self.text[start..].starts_with(['`', '/', '\'', '#']))
    }

    /// The innermost open delimiter before a token.
    fn opening(&self, before: usize) -> Option<usize> {
        (0..before).rev().find(|&index| {
            let open = matches!(self.word(index), "(" | "[" | "{" | "#{" | "?[");
            let partner = self.tokens[index].partner as usize;
            open && (partner == index || partner >= before)
        })
    }

    /// The call around a token: directly, or with a map of keywords between.
    fn call(&self, before: usize) -> Option<Around> {
        let mut open = self.opening(before)?;
        while matches!(self.word(open), "#{" | "[") {
            open = self.opening(open)?;
        }
        let name = open.checked_sub(1)?;
        if self.word(open) != "(" || self.tokens[name].kind != Kind::Word || KEYWORDS.contains(&self.word(name)) {
            return None;
        }
        let before = name.checked_sub(1).map_or("", |index| self.word(index));
        let module = if before == "::" { format!("{}::", self.word(name.saturating_sub(2))) } else { String::new() };
        Some(Around { name: format!("{module}{}", self.word(name)), method: before == ".", open })
    }

    /// The number of arguments before a token inside a call's parentheses.
    fn commas(&self, open: usize, before: usize) -> usize {
        let (mut at, mut found) = (open + 1, 0);
        while at < before {
            found += (self.word(at) == ",") as usize;
            // Skips nested brackets.
            let partner = self.tokens[at].partner as usize;
            at = if (at..before).contains(&partner) { partner.max(at) + 1 } else { at + 1 };
        }
        found
    }

    /// The keyword whose value is at a token: `dtype` in `#{dtype: `.
    fn keyword(&self, at: usize) -> Option<&'a str> {
        let inside = self.opening(at).is_some_and(|open| self.word(open) == "#{");
        (inside && at >= 2 && self.word(at - 1) == ":").then(|| self.word(at - 2))
    }

    /// The first token of the operand that ends with a token.
    fn operand(&self, last: usize) -> usize {
        let mut at = last;
        loop {
            if matches!(self.word(at), ")" | "]" | "}") {
                let open = self.tokens[at].partner as usize;
                let before = open.checked_sub(1);
                let goes_on = before.is_some_and(|index| {
                    let word = self.tokens[index].kind == Kind::Word && !KEYWORDS.contains(&self.word(index));
                    word || matches!(self.word(index), ")" | "]")
                });
                match before {
                    Some(index) if goes_on && self.word(at) != "}" => {
                        at = index;
                        continue;
                    }
                    _ => return open,
                }
            }
            let linked = at >= 2 && matches!(self.word(at - 1), "." | "?." | "::");
            if !linked {
                return at;
            }
            at -= 2;
        }
    }
}

#[doc(hidden)]
impl Session {
    /// The completions at a byte of an unfinished text.
    pub fn complete(&self, text: &str, at: usize) -> Completions {
        let typed = Typed::new(text.get(..at).unwrap_or(text));
        if let Some(start) = typed.open_text() {
            return self.quoted(&typed, start);
        }
        if typed.has_no_completion() {
            return Completions { start: at, ..Completions::default() };
        }
        let count = typed.tokens.len();
        let partial = typed.tokens.last().is_some_and(|token| token.kind == Kind::Word && token.end as usize == at);
        let (start, prefix, word) = match partial {
            true => (typed.tokens[count - 1].start as usize, typed.word(count - 1), count - 1),
            false => (at, "", count),
        };
        let before = word.checked_sub(1).map_or("", |index| typed.word(index));
        let mut words = match before {
            "." | "?." if word >= 2 => self.members(&typed, word - 2),
            "::" if word >= 2 => self.module_names(typed.word(word - 2)),
            "#{" | "," if self.keyword_place(&typed, word) => self.keywords(&typed, word),
            ":" if prefix.is_empty() && typed.keyword(word).is_some() => {
                let words = self.quoted_words(&typed, word).unwrap_or_default();
                words.into_iter().map(|word| format!("\"{word}\"")).collect()
            }
            _ => self.names(prefix),
        };
        words.retain(|word| word.starts_with(prefix) && (!word.starts_with('_') || prefix.starts_with('_')));
        words.sort_unstable();
        words.dedup();
        Completions { start, words, files: false }
    }

    /// The signature of the call at the end of a text.
    pub fn signature(&self, text: &str) -> Option<String> {
        let typed = Typed::new(text);
        let around = typed.call(typed.tokens.len())?;
        let own = self.functions.iter_functions().filter(|function| written_name(function.name) == around.name);
        if let Some(function) = own.max_by_key(|function| function.params.len()) {
            return Some(format!("{}({})", around.name, function.params.join(", ")));
        }
        manual::signature(&around.name, around.method).map(|signature| signature.text.clone())
    }

    /// Names for the beginning of an operand or statement.
    fn names(&self, prefix: &str) -> Vec<String> {
        let variables = self.scope.iter_raw().map(|(name, ..)| name.to_string()).filter(|name| name != LAST);
        let modules = self.persistent.modules().map(|name| format!("{name}::"));
        let mut names: Vec<String> = variables.chain(modules).collect();
        let own = self.functions.iter_functions().filter(|function| !function.name.starts_with("anon$"));
        names.extend(own.map(|function| format!("{}(", written_name(function.name))));
        // Hundreds of names are no help.
        if !prefix.is_empty() {
            let rows = table::all().filter(|op| matches!(op.call, CallForm::Both | CallForm::Function));
            let rows = rows.flat_map(|op| std::iter::once(&op.name).chain(op.aliases));
            names.extend(rows.filter(|name| !name.starts_with('.')).map(|name| format!("{name}(")));
            let function =
                |native: &&manual::Native| native.form == manual::Form::Function && !native.name.contains("::");
            let natives = manual::natives().filter(function);
            names.extend(natives.map(|native| format!("{}(", native.name)));
            names.extend(KEYWORDS.iter().map(|word| word.to_string()));
            let words = [
                "print(",
                "eval(",
                "INF",
                "NAN",
                "PI",
                "cuda::",
                "fft::",
                "re::",
                "signal::windows::",
                "unicodedata::",
                "with_device(",
                "with_stream(",
            ];
            names.extend(words.map(str::to_string));
        }
        names
    }

    fn module_names(&self, module: &str) -> Vec<String> {
        let documented = manual::functions(module);
        if !documented.is_empty() {
            return documented.iter().map(|function| format!("{}(", function.name)).collect();
        }
        let natives: Vec<String> = manual::of_module(module).map(|name| format!("{name}(")).collect();
        let Some(module) = self.persistent.module(module) else { return natives };
        let functions = module.iter_script_fn_info().map(|(_, _, name, ..)| name);
        let exported = functions.filter_map(|name| name.strip_suffix(EXPORTED));
        let functions = exported.map(|name| format!("{}(", written_name(name)));
        functions.chain(module.iter_var().map(|(name, _)| name.to_string())).collect()
    }

    /// Whether a token is a key of a map that is passed to a call.
    fn keyword_place(&self, typed: &Typed, word: usize) -> bool {
        typed.opening(word).is_some_and(|open| typed.word(open) == "#{") && typed.call(word).is_some()
    }

    fn keywords(&self, typed: &Typed, word: usize) -> Vec<String> {
        let (Some(map), Some(around)) = (typed.opening(word), typed.call(word)) else { return Vec::new() };
        let given: Vec<&str> = (map..word).filter(|&at| typed.word(at + 1) == ":").map(|at| typed.word(at)).collect();
        let Some(signature) = manual::signature(&around.name, around.method) else { return Vec::new() };
        let before = typed.commas(around.open, map);
        let known = signature.keywords().filter(|&at| at >= before).map(|at| &signature.params[at].name);
        known.filter(|name| !given.contains(&name.as_str())).map(|name| format!("{name}: ")).collect()
    }

    /// Inside quotes: the words that this argument accepts, or file names.
    fn quoted(&self, typed: &Typed, start: usize) -> Completions {
        let prefix = &typed.text[start + 1..];
        match self.quoted_words(typed, typed.tokens.len()) {
            Some(mut words) => {
                words.retain(|word| word.starts_with(prefix));
                words.sort_unstable();
                Completions { start: start + 1, words, files: false }
            }
            None => Completions { start: start + 1, words: Vec::new(), files: true },
        }
    }

    fn quoted_words(&self, typed: &Typed, at: usize) -> Option<Vec<String>> {
        let dtypes = || DType::ALL.iter().map(|dtype| dtype.name().to_string());
        if at > 0 && typed.word(at - 1) == "import" {
            return Some(self.modules.lock().names());
        }
        let around = typed.call(at)?;
        let signature = manual::signature(&around.name, around.method);
        if let Some(keyword) = typed.keyword(at) {
            let param = signature.and_then(|signature| Some(signature.params[signature.place(keyword)?].clone()));
            return match (keyword, param) {
                ("dtype", _) => Some(dtypes().collect()),
                ("device", _) => Some(self.devices()),
                (_, Some(param)) if !param.words.is_empty() => Some(param.words),
                _ => None,
            };
        }
        match around.name.as_str() {
            "to" => Some(dtypes().chain(self.devices()).collect()),
            "device" | "set_default_device" | "with_device" => Some(self.devices()),
            "type" | "set_default_dtype" => Some(dtypes().collect()),
            _ => {
                let signature = signature?;
                let param = signature.params.get(typed.commas(around.open, at))?;
                (!param.words.is_empty()).then(|| param.words.clone())
            }
        }
    }

    /// Names of the devices that scripts can use.
    pub fn devices(&self) -> Vec<String> {
        self.memory_report().into_iter().map(|memory| memory.device).collect()
    }

    fn members(&self, typed: &Typed, last: usize) -> Vec<String> {
        let calls = |names: &[&str]| names.iter().map(|name| format!("{name}(")).collect::<Vec<String>>();
        let of_map = |keys: Vec<String>, module: bool| {
            let own = if module { members::of_module() } else { calls(members::MAP) };
            keys.into_iter().filter(|key| !key.starts_with('_')).chain(own).collect()
        };
        match self.operand_kind(typed, typed.operand(last), last) {
            OperandKind::Tensor => members::of_tensor(),
            OperandKind::Text => members::of_text(),
            OperandKind::Array => calls(members::ARRAY),
            OperandKind::Int => calls(members::INT),
            OperandKind::Float => calls(members::FLOAT),
            OperandKind::Keys(keys) => of_map(keys, false),
            OperandKind::Module => members::of_module(),
            OperandKind::Value(value) => match fields(&value) {
                Some(map) => of_map(map.keys().map(|key| key.to_string()).collect(), value.is::<ModuleValue>()),
                None if value.is_fnptr() => calls(members::CLOSURE),
                None if self.kind(&value) == "cell" => manual::members_of("c"),
                None if self.kind(&value) == "stream" => members::of_stream(),
                None if self.kind(&value) == "event" => members::of_event(),
                None if self.kind(&value) == "set" => members::of_set(),
                None if matches!(self.kind(&value).as_str(), "pattern" | "match") => {
                    manual::members_of(&self.kind(&value))
                }
                None if self.kind(&value) == "error" => {
                    ["code", "message", "line", "column", "file", "help", "notes"].map(str::to_string).to_vec()
                }
                None => Vec::new(),
            },
            OperandKind::Unknown => {
                let mut all = members::of_tensor();
                all.extend(calls(members::ARRAY).into_iter().chain(members::of_text()).chain(calls(members::MAP)));
                all
            }
        }
    }

    /// What an operand is, as far as that is known without running it.
    fn operand_kind(&self, typed: &Typed, first: usize, last: usize) -> OperandKind {
        let called = |at: usize| typed.word(at + 1) == "(";
        let after_call = |at: usize| typed.tokens[at + 1].partner as usize + 1;
        let (mut operand_kind, mut at) = match (typed.tokens[first].kind, typed.word(first)) {
            (Kind::Str | Kind::TextEnd, _) => (OperandKind::Text, first + 1),
            (Kind::Number, text) if text.contains('.') => (OperandKind::Float, first + 1),
            (Kind::Number, _) => (OperandKind::Int, first + 1),
            (_, "[") => (OperandKind::Array, typed.tokens[first].partner as usize + 1),
            (_, "#{") => (OperandKind::Keys(Vec::new()), typed.tokens[first].partner as usize + 1),
            (_, "(") => {
                let close = typed.tokens[first].partner as usize;
                let inside = if close > first + 1 { typed.operand(close - 1) } else { first };
                let whole = inside == first + 1 && close <= last;
                (if whole { self.operand_kind(typed, inside, close - 1) } else { OperandKind::Unknown }, close + 1)
            }
            (Kind::Word, module) if typed.word(first + 1) == "::" => {
                let end = if called(first + 2) { after_call(first + 2) } else { first + 3 };
                (if module == "nn" { OperandKind::Module } else { OperandKind::Unknown }, end)
            }
            (Kind::Word, name) if called(first) => (result_of(name), after_call(first)),
            (Kind::Word, name) => (self.variable(name), first + 1),
            _ => (OperandKind::Unknown, last + 1),
        };
        while at <= last {
            let name = at + 1;
            (operand_kind, at) = match typed.word(at) {
                "." | "?." if called(name) => (method_of(&operand_kind, typed.word(name)), after_call(name)),
                "." | "?." => (property_of(&operand_kind, typed.word(name)), name + 1),
                "[" => (item_of(&operand_kind), typed.tokens[at].partner as usize + 1),
                _ => (OperandKind::Unknown, last + 1),
            };
        }
        operand_kind
    }

    fn variable(&self, name: &str) -> OperandKind {
        let name = if name == "_" { LAST } else { name };
        self.scope.get(name).map_or(OperandKind::Unknown, of_value)
    }
}

/// Cost: never copies an array, which may be long; maps are small.
fn of_value(value: &Dynamic) -> OperandKind {
    if value.read_lock::<Tensor>().is_some() {
        return OperandKind::Tensor;
    }
    if value.read_lock::<Array>().is_some() {
        return OperandKind::Array;
    }
    match value.type_name() {
        "string" => OperandKind::Text,
        "i64" => OperandKind::Int,
        "f64" => OperandKind::Float,
        _ => OperandKind::Value(value.flatten_clone()),
    }
}

/// The result of an operation or native function.
fn result_of(name: &str) -> OperandKind {
    let plain = name.strip_suffix('_').filter(|plain| table::find(plain).is_some_and(|op| op.inplace));
    if let Some(op) = table::find(name).or_else(|| table::find(plain?)) {
        return match op.results {
            Returns::List | Returns::ListIf(_) | Returns::ListWithout(_) => OperandKind::Array,
            Returns::One if op.truth => OperandKind::Unknown,
            Returns::One => OperandKind::Tensor,
            Returns::Named(names) => OperandKind::Keys(names.iter().map(|name| name.to_string()).collect()),
            // The rest is an array, and keys are assumed to be tensors.
            Returns::NamedRest(first, _) => OperandKind::Keys(vec![first.to_string()]),
        };
    }
    match name {
        "tensor" | "to" | "new_tensor" | "detach" | "cpu" | "cuda" | "requires_grad_" => OperandKind::Tensor,
        "to_array" | "tolist" | "stride" | "grad" | "parameters" => OperandKind::Array,
        _ => OperandKind::Unknown,
    }
}

fn method_of(operand_kind: &OperandKind, name: &str) -> OperandKind {
    match (operand_kind, name) {
        (OperandKind::Tensor, _) => result_of(name),
        (_, "len") => OperandKind::Int,
        (_, "keys" | "values" | "split" | "parameters") => OperandKind::Array,
        (OperandKind::Array, "filter" | "map") => OperandKind::Array,
        (OperandKind::Text, "sub_string" | "to_lower" | "to_upper") => OperandKind::Text,
        (OperandKind::Module, "forward") => OperandKind::Tensor,
        (OperandKind::Module, "to" | "cuda" | "cpu" | "half") => OperandKind::Module,
        (OperandKind::Value(value), "forward") if fields(value).is_some() => OperandKind::Tensor,
        _ => OperandKind::Unknown,
    }
}

fn property_of(operand_kind: &OperandKind, name: &str) -> OperandKind {
    match operand_kind {
        OperandKind::Value(value) => match fields(value) {
            Some(map) => map.get(name).map_or(OperandKind::Unknown, of_value),
            None => OperandKind::Unknown,
        },
        OperandKind::Tensor => match name {
            "shape" => OperandKind::Array,
            "ndim" | "numel" => OperandKind::Int,
            "grad" => OperandKind::Tensor,
            _ if manual::property_row(name).is_some() => OperandKind::Tensor,
            _ => OperandKind::Unknown,
        },
        // Results by name are tensors: `x.topk(3).values`.
        OperandKind::Keys(keys) if keys.iter().any(|key| key == name) => OperandKind::Tensor,
        _ => OperandKind::Unknown,
    }
}

fn item_of(operand_kind: &OperandKind) -> OperandKind {
    match operand_kind {
        OperandKind::Tensor => OperandKind::Tensor,
        OperandKind::Text => OperandKind::Text,
        _ => OperandKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        let mut session = Session::builder().build().expect("a session");
        let text = "import \"nn\" as nn; let xs = ones([2, 3]); let names = #{weight: xs, deep: #{word: \"a\"}};
                    fn scaled(v, by) { v * by } let list = [1, 2]; const LIMIT = 3; let layer = nn::linear(2, 2);";
        drop(session.enter(1, text).expect("runs"));
        session
    }

    /// The words at the end of a text.
    fn words(text: &str) -> Vec<String> {
        session().complete(text, text.len()).words
    }

    fn has(text: &str, expected: &[&str], unwanted: &[&str]) {
        let words = words(text);
        for word in expected {
            assert!(words.iter().any(|known| known == word), "{text}: no {word} in {words:?}");
        }
        for word in unwanted {
            assert!(!words.iter().any(|known| known == word), "{text}: {word} is offered");
        }
    }

    #[test]
    fn names_are_variables_functions_modules_and_words() {
        has("x", &["xs"], &["x"]);
        has("sca", &["scaled("], &[]);
        has("n", &["nn::", "names", "no_grad("], &["xs"]);
        has("let y = LI", &["LIMIT"], &["let"]);
        has("wh", &["while", "where("], &[]);
        has("nn::lin", &["linear("], &["relu("]);
        assert_eq!(words(""), ["LIMIT", "args", "layer", "list", "names", "nn::", "scaled(", "xs"]);
    }

    #[test]
    fn members_fit_the_value() {
        has("xs.", &["relu(", "shape", "item(", "add_(", "T"], &["keys(", "push(", "zeros("]);
        has("(xs + 1).s", &["sum("], &["scaled("]);
        has("(xs).", &["relu("], &["keys("]);
        has("xs.T.relu().re", &["relu(", "reshape("], &["reverse("]);
        has("xs[0, 1].ite", &["item("], &[]);
        has("xs.shape.", &["push(", "len("], &["relu("]);
        has("names.", &["weight", "deep", "keys("], &["relu("]);
        has("names.weight.rel", &["relu("], &[]);
        has("names.deep.word.", &["to_upper("], &["relu("]);
        has("list.", &["map(", "len("], &["relu("]);
        has("\"abc\".", &["len(", "split("], &["relu("]);
        has("3.5.", &["round("], &["relu("]);
        has("zeros([2]).topk(1).", &["values", "indices"], &["relu("]);
        has("layer.", &["forward(", "parameters(", "weight"], &["relu(", "fill_with("]);
        has("layer.weight.grad.", &["relu("], &["keys("]);
        has("nn::linear(1, 2).", &["parameters("], &["relu("]);
        has("f(xs.s", &["sum("], &[]);
        has("-xs.s", &["sum("], &[]);
    }

    #[test]
    fn calls_have_keywords_and_words() {
        has("zeros([2], #{", &["dtype: ", "device: "], &[]);
        has("zeros([2], #{dtype: \"f32\", d", &["device: "], &["dtype: "]);
        has("xs.sum(#{di", &["dim: "], &[]);
        has("nn::linear(2, 3, #{b", &["bias: "], &[]);
        has("zeros([2], #{dtype: \"f", &["f16", "f32", "f64"], &["i64"]);
        has("zeros([2], #{dtype: ", &["\"f16\""], &[]);
        has("zeros([2], #{device: \"", &["cpu"], &["f32"]);
        has("xs.to(\"", &["cpu", "bf16"], &[]);
        has("import \"n", &["nn"], &["optim"]);
        let completions = session().complete("load(\"dat", 9);
        assert!(completions.files && completions.start == 6, "{completions:?}");
        let words = gelu_words();
        assert!(words.contains(&"tanh".to_string()), "{words:?}");
        // A map without a call.
        has("let m = #{dt", &[], &["dtype: "]);
    }

    fn gelu_words() -> Vec<String> {
        words("gelu(xs, #{approximate: \"")
    }

    #[test]
    fn comments_and_texts_are_left_alone() {
        for text in ["// x", "1 /* x", "`x", "\"a\" // re"] {
            assert!(words(text).is_empty(), "{text}");
        }
        let session = session();
        for text in ["é", ").", "].x", "}.", ".", "::", "#{", "(.", "[[(#{", "a.b.c(", "fn (", "x[", "1.", "\"\\"] {
            for at in 0..=text.len() {
                session.complete(text, at);
                session.signature(&text[..text.floor_char_boundary(at)]);
            }
        }
    }

    #[test]
    fn the_call_around_shows_its_signature() {
        let session = session();
        let sign = |text: &str| session.signature(text).unwrap_or_default();
        assert!(sign("sum(xs, ").starts_with("sum("));
        assert!(sign("xs.sum(").starts_with("sum(dim"), "{}", sign("xs.sum("));
        assert_eq!(sign("scaled("), "scaled(v, by)");
        assert!(
            sign("nn::linear(2, #{").starts_with("linear(in_features, out_features"),
            "{}",
            sign("nn::linear(2, #{")
        );
        assert!(sign("load(").starts_with("load(path"));
        assert_eq!(sign("sum(xs)"), "");
        assert_eq!(sign("if ("), "");
        assert!(sign("zeros([2, (3)], ").starts_with("zeros("));
    }
}

//! What values are, as far as an editor dares to say. The checks know a value only where it is certain, since they report
//! mistakes; who completes a name is content with what it is nearly always: the element of a list in a loop over it, the
//! entries of a map around its closures as `this`, what a method of its type gives.

use super::names::Names;
use crate::base::signature::{Gives, parts as parts_of};
use crate::op::row::Returns;
use crate::op::table;
use crate::script::check::layers::Layer;
use crate::script::check::reading::Reading;
use crate::script::check::syntax::{Block, Entry, Expr, Function, Kind, Param, Stmt, StmtKind};
use crate::script::check::value::Value;
use crate::script::manual;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// What a value probably is.
#[derive(Clone, Debug)]
pub enum Guess {
    /// As the checks know it.
    Is(Value),
    /// An array, or what else a loop goes over, of such elements.
    List(Rc<Guess>),
    /// An array of these elements.
    Parts(Rc<Vec<Guess>>),
    /// A map, or a module, with these entries.
    Fields(Rc<BTreeMap<String, Guess>>, bool),
    /// What can be called with these parameters, and gives this.
    Calls(Rc<Guess>, Rc<[String]>),
}

const UNKNOWN: Guess = Guess::Is(Value::Unknown);
const TENSOR: Guess = Guess::Is(Value::Tensor(None));
const TEXT: Guess = Guess::Is(Value::Str(None));

impl Guess {
    fn list(item: Guess) -> Guess {
        Guess::List(Rc::new(item))
    }

    fn calls(result: Guess) -> Guess {
        Guess::Calls(Rc::new(result), Rc::new([]))
    }

    fn pair(first: Guess, second: Guess) -> Guess {
        Guess::Parts(Rc::new(vec![first, second]))
    }

    fn is_unknown(&self) -> bool {
        matches!(self, Guess::Is(Value::Unknown))
    }

    /// By which name the manual calls values of its type: `x` a tensor, `xs` an array.
    pub fn owner(&self) -> Option<&'static str> {
        match self {
            Guess::Is(value) => owner(value),
            Guess::List(_) | Guess::Parts(_) => Some("xs"),
            Guess::Fields(_, true) => Some("model"),
            Guess::Fields(_, false) => Some("m"),
            Guess::Calls(..) => None,
        }
    }

    /// What can be written after its dot; the names of methods end with a parenthesis.
    pub fn members(&self) -> Vec<String> {
        let mut names = match self {
            Guess::Is(value) => return super::values::members(value),
            Guess::List(_) | Guess::Parts(_) => return super::values::members(&Value::Array(None)),
            Guess::Calls(..) => return super::values::members(&Value::Closure(None)),
            Guess::Fields(_, true) => manual::members::of_module(),
            Guess::Fields(_, false) => super::values::members(&Value::Map(None)),
        };
        names.extend(self.entries().cloned());
        crate::base::order::by(&mut names, Ord::cmp);
        names.dedup();
        names
    }

    /// The entries of a map or module.
    pub fn entries(&self) -> impl Iterator<Item = &String> {
        let (own, of_map) = match self {
            Guess::Fields(entries, _) => (Some(entries.keys()), None),
            Guess::Is(Value::Map(Some(map))) => (None, Some(map.keys())),
            _ => (None, None),
        };
        own.into_iter().flatten().chain(of_map.into_iter().flatten())
    }

    /// What a loop over it gives.
    fn item(&self) -> Guess {
        let alike = |all: &[Guess]| {
            let first = all.first()?;
            all.iter().all(|other| other.owner() == first.owner()).then(|| first.clone())
        };
        match self {
            Guess::List(item) => (**item).clone(),
            Guess::Parts(parts) => alike(parts).unwrap_or(UNKNOWN),
            Guess::Is(Value::Array(Some(items))) => {
                alike(&items.iter().cloned().map(Guess::Is).collect::<Vec<_>>()).unwrap_or(UNKNOWN)
            }
            Guess::Is(Value::Range(_)) => Guess::Is(Value::Int(None)),
            Guess::Is(Value::Str(_)) => TEXT,
            Guess::Is(Value::Tensor(_)) => TENSOR,
            _ => UNKNOWN,
        }
    }

    /// The entry of a map or module.
    pub fn entry(&self, name: &str) -> Option<Guess> {
        match self {
            Guess::Fields(entries, _) => entries.get(name).cloned(),
            Guess::Is(Value::Map(Some(map))) => map.get(name).cloned().map(Guess::Is),
            _ => None,
        }
    }

    /// What a call of it gives.
    fn called(&self) -> Guess {
        match self {
            Guess::Calls(result, _) => (**result).clone(),
            Guess::Fields(entries, true) => entries.get("forward").map_or(TENSOR, Guess::called),
            Guess::Is(Value::Layer(layer)) if !matches!(**layer, Layer::Stepped(_) | Layer::Loader) => TENSOR,
            _ => UNKNOWN,
        }
    }

    /// Whether it says more than what the checks know.
    fn refines(&self, known: &Value) -> bool {
        match self {
            Guess::Is(Value::Unknown) => false,
            Guess::Is(_) => matches!(known, Value::Unit),
            Guess::List(_) | Guess::Parts(_) => matches!(known, Value::Array(_) | Value::Unit),
            Guess::Fields(..) => matches!(known, Value::Map(_) | Value::Layer(_) | Value::Unit),
            Guess::Calls(..) => matches!(known, Value::Closure(_) | Value::Unit),
        }
    }
}

/// By which name the manual calls values of a type.
pub fn owner(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Tensor(_) => "x",
        Value::Str(_) => "text",
        Value::Array(_) | Value::Range(_) => "xs",
        Value::Map(_) => "m",
        Value::Int(_) | Value::Float(_) | Value::Number => "n",
        Value::Device => "d",
        Value::Layer(layer) => match **layer {
            Layer::Stepped(_) => return None,
            Layer::Loader => "loader",
            _ => "model",
        },
        Value::Object(name) => match *name {
            "stream" => "s",
            "event" => "e",
            "cell" => "c",
            "timestamp" => "t",
            other => other,
        },
        _ => return None,
    })
}

/// The guesses of a text.
#[derive(Default)]
pub struct Guesses {
    /// Of variables and parameters, by the tokens that declare them.
    declared: HashMap<u32, Guess>,
    /// Of what stands before the dot of a member.
    receivers: HashMap<u32, Guess>,
}

impl Guesses {
    pub fn of(reading: &Reading, names: &Names) -> Guesses {
        let mut walk = Walk {
            reading,
            names,
            all: Guesses::default(),
            functions: HashMap::new(),
            this: Vec::new(),
            returns: Vec::new(),
        };
        for stmt in &reading.body {
            if let StmtKind::Fn(function) = &stmt.kind {
                walk.function(function);
            }
        }
        walk.body(&reading.body);
        walk.all
    }

    /// What stands before the dot of a member.
    pub fn receiver(&self, member: u32) -> Option<&Guess> {
        self.receivers.get(&member).filter(|guess| !guess.is_unknown())
    }
}

struct Walk<'r> {
    reading: &'r Reading,
    names: &'r Names,
    all: Guesses,
    /// What the functions of the text give, by name and number of parameters.
    functions: HashMap<(&'r str, usize), Guess>,
    /// What `this` is in the closures around.
    this: Vec<Guess>,
    returns: Vec<Guess>,
}

impl<'r> Walk<'r> {
    fn function(&mut self, function: &'r Function) {
        let before = std::mem::take(&mut self.returns);
        for param in &function.params {
            self.declare(param, UNKNOWN);
        }
        let last = self.block(&function.body);
        let given = std::mem::replace(&mut self.returns, before);
        let result = given.into_iter().find(|guess| !guess.is_unknown()).unwrap_or(last);
        self.functions.insert((&function.name.name, function.params.len()), result);
    }

    fn declare(&mut self, name: &Param, guess: Guess) {
        let known = self.reading.seen.value(name.token);
        let guess =
            if guess.refines(known) || matches!(known, Value::Unknown) { guess } else { Guess::Is(known.clone()) };
        self.all.declared.insert(name.token, guess);
    }

    fn block(&mut self, block: &'r Block) -> Guess {
        self.body(&block.body)
    }

    /// Statements, with the value of the last one.
    fn body(&mut self, body: &'r [Stmt]) -> Guess {
        body.iter().map(|stmt| self.stmt(stmt)).last().unwrap_or(UNKNOWN)
    }

    fn stmt(&mut self, stmt: &'r Stmt) -> Guess {
        match &stmt.kind {
            StmtKind::Let { name, value, .. } => {
                let given = value.as_ref().map_or(UNKNOWN, |value| self.expr(value));
                self.declare(name, given);
            }
            StmtKind::Unpack { names, pattern, value, .. } => {
                let given = value.as_ref().map_or(UNKNOWN, |value| self.expr(value));
                let mut parts = Vec::new();
                unpack(&pattern.0, &given, &mut parts);
                self.declare_all(names, parts);
            }
            StmtKind::Assign { target, value, .. } => {
                self.expr(target);
                self.expr(value);
            }
            StmtKind::Expr(value) => return self.expr(value),
            StmtKind::Return(value) => {
                let given = value.as_ref().map_or(UNKNOWN, |value| self.expr(value));
                self.returns.push(given);
            }
            StmtKind::Throw(value) | StmtKind::Break(value) => {
                value.iter().for_each(|value| drop(self.expr(value)));
            }
            StmtKind::Empty | StmtKind::Continue | StmtKind::Export | StmtKind::Fn(_) | StmtKind::Import { .. } => {}
        }
        UNKNOWN
    }

    fn declare_all(&mut self, names: &'r [Param], parts: Vec<Guess>) {
        let whole = parts.len() == names.len();
        for (at, name) in names.iter().enumerate() {
            self.declare(name, if whole { parts[at].clone() } else { UNKNOWN });
        }
    }

    fn expr(&mut self, expr: &'r Expr) -> Guess {
        let made = self.made(expr);
        match self.reading.seen.value(expr.focus) {
            Value::Unknown => made,
            known if made.refines(known) => made,
            known => Guess::Is(known.clone()),
        }
    }

    fn exprs(&mut self, all: &'r [Expr]) -> Vec<Guess> {
        all.iter().map(|expr| self.expr(expr)).collect()
    }

    /// The value of an expression by its parts.
    fn made(&mut self, expr: &'r Expr) -> Guess {
        match &expr.kind {
            Kind::Str(_) => TEXT,
            Kind::Int(_) => Guess::Is(Value::Int(None)),
            Kind::Float(_) => Guess::Is(Value::Float(None)),
            Kind::Name(name) if name == "this" => self.this.last().cloned().unwrap_or(UNKNOWN),
            Kind::Name(_) => self.variable(expr.focus),
            Kind::Array(items) => Guess::Parts(Rc::new(self.exprs(items))),
            Kind::Map(entries) => self.map(entries, false),
            Kind::Call { space, name, args, block } => {
                let given = self.call(expr.focus, space.as_deref(), name, args);
                block.as_ref().map_or(given, |block| self.block(block))
            }
            Kind::Method { of, name, args, .. } => {
                let of = self.expr(of);
                self.all.receivers.insert(expr.focus, of.clone());
                self.method(&of, name, args)
            }
            Kind::Property { of, name, .. } => {
                let of = self.expr(of);
                self.all.receivers.insert(expr.focus, of.clone());
                property(&of, name)
            }
            Kind::Apply { of, args } => {
                let of = self.expr(of);
                self.exprs(args);
                of.called()
            }
            Kind::Index { of, items, .. } => {
                let of = self.expr(of);
                self.exprs(items);
                part(&of, items)
            }
            Kind::Unary { of, .. } => self.expr(of),
            Kind::Binary { left, right, .. } => {
                let both = [self.expr(left), self.expr(right)];
                if both.iter().any(|one| one.owner() == Some("x")) { TENSOR } else { UNKNOWN }
            }
            Kind::Closure { params, body } => {
                let none = vec![UNKNOWN; params.len()];
                self.closure(params, body, none)
            }
            _ => self.flow(expr),
        }
    }

    /// Branches and loops.
    fn flow(&mut self, expr: &'r Expr) -> Guess {
        match &expr.kind {
            Kind::Text(items) => {
                items.iter().for_each(|item| drop(self.expr(&item.value)));
                TEXT
            }
            Kind::Range { start, end, .. } => {
                [start, end].into_iter().flatten().for_each(|end| drop(self.expr(end)));
                Guess::Is(Value::Range(None))
            }
            Kind::Block(block) => self.block(block),
            Kind::If { condition, then, otherwise } => {
                self.expr(condition);
                let first = self.block(then);
                let second = otherwise.as_ref().map_or(UNKNOWN, |otherwise| self.expr(otherwise));
                if first.is_unknown() { second } else { first }
            }
            Kind::Switch { value, arms } => {
                self.expr(value);
                let mut given = UNKNOWN;
                for arm in arms {
                    self.exprs(&arm.cases);
                    arm.guard.iter().for_each(|guard| drop(self.expr(guard)));
                    let value = self.stmt(&arm.body);
                    given = if given.is_unknown() { value } else { given };
                }
                given
            }
            Kind::While { condition, body } => {
                self.expr(condition);
                self.block(body);
                UNKNOWN
            }
            Kind::Loop { body, condition } => {
                self.block(body);
                condition.iter().for_each(|condition| drop(self.expr(condition)));
                UNKNOWN
            }
            Kind::For { names, values, body } => {
                let item = self.expr(values).item();
                let parts = match &item {
                    Guess::Parts(parts) if names.len() > 1 => parts.to_vec(),
                    _ => vec![item],
                };
                self.declare_all(names, parts);
                self.block(body);
                UNKNOWN
            }
            Kind::Try { body, name, caught } => {
                let given = self.block(body);
                name.iter().for_each(|name| self.declare(name, UNKNOWN));
                self.block(caught);
                given
            }
            _ => UNKNOWN,
        }
    }

    fn variable(&self, token: u32) -> Guess {
        let symbol = self.names.at(token).and_then(|symbol| self.names.symbols.get(symbol));
        symbol.and_then(|symbol| self.all.declared.get(&symbol.token)).cloned().unwrap_or(UNKNOWN)
    }

    /// A closure whose arguments are these; what it gives.
    fn closure(&mut self, params: &'r [Param], body: &'r Stmt, args: Vec<Guess>) -> Guess {
        let before = std::mem::take(&mut self.returns);
        for (at, param) in params.iter().enumerate() {
            self.declare(param, args.get(at).cloned().unwrap_or(UNKNOWN));
        }
        let last = self.stmt(body);
        let given = std::mem::replace(&mut self.returns, before);
        let result = given.into_iter().find(|guess| !guess.is_unknown()).unwrap_or(last);
        Guess::Calls(Rc::new(result), params.iter().map(|param| param.name.clone()).collect())
    }

    /// A map literal, whose closures see it as `this`.
    fn map(&mut self, entries: &'r [Entry], is_module: bool) -> Guess {
        let mut found = BTreeMap::new();
        for entry in entries {
            let is_closure = matches!(entry.value.kind, Kind::Closure { .. });
            let guess = if is_closure { Guess::calls(UNKNOWN) } else { self.expr(&entry.value) };
            found.insert(entry.key.clone(), guess);
        }
        for entry in entries.iter().filter(|entry| matches!(entry.value.kind, Kind::Closure { .. })) {
            self.this.push(Guess::Fields(Rc::new(found.clone()), is_module));
            let guess = self.expr(&entry.value);
            self.this.pop();
            found.insert(entry.key.clone(), guess);
        }
        Guess::Fields(Rc::new(found), is_module)
    }

    fn call(&mut self, token: u32, space: Option<&str>, name: &str, args: &'r [Expr]) -> Guess {
        let module = space.map(|space| self.names.module(space).unwrap_or(space));
        if let (Some("nn"), "module", [first, rest @ ..]) = (module, name, args)
            && let Kind::Map(entries) = &first.kind
        {
            self.exprs(rest);
            return self.map(entries, true);
        }
        let given = self.exprs(args);
        match module {
            Some("nn") if matches!(name, "lstm" | "gru" | "rnn") => recurrent(name),
            Some("re") => match name {
                "compile" => Guess::Is(Value::Object("pattern")),
                _ => of_pattern(name),
            },
            Some(module) => by_signature(&format!("{module}::{name}")),
            None => match self.variable(token) {
                Guess::Is(Value::Unknown) => match self.functions.get(&(name, args.len())) {
                    Some(own) => own.clone(),
                    None => native(name, &given),
                },
                held => held.called(),
            },
        }
    }

    fn method(&mut self, of: &Guess, name: &str, args: &'r [Expr]) -> Guess {
        let item = of.item();
        let mut given = Vec::new();
        for arg in args {
            given.push(match &arg.kind {
                Kind::Closure { params, body } if of.owner() == Some("xs") => {
                    self.element_closure(name, &item, params, body)
                }
                _ => self.expr(arg),
            });
        }
        if let Some(entry) = of.entry(name) {
            return entry.called();
        }
        let result = || given.first().map_or(UNKNOWN, Guess::called);
        match (of.owner(), name) {
            (Some("xs"), "map") => Guess::list(result()),
            (Some("xs"), "find_map") => result(),
            (Some("xs"), "reduce" | "reduce_rev") => given.get(1).cloned().unwrap_or_else(result),
            (Some("xs"), "filter" | "copy" | "extract" | "sorted" | "reversed" | "drain" | "retain" | "splice") => {
                Guess::list(item)
            }
            (Some("xs"), "get" | "pop" | "shift" | "remove" | "find" | "max" | "min") => item,
            (Some("m"), "keys") => Guess::list(TEXT),
            (Some("m"), "values") => Guess::list(of.any_entry()),
            (Some("m"), "items") => Guess::list(Guess::pair(TEXT, of.any_entry())),
            (Some("m"), "get" | "pop") => {
                let key =
                    args.first().and_then(|key| if let Kind::Str(text) = &key.kind { text.clone() } else { None });
                key.and_then(|key| of.entry(&key)).or(given.get(1).cloned()).unwrap_or(UNKNOWN)
            }
            (Some(owner), _) => of_method(owner, name, of),
            (None, _) => UNKNOWN,
        }
    }

    /// A closure that a method of arrays calls with elements.
    fn element_closure(&mut self, name: &str, item: &Guess, params: &'r [Param], body: &'r Stmt) -> Guess {
        let args = match name {
            "reduce" | "reduce_rev" => vec![UNKNOWN, item.clone()],
            "for_each" => vec![Guess::Is(Value::Int(None))],
            _ => vec![item.clone(), item.clone()],
        };
        self.this.push(item.clone());
        let result = self.closure(params, body, args);
        self.this.pop();
        result
    }
}

impl Guess {
    /// What the entries of a map are, if they are alike.
    fn any_entry(&self) -> Guess {
        match self {
            Guess::Fields(entries, _) => Guess::Parts(Rc::new(entries.values().cloned().collect())).item(),
            Guess::Is(Value::Map(Some(map))) => {
                Guess::Parts(Rc::new(map.values().cloned().map(Guess::Is).collect())).item()
            }
            _ => UNKNOWN,
        }
    }
}

/// The parts of a value that a pattern names, in the order of its names.
fn unpack(pattern: &str, given: &Guess, parts: &mut Vec<Guess>) {
    let inside = |open: &str, close: char| pattern.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(inside) = inside("[", ']') {
        for (at, one) in parts_of(inside).into_iter().enumerate() {
            match one.strip_prefix("..") {
                Some(rest) => parts.extend((!rest.is_empty()).then(|| Guess::list(given.item()))),
                None => unpack(one, &element(given, at as i64), parts),
            }
        }
    } else if let Some(inside) = inside("#{", '}') {
        for one in parts_of(inside) {
            match (one.strip_prefix(".."), one.split_once(':')) {
                (Some(rest), _) => parts.extend((!rest.is_empty()).then(|| Guess::Is(Value::Map(None)))),
                (None, Some((key, pattern))) => unpack(pattern.trim(), &property(given, key.trim()), parts),
                (None, None) => unpack(one, &property(given, one), parts),
            }
        }
    } else if pattern != "_" {
        parts.push(given.clone());
    }
}

fn element(of: &Guess, at: i64) -> Guess {
    let place = |len: usize| if at < 0 { at + len as i64 } else { at } as usize;
    match of {
        Guess::Parts(parts) => parts.get(place(parts.len())).cloned().unwrap_or(UNKNOWN),
        Guess::Is(Value::Array(Some(items))) => items.get(place(items.len())).cloned().map_or(UNKNOWN, Guess::Is),
        Guess::Is(Value::Layer(layer)) if !matches!(**layer, Layer::Stepped(_) | Layer::Loader) => {
            Guess::Is(Value::Layer(Rc::new(Layer::Opaque)))
        }
        other => other.item(),
    }
}

/// `xs[i]`
fn part(of: &Guess, items: &[Expr]) -> Guess {
    match (of, items.first().map(|item| &item.kind)) {
        (_, Some(Kind::Str(Some(key)))) => property(of, key),
        (Guess::List(_) | Guess::Parts(_), Some(Kind::Range { .. })) => Guess::list(of.item()),
        (_, Some(Kind::Int(Some(at)))) => element(of, *at),
        _ => element(of, 0),
    }
}

fn property(of: &Guess, name: &str) -> Guess {
    if let Some(entry) = of.entry(name) {
        return entry;
    }
    match (of.owner(), name) {
        (Some("x"), "grad" | "data") | (Some("model"), "weight" | "bias") => TENSOR,
        (Some("x"), _) if manual::property_row(name).is_some() => TENSOR,
        (Some("match"), "re") => Guess::Is(Value::Object("pattern")),
        (Some("match"), "string") | (Some("pattern"), "pattern") => TEXT,
        (Some("d"), "type") => TEXT,
        (Some("s" | "e"), "device") => Guess::Is(Value::Device),
        (Some("t"), "elapsed") => Guess::Is(Value::Float(None)),
        _ => UNKNOWN,
    }
}

/// A recurrent network.
fn recurrent(name: &str) -> Guess {
    let parts = ["output", "h_n", "c_n"].into_iter().take(if name == "lstm" { 3 } else { 2 });
    let result = Guess::Fields(Rc::new(parts.map(|part| (part.to_string(), TENSOR)).collect()), false);
    Guess::Fields(Rc::new(BTreeMap::from([("forward".to_string(), Guess::calls(result))])), true)
}

/// What functions of the language give.
fn native(name: &str, given: &[Guess]) -> Guess {
    let item = given.first().map_or(UNKNOWN, Guess::item);
    match name {
        "enumerate" => Guess::list(Guess::pair(Guess::Is(Value::Int(None)), item)),
        "zip" => Guess::list(Guess::Parts(Rc::new(given.iter().map(Guess::item).collect()))),
        "sorted" | "reversed" | "list" => Guess::list(item),
        "progress" => given.first().cloned().unwrap_or(UNKNOWN),
        "range" => Guess::Is(Value::Range(None)),
        "set" => Guess::Is(Value::Object("set")),
        "cell" => Guess::Is(Value::Object("cell")),
        "timestamp" => Guess::Is(Value::Object("timestamp")),
        "generator" => Guess::Is(Value::Object("generator")),
        _ => match by_signature(name) {
            Guess::Is(Value::Unknown) if manual::native(name).is_none() => of_row(name),
            known => known,
        },
    }
}

/// What an operation gives.
fn of_row(name: &str) -> Guess {
    let Some((op, inplace)) = table::called(name) else { return UNKNOWN };
    let named =
        |names: &[&str]| Guess::Fields(Rc::new(names.iter().map(|name| (name.to_string(), TENSOR)).collect()), false);
    match op.results {
        _ if inplace => TENSOR,
        _ if op.truth => Guess::Is(Value::Bool(None)),
        Returns::One => TENSOR,
        Returns::Named(names) => named(names),
        Returns::NamedRest(first, _) => named(&[first]),
        Returns::List | Returns::ListIf(_) | Returns::ListWithout(_) => Guess::list(TENSOR),
    }
}

/// What a method of `re`, or of a pattern, gives.
fn of_pattern(name: &str) -> Guess {
    let found = Guess::Is(Value::Object("match"));
    match name {
        "search" | "match" | "fullmatch" => found,
        "finditer" => Guess::list(found),
        "findall" | "split" => Guess::list(TEXT),
        _ => by_signature(&format!("re::{name}")),
    }
}

/// What a method of a type gives.
fn of_method(owner: &str, name: &str, of: &Guess) -> Guess {
    let itself = || of.clone();
    match (owner, name) {
        ("text", "split" | "rsplit" | "split_rev" | "splitlines" | "partition" | "rpartition" | "chars") => {
            Guess::list(TEXT)
        }
        ("pattern", _) => of_pattern(name),
        ("set", "union" | "intersection" | "difference" | "symmetric_difference" | "copy") => itself(),
        ("generator", "manual_seed") => itself(),
        ("model", "to" | "cuda" | "cpu" | "half" | "float" | "double" | "bfloat16" | "train" | "eval" | "copy") => {
            itself()
        }
        ("model", "parameters" | "buffers") => Guess::list(TENSOR),
        ("model", "children" | "modules") => Guess::list(Guess::Is(Value::Layer(Rc::new(Layer::Opaque)))),
        ("model", "state_dict") => Guess::Is(Value::Map(None)),
        ("model", "forward") => of.called(),
        ("e" | "s", "record_event") => Guess::Is(Value::Object("event")),
        _ => match manual::member(owner, name) {
            Some(member) => of_result(member.signature().and_then(|signature| signature.result)),
            None if owner == "x" => of_row(name),
            None => UNKNOWN,
        },
    }
}

fn by_signature(name: &str) -> Guess {
    of_result(manual::native(name).and_then(manual::Native::signature).and_then(|signature| signature.result))
}

fn of_result(result: Option<Gives>) -> Guess {
    Guess::Is(result.map_or(Value::Unknown, Value::given_as))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner of what stands before the last dot of a text.
    fn owner_at_end(text: &str) -> Option<&'static str> {
        let reading = Reading::of_text(text);
        let names = Names::of(&reading);
        let guesses = Guesses::of(&reading, &names);
        let last = guesses.receivers.keys().max().copied()?;
        guesses.receiver(last).and_then(Guess::owner)
    }

    #[test]
    fn what_stands_before_a_dot_is_guessed() {
        for (text, owner) in [
            ("let k = \"a,b\".split(\",\");\nk.", "xs"),
            ("let k = \"a,b\".split(\",\");\nk[0].", "text"),
            ("let s = \"a\".upper();\ns.", "text"),
            ("let q = #{a: 1}.keys();\nq.", "xs"),
            ("for x in [\"a\"] { x.", "text"),
            ("for (i, x) in enumerate([\"a\"]) { x.", "text"),
            ("for (k, v) in #{a: \"x\"}.items() { v.", "text"),
            ("[\"a\"].map(|x| x.", "text"),
            ("let [a, b] = [\"a\", 2];\na.", "text"),
            ("let #{w} = #{w: \"a\"};\nw.", "text"),
            ("let #{w: [a, _, ..r]} = #{w: [[1], \"b\", 3]};\na.", "xs"),
            ("import \"nn\" as nn; let m = nn::module(#{k: \"a\", forward: |x| x });\nm.", "model"),
            ("import \"nn\" as nn; let m = nn::module(#{k: \"a\", forward: |x| this.k.", "text"),
            ("let o = #{k: \"a\", f: || this.", "m"),
            ("let o = #{k: \"a\", f: || this.k };\no.f().", "text"),
            ("fn f() { [\"a\"] }\nf().", "xs"),
            ("fn f() { return \"a\"; }\nf().", "text"),
            ("let f = |x| \"a\";\nf(1).", "text"),
            ("let s = set([2]);\ns.", "set"),
            ("let m = re::search(\"a\", \"b\"); m.", "match"),
            ("let c = cell(2);\nc.", "c"),
        ] {
            assert_eq!(owner_at_end(text), Some(owner), "{text}");
        }
    }
}

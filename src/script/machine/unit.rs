//! The functions of a text, compiled at their first calls; and how Rhai, natives and host programs call them: by stubs that
//! stand in the place of their bodies.

use super::compile;
use super::compile::walk;
use super::environment::Environment;
use super::input_code::{self, ScopeCode};
use super::module_text;
use super::run::{Frame, Jump, Machine, STACK};
use super::tree::Code;
use super::value::Value;
use crate::base::code;
use crate::base::diag::Diag;
use crate::script::source::Hooks;
use crate::script::values::raise::raise;
use rhai::{
    AST, ASTNode, Dynamic, Engine, EvalAltResult, EvalContext, Expr, ImmutableString, Module, Position, Scope,
    ScriptFuncDef, Shared, Stmt, StmtBlock,
};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock, Weak};

/// The functions of one text, or of all texts of a session so far.
pub struct Unit {
    pub hooks: Arc<dyn Hooks>,
    functions: HashMap<ImmutableString, SmallVec<[Arc<Function>; 1]>>,
    /// Names of methods of one type, which Rhai finds by the value.
    typed: HashSet<ImmutableString>,
    pub environment: Environment,
    /// How many variables a function may have.
    pub most_variables: usize,
}

/// One function.
pub struct Function {
    pub def: Shared<ScriptFuncDef>,
    unit: Weak<Unit>,
    code: OnceLock<Option<Box<Code>>>,
    /// For calls with the variables of the caller.
    among_caller: OnceLock<ScopeCode>,
    /// What Rhai calls in its place, held by the module of the text.
    stub: OnceLock<Weak<ScriptFuncDef>>,
    /// Of a closure: how many of its parameters, the first, are variables that it takes along.
    captured: OnceLock<usize>,
}

impl Unit {
    fn new(engine: &Engine, defs: &[Shared<ScriptFuncDef>], hooks: Arc<dyn Hooks>) -> (Arc<Unit>, Vec<Arc<Function>>) {
        let mut all = Vec::with_capacity(defs.len());
        let unit = Arc::new_cyclic(|unit: &Weak<Unit>| {
            let mut functions: HashMap<_, SmallVec<[Arc<Function>; 1]>> = HashMap::with_capacity(defs.len());
            let mut typed = HashSet::new();
            for def in defs {
                let function = Arc::new(Function {
                    def: def.clone(),
                    unit: unit.clone(),
                    code: OnceLock::new(),
                    among_caller: OnceLock::new(),
                    stub: OnceLock::new(),
                    captured: OnceLock::new(),
                });
                all.push(function.clone());
                if def.this_type.is_some() {
                    typed.insert(def.name.clone());
                } else {
                    functions.entry(def.name.clone()).or_default().push(function);
                }
            }
            let most_variables = engine.max_variables();
            Unit { hooks, functions, typed, environment: Environment::default(), most_variables }
        });
        for function in all.iter().filter(|function| function.def.name.starts_with(ANONYMOUS)) {
            let kept: Arc<dyn Any + Send + Sync> = function.clone();
            unit.hooks.keep_closure(function.def.name.clone(), Arc::downgrade(&kept));
        }
        (unit, all)
    }

    /// A function by its name and number of parameters.
    pub fn find(&self, name: &str, parameters: usize) -> Option<Arc<Function>> {
        self.functions.get(name)?.iter().find(|function| function.def.params.len() == parameters).cloned()
    }

    /// All functions, in no order.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values().flatten()
    }

    pub fn has_typed(&self, name: &str) -> bool {
        self.typed.contains(name)
    }
}

impl Function {
    /// What it was compiled to; `None` where it is too large.
    pub fn code(&self) -> Option<&Code> {
        let code =
            self.code.get_or_init(|| compile::function(&self.def, &self.statements(), self.unit.clone()).map(Box::new));
        code.as_deref()
    }

    /// The closure takes so many variables along.
    pub(super) fn takes_along(&self, count: usize) {
        let _ = self.captured.set(count);
    }

    /// Where its body begins.
    pub fn place(&self) -> Position {
        self.statements().first().map_or(Position::NONE, Stmt::position)
    }

    /// The text that it stands in.
    pub(super) fn unit(&self) -> &Weak<Unit> {
        &self.unit
    }

    pub fn is_compiled(&self) -> bool {
        self.code().is_some()
    }

    /// A pointer to the function, by which anybody calls it.
    pub fn pointer(&self) -> Option<rhai::FnPtr> {
        self.stub.get()?.upgrade().map(rhai::FnPtr::from)
    }

    /// Whether its body names `this`.
    pub(super) fn uses_this(&self) -> bool {
        let is_other = |node: &ASTNode| !matches!(node, ASTNode::Expr(Expr::ThisPtr(..)));
        !self.statements().iter().all(|statement| walk::statement(statement, &mut |node| is_other(node)))
    }

    pub(super) fn statements(&self) -> Vec<Stmt> {
        statements(&self.def)
    }

    /// Whether it is called with the variables of the caller: the mark stands before its arguments.
    fn captures(&self, scope: &Scope) -> bool {
        // Rhai iterates from the latest to the earliest.
        scope.iter_raw().nth(self.def.params.len()).is_some_and(|(name, ..)| name == CAPTURED)
    }

    fn among_caller(&self) -> &ScopeCode {
        self.among_caller.get_or_init(|| {
            let at = Position::NONE;
            let body = Stmt::Block(Box::new(StmtBlock::new(self.statements(), at, at)));
            ScopeCode::new(body, self.unit.clone())
        })
    }
}

/// The variable behind those of the caller, in `f!(x)`.
pub(super) const CAPTURED: &str = "$captured";

/// Bound: variables of one function, or of one statement of the top level.
pub(super) const MOST_SLOTS: usize = 60_000;

/// The error of code that has more variables than that.
pub(super) fn too_large(at: Position) -> Box<EvalAltResult> {
    let text = format!("this code has more than {MOST_SLOTS} variables");
    raise(Diag::error(code::LIMIT_SIZE, text).help("put values into arrays or maps, or divide it into functions"), at)
}

/// What the names of closures begin with, which differ within a session: they are made from where the closures stand.
const ANONYMOUS: &str = "anon$";

/// The compiled function of a closure, from whatever text of the session.
pub(super) fn closure_named(hooks: &dyn Hooks, name: &str, parameters: usize) -> Option<Arc<Function>> {
    let function = closure(hooks, name)?;
    (function.def.params.len() == parameters && function.is_compiled()).then_some(function)
}

/// The same with any number of parameters.
pub(super) fn closure(hooks: &dyn Hooks, name: &str) -> Option<Arc<Function>> {
    hooks.kept_closure(name)?.downcast::<Function>().ok()
}

/// How many variables a closure takes along that the hooks keep.
pub fn captured(closure: &dyn Any) -> usize {
    let function = closure.downcast_ref::<Function>();
    function.and_then(|function| function.captured.get().copied()).unwrap_or(0)
}

/// The statements of a function, whose type Rhai does not export: read by walking over a tree that has just this function.
fn statements(def: &Shared<ScriptFuncDef>) -> Vec<Stmt> {
    let mut module = Module::new();
    module.set_script_fn(def.clone());
    let mut found = Vec::new();
    AST::new(Vec::new(), module).walk(&mut |path: &[ASTNode]| {
        if let [ASTNode::Stmt(statement)] = path {
            found.push((*statement).clone());
        }
        true
    });
    found
}

/// The word that a stub consists of.
const WORD: &str = "__compiled";

/// What a stub knows.
#[derive(Clone)]
struct Handle {
    unit: Arc<Unit>,
    function: Arc<Function>,
}

thread_local! {
    /// Handles for the stubs that are being read on this thread, the next one last.
    static NEXT: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
    /// Stacks that no run uses.
    static STACKS: RefCell<Vec<Vec<Value>>> = const { RefCell::new(Vec::new()) };
}

/// Registers the words that stand for compiled code.
pub fn install(engine: &mut Engine) {
    crate::script::values::calling::install(super::callback::run_once);
    module_text::install(engine);
    input_code::install(engine);
    // Deprecated means "may change" here; the version is pinned.
    #[allow(deprecated)]
    engine.register_custom_syntax_with_state_raw(
        WORD,
        |_, _, state| {
            *state = NEXT.with_borrow_mut(Vec::pop).map_or(Dynamic::UNIT, Dynamic::from);
            Ok(None)
        },
        false,
        |context, _, state| match state.read_lock::<Handle>() {
            Some(handle) => handle.enter(context),
            // The word is not one that a script can write.
            None => Ok(Dynamic::UNIT),
        },
    );
}

/// The compiled function for which a stub stands.
pub(super) fn function_of(stub: &Shared<ScriptFuncDef>) -> Option<Arc<Function>> {
    let body = statements(stub);
    let [Stmt::Expr(word)] = &*body else { return None };
    let Expr::Custom(word, _) = &**word else { return None };
    word.state.read_lock::<Handle>().map(|handle| handle.function.clone())
}

/// The same text with its functions compiled, and the unit for its top level.
pub fn adopt(engine: &Engine, ast: &AST, hooks: &Arc<dyn Hooks>) -> Result<(AST, Arc<Unit>), Box<EvalAltResult>> {
    let defs: Vec<Shared<ScriptFuncDef>> = ast.iter_fn_def().cloned().collect();
    let (unit, functions) = Unit::new(engine, &defs, hooks.clone());
    if defs.is_empty() {
        return Ok((ast.clone(), unit));
    }
    let mut text = String::with_capacity(defs.len() * 28);
    for number in 0..defs.len() {
        text.push_str(&format!("fn s{number}(){{{WORD}}}"));
    }
    let handles = functions.iter().rev().map(|function| Handle { unit: unit.clone(), function: function.clone() });
    NEXT.with_borrow_mut(|next| next.extend(handles));
    let stubs = engine.compile(&text);
    NEXT.with_borrow_mut(Vec::clear);
    let stubs = stubs?;
    let by_name: HashMap<&str, &Shared<ScriptFuncDef>> = stubs.iter_fn_def().map(|def| (&*def.name, def)).collect();
    let mut module = Module::new();
    for (number, def) in defs.iter().enumerate() {
        let Some(stub) = by_name.get(format!("s{number}").as_str()) else { continue };
        let stub = Shared::new(ScriptFuncDef { body: stub.body.clone(), ..ScriptFuncDef::clone(def) });
        let _ = functions[number].stub.set(Arc::downgrade(&stub));
        module.set_script_fn(stub);
    }
    let mut adopted = AST::new(ast.statements().to_vec(), module);
    if let Some(source) = ast.source() {
        adopted.set_source(source);
    }
    Ok((adopted, unit))
}

/// A stack of this thread, given back when the run is over.
pub struct Stack(Vec<Value>);

impl Stack {
    pub fn take() -> Stack {
        let free = STACKS.with_borrow_mut(Vec::pop);
        Stack(free.unwrap_or_else(|| vec![Value::Unit; STACK]))
    }

    /// At least so many slots.
    pub fn slots(&mut self, count: usize) -> &mut [Value] {
        if self.0.len() < count {
            self.0.resize(count, Value::Unit);
        }
        &mut self.0
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let stack = std::mem::take(&mut self.0);
        // A panic leaves values behind: such a stack goes.
        if !std::thread::panicking() {
            let _ = STACKS.try_with(|stacks| stacks.borrow_mut().push(stack));
        }
    }
}

impl Handle {
    /// Rhai calls the function: its arguments are variables of a scope.
    fn enter(&self, context: &mut EvalContext) -> Result<Dynamic, Box<EvalAltResult>> {
        if self.function.captures(context.scope()) {
            return self.function.among_caller().run(context);
        }
        let Some(code) = self.function.code() else { return Err(too_large(self.function.def.body.start_position())) };
        let mut stack = Stack::take();
        let slots = stack.slots(code.slots);
        for (slot, name) in slots.iter_mut().zip(&self.function.def.params) {
            let value = context.scope_mut().get_mut(name).map(Dynamic::take);
            *slot = value.map_or(Value::Unit, Value::unboxed);
        }
        // The state and `this` are behind one borrow: the value is out of its place while the function runs.
        let mut this = context.this_ptr_mut().map(Dynamic::take);
        let engine = context.engine();
        let hooks = &*self.unit.hooks;
        let mut machine = Machine::new(engine, context.global_runtime_state_mut(), hooks);
        let result =
            machine.at_home(self.function.unit(), |machine| machine.timed(slots, &self.function, code, this.as_mut()));
        Value::end(&mut slots[..code.changing()]);
        let jump = machine.jump.take();
        if let (Some(place), Some(value)) = (context.this_ptr_mut(), this) {
            *place = value;
        }
        match (result, jump) {
            (Ok(value), _) | (Err(None), Some(Jump::Return(value))) => Ok(value.boxed()),
            (Err(Some(error)), _) => Err(error),
            // Rhai's parser lets no `break` out of a function.
            (Err(None), _) => Ok(Dynamic::UNIT),
        }
    }
}

/// A statement of the top level: its variables are those of the scope. Of several with one name the latest is meant.
pub fn run_statement(
    machine: &mut Machine,
    (code, own): (&Code, Option<&ImmutableString>),
    scope: &mut rhai::Scope,
    names: &[compile::Outer],
    this: Option<&mut Dynamic>,
) -> super::run::R {
    let mut stack = Stack::take();
    let (slots, rest) = stack.slots(code.slots).split_at_mut(code.slots);
    // From the latest to the earliest: what is hidden finds its name taken out already, and is never named.
    for (slot, (name, is_constant)) in slots.iter_mut().zip(names).rev() {
        *slot = if *is_constant {
            scope.get(name).map_or(Value::Unit, |value| Value::unboxed(value.clone()))
        } else {
            scope.get_mut(name).map_or(Value::Unit, |value| Value::unboxed(value.take()))
        };
    }
    let mut frame = Frame::new(slots, rest, this);
    let result = machine.run_body(&mut frame, code);
    // From the earliest to the latest, so that the latest of a name is what stays.
    for (slot, (name, is_constant)) in frame.slots.iter_mut().zip(names) {
        if !is_constant && let Some(place) = scope.get_mut(name) {
            *place = slot.take().boxed();
        }
    }
    if let (Some(lent), Some(this)) = (frame.lent, frame.this) {
        *this = lent.flatten();
    }
    for slot in frame.slots {
        *slot = Value::Unit;
    }
    for one in frame.declared.into_iter().filter(|one| own != Some(&one.name)) {
        match one.is_constant {
            true => scope.push_constant_dynamic(one.name, one.value),
            false => scope.push_dynamic(one.name, one.value),
        };
    }
    result
}

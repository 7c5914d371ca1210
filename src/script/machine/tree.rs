//! What the compiler makes of Rhai's tree: variables are slots, calls are bound, what is left to Rhai is named.

use super::bytecode::Bytecode;
use super::intrinsics::Intrinsic;
use super::native::Site;
use super::numeric::Numeric;
use super::qualified::Qualified;
use super::quick::Luck;
use super::rest::LastCode;
use super::unit::{Function, Unit};
use super::value::Value;
use crate::base::span::Site as Place;
use rhai::{Dynamic, Expr, ImmutableString, OpAssignment, Position, Stmt};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};

/// A variable's place in its frame.
pub type Slot = u16;

/// An expression or a statement. A statement without a value gives `()`.
pub enum Node {
    Literal(Value),
    Local(Slot),
    /// A variable that nobody reads afterwards: its value moves out.
    Take(Slot),
    This(Position),
    /// `global::NAME`.
    Global(Box<Global>),
    /// A constant of a module that never changes, asked of Rhai once.
    Constant(Box<Constant>),
    Binary(Box<Binary>),
    Unary(Box<Unary>),
    And(Box<[(Node, Position)]>),
    Or(Box<[(Node, Position)]>),
    Coalesce(Box<[Node]>),
    Array(Box<[Node]>),
    Map(Box<MapLiteral>),
    Text(Box<Text>),
    /// A condition's value as a `bool`: `__truth(x)`.
    Truth(Box<(Node, Position)>),
    Call(Box<Call>),
    Native(Box<Native>),
    /// `f(x)` where `f` is a variable, which may hold what can be called.
    Either(Box<Either>),
    /// The closure that runs, and how many values it has taken along.
    Running(Weak<Function>, usize),
    /// The method's `this`, which its closures share until it ends.
    Lend(Position),
    Curry(Box<(Node, Box<[Node]>)>),
    Chain(Box<Chain>),
    Block(Box<Block>),
    If(Box<If>),
    While(Box<While>),
    For(Box<For>),
    Switch(Box<Switch>),
    Break(Option<Box<Node>>),
    Continue,
    Return(Option<Box<Node>>),
    Throw(Box<(Node, Position)>),
    Let(Slot, Box<Node>),
    /// A constant of a block.
    LetConstant(Slot, Box<Node>),
    /// `let [a, b] = f()`
    Unpack(Box<Unpack>),
    Assign(Box<Assign>),
    AssignThis(Box<Assign>),
    AssignChain(Box<AssignChain>),
    Try(Box<Try>),
    /// The body of a `try`, at whose end late faults are waited for.
    TryWait(Box<(Node, Position)>),
    /// A call in a user's source whose place is known while it runs.
    Mark(Box<(Place, Node)>),
    /// `m[k] ?? 0`: an entry that is not there is `()`.
    Missing(Box<(Place, Node)>),
    /// Variables that closures take along, and whether they are constants.
    Share(Box<[(Slot, bool)]>),
    /// `with_device(d) { .. }` and its kin.
    Within(Box<Within>),
    /// An expression of Rhai's of computed operands.
    Operated(Box<(Operands, Box<[Node]>)>),
    Fragment(Box<Fragment>),
    /// A loop whose instructions begin there, and its number among the loops.
    Loop(u32, u32),
    /// `import`, with the path and what Rhai does with it.
    Import(Box<(Node, Operands)>),
    /// A block with statements that may declare variables when they run.
    Evaluating(Box<Block>),
    Rest(Box<Rest>),
    /// A variable more than the session allows.
    OneTooMany(Position),
}

/// A plain pattern: the variables of its names get the parts of a value.
pub struct Unpack {
    pub value: Node,
    pub parts: Parts,
    pub slots: Box<[Slot]>,
    /// What takes all other values apart, by the pattern's text.
    pub native: Native,
    pub pattern: Value,
}

pub enum Parts {
    /// All elements of an array, and whether each has a name.
    Elements(Box<[bool]>),
    /// The entries of a map with these keys.
    Fields(Box<[ImmutableString]>),
}

pub struct Global {
    pub name: ImmutableString,
    pub fragment: Fragment,
}

pub struct Constant {
    pub value: OnceLock<Dynamic>,
    pub fragment: Fragment,
}

/// Operators that numbers have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Xor,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Range,
    RangeInclusive,
    /// `@`, `in` and what a host program registers.
    Other,
}

pub struct Binary {
    pub op: Op,
    pub left: Node,
    pub right: Node,
    pub native: Native,
    /// Its operands are numbers that are at hand, if they are numbers.
    pub is_quick: bool,
    pub luck: Luck,
}

pub struct Unary {
    pub is_not: bool,
    pub operand: Node,
    pub native: Native,
}

pub struct MapLiteral {
    /// The entries with `()` for what is computed.
    pub template: rhai::Map,
    pub entries: Box<[(ImmutableString, Node)]>,
}

/// A string with values between backticks.
pub struct Text {
    pub parts: Box<[Node]>,
    pub operands: Operands,
}

/// An expression of Rhai's whose operands are the variables of a scope that holds just these.
pub struct Operands {
    pub expr: Expr,
}

/// A call of a function of the same text.
pub struct Call {
    pub function: Weak<Function>,
    pub arguments: Box<[Node]>,
    /// The first argument is a variable: it is read after the others are computed.
    pub first_is_variable: bool,
    /// Arguments that are variables which no other argument names: they can be lent.
    pub lendable: SmallVec<[(usize, Slot); 2]>,
    /// The arguments call no function.
    pub is_simple: bool,
    pub operands: Operands,
    pub at: Position,
}

/// A call of what a variable holds or else of the function with its name.
pub struct Either {
    /// The variable or constant.
    pub holder: Node,
    pub arguments: Box<[Node]>,
    pub function: Weak<Function>,
    pub native: Native,
    pub at: Position,
}

/// A call of a native function, or of one that is found when it runs.
pub struct Native {
    pub name: ImmutableString,
    pub arguments: Box<[Node]>,
    /// The first argument is a variable, and given by reference.
    pub first: First,
    pub operands: Operands,
    pub site: Site,
    /// It only asks its first value, and the arguments behind it run no code.
    pub asks: bool,
    /// What no function of the script does.
    pub plain: Option<Plain>,
    /// A function of numbers or letters that needs no call, if its arguments are such.
    pub numeric: Option<Numeric>,
    pub luck: Luck,
    /// It may be a function of an imported module.
    pub qualified: Option<Box<Qualified>>,
    pub at: Position,
}

/// Natives that need no call for plain values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// `k in m`
    Contains,
    /// `chr(n)`
    Chr,
}

/// How the first argument of a native call is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    Value,
    Variable(Slot),
    This,
}

/// `a.b[c].d(e)`: a value and steps from it.
pub struct Chain {
    pub root: Root,
    pub steps: Box<[Step]>,
    /// Indices and arguments, in the order in which they are computed: before the root.
    pub operands: Box<[Node]>,
    /// The whole chain for Rhai: operands are variables, in order, and the root is the last one.
    pub expr: Expr,
    pub rests: OnceLock<Box<[Expr]>>,
    pub singles: OnceLock<Box<[Expr]>>,
    /// The name of a copy whose change here nobody sees, or of the method that changes what no variable holds.
    pub lost: Option<Position>,
    pub loses_result: bool,
    /// It is changed by a method of the text, if that changes its `this`.
    pub lost_by_call: bool,
    /// What its last step does, if that is a function of numbers or letters.
    pub numeric: Option<Numeric>,
    /// It may lead to a number at hand.
    pub is_quick: bool,
    /// It has indices and names alone.
    pub is_path: bool,
    /// Nobody reads that part of the variable afterwards: an array or map moves out.
    pub moves: bool,
    pub luck: Luck,
}

pub enum Root {
    Local(Slot),
    /// A constant, given to Rhai as one.
    Constant(Slot, ImmutableString),
    This(Position),
    Value(Node),
}

pub struct Step {
    pub kind: StepKind,
    /// `?.` and `?[`: of `()` it is `()`.
    pub or_unit: bool,
    pub at: Position,
}

pub enum StepKind {
    Index {
        operand: usize,
        site: Site,
    },
    Property {
        name: ImmutableString,
        getter: ImmutableString,
        site: Site,
    },
    Method {
        name: ImmutableString,
        first: usize,
        count: usize,
        function: Weak<Function>,
        site: Site,
        is_word: bool,
        intrinsic: Option<Intrinsic>,
    },
}

pub struct Block {
    pub statements: Box<[Node]>,
    /// Slots of the variables that the block declares.
    pub declares: std::ops::Range<Slot>,
    /// It imports modules, which end with it.
    pub imports: bool,
}

/// What stands behind a statement that may declare variables when it runs, such as `eval`.
pub struct Rest {
    /// Where it declares none.
    pub plain: Node,
    pub statements: Box<[Stmt]>,
    pub visible: Vec<Visible>,
    /// The variable that the statement itself declares or assigns, which hides one of its name.
    pub own: Option<ImmutableString>,
    pub next: usize,
    pub unit: Weak<Unit>,
    /// The function in which it stands, and how many parameters it has.
    pub running: Option<(ImmutableString, usize)>,
    /// The code among the variables that were declared the last time.
    pub known: LastCode,
}

pub struct If {
    pub condition: Node,
    pub at: Position,
    pub yes: Node,
    pub no: Node,
}

pub struct While {
    pub condition: Option<(Node, Position)>,
    pub body: Node,
    /// The condition is asked after the body.
    pub is_do: bool,
    /// The truth that ends the loop.
    pub ends_at: bool,
    pub at: Position,
    /// Nodes of a round: what it costs of a limit of steps.
    pub weight: u32,
    /// How many loops of the function are around it.
    pub depth: u8,
}

pub struct For {
    pub variable: Slot,
    /// The variable whose elements are lent to the loop's, which the body leaves alone.
    pub lent: Option<Slot>,
    pub counter: Option<Slot>,
    pub values: Node,
    /// What the pairs are made of, if the values are such.
    pub pairs: Option<Pairs>,
    pub values_at: Position,
    pub body: Node,
    /// There is nothing to do in a round: what an iterator raises is not looked at.
    pub is_empty: bool,
    pub at: Position,
    pub weight: u32,
    pub depth: u8,
}

/// The values of a loop whose elements are pairs: those before `.items()` and `.enumerate()`, or the arguments of `zip`.
pub struct Pairs {
    pub kind: PairsOf,
    pub of: Box<[Node]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PairsOf {
    Items,
    Enumerate,
    Zip,
}

/// A `switch`: Rhai says once for each value which arms are meant.
pub struct Switch {
    pub value: Node,
    /// What makes the value that is compared of a tensor, or of an array or map with such.
    pub case: Option<Native>,
    pub arms: Box<[Arm]>,
    /// The same `switch` with the number of each arm as its value, of the value and of what its conditions come to.
    pub operands: Operands,
    /// The arm for all other values.
    pub default: Option<u32>,
    /// Where the arms stand, if they are instructions: labels until all places are known.
    pub targets: Box<[u32]>,
    pub known: parking_lot::RwLock<HashMap<CaseKey, Candidates, BuildHasherDefault<CaseHasher>>>,
    pub recent: RecentCases,
}

/// Arms without a condition, of values that were met lately.
#[derive(Default)]
pub struct RecentCases {
    /// By the lowest bits of a key: what it is, its 32 bits, and the number of the arm plus one.
    numbers: [AtomicU64; 16],
    /// Texts are told by where they are: those of a literal or a table are the same each time.
    texts: parking_lot::RwLock<SmallVec<[(ImmutableString, u32); 8]>>,
}

/// What a key of 32 bits is.
#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Character,
    /// A text of one character.
    Letter,
}

const ARM_BITS: u32 = 30;
const ARM: u32 = (1 << ARM_BITS) - 1;

/// The character of a text that has no other.
fn letter(text: &str) -> Option<u32> {
    let mut all = text.chars();
    all.next().filter(|_| all.next().is_none()).map(u32::from)
}

impl RecentCases {
    #[inline]
    fn place(&self, number: u32, kind: Kind) -> (u64, &AtomicU64) {
        let known = (kind as u64) << 32 | u64::from(number);
        (known, &self.numbers[number as usize % self.numbers.len()])
    }

    #[inline]
    fn of_number(&self, number: u32, kind: Kind) -> Option<u32> {
        let (known, place) = self.place(number, kind);
        let entry = place.load(Ordering::Relaxed);
        (entry >> ARM_BITS == known).then_some(entry as u32 & ARM).and_then(|arm| arm.checked_sub(1))
    }

    #[inline]
    pub fn find(&self, value: &Value) -> Option<u32> {
        match value {
            Value::Int(int) => self.of_number(i32::try_from(*int).ok()? as u32, Kind::Integer),
            Value::Other(value) if value.is_char() => self.of_number(value.as_char().ok()?.into(), Kind::Character),
            Value::Other(value) if value.is_string() => {
                let text = value.read_lock::<ImmutableString>()?;
                if let Some(letter) = letter(&text) {
                    return self.of_number(letter, Kind::Letter);
                }
                let texts = self.texts.read();
                texts.iter().find(|(known, _)| known.ptr_eq(&text)).map(|(_, arm)| *arm)
            }
            _ => None,
        }
    }

    pub fn keep(&self, key: &CaseKey, arm: u32) {
        let keep = |(known, place): (u64, &AtomicU64)| {
            if arm < ARM {
                place.store(known << ARM_BITS | u64::from(arm + 1), Ordering::Relaxed);
            }
        };
        match key {
            CaseKey::Int(int) => _ = i32::try_from(*int).map(|int| keep(self.place(int as u32, Kind::Integer))),
            CaseKey::Character(c) => keep(self.place((*c).into(), Kind::Character)),
            CaseKey::Text(text) if let Some(letter) = letter(text) => keep(self.place(letter, Kind::Letter)),
            CaseKey::Text(text) => {
                let mut texts = self.texts.write();
                if texts.len() < texts.inline_size() {
                    texts.push((text.clone(), arm));
                }
            }
            _ => {}
        }
    }
}

pub struct Arm {
    /// A condition, and its place.
    pub guard: Option<(Node, Position)>,
    pub body: Node,
}

/// The arms whose conditions are asked one after the other. The last one has none, if there is one for all other values.
pub type Candidates = SmallVec<[u32; 2]>;

/// FNV-1a by words. Keys that collide cost time where a place remembers them, which are few.
pub struct CaseHasher(u64);

impl Default for CaseHasher {
    fn default() -> CaseHasher {
        CaseHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for CaseHasher {
    fn finish(&self) -> u64 {
        // The table takes the highest bits for its tags and the lowest for places.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum CaseKey {
    Int(i64),
    Float(u64),
    Bool(bool),
    Unit,
    Character(char),
    Text(ImmutableString),
}

pub struct Assign {
    pub slot: Slot,
    /// `None` for `=`.
    pub op: Option<Op>,
    pub value: Node,
    /// `x op= v` for Rhai, of two variables.
    pub operands: Operands,
    pub name: ImmutableString,
    pub is_constant: bool,
    /// It is a parameter, and nobody sees the change.
    pub is_lost: bool,
    /// `p = p.next`
    pub is_part_of_itself: bool,
    /// The value is a number at hand, if it is a number.
    pub is_quick: bool,
    pub luck: Luck,
    pub at: Position,
}

pub struct AssignChain {
    pub chain: Chain,
    pub op: Option<Op>,
    pub info: OpAssignment,
    pub value: Node,
    pub value_at: Position,
    /// The value and the element are numbers at hand, if they are numbers.
    pub is_quick: bool,
    pub luck: Luck,
    pub rests: OnceLock<Box<[Expr]>>,
}

pub struct Try {
    pub body: Node,
    pub variable: Option<Slot>,
    pub handler: Node,
}

/// A block in which the device, the stream or the mode of gradients is another.
pub struct Within {
    pub word: &'static str,
    pub value: Option<Node>,
    pub at: Position,
    pub body: Node,
    /// Written as a closure: `return` leaves it, not the function around it.
    pub is_closure: bool,
}

/// What Rhai evaluates in a scope that mirrors the variables that are visible.
pub struct Fragment {
    pub expr: Expr,
    pub variables: Box<[Visible]>,
    /// It may declare variables.
    pub declares: bool,
}

#[derive(Clone)]
pub struct Visible {
    pub name: ImmutableString,
    pub slot: Slot,
    pub is_constant: bool,
}

/// A compiled body.
pub struct Code {
    pub body: Body,
    pub slots: usize,
    /// Parameters that the body leaves alone, as bits: their values are given back.
    pub lends: u64,
    /// Its first statement.
    pub at: Position,
}

/// How a body is run.
pub enum Body {
    Tree(Node),
    Code(Box<Bytecode>),
}

impl Code {
    /// The registers that may hold values when it ends.
    pub fn changing(&self) -> usize {
        match &self.body {
            Body::Tree(_) => self.slots,
            Body::Code(bytecode) => bytecode.changing,
        }
    }
}

//! The syntax tree of a script, as far as the checks need it. Positions are token indices.

/// An expression.
#[derive(Debug)]
pub struct Expr {
    pub first: u32,
    /// The token that the interpreter names: an operator, a function's name, a `[`.
    pub focus: u32,
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    Unit,
    Bool(bool),
    Int(Option<i64>),
    Float(Option<f64>),
    /// Without its value if that is hard to determine.
    Str(Option<String>),
    Char,
    /// Text with interpolated values.
    Text(Vec<Shown>),
    Array(Vec<Expr>),
    Map(Vec<Entry>),
    Name(String),
    /// `a::b`, as a value.
    Path,
    /// `f(x)`, `nn::f(x)`: with the module's name, if there is one.
    Call {
        space: Option<String>,
        name: String,
        args: Vec<Expr>,
        block: Option<Block>,
    },
    Method {
        of: Box<Expr>,
        name: String,
        args: Vec<Expr>,
        may_be_unit: bool,
    },
    /// `fs[0](x)`, `make(1)(x)`
    Apply {
        of: Box<Expr>,
        args: Vec<Expr>,
    },
    Property {
        of: Box<Expr>,
        name: String,
        may_be_unit: bool,
    },
    Index {
        of: Box<Expr>,
        items: Vec<Expr>,
        may_be_unit: bool,
    },
    Unary {
        op: String,
        of: Box<Expr>,
    },
    Binary {
        op: String,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Range {
        start: Option<Box<Expr>>,
        end: Option<Box<Expr>>,
        inclusive: bool,
    },
    Closure {
        params: Vec<Param>,
        body: Box<Stmt>,
    },
    Block(Block),
    If {
        condition: Box<Expr>,
        then: Block,
        otherwise: Option<Box<Expr>>,
    },
    Switch {
        value: Box<Expr>,
        arms: Vec<Arm>,
    },
    While {
        condition: Box<Expr>,
        body: Block,
    },
    /// `loop { }`, and `do { } while x`.
    Loop {
        body: Block,
        condition: Option<Box<Expr>>,
    },
    For {
        names: Vec<Param>,
        values: Box<Expr>,
        body: Block,
    },
    Try {
        body: Block,
        name: Option<Param>,
        caught: Block,
    },
    /// Syntax that this parser does not understand.
    Other,
}

/// An interpolated value, `${x:.2f}`.
#[derive(Debug)]
pub struct Shown {
    pub value: Expr,
    /// The token that begins the format.
    pub colon: u32,
    pub format: Option<String>,
}

#[derive(Debug)]
pub struct Entry {
    pub key: String,
    pub value: Expr,
}

#[derive(Debug)]
pub struct Arm {
    pub cases: Vec<Expr>,
    pub guard: Option<Expr>,
    pub body: Stmt,
}

/// A declared name.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub token: u32,
}

#[derive(Debug)]
pub struct Block {
    pub body: Vec<Stmt>,
    /// Its `{` and `}`.
    pub open: u32,
    pub close: u32,
}

#[derive(Debug)]
pub struct Stmt {
    pub first: u32,
    pub last: u32,
    /// A `;` follows, so that its value is not that of the block.
    pub ended: bool,
    pub kind: StmtKind,
}

#[derive(Debug)]
pub enum StmtKind {
    Empty,
    Let {
        name: Param,
        constant: bool,
        value: Option<Expr>,
    },
    /// `let [a, b] = xs`
    Unpack {
        names: Vec<Param>,
        /// The pattern without blanks, and its first token.
        pattern: (String, u32),
        constant: bool,
        value: Option<Expr>,
    },
    Assign {
        op: String,
        focus: u32,
        target: Expr,
        value: Expr,
    },
    Expr(Expr),
    Return(Option<Expr>),
    Throw(Option<Expr>),
    Break(Option<Expr>),
    Continue,
    Fn(Function),
    Import {
        path: Expr,
        alias: Option<Param>,
    },
    Export,
}

#[derive(Debug)]
pub struct Function {
    pub name: Param,
    pub params: Vec<Param>,
    pub body: Block,
}

//! Lists of parameters, written as signatures: the only place that defines their order, names, kinds and defaults.
//! Rules read arguments by these names; an unknown name does not compile.

use super::row::{Default, Param};

/// `signature!(mean(input: Tensor, dim: Dims = None, keepdim: Bool = false));` makes a module: `mean::PARAMS` is the
/// list of a row, `mean::keepdim` the position of an argument. A default of more than one token stands in parentheses.
#[macro_export]
macro_rules! signature {
    ($(#[$doc:meta])* $list:ident($($name:ident: $kind:ident $(($words:expr))? $(= $default:tt)?),* $(,)?)) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals, non_snake_case, dead_code, unused_imports)]
        pub mod $list {
            use super::*;
            use $crate::op::row::{Default, Kind, Param};

            pub const PARAMS: &[Param] = &[$(Param {
                name: stringify!($name),
                kind: Kind::$kind $(($words))?,
                default: $crate::signature!(@default $kind $($default)?),
            }),*];
            $(pub const $name: usize = $crate::op::signature::position(PARAMS, stringify!($name));)*
        }
    };
    (@default $kind:ident) => { Default::Required };
    (@default $kind:ident None) => { Default::None };
    (@default Bool $value:tt) => { Default::Bool($value) };
    (@default Float $value:tt) => { Default::Float($value) };
    (@default Str $value:tt) => { Default::Str($value) };
    (@default Text $value:tt) => { Default::Str($value) };
    (@default NumberOrText $value:tt) => { Default::Str($value) };
    (@default Number $value:tt) => { $crate::op::signature::number(stringify!($value), $value as f64) };
    (@default Operand $value:tt) => { $crate::op::signature::number(stringify!($value), $value as f64) };
    (@default $kind:ident $value:tt) => { Default::Int($value) };
}

/// The position of a name in a list. Fails to compile if it is missing.
pub const fn position(params: &[Param], name: &str) -> usize {
    let mut at = 0;
    while at < params.len() {
        if same(params[at].name, name) {
            return at;
        }
        at += 1;
    }
    panic!("no parameter has this name");
}

/// As written: `2` is an integer, `2.0` is a float.
pub const fn number(text: &str, value: f64) -> Default {
    let (text, mut at) = (text.as_bytes(), 0);
    while at < text.len() {
        if text[at] == b'.' {
            return Default::Float(value);
        }
        at += 1;
    }
    Default::Int(value as i64)
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b, mut at) = (a.as_bytes(), b.as_bytes(), 0);
    if a.len() != b.len() {
        return false;
    }
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::row::Kind;

    signature!(sample(
        input: Tensor, dim: Dim = (-1), mode: Str(&["sum", "mean"]) = "mean", eps: Float = 1e-5, alpha: Number = 1,
        beta: Number = 2.0, training: Bool = true, out: Tensor = None,
    ));

    #[test]
    fn names_kinds_and_defaults_stand_in_order() {
        let names: Vec<&str> = sample::PARAMS.iter().map(|param| param.name).collect();
        assert_eq!(names, ["input", "dim", "mode", "eps", "alpha", "beta", "training", "out"]);
        assert_eq!((sample::input, sample::eps, sample::out), (0, 3, 7));
        assert_eq!(sample::PARAMS[sample::mode].kind, Kind::Str(&["sum", "mean"]));
        let defaults: Vec<Default> = sample::PARAMS.iter().map(|param| param.default).collect();
        let expected = [
            Default::Required,
            Default::Int(-1),
            Default::Str("mean"),
            Default::Float(1e-5),
            Default::Int(1),
            Default::Float(2.0),
            Default::Bool(true),
            Default::None,
        ];
        assert_eq!(defaults, expected);
    }
}

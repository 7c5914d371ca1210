//! Arithmetic, rounding and the first activations.

use super::*;

functions! {
    ADD "add" "a + b" {
        float(a, b) = a + b;
        int(a, b) = a.wrapping_add(b);
        bool(a, b) = a | b;
    }
    SUB "sub" "a - b" {
        float(a, b) = a - b;
        int(a, b) = a.wrapping_sub(b);
    }
    MUL "mul" "a * b" {
        float(a, b) = a * b;
        int(a, b) = a.wrapping_mul(b);
        bool(a, b) = a & b;
    }
    /// True division of floats.
    DIV "div" "a / b" {
        float(a, b) = a / b;
    }
    NEG "neg" "-a" {
        float(a) = -a;
        int(a) = a.wrapping_neg();
    }
    EXP "exp" "ts_exp(a)" { float(a) = Math::exp::<S>(a); }
    TANH "tanh" "ts_tanh(a)" { float(a) = Math::tanh::<S>(a); }
    RELU "relu" "ts_relu(a)" {
        // NaN stays NaN.
        float(a) = if a < 0.0 { 0.0 } else { a };
        int(a) = if a < 0 { 0 } else { a };
    }
    WHERE "where" "(a ? b : c)" {
        (a: Bool, b: F32, c: F32) -> F32 = if a != 0 { b } else { c };
        (a: Bool, b: F64, c: F64) -> F64 = if a != 0 { b } else { c };
        (a: Bool, b: I64, c: I64) -> I64 = if a != 0 { b } else { c };
        (a: Bool, b: Bool, c: Bool) -> Bool = if a != 0 { b } else { c };
    }
}

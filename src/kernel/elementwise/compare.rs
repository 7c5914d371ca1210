//! Comparisons, truth and bits.

use super::*;

functions! {
    EQ "eq" "a == b" { test(a, b) = a == b; }
    NE "ne" "a != b" { test(a, b) = a != b; }
    LT "lt" "a < b" { test(a, b) = a < b; }
    LE "le" "a <= b" { test(a, b) = a <= b; }
    GT "gt" "a > b" { test(a, b) = a > b; }
    GE "ge" "a >= b" { test(a, b) = a >= b; }

    LOGICAL_AND "logical_and" "(a != 0) && (b != 0)" { test(a, b) = truth(a) & truth(b); }
    LOGICAL_OR "logical_or" "(a != 0) || (b != 0)" { test(a, b) = truth(a) | truth(b); }
    LOGICAL_XOR "logical_xor" "(a != 0) != (b != 0)" { test(a, b) = truth(a) ^ truth(b); }
    LOGICAL_NOT "logical_not" "a == 0" { test(a) = !truth(a); }

    BIT_AND "bit_and" "a & b" { int(a, b) = a & b; bool(a, b) = a & b; }
    BIT_OR "bit_or" "a | b" { int(a, b) = a | b; bool(a, b) = a | b; }
    BIT_XOR "bit_xor" "a ^ b" { int(a, b) = a ^ b; bool(a, b) = a ^ b; }
    BIT_NOT "bit_not" "ts_bit_not(a)" { int(a) = !a; bool(a) = a ^ 1; }
    /// Shifts that are negative or longer than the word give 0.
    SHL "shl" "ts_shl(a, b)" {
        int(a, b) = if b as u64 > 63 { 0 } else { a.wrapping_shl(b as u32) };
    }
    /// Arithmetic shift; one that is negative or longer than the word gives the sign: 0 or -1.
    SHR "shr" "ts_shr(a, b)" {
        int(a, b) = a.wrapping_shr(if b as u64 > 63 { 63 } else { b as u32 });
    }

    SIGNBIT "signbit" "ts_signbit(a)" {
        floattest(a) = a.is_sign_negative();
        (a: I64) -> Bool = (a < 0) as u8;
        (a: Bool) -> Bool = { let _ = a; 0 };
    }
    ISNAN "isnan" "ts_isnan(a)" { floattest(a) = a.is_nan(); never(a); }
    ISINF "isinf" "ts_isinf(a)" { floattest(a) = a.is_infinite(); never(a); }
    ISFINITE "isfinite" "ts_isfinite(a)" {
        floattest(a) = a.is_finite();
        (a: I64) -> Bool = { let _ = a; 1 };
        (a: Bool) -> Bool = a | 1;
    }
    ISPOSINF "isposinf" "ts_isposinf(a)" { floattest(a) = a.is_infinite() && a > 0.0; never(a); }
    ISNEGINF "isneginf" "ts_isneginf(a)" { floattest(a) = a.is_infinite() && a < 0.0; never(a); }
}

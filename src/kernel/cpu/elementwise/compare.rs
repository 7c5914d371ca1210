//! Comparisons, truth and bits.

use super::*;

functions! {
    EQ "eq" "a == b" { test(a, b) = a == b; }
    NE "ne" "a != b" { test(a, b) = a != b; }
    LT "lt" "a < b" { test(a, b) = a < b; }
    LE "le" "a <= b" { test(a, b) = a <= b; }
    GT "gt" "a > b" { test(a, b) = a > b; }
    GE "ge" "a >= b" { test(a, b) = a >= b; }
}

//! Signatures that many rows share.

use crate::signature;

signature!(unary(input: Tensor));
signature!(two_tensors(input: Tensor, other: Tensor));
signature!(binary(input: Operand, other: Operand));

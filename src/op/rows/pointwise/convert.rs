//! Conversions by name: `x.float()`, `x.long()`, `x.type(dtype)`.

use crate::base::dtype::DType;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::signatures::{two_tensors, unary};
use crate::signature;

macro_rules! conversions {
    ($($NAME:ident $name:literal $dtype:ident $summary:literal $code:literal => $result:literal)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Compose(|e, a| Ok(vec![e.cast(a.input(), DType::$dtype)?])),
            grad: Grad::Composed,
            call: CallForm::Method,
            ..Op::BASE
        };)*
        /// The rows of this file.
        pub static ROWS: &[&Op] = &[$(&$NAME,)* &TYPE, &TYPE_AS];
    };
}

conversions! {
    FLOAT "float" F32 "Converts to f32." "tensor([1]).float()" => "tensor([1.])"
    DOUBLE "double" F64 "Converts to f64." "tensor([1]).double()" => "tensor([1.], dtype=f64)"
    HALF "half" F16 "Converts to f16." "tensor([1]).half()" => "tensor([1.], dtype=f16)"
    BFLOAT16 "bfloat16" BF16 "Converts to bf16." "tensor([1]).bfloat16()" => "tensor([1.], dtype=bf16)"
    LONG "long" I64 "Converts to i64, towards 0." "tensor([1.5]).long()" => "tensor([1])"
    INT "int" I32 "Converts to i32, towards 0." "tensor([1.5]).int()" => "tensor([1], dtype=i32)"
    SHORT "short" I16 "Converts to i16, towards 0." "tensor([1.5]).short()" => "tensor([1], dtype=i16)"
    CHAR "char" I8 "Converts to i8, towards 0." "tensor([1.5]).char()" => "tensor([1], dtype=i8)"
    BYTE "byte" U8 "Converts to u8, towards 0." "tensor([1.5]).byte()" => "tensor([1], dtype=u8)"
    CFLOAT "cfloat" C64 "Converts to c64." "tensor([1]).cfloat()" => "tensor([1.+0.j])"
    CDOUBLE "cdouble" C128 "Converts to c128." "tensor([1]).cdouble()" => "tensor([1.+0.j], dtype=c128)"
    BOOL "bool" Bool "Converts to bool: what is not 0 is true." "tensor([0.0, 0.5]).bool()" => "tensor([false,  true])"
}

signature!(type_op(input: Tensor, dtype: DType));

pub static TYPE: Op = Op {
    name: "type",
    params: type_op::PARAMS,
    summary: "Converts to a dtype.",
    examples: &[ex("tensor([1]).type(\"f32\")", "tensor([1.])"), ex("tensor([1]).type(\"f31\")", "E0213")],
    lower: Lower::Compose(|e, a| Ok(vec![e.cast(a.input(), a.dtype(type_op::dtype).unwrap_or(a.input().dtype()))?])),
    grad: Grad::Composed,
    call: CallForm::Method,
    ..Op::BASE
};

pub static TYPE_AS: Op = Op {
    name: "type_as",
    params: two_tensors::PARAMS,
    summary: "Converts to the dtype of another tensor.",
    examples: &[ex("tensor([1]).type_as(ones([1]))", "tensor([1.])")],
    lower: Lower::Compose(|e, a| Ok(vec![e.cast(a.input(), a.tensor(two_tensors::other).dtype())?])),
    grad: Grad::Composed,
    call: CallForm::Method,
    ..Op::BASE
};

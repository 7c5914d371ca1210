//! Complex tensors from parts, and their parts.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Layout, Shape, Strides};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::pointwise::arith::{COPY, MUL};
use crate::op::rows::pointwise::unary::{COS, SIN};
use crate::op::rows::shape::view::SELECT;
use crate::op::rows::signatures::unary;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(complex(real: Operand, imag: Operand));

pub static COMPLEX: Op = Op {
    name: "complex",
    params: complex::PARAMS,
    summary: "Complex numbers with these real and imaginary parts: tensors of one dtype, f32 or f64, or numbers.",
    details: "f32 gives c64 and f64 gives c128. Two numbers give a tensor of no dimensions of the default precision.",
    examples: &[
        ex("complex(tensor([1.0, 2.0]), tensor([3.0, -4.0]))", "tensor([1.+3.j, 2.-4.j])"),
        ex("complex(1, 2)", "tensor(1.+2.j)"),
        ex("complex(tensor([1]), tensor([2]))", "E0202"),
        ex("complex(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Steps(joined),
    grad: Grad::Rule(|e, v| {
        let mut grads = Vec::new();
        for which in 0..2 {
            grads.push(if v.needs(which) { Some(e.call(&PART, args![v.g(), which])?) } else { None });
        }
        Ok(grads)
    }),
    call: CallForm::Function,
    forward: crate::op::row::Forward::Linear(&[0, 1]),
    ..Op::BASE
};

fn joined(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let tensors = a.tensors();
    let dtype = tensors.first().map_or(e.default_float(), Tensor::dtype);
    if let [x, y] = &tensors[..] {
        infer::same_dtype(&[("real", x), ("imag", y)])?;
    }
    if !matches!(dtype, DType::F32 | DType::F64) {
        fail!(DTYPE, "the parts of complex numbers are f32 or f64, not {dtype}");
    }
    let views: Vec<_> = tensors.iter().map(Tensor::view).collect();
    let shape = infer::broadcast_all(views.iter().map(|view| view.shape()))?;
    let on_gpu = tensors.iter().find(|x| x.device().is_cuda()).or(tensors.first());
    let device = on_gpu.map_or(e.default_device(), Tensor::device);
    let out = e.empty(&shape, dtype.to_complex(), device)?;
    for which in [complex::real, complex::imag] {
        let view = out.view().part(which);
        let place = e.reinterpret(&out, view.layout, view.dtype);
        e.apply_inplace(&COPY, args![&place, a.get(which).clone()])?;
    }
    Ok(vec![out])
}

signature!(part(input: Tensor, which: Int));

/// Internal: the real (0) or imaginary (1) parts, in the same memory.
pub static PART: Op = Op {
    name: "real",
    params: part::PARAMS,
    summary: "The parts of complex numbers.",
    lower: Lower::Steps(|e, a| {
        let z = a.input();
        if !z.dtype().is_complex() {
            fail!(DTYPE, "a complex tensor is expected, not {}", z.dtype());
        }
        let view = z.view().part(a.int(part::which) as usize);
        Ok(vec![e.reinterpret(z, view.layout, view.dtype)])
    }),
    grad: Grad::Rule(|e, v| {
        let parts = match v.args.int(part::which) {
            0 => args![v.g(), Scalar::Int(0)],
            _ => args![Scalar::Int(0), v.g()],
        };
        Ok(vec![Some(e.call(&COMPLEX, parts)?)])
    }),
    reinterprets: true,
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static REAL: Op = Op {
    name: "real",
    aliases: &[".real"],
    params: unary::PARAMS,
    summary: "The real parts of complex numbers, in the same memory; of real numbers the tensor itself.",
    examples: &[ex("real(tensor([-1, 2]))", "tensor([-1,  2])"), ex("complex(1, 2).real", "tensor(1.)")],
    lower: Lower::Compose(|_, a| Ok(vec![a.input().clone()])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static IMAG: Op = Op {
    name: "imag",
    aliases: &[".imag"],
    params: unary::PARAMS,
    summary: "The imaginary parts of complex numbers, in the same memory.",
    examples: &[ex("imag(complex(1, 2))", "tensor(2.)"), ex("imag(ones([2]))", "E0202")],
    lower: Lower::Compose(|e, a| e.apply(&PART, args![a.input(), 1])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static VIEW_AS_REAL: Op = Op {
    name: "view_as_real",
    params: unary::PARAMS,
    summary: "Complex numbers as pairs of real ones, in a new last dimension of size 2; a view.",
    examples: &[ex("view_as_real(complex(1, 2))", "tensor([1., 2.])"), ex("view_as_real(ones([2]))", "E0202")],
    lower: Lower::Steps(|e, a| {
        let z = a.input();
        if !z.dtype().is_complex() {
            fail!(DTYPE, "a complex tensor is expected, not {}", z.dtype());
        }
        if z.ndim() >= crate::base::limits::MAX_DIMS {
            fail!(VALUE, "the view would have more dimensions than a tensor may have");
        }
        let view = z.view().as_pairs();
        Ok(vec![e.reinterpret(z, view.layout, view.dtype)])
    }),
    grad: Grad::Rule(|e, v| {
        let re = e.call(&SELECT, args![v.g(), -1, 0])?;
        let im = e.call(&SELECT, args![v.g(), -1, 1])?;
        Ok(vec![Some(e.call(&COMPLEX, args![&re, &im])?)])
    }),
    reinterprets: true,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static VIEW_AS_COMPLEX: Op = Op {
    name: "view_as_complex",
    params: unary::PARAMS,
    summary: "Pairs of real numbers, in the last dimension of size 2, as complex ones; a view.",
    examples: &[
        ex("view_as_complex(tensor([[1.0, 2.0], [3.0, 4.0]]))", "tensor([1.+2.j, 3.+4.j])"),
        ex("view_as_complex(ones([3]))", "E0201"),
        ex("view_as_complex(tensor([1, 2]))", "E0202"),
    ],
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        if !matches!(x.dtype(), DType::F32 | DType::F64) {
            fail!(DTYPE, "the parts of complex numbers are f32 or f64, not {}", x.dtype());
        }
        let layout = x.view().layout.clone();
        let Some((&2, shape)) = layout.shape.split_last() else {
            fail!(SHAPE, "the last dimension must have size 2, and the shape is {:?}", layout.shape.as_slice());
        };
        let (last, strides) = (layout.strides[shape.len()], &layout.strides[..shape.len()]);
        let even = |&stride: &isize| stride % 2 == 0;
        if last != 1 || !strides.iter().all(even) || layout.offset % 2 != 0 {
            fail!(SHAPE, "the pairs must lie side by side, at even places; make a copy first with `.contiguous()`");
        }
        let halved: Strides = strides.iter().map(|stride| stride / 2).collect();
        let layout = Layout { shape: Shape::from_slice(shape), strides: halved, offset: layout.offset / 2 };
        Ok(vec![e.reinterpret(x, layout, x.dtype().to_complex())])
    }),
    grad: Grad::Rule(|e, v| Ok(vec![Some(e.call(&VIEW_AS_REAL, args![v.g()])?)])),
    reinterprets: true,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(polar(abs: Tensor, angle: Tensor));

pub static POLAR: Op = Op {
    name: "polar",
    params: polar::PARAMS,
    summary: "Complex numbers with these absolute values and angles.",
    examples: &[
        ex("polar(tensor([2.0]), tensor([0.0]))", "tensor([2.+0.j])"),
        ex("polar(tensor([1]), tensor([2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (size, angle) = (a.tensor(polar::abs), a.tensor(polar::angle));
        infer::same_dtype(&[("abs", size), ("angle", angle)])?;
        if !matches!(size.dtype(), DType::F32 | DType::F64) {
            fail!(DTYPE, "the parts of complex numbers are f32 or f64, not {}", size.dtype());
        }
        let (cos, sin) = (e.call(&COS, args![angle])?, e.call(&SIN, args![angle])?);
        let (re, im) = (e.call(&MUL, args![size, &cos])?, e.call(&MUL, args![size, &sin])?);
        e.apply(&COMPLEX, args![&re, &im])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&COMPLEX, &PART, &REAL, &IMAG, &VIEW_AS_REAL, &VIEW_AS_COMPLEX, &POLAR];

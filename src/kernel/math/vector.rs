//! The `f32` functions that networks spend their time in, over vectors: exp, tanh, and the activations made of them.
//!
//! Errors are at most 2 units in the last place; NaN passes through. Coefficients are those of Cephes' `expf`
//! (Moshier).

// What all of them ask for is said once.
#![allow(clippy::missing_safety_doc)]

use crate::kernel::host::vector::Vector;

/// Adding it rounds a value of magnitude below 2^22 to an integer.
const MAGIC: f32 = 12_582_912.0;
/// ln 2 in two parts, the first with few enough bits that its product with an exponent is exact.
const LN2_HIGH: f32 = -0.693_359_4;
const LN2_LOW: f32 = 2.121_944_4e-4;

/// `x` as `n ln 2 + r`: (n, r).
#[inline(always)]
unsafe fn reduce<V: Vector<Elem = f32>>(x: V) -> (V, V) {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let n = x.fma(V::splat(std::f32::consts::LOG2_E), V::splat(MAGIC)).sub(V::splat(MAGIC));
        (n, n.fma(V::splat(LN2_LOW), n.fma(V::splat(LN2_HIGH), x)))
    }
}

/// `(e^r - 1 - r) / r^2` for |r| up to 0.35.
#[inline(always)]
unsafe fn tail<V: Vector<Elem = f32>>(r: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let p = V::splat(1.987_569_1e-4).fma(r, V::splat(1.398_199_9e-3));
        let p = p.fma(r, V::splat(8.333_452e-3));
        let p = p.fma(r, V::splat(4.166_579_6e-2));
        p.fma(r, V::splat(1.666_666_5e-1)).fma(r, V::splat(0.5))
    }
}

/// e to the power of `x`.
///
/// # Safety
/// As [`Vector`], here and below.
#[inline(always)]
pub unsafe fn exp<V: Vector<Elem = f32>>(x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        // The bound comes first: NaN is the second operand, and stays.
        let x = V::splat(-130.0).max(V::splat(130.0).min(x));
        let (n, r) = reduce(x);
        let one = V::splat(1.0);
        tail(r).fma(r, one).fma(r, one).scale(n)
    }
}

/// The hyperbolic tangent: an odd polynomial (Cephes' `tanhf`) below 0.625, else `1 - 2 / (1 + e^2|x|)`.
/// Not: `E / (E + 2)` with `E = e^2|x| - 1` everywhere. Cost: a quarter less, but 2.35 units near 0.
#[inline(always)]
pub unsafe fn tanh<V: Vector<Elem = f32>>(x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let (a, one) = (x.abs(), V::splat(1.0));
        // From 9.02 on the result is 1.
        let (n, r) = reduce(V::splat(18.04).min(a.add(a)));
        let power = tail(r).fma(r, one).fma(r, one).scale(n);
        let large = one.sub(V::splat(2.0).div(power.add(one)));
        let z = x.mul(x);
        let p = V::splat(-5.704_988_7e-3).fma(z, V::splat(2.063_908_9e-2));
        let p = p.fma(z, V::splat(-5.373_971_6e-2)).fma(z, V::splat(1.333_144_2e-1));
        let small = p.fma(z, V::splat(-3.333_328e-1)).mul(z).fma(x, x);
        // -0 stays -0.
        a.less(V::splat(0.625), small, large).copysign(x)
    }
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub unsafe fn sigmoid<V: Vector<Elem = f32>>(x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let one = V::splat(1.0);
        one.div(one.add(exp(V::splat(0.0).sub(x))))
    }
}

/// x / (1 + e^-x).
#[inline(always)]
pub unsafe fn silu<V: Vector<Elem = f32>>(x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe { x.div(V::splat(1.0).add(exp(V::splat(0.0).sub(x)))) }
}

/// The argument of the tanh in gelu's tanh form: sqrt(2 / pi) (x + 0.044715 x^3).
#[inline(always)]
unsafe fn gelu_inner<V: Vector<Elem = f32>>(x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let cube = V::splat(0.044_715).mul(x).mul(x).mul(x);
        V::splat(0.797_884_6).mul(x.add(cube))
    }
}

/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
#[inline(always)]
pub unsafe fn gelu_tanh<V: Vector<Elem = f32>>(x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe { V::splat(0.5).mul(x).mul(V::splat(1.0).add(tanh(gelu_inner(x)))) }
}

/// `g` times the derivative of `gelu_tanh` at `x`.
#[inline(always)]
pub unsafe fn gelu_tanh_grad<V: Vector<Elem = f32>>(g: V, x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let (one, half) = (V::splat(1.0), V::splat(0.5));
        let t = tanh(gelu_inner(x));
        let derivative = V::splat(0.797_884_6).mul(V::splat(0.134_145).mul(x).fma(x, one));
        let rise = half.mul(x).mul(one.sub(t.mul(t))).mul(derivative);
        g.mul(half.mul(one.add(t)).add(rise))
    }
}

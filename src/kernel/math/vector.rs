//! The `f32` functions that networks spend their time in, over vectors: exp, tanh, and the activations made of them.
//!
//! Errors are at most 2 units in the last place; NaN passes through. Coefficients are those of Cephes' `expf`
//! (Moshier).

// The safety contract of all functions is stated once, at `exp`.
#![allow(clippy::missing_safety_doc)]

use crate::kernel::host::vector::Vector;

/// 1.5 · 2^23: adding and subtracting it rounds a value of magnitude below 2^22 to the nearest integer.
const ROUND_TO_INT: f32 = 12_582_912.0;
/// -ln 2 = NEG_LN2_HIGH + NEG_LN2_LOW. The first part has so few bits that its product with an integer exponent is
/// exact (Cody and Waite's range reduction).
const NEG_LN2_HIGH: f32 = -0.693_359_4;
const NEG_LN2_LOW: f32 = 2.121_944_4e-4;

const SQRT_2_OVER_PI: f32 = 0.797_884_6;
/// The coefficient of x^3 in gelu's tanh form.
const GELU_CUBIC: f32 = 0.044_715;
/// 3 · 0.044715, rounded once.
const GELU_CUBIC_TIMES_3: f32 = 0.134_145;

/// Range reduction: (n, r) with `x = n ln 2 + r`.
#[inline(always)]
unsafe fn reduce<V: Vector<Elem = f32>>(x: V) -> (V, V) {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let n = x.fma(V::splat(std::f32::consts::LOG2_E), V::splat(ROUND_TO_INT)).sub(V::splat(ROUND_TO_INT));
        (n, n.fma(V::splat(NEG_LN2_LOW), n.fma(V::splat(NEG_LN2_HIGH), x)))
    }
}

/// `(e^r - 1 - r) / r^2` for |r| up to 0.35.
#[inline(always)]
unsafe fn exp_tail<V: Vector<Elem = f32>>(r: V) -> V {
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
        // Where the result rounds to 0 (as of minus infinity, which masks add to scores) it is not computed. Cost: results
        // that are too small for normal numbers take 25 times as long.
        let (low, zero, one) = (V::splat(-104.0), V::splat(0.0), V::splat(1.0));
        // `min` returns its second operand if one is NaN, so `x` is second and NaN propagates.
        let (n, r) = reduce(x.less(low, zero, V::splat(130.0).min(x)));
        x.less(low, zero, exp_tail(r).fma(r, one).fma(r, one).scale(n))
    }
}

/// The hyperbolic tangent: an odd polynomial (Cephes' `tanhf`) below 0.625, else `1 - 2 / (1 + e^2|x|)`.
/// Not: `E / (E + 2)` with `E = e^2|x| - 1` everywhere. Cost: a quarter less, but 2.35 units near 0.
#[inline(always)]
pub unsafe fn tanh<V: Vector<Elem = f32>>(x: V) -> V {
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let (a, one) = (x.abs(), V::splat(1.0));
        // From |x| = 9.02 on the result rounds to 1.
        let (n, r) = reduce(V::splat(18.04).min(a.add(a)));
        let power = exp_tail(r).fma(r, one).fma(r, one).scale(n);
        let large = one.sub(V::splat(2.0).div(power.add(one)));
        let z = x.mul(x);
        let p = V::splat(-5.704_988_7e-3).fma(z, V::splat(2.063_908_9e-2));
        let p = p.fma(z, V::splat(-5.373_971_6e-2)).fma(z, V::splat(1.333_144_2e-1));
        let small = p.fma(z, V::splat(-3.333_328e-1)).mul(z).fma(x, x);
        // -0 gives -0.
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
        let cube = V::splat(GELU_CUBIC).mul(x).mul(x).mul(x);
        V::splat(SQRT_2_OVER_PI).mul(x.add(cube))
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
        // d(gelu_inner)/dx = sqrt(2 / pi) (1 + 3 · 0.044715 x^2)
        let inner_grad = V::splat(SQRT_2_OVER_PI).mul(V::splat(GELU_CUBIC_TIMES_3).mul(x).fma(x, one));
        let tanh_part = half.mul(x).mul(one.sub(t.mul(t))).mul(inner_grad);
        g.mul(half.mul(one.add(t)).add(tanh_part))
    }
}

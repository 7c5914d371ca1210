//! Modified Bessel functions in `f32`, without branches. The same fits as those of the GPU (`kernels/math/single.cuh`):
//! of the relative error, by least squares at Chebyshev nodes.

use super::single::polynomial;
use super::{Math, Simd};

/// In x² / 4, for |x| < 8.
const I0_NEAR: [f32; 11] = [
    1.421_337_4e-13,
    5.228_403e-12,
    6.596_844e-10,
    3.886_872_7e-8,
    1.932_459_8e-6,
    6.942_978_5e-5,
    1.736_148_1e-3,
    2.777_772_6e-2,
    0.25,
    1.0,
    1.0,
];
const I1_NEAR: [f32; 11] = [
    1.250_533e-14,
    5.526_315_6e-13,
    7.240_252e-11,
    4.873_293_8e-9,
    2.759_221e-7,
    1.157_248_3e-5,
    3.472_266e-4,
    6.944_437_5e-3,
    8.333_333_6e-2,
    0.5,
    1.0,
];
/// In 1 / x, from 8 on, of the functions times e^-x sqrt(x).
const I0_FAR: [f32; 6] = [3.802_676e-1, -1.142_597_9e-2, 3.351_818e-2, 2.791_073_7e-2, 4.986_940_3e-2, 3.989_423e-1];
const I1_FAR: [f32; 6] =
    [-4.436_301_3e-1, 6.937_401_4e-3, -4.585_135_4e-2, -4.658_946_4e-2, -1.496_052_3e-1, 3.989_423e-1];
/// In x² / 4, for x < 1, of what is added to the logarithm's part.
const K0_NEAR: [f32; 5] = [3.923_588_4e-3, 5.412_309_2e-2, 4.039_849_6e-1, 1.115_931_4, 1.159_315_2e-1];
const K1_NEAR: [f32; 5] = [-2.982_212_4e-2, -2.968_770_3e-1, -1.365_951_4, -1.231_862_4, 1.0];
/// In 1 / x, from 1 on, of the functions times e^x sqrt(x).
const K0_FAR: [f32; 10] = [
    -7.787_827e-3,
    4.233_212e-2,
    -1.020_144_5e-1,
    1.464_220_3e-1,
    -1.451_510_6e-1,
    1.147_695_26e-1,
    -8.867_977e-2,
    8.791_707_5e-2,
    -1.566_586_8e-1,
    1.253_314_1,
];
const K1_FAR: [f32; 10] = [
    1.002_918_9e-2,
    -5.421_620_6e-2,
    1.300_861_4e-1,
    -1.864_919_5e-1,
    1.861_246_5e-1,
    -1.510_095e-1,
    1.249_729_4e-1,
    -1.466_426_8e-1,
    4.699_867_4e-1,
    1.253_314_1,
];

/// I of either order times e^-|x| if `scaled`; without the sign of the odd one.
#[inline(always)]
fn first_kind<S: Simd>(a: f32, near: [f32; 11], far: [f32; 6], factor: f32, scaled: bool) -> f32 {
    let near = factor * polynomial::<S, 11>(0.25 * a * a, near);
    let far = polynomial::<S, 6>(1.0 / a, far) / a.sqrt();
    if scaled {
        return if a < 8.0 { near * Math::exp::<S>(-a) } else { far };
    }
    // In two factors: e^a overflows before the product does.
    let half = Math::exp::<S>(0.5 * a);
    if a < 8.0 { near } else { half * (half * far) }
}

#[inline(always)]
pub fn i0<S: Simd>(x: f32) -> f32 {
    first_kind::<S>(x.abs(), I0_NEAR, I0_FAR, 1.0, false)
}
#[inline(always)]
pub fn i1<S: Simd>(x: f32) -> f32 {
    first_kind::<S>(x.abs(), I1_NEAR, I1_FAR, 0.5 * x.abs(), false).copysign(x)
}
#[inline(always)]
pub fn i0e<S: Simd>(x: f32) -> f32 {
    first_kind::<S>(x.abs(), I0_NEAR, I0_FAR, 1.0, true)
}
#[inline(always)]
pub fn i1e<S: Simd>(x: f32) -> f32 {
    first_kind::<S>(x.abs(), I1_NEAR, I1_FAR, 0.5 * x.abs(), true).copysign(x)
}

/// K of either order, times e^x if `scaled`, from its two forms times what they lack.
#[inline(always)]
fn second_kind<S: Simd>(x: f32, near: f32, far: [f32; 10], scaled: bool) -> f32 {
    let far = polynomial::<S, 10>(1.0 / x, far) / x.sqrt();
    let power = Math::exp::<S>(if scaled { x } else { -x });
    let y = match scaled {
        true => {
            if x < 1.0 {
                near * power
            } else {
                far
            }
        }
        false => {
            if x < 1.0 {
                near
            } else {
                far * power
            }
        }
    };
    let y = if x == 0.0 { f32::INFINITY } else { y };
    if x < 0.0 { f32::NAN } else { y }
}

#[inline(always)]
fn k0_of<S: Simd>(x: f32, scaled: bool) -> f32 {
    let q = 0.25 * x * x;
    let near = polynomial::<S, 5>(q, K0_NEAR) - Math::log::<S>(x) * polynomial::<S, 11>(q, I0_NEAR);
    second_kind::<S>(x, near, K0_FAR, scaled)
}
#[inline(always)]
fn k1_of<S: Simd>(x: f32, scaled: bool) -> f32 {
    let q = 0.25 * x * x;
    let logarithm = Math::log::<S>(x) * (0.5 * x * polynomial::<S, 11>(q, I1_NEAR));
    second_kind::<S>(x, logarithm + polynomial::<S, 5>(q, K1_NEAR) / x, K1_FAR, scaled)
}

#[inline(always)]
pub fn k0<S: Simd>(x: f32) -> f32 {
    k0_of::<S>(x, false)
}
#[inline(always)]
pub fn k1<S: Simd>(x: f32) -> f32 {
    k1_of::<S>(x, false)
}
#[inline(always)]
pub fn k0e<S: Simd>(x: f32) -> f32 {
    k0_of::<S>(x, true)
}
#[inline(always)]
pub fn k1e<S: Simd>(x: f32) -> f32 {
    k1_of::<S>(x, true)
}

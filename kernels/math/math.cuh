// The functions that CUDA texts of kernel/elementwise name, each with the semantics of its Rust counterpart.
//
// float functions are those of CUDA's library, at most 4 ulp off, as in PyTorch. Compiled without implicit fused multiply-adds
// (--fmad=false), so that a fused chain gives what single operations give.
#pragma once
#include "common/base.cuh"

#define TS_BOTH(name, args, f32, f64) \
    TS_FN float name(TS_##args(float)) { return f32; } \
    TS_FN double name(TS_##args(double)) { return f64; }
#define TS_1(T) T a
#define TS_2(T) T a, T b

TS_BOTH(ts_sqrt, 1, sqrtf(a), sqrt(a))
TS_BOTH(ts_rsqrt, 1, 1.0f / sqrtf(a), 1.0 / sqrt(a))
TS_BOTH(ts_exp, 1, expf(a), exp(a))
TS_BOTH(ts_exp2, 1, exp2f(a), exp2(a))
TS_BOTH(ts_expm1, 1, expm1f(a), expm1(a))
TS_BOTH(ts_log, 1, logf(a), log(a))
TS_BOTH(ts_log2, 1, log2f(a), log2(a))
TS_BOTH(ts_log10, 1, log10f(a), log10(a))
TS_BOTH(ts_log1p, 1, log1pf(a), log1p(a))
TS_BOTH(ts_sin, 1, sinf(a), sin(a))
TS_BOTH(ts_cos, 1, cosf(a), cos(a))
TS_BOTH(ts_tan, 1, tanf(a), tan(a))
TS_BOTH(ts_asin, 1, asinf(a), asin(a))
TS_BOTH(ts_acos, 1, acosf(a), acos(a))
TS_BOTH(ts_atan, 1, atanf(a), atan(a))
TS_BOTH(ts_sinh, 1, sinhf(a), sinh(a))
TS_BOTH(ts_cosh, 1, coshf(a), cosh(a))
TS_BOTH(ts_tanh, 1, tanhf(a), tanh(a))
TS_BOTH(ts_asinh, 1, asinhf(a), asinh(a))
TS_BOTH(ts_acosh, 1, acoshf(a), acosh(a))
TS_BOTH(ts_atanh, 1, atanhf(a), atanh(a))
TS_BOTH(ts_erf, 1, erff(a), erf(a))
TS_BOTH(ts_erfc, 1, erfcf(a), erfc(a))
TS_BOTH(ts_lgamma, 1, lgammaf(a), lgamma(a))
TS_BOTH(ts_floor, 1, floorf(a), floor(a))
TS_BOTH(ts_ceil, 1, ceilf(a), ceil(a))
TS_BOTH(ts_round, 1, rintf(a), rint(a))
TS_BOTH(ts_trunc, 1, truncf(a), trunc(a))
TS_BOTH(ts_frac, 1, a - truncf(a), a - trunc(a))
TS_BOTH(ts_abs, 1, fabsf(a), fabs(a))
TS_BOTH(ts_copysign, 2, copysignf(a, b), copysign(a, b))
TS_BOTH(ts_fmod, 2, fmodf(a, b), fmod(a, b))
TS_BOTH(ts_pow, 2, powf(a, b), pow(a, b))
TS_BOTH(ts_atan2, 2, atan2f(a, b), atan2(a, b))
TS_BOTH(ts_hypot, 2, hypotf(a, b), hypot(a, b))
TS_BOTH(ts_nextafter, 2, nextafterf(a, b), nextafter(a, b))
#undef TS_BOTH
#undef TS_1
#undef TS_2

// 2^n for an integer n from -1000 to 1000: adding 1.5 * 2^52 leaves the integer in the lowest bits.
TS_FN double ts_power_of_two(double n) {
    return __longlong_as_double(__double_as_longlong(n + 1023.0 + 6755399441055744.0) << 52);
}
TS_FN double ts_within_1000(double n) { return fmin(fmax(n, -1000.0), 1000.0); }
// a * 2^b for integers b. What three powers of the exponent's range do not reach is 0 or infinite.
TS_FN float ts_ldexp(float a, float b) { return (float)((double)a * ts_power_of_two(ts_within_1000(b))); }
TS_FN double ts_ldexp(double a, double b) {
    const double first = ts_within_1000(b), second = ts_within_1000(b - first), third = ts_within_1000(b - first - second);
    return a * ts_power_of_two(first) * ts_power_of_two(second) * ts_power_of_two(third);
}

TS_FN bool ts_signbit(float a) { return __float_as_int(a) < 0; }
TS_FN bool ts_signbit(double a) { return __double_as_longlong(a) < 0; }
TS_FN bool ts_signbit(ts_i64 a) { return a < 0; }
TS_FN bool ts_signbit(bool) { return false; }
TS_FN float ts_inf(float) { return __int_as_float(0x7f800000); }
TS_FN double ts_inf(double) { return __longlong_as_double(0x7ff0000000000000LL); }
TS_FN float ts_nan(float) { return __int_as_float(0x7fc00000); }
TS_FN double ts_nan(double) { return __longlong_as_double(0x7ff8000000000000LL); }
template <class T> TS_FN bool ts_isnan(T a) { return a != a; }
TS_FN bool ts_isinf(float a) { return fabsf(a) == ts_inf(a); }
TS_FN bool ts_isinf(double a) { return fabs(a) == ts_inf(a); }
TS_FN bool ts_isinf(ts_i64) { return false; }
TS_FN bool ts_isinf(bool) { return false; }
template <class T> TS_FN bool ts_isfinite(T a) { return !ts_isnan(a) && !ts_isinf(a); }
template <class T> TS_FN bool ts_isposinf(T a) { return ts_isinf(a) && a > 0; }
template <class T> TS_FN bool ts_isneginf(T a) { return ts_isinf(a) && a < 0; }

TS_FN float ts_fma(float a, float b, float c) { return fmaf(a, b, c); }
TS_FN double ts_fma(double a, double b, double c) { return fma(a, b, c); }

// Integers wrap: signed overflow is undefined in C++, so they compute as unsigned.
TS_FN ts_i64 ts_neg64(ts_i64 a) { return (ts_i64)(0ULL - (ts_u64)a); }
TS_FN ts_i64 ts_mul64(ts_i64 a, ts_i64 b) { return (ts_i64)((ts_u64)a * (ts_u64)b); }
TS_FN ts_i64 ts_abs(ts_i64 a) { return a < 0 ? ts_neg64(a) : a; }
TS_FN ts_i64 ts_floor(ts_i64 a) { return a; }
TS_FN ts_i64 ts_ceil(ts_i64 a) { return a; }
TS_FN ts_i64 ts_round(ts_i64 a) { return a; }
TS_FN ts_i64 ts_trunc(ts_i64 a) { return a; }

template <class T> TS_FN T ts_sign(T a) { return (T)((a > 0) - (a < 0)); }
TS_FN bool ts_sign(bool a) { return a; }
template <class T> TS_FN T ts_reciprocal(T a) { return T(1) / a; }
template <class T> TS_FN T ts_deg2rad(T a) { return a * T(0.017453292519943295); }
template <class T> TS_FN T ts_rad2deg(T a) { return a * T(57.29577951308232); }
template <class T> TS_FN T ts_sigmoid(T a) { return T(1) / (T(1) + ts_exp(-a)); }
template <class T> TS_FN T ts_logit(T a) { return ts_log(a / (T(1) - a)); }
template <class T> TS_FN T ts_sinc(T a) {
    T x = a * T(3.141592653589793);
    return a == 0 ? T(1) : ts_sin(x) / x;
}

// The kinds of division. Integer division by zero gives 0; the program reports it.
TS_FN ts_i64 ts_trunc_div(ts_i64 a, ts_i64 b) { return b == 0 ? 0 : b == -1 ? ts_neg64(a) : a / b; }
TS_FN ts_i64 ts_fmod(ts_i64 a, ts_i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
TS_FN ts_i64 ts_floor_div(ts_i64 a, ts_i64 b) {
    ts_i64 q = ts_trunc_div(a, b), r = ts_fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}
TS_FN ts_i64 ts_remainder(ts_i64 a, ts_i64 b) {
    ts_i64 r = ts_fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
TS_FN float ts_trunc_div(float a, float b) { return truncf(a / b); }
TS_FN double ts_trunc_div(double a, double b) { return trunc(a / b); }
template <class T> TS_FN T ts_floor_div_float(T a, T b) {
    if (b == 0) return a / b;
    T r = ts_fmod(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    T whole = ts_floor(q);
    if (q - whole > T(0.5)) whole += 1;
    return q == 0 ? ts_copysign(T(0), a / b) : whole;
}
TS_FN float ts_floor_div(float a, float b) { return ts_floor_div_float(a, b); }
TS_FN double ts_floor_div(double a, double b) { return ts_floor_div_float(a, b); }
template <class T> TS_FN T ts_remainder_float(T a, T b) {
    T r = ts_fmod(a, b);
    return r != 0 && (b < 0) != (r < 0) ? r + b : r;
}
TS_FN float ts_remainder(float a, float b) { return ts_remainder_float(a, b); }
TS_FN double ts_remainder(double a, double b) { return ts_remainder_float(a, b); }

TS_FN ts_i64 ts_pow(ts_i64 a, ts_i64 b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    ts_u64 base = (ts_u64)a, y = 1;
    for (ts_u64 left = (ts_u64)b; left > 0; left >>= 1) {
        if (left & 1) y *= base;
        base *= base;
    }
    return (ts_i64)y;
}
// For integers of `bits` bits. The lowest integer has no positive counterpart and stays as it is.
TS_FN ts_i64 ts_gcd(ts_i64 a, ts_i64 b, int bits) {
    ts_i64 x = (ts_i64)((ts_u64)ts_abs(a) << (64 - bits)) >> (64 - bits);
    ts_i64 y = (ts_i64)((ts_u64)ts_abs(b) << (64 - bits)) >> (64 - bits);
    while (x != 0) {
        ts_i64 r = x == -1 ? 0 : y % x;
        y = x;
        x = r;
    }
    return y;
}
// Integers narrower than 32 bits are multiplied in 32 bits.
TS_FN ts_i64 ts_lcm(ts_i64 a, ts_i64 b, int bits) {
    ts_i64 g = ts_gcd(a, b, bits);
    ts_i64 m = g == 0 ? 0 : ts_mul64(ts_trunc_div(a, g), b);
    if (bits == 64) return ts_abs(m);
    ts_i64 n = (ts_i64)(int)m;
    return (ts_i64)(int)ts_abs(n);
}
TS_FN ts_i64 ts_bit_not(ts_i64 a) { return ~a; }
TS_FN bool ts_bit_not(bool a) { return !a; }
TS_FN ts_i64 ts_shl(ts_i64 a, ts_i64 b) { return (ts_u64)b > 63 ? 0 : (ts_i64)((ts_u64)a << b); }
TS_FN ts_i64 ts_shr(ts_i64 a, ts_i64 b) { return a >> ((ts_u64)b > 63 ? 63 : b); }

// Selection. NaN propagates in maximum and minimum and is ignored in fmax and fmin.
template <class T> TS_FN T ts_maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> TS_FN T ts_minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> TS_FN T ts_fmax(T a, T b) { return a > b || b != b ? a : b; }
template <class T> TS_FN T ts_fmin(T a, T b) { return a < b || b != b ? a : b; }
template <class T> TS_FN T ts_clamp(T a, T b, T c) {
    T y = a < b || b != b ? b : a;
    return y > c || (c != c && y == y) ? c : y;
}
template <class T> TS_FN T ts_lerp(T a, T b, T c) {
    return ts_abs(c) < T(0.5) ? a + c * (b - a) : b - (b - a) * (T(1) - c);
}
template <class T> TS_FN T ts_heaviside(T a, T b) { return a == 0 ? b : a > 0 ? T(1) : T(0); }
template <class T> TS_FN T ts_xlogy(T a, T b) { return b != b ? b : a == 0 ? T(0) : a * ts_log(b); }
template <class T> TS_FN T ts_logaddexp(T a, T b) {
    T high = a < b ? b : a, low = a < b ? a : b;
    return ts_isinf(a) && a == b ? a : high + ts_log1p(ts_exp(low - high));
}
template <class T> TS_FN T ts_logaddexp2(T a, T b) {
    T high = a < b ? b : a, low = a < b ? a : b;
    return ts_isinf(a) && a == b ? a : high + ts_log1p(ts_exp2(low - high)) * T(1.4426950408889634);
}
// nextafter for 16-bit floats, whose value is held in a float.
template <class H> TS_FN float ts_neighbor(float a, float b) {
    if (a != a || b != b) return ts_nan(a);
    if (a == b) return b;
    H one;
    one.bits = 1;
    if (a == 0) return copysignf(ts_upcast(one), b);
    H x = ts_downcast<H>(a);
    x.bits = (unsigned short)((a < b) == (a > 0) ? x.bits + 1 : x.bits - 1);
    return ts_upcast(x);
}
TS_FN float ts_nextafter_f16(float a, float b) { return ts_neighbor<ts_f16>(a, b); }
TS_FN float ts_nextafter_bf16(float a, float b) { return ts_neighbor<ts_bf16>(a, b); }

// Activations, and gradients that would be long as compositions.
template <class T> TS_FN T ts_hardtanh(T a, T b, T c) {
    T y = a < b ? b : a;
    return y > c ? c : y;
}
template <class T> TS_FN T ts_relu(T a) { return a < 0 ? T(0) : a; }
template <class T> TS_FN T ts_gelu_erf(T a) { return T(0.5) * a * (T(1) + ts_erf(a * T(0.7071067811865475))); }
template <class T> TS_FN T ts_gelu_inner(T a) { return T(0.7978845608028654) * (a + T(0.044715) * a * a * a); }
template <class T> TS_FN T ts_gelu_tanh(T a) { return T(0.5) * a * (T(1) + ts_tanh(ts_gelu_inner(a))); }
template <class T> TS_FN T ts_silu(T a) { return a / (T(1) + ts_exp(-a)); }
template <class T> TS_FN T ts_softplus(T a, T b, T c) {
    T x = a * b;
    return x > c ? a : ts_log1p(ts_exp(x)) / b;
}
template <class T> TS_FN T ts_tanh_softplus(T a) {
    T e = ts_exp(a > T(20) ? T(20) : a), n = e * (e + T(2));
    return n / (n + T(2));
}
template <class T> TS_FN T ts_mish(T a) { return a * ts_tanh_softplus(a); }
template <class T> TS_FN T ts_elu(T a, T b) { return a > 0 ? a : b * ts_expm1(a); }
template <class T> TS_FN T ts_selu(T a) {
    return T(1.0507009873554805) * (a > 0 ? a : T(1.6732632423543772) * ts_expm1(a));
}
template <class T> TS_FN T ts_celu(T a, T b) { return a > 0 ? a : b * ts_expm1(a / b); }
template <class T> TS_FN T ts_leaky_relu(T a, T b) { return a > 0 ? a : a * b; }
template <class T> TS_FN T ts_hold06(T y) { return y < 0 ? T(0) : y > T(6) ? T(6) : y; }
template <class T> TS_FN T ts_hardsigmoid(T a) { return ts_hold06(a + T(3)) / T(6); }
template <class T> TS_FN T ts_hardswish(T a) { return a * ts_hold06(a + T(3)) / T(6); }
template <class T> TS_FN T ts_softsign(T a) { return a / (T(1) + ts_abs(a)); }
template <class T> TS_FN T ts_logsigmoid(T a) { return (a > 0 ? T(0) : a) - ts_log1p(ts_exp(-ts_abs(a))); }
template <class T> TS_FN T ts_tanhshrink(T a) { return a - ts_tanh(a); }
template <class T> TS_FN T ts_softshrink(T a, T b) { return ts_abs(a) <= b ? T(0) : a - ts_copysign(b, a); }
template <class T> TS_FN T ts_hardshrink(T a, T b) { return ts_abs(a) <= b ? T(0) : a; }
template <class T> TS_FN T ts_smooth_l1(T a, T b) {
    return ts_abs(a) < b ? T(0.5) * a * a / b : ts_abs(a) - T(0.5) * b;
}
template <class T> TS_FN T ts_huber(T a, T b) { return ts_abs(a) < b ? T(0.5) * a * a : (ts_abs(a) - T(0.5) * b) * b; }
// Of the sum a of squares and the sum b of c differences, over d.
template <class T> TS_FN T ts_variance(T a, T b, T c, T d) {
    const T left = a - b * b / c;
    return (left < T(0) ? T(0) : left) / d;
}
template <class T> TS_FN T ts_nan_to_zero(T a) { return a == a ? a : T(0); }
template <class T> TS_FN T ts_threshold(T a, T b, T c) { return a <= b ? c : a; }
template <class T> TS_FN T ts_gelu_erf_grad(T a, T b) {
    T below = T(0.5) * (T(1) + ts_erf(b * T(0.7071067811865475)));
    return a * (below + b * (T(0.3989422804014327) * ts_exp(T(-0.5) * b * b)));
}
// 0.134145 = 3 * 0.044715, the derivative of the cubic term.
template <class T> TS_FN T ts_gelu_tanh_grad(T a, T b) {
    T t = ts_tanh(ts_gelu_inner(b)), inner_grad = T(0.7978845608028654) * (T(1) + T(0.134145) * b * b);
    return a * (T(0.5) * (T(1) + t) + T(0.5) * b * (T(1) - t * t) * inner_grad);
}
template <class T> TS_FN T ts_silu_grad(T a, T b) {
    T s = ts_sigmoid(b);
    return a * s * (T(1) + b * (T(1) - s));
}
template <class T> TS_FN T ts_mish_grad(T a, T b) {
    T t = ts_tanh_softplus(b), s = ts_sigmoid(b);
    return a * (t + b * s * (T(1) - t * t));
}
template <class T> TS_FN T ts_softplus_grad(T a, T b, T c, T d) {
    T x = b * c;
    return x > d ? a : a * ts_sigmoid(x);
}

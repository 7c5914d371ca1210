// Special functions of float, in float, as PyTorch computes them: at most a few ulp off where their values are not near 0.
//
// The polynomials are least-squares fits of the relative error at Chebyshev nodes, of higher degree first.
#pragma once
#include "math/math.cuh"

template <int N> TS_FN float ts_horner(const float (&coefficients)[N], float x) {
    float sum = coefficients[0];
#pragma unroll
    for (int k = 1; k < N; k++) sum = fmaf(sum, x, coefficients[k]);
    return sum;
}

// M. Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2012), with his fast logarithm: the polynomials take the
// absolute error of w, which is below 2^-21 in the middle.
TS_FN float ts_erfinv(float a) {
    const float w = -__logf((1.0f - a) * (1.0f + a));
    float p;
    if (w < 5) {
        const float middle[9] = {2.8102264e-8f, 3.4327394e-7f, -3.5233877e-6f, -4.3915065e-6f, 2.1858087e-4f, -1.253725e-3f,
            -4.1776816e-3f, 2.4664073e-1f, 1.5014094f};
        p = ts_horner(middle, w - 2.5f);
    } else {
        const float tail[9] = {-2.0021426e-4f, 1.0095056e-4f, 1.3493432e-3f, -3.6734284e-3f, 5.7395077e-3f, -7.622461e-3f,
            9.43887e-3f, 1.0016741f, 2.8329768f};
        p = ts_horner(tail, sqrtf(w) - 3.0f);
    }
    return fabsf(a) == 1.0f ? a * ts_inf(a) : a * p;
}

// What is added for a negative number. A call, for it is rare: inlined it would be most of the code.
static __device__ __noinline__ float ts_digamma_reflected(float a) {
    return (float)(-3.14159265358979323846 / tan(3.14159265358979323846 * ((double)a - trunc((double)a))));
}

// The recurrence up to 6 in pairs, then the asymptotic series. Near the root at 1.46 the error is that of the terms.
TS_FN float ts_digamma(float a) {
    if (a == 0) return copysignf(ts_inf(a), -a);
    float x = a, reflected = 0;
    if (a < 0) {
        if (a == truncf(a)) return ts_nan(a);
        reflected = ts_digamma_reflected(a);
        x = 1.0f - a;
    }
    float sum = 0;
    if (x < 6) {
#pragma unroll
        for (int k = 0; k < 6; k += 2) sum -= (2 * x + (2 * k + 1)) / ((x + k) * (x + (k + 1)));
        x += 6;
    }
    if (x == ts_inf(x)) return x;
    const float z = 1.0f / (x * x), series[4] = {-1.0f / 240.0f, 1.0f / 252.0f, -1.0f / 120.0f, 1.0f / 12.0f};
    return sum + logf(x) - 0.5f / x - z * ts_horner(series, z) + reflected;
}

// Modified Bessel functions. q = x^2 / 4; from 8 on, z = 1 / x and the factor e^x / sqrt(x).
TS_FN float ts_i0_near(float q) {
    const float p[11] = {1.4213374e-13f, 5.228403e-12f, 6.596844e-10f, 3.8868727e-08f, 1.9324598e-06f, 6.9429785e-05f,
        1.7361481e-03f, 2.7777726e-02f, 0.25f, 1.0f, 1.0f};
    return ts_horner(p, q);
}
TS_FN float ts_i1_near(float q) {
    const float p[11] = {1.250533e-14f, 5.5263156e-13f, 7.240252e-11f, 4.8732938e-09f, 2.759221e-07f, 1.1572483e-05f,
        3.472266e-04f, 6.9444375e-03f, 8.3333336e-02f, 0.5f, 1.0f};
    return ts_horner(p, q);
}
TS_FN float ts_i0_far(float a) {
    const float p[6] = {3.802676e-01f, -1.1425979e-02f, 3.351818e-02f, 2.7910737e-02f, 4.9869403e-02f, 3.989423e-01f};
    return ts_horner(p, 1.0f / a) / sqrtf(a);
}
TS_FN float ts_i1_far(float a) {
    const float p[6] = {-4.4363013e-01f, 6.9374014e-03f, -4.5851354e-02f, -4.6589464e-02f, -1.4960523e-01f, 3.989423e-01f};
    return ts_horner(p, 1.0f / a) / sqrtf(a);
}
// e^a y without overflow of e^a alone.
TS_FN float ts_grown(float a, float y) {
    const float half = expf(0.5f * a);
    return half * (half * y);
}
TS_FN float ts_i0(float x) {
    const float a = fabsf(x);
    return a < 8 ? ts_i0_near(0.25f * a * a) : ts_grown(a, ts_i0_far(a));
}
TS_FN float ts_i1(float x) {
    const float a = fabsf(x);
    return a < 8 ? 0.5f * x * ts_i1_near(0.25f * a * a) : copysignf(ts_grown(a, ts_i1_far(a)), x);
}
TS_FN float ts_i0e(float x) {
    const float a = fabsf(x);
    return a < 8 ? expf(-a) * ts_i0_near(0.25f * a * a) : ts_i0_far(a);
}
TS_FN float ts_i1e(float x) {
    const float a = fabsf(x);
    return a < 8 ? expf(-a) * (0.5f * x * ts_i1_near(0.25f * a * a)) : copysignf(ts_i1_far(a), x);
}

// K0 and K1, times e^x when scaled: up to 1 by their logarithms, beyond it z = 1 / x and the factor e^-x / sqrt(x).
static __device__ float ts_macdonald(float x, bool first, bool scaled) {
    if (x == 0) return ts_inf(x);
    if (!(x > 0)) return ts_nan(x);
    if (x < 1) {
        const float k0[5] = {3.9235884e-03f, 5.4123092e-02f, 4.0398496e-01f, 1.1159314e+00f, 1.1593152e-01f};
        const float k1[5] = {-2.9822124e-02f, -2.9687703e-01f, -1.3659514e+00f, -1.2318624e+00f, 1.0f};
        const float q = 0.25f * x * x, l = logf(x);
        const float y = first ? l * (0.5f * x * ts_i1_near(q)) + ts_horner(k1, q) / x : ts_horner(k0, q) - l * ts_i0_near(q);
        return scaled ? y * expf(x) : y;
    }
    const float k0[10] = {-7.787827e-03f, 4.233212e-02f, -1.0201445e-01f, 1.4642203e-01f, -1.4515106e-01f, 1.14769526e-01f,
        -8.867977e-02f, 8.7917075e-02f, -1.5665868e-01f, 1.2533141e+00f};
    const float k1[10] = {1.0029189e-02f, -5.4216206e-02f, 1.3008614e-01f, -1.8649195e-01f, 1.8612465e-01f, -1.510095e-01f,
        1.2497294e-01f, -1.4664268e-01f, 4.6998674e-01f, 1.2533141e+00f};
    const float z = 1.0f / x, y = (first ? ts_horner(k1, z) : ts_horner(k0, z)) / sqrtf(x);
    return scaled ? y : y * expf(-x);
}
TS_FN float ts_bessel_k0(float x) { return ts_macdonald(x, false, false); }
TS_FN float ts_bessel_k1(float x) { return ts_macdonald(x, true, false); }
TS_FN float ts_bessel_k0e(float x) { return ts_macdonald(x, false, true); }
TS_FN float ts_bessel_k1e(float x) { return ts_macdonald(x, true, true); }

TS_FN float ts_bessel_j0(float x) { return ts_isinf(x) ? ts_nan(x) : j0f(x); }
TS_FN float ts_bessel_j1(float x) { return ts_isinf(x) ? ts_nan(x) : j1f(x); }
TS_FN float ts_bessel_y0(float x) { return ts_isinf(x) ? ts_nan(x) : y0f(x); }
TS_FN float ts_bessel_y1(float x) { return ts_isinf(x) ? ts_nan(x) : y1f(x); }
TS_FN float ts_spherical_j0(float x) { return ts_isinf(x) ? 0.0f : fabsf(x) < 1e-2f ? 1.0f - x * x / 6.0f : sinf(x) / x; }

TS_FN float ts_entr(float x) { return x != x ? x : x > 0 ? -x * logf(x) : x == 0 ? 0.0f : -ts_inf(x); }
TS_FN float ts_xlog1py(float a, float b) { return b != b ? b : a == 0 ? 0.0f : a * log1pf(b); }
TS_FN float ts_erfcx(float x) { return erfcxf(x); }
TS_FN float ts_ndtr(float x) { return normcdff(x); }
TS_FN float ts_log_ndtr(float x) {
    return x < -1 ? logf(0.5f * erfcxf(-0.70710678f * x)) - 0.5f * x * x : log1pf(-normcdff(-x));
}
TS_FN float ts_ndtri(float p) { return normcdfinvf(p); }
TS_FN float ts_mantissa(float x) {
    int e;
    return ts_isfinite(x) ? frexpf(x, &e) : x;
}
TS_FN float ts_exponent(float x) {
    int e = 0;
    if (ts_isfinite(x)) frexpf(x, &e);
    return e;
}

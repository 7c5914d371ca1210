// Orthogonal polynomials by their recurrences, and the Airy function: the algorithms of kernel/math, step by step. On [-1, 1]
// Chebyshev polynomials of higher degree are computed as cosines; a negative degree gives 0.
#pragma once

TS_FN ts_i64 ts_degree(double n) { return n < 9223372036854775808.0 && n == n ? (n < -9e18 ? -1 : (ts_i64)n) : -1; }
// The value of degree n by `NEXT`, from those of degree k - 1 (q) and k - 2 (p). Bound: a million steps, NaN beyond.
#define TS_TERMS(first, NEXT) \
    if (n < 0) return 0; \
    if (n == 0) return 1; \
    if (n == 1) return first; \
    if (n > 1000000) return ts_nan(x); \
    F p = 1, q = first; \
    for (ts_i64 k = 2; k <= n; k++) { \
        const F next = NEXT; \
        p = q; \
        q = next; \
        if (q != q) break; \
    } \
    return q;
template <class F> TS_FN F ts_end(bool positive, F size) { return positive ? size : -size; }

// Kinds 0 to 3: T, U, V, W. `y` is the argument in -1 to 1; `cosines` the degree from which they are used.
template <class F> static __device__ F ts_chebyshev(F x, F y, ts_i64 n, int kind, ts_i64 cosines, bool low, bool high) {
    const bool even = n % 2 == 0;
    const F twice = (F)(ts_i64)((ts_u64)n * 2 + 1), next = (F)(ts_i64)((ts_u64)n + 1);
    if (n >= 0 && (low || high)) {
        if (kind == 0) return ts_end(high || even, (F)1);
        if (kind == 1) return ts_end(high || even, next);
        if (kind == 2) return high ? (F)1 : ts_end(even, twice);
        return high ? twice : ts_end(even, (F)1);
    }
    if (n > cosines && ts_abs(y) < 1) {
        const F angle = ts_acos(y);
        if (kind == 0) return ts_cos((F)n * angle);
        if (kind == 2) return ts_cos(((F)n + (F)0.5) * angle) / ts_cos(angle / 2);
        if (kind == 3) return ts_sin(((F)n + (F)0.5) * angle) / ts_sin(angle / 2);
        const F s = ts_sin(angle);
        return s != 0 ? ts_sin(next * angle) / s : next * ts_cos(next * angle) / y;
    }
    const F first = kind == 0 ? y : kind == 1 ? y + y : kind == 2 ? y + y - 1 : y + y + 1;
    TS_TERMS(first, (y + y) * q - p)
}
#define TS_CHEBYSHEV(name, kind, plain, moved) \
    template <class F> TS_FN F name##_of(F x, F b, bool shifted) { \
        const F y = shifted ? x + x - 1 : x; \
        const bool low = x == (shifted ? (F)0 : (F)-1), high = x == 1; \
        return ts_chebyshev<F>(x, y, ts_degree(b), kind, shifted ? moved : plain, low, high); \
    }
TS_CHEBYSHEV(ts_first, 0, 6, 6)
TS_CHEBYSHEV(ts_second, 1, 8, 6)
TS_CHEBYSHEV(ts_third, 2, 8, 6)
TS_CHEBYSHEV(ts_fourth, 3, 8, 4)

template <class F> static __device__ F ts_hermite_of(F x, F b, bool physicists, ts_i64 most) {
    const ts_i64 n = ts_degree(b);
    if (n > most) return ts_nan(x);
    if (physicists) { TS_TERMS(x + x, (x + x) * q - (F)(2 * (k - 1)) * p) }
    TS_TERMS(x, x * q - (F)(k - 1) * p)
}
template <class F> static __device__ F ts_laguerre_of(F x, F b) {
    const ts_i64 n = ts_degree(b);
    if (n >= 0 && x == 0) return 1;
    TS_TERMS((F)1 - x, (((F)(2 * k - 1) - x) * q - (F)(k - 1) * p) / (F)k)
}
template <class F> static __device__ F ts_legendre_of(F x, F b) {
    const ts_i64 n = ts_degree(b);
    if (n >= 0 && ts_abs(x) == 1) return ts_end(x > 0 || n % 2 == 0, (F)1);
    TS_TERMS(x, ((F)(2 * k - 1) * x * q - (F)(k - 1) * p) / (F)k)
}
#define TS_POLYNOMIAL(F, most) \
    TS_FN F ts_chebyshev_t(F a, F b) { return ts_first_of<F>(a, b, false); } \
    TS_FN F ts_chebyshev_u(F a, F b) { return ts_second_of<F>(a, b, false); } \
    TS_FN F ts_chebyshev_v(F a, F b) { return ts_third_of<F>(a, b, false); } \
    TS_FN F ts_chebyshev_w(F a, F b) { return ts_fourth_of<F>(a, b, false); } \
    TS_FN F ts_shifted_t(F a, F b) { return ts_first_of<F>(a, b, true); } \
    TS_FN F ts_shifted_u(F a, F b) { return ts_second_of<F>(a, b, true); } \
    TS_FN F ts_shifted_v(F a, F b) { return ts_third_of<F>(a, b, true); } \
    TS_FN F ts_shifted_w(F a, F b) { return ts_fourth_of<F>(a, b, true); } \
    TS_FN F ts_hermite_h(F a, F b) { return ts_hermite_of<F>(a, b, true, most); } \
    TS_FN F ts_hermite_he(F a, F b) { return ts_hermite_of<F>(a, b, false, most); } \
    TS_FN F ts_laguerre_l(F a, F b) { return ts_laguerre_of<F>(a, b); } \
    TS_FN F ts_legendre_p(F a, F b) { return ts_legendre_of<F>(a, b); }
TS_POLYNOMIAL(float, 128)
TS_POLYNOMIAL(double, 512)

// e^x K(x) of order 1/3 for x of at least 2: Temme's continued fraction.
static __device__ double ts_macdonald_third(double x) {
    if (x > 1e16) return sqrt(0.5 * TS_PI) / sqrt(x);
    const double order = 1.0 / 3.0, a1 = 0.25 - order * order;
    double b = 2.0 * (1.0 + x), d = 1.0 / b, delta = d, q1 = 0, q2 = 1, q = a1, c = a1, a = -a1, s = 1.0 + q * delta;
    for (int i = 2; i < 10000; i++) {
        a -= 2.0 * (i - 1);
        c = -a * c / i;
        const double next = (q1 - b * q2) / a;
        q1 = q2;
        q2 = next;
        q += c * next;
        b += 2.0;
        d = 1.0 / (b + a * d);
        delta *= b * d - 1.0;
        const double more = q * delta;
        s += more;
        if (fabs(more / s) < 1e-17) break;
    }
    return sqrt(TS_PI / (2.0 * x)) / s;
}
static __device__ double ts_airy(double x) {
    if (x != x || ts_isinf(x)) return ts_nan(x);
    const double size = fabs(x), zeta = size * sqrt(size) / 1.5;
    if (x >= 2.1) return ts_macdonald_third(zeta) * exp(-zeta) * (sqrt(x / 3.0) / TS_PI);
    if (x >= -8.0) {
        const double cube = x * x * x;
        double f = 0.35502805388781724, h = -0.2588194037928068 * x, sum = 0;
        for (int k = 0; k < 200; k++) {
            sum += f + h;
            const double n = 3.0 * k;
            f *= cube / ((n + 2.0) * (n + 3.0));
            h *= cube / ((n + 3.0) * (n + 4.0));
            if (fabs(f) + fabs(h) < 1e-18) break;
        }
        return sum;
    }
    double term = 1, cosine = 0, sine = 0;
    for (int k = 0; k < 16; k++) {
        if (k % 4 == 0) cosine += term;
        else if (k % 4 == 1) sine += term;
        else if (k % 4 == 2) cosine -= term;
        else sine -= term;
        const double n = 6.0 * k;
        const double next = term * (n + 1.0) * (n + 3.0) * (n + 5.0) / (216.0 * (k + 1) * (2 * k + 1) * zeta);
        if (next > term) break;
        term = next;
    }
    const double angle = zeta - TS_PI / 4;
    return (cos(angle) * cosine + sin(angle) * sine) / (sqrt(TS_PI) * sqrt(sqrt(size)));
}
TS_FN float ts_airy(float x) { return (float)ts_airy((double)x); }

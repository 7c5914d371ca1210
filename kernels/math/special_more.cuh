// More special functions, in double: the normal distribution, Bessel functions, incomplete gamma functions, random counts
// (sources: kernel/math/{normal,bessel,gamma,counts}.rs).
#pragma once
#include "math/math.cuh"

#define TS_ROOT_HALF 0.70710678118654752440

TS_FN double ts_entr(double x) { return x != x ? x : x > 0 ? -x * log(x) : x == 0 ? 0.0 : -ts_inf(x); }
TS_FN double ts_erfcx_right(double x) {
    if (x < 10) return exp(x * x) * erfc(x);
    const double z = -0.5 / (x * x);
    double term = 1, sum = 1;
    for (int k = 0; k < 12; k++) {
        term *= (2 * k + 1) * z;
        sum += term;
    }
    return sum / (x * sqrt(TS_PI));
}
TS_FN double ts_erfcx(double x) { return x < 0 ? 2.0 * exp(x * x) - ts_erfcx_right(-x) : ts_erfcx_right(x); }
TS_FN double ts_ndtr(double x) {
    const double t = x * TS_ROOT_HALF;
    if (fabs(t) < TS_ROOT_HALF) return 0.5 + 0.5 * erf(t);
    const double tail = 0.5 * erfc(fabs(t));
    return t > 0 ? 1.0 - tail : tail;
}
TS_FN double ts_log_ndtr(double x) {
    const double t = x * TS_ROOT_HALF;
    return x < -1 ? log(ts_erfcx(-t) / 2.0) - t * t : log1p(-erfc(t) / 2.0);
}
TS_FN double ts_ndtri(double p) {
    if (!(p >= 0 && p <= 1)) return ts_nan(p);
    if (p == 0 || p == 1) return p == 0 ? -ts_inf(p) : ts_inf(p);
    if (p >= 0.01 && p <= 0.99) return 1.41421356237309504880 * ts_erfinv(2.0 * p - 1.0);
    const bool low = p < 0.5;
    const double target = low ? log(p) : log(1.0 - p);
    double x = -sqrt(fmax(-2.0 * target - log(2.0 * TS_PI * -2.0 * target), 1.0));
    for (int round = 0; round < 8; round++) {
        const double slope = sqrt(2.0 / TS_PI) / ts_erfcx(-x * TS_ROOT_HALF), step = (ts_log_ndtr(x) - target) / slope;
        x -= step;
        if (fabs(step) <= 1e-16 * fabs(x)) break;
    }
    return low ? x : -x;
}
TS_FN double ts_xlog1py(double a, double b) { return b != b ? b : a == 0 ? 0.0 : a * log1p(b); }
TS_FN double ts_mantissa(double x) {
    int e;
    return ts_isfinite(x) ? frexp(x, &e) : x;
}
TS_FN double ts_exponent(double x) {
    int e = 0;
    if (ts_isfinite(x)) frexp(x, &e);
    return e;
}

TS_FN double ts_hankel(double a, double mu) {
    double term = 1, sum = 1;
    for (int k = 1; k < 40; k++) {
        const double odd = 2 * k - 1;
        term *= -(mu - odd * odd) / (8.0 * k * a);
        sum += term;
        if (fabs(term) < 1e-17) break;
    }
    return sum;
}
TS_FN double ts_i0e(double x) {
    const double a = fabs(x);
    return a < 25 ? exp(-a) * ts_i0(a) : ts_hankel(a, 0) / (sqrt(2 * TS_PI) * sqrt(a));
}
TS_FN double ts_i1e(double x) {
    const double a = fabs(x);
    return a < 25 ? exp(-a) * ts_i1(x) : copysign(ts_hankel(a, 4) / (sqrt(2 * TS_PI) * sqrt(a)), x);
}
TS_FN double ts_bessel_j0(double x) { return ts_isinf(x) ? ts_nan(x) : j0(x); }
TS_FN double ts_bessel_j1(double x) { return ts_isinf(x) ? ts_nan(x) : j1(x); }
TS_FN double ts_bessel_y0(double x) { return ts_isinf(x) ? ts_nan(x) : y0(x); }
TS_FN double ts_bessel_y1(double x) { return ts_isinf(x) ? ts_nan(x) : y1(x); }

// K0 and K1, times e^x when scaled.
static __device__ double ts_macdonald(double x, int order, bool scaled) {
    if (x == 0) return ts_inf(x);
    if (x != x || x < 0) return ts_nan(x);
    if (ts_isinf(x)) return 0;
    double k0, k1;
    if (x < 2) {
        const double z = 0.25 * x * x, l = log(0.5 * x), euler = 0.57721566490153286;
        double term = 1, harmonic = 0;
        k0 = k1 = 0;
        for (int k = 0; k < 30; k++) {
            const double n = k;
            if (k > 0) {
                term *= z / (n * n);
                harmonic += 1.0 / n;
            }
            k0 += term * harmonic;
            k1 += term / (n + 1) * (2.0 * (harmonic - euler) + 1.0 / (n + 1));
            if (term < 1e-18) break;
        }
        k0 = k0 - (l + euler) * ts_i0(x);
        k1 = 1.0 / x + l * ts_i1(x) - 0.25 * x * k1;
    } else if (x > 1e16) {
        k0 = k1 = sqrt(0.5 * TS_PI) / sqrt(x);
    } else {
        const double a1 = 0.25;
        double b = 2.0 * (1.0 + x), d = 1.0 / b, h = d, delta = d, q1 = 0, q2 = 1, q = a1, c = a1, a = -a1;
        double s = 1.0 + q * delta;
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
            h += delta;
            const double more = q * delta;
            s += more;
            if (fabs(more / s) < 1e-17) break;
        }
        k0 = sqrt(TS_PI / (2.0 * x)) / s;
        k1 = k0 * (x + 0.5 - a1 * h) / x;
    }
    const double factor = x < 2 && scaled ? exp(x) : x >= 2 && !scaled ? exp(-x) : 1.0;
    return (order ? k1 : k0) * factor;
}
TS_FN double ts_bessel_k0(double x) { return ts_macdonald(x, 0, false); }
TS_FN double ts_bessel_k1(double x) { return ts_macdonald(x, 1, false); }
TS_FN double ts_bessel_k0e(double x) { return ts_macdonald(x, 0, true); }
TS_FN double ts_bessel_k1e(double x) { return ts_macdonald(x, 1, true); }

TS_FN double ts_spherical_j0(double x) { return ts_isinf(x) ? 0.0 : fabs(x) < 1e-4 ? 1.0 - x * x / 6.0 : sin(x) / x; }

// The regularized incomplete gamma functions; `tail`: the upper one.
static __device__ double ts_gamma_part(double a, double x, bool tail) {
    double edge = -1;
    if (a < 0 || x < 0) edge = ts_nan(x);
    else if (a == 0) edge = x > 0 ? 1.0 : ts_nan(x);
    else if (x == 0) edge = 0;
    else if (ts_isinf(a)) edge = ts_isinf(x) ? ts_nan(x) : 0.0;
    else if (ts_isinf(x)) edge = 1;
    else if (a != a || x != x) edge = ts_nan(x);
    if (edge != -1) return tail ? 1.0 - edge : edge;
    if (a > 1e6) {
        const double mu = (x - a) / a;
        double half = 0, power = mu;
        for (int k = 2; k < 12; k++) {
            power *= mu;
            half += (k % 2 == 0 ? power : -power) / k;
        }
        if (fabs(mu) >= 1e-2) half = mu - log1p(mu);
        const double eta = copysign(sqrt(fmax(2.0 * half, 0.0)), mu), main = 0.5 * erfc(eta * sqrt(0.5 * a));
        const double first = fabs(eta) < 1e-3 ? -1.0 / 3.0 + eta / 12.0 : 1.0 / mu - 1.0 / eta;
        const double upper = fmin(fmax(main + exp(-0.5 * a * eta * eta) / sqrt(2.0 * TS_PI * a) * first, 0.0), 1.0);
        return tail ? upper : 1.0 - upper;
    }
    const double front = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1.0 / a, sum = term, n = a;
        for (int k = 0; k < 20000; k++) {
            n += 1;
            term *= x / n;
            sum += term;
            if (term < sum * 1e-17) break;
        }
        const double lower = fmin(sum * front, 1.0);
        return tail ? 1.0 - lower : lower;
    }
    const double tiny = 1e-300;
    double b = x + 1 - a, c = 1.0 / tiny, d = 1.0 / b, h = d;
    for (int i = 1; i < 20000; i++) {
        const double an = -(double)i * (i - a);
        b += 2;
        d = an * d + b;
        d = 1.0 / (fabs(d) < tiny ? tiny : d);
        c = b + an / c;
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        if (fabs(d * c - 1.0) < 1e-16) break;
    }
    const double upper = fmin(front * h, 1.0);
    return tail ? upper : 1.0 - upper;
}
TS_FN double ts_igamma(double a, double x) { return ts_gamma_part(a, x, false); }
TS_FN double ts_igammac(double a, double x) { return ts_gamma_part(a, x, true); }

// How samples of gamma and beta distributions move with a parameter: `src/kernel/math/reparameterized.rs`.
TS_FN float ts_sampled(float, float b) { return b; }
TS_FN double ts_sampled(double, double b) { return b; }
static __device__ double ts_gamma_tail(double a, double x, double c, bool upper) {
    const double scale = 1.0 / (fabs(a - x) + sqrt(x)), sign = upper ? 1.0 : -1.0;
    double sum = 0;
    for (int node = 0; node < 600; node++) {
        const double t = -3.4 + 0.1 * node, bend = exp(-t), u = exp(t - bend), s = sign * scale * u;
        const double exponent = a * s - x * expm1(s);
        if (exponent < -45.0) break;
        sum += u * (1.0 + bend) * exp(exponent) * (c + s);
    }
    return sign * x * sum * scale * 0.1;
}
TS_FN double ts_gamma_slope(double a, double x) {
    if (!(a > 0 && x >= 0)) return ts_nan(0.0);
    if (x == 0) return 0;
    return ts_gamma_tail(a, x, log(x) - ts_digamma(a), x > a);
}
// Over the tail of `near`, which is x (`lower`) or 1 - x; `a` and `b` are its parameter and the other's.
static __device__ double ts_beta_tail(double near, double far, double a, double b, double c, bool lower) {
    const double r = near / far;
    const double scale = 1.0 / (fabs(a - (b - 1.0) * r) + sqrt(fabs(b - 1.0) * r / far));
    double sum = 0;
    for (int node = 0; node < 600; node++) {
        const double t = -3.4 + 0.1 * node, bend = exp(-t), u = exp(t - bend), s = scale * u;
        const double rise = log1p(-r * expm1(-s)), exponent = -a * s + (b - 1.0) * rise;
        if (exponent < -45.0) break;
        sum += u * (1.0 + bend) * exp(exponent) * (c + (lower ? -s : rise));
    }
    return sum * scale * 0.1;
}
TS_FN double ts_dirichlet_slope(double x, double a, double total) {
    const double b = total - a, y = 1.0 - x;
    if (!(a > 0 && b > 0 && x >= 0 && y >= 0)) return ts_nan(0.0);
    if (x == 0) return 0;
    const double c = log(x) - (ts_digamma(a) - ts_digamma(total));
    if (x * total <= a && y > 0) return -x / y * ts_beta_tail(x, y, a, b, c, true);
    return ts_beta_tail(y, x, b, a, c, false);
}

// Random counts by inversion: probabilities are subtracted from u, from the mode outward. `count` < 0: Poisson of mean `a`;
// else binomial.
static __device__ double ts_outwards(double u, double mode, double at_mode, double count, double a) {
    double left = u - at_mode, low = mode, high = mode, p_low = at_mode, p_high = at_mode;
    while (left > 0) {
        const double before = left;
        if (count < 0 || high < count) {
            p_high *= count < 0 ? a / (high + 1) : (count - high) / (high + 1) * a / (1.0 - a);
            high += 1;
            left -= p_high;
            if (left <= 0) return high;
        }
        if (low > 0) {
            low -= 1;
            p_low /= count < 0 ? a / (low + 1) : (count - low) / (low + 1) * a / (1.0 - a);
            left -= p_low;
            if (left <= 0) return low;
        }
        if (left == before) break;
    }
    return mode;
}
// The logarithms of the factorials of the first numbers, which most counts are of.
static __device__ const double ts_log_factorials[24] = {
    0.0, 0.0, 0.6931471805599453, 1.791759469228055, 3.1780538303479458, 4.787491742782046, 6.579251212010101,
    8.525161361065415, 10.60460290274525, 12.801827480081469, 15.104412573075516, 17.502307845873887,
    19.987214495661885, 22.552163853123425, 25.19122118273868, 27.89927138384089, 30.671860106080672,
    33.50507345013689, 36.39544520803305, 39.339884187199495, 42.335616460753485, 45.38013889847691,
    48.47118135183523, 51.60667556776438};
TS_FN double ts_log_factorial(double k) { return k < 24 ? ts_log_factorials[(int)k] : lgamma(k + 1); }
// Calls, as `ts_zeta` of float: one copy of the code, not one for each element of a thread.
static __device__ __noinline__ double ts_poisson(double rate, double u) {
    if (!(rate >= 0) || ts_isinf(rate)) return ts_nan(rate);
    if (rate == 0) return 0;
    if (rate > 1e8) return fmax(round(rate + sqrt(rate) * ts_ndtri(fmax(u, 2.2250738585072014e-308))), 0.0);
    const double mode = floor(rate);
    const double logarithm = mode == 0 ? -rate : mode * log(rate) - rate - ts_log_factorial(mode);
    return ts_outwards(u, mode, exp(logarithm), -1, rate);
}
static __device__ __noinline__ double ts_binomial(double count, double p, double u) {
    const double n = floor(count);
    if (!(ts_isfinite(n) && n >= 0 && p >= 0 && p <= 1)) return ts_nan(p);
    if (n == 0 || p == 0) return 0;
    if (p == 1) return n;
    if (n * p * (1.0 - p) > 1e8) {
        const double z = ts_ndtri(fmax(u, 2.2250738585072014e-308));
        return fmin(fmax(round(n * p + sqrt(n * p * (1.0 - p)) * z), 0.0), n);
    }
    const double mode = fmin(floor((n + 1) * p), n);
    const double ways = ts_log_factorial(n) - ts_log_factorial(mode) - ts_log_factorial(n - mode);
    return ts_outwards(u, mode, exp(ways + mode * log(p) + (n - mode) * log1p(-p)), n, p);
}

#define TS_WIDEN_2(name) TS_FN float name(float a, float b) { return (float)name((double)a, (double)b); }
TS_WIDEN_2(ts_igamma) TS_WIDEN_2(ts_igammac)
#include "math/polynomial.cuh"

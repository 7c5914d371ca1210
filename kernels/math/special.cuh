// Special functions by series and recurrences, in double (sources: kernel/math/special.rs).
#pragma once
#include "math/math.cuh"

#define TS_PI 3.14159265358979323846

TS_FN double ts_erfinv(double y) {
    if (!(fabs(y) <= 1.0)) return ts_nan(y);
    if (fabs(y) == 1.0) return copysign(ts_inf(y), y);
    double x;
    if (fabs(y) <= 0.7) {
        double z = y * y;
        double p = ((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899;
        double q = (((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1.0;
        x = y * p / q;
    } else {
        double z = sqrt(-log((1.0 - fabs(y)) / 2.0));
        double p = ((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454;
        double q = (1.637067800 * z + 3.543889200) * z + 1.0;
        x = copysign(p / q, y);
    }
    for (int round = 0; round < 2; round++) {
        double error = fabs(y) < 0.5 ? erf(x) - y : ((1.0 - fabs(y)) - erfc(fabs(x))) * copysign(1.0, y);
        x -= error / (2.0 / sqrt(TS_PI) * exp(-x * x));
    }
    return x;
}

TS_FN double ts_digamma(double x) {
    if (x == 0) return copysign(ts_inf(x), -x);
    double reflected = 0;
    if (x < 0) {
        if (x == trunc(x)) return ts_nan(x);
        reflected = -TS_PI / tan(TS_PI * (x - trunc(x)));
        x = 1.0 - x;
    }
    double sum = 0;
    while (x < 10) {
        sum -= 1.0 / x;
        x += 1.0;
    }
    if (x == ts_inf(x)) return x;
    double z = 1.0 / (x * x);
    double series = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0
        - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z * (1.0 / 12.0)))))));
    return sum + log(x) - 0.5 / x - series + reflected;
}

TS_FN double ts_polygamma1(double x) {
    double reflected = 0, sign = 1;
    if (x < 0.5) {
        // At a pole the sine of a rounded multiple of pi is not zero: the large result is PyTorch's too.
        double s = x == trunc(x) ? sin(TS_PI * x) : sin(TS_PI * (x - trunc(x)));
        reflected = TS_PI * TS_PI / (s * s);
        sign = -1;
        x = 1.0 - x;
    }
    double sum = 0;
    while (x < 10) {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    double z = 1.0 / (x * x);
    double series = z * (1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0 - z * 691.0 / 2730.0)))));
    return reflected + sign * (sum + (1.0 + 0.5 / x + series) / x);
}

// Modified Bessel functions: the power series up to 25, beyond that the asymptotic one.
TS_FN double ts_i0(double x) {
    double a = fabs(x), term = 1, sum = 1;
    if (a != a) return a;
    if (a < 25) {
        double q = 0.25 * a * a;
        for (double k = 1; term > sum * 1e-17; k += 1) {
            term *= q / (k * k);
            sum += term;
        }
        return sum;
    }
    for (double k = 1; k < 40 && term > 1e-17; k += 1) {
        term *= (2 * k - 1) * (2 * k - 1) / (8 * k * a);
        sum += term;
    }
    double half = exp(0.5 * a);
    return half * (half * sum / (sqrt(2 * TS_PI) * sqrt(a)));
}
TS_FN double ts_i1(double x) {
    double a = fabs(x), term = 1, sum = 1;
    if (a != a) return a;
    if (a < 25) {
        double q = 0.25 * a * a;
        for (double k = 1; term > sum * 1e-17; k += 1) {
            term *= q / (k * (k + 1));
            sum += term;
        }
        return 0.5 * x * sum;
    }
    for (double k = 1; k < 40 && fabs(term) > 1e-17; k += 1) {
        term *= -(4 - (2 * k - 1) * (2 * k - 1)) / (8 * k * a);
        sum += term;
    }
    double half = exp(0.5 * a);
    return copysign(half * (half * sum / (sqrt(2 * TS_PI) * sqrt(a))), x);
}

// Hurwitz' zeta function by the Euler-Maclaurin formula.
// Terms are summed up to `least` of them and beyond `far`; none below `small` parts of the sum count.
TS_FN double ts_zeta_until(double s, double q, int least, double far, double small) {
    if (s == 1) return ts_inf(s);
    if (s < 1) return ts_nan(s);
    if (q <= 0) {
        if (q == floor(q)) return ts_inf(s);
        if (s != floor(s)) return ts_nan(s);
    }
    if (s != s || q != q) return ts_nan(s);
    if (ts_isinf(s)) return q == 1 ? 1.0 : q < 1 ? ts_inf(s) : ts_nan(s);
    const double bernoulli[10] = {1.0 / 12.0, -1.0 / 720.0, 1.0 / 30240.0, -1.0 / 1209600.0, 1.0 / 47900160.0,
        -691.0 / 1307674368000.0, 1.0 / 74724249600.0, -3617.0 / 10670622842880000.0,
        43867.0 / 5109094217170944000.0, -174611.0 / 802857662698291200000.0};
    double a = q, sum = 0, last;
    for (int k = 0;; k++) {
        last = pow(a, -s);
        sum += last;
        if (a > 0 && last < sum * small) return sum;
        if (k >= least && a > far) break;
        if (k > 100000) return ts_nan(s);
        a += 1;
    }
    sum += a * last / (s - 1) - 0.5 * last;
    double rising = s, power = last / a;
    for (int j = 0; j < 10; j++) {
        double term = bernoulli[j] * rising * power;
        sum += term;
        if (fabs(term) < fabs(sum) * 1e-17) break;
        double k = 2.0 * j + 1.0;
        rising *= (s + k) * (s + k + 1);
        power /= a * a;
    }
    return sum;
}

// At a pole the result depends on the rounding of float.
static __device__ __noinline__ float ts_polygamma1_below(float a) {
    if (a != truncf(a)) return (float)ts_polygamma1((double)a);
    const double s = sin((double)(3.14159274f * a));
    return (float)(TS_PI * TS_PI / (s * s) - ts_polygamma1(1.0 - (double)a));
}
TS_FN float ts_polygamma1(float a) {
    if (a > 0) {
        // Only sums of positive numbers, so that float is enough; the rest of the series from 4 on is below 1e-8.
        float x = a, sum = 0;
        while (x < 4) {
            const float inverse = 1.0f / x;
            sum += inverse * inverse;
            x += 1.0f;
        }
        const float inverse = 1.0f / x, z = inverse * inverse;
        const float series = z * (1.0f / 6 - z * (1.0f / 30 - z * (1.0f / 42 - z * (1.0f / 30))));
        return sum + (1.0f + 0.5f * inverse + series) * inverse;
    }
    return ts_polygamma1_below(a);
}
TS_FN double ts_zeta(double s, double q) { return ts_zeta_until(s, q, 12, 9, 0); }
// The same in float, as PyTorch computes it; half as many terms are exact then. The series is one of parts of the last power,
// which neither overflow nor vanish; beyond the range of q the power does. A call: inlined for each element of a vector it would
// not fit into the cache of instructions.
static __device__ __noinline__ float ts_zeta(float s, float q) {
    const float least = 3e-8f;
    if (!(s > 1 && q > 0 && q < 1000) || ts_isinf(s)) return (float)ts_zeta_until((double)s, (double)q, 5, 5, 1e-10);
    float a = q, sum = 0, last;
    for (int k = 0;; k++) {
        last = powf(a, -s);
        sum += last;
        if (last <= sum * least) return sum;
        if (k >= 5 && a > 5) break;
        a += 1;
    }
    const float bernoulli[8] = {1.0f / 12, -1.0f / 720, 1.0f / 30240, -1.0f / 1209600, 1.0f / 47900160,
        -5.2841901e-10f, 1.3382537e-11f, -3.3896803e-13f};
    const float square = 1.0f / (a * a);
    float part = s / a, tail = a / (s - 1) - 0.5f;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const float term = bernoulli[j] * part, k = 2.0f * j + 1;
        tail += term;
        if (fabsf(term) <= fabsf(tail) * least) break;
        part *= (s + k) * (s + (k + 1)) * square;
    }
    return sum + last * tail;
}

#include "math/single.cuh"
#include "math/special_more.cuh"

// Philox 4x32-10 and the values made from its words. Integers and uniforms are bit for bit those of base/rng.rs.
#pragma once
#include "common/base.cuh"

struct ts_philox_words { ts_u32 x[4]; };

TS_FN ts_philox_words ts_philox(ts_u64 seed, ts_u64 counter) {
    ts_u32 c0 = (ts_u32)counter, c1 = (ts_u32)(counter >> 32), c2 = 0, c3 = 0;
    ts_u32 k0 = (ts_u32)seed, k1 = (ts_u32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        // Products of 64 bits are one instruction each.
        const ts_u64 first = (ts_u64)0xD2511F53u * c0, second = (ts_u64)0xCD9E8D57u * c2;
        c0 = (ts_u32)(second >> 32) ^ c1 ^ k0;
        c1 = (ts_u32)second;
        c2 = (ts_u32)(first >> 32) ^ c3 ^ k1;
        c3 = (ts_u32)first;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return ts_philox_words{{c0, c1, c2, c3}};
}

TS_FN ts_u32 ts_select_word(const ts_philox_words& w, ts_u32 lane) {
    ts_u32 low = lane & 1 ? w.x[1] : w.x[0], high = lane & 1 ? w.x[3] : w.x[2];
    return lane & 2 ? high : low;
}

TS_FN ts_u32 ts_word(ts_u64 seed, ts_u64 offset, ts_u64 index) {
    return ts_select_word(ts_philox(seed, offset + index / 4), (ts_u32)index & 3);
}
// The seed of the lower halves of 64-bit words differs by this.
static const ts_u64 TS_SECOND = 0x9E3779B97F4A7C15ULL;
TS_FN ts_u64 ts_word64(ts_u64 seed, ts_u64 offset, ts_u64 index) {
    return (ts_u64)ts_word(seed, offset, index) << 32 | ts_word(seed ^ TS_SECOND, offset, index);
}

TS_FN float ts_uniform32(ts_u32 word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }
TS_FN double ts_uniform64(ts_u64 word) { return (double)(word >> 11) * (1.0 / 9007199254740992.0); }

TS_FN float ts_draw_uniform_f32(ts_u64 seed, ts_u64 offset, ts_u64 index) { return ts_uniform32(ts_word(seed, offset, index)); }
TS_FN double ts_draw_uniform_f64(ts_u64 seed, ts_u64 offset,
    ts_u64 index) { return ts_uniform64(ts_word64(seed, offset, index)); }
TS_FN ts_i64 ts_draw_word(ts_u64 seed, ts_u64 offset, ts_u64 index) { return ts_word(seed, offset, index); }
TS_FN ts_i64 ts_draw_integer(ts_u64 seed, ts_u64 offset, ts_u64 low, ts_u64 range, ts_u64 index) {
    return (ts_i64)(low + __umul64hi(ts_word64(seed, offset, index), range));
}

// cos and sin of 2 pi u: the quadrant is exact, the polynomials are Cephes', as on the host.
TS_FN void ts_sincos_2pi(float u, float& x, float& y) {
    int quadrant = (int)(4.0f * u + 0.5f);
    float r = (u - 0.25f * (float)quadrant) * 6.28318530717958647692f, z = r * r;
    float s = fmaf(fmaf(-1.9515296e-4f, z, 8.332161e-3f), z, -1.6666655e-1f);
    s = fmaf(s * z, r, r);
    float c = fmaf(fmaf(2.4433157e-5f, z, -1.3887316e-3f), z, 4.1666646e-2f);
    c = fmaf(c * z, z, 1.0f - 0.5f * z);
    x = quadrant & 1 ? s : c;
    y = quadrant & 1 ? c : s;
    if ((quadrant + 1) & 2) x = -x;
    if (quadrant & 2) y = -y;
}

// log(u) for u in (2^-126, 1]: without logf's branches, after which nothing that two values share is computed once. The
// polynomial is a least-squares fit of the relative error, over mantissas from 2/3 to 4/3.
TS_FN float ts_log_of_uniform(float u) {
    const int bits = __float_as_int(u), exponent = (bits - 0x3f2aaaab) & 0xff800000;
    const float t = __int_as_float(bits - exponent) - 1.0f;
    float p = fmaf(1.372444e-01f, t, -1.5393518e-01f);
    p = fmaf(p, t, 1.4060916e-01f);
    p = fmaf(p, t, -1.6414666e-01f);
    p = fmaf(p, t, 2.0006904e-01f);
    p = fmaf(p, t, -2.5007924e-01f);
    p = fmaf(p, t, 3.3333278e-01f);
    p = fmaf(p, t, -4.9999934e-01f);
    return fmaf((float)(exponent >> 23), 0.69314718f, fmaf(p * t, t, t));
}

// Box-Muller: values come in pairs, words 0 and 1, or 2 and 3, of one counter.
TS_FN float ts_draw_normal_f32(ts_u64 seed, ts_u64 offset, ts_u64 index) {
    ts_philox_words w = ts_philox(seed, offset + index / 4);
    ts_u32 even = index & 2 ? w.x[2] : w.x[0], odd = index & 2 ? w.x[3] : w.x[1];
    float u = (float)((even >> 8) + 1) * (1.0f / 16777216.0f), c, s;
    ts_sincos_2pi(ts_uniform32(odd), c, s);
    float radius = sqrtf(-2.0f * ts_log_of_uniform(u));
    return index & 1 ? radius * s : radius * c;
}
TS_FN double ts_draw_normal_f64(ts_u64 seed, ts_u64 offset, ts_u64 index) {
    ts_u64 pair = index & ~1ULL;
    ts_u64 even = ts_word64(seed, offset, pair), odd = ts_word64(seed, offset, pair + 1);
    double u = (double)((even >> 11) + 1) * (1.0 / 9007199254740992.0), angle = ts_uniform64(odd) * 6.28318530717958647692;
    double radius = sqrt(-2.0 * log(u));
    return index & 1 ? radius * sin(angle) : radius * cos(angle);
}

// Row-major index of three dims, and back (unravel_index).
#pragma once
#include "common/base.cuh"

TS_FN ts_i64 ts_numel(const ts_i64* size) { return size[0] * size[1] * size[2]; }
// For indices and sizes below 2^32: 32-bit division is faster.
TS_FN void ts_unravel32(ts_i64 i, const ts_i64* size, ts_i64* at) {
    at[2] = (ts_u32)i % (ts_u32)size[2];
    i = (ts_u32)i / (ts_u32)size[2];
    at[1] = (ts_u32)i % (ts_u32)size[1];
    at[0] = (ts_u32)i / (ts_u32)size[1];
}

// n / d; `word` is what `ts_fast_div` divides by d with.
TS_FN ts_i32 ts_quotient(ts_i32 n, ts_i64, ts_u64 word) { return (ts_i32)ts_fast_div((ts_u32)n, word); }
TS_FN ts_i64 ts_quotient(ts_i64 n, ts_i64 d, ts_u64) { return n / d; }

// The place of element i in a stack of planes of three dims; returns the plane.
template <class Int> TS_FN Int ts_unravel_plane(Int i, const ts_i64* size, const ts_u64* divide, Int* at) {
#pragma unroll
    for (int d = 2; d >= 0; d--) {
        const Int left = ts_quotient(i, size[d], divide[d]);
        at[d] = i - left * (Int)size[d];
        i = left;
    }
    return i;
}

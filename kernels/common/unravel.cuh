// Row-major index of three dims, and back (unravel_index).
#pragma once
#include "common/base.cuh"

TS_FN ts_i64 ts_numel(const ts_i64* size) { return size[0] * size[1] * size[2]; }
TS_FN void ts_unravel(ts_i64 i, const ts_i64* size, ts_i64* at) {
    at[2] = i % size[2];
    i /= size[2];
    at[1] = i % size[1];
    at[0] = i / size[1];
}
// The same for indices and sizes below 2^32: 32-bit division is faster.
TS_FN void ts_unravel32(ts_i64 i, const ts_i64* size, ts_i64* at) {
    at[2] = (ts_u32)i % (ts_u32)size[2];
    i = (ts_u32)i / (ts_u32)size[2];
    at[1] = (ts_u32)i % (ts_u32)size[1];
    at[0] = (ts_u32)i / (ts_u32)size[1];
}

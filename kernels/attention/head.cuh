// Where the rows of a head are, and how they come to shared memory, for the attention kernels on tensor cores. T: memory type;
// W: the head dim; M: memory type of the mask (ts_b8 or ts_f32); MASKED: whether there is a mask.
#pragma once
#include "common/mma.cuh"

#include "attention/tile_args.cuh"

// Elements of 16 bytes.
static const int CHUNK = 16 / sizeof(T);

// A row in shared memory, padded by 16 bytes, so that eight rows of one column are in different banks.
struct SharedRow {
    T x[W + CHUNK];
};

// The index of a head over the leading dims.
struct HeadIndex {
    ts_u32 at[4];
    __device__ __forceinline__ HeadIndex(const Args& g, ts_u32 head) {
#pragma unroll
        for (int d = 3; d > 0; d--) {
            const ts_u32 size = (ts_u32)g.size[d], rest = head / size;
            at[d] = head - rest * size;
            head = rest;
        }
        at[0] = head;
    }
    __device__ __forceinline__ ts_i64 offset(const ts_i64* stride) const {
        return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2] + at[3] * stride[3];
    }
    __device__ __forceinline__ const T* ptr(const TensorRef& rows) const { return rows.ptr + offset(rows.stride); }
};

// Copies rows `first` to `first + N` of a head asynchronously; rows from `count` on are zero. A thread copies one chunk of
// every PASS-th row.
template <int N> TS_FN void ts_cp_async_tile(SharedRow* to, const T* from, ts_i64 row_stride, ts_i64 first, ts_i64 count) {
    const int CHUNKS = W / CHUNK, PASS = 128 / CHUNKS, thread_row = threadIdx.x / CHUNKS,
        column = threadIdx.x % CHUNKS * CHUNK;
    const int valid = count - first < N ? (int)(count - first) : N;
    const T* at = from + (first + thread_row) * row_stride + column;
#pragma unroll
    for (int r = 0; r < N; r += PASS, at += PASS * row_stride)
        if (PASS * CHUNKS == 128 && N % PASS == 0 || thread_row < PASS && thread_row + r < N)
            ts_cp_async_16(&to[thread_row + r].x[column], thread_row + r < valid ? at : from, thread_row + r < valid);
}

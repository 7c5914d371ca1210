// Rows of a matrix, each worked on by `lanes` neighbouring threads that keep it in registers between visits.
//
// T: memory type. V: elements of a vector. E: vectors that a thread keeps; 0 where a row is too long for that and is
// read again at each visit. LANES, THREADS: of a row, and of a block. A thread outside the matrix has a row of length 0 and
// takes part in every exchange.
#pragma once
#include "common/reduce.cuh"

template <class T, int V, int E> struct ts_row {
    typedef typename ts_of<T>::cls C;
    const T* from;
    ts_i64 n;
    int lane, lanes;
    C x[E > 0 ? E : 1][V];

    TS_METHOD void bring(ts_i64 i, C* to) const {
        ts_vec<T, V> raw = *(const ts_vec<T, V>*)(from + i);
#pragma unroll
        for (int v = 0; v < V; v++) to[v] = ts_up(raw.x[v]);
    }
    TS_METHOD void open(const T* row, ts_i64 count, int my_lane, int all_lanes) {
        from = row;
        n = count;
        lane = my_lane;
        lanes = all_lanes;
#pragma unroll
        for (int e = 0; e < E; e++)
            if ((ts_i64)(e * lanes + lane) * V < n) bring((ts_i64)(e * lanes + lane) * V, x[e]);
    }
    // visit(index, value) for each element of this thread.
    template <class F> TS_METHOD void each(F visit) {
        if (E > 0) {
#pragma unroll
            for (int e = 0; e < E; e++) {
                ts_i64 i = (ts_i64)(e * lanes + lane) * V;
                if (i < n)
#pragma unroll
                    for (int v = 0; v < V; v++) visit(i + v, x[e][v]);
            }
        } else {
            for (ts_i64 i = (ts_i64)lane * V; i < n; i += (ts_i64)lanes * V) {
                bring(i, x[0]);
#pragma unroll
                for (int v = 0; v < V; v++) visit(i + v, x[0][v]);
            }
        }
    }
    // to[index] = value(index, x).
    template <class F> TS_METHOD void store(T* to, F value) {
        store_vectors(to, [&](ts_i64 i, C* values) {
#pragma unroll
            for (int v = 0; v < V; v++) values[v] = value(i + v, values[v]);
        });
    }
    // The same by change(index of the first, V values), which are the row's no more.
    template <class F> TS_METHOD void store_vectors(T* to, F change) {
        if (E > 0) {
#pragma unroll
            for (int e = 0; e < E; e++) {
                ts_i64 i = (ts_i64)(e * lanes + lane) * V;
                if (i < n) put(to, i, x[e], change);
            }
        } else {
            for (ts_i64 i = (ts_i64)lane * V; i < n; i += (ts_i64)lanes * V) {
                bring(i, x[0]);
                put(to, i, x[0], change);
            }
        }
    }
    template <class F> TS_METHOD static void put(T* to, ts_i64 i, C* values, F change) {
        change(i, values);
        ts_vec<T, V> raw;
#pragma unroll
        for (int v = 0; v < V; v++) raw.x[v] = ts_down<T>(values[v]);
        *(ts_vec<T, V>*)(to + i) = raw;
    }
    // The same over this row and another of the same length.
    template <class F> TS_METHOD void each_with(ts_row& other, F visit) {
        if (E > 0) {
#pragma unroll
            for (int e = 0; e < E; e++) {
                ts_i64 i = (ts_i64)(e * lanes + lane) * V;
                if (i < n)
#pragma unroll
                    for (int v = 0; v < V; v++) visit(i + v, x[e][v], other.x[e][v]);
            }
        } else {
            for (ts_i64 i = (ts_i64)lane * V; i < n; i += (ts_i64)lanes * V) {
                bring(i, x[0]);
                other.bring(i, other.x[0]);
#pragma unroll
                for (int v = 0; v < V; v++) visit(i + v, x[0][v], other.x[0][v]);
            }
        }
    }
    template <class F> TS_METHOD void store_with(ts_row& other, T* to, F value) {
        const int rounds = E > 0 ? E : 1;
        for (ts_i64 i = (ts_i64)lane * V; E == 0 && i < n; i += (ts_i64)lanes * V) {
            bring(i, x[0]);
            other.bring(i, other.x[0]);
            put_with(other, 0, i, to, value);
        }
#pragma unroll
        for (int e = 0; e < rounds; e++) {
            ts_i64 i = (ts_i64)(e * lanes + lane) * V;
            if (E > 0 && i < n) put_with(other, e, i, to, value);
        }
    }
    template <class F> TS_METHOD void put_with(ts_row& other, int e, ts_i64 i, T* to, F value) {
        ts_vec<T, V> raw;
#pragma unroll
        for (int v = 0; v < V; v++) raw.x[v] = ts_down<T>(value(i + v, x[e][v], other.x[e][v]));
        *(ts_vec<T, V>*)(to + i) = raw;
    }
};

struct ts_add_op {
    template <class C> TS_METHOD C operator()(C a, C b) const { return a + b; }
};
struct ts_max_op {
    template <class C> TS_METHOD C operator()(C a, C b) const { return ts_maximum(a, b); }
};

// All lanes of a row get the combination of their values. Every thread of the block calls it.
template <class C, class F> TS_FN C ts_all_lanes(C value, int lanes, F combine) {
    __shared__ C shared[32];
    int width = lanes < 32 ? lanes : 32;
    for (int d = width / 2; d > 0; d /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, d, width));
    if (lanes > 32) {
        __syncthreads();
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
        __syncthreads();
        int first = threadIdx.x / lanes * (lanes / 32);
        value = shared[first];
        for (int k = 1; k < lanes / 32; k++) value = combine(value, shared[first + k]);
    }
    return value;
}

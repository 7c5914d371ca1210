// Rows of a matrix. Each row is processed by `lanes` adjacent threads, which keep it in registers between passes.
//
// T: memory type. V: elements of a vector. E: vectors that a thread keeps in registers; 0 where a row is too long, which is
// then loaded again in each pass. LANES, THREADS: threads of a row, and of a block. A thread outside the matrix has a row of
// length 0 and takes part in every exchange.
#pragma once
#include "common/reduce.cuh"

template <class T, int V, int E> struct ts_row {
    typedef typename ts_opmath<T>::type C;
    const T* data;
    ts_i64 n;
    int lane, lanes;
    C x[E > 0 ? E : 1][V];

    TS_METHOD void load(ts_i64 i, C* to) const {
        ts_vec<T, V> raw = *(const ts_vec<T, V>*)(data + i);
#pragma unroll
        for (int v = 0; v < V; v++) to[v] = ts_upcast(raw.x[v]);
    }
    TS_METHOD void init(const T* row, ts_i64 count, int lane_of_row, int lanes_of_row) {
        data = row;
        n = count;
        lane = lane_of_row;
        lanes = lanes_of_row;
#pragma unroll
        for (int e = 0; e < E; e++)
            if ((ts_i64)(e * lanes + lane) * V < n) load((ts_i64)(e * lanes + lane) * V, x[e]);
    }
    // visit(index, value) for each element of this thread.
    template <class F> TS_METHOD void for_each(F visit) {
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
                load(i, x[0]);
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
    // The same for a vector at a time: change(index of its first element, V values) modifies the values in place.
    template <class F> TS_METHOD void store_vectors(T* to, F change) {
        if (E > 0) {
#pragma unroll
            for (int e = 0; e < E; e++) {
                ts_i64 i = (ts_i64)(e * lanes + lane) * V;
                if (i < n) store_vector(to, i, x[e], change);
            }
        } else {
            for (ts_i64 i = (ts_i64)lane * V; i < n; i += (ts_i64)lanes * V) {
                load(i, x[0]);
                store_vector(to, i, x[0], change);
            }
        }
    }
    template <class F> TS_METHOD static void store_vector(T* to, ts_i64 i, C* values, F change) {
        change(i, values);
        ts_vec<T, V> raw;
#pragma unroll
        for (int v = 0; v < V; v++) raw.x[v] = ts_downcast<T>(values[v]);
        *(ts_vec<T, V>*)(to + i) = raw;
    }
    // The same over the elements of two rows of equal length.
    template <class F> TS_METHOD void for_each_with(ts_row& other, F visit) {
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
                load(i, x[0]);
                other.load(i, other.x[0]);
#pragma unroll
                for (int v = 0; v < V; v++) visit(i + v, x[0][v], other.x[0][v]);
            }
        }
    }
    template <class F> TS_METHOD void store_with(ts_row& other, T* to, F value) {
        const int count = E > 0 ? E : 1;
        for (ts_i64 i = (ts_i64)lane * V; E == 0 && i < n; i += (ts_i64)lanes * V) {
            load(i, x[0]);
            other.load(i, other.x[0]);
            store_vector_with(other, 0, i, to, value);
        }
#pragma unroll
        for (int e = 0; e < count; e++) {
            ts_i64 i = (ts_i64)(e * lanes + lane) * V;
            if (E > 0 && i < n) store_vector_with(other, e, i, to, value);
        }
    }
    template <class F> TS_METHOD void store_vector_with(ts_row& other, int e, ts_i64 i, T* to, F value) {
        ts_vec<T, V> raw;
#pragma unroll
        for (int v = 0; v < V; v++) raw.x[v] = ts_downcast<T>(value(i + v, x[e][v], other.x[e][v]));
        *(ts_vec<T, V>*)(to + i) = raw;
    }
};

struct ts_add_op {
    template <class C> TS_METHOD C operator()(C a, C b) const { return a + b; }
};
struct ts_max_op {
    template <class C> TS_METHOD C operator()(C a, C b) const { return ts_maximum(a, b); }
};

// The largest of n elements that lie `step` apart, and the sum of the exponentials of what lies below it: in one pass, eight loads
// at a time (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
template <class T, class C> TS_FN void ts_exp_sum_apart(const T* x, ts_i64 n, ts_i64 step, C& max, C& sum) {
    max = ts_lowest(C());
    sum = 0;
    for (ts_i64 k = 0; k < n; k += 8) {
        C v[8], top = max;
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = k + e < n ? (C)ts_upcast(x[(k + e) * step]) : ts_lowest(C());
#pragma unroll
        for (int e = 0; e < 8; e++) top = ts_maximum(v[e], top);
        // Nothing but -inf so far: it adds nothing beside a finite element.
        if (top == ts_lowest(C())) continue;
        if (top != max) sum *= ts_exp(max - top);
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (k + e < n) sum += ts_exp(v[e] - top);
        max = top;
    }
}

// y[k] = value(k, x[k]) for n elements that lie `step` apart, eight loads before the stores.
template <class T, class F> TS_FN void ts_store_apart(const T* x, T* y, ts_i64 n, ts_i64 step, F value) {
    for (ts_i64 k = 0; k < n; k += 8) {
        T v[8];
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (k + e < n) v[e] = x[(k + e) * step];
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (k + e < n) y[(k + e) * step] = ts_downcast<T>(value(k + e, ts_upcast(v[e])));
    }
}

// All-reduce over the `lanes` threads of a row. Every thread of the block calls it.
template <class C, class F> TS_FN C ts_group_all_reduce(C value, int lanes, F combine) {
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

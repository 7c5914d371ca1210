// Element types, conversions, vectors of elements, division by invariants, fault slots.
//
// Values in memory have a `ts_*` type. Arithmetic is done in four types only: bool, long long, float, double. 16-bit
// floats are computed as float and rounded when they are stored. cuda_fp16.h is not used: NVRTC's wheel does not
// contain it. Headers named `...args.cuh`, which declare the struct `Args` of a family's kernels, are not files: the
// macro `structs!` (src/kernel/structs.rs) generates them from the Rust structs beside the launches,
// src/kernel/<family>/cuda.rs.
#pragma once

#define TS_FN static __device__ __forceinline__
#define TS_KERNEL extern "C" __global__
// Dynamic shared memory: the launch gives its size.
#ifndef TS_DYNAMIC_SHARED
#define TS_DYNAMIC_SHARED(name) extern __shared__ __align__(1024) char name[]
#endif

typedef unsigned long long ts_u64;
typedef long long ts_i64;
typedef unsigned int ts_u32;
typedef int ts_i32;
typedef short ts_i16;
typedef signed char ts_i8;
typedef unsigned char ts_u8;
typedef float ts_f32;
typedef double ts_f64;
struct ts_b8 { unsigned char byte; };
struct ts_f16 { unsigned short bits; };
struct ts_bf16 { unsigned short bits; };

// The type that values of a memory type are computed in, as PyTorch's `opmath_type`.
template <class T> struct ts_opmath { typedef ts_i64 type; };
template <> struct ts_opmath<ts_b8> { typedef bool type; };
template <> struct ts_opmath<ts_f16> { typedef float type; };
template <> struct ts_opmath<ts_bf16> { typedef float type; };
template <> struct ts_opmath<ts_f32> { typedef float type; };
template <> struct ts_opmath<ts_f64> { typedef double type; };

TS_FN bool ts_upcast(ts_b8 x) { return x.byte != 0; }
TS_FN ts_i64 ts_upcast(ts_u8 x) { return x; }
TS_FN ts_i64 ts_upcast(ts_i8 x) { return x; }
TS_FN ts_i64 ts_upcast(ts_i16 x) { return x; }
TS_FN ts_i64 ts_upcast(ts_i32 x) { return x; }
TS_FN ts_i64 ts_upcast(ts_i64 x) { return x; }
TS_FN float ts_upcast(ts_f32 x) { return x; }
TS_FN double ts_upcast(ts_f64 x) { return x; }
TS_FN float ts_upcast(ts_bf16 x) { return __uint_as_float((ts_u32)x.bits << 16); }

#ifdef TS_HOST
// For tests on a host: the same conversions in integer arithmetic (after F. Giesen).
TS_FN float ts_upcast(ts_f16 x) {
    ts_u32 sign = (ts_u32)(x.bits & 0x8000) << 16, body = (ts_u32)(x.bits & 0x7fff) << 13, exponent = body & 0x0f800000;
    ts_u32 value = body + (exponent == 0x0f800000 ? 224u << 23 : 112u << 23);
    if (exponent == 0) value = __float_as_uint(__uint_as_float(body + (113u << 23)) - __uint_as_float(113u << 23));
    return __uint_as_float(value | sign);
}
TS_FN ts_f16 ts_to_f16(float x) {
    ts_u32 half = 126u << 23, sign = (__float_as_uint(x) >> 16) & 0x8000, a = __float_as_uint(x) & 0x7fffffff;
    ts_u32 value = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;
    if (a < 113u << 23) value = __float_as_uint(__uint_as_float(a) + __uint_as_float(half)) - half;
    if (a >= 143u << 23) value = a > 0x7f800000 ? 0x7e00 : 0x7c00;
    return ts_f16{(unsigned short)(value | sign)};
}
TS_FN ts_bf16 ts_to_bf16(float x) {
    ts_u32 u = __float_as_uint(x);
    return ts_bf16{(unsigned short)(x != x ? 0x7fc0u : (u + 0x7fff + ((u >> 16) & 1)) >> 16)};
}
#else
TS_FN float ts_upcast(ts_f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
TS_FN ts_f16 ts_to_f16(float x) {
    ts_f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
TS_FN ts_bf16 ts_to_bf16(float x) {
    ts_bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#endif

// Truncates toward zero. NaN and values out of range give the lowest integer, as PyTorch's conversions on x86 do.
template <class F> TS_FN ts_i64 ts_to_i64(F x) {
    const ts_i64 lowest = (ts_i64)0x8000000000000000ULL;
    return x < (F)9223372036854775808.0 && x >= (F)-9223372036854775808.0 ? (ts_i64)x : lowest;
}
template <class F> TS_FN ts_i32 ts_to_i32(F x) {
    return x < (F)2147483648.0 && x > (F)-2147483649.0 ? (ts_i32)x : (ts_i32)0x80000000u;
}
TS_FN ts_i64 ts_int(bool x) { return x; }
TS_FN ts_i64 ts_int(ts_i64 x) { return x; }
TS_FN ts_i64 ts_int(float x) { return ts_to_i64(x); }
TS_FN ts_i64 ts_int(double x) { return ts_to_i64(x); }
// Conversion to integers narrower than 32 bits: floats are converted to 32 bits first, and the result wraps.
template <class C> TS_FN ts_i64 ts_narrow(C x) { return x; }
TS_FN ts_i64 ts_narrow(float x) { return ts_to_i32(x); }
TS_FN ts_i64 ts_narrow(double x) { return ts_to_i32(x); }

// ts_downcast<T>(x): a value of any compute type as the memory type T. Integers wrap, floats round to nearest even.
template <class T> struct ts_downcast_to { template <class C> TS_FN T of(C x) { return (T)ts_int(x); } };
template <> struct ts_downcast_to<ts_i8> { template <class C> TS_FN ts_i8 of(C x) { return (ts_i8)ts_narrow(x); } };
template <> struct ts_downcast_to<ts_i16> { template <class C> TS_FN ts_i16 of(C x) { return (ts_i16)ts_narrow(x); } };
template <> struct ts_downcast_to<ts_i32> { template <class C> TS_FN ts_i32 of(C x) { return (ts_i32)ts_narrow(x); } };
template <> struct ts_downcast_to<ts_b8> { template <class C> TS_FN ts_b8 of(C x) { return ts_b8{(unsigned char)(x != 0)}; } };
template <> struct ts_downcast_to<ts_f16> { template <class C> TS_FN ts_f16 of(C x) { return ts_to_f16((float)x); } };
template <> struct ts_downcast_to<ts_bf16> { template <class C> TS_FN ts_bf16 of(C x) { return ts_to_bf16((float)x); } };
template <> struct ts_downcast_to<ts_f32> { template <class C> TS_FN ts_f32 of(C x) { return (float)x; } };
template <> struct ts_downcast_to<ts_f64> { template <class C> TS_FN ts_f64 of(C x) { return (double)x; } };
template <class T, class C> TS_FN T ts_downcast(C x) { return ts_downcast_to<T>::of(x); }

// A value rounded to T and converted back to T's compute type.
template <class T, class C> TS_FN typename ts_opmath<T>::type ts_round_to(C x) { return ts_upcast(ts_downcast<T>(x)); }

// V adjacent elements, aligned so that they are loaded and stored by as few instructions as possible.
template <int N> struct ts_align { static const int bytes = N >= 16 ? 16 : N; };
template <class T, int V> struct alignas(ts_align<(int)sizeof(T) * V>::bytes) ts_vec { T x[V]; };

// The type of an element of N bytes that is only copied.
template <int N> struct ts_bytes { typedef ts_vec<ts_u64, 2> type; };
template <> struct ts_bytes<1> { typedef ts_u8 type; };
template <> struct ts_bytes<2> { typedef ts_i16 type; };
template <> struct ts_bytes<4> { typedef ts_u32 type; };
template <> struct ts_bytes<8> { typedef ts_u64 type; };

// The bytes of a vector as they are loaded, as 32-bit words: the compiler splits vectors of other types, and then waits
// for each vector before it issues the next load.
template <int BYTES> struct alignas(ts_align<BYTES>::bytes) ts_packed { ts_u32 x[BYTES / 4]; };
template <> struct alignas(2) ts_packed<2> { unsigned short x[1]; };
template <> struct ts_packed<1> { unsigned char x[1]; };
template <class T, int V> struct ts_raw {
    ts_packed<(int)sizeof(T) * V> bytes;
    TS_FN ts_raw zeros() {
        ts_raw raw;
        memset(&raw, 0, sizeof(raw));
        return raw;
    }
    __device__ __forceinline__ void load(const T* from) { bytes = *(const ts_packed<(int)sizeof(T) * V>*)from; }
    // A barrier for the compiler: all loads before it are issued before anything after it is computed.
    __device__ __forceinline__ void keep_in_flight() {
#ifndef TS_HOST
        if (sizeof(T) * V >= 4)
#pragma unroll
            for (int k = 0; k < (int)(sizeof(bytes) / 4); k++) asm volatile("" : "+r"(*(ts_u32*)&bytes.x[k]));
#endif
    }
    __device__ __forceinline__ ts_vec<T, V> get() const {
        ts_vec<T, V> values;
        memcpy(&values, &bytes, sizeof(values));
        return values;
    }
};
// Stores a vector in as few accesses as its alignment allows.
template <class T, int V> TS_FN void ts_store(T* to, const ts_vec<T, V>& from) {
#ifndef TS_HOST
    const int bytes = sizeof(T) * V;
    if (bytes % 4 == 0) {
        ts_u32 w[bytes / 4 + 1];
        memcpy(w, &from, sizeof(from));
        const size_t at = __cvta_generic_to_global(to);
#pragma unroll
        for (int k = 0; k < bytes / 16; k++)
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at + 16 * k), "r"(w[4 * k]), "r"(w[4 * k + 1]),
                "r"(w[4 * k + 2]), "r"(w[4 * k + 3])
                : "memory");
        if (bytes == 8) asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(w[0]), "r"(w[1]) : "memory");
        if (bytes == 4) asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(w[0]) : "memory");
        return;
    }
#endif
    *(ts_vec<T, V>*)to = from;
}

// n / d for 32-bit n by a multiplication; the host computes `word` as multiplier | shift << 32.
TS_FN ts_u32 ts_fast_div(ts_u32 n, ts_u64 word) {
    return (ts_u32)(((ts_u64)__umulhi(n, (ts_u32)word) + n) >> (word >> 32));
}

// Records a fault. The slot has the fault of the lowest position, for any order of threads. Layout: `FaultSlot` on the
// host.
struct ts_fault_slot {
    ts_u64 position;
    ts_i64 value, bound;
    ts_u32 kind, dim, lock, unused;
    ts_u64* first_fault;
    ts_u64 node_number;
};
enum { TS_INDEX = 1, TS_LABEL = 2, TS_PROBABILITY = 3, TS_DIVISION = 4, TS_NOT_POSITIVE = 5, TS_SINGULAR = 6,
    TS_NO_CONVERGENCE = 7,
       TS_DEVIATION = 8, TS_RANGE = 9 };
static __device__ __noinline__ void ts_fault(void* at, ts_u32 kind, ts_u32 dim, ts_u64 position, ts_i64 value, ts_i64 bound) {
    volatile ts_fault_slot* slot = (volatile ts_fault_slot*)at;
    if (slot->first_fault && *(volatile ts_u64*)slot->first_fault > slot->node_number) atomicMin(slot->first_fault,
        slot->node_number);
    bool done = slot->position <= position;
    while (!done) {
        if (atomicCAS((ts_u32*)&slot->lock, 0u, 1u) == 0u) {
            __threadfence();
            if (position < slot->position) {
                slot->value = value;
                slot->bound = bound;
                slot->kind = kind;
                slot->dim = dim;
                slot->position = position;
            }
            __threadfence();
            atomicExch((ts_u32*)&slot->lock, 0u);
            done = true;
        } else {
            done = slot->position <= position;
        }
    }
}

// Whether the step is skipped. `hold`: address of a word that is not 0 if so; 0: the step is never skipped. If `word`
// is not 0, this is the first kernel of the step, has one block, and decides for the following kernels, as
// `device/gate.cuh` does: the step is skipped if *word <= bound.
TS_FN bool ts_held(ts_u64 hold, ts_u64 word, ts_u64 bound) {
    if (!hold) return false;
    if (!word) return *(const volatile ts_u32*)hold != 0;
    const bool held = *(const volatile ts_u64*)word <= bound;
    if (threadIdx.x == 0) *(volatile ts_u32*)hold = held;
    return held;
}

// Runs CUDA text on the host, one block after the other: threads of a block are fibers that give way at barriers and at
// exchanges between the lanes of a warp. For tests on Linux, x86-64; knows nothing of any kernel.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
#define __constant__ static
#define TS_DYNAMIC_SHARED(name) char* name = ts_dynamic

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;
static char ts_dynamic[256 << 10] __attribute__((aligned(64)));

struct float4 { float x, y, z, w; };
struct uint4 { unsigned x, y, z, w; };
struct uint2 { unsigned x, y; };

struct Fiber { void* stack_pointer; char* stack; bool done; };
static Fiber fibers[1024];
static int fiber_count, current, alive, arrived, generation;
static int warp_alive[32], warp_arrived[32], warp_generation[32];
static void* scheduler_stack;
extern "C" void ts_swap(void** save, void* to);
asm(".pushsection .text\n.type ts_swap,@function\nts_swap:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.popsection\n");

static void ts_yield() { ts_swap(&fibers[current].stack_pointer, scheduler_stack); }
static void ts_release() {
    if (alive > 0 && arrived == alive) { arrived = 0; generation++; }
}
static void ts_release_warp(int w) {
    if (warp_alive[w] > 0 && warp_arrived[w] == warp_alive[w]) { warp_arrived[w] = 0; warp_generation[w]++; }
}
static void __syncthreads() {
    int mine = generation;
    arrived++;
    ts_release();
    while (generation == mine) ts_yield();
}
static void __syncwarp(unsigned = 0xffffffffu) {
    int w = current / 32, mine = warp_generation[w];
    warp_arrived[w]++;
    ts_release_warp(w);
    while (warp_generation[w] == mine) ts_yield();
}
static int __syncthreads_or(int x) {
    static int any;
    __syncthreads();
    any = 0;
    __syncthreads();
    any |= x;
    __syncthreads();
    return any;
}
static int __syncthreads_count(int x) {
    static int count;
    __syncthreads();
    count = 0;
    __syncthreads();
    count += x != 0;
    __syncthreads();
    return count;
}

static char lanes[32][32][16];
template <class T> static T ts_exchange(T value, int from) {
    int w = current / 32;
    memcpy(lanes[w][current % 32], &value, sizeof(T));
    __syncwarp();
    T got;
    memcpy(&got, lanes[w][from & 31], sizeof(T));
    __syncwarp();
    return got;
}
template <class T> static T __shfl_sync(unsigned, T v, int from, int width = 32) {
    int lane = current % 32;
    return ts_exchange(v, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T> static T __shfl_down_sync(unsigned, T v, unsigned d, int width = 32) {
    int lane = current % 32, to = lane + d;
    return ts_exchange(v, (lane & (width - 1)) + (int)d < width ? to : lane);
}
template <class T> static T __shfl_up_sync(unsigned, T v, unsigned d, int width = 32) {
    int lane = current % 32;
    return ts_exchange(v, (lane & (width - 1)) >= (int)d ? lane - (int)d : lane);
}
template <class T> static T __shfl_xor_sync(unsigned, T v, int mask, int width = 32) {
    return ts_exchange(v, (current % 32) ^ mask);
}
static unsigned __ballot_sync(unsigned, int x) {
    int w = current / 32, yes = x != 0;
    memcpy(lanes[w][current % 32], &yes, 4);
    __syncwarp();
    unsigned mask = 0;
    for (int k = 0; k < 32 && w * 32 + k < fiber_count; k++)
        if (!fibers[w * 32 + k].done && lanes[w][k][0]) mask |= 1u << k;
    __syncwarp();
    return mask;
}
static int __any_sync(unsigned m, int x) { return __ballot_sync(m, x) != 0; }
static int __all_sync(unsigned m, int x) { return __ballot_sync(m, !x) == 0; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __ffs(int x) { return __builtin_ffs(x); }

static void __threadfence() {}
static void __threadfence_block() {}
static void __nanosleep(unsigned) { ts_yield(); }
template <class T, class U> static T atomicAdd(T* p, U x) { T old = *p; *p = old + (T)x; return old; }
template <class T, class U> static T atomicMin(T* p, U x) { T old = *p; if ((T)x < old) *p = (T)x; return old; }
template <class T, class U> static T atomicMax(T* p, U x) { T old = *p; if ((T)x > old) *p = (T)x; return old; }
template <class T, class U> static T atomicOr(T* p, U x) { T old = *p; *p = old | (T)x; return old; }
template <class T, class U> static T atomicExch(T* p, U x) { T old = *p; *p = (T)x; return old; }
template <class T, class U, class V> static T atomicCAS(T* p, U a, V b) { T old = *p; if (old == (T)a) *p = (T)b; return old; }
static unsigned atomicInc(unsigned* p, unsigned most) { unsigned old = *p; *p = old >= most ? 0 : old + 1; return old; }
#define __logf logf
template <class T> static T __ldcg(const T* p) { return *p; }
template <class T> static T __ldg(const T* p) { return *p; }
template <class T> static T __ldcs(const T* p) { return *p; }

static float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static int __float_as_int(float x) { int y; memcpy(&y, &x, 4); return y; }
static unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
static double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
static long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static void sincospi(double x, double* s, double* c) {
    double r = fmod(x, 2.0), q = round(2.0 * r), rest = (r - q / 2.0) * M_PI, a = sin(rest), b = cos(rest);
    switch ((int)q & 3) {
        case 0: *s = a; *c = b; break;
        case 1: *s = b; *c = -a; break;
        case 2: *s = -a; *c = -b; break;
        default: *s = -b; *c = a; break;
    }
}
static float erfcxf(float a) {
    const double x = a;
    if (x < 10) return (float)(exp(x * x) * erfc(x));
    return (float)((1 - 0.5 / (x * x) + 0.75 / (x * x * x * x)) / (x * sqrt(M_PI)));
}
static float normcdff(float x) { return (float)(0.5 * erfc(-(double)x / sqrt(2.0))); }
static float normcdfinvf(float p) {
    if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    double low = -40, high = 40;
    for (int k = 0; k < 100; k++) {
        const double middle = (low + high) / 2;
        (0.5 * erfc(-middle / sqrt(2.0)) < p ? low : high) = middle;
    }
    return (float)low;
}
static float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define TS_MINMAX(T) \
    static T min(T a, T b) { return a < b ? a : b; } \
    static T max(T a, T b) { return a > b ? a : b; }
TS_MINMAX(int) TS_MINMAX(unsigned) TS_MINMAX(long long) TS_MINMAX(unsigned long long)

// Calls a kernel with parameters at the given addresses.
template <class... P> struct ts_caller {
    template <int... I> struct list {};
    template <int N, int... I> struct make : make<N - 1, N - 1, I...> {};
    template <int... I> struct make<0, I...> { typedef list<I...> type; };
    template <int... I> static void go(void (*kernel)(P...), void** args, list<I...>) { kernel(*(P*)args[I]...); }
    static void call(void (*kernel)(P...), void** args) { go(kernel, args, typename make<sizeof...(P)>::type()); }
};
template <class... P> static void ts_call(void (*kernel)(P...), void** args) { ts_caller<P...>::call(kernel, args); }

static void (*body)(void**);
static void** body_args;
static void ts_start() {
    body(body_args);
    fibers[current].done = true;
    alive--;
    warp_alive[current / 32]--;
    ts_release();
    ts_release_warp(current / 32);
    for (;;) ts_yield();
}

extern "C" void ts_launch(void (*kernel)(void**), void** args, const unsigned* grid, const unsigned* block) {
    const size_t bytes = 128 << 10;
    body = kernel;
    body_args = args;
    gridDim = dim3{grid[0], grid[1], grid[2]};
    blockDim = dim3{block[0], block[1], block[2]};
    fiber_count = block[0] * block[1] * block[2];
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = dim3{x, y, z};
                alive = fiber_count;
                arrived = generation = 0;
                memset(warp_alive, 0, sizeof warp_alive);
                memset(warp_arrived, 0, sizeof warp_arrived);
                for (int t = 0; t < fiber_count; t++) {
                    Fiber& f = fibers[t];
                    if (!f.stack) f.stack = (char*)malloc(bytes);
                    void** top = (void**)(((uintptr_t)f.stack + bytes) & ~(uintptr_t)63) - 2;
                    *--top = 0;
                    *--top = (void*)ts_start;
                    top -= 6;
                    f.stack_pointer = top;
                    f.done = false;
                    warp_alive[t / 32]++;
                }
                // From the last to the first: what is missing a barrier then shows.
                while (alive > 0)
                    for (int t = fiber_count - 1; t >= 0; t--) {
                        if (fibers[t].done) continue;
                        current = t;
                        threadIdx = dim3{t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
                        ts_swap(&scheduler_stack, fibers[t].stack_pointer);
                    }
            }
}

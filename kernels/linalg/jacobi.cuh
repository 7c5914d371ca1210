// Singular values, and eigenvalues of symmetric matrices, of at most 64 columns, by rotations of pairs of them, a block for
// each matrix. T: float or double. Pairs of a round have no column in common; after all rounds of a sweep each has met each.
#include "common/reduce.cuh"

static const int WIDEST = 64, SWEEPS = 40;

struct Args {
    T *x, *y;
    void* fault;
    ts_i64 m, n, row, column, batch;
};

// The columns of pair i in a round: the last of all stays, the others go round. One that is not there is n or more.
struct Pair {
    int p, q;
    TS_METHOD Pair(int n, int round, int i) {
        const int around = (n + 1) / 2 * 2 - 1;
        p = i == 0 ? around : (round + i) % around;
        q = i == 0 ? round : (round + around - i) % around;
        if (p > q) {
            const int last = p;
            p = q;
            q = last;
        }
    }
};
// The rotation that makes the product of two columns zero, from their squares and their product (Rutishauser, 1966).
struct Turn {
    double c, s;
    TS_METHOD Turn(double a, double b, double product) {
        const double z = (b - a) / (2 * product), t = copysign(1.0, z) / (fabs(z) + sqrt(1 + z * z));
        c = 1 / sqrt(1 + t * t);
        s = c * t;
    }
};
TS_FN double ts_warp_sum(double v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
// The largest of all threads' numbers, none below 0; `room` has one for each warp
// and may be used for something else afterwards.
TS_FN double ts_most_of_block(double most, double* room) {
    for (int d = 16; d > 0; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, most, d);
        most = other > most ? other : most;
    }
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = most;
    __syncthreads();
    for (int w = 0; w < (int)blockDim.x / 32; w++) most = room[w] > most ? room[w] : most;
    __syncthreads();
    return most;
}
// Of what is not finite, nothing converges: zeros, and a fault.
TS_FN void ts_no_values(const Args& g) {
    if (threadIdx.x < g.n) g.y[blockIdx.x * g.n + threadIdx.x] = 0;
    if (threadIdx.x == 0) ts_fault(g.fault, TS_NO_CONVERGENCE, 0, blockIdx.x, 0, 0);
}
// Writes values in order, ascending or not.
TS_FN void ts_in_order(const Args& g, const double* values, bool ascending) {
    const int n = (int)g.n, t = threadIdx.x;
    if (t >= n) return;
    int rank = 0;
    for (int k = 0; k < n; k++) {
        const double a = values[k], b = values[t];
        rank += (ascending ? a < b : a > b) || (a == b && k < t);
    }
    g.y[blockIdx.x * g.n + rank] = (T)values[t];
}

// Singular values of x, m rows and n columns, each column dense, which is used up (Hestenes, 1958). A warp has a pair.
TS_KERNEL void __launch_bounds__(1024) ts_singular_values(const __grid_constant__ Args g) {
    __shared__ double values[WIDEST];
    const int n = (int)g.n, m = (int)g.m, t = threadIdx.x, warp = t / 32, lane = t % 32, pairs = (n + 1) / 2;
    T* x = g.x + blockIdx.x * g.batch;
    bool bad = false;
    double most = 0;
    for (ts_i64 i = t; i < (ts_i64)m * n; i += blockDim.x) {
        const double size = fabs((double)x[i]);
        bad |= !(size < ts_inf(double()));
        most = size > most ? size : most;
    }
    if (__syncthreads_or(bad)) return ts_no_values(g);
    // By a power of two, so that no square is too large or too small.
    const double largest = ts_most_of_block(most, values);
    int exponent = 0;
    frexp(largest, &exponent);
    const int shift = exponent < -1000 ? 1000 : -exponent;
    for (ts_i64 i = t; i < (ts_i64)m * n; i += blockDim.x) x[i] = (T)ldexp((double)x[i], shift);
    __syncthreads();
    const double close = (sizeof(T) == 4 ? 1.2e-7 : 2.3e-16) * 4 * sqrt((double)m);
    bool moved = n > 1;
    for (int sweep = 0; sweep < SWEEPS && moved; sweep++) {
        moved = false;
        for (int round = 0; round < 2 * pairs - 1; round++) {
            const Pair pair(n, round, warp);
            if (warp < pairs && pair.q < n) {
                T *a = x + (ts_i64)pair.p * m, *b = x + (ts_i64)pair.q * m;
                double aa = 0, bb = 0, ab = 0;
                for (int i = lane; i < m; i += 32) {
                    const double u = a[i], v = b[i];
                    aa += u * u, bb += v * v, ab += u * v;
                }
                aa = ts_warp_sum(aa), bb = ts_warp_sum(bb), ab = ts_warp_sum(ab);
                if (fabs(ab) > close * sqrt(aa) * sqrt(bb)) {
                    const Turn turn(aa, bb, ab);
                    for (int i = lane; i < m; i += 32) {
                        const double u = a[i], v = b[i];
                        a[i] = (T)(turn.c * u - turn.s * v);
                        b[i] = (T)(turn.s * u + turn.c * v);
                    }
                    moved = true;
                }
            }
            __syncthreads();
        }
        moved = __syncthreads_or(moved);
    }
    for (int c = warp; c < n; c += blockDim.x / 32) {
        double sum = 0;
        for (int i = lane; i < m; i += 32) sum += (double)x[(ts_i64)c * m + i] * (double)x[(ts_i64)c * m + i];
        sum = ts_warp_sum(sum);
        if (lane == 0) values[c] = ldexp(sqrt(sum), -shift);
    }
    __syncthreads();
    ts_in_order(g, values, false);
}

// Eigenvalues of x, n by n, of which what is on and below the diagonal is read (Jacobi, 1846).
TS_KERNEL void __launch_bounds__(256) ts_eigenvalues(const __grid_constant__ Args g) {
    __shared__ double a[WIDEST][WIDEST + 1];
    __shared__ double values[WIDEST], c[WIDEST / 2], s[WIDEST / 2];
    const int n = (int)g.n, t = threadIdx.x, pairs = (n + 1) / 2;
    const T* x = g.x + blockIdx.x * g.batch;
    bool bad = false;
    double most = 0;
    for (int e = t; e < n * n; e += 256) {
        const int row = e / n, column = e % n;
        const double value = row < column ? x[column * g.row + row * g.column] : x[row * g.row + column * g.column];
        bad |= !(fabs(value) < ts_inf(double()));
        most = fabs(value) > most ? fabs(value) : most;
        a[row][column] = value;
    }
    if (__syncthreads_or(bad)) return ts_no_values(g);
    most = ts_most_of_block(most, values);
    bool moved = n > 1;
    for (int sweep = 0; sweep < SWEEPS && moved; sweep++) {
        moved = false;
        for (int round = 0; round < 2 * pairs - 1; round++) {
            if (t < pairs) {
                const Pair pair(n, round, t);
                c[t] = 1, s[t] = 0;
                if (pair.q < n && fabs(a[pair.p][pair.q]) > 1e-17 * most) {
                    const Turn turn(a[pair.p][pair.p], a[pair.q][pair.q], a[pair.p][pair.q]);
                    c[t] = turn.c, s[t] = turn.s;
                    moved = true;
                }
            }
            __syncthreads();
            // Rows, then columns.
            for (int side = 0; side < 2; side++) {
                for (int e = t; e < pairs * n; e += 256) {
                    const int i = e / n, k = e % n;
                    const Pair pair(n, round, i);
                    if (pair.q >= n) continue;
                    double &u = side ? a[k][pair.p] : a[pair.p][k], &v = side ? a[k][pair.q] : a[pair.q][k];
                    const double was = u;
                    u = c[i] * was - s[i] * v;
                    v = s[i] * was + c[i] * v;
                }
                __syncthreads();
            }
        }
        moved = __syncthreads_or(moved);
    }
    if (t < n) values[t] = a[t][t];
    __syncthreads();
    ts_in_order(g, values, true);
}

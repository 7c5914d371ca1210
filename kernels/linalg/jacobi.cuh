// Jacobi methods: singular values, and eigenvalues of symmetric matrices, of at most 64 columns; a block for each matrix. T:
// float or double. The pairs of a round have no column in common; the rounds of a sweep visit every pair.
#include "common/reduce.cuh"

static const int MAX_COLUMNS = 64, MAX_SWEEPS = 40;

#include "linalg/jacobi_args.cuh"

// The columns of pair i in a round of a round-robin schedule. A column that does not exist is n or more.
struct Pair {
    int p, q;
    TS_METHOD Pair(int n, int round, int i) {
        const int players = (n + 1) / 2 * 2 - 1;
        p = i == 0 ? players : (round + i) % players;
        q = i == 0 ? round : (round + players - i) % players;
        if (p > q) {
            const int swapped = p;
            p = q;
            q = swapped;
        }
    }
};
// The rotation that makes two columns orthogonal, from their squared norms and their product (Rutishauser, 1966).
struct Rotation {
    double c, s;
    TS_METHOD Rotation(double a, double b, double product) {
        const double z = (b - a) / (2 * product), t = copysign(1.0, z) / (fabs(z) + sqrt(1 + z * z));
        c = 1 / sqrt(1 + t * t);
        s = c * t;
    }
};
TS_FN double ts_warp_sum(double v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
// The maximum of all threads' nonnegative numbers; `warp_max` has an entry for each warp and may be reused after the call.
TS_FN double ts_block_max(double max, double* warp_max) {
    for (int d = 16; d > 0; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, max, d);
        max = other > max ? other : max;
    }
    if (threadIdx.x % 32 == 0) warp_max[threadIdx.x / 32] = max;
    __syncthreads();
    for (int w = 0; w < (int)blockDim.x / 32; w++) max = warp_max[w] > max ? warp_max[w] : max;
    __syncthreads();
    return max;
}
// Matrices that are not finite do not converge: zeros, and a fault.
TS_FN void ts_report_no_convergence(const Args& g) {
    if (threadIdx.x < g.n) g.y[blockIdx.x * g.n + threadIdx.x] = 0;
    if (threadIdx.x == 0) ts_fault(g.fault, TS_NO_CONVERGENCE, 0, blockIdx.x, 0, 0);
}
// Stores values sorted, ascending or descending.
TS_FN void ts_store_sorted(const Args& g, const double* values, bool ascending) {
    const int n = (int)g.n, t = threadIdx.x;
    if (t >= n) return;
    int rank = 0;
    for (int k = 0; k < n; k++) {
        const double a = values[k], b = values[t];
        rank += (ascending ? a < b : a > b) || (a == b && k < t);
    }
    g.y[blockIdx.x * g.n + rank] = (T)values[t];
}

// Singular values of x, m rows and n dense columns, by one-sided Jacobi, in place (Hestenes, 1958). A warp has a pair.
TS_KERNEL void __launch_bounds__(1024) ts_singular_values(const __grid_constant__ Args g) {
    __shared__ double values[MAX_COLUMNS];
    const int n = (int)g.n, m = (int)g.m, t = threadIdx.x, warp = t / 32, lane = t % 32, pairs = (n + 1) / 2;
    T* x = g.x + blockIdx.x * g.batch;
    bool not_finite = false;
    double max = 0;
    for (ts_i64 i = t; i < (ts_i64)m * n; i += blockDim.x) {
        const double size = fabs((double)x[i]);
        not_finite |= !(size < ts_inf(double()));
        max = size > max ? size : max;
    }
    if (__syncthreads_or(not_finite)) return ts_report_no_convergence(g);
    // Scales by a power of two, so that squares neither overflow nor underflow.
    const double largest = ts_block_max(max, values);
    int exponent = 0;
    frexp(largest, &exponent);
    const int shift = exponent < -1000 ? 1000 : -exponent;
    for (ts_i64 i = t; i < (ts_i64)m * n; i += blockDim.x) x[i] = (T)ldexp((double)x[i], shift);
    __syncthreads();
    const double tolerance = (sizeof(T) == 4 ? 1.2e-7 : 2.3e-16) * 4 * sqrt((double)m);
    bool rotated = n > 1;
    for (int sweep = 0; sweep < MAX_SWEEPS && rotated; sweep++) {
        rotated = false;
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
                if (fabs(ab) > tolerance * sqrt(aa) * sqrt(bb)) {
                    const Rotation rotation(aa, bb, ab);
                    for (int i = lane; i < m; i += 32) {
                        const double u = a[i], v = b[i];
                        a[i] = (T)(rotation.c * u - rotation.s * v);
                        b[i] = (T)(rotation.s * u + rotation.c * v);
                    }
                    rotated = true;
                }
            }
            __syncthreads();
        }
        rotated = __syncthreads_or(rotated);
    }
    for (int c = warp; c < n; c += blockDim.x / 32) {
        double sum = 0;
        for (int i = lane; i < m; i += 32) sum += (double)x[(ts_i64)c * m + i] * (double)x[(ts_i64)c * m + i];
        sum = ts_warp_sum(sum);
        if (lane == 0) values[c] = ldexp(sqrt(sum), -shift);
    }
    __syncthreads();
    ts_store_sorted(g, values, false);
}

// Eigenvalues of x, n by n, by two-sided Jacobi (1846). The lower triangle is read.
TS_KERNEL void __launch_bounds__(256) ts_eigenvalues(const __grid_constant__ Args g) {
    __shared__ double a[MAX_COLUMNS][MAX_COLUMNS + 1];
    __shared__ double values[MAX_COLUMNS], c[MAX_COLUMNS / 2], s[MAX_COLUMNS / 2];
    const int n = (int)g.n, t = threadIdx.x, pairs = (n + 1) / 2;
    const T* x = g.x + blockIdx.x * g.batch;
    bool not_finite = false;
    double max = 0;
    for (int e = t; e < n * n; e += 256) {
        const int row = e / n, column = e % n;
        const double value = row < column ? x[column * g.row + row * g.column] : x[row * g.row + column * g.column];
        not_finite |= !(fabs(value) < ts_inf(double()));
        max = fabs(value) > max ? fabs(value) : max;
        a[row][column] = value;
    }
    if (__syncthreads_or(not_finite)) return ts_report_no_convergence(g);
    max = ts_block_max(max, values);
    bool rotated = n > 1;
    for (int sweep = 0; sweep < MAX_SWEEPS && rotated; sweep++) {
        rotated = false;
        for (int round = 0; round < 2 * pairs - 1; round++) {
            if (t < pairs) {
                const Pair pair(n, round, t);
                c[t] = 1, s[t] = 0;
                if (pair.q < n && fabs(a[pair.p][pair.q]) > 1e-17 * max) {
                    const Rotation rotation(a[pair.p][pair.p], a[pair.q][pair.q], a[pair.p][pair.q]);
                    c[t] = rotation.c, s[t] = rotation.s;
                    rotated = true;
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
                    const double old = u;
                    u = c[i] * old - s[i] * v;
                    v = s[i] * old + c[i] * v;
                }
                __syncthreads();
            }
        }
        rotated = __syncthreads_or(rotated);
    }
    if (t < n) values[t] = a[t][t];
    __syncthreads();
    ts_store_sorted(g, values, true);
}

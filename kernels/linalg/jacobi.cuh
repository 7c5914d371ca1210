// Jacobi methods: singular values and vectors, and eigenvalues of symmetric matrices, of at most 64 columns; a block for each
// matrix. T: float or double. The pairs of a round have no column in common; the rounds of a sweep visit every pair.
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
    // Turns two columns of `rows` rows, by the threads of a warp.
    TS_METHOD void turn(T* a, T* b, int rows, int lane) const {
        for (int i = lane; i < rows; i += 32) {
            const double p = a[i], q = b[i];
            a[i] = (T)(c * p - s * q);
            b[i] = (T)(s * p + c * q);
        }
    }
};
TS_FN double ts_warp_sum(double v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
// The maximum of all threads' numbers; `warp_max` has an entry for each warp and may be reused after the call.
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
    if (g.v) {
        for (ts_i64 i = threadIdx.x; i < g.m * g.n; i += blockDim.x) g.left[blockIdx.x * g.m * g.n + i] = 0;
        for (ts_i64 i = threadIdx.x; i < g.n * g.n; i += blockDim.x) g.right[blockIdx.x * g.n * g.n + i] = 0;
    }
    if (threadIdx.x == 0) ts_fault(g.fault, TS_NO_CONVERGENCE, 0, blockIdx.x, 0, 0);
}
// Stores values sorted, ascending or descending, and where asked for which value has each rank.
TS_FN void ts_store_sorted(const Args& g, const double* values, bool ascending, int* of_rank = nullptr) {
    const int n = (int)g.n, t = threadIdx.x;
    if (t >= n) return;
    int rank = 0;
    for (int k = 0; k < n; k++) {
        const double a = values[k], b = values[t];
        rank += (ascending ? a < b : a > b) || (a == b && k < t);
    }
    g.y[blockIdx.x * g.n + rank] = (T)values[t];
    if (of_rank) of_rank[rank] = t;
}

// The sum of all threads' numbers; `warp_sums` has an entry for each warp and may be reused after the call.
TS_FN double ts_block_sum(double v, double* warp_sums) {
    v = ts_warp_sum(v);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < (int)blockDim.x / 32; w++) v += warp_sums[w];
    __syncthreads();
    return v;
}
// Makes column r of u, m rows, a unit vector that is orthogonal to the columns before it: a unit vector along the row in which
// those are smallest, made orthogonal twice (Gram and Schmidt).
TS_FN void ts_complete_column(T* u, int m, int r, double* sums, int* rows) {
    const int t = threadIdx.x, step = blockDim.x;
    double least = ts_inf(double());
    int row = 0;
    for (int i = t; i < m; i += step) {
        double size = 0;
        for (int c = 0; c < r; c++) size += (double)u[(ts_i64)c * m + i] * (double)u[(ts_i64)c * m + i];
        if (size < least) least = size, row = i;
    }
    const double smallest = -ts_block_max(-least, sums);
    // The first of the rows with this size.
    if (t == 0) rows[0] = m;
    __syncthreads();
    if (least == smallest) atomicMin(&rows[0], row);
    __syncthreads();
    row = rows[0];
    T* to = u + (ts_i64)r * m;
    for (int i = t; i < m; i += step) to[i] = T(i == row);
    __syncthreads();
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < r; c++) {
            const T* other = u + (ts_i64)c * m;
            double dot = 0;
            for (int i = t; i < m; i += step) dot += (double)other[i] * (double)to[i];
            dot = ts_block_sum(dot, sums);
            for (int i = t; i < m; i += step) to[i] = (T)((double)to[i] - dot * (double)other[i]);
        }
    double size = 0;
    for (int i = t; i < m; i += step) size += (double)to[i] * (double)to[i];
    size = sqrt(ts_block_sum(size, sums));
    for (int i = t; i < m; i += step) to[i] = (T)((double)to[i] / size);
    __syncthreads();
}

// Singular values of x, m rows and n dense columns, by one-sided Jacobi, in place (Hestenes, 1958). A warp has a pair. With
// scratch memory v of n by n, also the vectors in the order of the values: u in the dense columns of left, v in those of right.
TS_KERNEL void __launch_bounds__(1024) ts_singular_values(const __grid_constant__ Args g) {
    __shared__ double values[MAX_COLUMNS];
    __shared__ int column_of[MAX_COLUMNS];
    const int n = (int)g.n, m = (int)g.m, t = threadIdx.x, warp = t / 32, lane = t % 32, pairs = (n + 1) / 2;
    T *x = g.x + blockIdx.x * g.batch, *v = g.v ? g.v + (ts_i64)blockIdx.x * n * n : g.v;
    bool not_finite = false;
    double max = 0;
    for (int i = t; v && i < n * n; i += blockDim.x) v[i] = T(i / n == i % n);
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
                    const double p = a[i], q = b[i];
                    aa += p * p, bb += q * q, ab += p * q;
                }
                aa = ts_warp_sum(aa), bb = ts_warp_sum(bb), ab = ts_warp_sum(ab);
                if (fabs(ab) > tolerance * sqrt(aa) * sqrt(bb)) {
                    const Rotation rotation(aa, bb, ab);
                    rotation.turn(a, b, m, lane);
                    if (v) rotation.turn(v + pair.p * n, v + pair.q * n, n, lane);
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
    ts_store_sorted(g, values, false, column_of);
    if (!v) return;
    __syncthreads();
    T *left = g.left + (ts_i64)blockIdx.x * m * n, *right = g.right + (ts_i64)blockIdx.x * n * n;
    for (int r = warp; r < n; r += blockDim.x / 32) {
        const int c = column_of[r];
        const double size = ldexp(values[c], shift);
        for (int i = lane; i < m; i += 32) left[(ts_i64)r * m + i] = size > 0 ? (T)((double)x[(ts_i64)c * m + i] / size) : T(0);
        for (int i = lane; i < n; i += 32) right[r * n + i] = v[c * n + i];
    }
    __syncthreads();
    __shared__ double sums[32];
    __shared__ int row;
    // What rounding has left of a column that the others span has any direction.
    const double noise = values[column_of[0]] * tolerance;
    for (int r = 0; r < n; r++)
        if (!(values[column_of[r]] > noise)) ts_complete_column(left, m, r, sums, &row);
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

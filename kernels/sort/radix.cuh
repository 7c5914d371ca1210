// Stable LSD radix sort of rows of any length: Onesweep (Adinets and Merrill, 2022). One read counts the digits of all passes;
// then each pass reads and writes every element once, with the places of a tile's digits from a decoupled look-back over the
// tiles before it. T: memory type; LARGE: counts of a row need more than 30 bits; ALONE: values without their positions, half the
// memory traffic. Of equal elements that differ in their bits, zeros then all have the sign of the first, and NaN are one NaN.
//
// A pass whose digit is the same in all keys of a row is left out. Which pass reads and writes what is therefore decided on the
// device, row by row (`ts_radix_plan`): the first that runs reads the elements, the last writes the results, those between go
// from one buffer of keys and positions to the other.
#include "sort/rank.cuh"
#include "sort/radix_args.cuh"

static const int THREADS = 384, ITEMS = KEY_BITS > 32 ? 10 : 20, TILE = THREADS * ITEMS, PASSES = KEY_BITS / 8;
// Copies of the bins in shared memory, side by side: lanes that count the same digit do not wait for each other.
static const int COPIES = 16 / PASSES;
// Elements of a thread that are counted together: where their digits are equal, as the upper ones of small integers, by one
// addition.
static const int GROUP = 8;
// Bits of a plan: where a pass reads (0: elements, 1, 2: buffers), where it writes (1, 2: buffers, 3: results), whether it runs.
enum { TO = 2, RUNS = 16, RESULTS = 3 };

// A zero of a row with its sign, such that that of an earlier place is the larger number, and never 0.
TS_FN ts_u64 ts_found_zero(T zero, ts_i64 place) {
    Key bits;
    memcpy(&bits, &zero, sizeof(bits));
    return ~((ts_u64)place << 1 | (bits != 0));
}
TS_FN T ts_told_zero(ts_u64 told) {
    const Key bits = told & 1 ? (Key)0 : SIGN;
    T zero;
    memcpy(&zero, &bits, sizeof(zero));
    return zero;
}
// Every thread of the block calls it.
TS_FN void ts_tell_first_zero(ts_u64* to, ts_u64 own) {
    __shared__ ts_u64 first;
    if (threadIdx.x == 0) first = 0;
    __syncthreads();
    if (own > first) atomicMax(&first, own);
    __syncthreads();
    if (threadIdx.x == 0 && first) atomicMax(to, first);
}

TS_KERNEL void __launch_bounds__(256) ts_radix_histograms(const __grid_constant__ RadixArgs g) {
    __shared__ ts_u32 bins[PASSES * DIGITS * COPIES];
    for (int b = threadIdx.x; b < PASSES * DIGITS * COPIES; b += 256) bins[b] = 0;
    __syncthreads();
    const ts_i64 row = blockIdx.x / (ts_u32)g.chunks, from = blockIdx.x % (ts_u32)g.chunks * g.chunk;
    const ts_i64 to = from + g.chunk < g.n ? from + g.chunk : g.n;
    const T* x = g.x + row * g.n;
    ts_u64 zero = 0;
    for (ts_i64 i = from + threadIdx.x; i < to; i += 256 * GROUP) {
        T found[GROUP];
        Key keys[GROUP];
#pragma unroll
        for (int k = 0; k < GROUP; k++)
            if (i + 256 * k < to) found[k] = x[i + 256 * k];
        const bool whole = i + 256 * (GROUP - 1) < to;
#pragma unroll
        for (int k = 0; k < GROUP; k++) {
            if (i + 256 * k >= to) continue;
            keys[k] = ts_key(found[k], g.descending);
            if (ALONE && IS_FLOAT && !zero && keys[k] == SIGN) zero = ts_found_zero(found[k], i + 256 * k);
        }
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            ts_u32* mine = bins + p * DIGITS * COPIES + threadIdx.x % COPIES;
            const ts_u32 digit = ts_digit(keys[0], 8 * p);
            bool equal = whole;
#pragma unroll
            for (int k = 1; k < GROUP; k++) equal = equal && ts_digit(keys[k], 8 * p) == digit;
            if (equal) {
                atomicAdd(mine + digit * COPIES, (ts_u32)GROUP);
                continue;
            }
#pragma unroll
            for (int k = 0; k < GROUP; k++)
                if (i + 256 * k < to) atomicAdd(mine + ts_digit(keys[k], 8 * p) * COPIES, 1u);
        }
    }
    if (ALONE && IS_FLOAT) ts_tell_first_zero(g.zeros + row, zero);
    __syncthreads();
    for (int b = threadIdx.x; b < PASSES * DIGITS; b += 256) {
        ts_u32 sum = 0;
#pragma unroll
        for (int c = 0; c < COPIES; c++) sum += bins[b * COPIES + c];
        if (sum) atomicAdd(g.histograms + row * (PASSES * DIGITS) + b, sum);
    }
}

// A block for each row: counts become the first places of digits, and each pass gets its plan.
TS_KERNEL void __launch_bounds__(256) ts_radix_plan(const __grid_constant__ RadixArgs g) {
    __shared__ ts_u32 sums[DIGITS / 32];
    ts_u32* counts = g.histograms + (ts_i64)blockIdx.x * (PASSES * DIGITS);
    ts_u32 runs = 0;
    for (int p = 0; p < PASSES; p++) {
        const ts_u32 count = counts[p * DIGITS + threadIdx.x];
        if (!__syncthreads_or(count == (ts_u32)g.n)) runs |= 1u << p;
        counts[p * DIGITS + threadIdx.x] = ts_scan_digits(count, sums);
    }
    if (threadIdx.x > 0) return;
    // If all elements are equal, one pass copies them.
    if (!runs) runs = 1;
    ts_u32 from = 0;
    for (int p = 0; p < PASSES; p++) {
        ts_u32 plan = 0;
        if (runs >> p & 1) {
            const ts_u32 to = runs >> p >> 1 ? (from == 1 ? 2 : 1) : RESULTS;
            plan = from | to << TO | RUNS;
            from = to;
        }
        g.plans[blockIdx.x * PASSES + p] = plan;
    }
}

// What a tile tells later ones for a digit: its count (state 1), or the count of all tiles up to it (state 2).
template <int WIDE> struct ts_digit_state { typedef ts_u32 type; };
template <> struct ts_digit_state<1> { typedef ts_u64 type; };
typedef typename ts_digit_state<LARGE>::type State;
static const int STATE_SHIFT = 8 * (int)sizeof(State) - 2;
static const State STATE_COUNT = ((State)1 << STATE_SHIFT) - 1;

// How many keys of earlier tiles of the row have this thread's digit. `states`: those of the row for the digit, DIGITS apart.
// A count and its state are one word, so that no memory order is needed.
TS_FN State ts_digit_look_back(volatile State* states, ts_i64 tile, State count) {
    if (tile > 0) states[tile * DIGITS] = (State)1 << STATE_SHIFT | count;
    State before = 0;
    for (ts_i64 at = tile - 1; at >= 0;) {
        // Four at a time: their latencies overlap.
        State found[4];
#pragma unroll
        for (int k = 0; k < 4; k++) found[k] = at - k >= 0 ? states[(at - k) * DIGITS] : (State)2 << STATE_SHIFT;
        bool valid = true, ended = false;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int state = (int)(found[k] >> STATE_SHIFT);
            valid = valid && !ended && state != 0;
            if (!valid) continue;
            before += found[k] & STATE_COUNT;
            at--;
            ended = state == 2;
        }
        if (ended) break;
    }
    states[tile * DIGITS] = (State)2 << STATE_SHIFT | (before + count);
    return before;
}

// A tile of a row. Blocks take tiles by a ticket, so that all earlier tiles are held by blocks that run.
TS_KERNEL void __launch_bounds__(THREADS, 2) ts_radix_pass(const __grid_constant__ RadixArgs g) {
    __shared__ ts_digit_counts<THREADS> counts;
    // Where the digits of this tile go, less their places in the tile.
    __shared__ ts_u32 offsets[DIGITS];
    __shared__ union {
        Key keys[TILE];
        ts_u32 positions[TILE];
    } sorted;
    __shared__ ts_u32 ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(g.tickets + g.pass, 1u);
    __syncthreads();
    const ts_i64 row = ticket / (ts_u32)g.tiles, tile = ticket % (ts_u32)g.tiles;
    const ts_u32 plan = g.plans[row * PASSES + g.pass];
    if (!(plan & RUNS)) return;
    const int from = plan & 3, to = plan >> TO & 3, shift = 8 * (int)g.pass;
    const ts_i64 base = row * g.n, first = tile * TILE;
    const int left = g.n - first < TILE ? (int)(g.n - first) : TILE;
    const Key* from_keys = (from == 1 ? g.keys_a : g.keys_b) + base + first;

    Key keys[ITEMS];
    ts_u32 ranks[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = ts_tile_index<ITEMS>(i);
        // Padding is last, since it comes after all other keys.
        keys[i] = MAX_KEY;
        if (at < left) keys[i] = from == 0 ? ts_key(g.x[base + first + at], g.descending) : from_keys[at];
    }
    const ts_u32 count = ts_count_digits<THREADS, ITEMS>(keys, shift, counts, ranks);
    ts_u32 place = 0;
    if (threadIdx.x < DIGITS) {
        const ts_u32 padding = threadIdx.x == DIGITS - 1 ? TILE - left : 0;
        volatile State* states = (volatile State*)g.states + ((g.pass * g.rows + row) * g.tiles * DIGITS + threadIdx.x);
        place = g.histograms[(row * PASSES + g.pass) * DIGITS + threadIdx.x];
        place += (ts_u32)ts_digit_look_back(states, tile, count - padding);
    }
    ts_finish_ranks<THREADS, ITEMS>(keys, shift, count, counts, ranks);
    if (threadIdx.x < DIGITS) offsets[threadIdx.x] = place - counts.start[threadIdx.x];

#pragma unroll
    for (int i = 0; i < ITEMS; i++) sorted.keys[ranks[i]] = keys[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) keys[i] = sorted.keys[i * THREADS + threadIdx.x];
    __syncthreads();
    Key* to_keys = (to == 1 ? g.keys_a : g.keys_b) + base;
    if (ALONE) {
        const T zero = ts_told_zero(IS_FLOAT ? g.zeros[row] : 0);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int at = i * THREADS + threadIdx.x;
            if (at >= left) continue;
            const ts_i64 end = offsets[ts_digit(keys[i], shift)] + (ts_u32)at;
            if (to != RESULTS) to_keys[end] = keys[i];
            else g.values[base + end] = IS_FLOAT && keys[i] == SIGN ? zero : ts_key_map<T>::element(keys[i]);
        }
        return;
    }
    const ts_u32* from_positions = (from == 1 ? g.positions_a : g.positions_b) + base + first;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = ts_tile_index<ITEMS>(i);
        ts_u32 position = (ts_u32)first + at;
        if (from != 0 && at < left) position = from_positions[at];
        sorted.positions[ranks[i]] = position;
    }
    __syncthreads();
    ts_u32* to_positions = (to == 1 ? g.positions_a : g.positions_b) + base;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = i * THREADS + threadIdx.x;
        if (at >= left) continue;
        const ts_u32 position = sorted.positions[at];
        const ts_i64 end = offsets[ts_digit(keys[i], shift)] + (ts_u32)at;
        if (to != RESULTS) {
            to_keys[end] = keys[i];
            to_positions[end] = position;
            continue;
        }
        if (g.values) g.values[base + end] = ts_element(keys[i], g.descending, g.x + base, position);
        if (g.indices) g.indices[base + end] = position;
        if (g.positions) g.positions[base + end] = position;
    }
}

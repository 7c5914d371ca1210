// Decides whether the next step on this stream is skipped: it is if one of the words is not above its bound.

// Conditions of one launch; `CONDITIONS` on the host.
#define TS_CONDITIONS 24

struct Args {
    ts_u32* held;
    // Not 0 if earlier launches have checked other conditions of the same step.
    ts_u64 goes_on, count;
    const ts_u64* words[TS_CONDITIONS];
    ts_u64 bounds[TS_CONDITIONS];
};

TS_KERNEL void ts_gate(const __grid_constant__ Args g) {
    ts_u32 held = g.goes_on ? *g.held : 0u;
    for (ts_u64 i = 0; i < g.count; i++) {
        if (*(const volatile ts_u64*)g.words[i] <= g.bounds[i]) held = 1u;
    }
    *g.held = held;
}

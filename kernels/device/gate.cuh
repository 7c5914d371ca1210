// Decides whether the next step on this stream is skipped: it is if one of the words is not above its bound.

#include "device/gate_args.cuh"

TS_KERNEL void ts_gate(const __grid_constant__ Args g) {
    ts_u32 held = g.accumulate ? *g.held : 0u;
    for (ts_u64 i = 0; i < g.count; i++) {
        if (*(const volatile ts_u64*)g.words[i] <= g.bounds[i]) held = 1u;
    }
    *g.held = held;
}

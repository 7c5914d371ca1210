// For tests of what is told of a dead device: writes to an address that is nobody's.
extern "C" __global__ void ts_stray(unsigned long long at) { *(volatile int*)at = 1; }

// For tests of error reports after a GPU has failed: writes to an illegal address.
extern "C" __global__ void ts_illegal_write(unsigned long long address) { *(volatile int*)address = 1; }

// Keeps one multiprocessor busy for `ns` nanoseconds.
extern "C" __global__ void ts_sleep(unsigned long long ns) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < ns);
}

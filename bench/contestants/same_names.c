/* Loaded in front of redis-benchmark: its random names are the same in every run. See harness/floors.py. */
#define _GNU_SOURCE
#include <dlfcn.h>

void srandom(unsigned seed);
void srandom(unsigned seed) {
    (void)seed;
    void (*real)(unsigned) = (void (*)(unsigned))dlsym(RTLD_NEXT, "srandom");
    real(20250101);
}

/* A chain of STEPS dependent steps, for two builds that differ by a known share. */
#define SCRUPLE_IMPLEMENTATION
#include "scruple.h"

#ifndef STEPS
#define STEPS 900
#endif

static inline uint32_t chain(uint32_t h)
{
    uint32_t i;
    for (i = 0; i < STEPS; i++) h = (h ^ (i & 255)) * 16777619u;
    return h;
}

SCRUPLE_BODY(steps, uint32_t, h, uint32_t, chain(h))

int main(int argc, char **argv)
{
    static uint32_t basis = 2166136261u;
    scruple_data(SCRUPLE_BENCH("chain", steps), &basis);
    return scruple_main(argc, argv);
}

/* Very short functions: steps of the FNV-1a hash, the identity, whose cost is that of the harness, and two loops of
 * about a microsecond and a millisecond. */
#define SCRUPLE_IMPLEMENTATION
#include "../scruple.h"

#define STEP(h, byte) (((h) ^ (byte)) * 16777619u)

static inline uint32_t four(uint32_t h)
{
    return STEP(STEP(STEP(STEP(h, 1), 2), 3), 4);
}

static inline uint32_t steps(uint32_t h, uint32_t n)
{
    uint32_t i;
    for (i = 0; i < n; i++) h = STEP(h, i & 255);
    return h;
}

SCRUPLE_BODY(loop, uint32_t, h, uint32_t, 7)
SCRUPLE_BODY(id, uint32_t, h, uint32_t, h)
SCRUPLE_BODY(fnv1, uint32_t, h, uint32_t, STEP(h, 1))
SCRUPLE_BODY(fnv4, uint32_t, h, uint32_t, four(h))
SCRUPLE_BODY(fnv8, uint32_t, h, uint32_t, four(four(h)))
SCRUPLE_BODY(us, uint32_t, h, uint32_t, steps(h, 900))
SCRUPLE_BODY(ms, uint32_t, h, uint32_t, steps(h, 900000))

int main(int argc, char **argv)
{
    static uint32_t basis = 2166136261u;
    scruple_data(SCRUPLE_BENCH("fnv/loop", loop), &basis);
    scruple_data(SCRUPLE_BENCH("fnv/id", id), &basis);
    scruple_data(SCRUPLE_BENCH("fnv/fnv1", fnv1), &basis);
    scruple_data(SCRUPLE_BENCH("fnv/fnv4", fnv4), &basis);
    scruple_data(SCRUPLE_BENCH("fnv/fnv8", fnv8), &basis);
    scruple_data(SCRUPLE_BENCH("fnv/us", us), &basis);
    scruple_data(SCRUPLE_BENCH("fnv/ms", ms), &basis);
    return scruple_main(argc, argv);
}

// Very short functions: steps of the FNV-1a hash, the identity, whose cost is that of the harness, and two loops of
// about a microsecond and a millisecond.
#define SCRUPLE_IMPLEMENTATION
#include "../scruple.h"

static uint32_t step(uint32_t h, uint32_t byte) { return (h ^ byte) * 16777619u; }
static uint32_t four(uint32_t h) { return step(step(step(step(h, 1), 2), 3), 4); }
static uint32_t steps(uint32_t h, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) h = step(h, i & 255);
    return h;
}

int main(int argc, char **argv)
{
    const uint32_t basis = 2166136261u;
    scruple::bench("fnv/loop", [](uint32_t) { return 7u; }, basis);
    scruple::bench("fnv/id", [](uint32_t h) { return h; }, basis);
    scruple::bench("fnv/fnv1", [](uint32_t h) { return step(h, 1); }, basis);
    scruple::bench("fnv/fnv4", four, basis);
    scruple::bench("fnv/fnv8", [](uint32_t h) { return four(four(h)); }, basis).budget("malloc.count", 0);
    scruple::bench("fnv/us", [](uint32_t h) { return steps(h, 900); }, basis);
    scruple::bench("fnv/ms", [](uint32_t h) { return steps(h, 900000); }, basis);
    return scruple_main(argc, argv);
}

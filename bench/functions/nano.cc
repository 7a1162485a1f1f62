// The seven functions under nanobench, written as its manual recommends.
#define ANKERL_NANOBENCH_IMPLEMENT
#include <nanobench.h>
#include <cstdint>
#include <fstream>

static inline uint32_t step(uint32_t h, uint32_t byte) { return (h ^ byte) * 16777619u; }
static inline uint32_t four(uint32_t h) { return step(step(step(step(h, 1), 2), 3), 4); }
static inline uint32_t steps(uint32_t h, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) h = step(h, i & 255);
    return h;
}

template <class F> static void run(ankerl::nanobench::Bench &bench, const char *name, F f)
{
    bench.run(name, [&] {
        uint32_t h = 2166136261u;
        ankerl::nanobench::doNotOptimizeAway(h);
        uint32_t r = f(h);
        ankerl::nanobench::doNotOptimizeAway(r);
    });
}

int main()
{
    ankerl::nanobench::Bench bench;
    bench.output(nullptr);
    run(bench, "loop", [](uint32_t) { return 7u; });
    run(bench, "id", [](uint32_t h) { return h; });
    run(bench, "fnv1", [](uint32_t h) { return step(h, 1); });
    run(bench, "fnv4", four);
    run(bench, "fnv8", [](uint32_t h) { return four(four(h)); });
    run(bench, "us", [](uint32_t h) { return steps(h, 900); });
    run(bench, "ms", [](uint32_t h) { return steps(h, 900000); });
    bench.render("{{#result}}{{name}},{{median(elapsed)}}\n{{/result}}", std::cout);
}

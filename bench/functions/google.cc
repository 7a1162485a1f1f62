// The seven functions under Google's benchmark library, written as its manual recommends.
#include <benchmark/benchmark.h>
#include <cstdint>

static inline uint32_t step(uint32_t h, uint32_t byte) { return (h ^ byte) * 16777619u; }
static inline uint32_t four(uint32_t h) { return step(step(step(step(h, 1), 2), 3), 4); }
static inline uint32_t steps(uint32_t h, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) h = step(h, i & 255);
    return h;
}

template <class F> static void run(benchmark::State &state, F f)
{
    for (auto _ : state) {
        uint32_t h = 2166136261u;
        benchmark::DoNotOptimize(h);
        uint32_t r = f(h);
        benchmark::DoNotOptimize(r);
    }
}

#define SEVEN(name, expression)                                                                                        \
    BENCHMARK_CAPTURE(run, name, [](uint32_t h) { (void)h; return expression; })
SEVEN(loop, 7u);
SEVEN(id, h);
SEVEN(fnv1, step(h, 1));
SEVEN(fnv4, four(h));
SEVEN(fnv8, four(four(h)));
SEVEN(us, steps(h, 900));
SEVEN(ms, steps(h, 900000));
BENCHMARK_MAIN();

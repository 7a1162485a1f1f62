// The example cases of sdk/conformance in C++: the test of this SDK.
#define SCRUPLE_IMPLEMENTATION
#include "../scruple.h"

#include "queues.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>

static uint32_t linear(uint32_t h)
{
    for (uint32_t i = 0; i < 1000; i++) h = (h ^ i) * 16777619u;
    return h;
}

static void declare_queues()
{
    scruple_bench_queue("queue/fifo", &fifo, 2, 2, 64);
    scruple_bench_queue("queue/lossy", &lossy, 2, 2, 64);
    scruple_queue_options(scruple_bench_queue("queue/stuck idle", &stuck_idle, 2, 2, 64), 0, 300000000);
    scruple_queue_options(scruple_bench_queue("queue/stuck busy", &stuck_busy, 2, 2, 64), 0, 300000000);
}

int main(int argc, char **argv)
{
    using scruple::bench;
    const auto identity = [](uint32_t h) { return h; };
    const auto nothing = [] {};
    if (argc == 2 && argv[1] == std::string("many")) {
        for (int i = 0; i < 10000; i++) {
            char name[16];
            snprintf(name, sizeof name, "many/%05d", i);
            bench(name, identity, 7u).param("index", i);
        }
        return scruple_main(argc, argv);
    }
    bench("identity", identity, 7u);
    bench("linear", linear, 7u);
    bench("alloc/known", [](size_t size) { return std::unique_ptr<char[]>(new char[size]); }, size_t(4096))
        .param("bytes", 4096);
    bench("skips", [] { scruple_skip("no such device"); });
    bench("forks", [] {
        if (const pid_t child = fork()) waitpid(child, nullptr, 0);
    });
    bench("throws", [] { throw std::runtime_error("a deliberate failure"); });
    bench("hangs/idle", [] { for (;;) std::this_thread::sleep_for(std::chrono::hours(1)); });
    bench("hangs/busy", [] { for (;;) SCRUPLE_KEEP(0); });
    bench("threads/two", identity, 7u).threads({1, 2});
    scruple::bench_input("input/per-iteration", [] { return false; }, [](bool &used) {
        if (used) throw std::logic_error("this input was used before");
        used = true;
    }).max_iterations(100);
    static int setups = 0;
    scruple::bench_setup("setup/counted", [] { return ++setups; }, [](int n) { return n; })
        .check([](int n) { return std::to_string(n); });
    scruple::bench_setup("setup/throws", []() -> int { throw std::runtime_error("a deliberate failure"); },
                         [](int n) { return n; });
    bench("check/passes", nothing).check([] { return "cafe"; });
    bench("check/fails", nothing).check([]() -> std::string { throw std::runtime_error("a deliberate refusal"); });
    bench("prints", [] { puts("printed by a case"); fflush(stdout); });
    for (int n : {0, 1, 2, 3, 10, 100})
        bench("growth", [](int steps) { for (int i = 0; i < steps; i++) SCRUPLE_KEEP(i); }, n).param("n", n);
    bench("budgets", nothing).budget("time.wall", 1e6).budget("alloc.bytes", "+5%");
    bench("fields", nothing).group("another group").tag("slow").tag("two words").throughput_bytes(4096).fresh()
        .time_limit(5000000000u);
    for (const char *name : {"names/\"quoted\" and \\backslash", "names/tab\ttab", "names/grün λ 東京 🐎", "names/a//b/c"})
        bench(name, nothing);
    declare_queues();
    return scruple_main(argc, argv);
}

/* The example cases of sdk/conformance in C: the test of this SDK. */
#define SCRUPLE_IMPLEMENTATION
#include "../scruple.h"

#include "queues.h"

#include <sys/wait.h>

static uint32_t linear(uint32_t h)
{
    uint32_t i;
    for (i = 0; i < 1000; i++) h = (h ^ i) * 16777619u;
    return h;
}

SCRUPLE_BODY(identity, uint32_t, h, uint32_t, h)
SCRUPLE_BODY(linear, uint32_t, h, uint32_t, linear(h))

static void allocate(void *size)
{
    void *volatile block = malloc(*(size_t *)size);
    free(block);
}

static void throws(void *input)
{
    (void)input;
    scruple_fail("a deliberate failure");
}

static void skips(void *input)
{
    (void)input;
    scruple_skip("no such device");
}

static void forks(void *input)
{
    const pid_t child = fork();
    (void)input;
    if (child) waitpid(child, NULL, 0);
}

static void hang_idle(void *input)
{
    (void)input;
    for (;;) pause();
}

static void hang_busy(void *input)
{
    (void)input;
    for (;;) SCRUPLE_KEEP(input);
}

static void *make_unused(const scruple_case *c)
{
    (void)c;
    return calloc(1, sizeof(int));
}

static void use(void *input)
{
    int *used = (int *)input;
    if (*used) scruple_fail("this input was used before");
    *used = 1;
}

static int setups;
static void *count(const scruple_case *c)
{
    (void)c;
    setups++;
    return &setups;
}

static int tell_setups(void *input, char *text, size_t size)
{
    snprintf(text, size, "%d", *(int *)input);
    return 1;
}

static void *fail_setup(const scruple_case *c)
{
    (void)c;
    scruple_fail("a deliberate failure of the setup");
}

static int pass(void *input, char *text, size_t size)
{
    (void)input;
    snprintf(text, size, "cafe");
    return 1;
}

static int refuse(void *input, char *text, size_t size)
{
    (void)input;
    snprintf(text, size, "a deliberate refusal");
    return 0;
}

static void print(void *input)
{
    (void)input;
    puts("printed by a case");
    fflush(stdout);
}

static void grow(void *input)
{
    int i, n = *(int *)input;
    for (i = 0; i < n; i++) SCRUPLE_KEEP(i);
}

static void nothing(void *input) { SCRUPLE_KEEP(input); }

static void declare_queues(void)
{
    scruple_bench_queue("queue/fifo", &fifo, 2, 2, 64);
    scruple_bench_queue("queue/lossy", &lossy, 2, 2, 64);
    scruple_queue_options(scruple_bench_queue("queue/stuck idle", &stuck_idle, 2, 2, 64), 0, 300000000);
    scruple_queue_options(scruple_bench_queue("queue/stuck busy", &stuck_busy, 2, 2, 64), 0, 300000000);
}

static void declare_many(void)
{
    int i;
    for (i = 0; i < 10000; i++) {
        char name[16];
        snprintf(name, sizeof name, "many/%05d", i);
        scruple_param(SCRUPLE_BENCH(name, identity), "index", i);
    }
}

int main(int argc, char **argv)
{
    static uint32_t seed = 7;
    static size_t size = 4096;
    static int sizes[] = {0, 1, 2, 3, 10, 100};
    scruple_case *c;
    size_t i;
    if (argc == 2 && !strcmp(argv[1], "many")) {
        declare_many();
        return scruple_main(argc, argv);
    }
    scruple_data(SCRUPLE_BENCH("identity", identity), &seed);
    scruple_data(SCRUPLE_BENCH("linear", linear), &seed);
    c = scruple_bench("alloc/known", allocate);
    scruple_data(c, &size);
    scruple_param(c, "bytes", (double)size);
    scruple_bench("throws", throws);
    scruple_bench("skips", skips);
    scruple_bench("forks", forks);
    scruple_bench("hangs/idle", hang_idle);
    scruple_bench("hangs/busy", hang_busy);
    c = SCRUPLE_BENCH("threads/two", identity);
    scruple_threads(c, 1);
    scruple_threads(c, 2);
    scruple_input(scruple_bench("input/per-iteration", use), make_unused, free, 100);
    c = scruple_bench("setup/counted", nothing);
    scruple_setup(c, count, NULL);
    scruple_check(c, tell_setups);
    scruple_setup(scruple_bench("setup/throws", nothing), fail_setup, NULL);
    scruple_check(scruple_bench("check/passes", nothing), pass);
    scruple_check(scruple_bench("check/fails", nothing), refuse);
    scruple_bench("prints", print);
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        c = scruple_bench("growth", grow);
        scruple_param(c, "n", sizes[i]);
        scruple_data(c, &sizes[i]);
    }
    c = scruple_bench("budgets", nothing);
    scruple_budget(c, "time.wall", 1e6);
    scruple_budget_against(c, "alloc.bytes", "+5%", "baseline");
    c = scruple_bench("fields", nothing);
    scruple_group(c, "another group");
    scruple_tag(c, "slow");
    scruple_tag(c, "two words");
    scruple_throughput(c, "bytes", 4096);
    scruple_fresh(c);
    scruple_time_limit(c, UINT64_C(5000000000));
    scruple_bench("names/\"quoted\" and \\backslash", nothing);
    scruple_bench("names/tab\ttab", nothing);
    scruple_bench("names/gr\xc3\xbcn \xce\xbb \xe6\x9d\xb1\xe4\xba\xac \xf0\x9f\x90\x8e", nothing);
    scruple_bench("names/a//b/c", nothing);
    declare_queues();
    return scruple_main(argc, argv);
}

/* Cases that conformance does not cover: two files, teardown, a failure on one thread, an input that cannot be made,
 * bytes that are not UTF-8, a blocking queue that is closed, a queue that invents elements, and fairness by its
 * definition. */
#define SCRUPLE_IMPLEMENTATION
#include "../scruple.h"

void declare_other(void);

static void nothing(void *input) { SCRUPLE_KEEP(input); }

static void *set_up(const scruple_case *c)
{
    int *n = (int *)calloc(1, sizeof *n);
    *n = (int)scruple_param_of(c, "n");
    return n;
}

static void tear_down(void *input)
{
    printf("torn down %d\n", *(int *)input);
    fflush(stdout);
    free(input);
}

static int arrivals;
static void third_fails(void *input)
{
    (void)input;
    if (__atomic_add_fetch(&arrivals, 1, __ATOMIC_RELAXED) == 3) scruple_fail("the third arrival");
}

static void *no_more(const scruple_case *c)
{
    static int made;
    (void)c;
    if (++made > 5) scruple_fail("no more inputs");
    return calloc(1, 1);
}

/* A queue of one element that blocks until it is closed. */
static struct { pthread_mutex_t lock; pthread_cond_t changed; int full, closed; uint64_t element; } cell = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};

static void *cell_new(size_t capacity)
{
    (void)capacity;
    cell.full = cell.closed = 0;
    return &cell;
}

static int cell_put(void *queue, uint64_t element)
{
    (void)queue;
    pthread_mutex_lock(&cell.lock);
    while (cell.full) pthread_cond_wait(&cell.changed, &cell.lock);
    cell.full = 1;
    cell.element = element;
    pthread_cond_broadcast(&cell.changed);
    pthread_mutex_unlock(&cell.lock);
    return 1;
}

static int cell_get(void *queue, uint64_t *element)
{
    int got;
    (void)queue;
    pthread_mutex_lock(&cell.lock);
    while (!cell.full && !cell.closed) pthread_cond_wait(&cell.changed, &cell.lock);
    got = cell.full;
    cell.full = 0;
    *element = cell.element;
    pthread_cond_broadcast(&cell.changed);
    pthread_mutex_unlock(&cell.lock);
    return got;
}

static void cell_close(void *queue)
{
    (void)queue;
    pthread_mutex_lock(&cell.lock);
    cell.closed = 1;
    pthread_cond_broadcast(&cell.changed);
    pthread_mutex_unlock(&cell.lock);
}

static int invent(void *queue, uint64_t *element)
{
    int got = cell_get(queue, element);
    if (got && *element % 10 == 5) *element += 1000000;
    return got;
}

static int fail_to_put(void *queue, uint64_t element)
{
    (void)queue;
    if (element == 7) scruple_fail("cannot put the eighth");
    return cell_put(queue, element);
}

static const scruple_queue blocking = {cell_new, cell_put, cell_get, cell_close, NULL};
static const scruple_queue inventive = {cell_new, cell_put, invent, cell_close, NULL};
static const scruple_queue failing = {cell_new, fail_to_put, cell_get, cell_close, NULL};

/* Compares lateness and age with their definition, computed in O(n^2). Small numbers make many ties. */
static int fairness_by_definition(void *input, char *text, size_t size)
{
    enum { N = 300 };
    static struct scruple_passage p[N];
    static uint64_t late[N], age[N], quick[N];
    uint64_t state = 1;
    int round, i, j;
    (void)input;
    for (round = 0; round < 3; round++) {
        const uint64_t below = round == 0 ? 3 : round == 1 ? 40 : 1000000;
        for (i = 0; i < N; i++) {
            p[i].put = (state = state * UINT64_C(6364136223846793005) + 1) >> 33;
            p[i].get = (state = state * UINT64_C(6364136223846793005) + 1) >> 33;
            p[i].put %= below;
            p[i].get %= below;
        }
        for (i = 0; i < N; i++) {
            late[i] = age[i] = 0;
            p[i].rank = 1;
            for (j = 0; j < N; j++) {
                late[i] += p[j].put > p[i].put && p[j].get < p[i].get;
                age[i] += p[j].put < p[i].put && p[j].get > p[i].get;
                p[i].rank += p[j].get < p[i].get;
            }
        }
        qsort(p, N, sizeof *p, scruple_by_put);
        qsort(late, N, sizeof *late, scruple_by_number);
        qsort(age, N, sizeof *age, scruple_by_number);
        scruple_overtaking(p, N, 1, quick);
        if (memcmp(quick, late, sizeof quick)) return snprintf(text, size, "lateness, round %d", round), 0;
        scruple_overtaking(p, N, 0, quick);
        if (memcmp(quick, age, sizeof quick)) return snprintf(text, size, "age, round %d", round), 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    scruple_case *c = scruple_bench("teardown", nothing);
    scruple_param(c, "n", 42);
    scruple_setup(c, set_up, tear_down);
    scruple_bench("thread fails", third_fails);
    scruple_input(scruple_bench("inputs fail", nothing), no_more, free, 0);
    scruple_bench("not \xff UTF-8 \xed\xa0\x80", nothing);
    scruple_bench_queue("blocking", &blocking, 2, 2, 1);
    scruple_bench_queue("inventive", &inventive, 1, 1, 1);
    scruple_queue_options(scruple_bench_queue("failing", &failing, 1, 1, 1), 0, 300000000);
    declare_other();
    scruple_check(scruple_bench("fairness", nothing), fairness_by_definition);
    if (argc > 1) scruple_bench("teardown", nothing); /* the same name, without the params */
    if (argc > 2) scruple_bench("teardown", nothing); /* a duplicate of that one */
    return scruple_main(argc, argv);
}

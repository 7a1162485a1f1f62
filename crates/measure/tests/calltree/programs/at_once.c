/* Eight hundred threads that exist at the same time. */
#include <pthread.h>

enum { THREADS = 800 };
static pthread_barrier_t all_exist;

__attribute__((noinline)) static void work(void) { pthread_barrier_wait(&all_exist); }

static void *start(void *none) {
    work();
    return none;
}

int main(void) {
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all_exist, 0, THREADS);
    for (int number = 0; number < THREADS; number++)
        if (pthread_create(&threads[number], &small, start, 0)) return 1;
    for (int number = 0; number < THREADS; number++) pthread_join(threads[number], 0);
    return 0;
}

/* Four threads, each of which calls work() 1000 times and step() 10 times in each. */
#include <pthread.h>
#include <sched.h>

static _Thread_local volatile int sink;

void step(void) {
    sink++;
}

void work(void) {
    for (int i = 0; i < 10; i++) step();
}

static void *start(void *nothing) {
    for (int i = 0; i < 1000; i++) {
        work();
        if (i % 100 == 0) sched_yield();
    }
    return nothing;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], 0, start, 0) != 0) return 2;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}

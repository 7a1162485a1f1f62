/* threads N K [together]: N threads allocate K blocks of 100 bytes each and free all but the last, one after the
 * other or all alive at once. */
#include <pthread.h>
#include <stdlib.h>

static int blocks;
static int together;
static pthread_barrier_t barrier;

static void *work(void *unused) {
    void *volatile block = NULL;
    if (together) pthread_barrier_wait(&barrier);
    for (int i = 0; i < blocks; i++) {
        block = malloc(100);
        if (i + 1 < blocks) free(block);
    }
    if (together) pthread_barrier_wait(&barrier);
    return unused;
}

int main(int argc, char **argv) {
    static pthread_t threads[4096];
    int n = atoi(argv[1]);
    blocks = atoi(argv[2]);
    together = argc > 3;
    pthread_barrier_init(&barrier, NULL, n);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i], &small, work, NULL)) return 1;
        if (!together) pthread_join(threads[i], NULL);
    }
    for (int i = 0; together && i < n; i++) pthread_join(threads[i], NULL);
    return 0;
}

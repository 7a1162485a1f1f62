/* Threads allocate without end while the main thread forks 200 children, each of which allocates 10 blocks of 100 bytes
 * and frees them. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *busy(void *unused) {
    void *volatile block;
    while (!stop) {
        block = malloc(40);
        free(block);
    }
    return unused;
}

__attribute__((noinline)) static void in_child(void) {
    void *volatile blocks[10];
    for (int i = 0; i < 10; i++) blocks[i] = malloc(100);
    for (int i = 0; i < 10; i++) free(blocks[i]);
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, busy, NULL);
    int bad = 0;
    for (int i = 0; i < 200; i++) {
        int child = fork(), status = 0;
        if (child == 0) {
            in_child();
            _exit(0);
        }
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return bad;
}

/* Allocates at known lines: some blocks stay, the peak is in the middle, and it is reached twice. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *kept[100];

__attribute__((noinline)) static void *make(size_t size) {
    void *block = malloc(size); /* line 9 */
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) static void *deep(int depth) {
    if (depth == 0) return calloc(3, 5); /* line 15 */
    void *block = deep(depth - 1);
    return block;
}

static void *in_thread(void *unused) {
    kept[40] = malloc(70); /* line 21 */
    free(kept[0]);
    return NULL;
}

int main(void) {
    for (int i = 0; i < 10; i++) kept[i] = make(100); /* line 27 */
    for (int round = 0; round < 2; round++) {
        void *large = make(100000 - round * 0); /* line 29 */
        void *other = make(1000); /* line 30 */
        free(large);
        free(other);
    }
    kept[20] = deep(50);
    void *aligned = NULL;
    if (posix_memalign(&aligned, 256, 300)) return 1; /* line 36 */
    kept[21] = aligned;
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL)) return 1; /* line 39 */
    pthread_join(thread, NULL);
    kept[22] = realloc(kept[1], 5000); /* line 41 */
    if (realloc(kept[22], (size_t)-1 / 2)) return 1; /* fails, so that the block stays */
    for (int i = 2; i < 8; i++) free(kept[i]);
    return 0;
}

/* Keeps blocks of 100 bytes so that memory grows in a known shape: SHAPE N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile latest;
static void *cache[20000];

static int is_square(long i) {
    long root = 0;
    while (root * root < i) root++;
    return root * root == i;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *shape = argv[1];
    long n = atol(argv[2]);
    int kind = !strcmp(shape, "base") ? 'b' : !strcmp(shape, "root") ? 'r' : *shape;
    if (kind == 'b') memset(latest = malloc(200000000), 1, 200000000);
    for (long i = 1; i <= n; i++) {
        int keeps = kind == 'b' || (kind == 'l' && shape[1] == 'e') || (kind == 'f' && shape[1] == 'i' && i % 50 == 0) ||
                    (kind == 'r' && is_square(i));
        int doubles = kind == 'l' && shape[1] == 'o' && (i & (i - 1)) == 0;
        /* Blocks of many sizes; every other one is freed. Only holes remain. */
        void *block = malloc(doubles ? 65536 : kind == 'f' && shape[1] == 'r' ? 100 + i * 7919 % 5000 : 100);
        latest = block;
        if (kind == 'c') {
            free(cache[i % 20000]);
            cache[i % 20000] = block;
        } else if (kind == 'f' && shape[1] == 'r') {
            free(cache[i % 1000]);
            cache[i % 1000] = block;
        } else if (!keeps && !doubles) {
            free(block);
        }
    }
    return 0;
}

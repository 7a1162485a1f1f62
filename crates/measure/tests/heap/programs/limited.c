/* Allocates blocks of 1000 bytes until an allocation fails, and prints their number. With "itself" it first limits
 * its own memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct rlimit limit = {64 << 20, 64 << 20};
    char line[32];
    unsigned long blocks = 0;
    if (argc > 1 && strcmp(argv[1], "itself") == 0 && setrlimit(RLIMIT_AS, &limit)) return 2;
    void *warm = malloc(10);
    free(warm);
    while (malloc(1000)) blocks++;
    if (malloc(1000) || malloc(1000)) return 3;
    snprintf(line, sizeof line, "%lu\n", blocks);
    return write(1, line, strlen(line)) < 0;
}

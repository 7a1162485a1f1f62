/* Allocates once and executes itself again, as often as the first argument says. The last image starts the program
 * of the second argument, if there is one, with an empty environment. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile sink;

int main(int argc, char **argv) {
    char left[16];
    int n = argc > 1 ? atoi(argv[1]) : 0;
    sink = malloc(n + 1);
    snprintf(left, sizeof left, "%d", n - 1);
    if (n > 0 && argc > 2) execl(argv[0], argv[0], left, argv[2], (char *)NULL);
    if (n > 0) execlp(argv[0], argv[0], left, (char *)NULL);
    if (n > 0) return 1;
    execl("/nonexistent/program", "program", (char *)NULL); /* fails, so is not missing */
    if (argc > 2) execle(argv[2], argv[2], (char *)NULL, (char *[]){NULL});
    return 0;
}

/* One child frees its parent's block, another executes this program again. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count > 1) return malloc(33) == NULL;
    char *block = malloc(1000);
    if (fork() == 0) {
        char *own = malloc(50);
        free(block);
        return own == malloc(7);
    }
    wait(NULL);
    free(block);
    block = malloc(20);
    if (fork() == 0) {
        execl(words[0], words[0], "again", (char *)NULL);
        return 1;
    }
    wait(NULL);
    return block == NULL;
}

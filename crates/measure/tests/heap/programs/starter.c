/* starter WAY PROGRAM: checks that its environment shows nothing of the counter, prints the result, and starts the
 * program in the given way. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

static int is_clean(char **all) {
    for (; all && *all; all++)
        if (!strncmp(*all, "LD_PRELOAD=", 11) || !strncmp(*all, "SCRUPLE_HEAP=", 13)) return 0;
    return 1;
}

int main(int argc, char **argv, char **env) {
    if (argc < 3) return 2;
    const char *way = argv[1], *program = argv[2];
    char *words[] = {argv[2], NULL}, *nothing[] = {NULL};
    int pid = 0, status = 0;
    if (!is_clean(environ) || !is_clean(env) || getenv("LD_PRELOAD") || getenv("SCRUPLE_HEAP")) return 3;
    if (write(1, "as it was\n", 10) != 10) return 4;
    if (!strcmp(way, "posix_spawn") && posix_spawn(&pid, program, NULL, NULL, words, environ)) return 5;
    if (!strcmp(way, "posix_spawnp") && posix_spawnp(&pid, program, NULL, NULL, words, environ)) return 5;
    if (!strcmp(way, "vfork") && (pid = vfork()) == 0) execve(program, words, environ);
    if (pid) return waitpid(pid, &status, 0) != pid || status || !is_clean(environ);
    if (!strcmp(way, "system")) return system(program) || !is_clean(environ);
    if (!strcmp(way, "popen")) {
        FILE *pipe = popen(program, "r");
        return !pipe || pclose(pipe) || !is_clean(environ);
    }
    if (!strcmp(way, "wordexp")) {
        char text[4200];
        wordexp_t result;
        snprintf(text, sizeof text, "$(%s)", program);
        return wordexp(text, &result, 0) || !is_clean(environ);
    }
    if (!strcmp(way, "execve")) execve(program, words, environ);
    if (!strcmp(way, "execv")) execv(program, words);
    if (!strcmp(way, "execvp")) execvp(program, words);
    if (!strcmp(way, "execvpe")) execvpe(program, words, environ);
    if (!strcmp(way, "execl")) execl(program, program, (char *)NULL);
    if (!strcmp(way, "execle")) execle(program, program, (char *)NULL, environ);
    if (!strcmp(way, "execlp")) execlp(program, program, (char *)NULL);
    if (!strcmp(way, "fexecve")) fexecve(open(program, O_RDONLY), words, environ);
    if (!strcmp(way, "empty")) execve(program, words, nothing);
    if (!strcmp(way, "none")) execve(program, words, NULL);
    if (!strcmp(way, "clearenv")) clearenv(), execv(program, words);
    return 6;
}

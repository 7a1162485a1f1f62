#include "programs.h"

#include <stdarg.h>

#include "environment.h"

#define RTLD_NEXT ((void *)-1L)
#define ERROR_NO_FUNCTION 38

extern void *dlsym(void *, const char *) __attribute__((weak));
extern char *dlerror(void) __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));
extern char **environ __attribute__((weak));

static struct {
    int (*execve)(const char *, words, words);
    int (*execvpe)(const char *, words, words);
    int (*execveat)(int, const char *, words, words, int);
    int (*fexecve)(int, words, words);
    int (*spawn)(int *, const char *, const void *, const void *, words, words);
    int (*spawnp)(int *, const char *, const void *, const void *, words, words);
    int (*system)(const char *);
    void *(*popen)(const char *, const char *);
    int (*wordexp)(const char *, void *, int);
} real;

/* Resolves the functions at the start, because a forked child of a program with threads must not call the dynamic
 * linker. */
__attribute__((constructor)) static void resolve_programs(void) {
    if (!dlsym) return;
    real.execve = dlsym(RTLD_NEXT, "execve");
    real.execvpe = dlsym(RTLD_NEXT, "execvpe");
    real.execveat = dlsym(RTLD_NEXT, "execveat");
    real.fexecve = dlsym(RTLD_NEXT, "fexecve");
    real.spawn = dlsym(RTLD_NEXT, "posix_spawn");
    real.spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
    real.system = dlsym(RTLD_NEXT, "system");
    real.popen = dlsym(RTLD_NEXT, "popen");
    real.wordexp = dlsym(RTLD_NEXT, "wordexp");
    if (dlerror) dlerror(); /* some C libraries lack some of them; the program must not see that error */
}

static int missing(void) {
    if (__errno_location) *__errno_location() = ERROR_NO_FUNCTION;
    return -1;
}

/* Called after an exec, which returns only if it failed. */
static int failed(void *noted, int result) {
    exec_failed(noted);
    return result;
}

/* The environment with which a program is started. It is on the stack, because a child of vfork shares its
 * parent's heap. */
#define COMPLETE(full, envp)                                   \
    char *area_of_##full[room_for(envp) / sizeof(char *) + 1]; \
    char *const *full = complete(envp, (char *)area_of_##full)

EXPORT int execve(const char *path, words argv, words envp) {
    if (!real.execve) return missing();
    COMPLETE(full, envp);
    void *noted = before_exec(path);
    return failed(noted, real.execve(path, argv, full));
}

EXPORT int execv(const char *path, words argv) { return execve(path, argv, environ); }

EXPORT int execvpe(const char *file, words argv, words envp) {
    if (!real.execvpe) return missing();
    COMPLETE(full, envp);
    void *noted = before_exec(file);
    return failed(noted, real.execvpe(file, argv, full));
}

EXPORT int execvp(const char *file, words argv) { return execvpe(file, argv, environ); }

EXPORT int execveat(int folder, const char *path, words argv, words envp, int flags) {
    if (!real.execveat) return missing();
    COMPLETE(full, envp);
    void *noted = before_exec(path);
    return failed(noted, real.execveat(folder, path, argv, full, flags));
}

EXPORT int fexecve(int file, words argv, words envp) {
    if (!real.fexecve) return missing();
    COMPLETE(full, envp);
    void *noted = before_exec(argv ? argv[0] : NULL);
    return failed(noted, real.fexecve(file, argv, full));
}

/* Collects the arguments of the execl family in an array. The environment, if there is one, follows them in the
 * list. */
#define COLLECT(argv, first, envp)                                    \
    va_list list;                                                     \
    size_t n = 1;                                                     \
    va_start(list, first);                                            \
    while (va_arg(list, const char *)) n++;                           \
    va_end(list);                                                     \
    char *argv[n + 1];                                                \
    argv[0] = (char *)first;                                          \
    va_start(list, first);                                            \
    for (size_t i = 1; i <= n; i++) argv[i] = va_arg(list, char *);   \
    char **envp __attribute__((unused)) = NULL;

EXPORT int execl(const char *path, const char *first, ...) {
    COLLECT(argv, first, envp)
    va_end(list);
    return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...) {
    COLLECT(argv, first, envp)
    va_end(list);
    return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...) {
    COLLECT(argv, first, envp)
    envp = va_arg(list, char **);
    va_end(list);
    return execve(path, argv, envp);
}

typedef int spawn_function(int *, const char *, const void *, const void *, words, words);

static int spawn(spawn_function *function, int *pid, const char *path, const void *actions, const void *attributes,
                 words argv, words envp) {
    int child = -1;
    if (!function) return ERROR_NO_FUNCTION;
    COMPLETE(full, envp);
    uint32_t since = before_spawn();
    int error = function(&child, path, actions, attributes, argv, full);
    if (error) return error;
    if (pid) *pid = child;
    spawned(child, path, since);
    return 0;
}

EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes, words argv,
                       words envp) {
    return spawn(real.spawn, pid, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes, words argv,
                        words envp) {
    return spawn(real.spawnp, pid, file, actions, attributes, argv, envp);
}

/* These start a shell without a public exec function. */
EXPORT int system(const char *command) {
    if (!real.system) return missing();
    show_variables();
    int status = real.system(command);
    hide_again();
    return status;
}

EXPORT void *popen(const char *command, const char *type) {
    if (!real.popen) return missing(), NULL;
    show_variables();
    void *stream = real.popen(command, type);
    hide_again();
    return stream;
}

EXPORT int wordexp(const char *text, void *result, int flags) {
    enum { NO_SPACE = 1 };
    if (!real.wordexp) return NO_SPACE;
    show_variables();
    int error = real.wordexp(text, result, flags);
    hide_again();
    return error;
}

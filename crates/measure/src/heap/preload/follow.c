/* Follows a program into its children: the memory with which a forked child starts, the programs that are started,
 * and libraries whose symbols would be bound past the hooks. */
#include <stdarg.h>

#include "environment.h"
#include "mappings.h"
#include "slots.h"
#include "tree.h"

#define RTLD_NEXT ((void *)-1L)
#define RTLD_DEEPBIND 0x8
#define ERROR_NO_FUNCTION 38

extern void *dlsym(void *, const char *) __attribute__((weak));
extern char *dlerror(void) __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));
extern char **environ __attribute__((weak));

static struct {
    int (*fork)(void);
    void (*exit)(int);
    void *(*dlopen)(const char *, int);
    int (*execve)(const char *, words, words);
    int (*execvpe)(const char *, words, words);
    int (*execveat)(int, const char *, words, words, int);
    int (*fexecve)(int, words, words);
    int (*spawn)(int *, const char *, const void *, const void *, words, words);
    int (*spawnp)(int *, const char *, const void *, const void *, words, words);
    int (*system)(const char *);
    void *(*popen)(const char *, const char *);
} real;

/* Resolves the functions at the start, because a forked child of a program with threads must not call the dynamic
 * linker. */
__attribute__((constructor)) static void resolve_followers(void) {
    if (!dlsym) return;
    real.fork = dlsym(RTLD_NEXT, "fork");
    real.exit = dlsym(RTLD_NEXT, "_exit");
    real.dlopen = dlsym(RTLD_NEXT, "dlopen");
    real.execve = dlsym(RTLD_NEXT, "execve");
    real.execvpe = dlsym(RTLD_NEXT, "execvpe");
    real.execveat = dlsym(RTLD_NEXT, "execveat");
    real.fexecve = dlsym(RTLD_NEXT, "fexecve");
    real.spawn = dlsym(RTLD_NEXT, "posix_spawn");
    real.spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
    real.system = dlsym(RTLD_NEXT, "system");
    real.popen = dlsym(RTLD_NEXT, "popen");
    if (dlerror) dlerror(); /* some C libraries lack some of them; the program must not see that error */
}

static int missing(void) {
    if (__errno_location) *__errno_location() = ERROR_NO_FUNCTION;
    return -1;
}

EXPORT int fork(void) {
    if (!real.fork) return missing();
    before_fork();
    int child = real.fork();
    if (child == 0) after_fork_in_child();
    else forget_fork();
    return child;
}

/* _exit runs no destructors, so the process leaves the tree here. */
EXPORT __attribute__((noreturn)) void _exit(int code) {
    leave_tree();
    if (real.exit) real.exit(code);
    for (;;) call6(SYS_exit_group, code, 0, 0, 0, 0, 0);
}
EXPORT __attribute__((noreturn)) void _Exit(int code) { _exit(code); }

uint64_t calls_of_dlopen;

/* This compiles to a jump: the real function uses its return address to choose the search path. */
EXPORT void *dlopen(const char *file, int flags) {
    if (!real.dlopen) return NULL;
    __atomic_fetch_add(&calls_of_dlopen, 1, __ATOMIC_RELAXED);
    return real.dlopen(file, flags & ~RTLD_DEEPBIND);
}

/* ---- programs started ---- */

/* Announces a program that is about to be started. A forked child writes to its parent's unit, which is still
 * mapped: most children only start a program and need no record of their own. */
static struct note *announce(int pid, const char *path, uint32_t since) {
    struct note *note = (struct note *)claim_slot(OWNER_NOTE);
    if (!note) return NULL;
    size_t n = 0;
    while (path && path[n]) n++;
    size_t skip = n > sizeof note->path - 1 ? n - (sizeof note->path - 1) : 0;
    for (size_t i = skip; i < n; i++) note->path[i - skip] = path[i];
    note->pid = pid;
    note->since = since;
    __atomic_store_n(&note->state, NOTE_OPEN, __ATOMIC_RELEASE);
    return note;
}

static uint32_t records_so_far(void) { return header ? __atomic_load_n(&header->next, __ATOMIC_RELAXED) : 0; }

/* Cancels the announcement. Called after an exec, which returns only if it failed. */
static int failed(struct note *note, int result) {
    if (note) __atomic_store_n(&note->state, NOTE_CANCELLED, __ATOMIC_RELEASE);
    return result;
}

/* The environment with which a program is started. It is on the stack, because a child of vfork shares its
 * parent's heap. */
#define COMPLETE(full, envp)                              \
    char *area_of_##full[room_for(envp) / sizeof(char *) + 1]; \
    char *const *full = complete(envp, (char *)area_of_##full)

static struct note *announce_self(const char *path) { return announce(system_pid(), path, records_so_far()); }

EXPORT int execve(const char *path, words argv, words envp) {
    if (!real.execve) return missing();
    COMPLETE(full, envp);
    struct note *note = announce_self(path);
    return failed(note, real.execve(path, argv, full));
}

EXPORT int execv(const char *path, words argv) { return execve(path, argv, environ); }

EXPORT int execvpe(const char *file, words argv, words envp) {
    if (!real.execvpe) return missing();
    COMPLETE(full, envp);
    struct note *note = announce_self(file);
    return failed(note, real.execvpe(file, argv, full));
}

EXPORT int execvp(const char *file, words argv) { return execvpe(file, argv, environ); }

EXPORT int execveat(int folder, const char *path, words argv, words envp, int flags) {
    if (!real.execveat) return missing();
    COMPLETE(full, envp);
    struct note *note = announce_self(path);
    return failed(note, real.execveat(folder, path, argv, full, flags));
}

EXPORT int fexecve(int file, words argv, words envp) {
    if (!real.fexecve) return missing();
    COMPLETE(full, envp);
    struct note *note = announce_self(argv ? argv[0] : NULL);
    return failed(note, real.fexecve(file, argv, full));
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
    uint32_t since = records_so_far();
    int error = function(&child, path, actions, attributes, argv, full);
    if (error) return error;
    if (pid) *pid = child;
    announce(child, path, since);
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

/* system and popen start a shell without a public exec function. */
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

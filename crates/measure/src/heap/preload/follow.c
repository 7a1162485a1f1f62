/* Follows a program into its children: the memory with which a forked child starts, the programs that are started,
 * and libraries whose symbols would be bound past the hooks. */
#include "../../preload/programs.h"
#include "mappings.h"
#include "slots.h"
#include "tree.h"

#define RTLD_NEXT ((void *)-1L)
#define RTLD_DEEPBIND 0x8
#define ERROR_NO_FUNCTION 38

extern void *dlsym(void *, const char *) __attribute__((weak));
extern char *dlerror(void) __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));

static struct {
    int (*fork)(void);
    void (*exit)(int);
    void *(*dlopen)(const char *, int);
} real;

/* Resolves the functions at the start, because a forked child of a program with threads must not call the dynamic
 * linker. */
__attribute__((constructor)) static void resolve_followers(void) {
    if (!dlsym) return;
    real.fork = dlsym(RTLD_NEXT, "fork");
    real.exit = dlsym(RTLD_NEXT, "_exit");
    real.dlopen = dlsym(RTLD_NEXT, "dlopen");
    if (dlerror) dlerror(); /* some C libraries lack some of them; the program must not see that error */
}

EXPORT int fork(void) {
    if (!real.fork) {
        if (__errno_location) *__errno_location() = ERROR_NO_FUNCTION;
        return -1;
    }
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

uint32_t before_spawn(void) { return header ? __atomic_load_n(&header->next, __ATOMIC_RELAXED) : 0; }

void spawned(int child, const char *path, uint32_t since) { announce(child, path, since); }

void *before_exec(const char *path) { return announce(system_pid(), path, before_spawn()); }

/* The announcement remains, so that the reader reports the program. */
void cannot_follow(void) {}

/* Cancels the announcement. */
void exec_failed(void *announced) {
    struct note *note = announced;
    if (note) __atomic_store_n(&note->state, NOTE_CANCELLED, __ATOMIC_RELEASE);
}

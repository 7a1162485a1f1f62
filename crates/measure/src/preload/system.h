/* System calls without a C library: this library must run before the C library is ready, and with any C library.
 * Results are the kernel's, where negative values mean -errno. errno is never changed. */
#ifndef SCRUPLE_SYSTEM_H
#define SCRUPLE_SYSTEM_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "system_call.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))
#define COLD __attribute__((noinline, cold))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The result of dladdr. */
struct place {
    const char *file;
    void *base;
    const char *symbol;
    void *address;
};

static inline int system_open(const char *path, int flags) {
    return (int)call6(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0600, 0, 0);
}
static inline void system_close(int file) { call6(SYS_close, file, 0, 0, 0, 0, 0); }
static inline long system_read(int file, void *to, size_t size) {
    return call6(SYS_read, file, (long)to, (long)size, 0, 0, 0);
}
/* Whether the process may write a file up to this place. Beyond its limit (ulimit -f) a signal would end it. */
static inline int may_write_to(uint64_t place) {
    uint64_t limit[2];
    return call6(SYS_prlimit64, 0, 1 /* RLIMIT_FSIZE */, 0, (long)limit, 0, 0) != 0 || place <= limit[0];
}
static inline long system_write_at(int file, const void *from, size_t size, uint64_t offset) {
    if (!may_write_to(offset + size)) return -27; /* EFBIG */
    return call6(SYS_pwrite64, file, (long)from, (long)size, (long)offset, 0, 0);
}
/* Writes behind the end of a file that was opened for that. */
static inline long system_append(int file, const void *from, size_t size) {
    long end = call6(SYS_lseek, file, 0, 2 /* SEEK_END */, 0, 0, 0);
    if (end < 0 || !may_write_to((uint64_t)end + size)) return -27; /* EFBIG */
    return call6(SYS_write, file, (long)from, (long)size, 0, 0, 0);
}
/* Reserves space in a file. */
static inline int system_reserve(int file, uint64_t size, uint64_t offset) {
    return may_write_to(offset + size) && call6(SYS_fallocate, file, 0, (long)offset, (long)size, 0, 0) == 0;
}
/* A shared mapping of the file; NULL if it fails. */
static inline void *system_map(int file, size_t size, uint64_t offset) {
    long at = call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (long)offset);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}
/* The file's content, which cannot be changed; NULL if it fails. */
static inline const void *system_map_content(int file, size_t size) {
    long at = call6(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, file, 0);
    return at < 0 && at > -4096 ? NULL : (const void *)at;
}
/* Private zeroed memory; NULL if there is none. */
static inline void *system_take(size_t size) {
    long at = call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}
/* The first bytes of a file, fewer than `most`, and a null after them; NULL if it cannot be read. Their number is written to
 * `size`. `system_unmap(text, most)` gives them back. */
static inline char *system_take_text(const char *path, size_t most, size_t *size) {
    int file = system_open(path, O_RDONLY);
    char *text = file < 0 ? NULL : system_take(most);
    long got;
    *size = 0;
    while (text && (got = system_read(file, text + *size, most - 1 - *size)) > 0) *size += (size_t)got;
    if (file >= 0) system_close(file);
    return text;
}
static inline int system_readable(const char *path) {
    return call6(SYS_faccessat, AT_FDCWD, (long)path, 4 /* R_OK */, 0, 0, 0) == 0;
}
static inline void system_yield(void) { call6(SYS_sched_yield, 0, 0, 0, 0, 0, 0); }
static inline void system_unmap(void *at, size_t size) { call6(SYS_munmap, (long)at, (long)size, 0, 0, 0, 0); }
static inline long system_advise(void *at, size_t size, int advice) {
    return call6(SYS_madvise, (long)at, (long)size, advice, 0, 0, 0);
}
static inline long system_read_link(const char *path, char *to, size_t size) {
    return call6(SYS_readlinkat, AT_FDCWD, (long)path, (long)to, (long)size, 0, 0);
}
static inline uint64_t nanoseconds(int clock) {
    int64_t time[2] = {0};
    call6(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
    return (uint64_t)time[0] * 1000000000 + (uint64_t)time[1];
}
static inline int system_pid(void) { return (int)call6(SYS_getpid, 0, 0, 0, 0, 0, 0); }
static inline int system_parent(void) { return (int)call6(SYS_getppid, 0, 0, 0, 0, 0, 0); }
static inline int system_tid(void) { return (int)call6(SYS_gettid, 0, 0, 0, 0, 0, 0); }
/* Whether a process is gone. An ended process is not gone until its parent has waited for it. */
static inline int system_process_gone(int pid) { return call6(SYS_kill, pid, 0, 0, 0, 0, 0) == -3; /* ESRCH */ }
/* Whether a thread has ended. The slot of a running thread must not be taken over. */
static inline int system_thread_gone(int pid, int tid) {
    return call6(SYS_tgkill, pid, tid, 0, 0, 0, 0) == -3; /* ESRCH */
}

#endif

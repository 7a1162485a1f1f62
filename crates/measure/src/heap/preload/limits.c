#include "limits.h"

#include <sys/resource.h>

/* The size in bytes below which every C library serves a request from the heap. A kernel that overcommits refuses
 * only requests above the whole memory. */
#define LITTLE (64 << 10)

extern int *__errno_location(void) __attribute__((weak));

size_t certain;

static long call_prlimit(int pid, int resource, const struct rlimit *wanted, struct rlimit *old) {
    return call6(SYS_prlimit64, pid, resource, (long)wanted, (long)old, 0, 0);
}

static int is_limited(int resource) {
    struct rlimit limit;
    return call_prlimit(0, resource, NULL, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* Whether the kernel does not overcommit memory, so that it may refuse any request. */
static int kernel_is_strict(void) {
    char answer = '2';
    int file = system_open("/proc/sys/vm/overcommit_memory", O_RDONLY);
    if (file < 0) return 1;
    if (system_read(file, &answer, 1) != 1) answer = '2';
    system_close(file);
    return answer == '2';
}

void look_at_limits(int known_allocator) {
    int free = known_allocator && !is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA) && !kernel_is_strict();
    certain = free ? LITTLE : 0;
}

/* ---- programs that limit themselves ---- */

static int set_limit(int pid, int resource, const struct rlimit *wanted, struct rlimit *old) {
    if (wanted && (resource == RLIMIT_AS || resource == RLIMIT_DATA)) certain = 0;
    long result = call_prlimit(pid, resource, wanted, old);
    if (result >= 0) return 0;
    if (__errno_location) *__errno_location() = (int)-result;
    return -1;
}

EXPORT int prlimit(int pid, int resource, const struct rlimit *wanted, struct rlimit *old) {
    return set_limit(pid, resource, wanted, old);
}
EXPORT int prlimit64(int pid, int resource, const struct rlimit *wanted, struct rlimit *old) {
    return set_limit(pid, resource, wanted, old);
}
EXPORT int setrlimit(int resource, const struct rlimit *wanted) { return set_limit(0, resource, wanted, NULL); }
EXPORT int setrlimit64(int resource, const struct rlimit *wanted) { return set_limit(0, resource, wanted, NULL); }

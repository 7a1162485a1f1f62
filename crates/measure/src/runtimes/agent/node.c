/* Node.js: what its hook cannot do in JavaScript. The hook asks for it by reading variables of these names. */
#include <signal.h>

#include "agent.h"

/* Whether node's permission model is on. Under it node may not read the hook, and would exit with an error. */
int node_is_restricted(const char *user) {
    enum { MOST = 16384 };
    if (user && (find(user, "--permission") || find(user, "--experimental-permission"))) return 1;
    size_t size;
    char *words = system_take_text("/proc/self/cmdline", MOST, &size);
    int found = 0;
    for (size_t i = 0; i < size && !found; i += length(words + i) + 1)
        found = begins(words + i, "--permission") || begins(words + i, "--experimental-permission");
    if (words) system_unmap(words, MOST);
    return found;
}

/* ---- live data, if requested: full collections at moments that lie ever further apart ---- */

extern void set_v8_flags(const char *) __asm__("_ZN2v82V818SetFlagsFromStringEPKc") WEAK;
extern void *v8_isolate(void) __asm__("_ZN2v87Isolate10GetCurrentEv") WEAK;
extern void call_after_collections(void *isolate, void (*)(void *, int, int), int kinds) __asm__(
    "_ZN2v87Isolate21AddGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEES2_") WEAK;

enum { OF_YOUNG_OBJECTS = 1 | 2, OF_ALL_OBJECTS = 4, EVERY_KIND = 31 };

/* After this share of all collections so far, the next one is full. The last one is then near the program's end, and
 * their number grows with the logarithm of the program's allocations. */
enum { SHARE = 20 };

static void after_collection(void *isolate, int kind, int flags) {
    static unsigned all, since_full;
    (void)isolate, (void)flags;
    all++;
    if (kind & OF_ALL_OBJECTS) since_full = 0;
    else if (kind & OF_YOUNG_OBJECTS) since_full++;
    set_v8_flags(since_full + 1 >= all / SHARE ? "--gc-global" : "--no-gc-global");
}

/* Makes the space for young objects small, so that there is a collection for each megabyte. V8 reads this as it starts. */
void before_v8_starts(void) {
    if (full_collections() && set_v8_flags && v8_isolate && call_after_collections)
        set_v8_flags("--max-semi-space-size=1");
}

const char *watch_node_collections(const char *user) {
    if (own(NODE) && full_collections() && set_v8_flags && v8_isolate && call_after_collections)
        call_after_collections(v8_isolate(), after_collection, EVERY_KIND);
    return user;
}

/* ---- SIGTERM: the hook's handler runs in the event loop, which a busy program may not reach for long ---- */

enum { GRACE_SECONDS = 1 };

extern int sigaction(int, const struct sigaction *, struct sigaction *) WEAK;

static struct sigaction of_libuv;
static volatile int may_wait = 1, waits;

static void on_termination(int number, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code != SI_TIMER) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
        struct { int64_t every[2], first[2]; } after = {{0, 0}, {GRACE_SECONDS, 0}};
        int timer = 0;
        if (!__atomic_exchange_n(&waits, 1, __ATOMIC_RELAXED) && may_wait &&
            call6(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&timer, 0, 0, 0) == 0)
            call6(SYS_timer_settime, timer, 0, (long)&after, 0, 0, 0);
        of_libuv.sa_handler(number);
    } else if (may_wait) {
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(number, &plain, NULL);
        call6(SYS_kill, system_pid(), number, 0, 0, 0, 0);
    }
}

/* Ends the program if it has not reached its event loop a while after SIGTERM, as it would have ended without the hook. */
const char *limit_node_wait(const char *user) {
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART};
    if (!own(NODE) || !sigaction || sigaction(SIGTERM, NULL, &of_libuv) != 0) return user;
    if (of_libuv.sa_flags & SA_SIGINFO || of_libuv.sa_handler == SIG_DFL || of_libuv.sa_handler == SIG_IGN) return user;
    ours.sa_sigaction = on_termination;
    ours.sa_mask = of_libuv.sa_mask;
    sigaction(SIGTERM, &ours, NULL);
    return user;
}

/* The hook's handler runs now, or the program has its own. */
const char *end_node_wait(const char *user) {
    may_wait = 0;
    return user;
}

/* A server whose behaviour is planted, so that the truth about its latency is known.
 *
 *     planted PORT [NAME=NUMBER...]                PORT 0: any port; the first line of output names it
 *     planted truth RATE SECONDS [NAME=NUMBER...]  serves no one: prints each request's response time in nanoseconds
 *                                                  if RATE requests per second are due evenly for SECONDS
 *
 * The service is computed on a clock of its own: the worker that is free first begins a request that arrives at t, and
 * the answer is due at a time that does not depend on how busy the machine is. Times are in milliseconds and count from
 * the first request.
 *
 *     workers=1     the number of requests that are served at a time
 *     fixed=0       the time that every request takes
 *     exp=0         the mean of an exponential time that is added
 *     grow=0        the time that is added for every second that has passed
 *     start=0       the time that is added to a request at the beginning; it falls linearly to 0 within `warm`
 *     warm=1000
 *     stall=0       the length of stalls, during which nothing is served
 *     at=0          the time of the first stall
 *     every=0       the time from the start of a stall to the start of the next; 0: there is only one
 *     random=0      the number of stalls per second at random times, with exponential lengths of mean `stall`
 *     pause=0       the time for which nothing is served after every `each` requests
 *     each=1000
 *     slow=0        the time that is added to some answers, without delaying others
 *     share=0       the share of the requests with slow answers
 *     dead=0        if n: every n-th connection is never answered
 *     steps=0       the number of multiplications, in thousands, that are done for each request before anything else
 *     leak=0        the number of bytes that are leaked by some requests
 *     leakshare=1   the share of the requests that leak
 *     errors=0      the share of the requests that are answered with status 500
 *     body=13       the number of bytes of an answer
 *     seed=1
 *
 * With PLANTED_LOG=FILE in its environment it writes at SIGTERM one line for each request, in order of arrival: when it
 * arrived, when its answer was due, and when the answer was sent, in nanoseconds on the monotonic clock; 0 for no
 * answer. On a busy machine the third time is later than the second; a client sees the third.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000.0
enum { CONNECTIONS = 65536, WORKERS = 64, EVENTS = 512 };

static struct {
    double workers, fixed, exp, grow, start, warm, stall, at, every, random, pause, each, slow, share, dead, steps,
        leak, leakshare, errors, body, seed;
} plan = { .workers = 1, .warm = 1000, .each = 1000, .leakshare = 1, .body = 13, .seed = 1 };

static const struct { const char *name; double *value; } options[] = {
    { "workers", &plan.workers }, { "fixed", &plan.fixed }, { "exp", &plan.exp }, { "grow", &plan.grow },
    { "start", &plan.start }, { "warm", &plan.warm }, { "stall", &plan.stall }, { "at", &plan.at },
    { "every", &plan.every }, { "random", &plan.random }, { "pause", &plan.pause }, { "each", &plan.each },
    { "slow", &plan.slow }, { "share", &plan.share }, { "dead", &plan.dead }, { "steps", &plan.steps }, { "leak", &plan.leak },
    { "leakshare", &plan.leakshare }, { "errors", &plan.errors }, { "body", &plan.body }, { "seed", &plan.seed },
};

struct answer { uint64_t due; size_t entry; int fd; unsigned life; int bad; };
static struct answer *waiting;
static size_t count, room;

static unsigned life[CONNECTIONS];
static char dead[CONNECTIONS];
static unsigned accepted;

static uint64_t first, requests, held_until;
static struct stall { uint64_t from, to; } *stalls;
static size_t stalls_known, stalls_past, stall_room;
static double free_at[WORKERS];

static struct { uint64_t came, due, sent; } *entries;
static size_t written, entry_room;

static volatile sig_atomic_t over;
static uint64_t state;
static volatile uintptr_t lost;
static volatile uint64_t computed = 1;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double unit(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double exponential(double mean) { return mean > 0 ? -log(unit()) * mean : 0; }

/* The i-th stall. Stalls are drawn in order and kept, since one worker may still be before a stall that another
 * has passed. */
static const struct stall *stall(size_t i) {
    while (stalls_known <= i) {
        struct stall last = stalls_known ? stalls[stalls_known - 1] : (struct stall){ 0, 0 }, next = { UINT64_MAX, UINT64_MAX };
        if (plan.random > 0) {
            next.from = (stalls_known ? last.to : first) + (uint64_t)exponential(1e9 / plan.random);
            next.to = next.from + (uint64_t)exponential(plan.stall * MS);
        } else if (stalls_known == 0) {
            next.from = first + (uint64_t)(plan.at * MS);
            next.to = next.from + (uint64_t)(plan.stall * MS);
        } else if (plan.every > 0) {
            next.from = last.from + (uint64_t)(plan.every * MS);
            next.to = last.to + (uint64_t)(plan.every * MS);
        }
        if (stalls_known == stall_room) {
            stall_room = stall_room ? stall_room * 2 : 64;
            stalls = realloc(stalls, stall_room * sizeof *stalls);
        }
        stalls[stalls_known++] = next;
    }
    return &stalls[i];
}

/* When work that begins at a given time and takes a given time is done. No work is done during a stall. */
static double worked(uint64_t came, double begun, double takes) {
    if (plan.stall <= 0) return begun + takes;
    while (stall(stalls_past)->to <= came) stalls_past++;
    for (size_t i = stalls_past; begun + takes > (double)stall(i)->from; i++) {
        if (begun >= (double)stall(i)->to) continue;
        takes -= fmax(0, (double)stall(i)->from - begun);
        begun = (double)stall(i)->to;
    }
    return begun + takes;
}

static uint64_t served(uint64_t came) {
    double since = (double)(came - first), takes = plan.fixed * MS + exponential(plan.exp * MS) + plan.grow * MS * since / 1e9;
    if (plan.warm > 0 && since < plan.warm * MS) takes += plan.start * MS * (1 - since / (plan.warm * MS));
    int worker = 0;
    for (int i = 1; i < (int)plan.workers; i++) if (free_at[i] < free_at[worker]) worker = i;
    double begun = fmax((double)came, free_at[worker]);
    if (begun < (double)held_until) begun = (double)held_until;
    double done = worked(came, begun, takes);
    free_at[worker] = done;
    if (plan.pause > 0 && requests % (uint64_t)plan.each == 0) held_until = (uint64_t)(done + plan.pause * MS);
    if (plan.share > 0 && unit() < plan.share) done += plan.slow * MS;
    return (uint64_t)done;
}

static void begin(uint64_t came) {
    if (!first) first = came;
    requests++;
}

static void truth(double rate, double seconds) {
    const uint64_t from = 1000000000u;
    for (uint64_t i = 0; (double)i < rate * seconds; i++) {
        uint64_t came = from + (uint64_t)((double)i * 1e9 / rate);
        begin(came);
        printf("%llu\n", (unsigned long long)(served(came) - came));
    }
}

static void put(struct answer one) {
    if (count == room) {
        room = room ? room * 2 : 1024;
        waiting = realloc(waiting, room * sizeof *waiting);
    }
    size_t i = count++;
    for (; i > 0 && waiting[(i - 1) / 2].due > one.due; i = (i - 1) / 2) waiting[i] = waiting[(i - 1) / 2];
    waiting[i] = one;
}

static struct answer take(void) {
    struct answer top = waiting[0], last = waiting[--count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && waiting[child + 1].due < waiting[child].due) child++;
        if (waiting[child].due >= last.due) break;
        waiting[i] = waiting[child];
    }
    waiting[i] = last;
    return top;
}

/* The index of the entry. */
static size_t note(uint64_t came, uint64_t due) {
    if (written == entry_room) {
        entry_room = entry_room ? entry_room * 2 : 65536;
        entries = realloc(entries, entry_room * sizeof *entries);
    }
    entries[written].came = came;
    entries[written].due = due;
    entries[written].sent = 0;
    return written++;
}

static void end(int signal) { (void)signal; over = 1; }

static void readable(int fd) {
    char text[8192];
    ssize_t length = read(fd, text, sizeof text);
    if (length <= 0) {
        if (length < 0 && errno == EAGAIN) return;
        life[fd]++;
        close(fd);
        return;
    }
    uint64_t came = now();
    begin(came);
    if (dead[fd]) { note(came, 0); return; }
    for (uint64_t i = 0; i < (uint64_t)(plan.steps * 1000); i++) computed = computed * 6364136223846793005u + 1;
    if (plan.leak > 0 && unit() < plan.leakshare) {
        char *block = malloc((size_t)plan.leak);
        memset(block, 1, (size_t)plan.leak);
        lost += (uintptr_t)block;
    }
    uint64_t due = served(came);
    put((struct answer){ due, note(came, due), fd, life[fd], plan.errors > 0 && unit() < plan.errors });
}

int main(int words, char **word) {
    int simulated = words > 3 && !strcmp(word[1], "truth");
    for (int i = simulated ? 4 : 2; i < words; i++) {
        char *equals = strchr(word[i], '=');
        size_t known = 0;
        while (known < sizeof options / sizeof *options && (!equals || strlen(options[known].name) != (size_t)(equals - word[i])
               || strncmp(options[known].name, word[i], (size_t)(equals - word[i])))) known++;
        if (known == sizeof options / sizeof *options) { fprintf(stderr, "unknown: %s\n", word[i]); return 2; }
        *options[known].value = atof(equals + 1);
    }
    state = 88172645463325252u + (uint64_t)plan.seed * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < 8; i++) unit();
    if (simulated) { truth(atof(word[2]), atof(word[3])); return 0; }
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(words > 1 ? atoi(word[1]) : 0)),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof address;
    if (bind(listener, (void *)&address, size) || listen(listener, 4096)) { perror("listen"); return 1; }
    getsockname(listener, (void *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    char *good = malloc((size_t)plan.body + 200);
    size_t head = (size_t)sprintf(good, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: %zu\r\n\r\n", (size_t)plan.body);
    memset(good + head, 'x', (size_t)plan.body);
    const char *bad = "HTTP/1.1 500 Planted\r\nContent-Length: 0\r\n\r\n";
    int poller = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, events[EVENTS];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = timer;
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    uint64_t armed = 0;
    while (!over) {
        while (count && waiting[0].due <= now()) {
            struct answer due = take();
            if (due.life == life[due.fd]) {
                entries[due.entry].sent = now();
                (void)!send(due.fd, due.bad ? bad : good, due.bad ? strlen(bad) : head + (size_t)plan.body, MSG_NOSIGNAL);
            }
        }
        if (count && waiting[0].due != armed) {
            armed = waiting[0].due;
            struct itimerspec wake = { .it_value = { (time_t)(armed / 1000000000u), (long)(armed % 1000000000u) } };
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &wake, 0);
        }
        int found = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < found; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                for (int client; (client = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0;) {
                    if (client >= CONNECTIONS) { close(client); continue; }
                    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    life[client]++;
                    dead[client] = plan.dead > 0 && ++accepted % (unsigned)plan.dead == 0;
                    event.data.fd = client;
                    epoll_ctl(poller, EPOLL_CTL_ADD, client, &event);
                }
            } else if (fd == timer) {
                uint64_t expired;
                (void)!read(timer, &expired, sizeof expired);
                armed = 0;
            } else {
                readable(fd);
            }
        }
    }
    const char *path = getenv("PLANTED_LOG");
    FILE *log = path ? fopen(path, "w") : NULL;
    if (log) {
        for (size_t i = 0; i < written; i++)
            fprintf(log, "%llu %llu %llu\n", (unsigned long long)entries[i].came, (unsigned long long)entries[i].due,
                    (unsigned long long)entries[i].sent);
        fclose(log);
    }
    return 0;
}

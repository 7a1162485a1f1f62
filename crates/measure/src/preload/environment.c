#include "environment.h"

#include "programs.h"
#include "text.h"

extern char **environ __attribute__((weak));
extern int dladdr(const void *, struct place *) __attribute__((weak));

/* The end of what Scruple adds to ASAN_OPTIONS. The last colon, which other programs do not write, marks it. */
static const char SANITIZER[] = "verify_asan_link_order=0:";

static const char DATA[] = "SCRUPLE_HEAP=", PRELOAD[] = "LD_PRELOAD=", OPTIONS[] = "ASAN_OPTIONS=";
enum { MOST = 1024 };

static char library[MOST]; /* empty: nothing is hidden */
static char data[MOST];    /* empty: the library needs no file of data */
static int for_sanitizers;

static char *put(char *at, const char *text) {
    while (*text) *at++ = *text++;
    *at = 0;
    return at;
}
static size_t count(words variables) {
    size_t n = 0;
    while (variables && variables[n]) n++;
    return n;
}

/* The rest of LD_PRELOAD after our library; NULL if our library is not the first. */
static const char *behind_library(const char *value) {
    if (!begins(value, library)) return NULL;
    value += length(library);
    return *value == ':' || *value == ' ' ? value + 1 : *value ? NULL : value;
}

/* The length of the user's own options; SIZE_MAX if Scruple's do not follow them. */
static size_t own_options(const char *value) {
    size_t all = length(value), ours = sizeof SANITIZER - 1;
    if (all < ours || !begins(value + all - ours, SANITIZER)) return SIZE_MAX;
    return all > ours ? all - ours - 1 : 0;
}

/* The variable without Scruple's part; NULL if nothing is left. A changed variable is written to `*text`. */
static char *cleaned(char *variable, char **text) {
    char *start = *text;
    if (begins(variable, DATA)) return NULL;
    if (begins(variable, PRELOAD)) {
        const char *rest = behind_library(variable + sizeof PRELOAD - 1);
        if (!rest) return variable;
        if (!*rest) return NULL;
        *text = put(put(start, PRELOAD), rest) + 1;
        return start;
    }
    if (begins(variable, OPTIONS)) {
        size_t own = own_options(variable + sizeof OPTIONS - 1);
        if (own == SIZE_MAX) return variable;
        for_sanitizers = 1;
        if (own == 0) return NULL;
        for (size_t i = 0; i < sizeof OPTIONS - 1 + own; i++) *(*text)++ = variable[i];
        *(*text)++ = 0;
        return start;
    }
    return variable;
}

void hide_variables(const char *data_path) {
    struct place place;
    if (library[0] || !environ || !dladdr || !dladdr(hide_variables, &place) || !place.file) return;
    if (length(place.file) >= MOST || length(data_path) >= MOST) return;
    size_t n = count(environ), bytes = (n + 1) * sizeof(char *);
    for (size_t i = 0; i < n; i++)
        if (begins(environ[i], PRELOAD) || begins(environ[i], OPTIONS)) bytes += length(environ[i]) + 1;
    char **fresh = system_take(bytes), *text;
    if (!fresh) return;
    put(library, place.file);
    put(data, data_path);
    text = (char *)(fresh + n + 1);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        char *variable = cleaned(environ[i], &text);
        if (variable) fresh[kept++] = variable;
    }
    /* The old array is replaced instead of changed, because the kernel's auxiliary vector follows it in memory. */
    environ = fresh;
}

/* ---- for started programs ---- */

static int is_ours(const char *variable) {
    return begins(variable, DATA) || begins(variable, PRELOAD) || (for_sanitizers && begins(variable, OPTIONS));
}

size_t room_for(words envp) {
    size_t room = (count(envp) + 4) * sizeof(char *) + 2 * MOST + 128;
    for (size_t i = 0; envp && envp[i]; i++)
        if (is_ours(envp[i])) room += length(envp[i]);
    return room;
}

char *const *complete(words envp, char *area) {
    if (!library[0]) return envp;
    /* After a change of root or user the files may be unreadable, and the loader would print an error. */
    if (!system_readable(library) || (data[0] && !system_readable(data))) {
        cannot_follow();
        return envp;
    }
    char **all = (char **)area, *text = area + (count(envp) + 4) * sizeof(char *);
    const char *preload = "", *options = "";
    size_t n = 0;
    for (size_t i = 0; envp && envp[i]; i++) {
        if (!is_ours(envp[i])) all[n++] = envp[i];
        else if (begins(envp[i], PRELOAD)) preload = envp[i] + sizeof PRELOAD - 1;
        else if (begins(envp[i], OPTIONS)) options = envp[i] + sizeof OPTIONS - 1;
    }
    const char *rest = behind_library(preload);
    if (rest) preload = rest;
    all[n++] = text;
    text = put(put(text, PRELOAD), library);
    if (*preload) text = put(put(text, ":"), preload);
    if (data[0]) {
        all[n++] = ++text;
        text = put(put(text, DATA), data);
    }
    if (for_sanitizers) {
        all[n++] = ++text;
        text = put(put(text, OPTIONS), options);
        if (own_options(options) == SIZE_MAX) put(*options ? put(text, ":") : text, SANITIZER);
    }
    all[n] = NULL;
    return all;
}

/* ---- for functions that use the process's environment ---- */

static int busy, shown;
static char **before, **during;
static char *user_preload, *user_options; /* as they were before */
static char *area; /* never freed: another thread may still read it */
static size_t area_size;

static void lock(void) {
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) system_yield();
}
static void unlock(void) { __atomic_store_n(&busy, 0, __ATOMIC_RELEASE); }

static int has_room(size_t wanted) {
    if (wanted <= area_size) return 1;
    char *fresh = system_take(2 * wanted);
    if (!fresh) return 0;
    area = fresh;
    area_size = 2 * wanted;
    return 1;
}

void show_variables(void) {
    if (!library[0]) return;
    lock();
    if (shown++ == 0) {
        before = environ;
        user_preload = user_options = NULL;
        for (size_t i = 0; before && before[i]; i++) {
            if (begins(before[i], PRELOAD)) user_preload = before[i];
            if (begins(before[i], OPTIONS)) user_options = before[i];
        }
        during = has_room(room_for(environ)) ? (char **)complete(environ, area) : environ;
        environ = during;
    }
    unlock();
}

/* The variable as it was before show_variables; NULL if it did not exist. */
static char *original(char *variable) {
    if (!is_ours(variable)) return variable;
    return begins(variable, PRELOAD) ? user_preload : begins(variable, OPTIONS) ? user_options : NULL;
}

/* Hides the variables again. If another thread has changed the environment in between, its changes are kept: it
 * made them in a copy of the array, and may have freed the original. */
void hide_again(void) {
    if (!library[0]) return;
    lock();
    if (--shown == 0 && environ == during) {
        environ = before;
    } else if (shown == 0 && environ) {
        size_t kept = 0;
        for (size_t i = 0; environ[i]; i++) {
            char *variable = original(environ[i]);
            if (variable) environ[kept++] = variable;
        }
        environ[kept] = NULL;
    }
    unlock();
}

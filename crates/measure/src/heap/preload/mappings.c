#include "mappings.h"

/* The beginning of what dl_iterate_phdr passes to its callback; <link.h> would need the C library's other headers. */
struct library {
    uint64_t base;
    const char *name;
    const void *segments;
    uint16_t count;
    unsigned long long loads, unloads;
};
extern int dl_iterate_phdr(int (*)(struct library *, size_t, void *), void *) __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* musl's list for debuggers. */
struct linked {
    uint64_t base;
    char *name;
    void *dynamic;
    struct linked *next;
};
struct debugged {
    int version;
    struct linked *first;
};
extern struct debugged *_dl_debug_addr __attribute__((weak));

static int take_counts(struct library *library, size_t size, void *sum) {
    (void)size;
    *(uint64_t *)sum = library->loads + library->unloads;
    return 1; /* the first has the counts */
}

/* musl holds its lock while it loads a library, and may allocate meanwhile, so it must not be asked; it never
 * unloads. */
uint64_t loaded_libraries(int forked) {
    uint64_t sum = 0;
    if (forked) return __atomic_load_n(&calls_of_dlopen, __ATOMIC_RELAXED);
    if (gnu_get_libc_version && dl_iterate_phdr) dl_iterate_phdr(take_counts, &sum);
    else if (&_dl_debug_addr && _dl_debug_addr)
        for (struct linked *each = _dl_debug_addr->first; each; each = each->next) sum++;
    return sum;
}

int begin_text(struct text *text) {
    text->at = text->end = 0;
    text->file = system_open("/proc/self/maps", O_RDONLY);
    return text->file >= 0;
}

void end_text(struct text *text) {
    if (text->file >= 0) system_close(text->file);
    text->file = -1;
}

/* Reads a line without its end; returns its length, 0 after the last. */
static uint64_t next_line(struct text *text) {
    for (uint64_t n = 0;;) {
        if (text->at == text->end) {
            long got = system_read(text->file, text->chunk, sizeof text->chunk);
            text->at = 0;
            text->end = got > 0 ? (uint32_t)got : 0;
            if (got <= 0) return 0;
        }
        char c = text->chunk[text->at++];
        if (c == '\n') return text->line[n] = 0, n;
        if (n < sizeof text->line - 1) text->line[n++] = c;
    }
}

/* The hexadecimal number at `*at`, which is moved past the number and the character after it. */
static uint64_t number(const char **at) {
    uint64_t value = 0;
    for (;; ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9') value = value * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f') value = value * 16 + (uint64_t)(c - 'a' + 10);
        else break;
    }
    if (**at) ++*at;
    return value;
}

uint64_t next_code(struct text *text) {
    for (uint64_t n; (n = next_line(text)) > 0;) {
        const char *at = text->line;
        number(&at);
        number(&at);
        if (at[0] && at[1] && at[2] == 'x') return n;
    }
    return 0;
}

static int ends_with(const char *line, uint64_t length, const char *end) {
    uint64_t n = 0;
    while (end[n]) n++;
    for (uint64_t i = 0; n <= length && i < n; i++)
        if (line[length - n + i] != end[i]) return 0;
    return n <= length;
}

int mapping_around(struct text *text, uint64_t address, uint64_t *low, uint64_t *high, int *is_main) {
    int found = 0;
    if (!begin_text(text)) return 0;
    for (uint64_t length; !found && (length = next_line(text)) > 0;) {
        *is_main = ends_with(text->line, length, " [stack]");
        const char *at = text->line;
        *low = number(&at);
        *high = number(&at);
        found = address >= *low && address < *high;
    }
    end_text(text);
    return found;
}

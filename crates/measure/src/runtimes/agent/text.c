/* Reads the reports of runtimes that can only write to standard error, and removes them before they are written.
 * The program's stream stays what it is (a terminal, a file, closed), and shows nothing that the user did not ask
 * for. */
#include <stdio.h>

#include "agent.h"

extern void *dlsym(void *, const char *) WEAK;
extern char *dlerror(void) WEAK;
extern const char *gnu_get_libc_version(void) WEAK;
extern int vsnprintf(char *, size_t, const char *, va_list) WEAK;
#pragma weak stderr

#define NEXT ((void *)-1L)
#define caller() __builtin_return_address(0)

static struct {
    int (*vfprintf)(FILE *, const char *, va_list);
    int (*vfprintf_chk)(FILE *, int, const char *, va_list);
    int (*fputc)(int, FILE *);
    long (*write)(int, const void *, size_t);
} real;

__attribute__((constructor(101))) static void resolve(void) {
    if (!dlsym) return;
    real.vfprintf = dlsym(NEXT, "vfprintf");
    real.fputc = dlsym(NEXT, "fputc");
    real.write = dlsym(NEXT, "write");
    if (gnu_get_libc_version) real.vfprintf_chk = dlsym(NEXT, "__vfprintf_chk");
    if (dlerror) dlerror();
}

static struct {
    unsigned char heard, swallow;
} listening[RUNTIMES];
static int any; /* whether any runtime is listened to; in most processes none is */
static const char *java_options;

/* The return address of the function through which GHC's runtime writes its reports; it writes errors through
 * another. */
static void *ghc_reports_from;

/* The state of hiding a warning: a program built without runtime options warns that GHCRTS is ignored, in three
 * writes (name, text, end of line). The name is held back until the next write shows which message it begins. */
static enum { NO_WARNING, EXPECTED, NAME_HELD, LINE_END } warning;
static char held[300];

void listen_to(enum runtime runtime, int swallow, const char *user) {
    listening[runtime].heard = 1;
    listening[runtime].swallow = (unsigned char)swallow;
    if (runtime == JVM) java_options = user;
    if (runtime == GHC && swallow && !(user && *user)) warning = EXPECTED;
    any = 1;
}

/* Notes a pause from the end of GHC's line about a collection, `%6.3f %6.3f … (Gen: %2d)`, which is written as
 * soon as the collection has ended. The second number is its duration in seconds, to thousandths. */
static void note_ghc_pause(const char *line) {
    if (!find(line, "(Gen:")) return;
    uint64_t thousandths = 0, ended = now();
    while (*line == ' ') line++;
    while (*line && *line != ' ') line++;
    while (*line == ' ') line++;
    for (; *line && *line != ' '; line++)
        if (*line >= '0' && *line <= '9') thousandths = thousandths * 10 + (uint64_t)(*line - '0');
    note_pause(GHC, ended - thousandths * 1000000, ended);
}

static void keep(enum runtime runtime, const char *format, va_list list) {
    char line[2048];
    if (!vsnprintf) return;
    va_list copy;
    va_copy(copy, list);
    int n = vsnprintf(line, sizeof line, format, copy);
    va_end(copy);
    if (n > 0 && runtime == GHC) note_ghc_pause(line);
    if (n > 0) append(runtime, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static int plain(FILE *stream, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = real.vfprintf ? real.vfprintf(stream, format, list) : -1;
    va_end(list);
    return n;
}

static int is_ghc_report(const char *format, void *from) {
    if (ghc_reports_from) return from == ghc_reports_from;
    if (!begins(format, "<<ghc:") && !find(format, "bytes allocated in the heap") &&
        !begins(format, "    Alloc    Copied"))
        return 0;
    ghc_reports_from = from;
    return 1;
}

/* Whether the format is that of a line in the runtime's summary: `word_with_underscores: %...`. */
static int is_ocaml_summary(const char *format) {
    while ((*format >= 'a' && *format <= 'z') || *format == '_') format++;
    return begins(format, ": %");
}

/* Examines a text for standard error. True if it is a report for Scruple, which must not be written. */
static int hear(FILE *stream, const char *format, va_list list, void *from) {
    if (warning != NO_WARNING) {
        int was = warning;
        warning = NO_WARNING;
        if (was == EXPECTED && same(format, "%s: ")) {
            va_list copy;
            va_copy(copy, list);
            const char *name = va_arg(copy, const char *);
            put(held, held + sizeof held, name ? name : "");
            va_end(copy);
            warning = NAME_HELD;
            return 1;
        }
        if (was == NAME_HELD && begins(format, "Warning: Ignoring GHCRTS")) {
            struct record *record = own(GHC);
            if (record) record->flags = (record->flags & ~(uint32_t)ASKED) | REFUSED;
            warning = LINE_END;
            return 1;
        }
        if (was == NAME_HELD) plain(stream, "%s: ", held);
        if (was == LINE_END && same(format, "\n")) return 1;
        if (was == EXPECTED) warning = EXPECTED;
    }
    if (listening[GHC].heard && is_ghc_report(format, from)) {
        keep(GHC, format, list);
        return listening[GHC].swallow;
    }
    if (listening[OCAML].heard && is_ocaml_summary(format)) {
        keep(OCAML, format, list);
        return listening[OCAML].swallow;
    }
    if (listening[JVM].heard && begins(format, "Picked up %s: %s")) {
        va_list copy;
        va_copy(copy, list);
        const char *name = va_arg(copy, const char *);
        int ours = name && same(name, "JAVA_TOOL_OPTIONS");
        if (ours) listening[JVM].heard = 0;
        if (ours && java_options) plain(stream, format, name, java_options);
        va_end(copy);
        return ours;
    }
    return 0;
}

#define TO_STDERR(stream) (any && &stderr && (stream) == stderr)

EXPORT int vfprintf(FILE *stream, const char *format, va_list list) {
    if (TO_STDERR(stream) && hear(stream, format, list, caller())) return 1;
    if (!real.vfprintf) resolve();
    return real.vfprintf ? real.vfprintf(stream, format, list) : -1;
}

EXPORT int fprintf(FILE *stream, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = 1;
    if (!TO_STDERR(stream) || !hear(stream, format, list, caller())) {
        if (!real.vfprintf) resolve();
        n = real.vfprintf ? real.vfprintf(stream, format, list) : -1;
    }
    va_end(list);
    return n;
}

static int checked(FILE *stream, int flag, const char *format, va_list list) {
    if (!real.vfprintf_chk && !real.vfprintf) resolve();
    if (real.vfprintf_chk) return real.vfprintf_chk(stream, flag, format, list);
    return real.vfprintf ? real.vfprintf(stream, format, list) : -1;
}

EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list) {
    if (TO_STDERR(stream) && hear(stream, format, list, caller())) return 1;
    return checked(stream, flag, format, list);
}

EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = 1;
    if (!TO_STDERR(stream) || !hear(stream, format, list, caller())) n = checked(stream, flag, format, list);
    va_end(list);
    return n;
}

EXPORT int fputc(int character, FILE *stream) {
    if (TO_STDERR(stream) && warning != NO_WARNING) {
        int was = warning;
        if (was != EXPECTED) warning = NO_WARNING;
        if (was == LINE_END && character == '\n') return character;
        if (was == NAME_HELD) plain(stream, "%s: ", held);
    }
    if (!real.fputc) resolve();
    return real.fputc ? real.fputc(character, stream) : -1;
}

/* Keeps Racket's log, in which each collection is one write of a whole line. */
EXPORT long write(int file, const void *bytes, size_t size) {
    if (any && file == 2 && listening[RACKET].swallow && size > 6 && begins(bytes, "GC: ") &&
        ((const char *)bytes)[size - 1] == '\n') {
        append(RACKET, bytes, size);
        return (long)size;
    }
    if (!real.write) resolve();
    if (real.write) return real.write(file, bytes, size);
    return -1;
}

char *put_number(char *at, char *end, uint64_t number) {
    char digits[24];
    int n = 0;
    do digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n && at + 1 < end) *at++ = digits[--n];
    *at = 0;
    return at;
}

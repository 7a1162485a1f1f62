/* A library that is loaded into every process of a measured program and looks for a language runtime there.
 *
 * It keeps four rules. It links to no C library: the functions that it calls are weak symbols, checked first. It
 * allocates nothing. It leaves no descriptor open. In a process without a known runtime it does nothing. */
#ifndef SCRUPLE_AGENT_H
#define SCRUPLE_AGENT_H

#include <stdarg.h>

#include "../../preload/system.h"
#include "../../preload/text.h"

#define WEAK __attribute__((weak))

/* The numbers of runtimes in records; runtimes/mod.rs lists them in the same order. */
enum runtime {
    GHC = 1, PYTHON, LIBGC, OCAML, RUBY, NODE, JVM, PHP, RACKET, LUA, R_LANGUAGE, PERL, SBCL, ERLANG,
    GO_WHICH_IS_NOT_ASKED_FROM_HERE, PYPY, LUAJIT, CHEZ, MONO, DOTNET,
    RUNTIMES
};

enum state { RUNNING = 0, EXITED = 1, EXECUTED = 2 };

enum flag {
    FORKED = 1,     /* forked from a process that had counted already */
    ASKED = 2,      /* the runtime was asked to report through its own variable */
    REPORTED = 4,   /* the values are final */
    CONTINUOUS = 8, /* the values are correct at every moment: a killed process loses nothing */
    REFUSED = 16,   /* the user's own settings forbid asking */
    REPLACED = 32,  /* the program has replaced the hooked functions */
    CHILD = 64,     /* begun by CPython's allocators in a forked process */
};

#define SPILLED UINT64_MAX /* all of the text is in the file */

/* The report of one process about one runtime: a shared mapping of its own file. */
struct record {
    char magic[8];
    uint32_t runtime;
    int32_t pid;
    uint32_t state;
    uint32_t flags;
    uint64_t value[60];
    uint64_t text_size; /* of the text in this record; SPILLED if it did not fit */
    char text[8192 - 512];
};

static inline int same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}
/* The first occurrence of `part` in `text`, or null. */
static inline const char *find(const char *text, const char *part) {
    for (; *text; text++)
        if (begins(text, part)) return text;
    return NULL;
}
/* Copies `text` to `at` while there is room before `end`. Returns the new end of the text, which is always
 * terminated. */
static inline char *put(char *at, char *end, const char *text) {
    while (*text && at + 1 < end) *at++ = *text++;
    *at = 0;
    return at;
}
char *put_number(char *at, char *end, uint64_t number);
static inline uint64_t now(void) { return nanoseconds(CLOCK_MONOTONIC); }

/* ---- agent.c ---- */
extern const char *folder; /* the folder of the records; null while there is nothing to do */
struct record *claim(enum runtime runtime);
struct record *own(enum runtime runtime); /* the record that this process itself has made, or null */
void append(enum runtime runtime, const char *text, size_t size);
void note_pause(enum runtime runtime, uint64_t from, uint64_t to); /* moments on the monotonic clock */
int every_collection(void); /* whether to report each collection */
int full_collections(void); /* whether to report live data after collections of the whole heap */
const char *variable(const char *name);
void follow_forks(void);
int asked_by(const char *part_of_name);
int asker_holds(const char *text);

/* ---- one file each ---- */
void start_ghc(void);
const char *ask_ghc(const char *user);
void finish_ghc(struct record *record);
void fork_ghc(struct record *record);
void start_python(void);
void start_libgc(void);
void finish_libgc(struct record *record);
void fork_libgc(struct record *record);
const char *ask_java(const char *user);
int node_is_restricted(const char *user);
void before_v8_starts(void);
const char *watch_node_collections(const char *user);
const char *limit_node_wait(const char *user);
const char *end_node_wait(const char *user);
const char *ask_php(const char *user);
void fork_php(struct record *record);
void listen_to(enum runtime runtime, int swallow, const char *user);

#endif

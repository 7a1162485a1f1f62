/* The data file that counted processes write and the reader reads.
 *
 * The file is a sequence of units of one memory page each (`header.unit` bytes). Unit 0 is the header. Every process
 * claims a unit by adding to `header.next`; it holds a process head and slots for the process's threads. Further units
 * hold more slots. Numbers are in the machine's byte order. format.rs reads this layout; a change here needs a new
 * VERSION there. */
#ifndef SCRUPLE_LAYOUT_H
#define SCRUPLE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define MAGIC UINT64_C(0x31706165682e6373) /* "sc.heap1" */
#define VERSION 4

/* The modes: what one build of the library counts. */
#define MODE_COUNTS 0    /* calls and requested bytes */
#define MODE_USABLE 1    /* and live and peak bytes, by malloc_usable_size: the layout of memory is untouched */
#define MODE_REQUESTED 2 /* and live and peak bytes as requested: every block grows by a two-byte trailer */

/* The change of a thread's live bytes, in bytes, after which they are added to its process's. */
#define BATCH (64 * 1024)

/* Values of `owner` that are not thread ids. */
#define OWNER_NONE 0
#define OWNER_NOTE -1

/* The counts of one thread. Only that thread writes them, so plain additions suffice. 128 bytes keep threads on
 * separate cache lines. A slot outlives its thread and a later thread takes it over: its sums never decrease. */
struct slot {
    int32_t owner; /* thread id */
    uint32_t unused;
    uint64_t allocations;
    uint64_t bytes;    /* requested */
    uint64_t frees;
    uint64_t returned; /* freed bytes, usable or requested by mode */
    uint64_t taken;    /* usable bytes allocated; with MODE_REQUESTED `bytes` has the sum and this stays 0 */
    int64_t top;       /* the maximum of taken - returned since the last settlement */
    int64_t settled;   /* taken - returned at the last settlement */
    uint64_t bound;    /* the next settlement is due when `returned` exceeds this */
    uint64_t next;     /* the block with which `bytes` reaches this is recorded */
    uint64_t recording;     /* an address in the process, of no meaning elsewhere */
    uint8_t fill[40];
};

/* A slot that announces a program about to be started. If that program does not load this library, the note shows
 * the reader that its counts are missing. */
struct note {
    int32_t owner; /* OWNER_NOTE */
    int32_t pid;
    uint32_t since; /* a record of that pid in this unit or a later one shows that the program loaded the library */
    uint32_t state; /* NOTE_… */
    char path[112]; /* zero-padded; the tail of a longer path */
};
#define NOTE_OPEN 1
#define NOTE_CANCELLED 2

#define KIND_PROCESS 1
#define KIND_THREADS 2

#define ORIGIN_EXEC 1 /* a program was started */
#define ORIGIN_FORK 2 /* a process copied itself */

#define FLAG_FOREIGN_MALLOC 1 /* the program's `malloc` is probably not ours */
#define FLAG_NO_SIZES 2       /* the allocator does not tell the sizes of its blocks */

struct process {
    uint32_t kind;  /* KIND_…, written last */
    uint32_t owner; /* the unit of the process itself */
    int32_t pid;
    int32_t parent;
    uint32_t origin;
    uint32_t flags;
    uint32_t threads; /* the number that ever allocated or freed */
    uint32_t unused;
    int64_t inherited; /* live bytes copied by fork */
    int64_t live;      /* settled */
    int64_t peak;      /* the maximum of the settled account */
    uint64_t began;    /* when it started, of CLOCK_MONOTONIC, ns; 0 unless sites are recorded */
    int64_t inherited_blocks;
    uint8_t fill[56];
    char exe[128]; /* zero-padded; the tail of a longer path */
};

/* A live process, for the peak of the tree. `inherited` is the number of bytes that it shares with the process
 * that forked it, which are not counted again. */
struct member {
    int32_t pid; /* 0: free */
    uint32_t unused;
    int64_t live; /* settled */
    int64_t inherited;
};
#define MEMBERS 160

struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t unit;  /* bytes */
    uint32_t mode;  /* MODE_… that the reader asks for */
    uint32_t limit; /* units that may be claimed */
    uint32_t next;  /* the next unit to be claimed */
    uint32_t refused; /* failed claims; their counts are in `common` */
    int64_t tree_peak; /* the maximum of all members' live bytes together */
    uint32_t members;  /* the number of `member` that were ever used */
    uint32_t at_once;  /* the largest number that were in use at once */
    uint32_t turned_away; /* processes that are no member: none was free, or their ids are of another namespace */
    uint32_t piece;       /* bytes of a piece of the records' file; 0: nothing is recorded */
    uint64_t mean;        /* bytes between recorded ones; 1: every block is recorded */
    uint64_t seed;
    uint32_t most_pieces;
    uint32_t pieces; /* the next piece to be claimed; no less than those in the file */
    uint64_t lost_samples;
    uint64_t lost_frees;
    uint32_t lost_maps;
    uint32_t namespace; /* of process ids, of the first member; 0: unknown */
    uint8_t fill[24];
    struct slot common; /* the counts of all threads without a slot, added atomically */
    struct member member[MEMBERS];
};

/* ---- the records' file ----
 *
 * Its name is the data file's with NAME_OF_RECORDS as the last letters. It is a sequence of pieces; each belongs to a
 * thread, which appends records without a lock. */
#define NAME_OF_RECORDS "site"

#define KIND_PIECE 1
struct piece {
    uint32_t kind;  /* written last */
    uint32_t owner; /* the unit of the process */
    uint64_t used;  /* bytes that are written, with this head */
    uint8_t fill[16];
};

/* Every record begins with its size in bytes, a multiple of 8, and its kind. */
#define RECORD_SAMPLE 1
#define RECORD_FREE 2
#define RECORD_MAP 3

#if defined(__x86_64__)
#define REGISTERS 8 /* rip, rsp, rbp, rbx, r12 to r15 */
#else
#define REGISTERS 14 /* pc, sp, x19 to x30 */
#endif

#define SAMPLE_CUT 1      /* the stack is longer */
#define SAMPLE_NO_STACK 2 /* the kernel did not let it be read */

/* A chosen allocation. `fresh` bytes of the stack follow; the others are those of the previous sample in this piece,
 * whose stack ends at the same address. */
struct sample {
    uint32_t size;
    uint16_t kind, flags;
    uint64_t time;  /* of CLOCK_MONOTONIC, ns */
    uint64_t bytes; /* requested */
    int64_t live;   /* of the process, with this block */
    uint32_t map;   /* the number of the map that was in force, or of the one before it; 0: none */
    uint32_t thread;
    uint32_t stack; /* bytes, from the stack pointer on */
    uint32_t fresh;
    uint64_t registers[REGISTERS];
};

/* A chosen block was freed. */
struct free_record {
    uint32_t size;
    uint16_t kind, flags;
    uint64_t time;
    uint64_t block; /* the place of its sample in the file */
    int64_t live;   /* without this block */
};

/* One mapping of code, as the kernel writes it; the text follows. */
struct map {
    uint32_t size;
    uint16_t kind, flags;
    uint32_t number; /* one map has many such records */
    uint32_t length; /* of the text */
    uint64_t time;   /* of CLOCK_REALTIME, ns */
    uint64_t library; /* an address in the code of this library */
};

_Static_assert(sizeof(struct slot) == 128, "a slot is two cache lines");
_Static_assert(sizeof(struct note) == sizeof(struct slot), "a note takes a slot");
_Static_assert(sizeof(struct process) == 256, "a process head takes two slots");
_Static_assert(offsetof(struct header, common) == 128, "the header is followed by a slot");
_Static_assert(sizeof(struct header) <= 4096, "the header fits the smallest unit");

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scruple's call tree: instructions, calls and allocations by calling context, counted exactly.
 *
 * A tool for Valgrind, under GPL-2.0-or-later as Valgrind's core is; see COPYING. */
#ifndef CALLTREE_H
#define CALLTREE_H

#include "pub_tool_basics.h"
#include "pub_tool_vki.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"

/* What a function does with the heap, as its name shows. */
typedef enum {
    HEAP_NONE,
    HEAP_SIZE_FIRST,   /* malloc, valloc, operator new */
    HEAP_PRODUCT,      /* calloc */
    HEAP_RESIZE,       /* realloc */
    HEAP_SIZE_SECOND,  /* memalign, aligned_alloc */
    HEAP_SIZE_THIRD,   /* posix_memalign: its result is 0 on success */
    HEAP_WORDS_SECOND, /* GHC's runtime: a number of words */
    HEAP_FREE,
} HeapKind;

/* The addresses of functions in a file, sorted. */
typedef struct {
    struct Extent *all;
    UWord count;
} Extents;

/* A file that contains code. */
typedef struct Object {
    struct Object *next;
    const HChar *path; /* NULL: code that is in no file */
    UInt id;
    Bool is_ghc;           /* contains the runtime of GHC */
    Bool is_go;            /* contains functions that Go compiled */
    Bool has_extents;      /* the following were read, because there is code without a symbol */
    Extents unwinding, go; /* from the unwinding table, and from Go's table of functions */
} Object;

/* What a function of Go's runtime does with goroutines, as its name shows. */
typedef enum {
    GO_NONE,
    GO_RUNTIME, /* nothing */
    GO_STARTS,  /* newproc: called by the statement `go` */
    GO_MAKES,   /* newproc1: returns a new goroutine */
    GO_SCHEDULES, /* schedule: chooses what runs, and runs timers */
    GO_CALLED,  /* cgocallback: C calls Go */
} GoRole;

/* A function, identified by its file and offset, so that it remains the same function when the file is loaded
 * again. */
typedef struct Function {
    struct Function *in_bucket, *next;
    Object *object;
    Addr offset;       /* the address in the file; the address in memory for code in no file */
    const HChar *name; /* NULL: no symbol covers it */
    HeapKind heap;
    GoRole role;
    Bool is_resolver; /* of the dynamic linker: its caller has called the function that it jumps to */
    UInt id;
    ULong key; /* what blocks compare: the number of the function, or of its file if its start is unknown */
    /* Where sites are wanted, each call leads to an entry of its own, which differs from that of the function by its id
     * and has the address after the call: */
    struct Function *origin; /* the function's own entry */
    Object *caller;
    Addr after; /* in the caller's file; 0: the place of the call is not known */
} Function;

struct Edge;

/* Blocks that are in use, and their bytes. */
typedef struct {
    ULong blocks, bytes;
} Live;

/* The live blocks of a context. */
typedef struct {
    Live live, at_peak;
    ULong settled; /* the number of the peak at which `at_peak` holds; for a later one `live` does */
} LiveBlocks;

/* A calling context: the functions from the start of a thread to this one. The call of one function by another occurs at
 * most once on the path, because such a call leads back to the context on the path. */
typedef struct Context {
    Function *function;            /* NULL: the root */
    ULong self;
    struct Edge *recent[4];        /* edges that were followed last, by the function's number */
    struct Context *parent, *next; /* next: in the order of creation, parents before children */
    ULong allocations, bytes, frees;
    UInt id;
    const Function *called; /* the entry of the call */
    LiveBlocks *live; /* NULL: it never had any, or nobody asked */
    Bool is_written; /* it or a context below it has counts, or has had blocks if sites are asked for */
} Context;

/* Calls from a context. `to` is a child of `from`, or an ancestor of `from` if the call is recursive. */
typedef struct Edge {
    Function *function;
    Context *to, *from;
    ULong calls;
    struct Edge *next;
} Edge;

/* A call site or the entry of a function, and the last call from or to it. */
typedef struct {
    Function *function; /* NULL: a stub */
    Context *from;
    Edge *edge;
    Addr target;
    UInt epoch;       /* of the files in memory; like the target used only if that varies */
    const Addr *slot; /* where a stub takes the address from to which it jumps */
    UInt in_stub;     /* its instructions, which count for the caller */
    Addr after;       /* the address after the call */
} CallSite;

/* A run of instructions that are always executed together, in this order. */
typedef struct Run {
    struct Run *in_bucket, *next;
    Function *function; /* NULL: unknown */
    Object *object;
    Addr offset;
    UInt instructions;
    const HChar *lengths; /* in bytes, one hexadecimal digit for each instruction */
    ULong *count;
} Run;

/* The state that the translated code reads. */
typedef struct {
    ULong instructions; /* that are not yet in a context */
    ULong executed; /* all instructions of the process, if sites are wanted */
    ULong key; /* of the function, or 0 */
    Context *context;
    Function *function; /* NULL: the next instruction in a function determines it */
} Now;

/* What translated code reads and writes. Its address is in the first word of each thread's first shadow registers, so
 * that blocks need not load an address for each counter. */
typedef struct {
    Now now;
    ULong counters[1 << 20]; /* of runs; those of further runs are elsewhere */
} Shared;

extern Shared shared;
#define now (shared.now)

/* The kinds of code at an address. */
typedef enum {
    CODE_KNOWN,    /* a symbol covers it, or a table of the file says where its function begins */
    CODE_NAMELESS, /* no symbol and no table */
    CODE_FILELESS, /* in no file: the program has generated it */
    CODE_STUB,     /* it only jumps to a function of another file */
} CodeKind;

/* functions.c */
#define NAMELESS_KEY(object) (1ull << 32 | (object)->id)
CodeKind code_at(Addr address, Function **function, Bool *is_entry, Object **object);
Function *function_at(Addr address, Bool *is_entry);
Function *called_from(Function *function, Addr after);
const Addr *slot_of_stub(Addr address, UInt *instructions);
Run *run_at(Addr address, Function *function, UInt instructions, const UChar *lengths);
Object *all_objects(void);
Function *all_functions(void);
Run *all_runs(void);
void *take(SizeT size);

/* begins.c */
Bool begin_of(Object *object, Addr offset, Addr *begin, const HChar **name);

/* contexts.c */
extern Bool folds_by_call; /* every recursive call led back to a context that the same function had called */
extern ULong cut_calls; /* calls that lead to a context below the root, because there are too many; at least one of each kind */
void contexts_start(ULong limit, Bool fold);
Context *root_context(void);
Edge *find_edge(Context *from, Function *function);
Context *all_contexts(void);
Edge *all_edges(void);
void zero_counts(void);

/* The edge from a context to a function. */
static inline Edge *follow(Context *from, Function *function) {
    Edge *edge = from->recent[function->id % 4];
    return LIKELY(edge && edge->function == function) ? edge : find_edge(from, function);
}

/* Adds the instructions since the last call of this function to the current context. */
static inline void settle_instructions(void) {
    now.context->self += now.instructions;
    now.instructions = 0;
}

/* live.c */
#define COURSE 256

typedef struct {
    ULong at, bytes; /* executed instructions, live bytes */
} CoursePoint;

/* A block that is about to be freed. */
typedef struct {
    Addr address;
    LiveBlocks *owner; /* NULL: no block is known at the address */
    ULong size;
} EndingBlock;

extern Bool find_sites;
extern Live live_total, live_peak, live_inherited;
/* unseen_requests: calls of an allocator that were not seen to return. */
extern ULong peak_at, reused_blocks, unseen_requests;
Live live_at_peak(const Context *context);
/* The allocator is about to free a block. From now on another thread may get one at this address. */
void block_begins_to_end(Addr address, EndingBlock *ending);
void block_ended(const EndingBlock *ending);
void block_stays(const EndingBlock *ending);
void block_begins(Addr address, Context *context, ULong size, const EndingBlock *replaced);
void live_restarts(void);
const CoursePoint *course_points(UInt *count);

/* stack.c */
VG_REGPARM(2) void on_call(CallSite *site, Addr sp);
VG_REGPARM(2) void on_call_of_stub(CallSite *site, Addr sp);
VG_REGPARM(3) void on_call_by_address(CallSite *site, Addr sp, Addr target);
VG_REGPARM(1) void on_return(Addr sp);
VG_REGPARM(1) void on_other_function(const UChar *registers);
VG_REGPARM(2) void on_entry(CallSite *entry, const UChar *registers);
VG_REGPARM(2) void on_jump_inside(CallSite *place, const UChar *registers);
VG_REGPARM(3) void on_heap(UWord kind, UWord first, UWord second);

/* goroutines.c */
VG_REGPARM(3) void on_other_stack(Addr sp, Addr g, UWord returns);
VG_REGPARM(1) void on_new_goroutine(Addr g);

/* fibres.c */
/* The stack pointer, which was `before`, is set to an address that was in memory or in another register. */
VG_REGPARM(2) void on_switch(Addr before, Addr sp);

/* threads.c */
void thread_runs(ThreadId thread, ULong blocks);
void thread_begins(ThreadId parent, ThreadId child);
void signal_begins(ThreadId thread, Int signal, Bool own_stack);
void signal_ends(ThreadId thread, Int signal);

/* translate.c */
extern Int sp_register, ip_register; /* where they are in the guest's registers */
extern Bool total_only;
extern UInt heap_hooks;
extern const Int result_register; /* where a function's result is in the guest's registers */
IRSB *translate(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents,
                const VexArchInfo *host, IRType guest_word, IRType host_word);

/* profile.c */
void profile_start(const HChar *out);
void profile_forked(void);
void profile_executes(Bool does);
/* Returns the number of the part, or 0 if it could not be written. */
UInt profile_write(const HChar *reason, Int status);
UInt profile_copy(const HChar *label);
void profile_withdraw(UInt part);
void profile_end(void);
void profile_label(const HChar *label);

/* effects.c */
/* Two moments in microseconds since 1970: before and after something was done. */
typedef struct {
    ULong before, after;
} Moments;
/* A thread begins a system call. */
void effects_expect(ThreadId thread);
/* Looks at a system call that has returned. */
void effects_look(ThreadId thread, UInt number, const UWord *arguments, SysRes result);
/* The first effect of the process on what programs share, in words, and when it was; NULL: none. */
const HChar *first_effect(Moments *between);

/* leftovers.c */
/* When the first run and this one began, in nanoseconds since 1970; 0: it does not matter what earlier runs left. */
void leftovers_start(ULong first, ULong this);
/* Looks at a system call that is about to be made. */
void leftovers_look(UInt number, const UWord *arguments);
/* Looks at a system call that has returned. */
void leftovers_forget(UInt number, const UWord *arguments, SysRes result);
/* The path of the first file of an earlier run that the process found, and did not remove; NULL: none. */
const HChar *first_leftover(void);

/* monitor.c */
/* Looks at a system call that is about to be made. */
void monitor_sleeps(ThreadId thread, UInt number, const UWord *arguments);
/* Looks at a system call that has returned. */
void monitor_reads_clock(ThreadId thread, UInt number, const UWord *arguments, SysRes result);

/* node.c */
/* Adds options to the command line of Node.js, before the program's first instruction, which is at `entry`. */
void node_starts(ThreadId thread, Addr entry);

/* control.c */
Bool on_request(ThreadId thread, UWord *arguments, UWord *result);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the counts: one file for each part of each process. The format is internal;
 * crates/code/src/reader.rs reads it, and refuses other versions. */
#include "calltree.h"

#include "pub_tool_clientstate.h"
#include "pub_tool_vkiscnums.h"

#include <stdarg.h>

#define VERSION 1

/* Valgrind's core exports these, but no header for tools declares them. */
extern SysRes VG_(do_syscall)(UWord number, RegWord a, RegWord b, RegWord c, RegWord d, RegWord e, RegWord f, RegWord g,
                              RegWord h);
extern Int VG_(safe_fd)(Int file);

/* The folder of the profiles, opened at the start: later the program may have another root or another user, and a path
 * may lead elsewhere or nowhere. */
static Int folder = -1;
static const HChar *beginning; /* of the files' names in it */
static HChar *running_mark;
static const HChar *label;
static UInt part;
static Int parent; /* at the start of the process: the parent may end earlier */
static Bool is_forked; /* and the process has executed no program since */

static HChar *name_of(const HChar *ending) {
    SizeT size = VG_(strlen)(beginning) + VG_(strlen)(ending) + 32;
    HChar *name = VG_(malloc)("calltree.name", size);
    VG_(snprintf)(name, size, "%s.%d%s", beginning, VG_(getpid)(), ending);
    return name;
}

/* Creates a file in the folder. Others than its owner may read it, because the program may change its user. */
static SysRes create(const HChar *name) {
    return VG_(do_syscall)(__NR_openat, folder, (RegWord)name, VKI_O_CREAT | VKI_O_EXCL | VKI_O_WRONLY, 0644, 0, 0, 0, 0);
}

static void remove(const HChar *name) {
    VG_(do_syscall)(__NR_unlinkat, folder, (RegWord)name, 0, 0, 0, 0, 0, 0);
}

/* Makes an empty file that exists from before the process executes another program until this tool starts in that. If it
 * remains, the tool did not start. */
void profile_executes(Bool does) {
    HChar *name = name_of(".exec");
    if (does) {
        SysRes file = create(name);
        if (!sr_isError(file)) VG_(close)(sr_Res(file));
    } else {
        remove(name);
    }
    VG_(free)(name);
}

/* Makes an empty file that exists while the process runs. If it remains afterwards, the process's counts are lost. */
static void mark(void) {
    parent = VG_(getppid)();
    profile_executes(False);
    running_mark = name_of(".running");
    SysRes file = create(running_mark);
    if (!sr_isError(file)) VG_(close)(sr_Res(file));
    /* The mark exists already if the process executed another program before. */
    else if (sr_Err(file) != VKI_EEXIST) VG_(fmsg)("cannot write %s\n", running_mark);
}

void profile_start(const HChar *out) {
    if (out[0] != '/') VG_(fmsg_bad_option)("--out", "it must be an absolute path\n");
    const HChar *last = VG_(strrchr)(out, '/');
    HChar *path = VG_(strdup)("calltree.folder", out);
    path[last == out ? 1 : last - out] = 0;
    SysRes opened = VG_(open)(path, VKI_O_RDONLY, 0);
    if (sr_isError(opened)) VG_(fmsg)("cannot open %s\n", path);
    else folder = VG_(safe_fd)(sr_Res(opened));
    VG_(free)(path);
    beginning = last + 1;
    mark();
}

/* Resets the counts in a forked child, which are the parent's. */
void profile_forked(void) {
    settle_instructions();
    zero_counts();
    part = 0;
    is_forked = True;
    mark();
}

void profile_end(void) {
    remove(running_mark);
}

void profile_label(const HChar *text) {
    label = VG_(strdup)("calltree.label", text);
}

/* A file that is being written. */
typedef struct {
    Int file;
    UInt used;
    Bool failed;
    HChar buffer[16384];
} Sink;

static void flush(Sink *sink) {
    UInt done = 0;
    while (done < sink->used && !sink->failed) {
        Int written = VG_(write)(sink->file, sink->buffer + done, sink->used - done);
        if (written > 0) done += written;
        else sink->failed = True;
    }
    sink->used = 0;
}

/* Writes at most 1024 characters. */
static void put(Sink *sink, const HChar *format, ...) PRINTF_CHECK(2, 3);
static void put(Sink *sink, const HChar *format, ...) {
    if (sizeof sink->buffer - sink->used <= 1024) flush(sink);
    va_list values;
    va_start(values, format);
    sink->used += VG_(vsnprintf)(sink->buffer + sink->used, sizeof sink->buffer - sink->used, format, values);
    va_end(values);
}

/* Writes text of the program to the end of a line; line ends and backslashes are escaped. */
static void text(Sink *sink, const HChar *text) {
    HChar buffer[512];
    UInt used = 0;
    for (; *text; text++) {
        if (used > sizeof buffer - 8) {
            buffer[used] = 0;
            put(sink, "%s", buffer);
            used = 0;
        }
        if (*text == '\n' || *text == '\r' || *text == '\\') {
            buffer[used++] = '\\';
            buffer[used++] = *text == '\n' ? 'n' : *text == '\r' ? 'r' : '\\';
        } else {
            buffer[used++] = *text;
        }
    }
    buffer[used] = 0;
    put(sink, "%s\n", buffer);
}

static void header(Sink *sink, const HChar *reason, Int status) {
    put(sink, "scruple-calltree %d\n", VERSION);
    put(sink, "mode %s\n", total_only ? "total" : find_sites ? "sites" : "tree");
    put(sink, "process %d %d\n", VG_(getpid)(), parent);
    if (is_forked) put(sink, "forked\n");
    put(sink, "because %s %d\n", reason, status);
    put(sink, "program ");
    text(sink, VG_(args_the_exename));
    for (Word i = 0; i < VG_(sizeXA)(VG_(args_for_client)); i++) {
        put(sink, "argument ");
        text(sink, *(HChar **)VG_(indexXA)(VG_(args_for_client), i));
    }
    if (label) {
        put(sink, "label ");
        text(sink, label);
    }
    Moments between;
    const HChar *effect = first_effect(&between);
    if (effect) {
        put(sink, "effect %llu %llu ", between.before, between.after);
        text(sink, effect);
    }
    if (first_leftover()) {
        put(sink, "leftover ");
        text(sink, first_leftover());
    }
}

/* Marks a context as one that is written, and all on the way to it. */
static void mark_context(Context *context) {
    for (; context && !context->is_written; context = context->parent) context->is_written = True;
}

/* Marks the contexts that are written: those with counts, or with blocks if these are all that is asked for. */
static void mark_contexts(void) {
    for (Context *context = all_contexts(); context; context = context->next) context->is_written = False;
    for (Context *context = all_contexts(); context; context = context->next) {
        Bool counted = context->self || context->allocations || context->bytes || context->frees;
        if (!context->parent || (find_sites ? context->live != NULL : counted)) mark_context(context);
    }
    for (Edge *edge = all_edges(); edge && !find_sites; edge = edge->next)
        if (edge->calls) {
            mark_context(edge->from);
            mark_context(edge->to);
        }
}

/* Writes objects, functions, contexts (parents first), calls and runs; each line begins with its kind. */
static void tree(Sink *sink) {
    put(sink, "heap-functions %u\ncut-calls %llu\nrecursion-by %s\n", heap_hooks, cut_calls,
        folds_by_call ? "call" : "function");
    for (Object *object = all_objects(); object; object = object->next) {
        put(sink, "o %u ", object->id);
        text(sink, object->path ? object->path : "");
    }
    for (Function *function = all_functions(); function; function = function->next) {
        put(sink, "f %u %u %lx ", function->id, function->object->id, function->offset);
        text(sink, function->name ? function->name : "");
    }
    mark_contexts();
    for (const Context *context = all_contexts(); context; context = context->next)
        if (context->is_written) put(sink, "c %u %u %u %llu %llu %llu %llu\n", context->id, context->parent ? context->parent->id : 0,
                     context->function ? context->function->id : 0, find_sites ? 0 : context->self,
                     context->allocations, context->bytes, context->frees);
    for (Edge *edge = all_edges(); edge; edge = edge->next)
        if (edge->calls && !find_sites) put(sink, "e %u %u %llu\n", edge->from->id, edge->to->id, edge->calls);
    for (Run *run = all_runs(); run; run = run->next)
        if (*run->count)
            put(sink, "r %u %u %lx %llu %s\n", run->function ? run->function->id : 0, run->object->id,
                         run->offset, *run->count, run->lengths);
}

/* Writes where contexts were called from, their live blocks, and the course of all live bytes. */
static void sites(Sink *sink) {
    put(sink, "live %llu %llu\npeak %llu %llu %llu\n", live_total.blocks, live_total.bytes, live_peak.blocks,
        live_peak.bytes, peak_at);
    put(sink, "inherited %llu %llu\nreused-blocks %llu\n", live_inherited.blocks, live_inherited.bytes, reused_blocks);
    put(sink, "unseen-requests %llu\n", unseen_requests);
    for (const Context *context = all_contexts(); context; context = context->next) {
        if (context->is_written && context->called && context->called->after)
            put(sink, "s %u %u %lx\n", context->id, context->called->caller->id, context->called->after);
        if (!context->live) continue;
        Live peak = live_at_peak(context), end = context->live->live;
        put(sink, "h %u %llu %llu %llu %llu\n", context->id, peak.blocks, peak.bytes, end.blocks, end.bytes);
    }
    UInt count;
    const CoursePoint *course = course_points(&count);
    for (UInt i = 0; i < count; i++) put(sink, "l %llu %llu\n", course[i].at, course[i].bytes);
}

UInt profile_write(const HChar *reason, Int status) {
    static Sink sink;
    settle_instructions();
    sink.file = -1;
    /* Another program that this process ran before may have written files with these numbers. */
    for (UInt tries = 0; sink.file < 0 && tries < 100000; tries++) {
        HChar ending[32];
        VG_(snprintf)(ending, sizeof ending, ".%u", ++part);
        HChar *name = name_of(ending);
        SysRes file = create(name);
        if (!sr_isError(file)) sink.file = sr_Res(file);
        Bool is_taken = sr_isError(file) && sr_Err(file) == VKI_EEXIST;
        if (sink.file < 0 && !is_taken) VG_(fmsg)("cannot write %s\n", name);
        VG_(free)(name);
        if (sink.file < 0 && !is_taken) return 0;
    }
    if (sink.file < 0) return 0;
    sink.used = 0;
    sink.failed = False;
    header(&sink, reason, status);
    if (!total_only) tree(&sink);
    if (find_sites) sites(&sink);
    ULong total = now.executed;
    for (const Context *context = all_contexts(); context && !find_sites; context = context->next)
        total += context->self;
    put(&sink, "total %llu\nend\n", total);
    flush(&sink);
    VG_(close)(sink.file);
    if (sink.failed) {
        /* A mark replaces the incomplete file. */
        HChar *mark = name_of(".unwritten");
        profile_withdraw(part);
        SysRes made = create(mark);
        if (!sr_isError(made)) VG_(close)(sr_Res(made));
        VG_(free)(mark);
        return 0;
    }
    return part;
}

/* Writes a copy of the counts so far, under a label of its own if that is not empty. */
UInt profile_copy(const HChar *text) {
    const HChar *of_part = label;
    if (text[0]) label = text;
    UInt number = profile_write("dump", 0);
    label = of_part;
    return number;
}

/* Removes a part that was written. */
void profile_withdraw(UInt number) {
    HChar ending[32];
    if (!number) return;
    VG_(snprintf)(ending, sizeof ending, ".%u", number);
    HChar *name = name_of(ending);
    remove(name);
    VG_(free)(name);
}

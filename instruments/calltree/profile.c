/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the counts: one file for each part of each process. The format is internal;
 * crates/measure/src/calltree/reader.rs reads it, and refuses other versions. */
#include "calltree.h"

#include "pub_tool_clientstate.h"

#define VERSION 1

static const HChar *beginning;
static HChar *running_mark, *label;
static UInt part;
static Int parent; /* at the start of the process: it may end earlier */

static HChar *joined(const HChar *ending) {
    SizeT size = VG_(strlen)(beginning) + VG_(strlen)(ending) + 32;
    HChar *path = VG_(malloc)("calltree.path", size);
    VG_(snprintf)(path, size, "%s.%d%s", beginning, VG_(getpid)(), ending);
    return path;
}

/* Makes an empty file that exists while the process runs. If it remains afterwards, the process's counts are lost. */
static void mark(void) {
    parent = VG_(getppid)();
    running_mark = joined(".running");
    Int file = VG_(fd_open)(running_mark, VKI_O_CREAT | VKI_O_WRONLY, 0600);
    if (file < 0) VG_(fmsg)("cannot write %s\n", running_mark);
    else VG_(close)(file);
}

void profile_start(const HChar *out) {
    if (out[0] != '/') VG_(fmsg_bad_option)("--out", "it must be an absolute path\n");
    beginning = out;
    mark();
}

/* Resets the counts in a forked child, which are the parent's. */
void profile_forked(void) {
    settle_instructions();
    zero_counts();
    part = 0;
    mark();
}

void profile_end(void) {
    VG_(unlink)(running_mark);
}

void profile_label(const HChar *text) {
    label = VG_(strdup)("calltree.label", text);
}

/* Writes text of the program to the end of a line; line ends and backslashes are escaped. */
static void text(VgFile *file, const HChar *text) {
    HChar buffer[512];
    UInt used = 0;
    for (; *text; text++) {
        if (used > sizeof buffer - 8) {
            buffer[used] = 0;
            VG_(fprintf)(file, "%s", buffer);
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
    VG_(fprintf)(file, "%s\n", buffer);
}

static void header(VgFile *file, const HChar *reason, Int status) {
    VG_(fprintf)(file, "scruple-calltree %d\n", VERSION);
    VG_(fprintf)(file, "mode %s\n", total_only ? "total" : "tree");
    VG_(fprintf)(file, "process %d %d\n", VG_(getpid)(), parent);
    VG_(fprintf)(file, "because %s %d\n", reason, status);
    VG_(fprintf)(file, "program ");
    text(file, VG_(args_the_exename));
    for (Word i = 0; i < VG_(sizeXA)(VG_(args_for_client)); i++) {
        VG_(fprintf)(file, "argument ");
        text(file, *(HChar **)VG_(indexXA)(VG_(args_for_client), i));
    }
    if (label) {
        VG_(fprintf)(file, "label ");
        text(file, label);
    }
}

/* Writes objects, functions, contexts (parents first), calls and runs; each line begins with its kind. */
static void tree(VgFile *file) {
    VG_(fprintf)(file, "heap-functions %u\ncut-calls %llu\n", heap_hooks, cut_calls);
    for (Object *object = all_objects(); object; object = object->next) {
        VG_(fprintf)(file, "o %u ", object->id);
        text(file, object->path ? object->path : "");
    }
    for (Function *function = all_functions(); function; function = function->next) {
        VG_(fprintf)(file, "f %u %u %lx ", function->id, function->object->id, function->offset);
        text(file, function->name ? function->name : "");
    }
    for (const Context *context = all_contexts(); context; context = context->next)
        VG_(fprintf)(file, "c %u %u %u %llu %llu %llu %llu\n", context->id, context->parent ? context->parent->id : 0,
                     context->function ? context->function->id : 0, context->self, context->allocations,
                     context->bytes, context->frees);
    for (Edge *edge = all_edges(); edge; edge = edge->next)
        if (edge->calls) VG_(fprintf)(file, "e %u %u %llu\n", edge->from->id, edge->to->id, edge->calls);
    for (Run *run = all_runs(); run; run = run->next)
        if (*run->count)
            VG_(fprintf)(file, "r %u %u %lx %llu %s\n", run->function ? run->function->id : 0, run->object->id,
                         run->offset, *run->count, run->lengths);
}

UInt profile_write(const HChar *reason, Int status) {
    settle_instructions();
    VgFile *file = NULL;
    /* Another program that this process ran before may have written files with these numbers. */
    for (UInt tries = 0; !file && tries < 100000; tries++) {
        HChar ending[32];
        VG_(snprintf)(ending, sizeof ending, ".%u", ++part);
        HChar *path = joined(ending);
        struct vg_stat there;
        Bool taken = !sr_isError(VG_(stat)(path, &there));
        if (!taken) {
            file = VG_(fopen)(path, VKI_O_CREAT | VKI_O_EXCL | VKI_O_WRONLY, 0600);
            if (!file) VG_(fmsg)("cannot write %s\n", path);
        }
        VG_(free)(path);
        if (!taken && !file) return 0;
    }
    if (!file) return 0;
    header(file, reason, status);
    if (!total_only) tree(file);
    ULong total = 0;
    for (const Context *context = all_contexts(); context; context = context->next) total += context->self;
    VG_(fprintf)(file, "total %llu\nend\n", total);
    VG_(fclose)(file);
    return part;
}

/* Removes a part that was written. */
void profile_withdraw(UInt number) {
    HChar ending[32];
    if (!number) return;
    VG_(snprintf)(ending, sizeof ending, ".%u", number);
    HChar *path = joined(ending);
    VG_(unlink)(path);
    VG_(free)(path);
}

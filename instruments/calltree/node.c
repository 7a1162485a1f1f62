/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options for V8 on the command line of Node.js. V8 compiles and collects in threads beside the program's, so that the
 * clock decides which code is compiled when, and with how much work. With these options it does that in the program's
 * own thread, after a number of calls or allocated bytes, with the same seeds in each run. V8 reads them only from the
 * command line: Node.js refuses them in NODE_OPTIONS. */
#include "calltree.h"

#include "pub_tool_aspacemgr.h"

/* An even number, because the stack begins at a multiple of 16 bytes. */
static const HChar *const OPTIONS[] = {"--single-threaded", "--predictable-gc-schedule", "--hash-seed=1", "--random-seed=1"};
#define MORE (sizeof OPTIONS / sizeof *OPTIONS)

/* The core's own, as the core sets it for signal handlers. */
void VG_(set_SP)(ThreadId thread, Addr stack);

static Bool ends_with(const HChar *text, const HChar *end) {
    SizeT length = VG_(strlen)(text), of_end = VG_(strlen)(end);
    return length >= of_end && VG_(strcmp)(text + length - of_end, end) == 0;
}

/* Whether the beginning of a file names the library of Node.js, as in Debian's small program. */
static Bool needs_library(Int file) {
    static const HChar name[] = "libnode.so";
    static HChar text[64 * 1024];
    SSizeT length = VG_(read)(file, text, sizeof text);
    for (SSizeT at = 0; at + (SSizeT)sizeof name <= length; at++)
        if (VG_(memcmp)(text + at, name, sizeof name - 1) == 0) return True;
    return False;
}

/* Whether this process executes Node.js: by the file's name, and because V8 is in it, which is large, or in its library. */
static Bool is_node(const HChar *path) {
    struct vg_stat about;
    if (!path || (!ends_with(path, "/node") && !ends_with(path, "/nodejs"))) return False;
    if (sr_isError(VG_(stat)(path, &about))) return False;
    if (about.size > 20 * 1000 * 1000) return True;
    SysRes opened = VG_(open)(path, VKI_O_RDONLY, 0);
    if (sr_isError(opened)) return False;
    Bool found = needs_library((Int)sr_Res(opened));
    VG_(close)((Int)sr_Res(opened));
    return found;
}

static const HChar *file_of(Addr address) {
    const NSegment *segment = VG_(am_find_nsegment)(address);
    return segment ? VG_(am_get_filename)(segment) : NULL;
}

/* Inserts the options after the program's name. The stack begins with the number of arguments and their addresses. */
void node_starts(ThreadId thread, Addr entry) {
    UWord *stack = (UWord *)VG_(get_SP)(thread), *lower = stack - MORE;
    UWord arguments = stack[0];
    /* A program without arguments may compute the room for its title from the last one. */
    if (arguments < 2 || !is_node(file_of(entry))) return;
    if (!VG_(am_is_valid_for_client)((Addr)lower, MORE * sizeof *lower, VKI_PROT_READ | VKI_PROT_WRITE)) return;
    lower[0] = arguments + MORE;
    lower[1] = stack[1];
    for (UInt option = 0; option < MORE; option++) lower[2 + option] = (UWord)OPTIONS[option];
    VG_(set_SP)(thread, (Addr)lower);
}

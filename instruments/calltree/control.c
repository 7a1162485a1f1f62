/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests by the program itself (scruple-calltree.h) and from outside (`vgdb`). */
#include "calltree.h"

#include "pub_tool_gdbserver.h"
#include "valgrind.h"

#include "scruple-calltree.h"

/* Writes the part that ends here, and begins the next one under a label. */
static Bool next_part(const HChar *next_label) {
    Bool written = profile_write("request", 0) != 0;
    zero_counts();
    profile_label(next_label);
    return written;
}

static Bool has_verb(const HChar *order, const HChar *verb, const HChar **rest) {
    SizeT length = VG_(strlen)(verb);
    if (VG_(strncmp)(order, verb, length) != 0 || (order[length] && order[length] != ' ')) return False;
    order += length;
    while (*order == ' ') order++;
    *rest = order;
    return True;
}

static Bool on_order(const HChar *order) {
    const HChar *rest;
    if (has_verb(order, "zero", &rest)) {
        settle_instructions();
        zero_counts();
        VG_(gdb_printf)("zeroed\n");
    } else if (has_verb(order, "dump", &rest)) {
        UInt part = profile_copy(rest);
        if (part) VG_(gdb_printf)("dumped %u\n", part);
        else VG_(gdb_printf)("the profile cannot be written\n");
    } else if (has_verb(order, "phase", &rest)) {
        VG_(gdb_printf)(next_part(rest) ? "phase\n" : "the profile cannot be written\n");
    } else {
        return False;
    }
    return True;
}

Bool on_request(ThreadId thread, UWord *arguments, UWord *result) {
    *result = 0;
    switch (arguments[0]) {
        case SCRUPLE_CALLTREE_ZERO:
            settle_instructions();
            zero_counts();
            return True;
        case SCRUPLE_CALLTREE_DUMP:
            *result = profile_copy(arguments[1] ? (const HChar *)arguments[1] : "");
            return True;
        case SCRUPLE_CALLTREE_PHASE:
            *result = next_part(arguments[1] ? (const HChar *)arguments[1] : "");
            return True;
        case VG_USERREQ__GDB_MONITOR_COMMAND:
            *result = on_order((const HChar *)arguments[1]);
            return *result;
        default: return False;
    }
}

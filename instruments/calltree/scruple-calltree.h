/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requests of a program to Scruple's call tree. They have no effect if the program runs without it. This file is
 * under MIT or Apache-2.0, like Scruple itself, so that any program may include it. */
#ifndef SCRUPLE_CALLTREE_H
#define SCRUPLE_CALLTREE_H

#include <valgrind/valgrind.h>

enum {
    SCRUPLE_CALLTREE_ZERO = VG_USERREQ_TOOL_BASE('S', 'Q'),
    SCRUPLE_CALLTREE_DUMP,
    SCRUPLE_CALLTREE_PHASE,
};

/* Resets all counts. */
#define scruple_calltree_zero() \
    ((void)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, SCRUPLE_CALLTREE_ZERO, 0, 0, 0, 0, 0))

/* Writes the counts so far under a label, and continues to count. */
#define scruple_calltree_dump(label) \
    ((void)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, SCRUPLE_CALLTREE_DUMP, (label), 0, 0, 0, 0))

/* Writes the counts so far, and restarts from zero under another label. */
#define scruple_calltree_phase(label) \
    ((void)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, SCRUPLE_CALLTREE_PHASE, (label), 0, 0, 0, 0))

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Orders that a program gives to Scruple's call tree while it runs under it; elsewhere they do nothing.
 *
 * This file alone is under MIT or Apache-2.0, as Scruple itself is, so that any program may include it. */
#ifndef SCRUPLE_CALLTREE_H
#define SCRUPLE_CALLTREE_H

#include <valgrind/valgrind.h>

enum {
    SCRUPLE_CALLTREE_ZERO = VG_USERREQ_TOOL_BASE('S', 'Q'),
    SCRUPLE_CALLTREE_DUMP,
    SCRUPLE_CALLTREE_PHASE,
};

/* Forgets what was counted so far. */
#define scruple_calltree_zero() \
    ((void)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, SCRUPLE_CALLTREE_ZERO, 0, 0, 0, 0, 0))

/* Writes what was counted so far under a label, and goes on counting. */
#define scruple_calltree_dump(label) \
    ((void)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, SCRUPLE_CALLTREE_DUMP, (label), 0, 0, 0, 0))

/* Writes what was counted so far, and begins from nought under another label. */
#define scruple_calltree_phase(label) \
    ((void)VALGRIND_DO_CLIENT_REQUEST_EXPR(0, SCRUPLE_CALLTREE_PHASE, (label), 0, 0, 0, 0))

#endif

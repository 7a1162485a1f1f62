/* Whether requests for little memory can fail. */
#ifndef SCRUPLE_LIMITS_H
#define SCRUPLE_LIMITS_H

#include "system.h"

/* Requests below this do not fail: nothing limits the memory of this process. 0 where something does. */
extern HIDDEN size_t certain;

/* Decides it for a process that starts. `known_allocator` says whether malloc is the C library's own: others may
 * refuse as they like. */
HIDDEN void look_at_limits(int known_allocator);

#endif

/* Determines whether small requests for memory can fail. */
#ifndef SCRUPLE_LIMITS_H
#define SCRUPLE_LIMITS_H

#include "../../preload/system.h"

/* The size in bytes below which requests do not fail, because nothing limits the memory of this process; 0 if
 * something does. */
extern HIDDEN size_t certain;

/* Sets `certain` when a process starts. `known_allocator` says that malloc is the C library's own; others may
 * refuse any request. */
HIDDEN void look_at_limits(int known_allocator);

#endif

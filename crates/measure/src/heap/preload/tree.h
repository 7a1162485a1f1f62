/* The live bytes of all processes together, which give the peak of the tree. */
#ifndef SCRUPLE_TREE_H
#define SCRUPLE_TREE_H

#include "slots.h"

/* Adds this process, which inherited `inherited` live bytes by fork. If it was a member before exec, it keeps that
 * member. */
HIDDEN void join_tree(int pid, int64_t inherited);

/* Removes this process from the tree; its bytes are no longer live. */
HIDDEN void leave_tree(void);

/* Records that this process has `drift` more live bytes, and had at most `crest` more since the last call. */
HIDDEN void add_to_tree(int64_t drift, int64_t crest);

#endif

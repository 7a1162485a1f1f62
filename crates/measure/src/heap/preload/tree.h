/* The live bytes of all processes together, for the peak of the tree. */
#ifndef SCRUPLE_TREE_H
#define SCRUPLE_TREE_H

#include "slots.h"

/* Adds this process, which has `inherited` live bytes of the one that forked it; or continues the member that it had
 * before exec. */
HIDDEN void join_tree(int pid, int64_t inherited);

/* Removes this process: none of its bytes are live any more. */
HIDDEN void leave_tree(void);

/* This process has `drift` more live bytes, and had at most `crest` more since the last call. */
HIDDEN void settle_with_tree(int64_t drift, int64_t crest);

#endif

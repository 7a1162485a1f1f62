/* The live bytes of all processes together, for the peak of the tree. */
#ifndef SCRUPLE_TREE_H
#define SCRUPLE_TREE_H

#include "slots.h"

/* This process, which has `inherited` live bytes of the one that forked it, is one more from now on; or it goes on in
 * the place of the program that it was before exec. */
HIDDEN void join_tree(int pid, int64_t inherited);

/* Nothing of this process is live any more. */
HIDDEN void leave_tree(void);

/* This process has `drift` live bytes more, and had at most `crest` more since the last time. */
HIDDEN void settle_with_tree(int64_t drift, int64_t crest);

#endif

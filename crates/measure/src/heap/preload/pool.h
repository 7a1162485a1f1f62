/* Memory for the few calls before the real allocator is known, since the lookup itself may allocate. Blocks of the
 * pool are recognised by their address, are never counted, and are not reused after a free. */
#ifndef SCRUPLE_POOL_H
#define SCRUPLE_POOL_H

#include "../../preload/system.h"

#define POOL_SIZE (64 * 1024)

extern HIDDEN uint8_t pool[POOL_SIZE];
extern HIDDEN size_t pool_used; /* in most programs it stays 0 */

static inline int in_pool(const void *block) { return (uintptr_t)block - (uintptr_t)pool < POOL_SIZE; }

/* Returns zeroed memory; NULL if the pool is used up. */
HIDDEN void *pool_take(size_t size, size_t alignment);
HIDDEN size_t pool_size(const void *block);

#endif

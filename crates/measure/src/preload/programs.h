/* The functions that start programs. Programs are started with the variables that load the preload library, in
 * whatever environment. */
#ifndef SCRUPLE_PROGRAMS_H
#define SCRUPLE_PROGRAMS_H

#include "system.h"

/* ---- each library defines these ---- */

/* Called before this process executes a program. The result is passed to exec_failed if that did not succeed. */
HIDDEN void *before_exec(const char *path);
HIDDEN void exec_failed(void *noted);

/* Called before and after a child is started. The result of the first is passed to the second. */
HIDDEN uint32_t before_spawn(void);
HIDDEN void spawned(int child, const char *path, uint32_t since);

/* Called before a program is started that cannot load the library, because its file cannot be read. */
HIDDEN void cannot_follow(void);

#endif

/* A second file of one program: it includes the header without the implementation, and declares a case. */
#include "../scruple.h"

void declare_other(void);

static void touch(void *input) { SCRUPLE_KEEP(input); }

void declare_other(void) { scruple_tag(scruple_bench("other file", touch), "other"); }

/* The variables that brought the library here: hidden from the program, and handed on to the programs that it starts. */
#ifndef SCRUPLE_ENVIRONMENT_H
#define SCRUPLE_ENVIRONMENT_H

#include "system.h"

typedef char *const words[];

/* Takes the variables out of the program's environment. */
HIDDEN void hide_variables(const char *data_path);

/* The environment for a program that is started with `envp`, built in `area`, which has room_for(envp) bytes. */
HIDDEN size_t room_for(words envp);
HIDDEN char *const *complete(words envp, char *area);

/* Around functions of the C library that start programs with the environment as it is. */
HIDDEN void show_variables(void);
HIDDEN void hide_again(void);

#endif

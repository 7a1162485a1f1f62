/* The variables that load the preload library. They are hidden from the program, and added for the programs that it
 * starts (programs.c). */
#ifndef SCRUPLE_ENVIRONMENT_H
#define SCRUPLE_ENVIRONMENT_H

#include "system.h"

typedef char *const words[];

/* Removes the variables from the program's environment. `data_path` is the value of SCRUPLE_HEAP, or empty if the
 * library needs none. */
HIDDEN void hide_variables(const char *data_path);

/* The environment for a program that is started with `envp`. It is built in `area`, which must have room_for(envp)
 * bytes. */
HIDDEN size_t room_for(words envp);
HIDDEN char *const *complete(words envp, char *area);

/* Called before and after functions of the C library that start programs with the process's environment. */
HIDDEN void show_variables(void);
HIDDEN void hide_again(void);

#endif

/* The environment of an executed program, with the variables that the agent needs. */
#ifndef SCRUPLE_FOLLOW_H
#define SCRUPLE_FOLLOW_H

#include <stddef.h>

#define LIBRARY "/libscruple-runtimes.so"

size_t words_of(char *const env[]);
size_t room_for_followed(char *const env[]);
char *const *followed(char *const env[], const char **all, char *text, size_t size);

#define FOLLOWED(full, env)                        \
    const char *words_of_##full[words_of(env) + 2]; \
    size_t size_of_##full = room_for_followed(env); \
    char text_of_##full[size_of_##full];           \
    char *const *full = followed(env, words_of_##full, text_of_##full, size_of_##full)

#endif

#include "follow.h"

#include "agent.h"

/* Programs that are executed with another environment are measured too: `env -i` must not hide a runtime. The new
 * environment is on the stack, because a child of vfork shares its parent's memory. */
static int names_us(char *const env[]) {
    for (; env && *env; env++)
        if (begins(*env, "LD_PRELOAD=")) return find(*env, LIBRARY) != NULL;
    return 0;
}
size_t words_of(char *const env[]) {
    size_t n = 0;
    while (env && env[n]) n++;
    return n;
}
char *const *followed(char *const env[], const char **all, char *text, size_t size) {
    size_t n = 0;
    const char *user = "";
    char name[320];
    if (!folder || names_us(env)) return env;
    put(put(name, name + sizeof name, folder), name + sizeof name, LIBRARY);
    if (!readable(name)) return env; /* after a change of root or user */
    for (size_t i = 0; env && env[i]; i++)
        if (begins(env[i], "LD_PRELOAD=")) user = env[i] + length("LD_PRELOAD=");
        else all[n++] = env[i];
    char *at = put(put(text, text + size, "LD_PRELOAD="), text + size, name);
    if (*user) put(put(at, text + size, ":"), text + size, user);
    all[n++] = text;
    all[n] = NULL;
    return (char *const *)all;
}
size_t room_for_followed(char *const env[]) {
    size_t size = 400;
    for (; env && *env; env++)
        if (begins(*env, "LD_PRELOAD=")) size += length(*env);
    return size;
}

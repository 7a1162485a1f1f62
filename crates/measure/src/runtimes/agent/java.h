/* What the files of the agent in Java's virtual machine share. The function tables of JNI and JVMTI are indexed by position,
 * which their specifications fix. */
#ifndef SCRUPLE_JAVA_H
#define SCRUPLE_JAVA_H

#include "agent.h"

typedef void *const *const *table;
typedef union {
    int64_t number;
    int32_t integer;
    void *object;
} argument;

enum jni {
    FIND_CLASS = 6, EXCEPTION_CLEAR = 17, PUSH_FRAME = 19, POP_FRAME = 20, NEW_GLOBAL = 21, DELETE_LOCAL = 23,
    IS_SAME = 24,
    NEW_OBJECT = 30, METHOD = 33, CALL_VOID = 63, CALL_OBJECT = 36, CALL_BOOLEAN = 39, CALL_INT = 51, CALL_LONG = 54,
    STATIC_METHOD = 113, STATIC_OBJECT = 116, TEXT = 169, RELEASE = 170
};
enum jvmti {
    SET_NOTIFICATION = 1, ALL_THREADS = 3, THREAD_INFO = 8, RUN_THREAD = 11, THREAD_STATE = 16, CURRENT_THREAD = 17,
    DEALLOCATE = 46, CLASS_OF_METHOD = 64, SUSPEND = 91, RESUME = 92, STACK_TRACE = 103, SET_TAG = 106,
    FORCE_COLLECTION = 107, TAGGED_OBJECTS = 113, EACH_OBJECT = 115, SET_CALLBACKS = 121, ADD_CAPABILITIES = 141
};
enum {
    GET_ENVIRONMENT = 6, FIRST_EVENT = 50, EVENT_INIT = 50, EVENT_DEATH = 51, EVENT_THREAD_START = 52, EVENT_GC_START = 81,
    EVENT_GC_END = 82
};
#define JVMTI_VERSION 0x30010000

enum value { ALLOCATED, STOPS, TIME, LONGEST, HAVE_BYTES, HAVE_STOPS, LIVE, HAVE_LIVE, OWN_STOPS, LIVE_AT_MOST };

static inline void *of(table env, int index) { return (*env)[index]; }

/* ---- java.c ---- */
void *class_of(table jni, const char *name);
void *method(table jni, const char *class, const char *name, const char *type);
void *heap_usage(table jni);
int64_t usage(table jni, void *of_memory, const char *name);

/* ---- java_live.c ---- */
void java_init(table jvmti, table jni, void *main_thread);
void java_thread_start(table jvmti, table jni, void *thread);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The monitor of Go's runtime (`sysmon`), a thread that reads the clock every 20 microseconds to 10 milliseconds, and lets
 * another goroutine run if one has run for 10 milliseconds. Under Valgrind it would interrupt a program after far fewer
 * instructions than without, at places that differ from run to run. So it looks less often, and its clock runs slower. It
 * still runs, because a goroutine may wait in a loop for another one. */
#include "calltree.h"

#include "pub_tool_stacktrace.h"
#include "pub_tool_vkiscnums.h"

#define BILLION 1000000000ull
#define SLOWER 100
#define LEAST_SLEEP (BILLION / 10)

static ThreadId monitor; /* 0: no thread is known to be one */

static Bool is_in(Addr address, const HChar *function) {
    const HChar *name;
    return VG_(get_fnname)(VG_(current_DiEpoch)(), address, &name) && VG_(strcmp)(name, function) == 0;
}

/* Whether the thread sleeps in a call from the monitor's function. */
static Bool is_monitor(ThreadId thread) {
    Addr at[4];
    if (!is_in(VG_(get_IP)(thread), "runtime.usleep.abi0") && !is_in(VG_(get_IP)(thread), "runtime.usleep")) return False;
    UInt depth = VG_(get_StackTrace)(thread, at, 4, NULL, NULL, 0);
    for (UInt i = 1; i < depth; i++)
        if (is_in(at[i], "runtime.sysmon")) return True;
    return False;
}

void monitor_sleeps(ThreadId thread, UInt number, const UWord *arguments) {
    if (number != __NR_nanosleep || (monitor && thread != monitor)) return;
    if (!monitor && !is_monitor(thread)) return;
    monitor = thread;
    struct vki_timespec *time = (struct vki_timespec *)arguments[0];
    if (time->tv_sec == 0 && time->tv_nsec < LEAST_SLEEP) time->tv_nsec = LEAST_SLEEP;
}

void monitor_reads_clock(ThreadId thread, UInt number, const UWord *arguments, SysRes result) {
    static ULong first;
    if (number != __NR_clock_gettime || !monitor || thread != monitor || sr_isError(result)) return;
    struct vki_timespec *time = (struct vki_timespec *)arguments[1];
    ULong present = time->tv_sec * BILLION + time->tv_nsec;
    if (!first) first = present;
    present = first + (present - first) / SLOWER;
    time->tv_sec = present / BILLION;
    time->tv_nsec = present % BILLION;
}

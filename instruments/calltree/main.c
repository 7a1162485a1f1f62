/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface to Valgrind, and the tool's options. */
#include "calltree.h"

#include "pub_tool_vkiscnums.h"

static const HChar *out;
static Int steady, fold_recursion = 1;
static Bool opens_random; /* whether the process has opened a device of random bytes */
static Long context_limit = 4000000, first_began, this_began;
static UInt part_before_exec;

#define FAULTS_ARE_HANDLED VexRegUpdUnwindregsAtMemAccess

/* The linker replaces the core's readers of line and unwinding tables by these functions, because the core's take
 * most of the start of a large program. The program that reads the profile reads these tables itself. */
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void);
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(void);
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void) {}
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(void) {}

/* Replaces the translator's checks of its own output, which run several times for each block. */
void __wrap_sanityCheckIRSB(const void *block, const HChar *caller, Int flat, Int word);
void __wrap_sanityCheckIRSB(const void *block, const HChar *caller, Int flat, Int word) {}

/* Replaces the passes by which the translator cleans up what a tool has added: this tool adds next to nothing that they
 * would remove. The linker replaces only these calls, not those within the translator's own passes. */
void __wrap_do_deadcode_BB(void *block);
void __wrap_do_deadcode_BB(void *block) {}
void *__wrap_cprop_BB(void *block);
void *__wrap_cprop_BB(void *block) {
    return block;
}

static UChar next_random(void) {
    static ULong state = 0x5c0b1e5c0b1eull;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state >> 56;
}

static void fill(UWord address, UWord length) {
    for (UWord i = 0; i < length; i++) ((UChar *)address)[i] = next_random();
}

#if defined(VGO_linux)
#define AUXV_ENTRY 9
#define AUXV_RANDOM 25

/* Replaces the random bytes that the kernel passes to each program, and adds options for Node.js, so that runs repeat. */
static void fix_start(ThreadId thread) {
    static Bool done;
    if (done) return;
    done = True;
    UWord *word = (UWord *)VG_(get_SP)(thread);
    word += *word + 2; /* the number of arguments, the arguments, a zero */
    while (*word++) {}
    for (; word[0]; word += 2) {
        if (word[0] == AUXV_RANDOM && word[1]) fill(word[1], 16);
        if (word[0] == AUXV_ENTRY) node_starts(thread, word[1]);
    }
}
#endif

static Bool is_random(const HChar *path) {
    return VG_(strcmp)(path, "/dev/urandom") == 0 || VG_(strcmp)(path, "/dev/random") == 0;
}

/* Whether a file that is open is a device of random bytes. */
static Bool reads_random(Int file) {
    HChar link[32], path[16];
    if (!opens_random) return False;
    VG_(snprintf)(link, sizeof link, "/proc/self/fd/%d", file);
    SSizeT length = VG_(readlink)(link, path, sizeof path - 1);
    if (length <= 0) return False;
    path[length] = 0;
    return is_random(path);
}

/* Replaces the random bytes that the kernel has given to the program, so that runs repeat. */
static void fix_random(UInt number, const UWord *arguments, SysRes result) {
    if (sr_isError(result)) return;
    switch (number) {
        case __NR_getrandom: fill(arguments[0], sr_Res(result)); break;
#ifdef __NR_open
        case __NR_open: opens_random |= is_random((const HChar *)arguments[0]); break;
#endif
        case __NR_openat: opens_random |= is_random((const HChar *)arguments[1]); break;
        case __NR_read: if (reads_random((Int)arguments[0])) fill(arguments[1], sr_Res(result)); break;
        default: break;
    }
}

static void code_runs(ThreadId thread, ULong blocks) {
    if (steady) fix_start(thread);
    thread_runs(thread, blocks);
}

static Bool executes(UInt number) {
#ifdef __NR_execveat
    if (number == __NR_execveat) return True;
#endif
    return number == __NR_execve;
}

/* The counts are written before exec, because a successful exec does not return. */
static void before_call(ThreadId thread, UInt number, UWord *arguments, UInt given) {
    effects_expect(thread);
    leftovers_look(number, arguments);
    if (steady) monitor_sleeps(thread, number, arguments);
    if (!executes(number)) return;
    part_before_exec = profile_write("exec", 0);
    profile_executes(True);
}

/* The core's own, which it calls after munmap, too. */
void VG_(discard_translations)(Addr start, ULong range, const HChar *who);

/* Code that is faster, because after a fault it leaves a wrong instruction pointer, is replaced as soon as the program
 * wants to handle faults: Go makes panics of them. */
static void expect_faults(Int signal, const UWord *action) {
    Bool is_fault = signal == VKI_SIGSEGV || signal == VKI_SIGBUS || signal == VKI_SIGFPE || signal == VKI_SIGILL ||
                    signal == VKI_SIGTRAP;
    if (!is_fault || !action || action[0] <= 1 || VG_(clo_px_file_backed) == FAULTS_ARE_HANDLED) return;
    VG_(clo_px_file_backed) = FAULTS_ARE_HANDLED;
    VG_(discard_translations)(0, ~0ull, "calltree");
}

static void after_call(ThreadId thread, UInt number, UWord *arguments, UInt given, SysRes result) {
    if (executes(number)) {
        profile_executes(False);
        profile_withdraw(part_before_exec);
        part_before_exec = 0;
    }
    effects_look(thread, number, arguments, result);
    leftovers_forget(number, arguments, result);
    if (number == __NR_rt_sigaction && !sr_isError(result))
        expect_faults((Int)arguments[0], (const UWord *)arguments[1]);
    if (!steady) return;
    fix_random(number, arguments, result);
    monitor_reads_clock(thread, number, arguments, result);
}

static void forked(ThreadId thread) {
    profile_forked();
}

static void ended(Int status) {
    profile_write("exit", status);
    profile_end();
}

static Bool option(const HChar *word) {
    if VG_STR_CLO (word, "--out", out) return True;
    if VG_BOOL_CLO (word, "--total", total_only) return True;
    if VG_BOOL_CLO (word, "--sites", find_sites) return True;
    if VG_BOOL_CLO (word, "--steady", steady) return True;
    if VG_BOOL_CLO (word, "--fold-recursion", fold_recursion) return True;
    if VG_BINT_CLO (word, "--contexts", context_limit, 2, 100000000) return True;
    if VG_BINT_CLO (word, "--first-began", first_began, 0, 0x7fffffffffffffffll) return True;
    if VG_BINT_CLO (word, "--this-began", this_began, 0, 0x7fffffffffffffffll) return True;
    return False;
}

static void usage(void) {
    VG_(printf)("    --out=<path>               each process writes <path>.<its number>.<part>\n"
                "    --total=yes|no             count nothing but all instructions [no]\n"
                "    --sites=yes|no             live blocks by context in place of instructions [no]\n"
                "    --steady=yes|no            runs differ less: the kernel's random bytes are the same in each, Go's monitor\n"
                "                               seldom interrupts goroutines, V8 starts no threads in Node.js [no]\n"
                "    --fold-recursion=yes|no    a recursive call leads back to the context on the path [yes]\n"
                "    --contexts=<number>        at most so many calling contexts [4000000]\n"
                "    --first-began=<ns>         when the first of several runs began, since 1970 [0: unknown]\n"
                "    --this-began=<ns>          when this run began, since 1970 [0]\n");
}

static void no_debugging(void) {}

static void options_are_known(void) {
    if (!out) VG_(fmsg_bad_option)("--out", "it is needed\n");
    if (total_only && find_sites) VG_(fmsg_bad_option)("--sites", "it needs --total=no\n");
    /* Chasing is off, because a block that continues after a jump may contain instructions that are not executed. */
    VG_(clo_vex_control).guest_chase = False;
    VG_(clo_vex_control).iropt_unroll_thresh = 0;
    contexts_start(context_limit, fold_recursion);
    leftovers_start(first_began, this_began);
    profile_start(out);
}

static void start(void) {
    VG_(details_name)("Scruple's call tree");
    VG_(details_version)(NULL);
    VG_(details_description)("instructions, calls and allocations by calling context");
    VG_(details_copyright_author)("GPL-2.0-or-later");
    VG_(details_bug_reports_to)("Scruple");
    VG_(clo_px_file_backed) = VexRegUpdSpAtMemAccess;
    VG_(basic_tool_funcs)(options_are_known, translate, ended);
    VG_(needs_command_line_options)(option, usage, no_debugging);
    VG_(needs_client_requests)(on_request);
    VG_(needs_syscall_wrapper)(before_call, after_call);
    VG_(track_start_client_code)(code_runs);
    VG_(track_pre_thread_ll_create)(thread_begins);
    VG_(track_pre_deliver_signal)(signal_begins);
    VG_(track_post_deliver_signal)(signal_ends);
    VG_(atfork)(NULL, NULL, forked);
}

VG_DETERMINE_INTERFACE_VERSION(start)

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the process touches what all programs share: files that it changes, locks, sockets. If two programs run at the
 * same time, one may find what the other has left, and do other work than alone. */
#include "calltree.h"

#include "pub_tool_vkiscnums.h"

#define LONGEST_PATH 256
#define IN_PROGRESS 115 /* an error number that Valgrind does not name */

/* Of the core; no header for tools declares it. */
extern Int VG_(gettimeofday)(struct vki_timeval *time, struct vki_timezone *zone);

static HChar effect[LONGEST_PATH + 32];
static Moments effect_between;
/* When the present system call of each thread began. */
static ULong *call_began;

const HChar *first_effect(Moments *between) {
    *between = effect_between;
    return effect[0] ? effect : NULL;
}

static ULong present(void) {
    struct vki_timeval time;
    VG_(gettimeofday)(&time, NULL);
    return time.tv_sec * 1000000ull + time.tv_usec;
}

void effects_expect(ThreadId thread) {
    if (effect[0]) return;
    if (!call_began) call_began = VG_(calloc)("calltree.effects", VG_N_THREADS, sizeof *call_began);
    call_began[thread] = present();
}

static void note(ThreadId thread, const HChar *does, const HChar *what) {
    effect_between = (Moments){call_began[thread], present()};
    VG_(snprintf)(effect, sizeof effect, "%s%s%s", does, what[0] ? " " : "", what);
}

/* Nobody else can read what is written to a device, or to a file that never had a name. */
static Bool is_kept(Int file, UWord flags) {
    enum { TYPE = 0170000, CHARACTERS = 0020000, BLOCKS = 0060000, NAMELESS = 020000000 };
    struct vg_stat found;
    if (VG_(fstat)(file, &found) != 0) return True;
    UInt type = found.mode & TYPE;
    return !(flags & NAMELESS) && type != CHARACTERS && type != BLOCKS;
}

static void opened(ThreadId thread, Int file, const HChar *path, UWord flags) {
    if ((flags & VKI_O_ACCMODE) == VKI_O_RDONLY && !(flags & (VKI_O_CREAT | VKI_O_TRUNC))) return;
    if (VG_(strncmp)(path, "/proc/", 6) != 0 && is_kept(file, flags)) note(thread, "writes", path);
}

static Bool locks(UWord order) {
    enum { OF_OPEN_FILE = 37, OF_OPEN_FILE_AND_WAIT = 38 };
    return order == VKI_F_SETLK || order == VKI_F_SETLKW || order == OF_OPEN_FILE || order == OF_OPEN_FILE_AND_WAIT;
}

void effects_look(ThreadId thread, UInt number, const UWord *arguments, SysRes result) {
    if (effect[0]) return;
    Bool begun = number == __NR_connect && sr_isError(result) && sr_Err(result) == IN_PROGRESS;
    if (sr_isError(result) && !begun) return;
    const HChar *first = (const HChar *)arguments[0], *second = (const HChar *)arguments[1];
    switch (number) {
#ifdef __NR_open
        case __NR_open: opened(thread, sr_Res(result), first, arguments[1]); break;
        case __NR_creat: opened(thread, sr_Res(result), first, VKI_O_CREAT | VKI_O_WRONLY); break;
        case __NR_rename: case __NR_unlink: case __NR_rmdir: note(thread, "moves or removes", first); break;
        case __NR_chmod: note(thread, "changes", first); break;
        case __NR_mkdir: case __NR_mknod: note(thread, "makes", first); break;
        case __NR_link: case __NR_symlink: note(thread, "makes", second); break;
#endif
        case __NR_openat: opened(thread, sr_Res(result), second, arguments[2]); break;
#ifdef __NR_openat2
        case __NR_openat2: opened(thread, sr_Res(result), second, *(const ULong *)arguments[2]); break;
#endif
#ifdef __NR_renameat
        case __NR_renameat:
#endif
#ifdef __NR_renameat2
        case __NR_renameat2:
#endif
        case __NR_unlinkat: note(thread, "moves or removes", second); break;
        case __NR_mkdirat: case __NR_mknodat: note(thread, "makes", second); break;
        case __NR_linkat: note(thread, "makes", (const HChar *)arguments[3]); break;
        case __NR_symlinkat: note(thread, "makes", (const HChar *)arguments[2]); break;
        case __NR_fchmodat: note(thread, "changes", second); break;
        case __NR_truncate: note(thread, "writes", first); break;
        case __NR_flock: note(thread, "locks a file", ""); break;
        case __NR_fcntl: if (locks(arguments[1])) note(thread, "locks a file", ""); break;
        case __NR_bind: note(thread, "has a socket with an address", ""); break;
        case __NR_connect: note(thread, "connects a socket", ""); break;
        case __NR_sendto: if (arguments[4] != 0) note(thread, "sends to an address", ""); break;
        case __NR_mq_open: note(thread, "opens a message queue", ""); break;
        case __NR_shmget: case __NR_semget: case __NR_msgget:
            if (arguments[0] != 0) note(thread, "uses what a key of System V names", "");
            break;
        default: break;
    }
}

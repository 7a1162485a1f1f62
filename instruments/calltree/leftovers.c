/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the process finds a file that an earlier run has left or changed. It may then do other work than in a folder
 * in which nothing has run before. */
#include "calltree.h"

#include "pub_tool_vkiscnums.h"

#define LONGEST_PATH 256
#define BAD_ADDRESS 14 /* an error number that Valgrind does not name */

/* When the first run began, and this one, in nanoseconds since 1970. A file that was changed between the two is one that an
 * earlier run has left. */
static ULong first_began, this_began;
static HChar leftover[2 * LONGEST_PATH];

void leftovers_start(ULong first, ULong this) {
    first_began = first;
    this_began = this;
}

const HChar *first_leftover(void) {
    return leftover[0] ? leftover : NULL;
}

/* Writes the whole path of a file that a program names in an open folder. Other paths remain as they are. */
static void join(Int folder, const HChar *path, HChar whole[2 * LONGEST_PATH]) {
    whole[0] = 0;
    if (folder != VKI_AT_FDCWD && path[0] != '/') {
        HChar link[32];
        VG_(snprintf)(link, sizeof link, "/proc/self/fd/%d", folder);
        SSizeT length = VG_(readlink)(link, whole, LONGEST_PATH);
        whole[length < 0 ? 0 : length] = 0;
        if (length > 0) VG_(strcat)(whole, "/");
    }
    VG_(strncat)(whole, path, LONGEST_PATH - 2);
}

/* Finds out about a file by the path that the program gives, which may be no text at all. Paths are relative to a folder. */
static Bool find(Int folder, const HChar *path, struct vg_stat *found) {
    SysRes result = VG_(stat)(path, found);
    if (sr_isError(result) && sr_Err(result) == BAD_ADDRESS) return False;
    if (folder != VKI_AT_FDCWD && path[0] != '/') {
        HChar whole[LONGEST_PATH + 32];
        VG_(snprintf)(whole, sizeof whole, "/proc/self/fd/%d/%s", folder, path);
        result = VG_(stat)(whole, found);
    }
    return !sr_isError(result);
}

/* The kernel makes the files of these folders when they are looked at. */
static Bool is_of_kernel(const HChar *path) {
    return VG_(strncmp)(path, "/proc/", 6) == 0 || VG_(strncmp)(path, "/sys/", 5) == 0;
}

/* A folder changes whenever something in it does, so it counts only where the program wants to make it. */
static void look(Int folder, UWord address, Bool makes_folder) {
    enum { TYPE = 0170000, REGULAR = 0100000 };
    const HChar *path = (const HChar *)address;
    struct vg_stat found;
    if (!find(folder, path, &found) || is_of_kernel(path)) return;
    if ((found.mode & TYPE) != REGULAR && !makes_folder) return;
    ULong changed = found.ctime * 1000000000ull + found.ctime_nsec;
    if (changed >= first_began && changed < this_began) join(folder, path, leftover);
}

/* Whether opening a file with these flags empties it without telling the program that it existed. */
static Bool empties(UWord flags) {
    return (flags & VKI_O_TRUNC) && !(flags & VKI_O_EXCL);
}

/* A program that removes the file begins without it, like the first run. */
void leftovers_forget(UInt number, const UWord *arguments, SysRes result) {
    if (!leftover[0] || sr_isError(result)) return;
    HChar removed[2 * LONGEST_PATH] = "";
#ifdef __NR_unlink
    if (number == __NR_unlink) join(VKI_AT_FDCWD, (const HChar *)arguments[0], removed);
#endif
    if (number == __NR_unlinkat) join((Int)arguments[0], (const HChar *)arguments[1], removed);
    if (VG_(strcmp)(removed, leftover) == 0) leftover[0] = 0;
}

void leftovers_look(UInt number, const UWord *arguments) {
    if (first_began == 0 || leftover[0]) return;
    Int folder = (Int)arguments[0];
    switch (number) {
#ifdef __NR_open
        case __NR_open: if (!empties(arguments[1])) look(VKI_AT_FDCWD, arguments[0], False); break;
        case __NR_stat: case __NR_lstat: case __NR_access: case __NR_rename:
            look(VKI_AT_FDCWD, arguments[0], False);
            break;
        case __NR_mkdir: look(VKI_AT_FDCWD, arguments[0], True); break;
        case __NR_link: case __NR_symlink: look(VKI_AT_FDCWD, arguments[1], False); break;
#endif
        case __NR_execve: case __NR_truncate: look(VKI_AT_FDCWD, arguments[0], False); break;
        case __NR_openat: if (!empties(arguments[2])) look(folder, arguments[1], False); break;
#ifdef __NR_faccessat2
        case __NR_faccessat2:
#endif
#ifdef __NR_renameat
        case __NR_renameat:
#endif
#ifdef __NR_renameat2
        case __NR_renameat2:
#endif
#ifdef __NR_statx
        case __NR_statx:
#endif
        case __NR_newfstatat: case __NR_faccessat: look(folder, arguments[1], False); break;
        case __NR_mkdirat: look(folder, arguments[1], True); break;
        case __NR_linkat: look((Int)arguments[2], arguments[3], False); break;
        case __NR_symlinkat: look((Int)arguments[1], arguments[2], False); break;
        default: break;
    }
}

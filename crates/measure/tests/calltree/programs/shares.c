/* Does one thing, which the first argument names. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int is(const char *word, const char *name) {
    return strcmp(word, name) == 0;
}

int main(int count, char **words) {
    const char *word = count > 1 ? words[1] : "";
    if (is(word, "reads")) return open(words[0], O_RDONLY) < 0;
    if (is(word, "device")) return open("/dev/null", O_WRONLY) < 0;
    if (is(word, "itself")) return open("/proc/self/comm", O_WRONLY) < 0;
    if (is(word, "unnamed")) return open("/dev/shm", O_TMPFILE | O_RDWR, 0600) < 0;
    if (is(word, "fails")) return mkdir("/proc/folder", 0700) == 0;
    if (is(word, "bad")) return access((char *)8, F_OK) == 0 || faccessat(3, (char *)8, F_OK, 0) == 0;
    if (is(word, "creates")) return open("new", O_CREAT | O_RDONLY, 0600) < 0;
    if (is(word, "empties")) return open("new", O_TRUNC | O_WRONLY) < 0;
    if (is(word, "appends")) return open("new", O_APPEND | O_WRONLY) < 0;
    if (is(word, "looks")) return access("new", F_OK);
    if (is(word, "looks-below")) return faccessat(open(".", O_PATH), "new", F_OK, 0);
    if (is(word, "lists")) return open(".", O_RDONLY | O_DIRECTORY) < 0;
    if (is(word, "renames")) return rename("new", "old");
    if (is(word, "removes")) return access("old", F_OK) || unlink("old");
    if (is(word, "makes")) return mkdir("folder", 0700);
    if (is(word, "makes-again")) return mkdir("folder", 0700) == 0;
    if (is(word, "locks")) return flock(open(words[0], O_RDONLY), LOCK_EX);
    if (is(word, "key")) return shmget(0x5c0b1e, 1, IPC_CREAT | 0600) < 0 || shmctl(shmget(0x5c0b1e, 1, 0), IPC_RMID, 0);
    if (is(word, "private-key")) return shmctl(shmget(IPC_PRIVATE, 1, 0600), IPC_RMID, 0);
    if (is(word, "binds")) {
        struct sockaddr_in any = {.sin_family = AF_INET};
        return bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&any, sizeof any);
    }
    return 99;
}

/* Counts words and lines of a file. Compiled with LARGER_BUFFER it reads in larger pieces, from memory it allocates. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LARGER_BUFFER
enum { SIZE = 1 << 20 };
#else
enum { SIZE = 512 };
#endif

int main(int argc, char **argv) {
    int file = open(argc > 1 ? argv[1] : "/dev/stdin", O_RDONLY);
    unsigned char *buffer = malloc(SIZE);
    long words = 0, lines = 0, in_word = 0;
    ssize_t got;
    if (file < 0 || !buffer) {
        perror("words");
        return 1;
    }
    while ((got = read(file, buffer, SIZE)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            int space = isspace(buffer[i]) != 0;
            lines += buffer[i] == '\n';
            words += !space && !in_word;
            in_word = !space;
        }
    }
    printf("%ld words, %ld lines\n", words, lines);
    free(buffer);
    return 0;
}

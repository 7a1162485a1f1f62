#!/bin/sh
# Makes a small repository for the transcripts of docs/history.md: twelve versions of a program that counts words, among
# them one that is slower, one that allocates less, one that does not build, and some that change no code.
set -eu
mkdir "$1"
cd "$1"
git init -q -b main
git config user.name "scruple docs"
git config user.email docs@example.org
git remote add origin https://github.com/example/words.git

cat > Makefile <<'MAKE'
words: words.c
	cc -O2 -o words words.c
MAKE
cat > words.c <<'CODE'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define ROUNDS 40

/* Counts words by a hash of each, kept in a list that is made anew for every round. */
struct word { unsigned hash; struct word *next; };

int main(void) {
    static char text[200000];
    unsigned total = 0;
    unsigned x = 1;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (x = x * 1103515245u + 12345u) >> 28 ? 'a' + (x >> 16) % 26 : ' ';
    for (int round = 0; round < ROUNDS; round++) {
        struct word *words = NULL;
        for (size_t i = 0; i < sizeof text; i++) {
            unsigned hash = 2166136261u;
            for (; i < sizeof text && text[i] != ' '; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
            struct word *word = malloc(sizeof *word);
            word->hash = hash;
            word->next = words;
            words = word;
        }
        while (words) {
            struct word *next = words->next;
            total += words->hash & 1;
            free(words);
            words = next;
        }
    }
    printf("%u\n", total);
    return 0;
}
CODE
version() {
    git add -A
    git commit -q --date "2026-01-01T12:00:00Z" -m "$1"
}
export GIT_COMMITTER_DATE=2026-01-01T12:00:00Z
version "Count words"
echo "Counts words." > README
version "Say what it does"
git tag v1
sed -i 's/unsigned total/unsigned long total/; s/%u/%lu/' words.c
version "Count beyond four thousand million"
echo "Run make." >> README
version "Say how to build it"
sed -i 's/ROUNDS 40/ROUNDS 42/' words.c
version "Two more rounds"
sed -i 's/unsigned hash = 2166136261u;/unsigned hash = 2166136261u/' words.c
version "Tidy up"
sed -i 's/unsigned hash = 2166136261u/unsigned hash = 2166136261u;/' words.c
version "Put the semicolon back"
sed -i 's/struct word { unsigned hash; struct word \*next; };/struct word { struct word *next; unsigned hash; };/' words.c
version "Pointers first"
echo "MIT" > LICENSE
version "Name a licence"
sed -i 's/struct word \*word = malloc(sizeof \*word);/if (hash \& 1) continue;\n            struct word *word = malloc(sizeof *word);/' words.c
version "Keep even hashes only"
git tag v2
echo "Thanks for reading." >> README
version "Be polite"

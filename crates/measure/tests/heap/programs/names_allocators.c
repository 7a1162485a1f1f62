/* Contains the beginnings of allocators' messages within other texts, but no allocator. */
#include <stdio.h>

int main(void)
{
    puts("begins with <jemalloc>: , mimalloc: or tcmalloc: ");
    return 0;
}

/* Has the beginnings of allocators' messages within its own texts, and no allocator. */
#include <stdio.h>

int main(void)
{
    puts("begins with <jemalloc>: , mimalloc: or tcmalloc: ");
    return 0;
}

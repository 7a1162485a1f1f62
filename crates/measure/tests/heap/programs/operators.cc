// Every form of operator new and delete, 16 blocks in all, each of another size; none is left. Then blocks that are too
// large, unless there is an argument: mimalloc aborts there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

static void check(bool right) {
    if (!right) abort();
}

static bool is_aligned(const void *block, std::size_t to) { return reinterpret_cast<std::uintptr_t>(block) % to == 0; }

int main(int argc, char **) {
    const auto wide = std::align_val_t(256);
    const auto &tag = std::nothrow;
    for (std::size_t i = 0; i < 2; i++) {
        void *plain[] = {operator new(101 + i), operator new[](201 + i), operator new(301 + i, tag),
                         operator new[](401 + i, tag)};
        void *aligned[] = {operator new(501 + i, wide), operator new[](601 + i, wide), operator new(701 + i, wide, tag),
                           operator new[](801 + i, wide, tag)};
        for (void *block : plain) check(block && is_aligned(block, 16));
        for (void *block : aligned) check(is_aligned(block, 256));
        if (i == 0) { // without the size
            operator delete(plain[0]);
            operator delete[](plain[1]);
            operator delete(plain[2], tag);
            operator delete[](plain[3], tag);
            operator delete(aligned[0], wide);
            operator delete[](aligned[1], wide);
            operator delete(aligned[2], wide, tag);
            operator delete[](aligned[3], wide, tag);
        } else {
            operator delete(plain[0], std::size_t(102));
            operator delete[](plain[1], std::size_t(202));
            operator delete(plain[2], std::size_t(302));
            operator delete[](plain[3], std::size_t(402));
            operator delete(aligned[0], std::size_t(502), wide);
            operator delete[](aligned[1], std::size_t(602), wide);
            operator delete(aligned[2], std::size_t(702), wide);
            operator delete[](aligned[3], std::size_t(802), wide);
        }
    }
    operator delete(nullptr);
    if (argc > 1) return 0;
    volatile std::size_t huge = SIZE_MAX / 2;
    check(!operator new(huge, tag));
    try {
        check(!operator new(huge));
    } catch (const std::bad_alloc &) {
    }
    return 0;
}

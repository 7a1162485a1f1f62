"""Very short functions: steps of the FNV-1a hash, the identity, whose cost is that of the harness, and two loops of
about a microsecond and a millisecond."""

from scruple_bench import bench, main

BASIS, PRIME, MASK = 2166136261, 16777619, 0xFFFFFFFF


def steps(h, n):
    for i in range(n):
        h = ((h ^ (i & 255)) * PRIME) & MASK
    return h


@bench("fnv/loop", args=[BASIS])
def loop(_h):
    return 7


@bench("fnv/id", args=[BASIS])
def identity(h):
    return h


@bench("fnv/fnv1", args=[BASIS])
def fnv1(h):
    return ((h ^ 1) * PRIME) & MASK


@bench("fnv/fnv4", args=[BASIS])
def fnv4(h):
    h = ((h ^ 1) * PRIME) & MASK
    h = ((h ^ 2) * PRIME) & MASK
    h = ((h ^ 3) * PRIME) & MASK
    return ((h ^ 4) * PRIME) & MASK


@bench("fnv/fnv8", args=[BASIS])
def fnv8(h):
    h = ((h ^ 1) * PRIME) & MASK
    h = ((h ^ 2) * PRIME) & MASK
    h = ((h ^ 3) * PRIME) & MASK
    h = ((h ^ 4) * PRIME) & MASK
    h = ((h ^ 1) * PRIME) & MASK
    h = ((h ^ 2) * PRIME) & MASK
    h = ((h ^ 3) * PRIME) & MASK
    return ((h ^ 4) * PRIME) & MASK


@bench("fnv/us", args=[BASIS])
def us(h):
    return steps(h, 14)


@bench("fnv/ms", args=[BASIS])
def ms(h):
    return steps(h, 13_000)


if __name__ == "__main__":
    main()

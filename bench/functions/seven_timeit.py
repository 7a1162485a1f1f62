"""The seven functions under the module timeit, by its own choice of loops and the best of five, as its command does."""

import timeit

import fnv

for name, body in (("loop", fnv.loop), ("id", fnv.identity), ("fnv1", fnv.fnv1), ("fnv4", fnv.fnv4), ("fnv8", fnv.fnv8),
                   ("us", fnv.us), ("ms", fnv.ms)):
    timer = timeit.Timer("body(basis)", globals={"body": body, "basis": fnv.BASIS})
    loops, _ = timer.autorange()
    print(f"{name},{min(timer.repeat(5, loops)) / loops * 1e9}")

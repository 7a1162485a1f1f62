"""The example cases of sdk/conformance: the test of this SDK."""

import os
import sys
import time
import unittest

from scruple_bench import bench, main

MASK = 0xFFFFFFFF


def hang_idle():
    while True:
        time.sleep(3600)


def hang_busy():
    while True:
        pass


class Counted:
    runs = 0

    def __init__(self):
        Counted.runs += 1


def fail(**_params):
    raise RuntimeError("a deliberate failure")


def skip():
    raise unittest.SkipTest("no such device")


def refuse(_result):
    raise AssertionError("a deliberate refusal")


def use(mark):
    if mark["used"]:
        raise RuntimeError("this input was used before")
    mark["used"] = True


def fork():
    child = os.fork()
    if child:
        os.waitpid(child, 0)


def fork_and_exit():
    child = os.fork()
    if not child:
        sys.exit(3)
    os.waitpid(child, 0)


def printing():
    print("printed by a case", flush=True)


def nothing():
    pass


@bench("identity", args=[7], shape="int -> int")
def identity(h):
    return h


@bench("linear", args=[7], shape="int -> int")
def linear(h):
    for i in range(1000):
        h = ((h ^ i) * 16777619) & MASK
    return h


@bench("alloc/known", params={"bytes": [100_000]})
def allocate(size):
    return bytearray(size)


@bench("growth", params={"n": [0, 1, 2, 3, 10, 100]})
def growth(n):
    for _ in range(n):
        pass


bench("throws")(fail)
bench("skips")(skip)
bench("forks")(fork)
bench("forks and exits")(fork_and_exit)
bench("hangs/idle")(hang_idle)
bench("hangs/busy")(hang_busy)
bench("threads/two", threads=[1, 2], args=[7])(identity)
bench("input/per-iteration", input=lambda: {"used": False}, max_iterations=100)(use)
bench("setup/counted", setup=Counted, check=lambda _: str(Counted.runs))(identity)
bench("setup/throws", setup=fail)(identity)
bench("check/passes", check=lambda _: "cafe")(nothing)
bench("check/fails", check=refuse)(nothing)
bench("prints")(printing)
bench("budgets", budgets={"time.wall": {"max": 1_000_000},
                          "alloc.bytes": {"max": "+5%", "against": "baseline"}})(nothing)
bench("fields", group="another group", tags=["slow", "two words"], throughput=4096, fresh=True,
      time_limit=5_000_000_000)(nothing)
for name in ('"quoted" and \\backslash', "tab\ttab", "grün λ 東京 🐎", "a//b/c"):
    bench(f"names/{name}")(nothing)

if __name__ == "__main__":
    if sys.argv[1:] == ["many"]:
        import scruple_bench
        scruple_bench._registry.clear()
        for i in range(10_000):
            bench(f"many/{i:05}", params={"index": [i]})(identity)
    main()

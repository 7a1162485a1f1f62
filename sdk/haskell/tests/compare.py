"""Compares a suite under Scruple with the same suite under the package it was written for.

    compare.py CONFORMANCE_FOLDER weigh  REAL OURS   a table of bytes; fails where they differ without a known
                                                    reason, or where collections differ by more than one
    compare.py CONFORMANCE_FOLDER names  REAL OURS   the names of the cases
    compare.py CONFORMANCE_FOLDER tares  OURS        fails where a batch of a tare allocates anything
    compare.py CONFORMANCE_FOLDER growth OURS        fails where an iteration of a tare does; a batch may
    compare.py CONFORMANCE_FOLDER queue  PLAIN OURS  fails where a message through a Chan allocates something other than
                                                    in a program without a harness
    compare.py CONFORMANCE_FOLDER limits OURS        fails where a limit on allocations also fails the check
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
from program import Program  # noqa: E402 (the folder is an argument)

# Weigh reads the process's total, which counts small pinned objects (byte strings) only when their block of 4096 bytes
# is full. Our figure is the thread's counter, which counts each of them at once.
PINNED = {"100/store", "100/cereal"}

HASKELL = str.maketrans({"\\": "\\\\", '"': '\\"'})


def weigh_figures(real, name):
    """Returns (bytes, collections) of a case, requested in the same way as weigh requests them from its children."""
    with tempfile.NamedTemporaryFile("r") as answer:
        environment = dict(os.environ, WEIGH_CASE=f'["/{name.translate(HASKELL)}","{answer.name}"]')
        subprocess.run([real, "+RTS", "-T"], env=environment, check=True)
        text = answer.read()
    return tuple(int(re.search(rf"{field} = (\d+)", text)[1]) for field in ("weightAllocatedBytes", "weightGCs"))


def our_figures(ours):
    with Program([ours]) as program:
        cases, _ = program.cases()
    found = {}
    for case in cases:
        with Program([ours], timeout=300) as program:  # As weigh does, every case gets its own process.
            entry = program.ask(f"block {case['id']}:c:1 {case['id']}:t:1")["block"]
        found[case["name"]] = entry[0]["alloc.bytes"], entry[0]["gc.count"], entry[1]["alloc.bytes"]
    return found


def weigh(real, ours):
    wrong = 0
    print(f"{'case':42} {'weigh':>14} {'ours':>14} {'difference':>11} {'tare':>5}  collections")
    for name, (size, gcs, tare) in our_figures(ours).items():
        expected, expected_gcs = weigh_figures(real, name)
        difference = size - expected
        known = name in PINNED and 0 < difference < 4096
        wrong += difference != 0 and not known or tare != 0 or abs(gcs - expected_gcs) > 1
        print(f"{name:42} {expected:>14} {size:>14} {difference:>11} {tare:>5}  {expected_gcs} {gcs}"
              + ("  pinned bytes" if known else "" if difference == 0 else "  UNEXPLAINED"))
    print(f"{wrong} unexplained")
    return wrong


def names(real, ours):
    theirs = subprocess.run([real, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    with Program([ours]) as program:
        cases = program.cases()[0]
        mine = [case["name"] for case in cases]
        groups = {case["name"]: case.get("group") for case in cases}
        if groups["speed/miles/hour"] != "speed" or groups["whnfIO"] is not None:
            print(f"the groups are {groups}: a slash in the name of a case does not divide groups")
            return 1
        for number, name in enumerate(mine):
            entry = program.ask(f"block {number}:c:1 {number}:t:1")
            if "error" in entry:
                print(f"{name}: {entry['error']}")
                return 1
        program.ask("bye")  # Without it, teardowns do not run.
    print("\n".join(mine))
    if sorted(theirs) != sorted(mine):
        print(f"criterion lists instead: {theirs}")
    return int(sorted(theirs) != sorted(mine))


def growth(ours):
    return tares(ours, batches_may=True)


def tares(ours, batches_may=False):
    with Program([ours]) as program:
        wrong = 0
        for case in program.cases()[0]:
            most = 1000 if "concurrency" in case else 10
            more = min(most, case.get("max_iterations", most))
            entry = program.ask(f"block {case['id']}:t:1 {case['id']}:t:{more}")
            found = [batch["alloc.bytes"] for batch in entry.get("block", [])]
            # A queue's threads start, wait for each other and end in the batch, which allocates a little: how much
            # depends on which of them is first.
            if not found:  # The set-up fails.
                continue
            much = found[-1] - found[0] >= more if batches_may or "concurrency" in case else any(found)
            wrong += much
            if much:
                print(f"{case['name']}: its tare allocates {found}")
    print(f"{wrong} tares allocate")
    return wrong


def queue(plain, ours):
    def total(messages):
        words = [plain, str(messages), "+RTS", "-t", "--machine-readable"]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stderr
        return int(re.search(r'"bytes allocated", "(\d+)"', said)[1])

    def each(bytes_of):
        return (bytes_of(110_000) - bytes_of(10_000)) / 100_000

    with Program([ours], timeout=300) as program:
        case = next(case for case in program.cases()[0] if case["name"].startswith("Chan"))
        row = lambda n: program.ask(f"block {case['id']}:c:{n}")["block"][0]["alloc.bytes"]
        found, truth = each(row), each(total)
    print(f"{case['name']}: {found:.2f} bytes for each message, {truth:.2f} without a harness")
    return int(abs(found - truth) > 1)


def limits(ours):
    with Program([ours]) as program:
        limited = [case for case in program.cases()[0] if "alloc.bytes" in case.get("budgets", {})]
        answers = {case["name"]: program.ask(f"once {case['id']}") for case in limited}
    failed = [name for name, answer in answers.items() if not answer["ok"]]
    print(f"{len(limited)} limits, checks that fail: {failed}")
    return int(not limited or bool(failed))


MODES = {"weigh": weigh, "names": names, "tares": tares, "growth": growth, "queue": queue, "limits": limits}
sys.exit(1 if MODES[sys.argv[2]](*sys.argv[3:]) else 0)

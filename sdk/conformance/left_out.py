#!/usr/bin/env python3
"""Leaves out each required field of the protocol in turn, and asks whether the conformance checks say so.

    python3 left_out.py PROGRAM [ARGUMENT…]

PROGRAM is a conformance program that passes. The exit code is 1 if a field can be left out unseen. The program keeps
its process, since checks ask the kernel about it: `left_out.py --field FIELD PROGRAM` is executed in its place, and
lets a second process change the replies on their way.
"""

import json
import os
import sys

# The path of a field, and a part of the name of the transcript or check that notices its absence.
FIELDS = [
    ("scruple", "hello"), ("sdk", "hello"), ("language", "hello"), ("runtime", "hello"), ("clocks", "hello"),
    ("clocks/time.wall", "hello"), ("clocks/time.wall/resolution", "hello"), ("clocks/time.cpu", "announced"),
    ("clocks/time.cpu/scope", "hello"), ("counters", "announced"), ("counters/key", "hello"),
    ("counters/unit", "hello"), ("counters/quality", "hello"),
    ("case/id", "same ids"), ("case/name", "every field"), ("case/max_iterations", "every field"), ("case/checked", "declared"),
    ("case/threads", "declared"), ("case/concurrency", "declared"), ("end", "same ids"), ("count", "same ids"),
    ("block", "block"), ("block/id", "block"), ("block/kind", "block"), ("block/iterations", "block"),
    ("block/time.wall", "block"), ("block/time.cpu", "announced"), ("block/thread", "thread that runs"),
    ("block/threads", "threads"), ("block/threads/iterations", "threads"), ("block/threads/time.wall", "threads"),
    ("block/threads/time.cpu", "clock of a thread"), ("block/threads/role", "queues"), ("lost", "block"),
    *((f"block/queue.{key}", "queues") for key in (
        "put", "got", "lost", "duplicated", "invented", "order_broken", "balance.producers", "balance.consumers",
        "parallelism")),
    *((f"queue.{key}", "queues") for key in (
        "late.share", "late.mean", "late.p99", "late.max", "age.mean", "age.p99", "age.max", "sojourn.p50", "sojourn.p99",
        "sojourn.max")),
    ("batch", "queues"), ("stalled", "stuck-idle"), ("seconds", "stuck-idle"), ("put", "stuck-idle"),
    ("got", "stuck-idle"), ("once", "once"), ("ok", "once"), ("checked", "once"), ("digest", "once"), ("why", "once"),
    ("reset", "setup"), ("loaded", "loaded"), ("bye", "hello"), ("error", "misuse"), ("kind", "misuse"), ("id", "throws"),
    ("fatal", "comes back"),
]


def without(value, path):
    """Removes the field from the value, in each element where the path leads through a list. Says whether it was there:
    an empty list may be left out."""
    if isinstance(value, list):
        return any([without(element, path) for element in value])
    if not isinstance(value, dict) or path[0] not in value:
        return False
    if len(path) > 1:
        return without(value[path[0]], path[1:])
    return value.pop(path[0]) != []


def stand_between(field, argv):
    """Becomes the program; a second process leaves the field out of its replies."""
    replies = os.environ.get("SCRUPLE_BENCH_OUT")
    if replies and "SCRUPLE_BENCH_IN" in os.environ:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(writing)
            with open(reading, encoding="utf-8") as lines, open(replies, "w", encoding="utf-8") as out:
                for line in lines:
                    reply = json.loads(line)
                    if without(reply, field.split("/")) and "SCRUPLE_LEFT_OUT" in os.environ:
                        open(os.environ["SCRUPLE_LEFT_OUT"], "w", encoding="utf-8").close()
                    out.write(json.dumps(reply, ensure_ascii=False) + "\n")
                    out.flush()
            os._exit(0)
        os.close(reading)
        os.set_inheritable(writing, True)
        os.environ["SCRUPLE_BENCH_OUT"] = f"/dev/fd/{writing}"
    os.execv(argv[0], argv)


def main():
    if sys.argv[1:2] == ["--field"]:
        stand_between(sys.argv[2], sys.argv[3:])
    # Imported only here, because the process between program and host starts hundreds of times and does not need it.
    import shutil
    import subprocess
    from pathlib import Path

    found = shutil.which(sys.argv[1]) if len(sys.argv) > 1 else None
    if not found:
        sys.exit(__doc__)
    python = [sys.executable, "-S"]  # The standard library is enough.
    seen, unseen, absent = 0, [], []
    mark = Path(os.environ.get("TMPDIR", "/tmp"), f"left-out-{os.getpid()}")
    for field, only in FIELDS:
        here = Path(__file__).resolve()
        program = [*python, str(here), "--field", field, found, *sys.argv[2:]]
        runner = [*python, str(here.with_name("run.py")), "--only", only, "--", *program]
        done = subprocess.run(runner, env={**os.environ, "SCRUPLE_LEFT_OUT": str(mark)}, stdout=subprocess.DEVNULL)
        if not mark.exists():
            absent.append(field)
            continue
        mark.unlink()
        seen += done.returncode == 1
        if done.returncode != 1:
            unseen.append(field)
    print(f"without a field, {seen} times a check failed; the program has none of {absent}")
    if unseen:
        sys.exit(f"no check says that these fields are missing: {unseen}")


main()

#!/usr/bin/env python3
"""The highest rate of planted servers, as Scruple finds it, beside the truth.

    bench/load/knees.py [--scruple PROGRAM] [--tries N] [--jobs N] [--only SERVER;...] [--margin RATIO]

Four servers (crates/measure/tests/load/planted.c) are loaded by `scruple load --slo p99<LIMIT --rate poisson:FROM..`,
each forty times, from a rate below the truth, near it and far above it. The limit is 50 ms for the queue, and whatever
this machine adds to every response besides: waking up the server and the generator, and sending. That is measured
before each search: the median response of a server that takes 5 ms for each request and has no queue, loaded at the
rate that is true, less 5 ms. The truths are those of the queues: M/M/1 and M/M/4 by formula, M/D/1 and the server with
pauses by simulations of eight million requests at each rate (crates/core/tests/knee). An interval that does not contain
the truth has missed it. Measurements last up to 20 s, so that each holds 2000 requests. A search takes up to twenty
minutes and hardly any processor time, so that many can run at the same time (`--jobs`). As root, generators and servers
get a real-time priority. Prints each search when it ends, and Markdown; the exit code is 1 when more than one interval
in twenty has missed.
"""

import argparse
import concurrent.futures
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stalls import ROOT, Planted, compiled, urgent

SERVERS = {
    "M/M/1, 5 ms": ("workers=1 exp=5", 200 - math.log(100) / 0.05),
    "M/D/1, 5 ms": ("workers=1 fixed=5", 154.9),
    "M/M/4, 10 ms": ("workers=4 exp=10", 242.5),
    "M/M/1, 2 ms, a pause of 40 ms in each second": ("workers=1 exp=2 stall=40 every=1000", 321.0),
}
FROM = ["100", "37", "1k"]
LIMIT, CALM = 50e-3, 5e-3


def added(scruple, program, rate):
    """What the machine adds to a response at that rate, in seconds."""
    with Planted(program, f"workers=64 fixed={CALM * 1e3}") as planted:
        argv = [scruple, "load", planted.url, "--rate", f"poisson:{rate:.0f}", "-d", "2s", "--json", "--no-store", "--no-cost"]
        done = subprocess.run(urgent(argv), capture_output=True, text=True, cwd=planted.folder)
    return max(json.loads(done.stdout)["load"]["servers"][0]["response"]["p50"] / 1e9 - CALM, 0.0)


def search(scruple, program, words, truth, number, margin):
    """The interval, whether the search settled, in how many measurements, what the machine added, and how many were
    void."""
    more = added(scruple, program, truth)
    limit = f"p99<{(LIMIT + more) * 1e6:.0f}us"
    with Planted(program, f"{words} seed={number + 1}") as planted:
        argv = [scruple, "load", planted.url, "--slo", limit, "--rate", f"poisson:{FROM[number % 3]}..100k", "-d", "20s"]
        argv += ["--margin", margin, "--seed", str(number + 1)]
        done = subprocess.run(urgent(argv + ["--json", "--no-store", "--no-cost"]), capture_output=True, text=True, cwd=planted.folder)
    try:
        found = json.loads(done.stdout)["load"]["search"]
    except (json.JSONDecodeError, KeyError):
        raise ValueError(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}") from None
    void = sum(one["outcome"] == "void" for one in found["measurements"])
    result = found["low"], found["high"], found["settled"], len(found["measurements"]), more, void
    word = "settled" if result[2] else "not settled"
    missed = "" if (result[0] or 0) <= truth <= (result[1] or math.inf) else ", MISSED"
    print(f"{words}, try {number}: {result[0]} to {result[1]}, {word}, {result[3]} measurements, {void} void{missed}", file=sys.stderr, flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", default=os.path.join(ROOT, "target", "release", "scruple"))
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1, help="servers that are searched at the same time")
    parser.add_argument("--only", default="", help="servers, by the beginnings of their names, with semicolons between them")
    parser.add_argument("--margin", default="25%", help="the interval at which a search ends")
    wish = parser.parse_args()
    scruple, wrong = os.path.abspath(wish.scruple), False
    print("| server | highest rate | added to 50 ms | searches that missed it | settled | median width | nine of ten are below |\n|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(wish.jobs) as pool:
        program = compiled(folder)
        for name, (words, truth) in SERVERS.items():
            if not any(name.startswith(one) for one in wish.only.split(";")):
                continue
            run = lambda number, words=words, truth=truth: search(scruple, program, words, truth, number, wish.margin)
            found = list(pool.map(run, range(wish.tries)))
            missed = [one for one in found if not (one[0] or 0) <= truth <= (one[1] or math.inf)]
            widths = sorted((high or math.inf) / low if low else math.inf for low, high, *_ in found)
            width = lambda share: f"{widths[min(int(len(widths) * share), len(widths) - 1)]:.2f}"
            more = statistics.median(one[4] for one in found)
            settled = sum(one[2] for one in found)
            print(f"| {name} | {truth:.1f}/s | {more * 1e3:.2f} ms | {len(missed)} of {len(found)} | {settled} | {width(0.5)} | {width(0.9)} |", flush=True)
            wrong |= len(missed) * 20 > len(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

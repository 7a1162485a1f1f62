#!/usr/bin/env python3
"""How often Scruple calls two identical servers different, or wrongly reports a limit as exceeded or kept.

    bench/load/aa.py [--scruple PROGRAM] [--tries N] [--jobs N] [--only SERVER,...] [--duration TIME] [--slower PERCENT]

Four kinds of planted servers (crates/measure/tests/load/planted.c): requests of the same length, of exponential
lengths, with pauses, and a queue before one worker. Two processes of a kind are loaded in turn by `scruple load
--against`, with all metrics and costs. A verdict of "different" or "small" is wrong. So is a limit of no change (+0%)
that is exceeded, and a limit of an improvement (-1%) that is kept. A try is wrong when a verdict in it is. As root,
generators and servers get a real-time priority. `--slower 20` asks the other question instead: of two servers that
compute for each request, the second computes 20 % more; the tries are counted in which processor time per request is
called different. Prints Markdown; the exit code is 1 when more than 5 % of the tries are wrong, or more than 5 % of the
limits.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stalls import ROOT, Planted, compiled, urgent

SERVERS = {
    "each 1 ms": ("workers=4 fixed=1", "400"),
    "exponential, 1 ms": ("workers=4 exp=1", "poisson:400"),
    "pauses of 20 ms, each 300 requests": ("workers=4 fixed=1 pause=20 each=300", "400"),
    "a queue: one worker, exponential, 1 ms": ("workers=1 exp=1", "poisson:500"),
}
LIMITS = "load.p50 load.p90 load.p99 load.max load.mean load.rate load.errors request.cpu request.wait".split()


# Two hundred thousand multiplications, a fraction of a millisecond.
COMPUTES, COMPUTING_RATE = 200, "200"


def compare(scruple, program, words, rate, number, duration):
    """The comparisons and the limits of one try; `words` are those of both servers, or of each."""
    each = (words, words) if isinstance(words, str) else words
    first, second = (Planted(program, f"{each[side]} seed={2 * number + side + 1}") for side in (0, 1))
    with first as old, second as new:
        argv = [scruple, "load", "--no-store", "--json", "--metrics", "all", "--rate", rate, "-d", duration, "--seed", str(number + 1)]
        for key in LIMITS:
            argv += ["--limit", f"{key}<+0%", "--limit", f"{key}<-1%"]
        argv += ["--name", "new", "--against", f"old={old.url}", new.url]
        done = subprocess.run(urgent(argv), capture_output=True, text=True, cwd=old.folder)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{' '.join(argv)} ends with {done.returncode}: {done.stderr.strip()[-300:]}")
    found = json.loads(done.stdout)
    return found["comparisons"], found["limits"]


def power(scruple, program, pool, wish):
    """How often this additional processor time per request is found."""
    words = [f"workers=4 steps={COMPUTES * (1 + more / 100):g}" for more in (0, wish.slower)]
    run = lambda number: compare(scruple, program, words, COMPUTING_RATE, number, wish.duration)[0]
    cpu = [one for found in pool.map(run, range(wish.tries)) for one in found if one["metric"] == "request.cpu"]
    ends = [end for one in cpu if one["interval"] for end in one["interval"]]
    found = sum(one["verdict"] == "different" and one["effect"] > 1 for one in cpu)
    print("| more processor time | found in | intervals from | to |\n|---|---|---|---|")
    print(f"| {wish.slower:g} % | {found} of {wish.tries} | {min(ends) * 100 - 100:+.1f} % | {max(ends) * 100 - 100:+.1f} % |", flush=True)
    return 0 if found * 20 >= wish.tries * 19 else 1


class Tally:
    """Tries, verdicts and limits of one kind of server, and how many were wrong."""

    def __init__(self):
        self.tries, self.verdicts, self.limits = [0, 0], [0, 0], [0, 0]
        self.words = collections.Counter()
        self.metrics = collections.Counter()

    def add(self, comparisons, limits):
        wrong = [one for one in comparisons if one["verdict"] in ("different", "small")]
        self.words.update(one["verdict"] for one in comparisons)
        self.metrics.update(one["metric"] for one in wrong)
        broken = [one for one in limits if one["result"] == ("exceeded" if "+0%" in one["limit"] else "kept")]
        for cell, count, bad in (
            (self.tries, 1, bool(wrong)), (self.verdicts, len(comparisons), len(wrong)), (self.limits, len(limits), len(broken)),
        ):  # fmt: skip
            cell[0] += count
            cell[1] += bad
        for one in wrong:
            show = {key: one.get(key) for key in ("metric", "verdict", "effect", "interval", "method")}
            print(json.dumps(show), file=sys.stderr, flush=True)
        for one in broken:
            print(json.dumps(one), file=sys.stderr, flush=True)

    def merge(self, other):
        for own, more in ((self.tries, other.tries), (self.verdicts, other.verdicts), (self.limits, other.limits)):
            own[0] += more[0]
            own[1] += more[1]
        self.words.update(other.words)
        self.metrics.update(other.metrics)

    def row(self, name):
        wrong = lambda cell: f"{cell[1]} of {cell[0]}"
        same = f"{100 * self.words['same'] / max(sum(self.words.values()), 1):.0f} %"
        metrics = ", ".join(f"{metric} {count}" for metric, count in sorted(self.metrics.items())) or "–"
        print(f"| {name} | {wrong(self.tries)} | {wrong(self.verdicts)} | {wrong(self.limits)} | {same} | {metrics} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", default=os.path.join(ROOT, "target", "release", "scruple"))
    parser.add_argument("--tries", type=int, default=25, help="of each kind of server")
    parser.add_argument("--jobs", type=int, default=1, help="pairs of servers that are loaded at the same time")
    parser.add_argument("--only", default="", help="servers, by the beginnings of their names")
    parser.add_argument("--duration", default="10s", help="how long each server is loaded")
    parser.add_argument("--slower", type=float, metavar="PERCENT", help="how often so much more processor time is found")
    wish = parser.parse_args()
    scruple, whole = os.path.abspath(wish.scruple), Tally()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(wish.jobs) as pool:
        program = compiled(folder)
        if wish.slower is not None:
            return power(scruple, program, pool, wish)
        print("| servers | wrong tries | wrong verdicts | wrong limits | called the same | metrics that were wrong |\n|---|---|---|---|---|---|", flush=True)
        for name, (words, rate) in SERVERS.items():
            if not any(name.startswith(one) for one in wish.only.split(",")):
                continue
            run = lambda number, words=words, rate=rate: compare(scruple, program, words, rate, number, wish.duration)
            tally = Tally()
            for comparisons, limits in pool.map(run, range(wish.tries)):
                tally.add(comparisons, limits)
            tally.row(name)
            whole.merge(tally)
    whole.row("all")
    share = lambda cell: cell[1] / max(cell[0], 1)
    return 1 if share(whole.tries) > 0.05 or share(whole.limits) > 0.05 else 0


if __name__ == "__main__":
    sys.exit(main())

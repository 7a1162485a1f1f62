#!/usr/bin/env python3
"""How often Scruple calls two identical programs different, or wrongly reports a limit as exceeded or kept: every
metric in every kind of run, on this machine. Prints a table in Markdown, and writes it to the file of --out.

    python3 bench/aa/run.py --scruple PATH [--quick] [--load N] [--only WAY]… [--without PROGRAM]… [--tries N] [--out FILE]

Each try weighs a fresh copy of a program against another. A verdict of "different" or "small" is wrong. So is a limit of no
change (+0%) that is exceeded, and a limit of an improvement (-1%) that is kept. The ways are commands by their launches in
all passes together (`-r`), cases of a bench program by their processes, histories by their rounds, servers under load, and
a fresh run against a stored one. `--load N` keeps N processes busy meanwhile. The exit code is 1 if a cell has more errors than a rate of 5 %
explains (a binomial test at 0.1 %), or if more than 5 % of all verdicts are wrong.

The simulated table, which is more precise, is made by

    cargo test -p scruple-core --release --test stats aa_at -- --ignored --nocapture
"""

import argparse
import collections
import json
import math
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KEYS = (
    "time.wall time.cpu time.user time.sys time.oncpu time.wait faults.minor switches.voluntary switches.involuntary io.write "
    "memory.peak memory.faults malloc.count malloc.bytes malloc.frees malloc.live malloc.peak malloc.tree_peak alloc.bytes "
    "alloc.objects gc.count gc.minor gc.major gc.time gc.pause_max heap.live_max heap.peak"
).split()
LOAD_KEYS = "load.p50 load.p90 load.p99 load.max load.mean load.rate load.errors request.cpu request.wait".split()

PYTHON = "words = {str(i): [i] for i in range(20000)}; print(sum(len(set(w)) for w in words))"
RUBY = "words = {}; 20000.times { |i| words[i.to_s] = [i] }; puts words.size"
NODE = "let s = 0; for (let i = 0; i < 3e5; i++) s += `${i}`.length; console.log(s)"
HASKELL = """import qualified Data.Map as M
import Control.Concurrent
main :: IO ()
main = do
  done <- newEmptyMVar
  mapM_ (\\n -> forkIO (putMVar done $! sum (M.elems (M.fromList [(i, i * n) | i <- [1 .. 20000 :: Int]])))) [1, 2]
  mapM (const (takeMVar done)) [1, 2 :: Int] >>= print
"""


class Machine:
    """A folder with pairs of identical programs, and the tool."""

    def __init__(self, scruple, folder, load):
        self.scruple = str(pathlib.Path(scruple).resolve())
        self.folder = pathlib.Path(folder)
        self.env = {**os.environ, "XDG_DATA_HOME": f"{folder}/data", "XDG_CACHE_HOME": f"{folder}/cache"}
        burn = [sys.executable, "-c", "while True: pass"]
        self.company = [subprocess.Popen(burn) for _ in range(load)]
        self.number = 0

    def close(self):
        for process in self.company:
            process.kill()
            process.wait()

    def compile(self, name, command):
        """Whether a program could be built."""
        done = subprocess.run(command, cwd=self.folder, capture_output=True)
        if done.returncode:
            print(f"left out: {name}: {command[0]} fails", file=sys.stderr)
        return done.returncode == 0

    def pair(self, program):
        """Fresh copies, so that their layout on the disk varies."""
        self.number += 1
        paths = []
        for side in ("old", "new"):
            place = self.folder / f"{side}{self.number:04}"
            place.mkdir()
            shutil.copy(self.folder / program, place / program)
            paths.append(str(place / program))
        return paths

    def json(self, *words, cwd=None):
        """A run's JSON, for any verdict."""
        command = [self.scruple, *map(str, words)]
        done = subprocess.run(
            command, cwd=cwd or self.folder, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode not in (0, 1, 3):
            raise RuntimeError(f"{' '.join(command)} ends with {done.returncode}: {done.stderr.strip()[-400:]}")
        return json.loads(done.stdout)


class Tally:
    """Tries and errors, by way and metric."""

    def __init__(self):
        self.verdicts = collections.defaultdict(lambda: [0, 0])
        self.limits = collections.defaultdict(lambda: [0, 0])
        self.told = collections.Counter()

    def add(self, way, found):
        for one in found.get("comparisons", []):
            wrong = one["verdict"] in ("different", "small")
            cell = self.verdicts[way, one["metric"]]
            cell[0] += 1
            cell[1] += wrong
            self.told[way, one["verdict"]] += 1
            if wrong:
                show = {key: one.get(key) for key in ("metric", "verdict", "evidence", "effect", "interval", "blocks", "method")}
                print(f"  {way}: {json.dumps(show)}", file=sys.stderr)
        for one in found.get("limits", []):
            key = one["limit"].split(":")[-1].split("<")[0]
            cell = self.limits[way, key]
            cell[0] += 1
            cell[1] += one["result"] == ("exceeded" if "+0%" in one["limit"] else "kept")

    def change(self, way, metric, wrong):
        """Counts one series of a history: whether a change was reported."""
        cell = self.verdicts[way, metric]
        cell[0] += 1
        cell[1] += wrong


def limits(keys, arm):
    words = []
    for key in keys:
        words += ["--limit", f"{arm}{key}<+0%", "--limit", f"{arm}{key}<-1%"]
    return words


def commands(machine, quick, without):
    """The programs that are weighed as commands, as functions that make a pair of command lines."""
    found = {}
    if machine.compile("mix", ["cc", "-O1", "-o", "mix", str(ROOT / "bench/heap/mix.c")]):
        found["C"] = lambda: [f"{path} 20000" for path in machine.pair("mix")]
    (machine.folder / "words.py").write_text(PYTHON)
    found["Python"] = lambda: [f"{sys.executable} {path}" for path in machine.pair("words.py")]
    if quick:
        return {name: pair for name, pair in found.items() if name not in without}
    if shutil.which("ruby"):
        (machine.folder / "words.rb").write_text(RUBY)
        found["Ruby"] = lambda: [f"ruby {path}" for path in machine.pair("words.rb")]
    if shutil.which("ghc"):
        (machine.folder / "Maps.hs").write_text(HASKELL)
        if machine.compile("Maps", ["ghc", "-O1", "-threaded", "-rtsopts", "-o", "maps", "Maps.hs"]):
            found["Haskell, two threads"] = lambda: [f"{path} +RTS -N2 -RTS" for path in machine.pair("maps")]
    if shutil.which("node"):
        (machine.folder / "count.js").write_text(NODE)
        found["JavaScript"] = lambda: [f"node {path}" for path in machine.pair("count.js")]
    if shutil.which("perl"):
        (machine.folder / "hash.pl").write_text("$h{$_} = [$_, qq(x$_)] for 1 .. 2000; print scalar keys %h")
        found["Perl"] = lambda: [f"perl {path}" for path in machine.pair("hash.pl")]
    return {name: pair for name, pair in found.items() if name not in without}


def launched(machine, pair, launches):
    words = ["--budget", "20s", "-M", "40"] if launches is None else ["-r", launches]
    old, new = pair()
    return machine.json(
        "run", "--no-store", "--json", "--metrics", "all", *words, "-n", "old", "-n", "new", *limits(KEYS, "new:"), old, new
    )


def stored(machine, pair, launches):
    machine.number += 1
    store = machine.folder / f"store{machine.number}.db"
    words = ["run", "--store", store, "--json", "--metrics", "all", "-r", launches, "-n", "one"]
    old, new = pair()
    machine.json(*words, "--label", "before", old)
    machine.json(*words, "--label", "after", new)
    return machine.json("compare", "--store", store, "--json", "--metrics", "all", *limits(KEYS, ""), "before", "after")


def cases(machine, processes):
    old, new = machine.pair("fnv")
    keys = ("time.wall", "time.cpu", "malloc.count", "malloc.bytes")
    return machine.json(
        "bench", "--no-store", "--no-check", "--json", "--quick", "--processes", processes, *limits(keys, ""), "--against", old, "--", new
    )


def repository(machine):
    """Twelve commits whose programs differ in a text that they never print."""
    place = machine.folder / "versions"
    place.mkdir()
    git = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    source = (ROOT / "bench/heap/mix.c").read_text()
    for number in range(12):
        (place / "p.c").write_text(f'{source}\nconst char *version = "version {number:02}";\n')
        subprocess.run([*git, "add", "p.c"], check=True)
        subprocess.run([*git, "commit", "-qm", f"version {number}"], check=True)
    return place


def history(machine, place, rounds):
    machine.number += 1
    words = ["--store", machine.folder / f"store{machine.number}.db", "--rounds", rounds, "--json"]
    build = ["--build", "cc -O1 -o p p.c", "--artifact", "p"]
    return machine.json("history", *words, *build, "--", "./p", "20000", cwd=place)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def servers(machine, windows):
    first, second = free_port(), free_port()
    serve = f"{sys.executable} -m http.server --bind 127.0.0.1"
    return machine.json(
        "load", "--no-store", "--json", "--metrics", "all", "-r", "100", "-d", f"{windows}s", "--windows", windows,
        *limits(LOAD_KEYS, ""), "--against", f"old=:{first} -- {serve} {first}", f":{second}", "--", *serve.split(), second,
    )


def ways(machine, options):
    """Every kind of run: its name, how many tries of it, and what makes one."""
    tries = options.tries or (3 if options.quick else 20)
    programs = commands(machine, options.quick, options.without)
    for launches in (1, 4, 9, 15, 24, None):
        name = "default launches" if launches is None else f"{launches} launches"
        for pair in programs.values():
            yield name, tries, lambda pair=pair, launches=launches: launched(machine, pair, launches)
    for launches in (4, 15, 24):
        for pair in programs.values():
            yield f"stored, {launches} of each", tries, lambda pair=pair, launches=launches: stored(machine, pair, launches)
    if machine.compile("fnv", ["cc", "-O2", "-I", str(ROOT / "sdk/c"), "-o", "fnv", str(ROOT / "sdk/c/examples/fnv.c"), "-lm"]):
        for processes in (1, 2, 3, 6, 8):
            yield f"{processes} processes", tries, lambda processes=processes: cases(machine, processes)
    place = repository(machine)
    for rounds in (3, 6, 10, 20):
        count = tries if rounds < 10 else max(1, tries // 2)
        yield f"{rounds} rounds", count, lambda rounds=rounds: history(machine, place, rounds)
    for windows in (3, 6):
        yield f"{windows} windows", tries, lambda windows=windows: servers(machine, windows)


def improbable(wrong, tries):
    """Whether this many errors are improbable at a rate of 5 %."""
    tail = sum(math.comb(tries, k) * 0.05**k * 0.95 ** (tries - k) for k in range(wrong, tries + 1))
    return wrong > 0 and tail < 0.001


def table(tally, names):
    metrics = list(dict.fromkeys([*KEYS, *LOAD_KEYS, *sorted(metric for _, metric in tally.verdicts)]))
    metrics = [metric for metric in metrics if any((way, metric) in tally.verdicts for way in names)]
    lines = [f"| metric | {' | '.join(names)} |", "|---|" + "---|" * len(names)]

    def cell(way, metric):
        if (way, metric) not in tally.verdicts:
            return "–"
        tries, wrong = tally.verdicts[way, metric]
        limits, exceeded = tally.limits.get((way, metric), (0, 0))
        return f"{wrong}/{tries}" + (f", {exceeded}/{limits}" if limits else "")

    for metric in metrics:
        lines.append(f"| {metric} | {' | '.join(cell(way, metric) for way in names)} |")

    return lines


def by_way(tally, names):
    """One line for each kind of run."""
    def total(of, way):
        cells = [one for (other, _), one in of.items() if other == way]
        tries, wrong = sum(one[0] for one in cells), sum(one[1] for one in cells)
        return f"{wrong} of {tries}" if tries else "–"

    def share(way):
        told = {verdict: count for (other, verdict), count in tally.told.items() if other == way}
        return f"{100 * told.get('same', 0) / sum(told.values()):.0f} %" if told else "–"

    lines = ["| kind of run | wrong verdicts | wrong limits | called the same |", "|---|---|---|---|"]
    for way in names:
        lines.append(f"| {way} | {total(tally.verdicts, way)} | {total(tally.limits, way)} | {share(way)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", required=True, help="the program")
    parser.add_argument("--quick", action="store_true", help="two programs, and few tries")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="keep N processes busy meanwhile")
    parser.add_argument("--only", action="append", default=[], metavar="WAY", help="ways whose name has this in it")
    parser.add_argument("--without", action="append", default=[], metavar="PROGRAM", help="commands to leave out, such as JavaScript")
    parser.add_argument("--tries", type=int, help="tries of each way and program instead of 20, or 3 with --quick")
    parser.add_argument("--out", type=pathlib.Path, help="also write the table here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scruple-aa-") as folder:
        machine = Machine(options.scruple, folder, options.load)
        tally, names, began = Tally(), [], time.time()
        try:
            for name, tries, once in ways(machine, options):
                if options.only and not any(word in name for word in options.only):
                    continue
                if name not in names:
                    names.append(name)
                for _ in range(tries):
                    try:
                        found = once()
                    except RuntimeError as why:
                        print(f"  {name}: left out: {why}", file=sys.stderr)
                        continue
                    tally.add(name, found)
                    for series in found.get("series", []):
                        tally.change(name, series["metric"], bool(series["changes"]))
                print(f"{name}: {time.time() - began:.0f} s, load {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("interrupted; what was found so far:", file=sys.stderr)
        finally:
            machine.close()
    lines = [*table(tally, names), "", *by_way(tally, names)]
    bad = []
    for what, of in (("verdicts", tally.verdicts), ("limits", tally.limits)):
        bad += [f"{way}, {metric}: {wrong} of {tries} {what}" for (way, metric), (tries, wrong) in of.items() if improbable(wrong, tries)]
        tries, wrong = sum(one[0] for one in of.values()), sum(one[1] for one in of.values())
        lines.append("")
        lines.append(f"{wrong} of {tries} {what} are wrong ({100 * wrong / max(tries, 1):.1f} %), at a load of {os.getloadavg()[0]:.0f}.")
        bad += [f"all {what}: {wrong} of {tries}"] if wrong > 0.05 * tries else []
    text = "\n".join(lines)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    for line in bad:
        print(f"MISSED: {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

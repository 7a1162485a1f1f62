#!/usr/bin/env python3
"""Seven small functions under Scruple and other tools, on a machine that is kept busy: the figures of each tool, its
running time, and the spread over invocations; and a true difference of 2 %, which Scruple must find. Prints Markdown,
and then which of the required values are reached; the exit code is 1 if one is not.

    python3 bench/functions/run.py [--quick] [--scruple BIN] [--only TOOL]… [--nanobench FOLDER]
        [--tasty-bench FOLDER] [--idle]

Each tool is invoked five times, or once if it takes longer than ten seconds. The functions: a constant (loop), the
identity (id), one, four and eight steps of FNV-1a, and loops of about a microsecond and a millisecond. The cost of `id`
is the tool's own overhead. Tools that are not installed are left out, with the reason. Two tools are in no package: the
folder of nanobench.h, and that of tasty-bench's source (with Debian 12's library tasty, which libghc-tasty-dev has,
version 0.4.1), are named by options.
"""

import argparse
import contextlib
import csv
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import programs
from programs import Absent, HERE, ROOT, build, need

NAMES = ["loop", "id", "fnv1", "fnv4", "fnv8", "us", "ms"]
UNITS = {"ps": 1e-3, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
STEPS = (900, 918)
SLOW = 10  # A tool that takes longer than this many seconds is invoked once.


class Tool:
    """A tool with its functions built: `command`, and `read`, which converts its output to {function: ns}. `cycle`
    reads how long a cycle of the core took meanwhile."""

    def __init__(self, name, command, read, keep=None, cycle=None):
        self.name, self.command, self.read, self.keep, self.cycle = name, command, read, keep, cycle


def amount(number, unit):
    return float(number) * UNITS[unit]


# Scruple itself: any bench program, its table in JSON.


def scruple(options, label, build_program, more, whole=True):
    command = [options.scruple, "bench", "--no-store", "--json", *more, "--", *build_program(options.folder)]
    return Tool(f"Scruple, {label}", command, read_scruple, scruple_parts if whole else None, read_cycle)


FIRST = ("--quick", "--time-only")
FNV = ("--filter", "fnv/", "--threads", "1")
ALSO = {"identity": "id", "1 step": "fnv1", "4 steps": "fnv4", "8 steps": "fnv8"}


def arms(text):
    run = json.loads(text)
    parts = {}
    for arm in run["arms"]:
        wall = arm["metrics"].get("time.wall", {})
        name = arm["subject"]["name"].rsplit("/", 1)[-1]
        parts.setdefault(ALSO.get(name, name), {})[arm["role"]] = wall
    return parts


def read_scruple(text):
    """The nets; None where the net is below resolution."""
    found = {}
    for name, arm in arms(text).items():
        net = arm["subject"]["net"]
        found[name] = None if net["below_resolution"] is not None else net["estimate"]
    return found


def read_cycle(text):
    """The median length of the core's cycle between the blocks."""
    found = [arm["metrics"]["batch.cycle"]["readings"] for arm in json.loads(text)["arms"] if "batch.cycle" in arm["metrics"]]
    return statistics.median(itertools.chain.from_iterable(found))


def scruple_parts(text):
    """Raw, tare and net of each function."""
    return {
        name: (arm["subject"]["estimate"], arm["tare"]["estimate"], arm["subject"]["net"])
        for name, arm in arms(text).items()
    }


# The other tools, each used as its manual recommends.


def criterion_rs(options):
    def read(text):
        times = r"^(\w+)\s+time:\s+\[\S+ \S+ ([\d.]+) (\S+) "
        return {name: amount(number, unit) for name, number, unit in re.findall(times, text, re.M)}

    return Tool("criterion.rs, slope", [programs.rust_bench("criterion"), "--bench", "--noplot"], read)


def divan(options):
    def read(text):
        found = {}
        for line in text.splitlines():
            cells = [cell.split() for cell in line.split("│")]
            if len(cells) >= 4 and len(cells[0]) >= 4 and cells[0][1] in NAMES and len(cells[2]) == 2:
                found[cells[0][1]] = amount(*cells[2])
        return found

    return Tool("divan, median", [programs.rust_bench("divan"), "--bench"], read)


def criterion_hs(options):
    command = programs.in_criterion_itself(options.folder)
    report = options.folder / "criterion.json"

    def read(_):
        reports = json.loads(report.read_text())[2]
        report.unlink()
        return {r["reportName"]: r["reportAnalysis"]["anRegress"][0]["regCoeffs"]["iters"]["estPoint"] * 1e9 for r in reports}

    return Tool("criterion (Haskell), OLS", [*command, "--json", str(report)], read)


def tasty_bench(options):
    command = programs.in_tasty_bench(options.folder, options.tasty_bench)
    report = options.folder / "tasty-bench.csv"

    def read(_):
        rows = list(csv.DictReader(report.read_text().splitlines()))
        return {row["Name"].rsplit(".", 1)[-1]: float(row["Mean (ps)"]) * UNITS["ps"] for row in rows}

    return Tool("tasty-bench, mean CPU time", [*command, "--csv", str(report)], read)


def google(options, key="real_time"):
    def read(text):
        found = json.loads(text)["benchmarks"]
        return {one["name"].split("/")[-1]: amount(one[key], one["time_unit"]) for one in found}

    label = "real time" if key == "real_time" else "cpu time"
    return Tool(f"google-benchmark, {label}", programs.in_google(options.folder), read)


def read_rows(text):
    """Rows of a name, a comma and nanoseconds."""
    rows = (line.split(",") for line in text.splitlines() if "," in line)
    return {name: float(ns) for name, ns in rows}


def nanobench(options):
    command = programs.in_nanobench(options.folder, options.nanobench)
    return Tool("nanobench, median", command, lambda text: {name: s * 1e9 for name, s in read_rows(text).items()})


def go_testing(options):
    def read(text):
        rows = re.findall(r"^BenchmarkSeven/(\w+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op", text, re.M)
        return {name: float(ns) for name, ns in rows}

    return Tool("Go, testing", programs.in_go_testing(options.folder), read)


# The bench program of each SDK, and the options that select the seven functions.
SUITES = {
    "c": ("C", programs.in_c, ()),
    "cpp": ("C++", programs.in_cpp, ()),
    "rust": ("Rust", programs.in_rust, ()),
    "haskell": ("Haskell", programs.in_haskell, ()),
    "go": ("Go", programs.in_go, FNV),
    "java": ("Java", programs.in_java, FNV),
    "javascript": ("JavaScript", programs.in_javascript, FNV),
    "python": ("Python", programs.in_python, ()),
    "guile": ("Guile", programs.in_guile, FNV),
}
RIVALS = {
    "divan": divan,
    "nanobench": nanobench,
    "google-benchmark": google,
    "google-benchmark-cpu": lambda o: google(o, "cpu_time"),
    "go-testing": go_testing,
    "benchmark.js": lambda o: Tool("benchmark.js, mean", programs.in_benchmark_js(o.folder), read_rows),
    "timeit": lambda o: Tool("timeit, best of five", programs.in_timeit(o.folder), read_rows),
    "criterion.rs": criterion_rs,
    "criterion": criterion_hs,
    "tasty-bench": tasty_bench,
}


def tools(options):
    makers = {}
    for name, (label, program, more) in SUITES.items():
        makers[name] = lambda o, label=label, program=program, more=more: scruple(o, label, program, more)
        makers[f"{name}-first"] = lambda o, label=f"{label}, first answer", program=program, more=more: scruple(
            o, label, program, (*more, *FIRST), whole=False)
    for name, make in {**makers, **RIVALS}.items():
        if options.only and name not in options.only:
            continue
        try:
            yield name, make(options)
        except Absent as why:
            print(f"skipped: {name}: {why}", file=sys.stderr)


def run(command):
    """The output of a command, its wall time in seconds, and the CPU time of all its processes."""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before, began = used(), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout, (seconds, used() - before)


def spread(values):
    values = [value for value in values if value is not None]
    middle = statistics.median(values) if values else 0
    return (max(values) - min(values)) / middle if middle else None


def text(ns):
    if ns is None:
        return "< res."
    for unit, size in (("ms", 1e6), ("µs", 1e3), ("ns", 1), ("ps", 1e-3)):
        if abs(ns) >= size or unit == "ps":
            return f"{ns / size:.3g} {unit}"


def percent(share):
    return "–" if share is None else f"{100 * share:.1f} %"


def compare(options, chosen):
    """Runs every tool several times, in turn; prints the table and returns the figures that have required values. Those
    of Scruple are in cycles of the core, whose clock differs from invocation to invocation."""
    readings = {name: [] for name, _ in chosen}
    seconds = {name: [] for name, _ in chosen}
    kept, cycles = {}, {name: [] for name, _ in chosen}
    for turn in range(options.times):
        for name, tool in chosen:
            if seconds[name] and seconds[name][0][0] > SLOW and not tool.cycle:
                continue
            print(f"{turn + 1}/{options.times} {tool.name}", file=sys.stderr)
            printed, took = run(tool.command)
            readings[name].append(tool.read(printed))
            seconds[name].append(took)
            cycles[name].append(tool.cycle(printed) if tool.cycle else 1)
            if tool.keep:
                kept[name] = tool.keep(printed)
    print(f"Median of {options.times} invocations, and (max − min) / median over them; of tools that take longer than "
          f"{SLOW} s, one invocation:\n")
    print("| Tool | " + " | ".join(NAMES) + " | seconds | of processors |\n|---|" + "---|" * (len(NAMES) + 2))
    for name, tool in chosen:
        cells = []
        for function in NAMES:
            values = [reading.get(function) for reading in readings[name]]
            known = [value for value in values if value is not None]
            if not any(function in reading for reading in readings[name]):
                cells.append("–")
                continue
            hidden = len(known) <= len(values) // 2
            over = f" ({percent(spread(known))})" if len(values) > 1 else ""
            cells.append("< res." if hidden else text(statistics.median(known)) + over)
        wall, cpu = (statistics.median(times) for times in zip(*seconds[name]))
        print(f"| {tool.name} | " + " | ".join(cells) + f" | {wall:.1f} | {cpu:.2f} |")
    print("\n‘< res.’: no more than the loop around it; the figures of all but Scruple and divan hold what `id` costs.\n")
    for name, parts in kept.items():
        tool = dict(chosen)[name]
        print(f"{tool.name}, last invocation:\n\n| | " + " | ".join(NAMES) + " |\n|---|" + "---|" * len(NAMES))
        for index, row in enumerate(["raw", "tare"]):
            print(f"| {row} | " + " | ".join(text(parts[f][index]) if f in parts else "–" for f in NAMES) + " |")
        print("| net | " + " | ".join(net_text(parts[f][2]) if f in parts else "–" for f in NAMES) + " |\n")
    in_cycles = {
        name: [
            {function: value and value / cycle for function, value in reading.items()}
            for reading, cycle in zip(readings[name], cycles[name])
        ]
        for name in readings
    }
    return in_cycles, seconds


def net_text(net):
    if net["below_resolution"] is not None:
        return f"< {text(net['below_resolution'])}"
    half = (net["interval"][1] - net["interval"][0]) / 2 / net["estimate"]
    return f"{text(net['estimate'])} ± {percent(half)}"


def functions(options, chosen, bars):
    readings, seconds = compare(options, chosen)
    for name in ("c", "rust", "haskell"):
        if name not in readings:
            continue
        found = readings[name]
        bars(f"{name}: the identity is below resolution", all(r["id"] is None for r in found))
        steps = [[r[f] or 0 for f in ("fnv1", "fnv4", "fnv8")] for r in found]
        rising = all(a < b < c for a, b, c in steps)
        bars(f"{name}: one, four and eight steps rise", rising)
        for function in ("fnv1", "fnv4", "fnv8", "us", "ms"):
            known = spread([r[function] for r in found])
            if known is not None:
                bars(f"{name}: {function} spreads by {percent(known)} (at most 5 %)", known <= 0.05)
    if "c" in seconds:
        took = statistics.median(wall for wall, _ in seconds["c"])
        bars(f"c: all seven in {took:.1f} s (at most 3 s)", took <= 3)
    for name in SUITES:
        if name in readings and f"{name}-first" in readings:
            first_answer(name, readings, seconds[f"{name}-first"], bars)


def first_answer(name, readings, seconds, bars):
    """Compares first answers with the complete ones: the time that they took, and their error."""
    took = statistics.median(wall for wall, _ in seconds)
    bars(f"{name}: the first answer comes after {took:.1f} s (at most 1 s)", took <= 1)
    for function in ("fnv1", "fnv4", "fnv8", "us", "ms"):
        whole = [reading[function] for reading in readings[name] if reading[function] is not None]
        first = [reading[function] for reading in readings[f"{name}-first"] if reading[function] is not None]
        if whole and first:
            off = abs(statistics.median(first) / statistics.median(whole) - 1)
            bars(f"{name}: the first answer of {function} is off by {percent(off)} (at most 2 %)", off <= 0.02)


def difference(options, bars):
    """Two builds that differ by exactly 2 %."""
    need("cc")
    chains = [options.folder / f"chain-{steps}" for steps in STEPS]
    for program, steps in zip(chains, STEPS):
        words = ["cc", "-O2", "-pthread", f"-DSTEPS={steps}", "-I", ROOT / "sdk/c", HERE / "chain.c", "-o", program]
        build(words)
    print("A true difference of 2.00 %:\n\n| Estimate | Interval | Covers 2.00 % | Verdict | Seconds |\n|---|---|---|---|---|")
    near = verdicts = covered = 0
    for _ in range(options.times):
        words = [options.scruple, "bench", "--no-store", "--json", "--against", str(chains[0]), "--", str(chains[1])]
        printed, (took, _) = run(words)
        found = next(c for c in json.loads(printed)["comparisons"] if c["metric"] == "time.wall")
        if found["interval"] is None:  # Such a result counts as neither near, nor different, nor covering.
            print(f"| – | – | no answer | {found['verdict']} | {took:.1f} |")
            continue
        change = 100 * (found["effect"] - 1)
        low, high = (100 * (end - 1) for end in found["interval"])
        covers = low <= 2 <= high
        near += abs(change - 2) <= 0.1
        verdicts += found["verdict"] == "different"
        covered += covers
        cells = [f"{change:+.2f} %", f"[{low:+.2f}, {high:+.2f}] %", "yes" if covers else "no", found["verdict"], f"{took:.1f}"]
        print("| " + " | ".join(cells) + " |")
    print()
    bars(f"2 %: {near} of {options.times} estimates within 0.1 %", near == options.times)
    bars(f"2 %: {verdicts} of {options.times} called different at a margin of 1 %", verdicts == options.times)
    bars(f"2 %: {covered} of {options.times} intervals cover it", covered >= options.times - 1)


class Burners:
    """Keeps every core busy."""

    def __enter__(self):
        script = "while True: sum(range(100000))"
        count = os.cpu_count() or 1
        self.processes = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(count)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two invocations instead of five, and only the fast tools")
    parser.add_argument("--scruple", default="scruple", help="the program (default: the one on the path)")
    parser.add_argument("--only", action="append", help="only this tool")
    parser.add_argument("--nanobench", help="the folder of nanobench.h")
    parser.add_argument("--tasty-bench", help="the folder of tasty-bench's source")
    parser.add_argument("--idle", action="store_true", help="without keeping the cores busy")
    options = parser.parse_args()
    options.times = 2 if options.quick else 5
    if options.quick and not options.only:
        options.only = ["c", "rust", "divan", "nanobench"]
    found = shutil.which(options.scruple)
    if not found:
        sys.exit(f"there is no ‘{options.scruple}’: name the program with --scruple")
    options.scruple = os.path.abspath(found)
    met = []

    def bars(text, fine):
        met.append((fine, text))

    with tempfile.TemporaryDirectory() as folder:
        options.folder = pathlib.Path(folder)
        chosen = list(tools(options))
        with contextlib.nullcontext() if options.idle else Burners():
            functions(options, chosen, bars)
            difference(options, bars)
    for fine, bar in met:
        print(f"- {'met' if fine else 'MISSED'}: {bar}")
    sys.exit(0 if all(fine for fine, _ in met) else 1)


if __name__ == "__main__":
    main()

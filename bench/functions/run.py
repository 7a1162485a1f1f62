#!/usr/bin/env python3
"""Seven small functions under Scruple and other tools, on a machine that is kept busy: the figures of each tool, its
running time, and the spread over invocations; and a true difference of 2 %, which Scruple must find. Prints Markdown,
and then which of the required values are reached; the exit code is 1 if one is not.

    python3 bench/functions/run.py [--quick] [--scruple BIN] [--only TOOL]… [--nanobench FOLDER] [--idle]

The functions: a constant (loop), the identity (id), one, four and eight steps of FNV-1a, and loops of about a
microsecond and a millisecond. The cost of `id` is the tool's own overhead. Tools that are not installed are left out,
with the reason.
"""

import argparse
import contextlib
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

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NAMES = ["loop", "id", "fnv1", "fnv4", "fnv8", "us", "ms"]
UNITS = {"ps": 1e-3, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
STEPS = (900, 918)


class Absent(Exception):
    """Why a tool is left out."""


class Tool:
    """A tool with its functions built: `command`, and `read`, which converts its output to {function: ns}."""

    def __init__(self, name, command, read, keep=None):
        self.name, self.command, self.read, self.keep = name, command, read, keep


def build(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode:
        raise Absent(f"‘{words[0]}’ cannot build it: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


def need(program):
    if not shutil.which(program):
        raise Absent(f"there is no {program}")


def amount(number, unit):
    return float(number) * UNITS[unit]


# Scruple itself: any bench program, its table in JSON.


def scruple(options, label, build_program, more=()):
    command = [options.scruple, "bench", "--no-store", "--json", *more, "--"] + build_program(options.folder)
    return Tool(f"Scruple, {label}", command, read_scruple, keep=None if more else scruple_parts)


FIRST = ("--quick", "--time-only")


def arms(text):
    run = json.loads(text)
    parts = {}
    for arm in run["arms"]:
        wall = arm["metrics"].get("time.wall", {})
        parts.setdefault(arm["subject"]["name"].rsplit("/", 1)[-1], {})[arm["role"]] = wall
    return parts


def read_scruple(text):
    """The nets; None where the net is below resolution."""
    found = {}
    for name, arm in arms(text).items():
        net = arm["subject"]["net"]
        found[name] = None if net["below_resolution"] is not None else net["estimate"]
    return found


def scruple_parts(text):
    """Raw, tare and net of each function."""
    return {
        name: (arm["subject"]["estimate"], arm["tare"]["estimate"], arm["subject"]["net"])
        for name, arm in arms(text).items()
    }


def in_c(folder):
    need("cc")
    build(["cc", "-O2", "-pthread", ROOT / "sdk/c/examples/fnv.c", "-o", folder / "fnv-c"])
    return [str(folder / "fnv-c")]


def in_rust(folder):
    return [rust_bench("scruple")]


def in_python(folder):
    os.environ["PYTHONPATH"] = str(ROOT / "sdk/python")
    return [sys.executable, str(ROOT / "sdk/python/examples/fnv.py")]


def in_haskell(folder, rival=False):
    need("ghc")
    name = "seven-criterion" if rival else "seven-scruple"
    (folder / name).mkdir(exist_ok=True)
    where = ["-DRIVAL"] if rival else [f"-i{ROOT / 'sdk/haskell/src'}"]
    target = folder / name / "program"
    build(["ghc", "--make", "-v0", "-O", *where, "-outputdir", folder / name, HERE / "Seven.hs", "-o", target])
    return [str(target)]


def rust_bench(name):
    """The newest program that cargo made of the bench of that name."""
    need("cargo")
    target = os.environ.get("CARGO_TARGET_DIR", str(HERE / "rust/target"))
    words = ["cargo", "bench", "--quiet", "--locked", "--no-run", "--message-format=json", "--bench", name]
    done = subprocess.run(
        words, cwd=HERE / "rust", env={**os.environ, "CARGO_TARGET_DIR": target}, capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return message["executable"]
    raise Absent(f"cargo cannot build it: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


# The other tools, each used as its manual recommends.


def criterion_rs(options):
    def read(text):
        times = r"^(\w+)\s+time:\s+\[\S+ \S+ ([\d.]+) (\S+) "
        return {name: amount(number, unit) for name, number, unit in re.findall(times, text, re.M)}

    return Tool("criterion.rs, slope", [rust_bench("criterion"), "--bench", "--noplot"], read)


def divan(options):
    def read(text):
        found = {}
        for line in text.splitlines():
            cells = [cell.split() for cell in line.split("│")]
            if len(cells) >= 4 and len(cells[0]) >= 4 and cells[0][1] in NAMES and len(cells[2]) == 2:
                found[cells[0][1]] = amount(*cells[2])
        return found

    return Tool("divan, median", [rust_bench("divan"), "--bench"], read)


def criterion_hs(options):
    command = in_haskell(options.folder, rival=True)
    report = options.folder / "criterion.json"

    def read(_):
        reports = json.loads(report.read_text())[2]
        report.unlink()
        return {r["reportName"]: r["reportAnalysis"]["anRegress"][0]["regCoeffs"]["iters"]["estPoint"] * 1e9 for r in reports}

    return Tool("criterion (Haskell), OLS", [*command, "--json", str(report)], read)


def google(options, key="real_time"):
    need("c++")
    target = options.folder / "google"
    if not target.exists():
        build(["c++", "-O2", HERE / "google.cc", "-lbenchmark", "-lpthread", "-o", target])

    def read(text):
        found = json.loads(text)["benchmarks"]
        return {one["name"].split("/")[-1]: amount(one[key], one["time_unit"]) for one in found}

    label = "real time" if key == "real_time" else "cpu time"
    return Tool(f"google-benchmark, {label}", [str(target), "--benchmark_format=json"], read)


def nanobench(options):
    need("c++")
    folders = [options.nanobench] if options.nanobench else ["/usr/include", "/usr/local/include"]
    folder = next((f for f in folders if f and (pathlib.Path(f) / "nanobench.h").exists()), None)
    if not folder:
        raise Absent("no nanobench.h (it is in no package here; name its folder with --nanobench)")
    target = options.folder / "nano"
    build(["c++", "-O2", f"-I{folder}", HERE / "nano.cc", "-o", target])

    def read(text):
        rows = (line.split(",") for line in text.splitlines() if "," in line)
        return {name: float(seconds) * 1e9 for name, seconds in rows}

    return Tool("nanobench, median", [str(target)], read)


def tools(options):
    makers = {
        "c": lambda o: scruple(o, "C", in_c),
        "c-first": lambda o: scruple(o, "C, first answer", in_c, FIRST),
        "rust": lambda o: scruple(o, "Rust", in_rust),
        "rust-first": lambda o: scruple(o, "Rust, first answer", in_rust, FIRST),
        "haskell": lambda o: scruple(o, "Haskell", in_haskell),
        "haskell-first": lambda o: scruple(o, "Haskell, first answer", in_haskell, FIRST),
        "python": lambda o: scruple(o, "Python", in_python),
        "divan": divan,
        "nanobench": nanobench,
        "google-benchmark": google,
        "google-benchmark-cpu": lambda o: google(o, "cpu_time"),
        "criterion.rs": criterion_rs,
        "criterion": criterion_hs,
    }
    for name, make in makers.items():
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
    """Runs every tool several times, in turn; prints the table and returns the figures that have required values."""
    readings = {name: [] for name, _ in chosen}
    seconds = {name: [] for name, _ in chosen}
    kept = {}
    for turn in range(options.times):
        for name, tool in chosen:
            print(f"{turn + 1}/{options.times} {tool.name}", file=sys.stderr)
            printed, took = run(tool.command)
            readings[name].append(tool.read(printed))
            seconds[name].append(took)
            if tool.keep:
                kept[name] = tool.keep(printed)
    print(f"Median of {options.times} invocations, and (max − min) / median over them:\n")
    print("| Tool | " + " | ".join(NAMES) + " | seconds | of processors |\n|---|" + "---|" * (len(NAMES) + 2))
    for name, tool in chosen:
        cells = []
        for function in NAMES:
            values = [reading.get(function) for reading in readings[name]]
            known = [value for value in values if value is not None]
            hidden = len(known) <= len(values) // 2
            cells.append("< res." if hidden else f"{text(statistics.median(known))} ({percent(spread(known))})")
        wall, cpu = (statistics.median(times) for times in zip(*seconds[name]))
        print(f"| {tool.name} | " + " | ".join(cells) + f" | {wall:.1f} | {cpu:.2f} |")
    print("\n‘< res.’: no more than the loop around it; the figures of all but Scruple and divan hold what `id` costs.\n")
    for name, parts in kept.items():
        tool = dict(chosen)[name]
        print(f"{tool.name}, last invocation:\n\n| | " + " | ".join(NAMES) + " |\n|---|" + "---|" * len(NAMES))
        for index, row in enumerate(["raw", "tare"]):
            print(f"| {row} | " + " | ".join(text(parts[f][index]) for f in NAMES) + " |")
        print("| net | " + " | ".join(net_text(parts[f][2]) for f in NAMES) + " |\n")
    return readings, seconds


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
    for name in ("c", "rust", "haskell"):
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
    programs = [options.folder / f"chain-{steps}" for steps in STEPS]
    for program, steps in zip(programs, STEPS):
        words = ["cc", "-O2", "-pthread", f"-DSTEPS={steps}", "-I", ROOT / "sdk/c", HERE / "chain.c", "-o", program]
        build(words)
    print("A true difference of 2.00 %:\n\n| Estimate | Interval | Covers 2.00 % | Verdict | Seconds |\n|---|---|---|---|---|")
    near = verdicts = covered = 0
    for _ in range(options.times):
        words = [options.scruple, "bench", "--no-store", "--json", "--against", str(programs[0]), "--", str(programs[1])]
        printed, (took, _) = run(words)
        found = next(c for c in json.loads(printed)["comparisons"] if c["metric"] == "time.wall")
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

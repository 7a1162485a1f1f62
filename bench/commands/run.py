#!/usr/bin/env python3
"""Compares weighing commands with hyperfine: false alarms, power, cost of a launch, peak memory.

    bench/commands/run.py --quick          a minute
    bench/commands/run.py                  about half an hour
    bench/commands/run.py --only tax       one table
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import launches
import verdicts
from tools import Bench

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="few repetitions: shows that it works, proves little")
    options.add_argument("--only", choices=["alarms", "power", "tax", "memory"], help="one table only")
    options.add_argument("--scruple", default=ROOT / "target/release/scruple", help="the program (default: the release build)")
    options.add_argument("--aa", type=int, help="comparisons of a program with itself")
    options.add_argument("--power", type=int, help="comparisons of programs that differ")
    options.add_argument("--results", type=pathlib.Path, help="keep every figure in this JSON file")
    args = options.parse_args()
    if not pathlib.Path(args.scruple).exists():
        raise SystemExit(f"there is no {args.scruple}: `cargo build --release` makes it, or name one with --scruple")
    bench = Bench(args.scruple, args.quick)
    version = bench.run([bench.scruple, "--version"]).strip()
    beside = bench.run([bench.hyperfine, "--version"]).strip() if bench.hyperfine else "no hyperfine"
    print(f"{version} and {beside} on {processor()}, load {open('/proc/loadavg').read().split()[0]}")
    try:
        if args.only in (None, "memory"):
            launches.peak_memory(bench)
        if args.only in (None, "tax"):
            launches.launch_tax(bench, *((2, 30) if args.quick else (10, 100)))
        if args.only in (None, "alarms"):
            verdicts.false_alarms(bench, args.aa or (4 if args.quick else 200))
        if args.only in (None, "power"):
            two, five = (args.power, args.power) if args.power else ((1, 2) if args.quick else (60, 100))
            verdicts.power(bench, two, five)
    finally:
        bench.close()
    if args.results:
        args.results.write_text(json.dumps(bench.results, indent=1))


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            return f"{name}, {os.cpu_count()} cores"
    return "an unknown processor"


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        raise SystemExit(str(error))

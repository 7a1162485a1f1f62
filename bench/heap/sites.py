#!/usr/bin/env python3
"""The cost of finding allocation sites, and what is found: the tool of `scruple inspect memory` beside DHAT, massif and
heaptrack in the same run. CPU time is user plus system of the whole tree, the smallest of some rounds, in which all
tools take turns. Like that of the other tools, it is that of counting alone. With `--whole` it includes the time in
which Scruple reads and shows the sites. Prints Markdown, and fails if a peak differs from DHAT's.

    python3 bench/heap/sites.py [--scruple PATH] [--rounds N] [--only PROGRAM] [--whole]
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import ROOT, compile_programs, programs, skip, smallest  # noqa: E402

# Programs whose allocations do not depend on addresses or on variables of the environment.
TAKEN = ["mix (C)", "maps (C++)", "sqlite3", "awk", "jq", "sort", "diff"]
DHAT = ["valgrind", "-q", "--tool=dhat", "--run-libc-freeres=no", "--run-cxx-freeres=no"]


def peaks(scruple, command, folder, found):
    """The peak by each tool that reports it to the byte."""
    out = folder / "out"
    words = [scruple, "inspect", "memory", "-i", "--json", "--", *command]
    page = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    yield "scruple", page["processes"][0]["at_peak"]["bytes"]
    subprocess.run([*DHAT, f"--dhat-out-file={out}", *command], capture_output=True)
    points = json.loads(out.read_text())["pps"]
    yield "DHAT", sum(point["gb"] for point in points)
    if "massif" in found:
        subprocess.run([*found["massif"]("--peak-inaccuracy=0.0", out), *command], capture_output=True)
        yield "massif", max(int(bytes) for bytes in re.findall(r"^mem_heap_B=(\d+)", out.read_text(), re.M))


def tool():
    """The command line of the compiled tool, which an earlier run of Scruple has left in its cache, and its
    variable."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "scruple/calltree"
    complete = max(cache.glob("*/complete"), key=lambda path: path.stat().st_mtime)
    words = ["valgrind", "-q", "--tool=calltree", "--sites=yes", "--trace-children=yes", "--vgdb=no"]
    return words, {"VALGRIND_LIB": str(complete.parent)}


def rivals(folder):
    out = folder / "rival"
    found = {
        "DHAT": lambda _, __: [*DHAT, f"--dhat-out-file={out}"],
        "massif": lambda option, at: ["valgrind", "-q", "--tool=massif", *filter(None, [option]),
                                      f"--massif-out-file={at or out}"],
    }
    if shutil.which("heaptrack"):
        found["heaptrack"] = lambda _, __: ["heaptrack", "-o", str(out)]
    else:
        skip("heaptrack", "it is not installed")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", default=str(ROOT / "target/release/scruple"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=TAKEN, metavar="PROGRAM")
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        skip("all", "valgrind is not installed")
        return 0
    scruple = str(pathlib.Path(options.scruple).resolve())
    differ = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        _, mix, maps = compile_programs(folder)
        found = rivals(folder)
        commands = programs(mix, maps, folder)
        commands["mix (C)"] = [mix, "400000"]
        taken = [name for name in TAKEN if name in commands and options.only in (None, name)]
        columns = ["scruple", *(["scruple, whole"] if options.whole else []), *found]
        print(f"| program | plain, s | {' | '.join(columns)} | peak, bytes | DHAT’s | massif’s |")
        print("|---|---|" + "---|" * (len(columns) + 3))
        for name in taken:
            command = commands[name]
            said = dict(peaks(scruple, command, folder, found))
            words, variables = tool()
            arms = {"plain": (command, None), "scruple": ([*words, f"--out={folder}/counted", *command], variables)}
            if options.whole:
                arms["scruple, whole"] = ([scruple, "inspect", "memory", "-i", "--", *command], None)
            arms |= {tool: ([*words(None, None), *command], None) for tool, words in found.items()}
            best = smallest(arms, options.rounds)
            differ += said["scruple"] != said["DHAT"]
            ratios = [f"×{best[column] / best['plain']:.1f}" for column in columns]
            numbers = [f"{said[tool]:,}" for tool in ["scruple", "DHAT", "massif"]]
            print(f"| {name} | {best['plain']:.3f} | {' | '.join(ratios + numbers)} |", flush=True)
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What `scruple explain A B` costs, relative to A and B one after the other without it: processor time (user plus system
of all processes) and waiting time. B is the program of A and does a tenth more work. Prints Markdown.

    python3 bench/explain/cost.py --scruple target/release/scruple [--long N] [--only PROGRAM] [--same] [OPTION...]

Further options are passed to `scruple explain`: --no-parallel shows what waiting costs where the two may not run at the
same time. Other load makes waiting times longer, and their ratio uncertain.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from run import programs

# Name, interpreter, text, what replaces @N@ for about a second of work.
SCRIPTS = [
    ("Python, short calls", "python3", """def leaf(n): return n * 31 % 65537
def work(n):
    s = 1
    for i in range(n): s += leaf(i + s)
    return s
for i in range(@N@): work(100)""", 140_000),
    ("Python, a dictionary", "python3", """d = {}
for i in range(@N@): d[i * 7919 % 50021] = d.get(i * 7919 % 50021, 0) + i""", 5_500_000),
    ("Ruby, blocks and calls", "ruby", """def leaf(n) = n * 31 % 65537
def work(n) = n.times.sum { |i| leaf(i) }
@N@.times { work(100) }""", 130_000),
    ("Ruby, arithmetic", "ruby", """i = 0
s = 1
while i < @N@
  s = s * 31 % 65537 + i
  i += 1
end""", 45_000_000),
]


def scripts(folder, tenths):
    """Name and command line of scripts whose functions the interpreter counts as well."""
    found = {}
    for number, (name, interpreter, text, amount) in enumerate(SCRIPTS):
        asks = {"python3": ["-c", "import sys; print(sys.executable)"], "ruby": ["-e", "puts RbConfig.ruby"]}
        if not shutil.which(interpreter):
            continue
        path = subprocess.run([interpreter, *asks[interpreter]], stdout=subprocess.PIPE, text=True).stdout.strip()
        script = folder / f"script{number}"
        script.write_text(text.replace("@N@", str(amount * tenths // 10)))
        found[name] = [path, str(script)]
    return found


def run(words, folder):
    """Processor seconds and waiting seconds."""
    began, before = time.monotonic(), os.times()
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = os.times()
    if done.returncode:
        sys.exit(f"{words} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scruple", required=True, type=pathlib.Path)
    parser.add_argument("--long", type=int, default=2, metavar="N", help="N times the work of run.py")
    parser.add_argument("--only")
    parser.add_argument("--same", action="store_true", help="B does the work of A")
    options, more = parser.parse_known_args()
    scruple = options.scruple.resolve()
    print("| program | A and B alone | processor time | waiting time | load |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        empty = folder / "empty"
        sides = []
        for side, tenths in (("a", 10), ("b", 10 if options.same else 11)):
            (folder / side).mkdir()
            words = programs(folder / side, 10, options.long * tenths)
            sides.append({**words, **scripts(folder / side, options.long * tenths // 2)})
        empty.mkdir()
        if options.only not in (None, *sides[0]):
            parser.error(f"--only: ‘{options.only}’ is none of {', '.join(sides[0])}")
        for name in sides[0]:
            if options.only and options.only != name:
                continue
            both = [side[name] for side in sides]
            alone = [sum(times) for times in zip(*(run(words, empty) for words in both))]
            explain = run([scruple, "explain", *more, *(shlex.join(words) for words in both)], empty)
            again = [sum(times) for times in zip(*(run(words, empty) for words in both))]
            cpu, wait = ((a + b) / 2 for a, b in zip(alone, again))
            print(f"| {name} | {cpu:.1f} s, {wait:.1f} s | {explain[0] / cpu:.1f} × | {explain[1] / wait:.1f} × "
                  f"| {os.getloadavg()[0]:.0f} |", flush=True)


if __name__ == "__main__":
    main()

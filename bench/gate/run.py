#!/usr/bin/env python3
"""Which changes a gate detects: a small program in its own repository, whose merge base is compared with changes of
known cost. Every change is checked repeatedly, each time as a new commit on a new branch. Prints Markdown.

    python3 bench/gate/run.py --scruple target/release/scruple [--times N] [--busy N]

With --gates FILE each gate is recorded there, and recorded gates count: the work can be done in pieces.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

__attribute__((noinline)) static unsigned hash(const char *text, unsigned length, unsigned rounds) {
    unsigned sum = 2166136261u;
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < length; i++) { sum ^= (unsigned char)text[i]; sum *= 16777619u; }
    return sum;
}

__attribute__((noinline)) static unsigned call(unsigned number) {
    char *text = malloc(@BYTES@);
    kept = text;
    memset(text, (int)(number & 127), 64);
    unsigned sum = hash(text, 64, @ROUNDS@);
    free(text);
    return sum;
}

int main(void) {
    unsigned all = 0;
    for (unsigned i = 0; i < 3000; i++) all += call(i);
    printf("%u\n", all);
    return @EXTRA@;
}
"""

SAME = {"BYTES": "64", "ROUNDS": "100", "EXTRA": "0"}

# The change, and the expected result of the gate.
CHANGES = {
    "documents": (None, 0),
    "a comment": ({"EXTRA": "0 /* nothing */"}, 0),
    "other code of the same cost": ({"EXTRA": "all == 1u"}, 0),
    "one byte more per call": ({"BYTES": "65"}, 1),
    "3 % more work per call": ({"ROUNDS": "103"}, 1),
    "3 % more work, time decides": ({"ROUNDS": "103"}, 1),
    "other code, time decides": ({"EXTRA": "all == 1u"}, 0),
}
OF_TIME = ["--gate", "time.cpu", "--margin", "1%", "--budget", "40s"]


def git(folder, *words):
    env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    for role in ("AUTHOR", "COMMITTER"):
        env[f"GIT_{role}_NAME"], env[f"GIT_{role}_EMAIL"] = "Someone", "someone@example.org"
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"git {words} failed: {done.stderr}")


def source(values):
    text = PROGRAM
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def repository(folder):
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text("app\n")
    (folder / "README.md").write_text("A program.\n")
    (folder / "app.c").write_text(source(SAME))
    (folder / "scruple.toml").write_text(
        '[[command]]\nname = "app"\nrun = "./app"\n[build]\nsteps = ["cc -O1 -g -o app app.c"]\nartifacts = ["app"]\n'
    )
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a program")


def once(scruple, folder, place, name, number):
    """One gate of a change in a new commit: its result, its duration, the change of processor time."""
    change = CHANGES[name][0]
    git(folder, "checkout", "-q", "-f", "-B", f"topic{number}", "main")
    if change is None:
        (folder / "README.md").write_text(f"A program, described for the {number}th time.\n")
    else:
        # A unique text prevents the use of an earlier build of the same source.
        (folder / "app.c").write_text(source({**SAME, **change}) + f"/* {number} */\n")
    git(folder, "commit", "-q", "-a", "-m", f"{name} {number}")
    more = OF_TIME if "time decides" in name else []
    words = [str(scruple), "check", "--json", "--no-store", *more]
    env = dict(os.environ, HOME=str(place), XDG_CACHE_HOME=str(place / "cache"), XDG_DATA_HOME=str(place / "data"))
    began = time.monotonic()
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    took = time.monotonic() - began
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{words} ended with {done.returncode}: {done.stderr}")
    return done.returncode, took, json.loads(done.stdout)["check"]


def named(found):
    """The metrics that were judged worse, and the lines named as their cause."""
    worse = {one["metric"] for one in found["findings"] if one["decides"] and one["outcome"] == "regression"}
    lines = {f"{one['file']}:{one['lines'][0]}" for one in found["origins"] if one.get("file")}
    return worse, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--times", type=int, default=50, help="gates of each change")
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="processes that keep the machine busy")
    parser.add_argument("--only", choices=CHANGES, help="one of the changes")
    parser.add_argument("--gates", type=pathlib.Path, help="a file of the gates so far, which is continued")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no gate after so long")
    args = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.busy)]
    try:
        gates = run(args)
    finally:
        for one in busy:
            one.kill()
            one.wait()
    table(gates)


def run(args):
    """The recorded gates, and those that remained to be done."""
    known = args.gates.read_text().splitlines() if args.gates and args.gates.exists() else []
    gates = [json.loads(line) for line in known]
    until = time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory(prefix="scruple-gate-") as text:
        place = pathlib.Path(text)
        folder = place / "repo"
        repository(folder)
        for name in CHANGES if not args.only else [args.only]:
            while sum(one["change"] == name for one in gates) < args.times and time.monotonic() < until:
                code, took, found = once(args.scruple, folder, place, name, len(gates) + 1)
                metrics, places = named(found)
                gates.append({"change": name, "code": code, "seconds": took, "load": os.getloadavg()[0],
                              "metrics": sorted(metrics), "lines": sorted(places)})
                if args.gates:
                    with args.gates.open("a") as file:
                        file.write(json.dumps(gates[-1]) + "\n")
    return gates


def table(gates):
    print("| change | gates | kept | exceeded | can't tell | wrong | what decided | seconds: median, most | load |")
    print("|---|---:|---:|---:|---:|---:|---|---:|---:|")
    for name, (_, expected) in CHANGES.items():
        those = [one for one in gates if one["change"] == name]
        if not those:
            continue
        ends = [one["code"] for one in those]
        times = [one["seconds"] for one in those]
        wrong = sum(code not in (expected, 3) for code in ends)
        decided = ", ".join(sorted({metric for one in those for metric in one["metrics"]})) or "–"
        lines = sorted({line for one in those for line in one["lines"]})
        decided += f" ({', '.join(lines)})" if lines else ""
        print(
            f"| {name} | {len(ends)} | {ends.count(0)} | {ends.count(1)} | {ends.count(3)} | {wrong} | {decided} "
            f"| {statistics.median(times):.1f}, {max(times):.1f} | {statistics.median(one['load'] for one in those):.0f} |"
        )


if __name__ == "__main__":
    main()

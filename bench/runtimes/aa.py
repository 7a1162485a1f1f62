#!/usr/bin/env python3
"""Compares a program of each language runtime with itself, and counts the verdicts on its figures.

    python3 bench/runtimes/aa.py [--scruple BIN] [--times N] [WORD…]

Words select the runtimes whose names contain one of them as a whole word: R selects neither Ruby nor Racket CS. The
exit code is 1 if more than one verdict in twenty is "different", and 2 if a word is in no name.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = ("alloc.", "gc.", "heap.")
ALLOWED = 0.05

# Name, source, how it is built, how it is run, steps.
PROGRAMS = [
    ("GHC", "alloc.hs", ["ghc", "-v0", "-O1", "-outputdir", "o", "-o", "hs", "{}"], ["./hs"], 1_000_000),
    ("CPython", "alloc.py", [], ["/usr/bin/python3", "{}"], 200_000),
    ("Node.js", "alloc.cjs", [], ["node", "{}"], 300_000),
    ("JVM", "Alloc.java", ["javac", "-d", ".", "{}"], ["java", "-cp", ".", "Alloc"], 300_000),
    ("Go", "alloc.go", ["go", "build", "-o", "goprog", "{}"], ["./goprog"], 1_000_000),
    ("Guile", "alloc.scm", ["guile", "{}", "10"], ["guile", "{}"], 1_000_000),
    ("OCaml", "alloc.ml", ["ocamlopt", "-o", "ml", "{}"], ["./ml"], 1_000_000),
    ("Ruby", "alloc.rb", [], ["ruby", "{}"], 200_000),
    ("PHP", "alloc.php", [], ["php", "{}"], 200_000),
    ("Racket CS", "alloc.rkt", [], ["racket", "{}"], 1_000_000),
    ("SBCL", "alloc.lisp", [], ["sbcl", "--script", "{}"], 1_000_000),
    ("Lua", "alloc.lua", [], ["lua5.4", "{}"], 200_000),
    ("R", "alloc.R", [], ["Rscript", "{}"], 100_000),
]


def verdicts(scruple, command, folder):
    """The verdicts of one run that compares the program with itself, by metric."""
    words = [scruple, "run", "--no-store", "--json", "-r", "24", command, command]
    run = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    compared = json.loads(run.stdout)["comparisons"]
    return {one["metric"]: one["verdict"] for one in compared if one["metric"].startswith(FAMILIES)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", default=os.path.join(HERE, "../../target/release/scruple"), help="the program")
    parser.add_argument("--times", type=int, default=40, help="comparisons of each runtime")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only runtimes whose name has one of these")
    options = parser.parse_args()
    unknown = set(options.words) - {word for program in PROGRAMS for word in program[0].split()}
    if unknown:
        names = ", ".join(program[0] for program in PROGRAMS)
        parser.error(f"no runtime has a name with the word {', '.join(sorted(map(repr, unknown)))}; there are: {names}")
    scruple = os.path.abspath(options.scruple)
    wrong = False
    print("| runtime | comparisons | different | small | same | can't tell | different, by metric |")
    print("|---|---|---|---|---|---|---|")
    all_of = {}
    for name, source, build, run, steps in PROGRAMS:
        if options.words and not set(options.words) & set(name.split()):
            continue
        if not shutil.which(run[0] if not build else build[0]):
            print(f"skipped: {name} is not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(os.path.join(HERE, "programs", source), folder)
            fill = lambda words: [word.replace("{}", path) for word in words]
            if build:
                subprocess.run(fill(build), cwd=folder, check=True, capture_output=True)
            count, of_metric = {}, {}
            for _ in range(options.times):
                for metric, verdict in verdicts(scruple, " ".join([*fill(run), str(steps)]), folder).items():
                    count[verdict] = count.get(verdict, 0) + 1
                    if verdict == "different":
                        of_metric[metric] = of_metric.get(metric, 0) + 1
        for verdict, times in count.items():
            all_of[verdict] = all_of.get(verdict, 0) + times
        wrong |= row(name, count, of_metric)
    row("all", all_of, {})
    sys.exit(1 if wrong else 0)


def row(name, count, of_metric):
    total = sum(count.values())
    shares = [count.get(word, 0) for word in ("different", "small", "same", "can't tell")]
    by_metric = ", ".join(f"`{metric}` {times}" for metric, times in sorted(of_metric.items()))
    print(f"| {name} | {total} | " + " | ".join(map(str, shares)) + f" | {by_metric} |", flush=True)
    return shares[0] > ALLOWED * max(total, 1)


main()

#!/usr/bin/env python3
"""Whether the speed of Guile's compiled code changes while the core's does not: one process times a loop in Guile, which
allocates nothing, and chains of instructions in C, one after the other, again and again. Prints a table in Markdown: the
5th and the 95th percentile of each, as a multiple of its median, and its correlation with Guile's first reading.

    python3 bench/functions/guile_speeds.py [--rounds N]
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

from programs import Absent, build, need

NAMES = ["multiplications", "additions", "stores and loads", "calls"]
IN_C = r"""
#include <stdint.h>
#include <time.h>
static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
static long same(long x) { return x + 1; }
#define CHAIN(name, before, step) \
    long name(long n) { before; long start = now(); for (long i = 0; i < n; i++) { step; } return now() - start; }
CHAIN(c0, uint32_t h = 1, h = (h ^ 1) * 16777619u; __asm__ volatile("" : "+r"(h)))
CHAIN(c1, uint64_t a = 0; uint64_t b = 0, __asm__ volatile("add $1,%0\n add $1,%1" : "+r"(a), "+r"(b)))
CHAIN(c2, volatile uint64_t m = 1, m = m + 1)
CHAIN(c3, long (*volatile f)(long) = same; long x = 0, x = f(x))
"""
IN_GUILE = """
(use-modules (system foreign))
(define library (dynamic-link "{library}"))
(define chains
  (map (lambda (name) (pointer->procedure long (dynamic-func name library) (list long))) '("c0" "c1" "c2" "c3")))
(define (step h octet) (logand (* (logxor h octet) 16777619) #xffffffff))
(define (one h x) (step h (logand x 255)))
(define (many h x steps) (if (zero? steps) h (many (one h (+ x steps)) x (1- steps))))
(define (timed)
  (let ((start (get-internal-real-time))) (many 2166136261 #xdeadbeef 1250) (- (get-internal-real-time) start)))
(let next ((i 0))
  (when (< i {rounds})
    (let* ((first (timed)) (others (map-in-order (lambda (chain) (chain 3000)) chains)))
      (format #t "~a~{{ ~a~}} ~a~%" first others (timed)))
    (next (1+ i))))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6000)
    parser.add_argument("--scruple", help="not used: Guile is timed without Scruple")
    options = parser.parse_args()
    try:
        need("guile")
        need("cc")
    except Absent as why:
        sys.exit(str(why))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "chains.c").write_text(IN_C)
        build(["cc", "-O2", "-shared", "-fPIC", folder / "chains.c", "-o", folder / "chains.so"])
        (folder / "speeds.scm").write_text(IN_GUILE.format(library=folder / "chains", rounds=options.rounds))
        words = ["guile", str(folder / "speeds.scm")]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    # The first rounds run while Guile compiles the loop.
    rounds = [[int(word) for word in line.split()] for line in lines[len(lines) // 10:]]
    medians = [statistics.median(column) for column in zip(*rounds)]
    # A reading that was interrupted says nothing about the speed.
    rounds = [row for row in rounds if all(a < 1.2 * b for a, b in zip(row, medians))]
    columns = list(zip(*rounds))
    print("| | 5 % | 95 % | correlation |\n|---|---|---|---|")
    for name, column in zip(["loop in Guile", *NAMES, "loop in Guile, once more"], columns):
        ordered, middle = sorted(column), statistics.median(column)
        low, high = (ordered[int(len(ordered) * part)] / middle for part in (0.05, 0.95))
        print(f"| {name} | {low:.3f} | {high:.3f} | {statistics.correlation(columns[0], column):.2f} |")
    print(f"\n{len(rounds)} rounds.")


main()

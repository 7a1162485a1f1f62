#!/usr/bin/env python3
"""Whether the interval of a first answer (`--quick`) contains the long answer, which comes from many processes. Prints
a table in Markdown; the exit code is 1 if it does so in less than nine of ten first answers of a case.

    python3 bench/functions/first_answers.py [--scruple BIN] [--only SUITE]… [--times N] [--processes N] [--no-store]
        [--verbose]

The first answers of all suites take turns. Those of a suite have a store, as for a user: each reads there what the core
did in the earlier ones. With `--no-store` each is the first on its machine. The long answer is not stored; it has half
of its processes before the first answers, and half after them.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import five

LEAST = 0.9  # The share of first answers whose interval holds the long answer.
WIDE = 0.02  # From half this width on, an answer says how to get a closer one.


def answer(options, command, more):
    words = [options.scruple, "bench", "--json", "--time-only", *more, "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    return {arm["name"]: five.span(arm) for arm in json.loads(done.stdout)["arms"] if arm["role"] == "subject"}


def holds(span, both):
    """Whether an interval holds the long answer: the middle of its two halves, or 0 if both are below resolution."""
    long = [net for net, _, _ in both if net is not None]
    if len(long) < len(both):
        return span[1] <= max(high for _, _, high in both)
    return span[1] <= statistics.fmean(long) <= span[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20, help="first answers of each suite")
    parser.add_argument("--processes", type=int, default=12, help="processes of each half of the long answer")
    parser.add_argument("--no-store", action="store_true", help="no first answer reads earlier ones")
    parser.add_argument("--verbose", action="store_true", help="print every interval that does not hold the long answer")
    options = five.parsed(parser)
    long = ["--no-store", "--processes", str(options.processes)]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        suites = list(five.built(options.only, folder))
        halves = {name: [answer(options, command, long)] for name, command in suites}
        first = {name: [] for name, _ in suites}
        for turn in range(options.times):
            print(f"{turn + 1}/{options.times}, load {os.getloadavg()[0]:.0f}", file=sys.stderr)
            for number, (name, command) in enumerate(suites):
                store = ["--no-store"] if options.no_store else ["--store", str(folder / f"{number}.db")]
                first[name].append(answer(options, command, ["--quick", *store]))
        for name, command in suites:
            halves[name].append(answer(options, command, long))
    sys.exit(report(first, halves, options.verbose))


def report(first, halves, verbose):
    print("| Suite | Cases | First answers of a case that hold the long answer | Least, of one case | Half width, median |")
    print("|---|---|---|---|---|")
    worst, details = 1.0, []
    for name, answers in first.items():
        shares, widths = {}, []
        for case in answers[0]:
            both = [half[case] for half in halves[name]]
            held = [holds(one[case], both) for one in answers]
            shares[case] = sum(held) / len(held)
            nets = [one[case] for one in answers if one[case][0]]
            widths.extend((high - low) / 2 / abs(net) for net, low, high in nets)
            if not all(held):
                missed = "; ".join(five.span_text(one[case]) for one, held in zip(answers, held) if not held)
                details.append(f"- {name}, {case}: {' and '.join(map(five.span_text, both))}, but {missed}")
        case = min(shares, key=shares.get)
        worst = min(worst, shares[case])
        mean = statistics.fmean(shares.values())
        wide = sum(width > WIDE for width in widths) / max(len(widths), 1)
        middle = f"{statistics.median(widths):.1%} ({wide:.0%} above {WIDE:.0%})" if widths else "–"
        print(f"| {name} | {len(shares)} | {mean:.1%} | {shares[case]:.0%} ({case}) | {middle} |")
    print("\n" + "\n".join(details) if verbose else "")
    return 0 if worst >= LEAST else 1


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Five invocations of the function suite of every SDK: whether their results agree. Two invocations agree on a case
if their nets are within 3 % of each other, or their intervals overlap. Prints a table in Markdown; the exit code is 1
if two invocations disagree.

    python3 bench/functions/five.py [--scruple BIN] [--only SUITE]… [--times N] [--verbose]

The invocations of all suites take turns, so that those of one suite are some time apart. Each suite has a store, as
for a user: the machine's clock speed in earlier invocations is read from there.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import programs
import run as seven

NEAR = 0.03


SUITES = {
    "C": programs.in_c,
    "C++": programs.in_cpp,
    "Rust": programs.in_rust,
    "Haskell": programs.in_haskell,
    "Haskell, Scruple.Criterion": programs.in_criterion,
    "Go": programs.in_go,
    "Java": programs.in_java,
    "JavaScript": programs.in_javascript,
    "Python": programs.in_python,
    "Guile": programs.in_guile,
}


def built(only, folder):
    for name, build in SUITES.items():
        if only and name not in only:
            continue
        try:
            yield name, build(folder)
        except programs.Absent as why:
            print(f"skipped: {name}: {why}", file=sys.stderr)


def weigh(options, command, store):
    """The result of one invocation: for each case its net, an interval and whether it is a number; and the remarks."""
    words = [options.scruple, "bench", "--json", "--store", str(store), "--time-only", "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    answer = json.loads(done.stdout)
    return {arm["name"]: span(arm) for arm in answer["arms"] if arm["role"] == "subject"}, answer["warnings"]


def span(arm):
    """The net of a case and its interval. A net below resolution is between 0 and a bound. With too few readings for an
    interval it may be anything."""
    net = arm["metrics"]["time.wall"].get("net")
    if net is None:
        return None, 0, math.inf
    low, high = net["interval"]
    if net["below_resolution"] is not None:
        return None, 0, net["below_resolution"]
    return net["estimate"], low, high


def agreement(spans):
    """The largest difference between two invocations, and the pairs that are neither close nor overlap."""
    largest, apart = 0, []
    for (i, one), (j, other) in itertools.combinations(enumerate(spans, 1), 2):
        near = False
        if one[0] is not None and other[0] is not None and min(one[0], other[0]) > 0:
            difference = max(one[0], other[0]) / min(one[0], other[0]) - 1
            largest, near = max(largest, difference), difference <= NEAR
        if not near and (one[1] > other[2] or other[1] > one[2]):
            apart.append((i, j))
    return largest, apart


def parsed(parser):
    """The options of a study of these suites, with the program that it tries."""
    parser.add_argument("--scruple", default="scruple", help="the program (default: the one on the path)")
    parser.add_argument("--only", action="append", choices=SUITES, help="only this suite")
    options = parser.parse_args()
    found = shutil.which(options.scruple)
    if not found:
        sys.exit(f"there is no ‘{options.scruple}’: name the program with --scruple")
    options.scruple = os.path.abspath(found)
    return options


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help="invocations of each suite")
    parser.add_argument("--verbose", action="store_true", help="print the net and the interval of every invocation")
    options = parsed(parser)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        suites = list(built(options.only, folder))
        load = [os.getloadavg()[0]]
        invocations = {name: [] for name, _ in suites}
        for turn in range(options.times):
            for number, (name, command) in enumerate(suites):
                print(f"{turn + 1}/{options.times} {name}", file=sys.stderr)
                invocations[name].append(weigh(options, command, folder / f"{number}.db"))
            load.append(os.getloadavg()[0])
    fine = report(invocations, options.verbose)
    print(f"\nLoad of the machine while they ran: {min(load):.0f} to {max(load):.0f}.")
    sys.exit(0 if fine else 1)


def report(invocations, verbose):
    print("| Suite | Cases | Within 3 % | Largest difference | Beyond 3 %, intervals overlap | Disagree |")
    print("|---|---|---|---|---|---|")
    details, fine = [], True
    for name, answers in invocations.items():
        cases = list(answers[0][0])
        found = {case: agreement([spans[case] for spans, _ in answers]) for case in cases}
        near = sum(largest <= NEAR and not apart for largest, apart in found.values())
        apart = [case for case, (_, pairs) in found.items() if pairs]
        worst = max(found, key=lambda case: found[case][0])
        fine = fine and not apart
        cells = [name, len(cases), near, f"{100 * found[worst][0]:.1f} % ({worst})", len(cases) - near - len(apart)]
        print("| " + " | ".join(map(str, cells)) + f" | {', '.join(apart) or 'none'} |")
        for case in cases if verbose else apart:
            spans = "; ".join(span_text(spans[case]) for spans, _ in answers)
            details.append(f"- {name}, {case}: {spans}")
        remarks = {warning["text"] for _, warnings in answers for warning in warnings}
        details.extend(f"- {name}: {text}" for text in sorted(remarks))
    print("\n" + "\n".join(details) if details else "")
    return fine


def span_text(span):
    net, low, high = span
    if high == math.inf:
        return "too few readings"
    middle = "below resolution" if net is None else seven.text(net)
    return f"{middle} [{seven.text(max(low, 0)) if low > 0 else '0'}, {seven.text(high)}]"


if __name__ == "__main__":
    main()

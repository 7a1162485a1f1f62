#!/usr/bin/env python3
"""Compares Scruple's search for change points with Apache Otava's and asv's, on series with planted changes. Prints
Markdown, and then which of the required values are reached; the exit code is 1 if one is not.

    python3 bench/changepoints/run.py [--quick] [--seed N]… [--rates] [--no-rivals] [--by-kind] [--scruple BIN]

The series: 50 of 1000 values with 0 to 3 shifts of 1 to 20 %, 120 of 60 values with 0 to 3 shifts of 2 to 40 %, in noise of
1 to 5 % of six kinds; see series.py. Shifts are drawn twice: mostly small ones, and all sizes alike. `--seed` draws
others. The printed figures, which are compared with the required values, are means over the seeds.
`--rates` prints how often a change is reported in series of noise alone, also where the size of the noise changes.
Scruple's part is run by the example `changepoints` of crates/core, so `--scruple` is not used. The other tools are
installed from PyPI into a folder in the user's cache; if that fails, they are left out, with the reason.
"""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from detectors import detect, rivals, scruple
from score import Score
from series import KINDS, ODDITIES, odd, planted, uneven

SETS = {
    "long, mostly small": (1000, 0.01, 0.2, 50, False),
    "long, all sizes": (1000, 0.01, 0.2, 50, True),
    "short, mostly small": (60, 0.02, 0.4, 120, False),
    "short, all sizes": (60, 0.02, 0.4, 120, True),
}
BARS = {"long": 0.83, "short": 0.85}
SEEDS = range(1, 9)


def scores(command, seed, name, quick):
    """Scores within 3 and 10 places, by kind of noise and of all; and how many true places were in their sets."""
    n, smallest, largest, count, even = SETS[name]
    numbers = range(count // 5 if quick else count)
    drawn = [planted(seed, number, n, smallest, largest, even=even) for number in numbers]
    answers = detect(command, [values for _, values, _ in drawn])
    found = {}
    inside = 0
    for (kind, _, truth), answer in zip(drawn, answers):
        for tolerance in (3, 10):
            for which in ("all", kind):
                found.setdefault((which, tolerance), Score()).add(truth, answer["changes"], tolerance, answer["ms"])
        for at, first, last in zip(answer["changes"], answer.get("first", []), answer.get("last", [])):
            near = [t for t in truth if abs(t - at) <= 10]
            inside += any(first <= t <= last for t in near)
    return found, inside


def mean(scores, of):
    return statistics.fmean(of(score) for score in scores)


def row(label, name, near, far, inside):
    """A line of the table: means over the seeds, and the spread between seeds."""
    f1 = [score.f1 for score in near]
    spread = f" ± {statistics.stdev(f1):.2f}" if len(f1) > 1 else ""
    hits = sum(score.hits for score in far)
    share = f"{100 * inside / hits:.0f} %" if inside and hits else "–"
    series = sum(score.series for score in near)
    print(
        f"| {label} | {name} | {mean(near, lambda s: s.precision):.2f} | {mean(near, lambda s: s.recall):.2f} "
        f"| {statistics.fmean(f1):.3f}{spread} | {mean(far, lambda s: s.f1):.3f} "
        f"| {mean(near, lambda s: s.quiet):.1f} | {share} | {sum(score.ms for score in near) / series:.2f} |",
        flush=True,
    )


def table(commands, seeds, quick, by_kind):
    print("| detector | series | P | R | F1, within 3 | F1, within 10 | false on unchanged | in its set | ms each |")
    print("|---|---|---|---|---|---|---|---|---|")
    found = {}
    for label, command in commands.items():
        for name in SETS:
            all_seeds = [scores(command, seed, name, quick) for seed in seeds]
            of = lambda kind, tolerance: [score[kind, tolerance] for score, _ in all_seeds]
            row(label, name, of("all", 3), of("all", 10), sum(inside for _, inside in all_seeds))
            found[label, name] = of("all", 3)
            for kind in KINDS if by_kind else []:
                row("", f"…{kind}", of(kind, 3), of(kind, 10), 0)
    return found


def oddities(commands, seed, quick):
    print("\n| series of 300 values | true changes | " + " | ".join(f"{label}: hits, others" for label in commands) + " |")
    print("|---|---|" + "---|" * len(commands))
    drawn = [odd(seed, number, 300) for number in range(8 if quick else 80)]
    answers = {label: detect(command, [d[1] for d in drawn]) for label, command in commands.items()}
    for kind in ODDITIES:
        cells = []
        for label in commands:
            score = Score()
            for (of, _, truth), answer in zip(drawn, answers[label]):
                if of == kind:
                    score.add(truth, answer["changes"], 3)
            cells.append(f"{score.hits}, {score.found - score.hits}")
        print(f"| {kind} | {score.truth} | " + " | ".join(cells) + " |")


def rates(commands, seed, quick):
    """The share of series of noise alone in which a change is reported."""
    sizes = [30, 60, 200, 1000]
    print("\n| noise | detector | " + " | ".join(f"n = {n}" for n in sizes) + " |")
    print("|---|---|" + "---|" * len(sizes))
    for kind in KINDS:
        for label, command in commands.items():
            cells = []
            for n in sizes:
                tries = {"Scruple": 1000, "other": 200}["Scruple" if label == "Scruple" else "other"]
                tries = 40 if quick else tries if n < 1000 else tries // 4
                series = [planted(seed, i, n, 0.1, 0.1, shifts=0, kind=kind)[1] for i in range(tries)]
                wrong = sum(bool(answer["changes"]) for answer in detect(command, series))
                cells.append(f"{100 * wrong / tries:.1f} % of {tries}")
            print(f"| {kind} | {label} | " + " | ".join(cells) + " |", flush=True)


def uneven_rates(commands, quick):
    """The share of series without steps in which a change is reported although only the size of the noise changes."""
    parts = [(2, 0.5), (3, 0.5), (3, 0.75), (10, 0.5)]
    heads = [f"{factor} times from {100 * share:.0f} % on" for factor, share in parts]
    print("\n| noise | n | detector | " + " | ".join(heads) + " |")
    print("|---|---|---|" + "---|" * len(parts))
    # In noise that is not symmetric, the median changes with the size of the noise, so there the change is real.
    for kind in ["normal", "t3", "ar1", "spikes"]:
        for n in [30, 60, 100, 300]:
            for label, command in commands.items():
                tries = 20 if quick else 1000 if label == "Scruple" else 100
                cells = []
                for factor, share in parts:
                    series = [uneven(number, n, kind, factor, share) for number in range(tries)]
                    wrong = sum(bool(answer["changes"]) for answer in detect(command, series))
                    cells.append(f"{100 * wrong / tries:.1f} %")
                print(f"| {kind} | {n} | {label} | " + " | ".join(cells) + " |", flush=True)


def judge(found, quick):
    """Prints which required values are reached. The short version has too little data for that."""
    fine = True
    for name in SETS:
        length = name.split(",")[0]
        here = found["Scruple", name]
        # The required values have two digits; the third is below the spread between draws.
        f1 = round(mean(here, lambda s: s.f1), 2)
        quiet = mean(here, lambda s: s.quiet)
        ms = max(score.ms / score.series for score in here)
        checks = [(f"F1 {f1:.2f} ≥ {BARS[length]}", f1 >= BARS[length])]
        if length == "long":
            checks += [(f"{quiet:.1f} ≤ 1 false point on unchanged series", quiet <= 1)]
            checks += [(f"{ms:.2f} ms ≤ 4 ms", ms <= 4)]
        for text, met in checks:
            print(f"{'met' if met else 'MISSED'}: {name}: {text}")
            fine &= met
    if quick:
        print("This was the short version, on a fifth of the series: the bars are for the whole one.")
    return fine or quick


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", help="not used: the library is run by its example")
    parser.add_argument("--quick", action="store_true", help="a fifth of the series")
    parser.add_argument("--seed", type=int, action="append", default=[], help="a seed instead of 1 to 8; may be repeated")
    parser.add_argument("--rates", action="store_true", help="also how often noise alone is given a change")
    parser.add_argument("--no-rivals", action="store_true", help="Scruple alone")
    parser.add_argument("--by-kind", action="store_true", help="also each kind of noise by itself")
    options = parser.parse_args()
    seeds = options.seed or list(SEEDS)
    others, absent = ({}, {}) if options.no_rivals else rivals(["otava", "asv"])
    for name, why in absent.items():
        print(f"skipped: {name}: {why}")
    commands = {"Scruple": scruple()} | others
    found = table(commands, seeds, options.quick, options.by_kind)
    oddities(commands, seeds[0], options.quick)
    if options.rates:
        rates(commands, seeds[0], options.quick)
        uneven_rates(commands, options.quick)
    print()
    return 0 if judge(found, options.quick) else 1


if __name__ == "__main__":
    sys.exit(main())

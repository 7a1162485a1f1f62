#!/usr/bin/env python3
"""Scruple's search for change points beside those of Otava, asv, E-divisive (MongoDB's) and PELT (ruptures, squared
error on logarithms, 6 ln n): one table in Markdown.

    python3 bench/changepoints/side_by_side.py [--quick] [--seed N] [--repositories DIR] [--without NAME]… [--only real|planted]

The first rows are planted series (series.py), then real ones (real.py), which are cloned, or read from the clones
`treeherder` and `TCPD` in DIR; if they are not available, their rows are left out, with the reason. One draw of slow
series differs from the next by more than detectors do, so a second table, of eight draws and Scruple alone, shows
whether Scruple meets the targets for them. Scruple names steps of 1 % and more in real series, half the margin of
commands, and all that it sees in planted ones. The exit code is 1 where Scruple misses an aim.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from detectors import RIVALS, detect, rivals, scruple
from real import covering, mozilla, turing
from score import Score
from series import SLOW, planted, slow

SEEDS = range(1, 9)

# The F1 that slow series with steps must reach, and how many changes each without a step may be given.
AIMS = {"trend": (0.85, 0.05), "wave": (0.60, 0.05), "walk": (0.70, 0.35)}


def scored(command, drawn):
    score = Score()
    answers = detect(command, [values for _, values, _ in drawn])
    for (_, _, truth), answer in zip(drawn, answers):
        score.add(truth, answer["changes"], 3, answer["ms"])
    return score


def row(name, commands, cell):
    """Prints a row, and yields what the cells come from."""
    found = {}
    cells = []
    for title, command in commands.items():
        try:
            found[title], text = cell(title, command)
        except RuntimeError as why:
            text = f"failed: {str(why).splitlines()[-1]}"
        cells.append(text)
        print(f"  {name}: {title}: {text}", file=sys.stderr, flush=True)
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return found


def planted_row(name, commands, drawn, text):
    """A row of planted series."""

    def cell(title, command):
        score = scored(command, drawn)
        return score, text(score)

    row(f"{len(drawn)} of {name}", commands, cell)


def planted_rows(commands, seed, share):
    """Rows of series with planted steps."""
    for n, smallest, largest, count in [(1000, 0.01, 0.2, 50), (60, 0.02, 0.4, 120)]:
        drawn = [planted(seed, number, n, smallest, largest) for number in range(count // share)]
        text = lambda score: f"{score.f1:.3f}, {score.quiet} false, {score.ms / score.series:.1f} ms"
        planted_row(f"{n} values, steps of {smallest:.0%} to {largest:.0%}", commands, drawn, text)
    for kind in SLOW:
        drawn = [slow(seed, number, 400, kind) for number in range(60 // share)]
        planted_row(f"400 values, steps upon a {kind}", commands, drawn, lambda score: f"{score.f1:.3f}")
        drawn = [slow(seed, number, 400, kind, steps=False) for number in range(180 // share)]
        planted_row(f"400 values, a {kind} alone", commands, drawn, lambda score: f"{score.found} false")


def slow_table(command, share):
    """Eight draws of slow series for one detector; whether the aims are met."""
    print("\n| steps upon | F1 | of single draws | the same steps without it | changes named in each series of it alone |")
    print("|---|---|---|---|---|")
    met = True
    for kind in SLOW:
        def draws(count, **words):
            return [scored(command, [slow(seed, number, 400, kind, **words) for number in range(count // share)]) for seed in SEEDS]

        each = [score.f1 for score in draws(60)]
        without = [score.f1 for score in draws(60, background=False)]
        quiet = draws(180, steps=False)
        false = sum(score.found for score in quiet) / sum(score.series for score in quiet)
        f1 = statistics.fmean(each)
        least, most = AIMS[kind]
        met &= f1 >= least and false <= most
        print(
            f"| a {kind} | {f1:.3f} (aim: {least}) | {min(each):.2f} to {max(each):.2f} | {statistics.fmean(without):.3f} "
            f"| {false:.3f} (aim: {most}) |", flush=True,
        )
    return met


def real_rows(commands, folder):
    """Rows of real series; whether Scruple meets the aims."""
    met = True
    try:
        talos = mozilla(folder)

        def cell(_, command):
            score = Score()
            for (_, _, truth), answer in zip(talos, detect(command, [values for _, values, _ in talos])):
                score.add(truth, answer["changes"], 5)
            return score, f"{score.hits} of {score.truth}, {score.found - score.hits} others"

        score = row(f"Mozilla's Talos, {len(talos)} series", commands, cell)["Scruple"]
        met &= score.hits >= 11 and score.found - score.hits <= 15
    except (subprocess.SubprocessError, OSError) as why:
        print(f"left out: Mozilla's series: {why}")
    try:
        marked = turing(folder)

        def cell(_, command):
            answers = detect(command, [values for _, values, _ in marked])
            f1 = [covering(truth, answer["changes"]) for (_, _, truth), answer in zip(marked, answers)]
            return statistics.fmean(f1), f"{statistics.fmean(f1):.3f}"

        met &= row(f"Turing Change Point Dataset, {len(marked)} series", commands, cell)["Scruple"] >= 0.71
    except (subprocess.SubprocessError, OSError) as why:
        print(f"left out: the Turing Change Point Dataset: {why}")
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the planted series")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repositories", type=pathlib.Path, help="a folder with clones of the real series")
    parser.add_argument("--without", action="append", default=[], choices=RIVALS, help="leave a rival out")
    parser.add_argument("--only", choices=["real", "planted"], help="half of the rows")
    options = parser.parse_args()
    others, absent = rivals([name for name in RIVALS if name not in options.without])
    for name, why in absent.items():
        print(f"left out: {name}: {why}")
    commands = {"Scruple": scruple()} | others
    print("| series | " + " | ".join(commands) + " |")
    print("|---|" + "---|" * len(commands))
    met = True
    if options.only != "real":
        planted_rows(commands, options.seed, 5 if options.quick else 1)
    if options.only != "planted":
        commands["Scruple"] = scruple(least=0.01)
        met &= real_rows(commands, options.repositories)
    if options.only != "real":
        met &= slow_table(scruple(), 5 if options.quick else 1)
    print("\nScruple meets its aims." if met else "\nScruple MISSES an aim.")
    return 0 if met or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Scruple's search for change points beside Apache Otava's and asv's, on series whose changes were planted. Prints Markdown,
and then which of the bars are met; the exit code is 1 where one is not.

    python3 bench/changepoints/run.py [--quick] [--seed N]… [--rates] [--no-rivals] [--by-kind] [--scruple BIN]

The series: 50 of 1000 values with 0 to 3 shifts of 1 to 20 %, 120 of 60 values with 0 to 3 shifts of 2 to 40 %, in noise of
1 to 5 % of six kinds; see series.py. `--seed` draws others; several give a line each, and the bars hold for their mean.
`--rates` prints how often series of noise alone are given a change. What is run of Scruple is crates/core, by its example
`changepoints`, so `--scruple` is not used. The rivals are installed from PyPI into a folder in the user's cache; where
that cannot be, they are left out, with the reason.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import venv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from score import Score
from series import KINDS, ODDITIES, odd, planted

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RIVALS = pathlib.Path(__file__).resolve().parent / "rivals.py"
SETS = {"long": (1000, 0.01, 0.2, 50), "short": (60, 0.02, 0.4, 120)}
BARS = {"long": 0.83, "short": 0.85}


def scruple():
    """The example's command, built."""
    build = ["cargo", "build", "--release", "--quiet", "-p", "scruple-core", "--example", "changepoints"]
    subprocess.run(build, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(target / "release" / "examples" / "changepoints")]


def rivals():
    """The command for each rival, and why those are left out that are."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    folder = cache / "scruple-bench" / "changepoints"
    python = folder / "bin" / "python"
    found, absent = {}, {}
    try:
        if not python.exists():
            venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as why:
        return {}, {"Otava, asv": f"no virtual environment: {why}"}
    for name, package, module in [("otava", "apache-otava==0.8.0", "otava"), ("asv", "asv==0.6.6", "asv")]:
        here = subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0
        if not here:
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
            try:
                done = subprocess.run(pip, capture_output=True, text=True, timeout=600)
                here = done.returncode == 0
                why = (done.stderr.strip().splitlines() or ["?"])[-1]
            except subprocess.TimeoutExpired:
                why = "it took longer than ten minutes"
        if here:
            found[name] = [str(python), str(RIVALS), name]
        else:
            absent[name] = f"pip cannot install {package}: {why}"
    return found, absent


def detect(command, series):
    """What a detector says of each series: its places, and more where it says more."""
    lines = "".join(json.dumps(values) + "\n" for values in series)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(series):
        raise RuntimeError(f"{command[0]} answered {len(answers)} of {len(series)} series")
    # Processor time, since the machine may be busy; a rival says its own, without the start of its interpreter.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for answer in answers:
        answer.setdefault("ms", 1000 * spent / len(series))
    return answers


def scores(command, seed, name, quick):
    """Scores within 3 and 10 places, by kind of noise and of all; and how many true places were in their sets."""
    n, smallest, largest, count = SETS[name]
    drawn = [planted(seed, number, n, smallest, largest) for number in range(count // 5 if quick else count)]
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


def table(commands, seeds, quick, by_kind):
    print("| detector | seed | series | P | R | F1, within 3 | F1, within 10 | false on unchanged | in its set | ms each |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    means = {}
    for label, command in commands.items():
        for name in SETS:
            for seed in seeds:
                found, inside = scores(command, seed, name, quick)
                near, far = found["all", 3], found["all", 10]
                share = f"{100 * inside / far.hits:.0f} %" if inside and far.hits else "–"
                print(
                    f"| {label} | {seed} | {name} | {near.precision:.2f} | {near.recall:.2f} | {near.f1:.3f} "
                    f"| {far.f1:.3f} | {near.quiet} | {share} | {near.ms / near.series:.2f} |",
                    flush=True,
                )
                means.setdefault((label, name), []).append(near)
                if by_kind:
                    for kind in KINDS:
                        one = found[kind, 3]
                        print(f"|  |  | …{kind} | {one.precision:.2f} | {one.recall:.2f} | {one.f1:.3f} "
                              f"| {found[kind, 10].f1:.3f} | {one.quiet} | | |")
    return means


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
    """The share of series of noise alone that are given a change."""
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


def judge(means, quick):
    """Says which bars are met; a short version is too short to say."""
    fine = True
    for name, bar in BARS.items():
        here = means["Scruple", name]
        f1 = sum(score.f1 for score in here) / len(here)
        quiet = sum(score.quiet for score in here) / len(here)
        ms = max(score.ms / score.series for score in here)
        checks = [(f"F1 {f1:.3f} ≥ {bar}", f1 >= bar)]
        if name == "long":
            checks += [(f"{quiet:.1f} ≤ 1 false point on unchanged series", quiet <= 1)]
            checks += [(f"{ms:.2f} ms ≤ 5 ms", ms <= 5)]
        for text, met in checks:
            print(f"{'met' if met else 'MISSED'}: {name} series, {text}")
            fine &= met
    if quick:
        print("This was the short version, on a fifth of the series: the bars are for the whole one.")
    return fine or quick


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", help="not used: the library is run by its example")
    parser.add_argument("--quick", action="store_true", help="a fifth of the series")
    parser.add_argument("--seed", type=int, action="append", default=[], help="another seed; may be repeated")
    parser.add_argument("--rates", action="store_true", help="also how often noise alone is given a change")
    parser.add_argument("--no-rivals", action="store_true", help="Scruple alone")
    parser.add_argument("--by-kind", action="store_true", help="also each kind of noise by itself")
    options = parser.parse_args()
    seeds = options.seed or [1]
    others, absent = ({}, {}) if options.no_rivals else rivals()
    for name, why in absent.items():
        print(f"skipped: {name}: {why}")
    titles = {"otava": "Otava 0.8.0", "asv": "asv 0.6.6"}
    commands = {"Scruple": scruple()} | {titles[name]: command for name, command in others.items()}
    means = table(commands, seeds, options.quick, options.by_kind)
    oddities(commands, seeds[0], options.quick)
    if options.rates:
        rates(commands, seeds[0], options.quick)
    print()
    return 0 if judge(means, options.quick) else 1


if __name__ == "__main__":
    sys.exit(main())

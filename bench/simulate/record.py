#!/usr/bin/env python3
"""Writes costs.json for the simulation of farms from the answer of `scruple history ... --json` (or of `history report
--json`): the times of builds and launches, in nanoseconds.

    python3 bench/simulate/record.py ANSWER.json > bench/simulate/costs.json

Options set the overhead of a unit of work and the store's time for a reading, in seconds."""

import argparse
import json
import statistics


def series(answer, metric):
    found = [one for one in answer["series"] if one["metric"] == metric]
    return [point for one in found for point in one["points"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answer")
    parser.add_argument("--unit", type=float, default=0.5, help="seconds that a unit takes besides its work")
    parser.add_argument("--reading", type=float, default=0.005, help="seconds that the store takes for a reading")
    args = parser.parse_args()
    with open(args.answer, encoding="utf-8") as file:
        answer = json.load(file)
    builds = [statistics.median(point["readings"]) for point in series(answer, "build.time")]
    launches = [statistics.median(point["readings"]) for point in series(answer, "time.wall")]
    if not builds or not launches:
        raise SystemExit(f"{args.answer}: no builds or no launches were timed in it")
    costs = {
        "repository": answer["history"]["repository"],
        "range": answer["history"]["range"],
        "commands": sorted({one["subject"] for one in answer["series"]}),
        "build.time": builds,
        "time.wall": launches,
        "seconds_a_unit": args.unit,
        "seconds_a_reading": args.reading,
    }
    print(json.dumps(costs, indent=1))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The cost of finding allocation sites by sampling, beside that of tools that record every allocation. CPU time is
user plus system of the whole tree without the reading of what was recorded, the smallest of interleaved rounds. Prints
Markdown.

    python3 bench/heap/sampled_sites.py [--rounds N] [--no-rivals] [--only PROGRAM]
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import run

MEANS = {"counted only": None, "one in 512 KiB": 512 * 1024, "one in 64 KiB": 64 * 1024, "every one": 1}


class Recording(run.Counting):
    """A session that records sites. Commands with `environment` are recorded."""

    def __init__(self, runner, mean):
        self.words = [runner, f"--mean={mean}", "--hold"]
        self.start()

    def start(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.environment = dict(self.process.stdout.readline().rstrip("\n").split("=", 1) for _ in range(2))

    def restart(self):
        """Removes the records, so that they fill no disk."""
        self.close()
        self.start()


def rivals(folder):
    kept = ("heaptrack", "DHAT", "memray")
    found = {name: wrap for name, wrap in run.rivals(folder).items() if name in kept}
    run.skip("bytehound", "not packaged")
    return found


def table(commands, sessions, others, rounds):
    columns = [*sessions, *others]
    print(f"CPU time of programs, as a multiple of the plain run (smallest of {rounds} rounds; every one and others once):\n")
    print(f"| program | plain, s | {' | '.join(columns)} |\n|---|---|{'---|' * len(columns)}")
    for name, command in commands.items():
        arms = {"plain": (command, None)}
        arms |= {mode: (command, session.environment) for mode, session in sessions.items() if mode != "every one"}
        best = run.smallest(arms, rounds)
        best["every one"] = run.cpu(command, sessions["every one"].environment)
        for session in sessions.values():
            if isinstance(session, Recording):
                session.restart()
        for rival, wrap in others.items():
            wrapped = wrap(command)
            if not wrapped:
                continue
            try:
                best[rival] = run.cpu(wrapped)
            except RuntimeError as error:
                run.skip(f"{rival} of {name}", error)
        ratios = [f"×{best[column] / best['plain']:.2f}" if column in best else "–" for column in columns]
        print(f"| {name} | {best['plain']:.3f} | {' | '.join(ratios)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--quick", action="store_true", help="three rounds: shows that it works, proves little")
    parser.add_argument("--scruple", help="not used: the recorder is driven without the rest of Scruple")
    parser.add_argument("--only", default="", help="programs whose name holds this")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else arguments.rounds
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        _, mix, maps = run.compile_programs(folder)
        counting, recording = run.counter(), run.counter("sites")
        sessions = {
            name: Recording(recording, mean) if mean else run.Counting(counting, "requested")
            for name, mean in MEANS.items()
        }
        try:
            others = {} if arguments.no_rivals else rivals(folder)
            commands = {k: v for k, v in run.programs(mix, maps, folder).items() if arguments.only in k}
            table(commands, sessions, others, rounds)
        finally:
            for session in sessions.values():
                session.close()


if __name__ == "__main__":
    main()

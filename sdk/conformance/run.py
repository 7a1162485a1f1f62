#!/usr/bin/env python3
"""Runs the conformance checks on an SDK's conformance program: run.py [--only TEXT] [--preload LIBRARY] -- PROGRAM …"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from checks import CHECKS
from program import Gone, Program, Silent
from transcript import applies, play

TRANSCRIPTS = sorted(Path(__file__).parent.joinpath("transcripts").glob("*.txt"))


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, wrong, note=""):
        if wrong:
            self.failed += 1
        else:
            self.passed += 1
        if not name.isprintable():
            name = name.encode("unicode_escape").decode()
        print(f"FAIL {name}: {wrong}" if wrong else f"ok   {name}{note and f' ({note})'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Checks a bench program against the protocol.")
    parser.add_argument("--only", default="", help="only transcripts and checks whose name contains this text")
    parser.add_argument("--preload", help="a library to be preloaded into the program (LD_PRELOAD)")
    parser.add_argument("program", nargs="+", help="the SDK's conformance program and its arguments")
    options = parser.parse_args()
    found = shutil.which(options.program[0])
    if not found:
        print(f"cannot find the program {options.program[0]}", file=sys.stderr)
        return 2
    argv = [found] + options.program[1:]
    if options.preload:
        os.environ["LD_PRELOAD"] = str(Path(options.preload).resolve())
    tally = Tally()
    try:
        with Program(argv) as program:
            hello = program.ask("hello 1")
            cases, _ = program.cases()
    except (Gone, Silent, ValueError) as problem:
        print(f"FAIL start: {problem}\n0 passed, 1 failed")
        return 1
    features = hello.get("features", [])
    for path in TRANSCRIPTS:
        if options.only in path.stem:
            if applies(path.read_text(encoding="utf-8"), features):
                play(path, argv, cases, tally)
            else:
                print(f"skip {path.stem}: not for a program with features {features}")
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        if options.only in name:
            try:
                tally(name, None, check(argv, cases, hello) or "")
            except (AssertionError, Gone, Silent, ValueError, LookupError, TypeError) as problem:
                tally(name, str(problem) or type(problem).__name__)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())

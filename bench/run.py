#!/usr/bin/env python3
"""Runs every benchmark of Scruple and other tools. `--quick` makes each short.

    python3 bench/run.py --scruple target/release/scruple [--quick] [--only NAME]
"""

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def command_of(folder, scruple, quick):
    """The command line of one benchmark: a Python script with options, or a program without."""
    if (folder / "run.py").exists():
        words = [sys.executable, str(folder / "run.py"), "--scruple", str(scruple)]
        return words + ["--quick"] if quick else words
    if (folder / "run").exists():
        return [str(folder / "run")]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", required=True, help="the program to be measured")
    parser.add_argument("--quick", action="store_true", help="a short version of each")
    parser.add_argument("--only", action="append", default=[], help="a benchmark's name; may be repeated")
    options = parser.parse_args()
    scruple = pathlib.Path(options.scruple).resolve()
    failed = []
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        if options.only and folder.name not in options.only:
            continue
        words = command_of(folder, scruple, options.quick)
        if not words:
            continue
        print(f"\n== {folder.name}", flush=True)
        if subprocess.run(words, env={**os.environ, "SCRUPLE": str(scruple)}).returncode != 0:
            failed.append(folder.name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

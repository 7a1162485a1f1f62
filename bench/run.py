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

# The scripts beside `run` whose tables the documents show, each with the options that make it short.
FURTHER = {
    "functions": [("five.py", ["--times", "2"]), ("suites.py", ["--only", "primitive"]),
                  ("guile_speeds.py", ["--rounds", "1000"])],
    "heap": [("sites.py", ["--rounds", "1"]), ("sampled_sites.py", ["--quick"])],
    "runtimes": [("aa.py", ["--times", "2"])],
}


def commands_of(folder, scruple, quick):
    """The names and command lines of one benchmark: Python scripts with options, or a program without."""
    scripts = [("run.py", ["--quick"])] if (folder / "run.py").exists() else []
    if (folder / "run").exists():
        yield f"{folder.name}/run", [str(folder / "run")]
    for name, short in [*scripts, *FURTHER.get(folder.name, [])]:
        words = [sys.executable, str(folder / name), "--scruple", str(scruple)]
        yield f"{folder.name}/{name}", words + (short if quick else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", required=True, help="the program to be measured")
    parser.add_argument("--quick", action="store_true", help="a short version of each")
    parser.add_argument("--only", action="append", default=[], help="a folder of benchmarks; may be repeated")
    options = parser.parse_args()
    scruple = pathlib.Path(options.scruple).resolve()
    failed = []
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        if options.only and folder.name not in options.only:
            continue
        for name, words in commands_of(folder, scruple, options.quick):
            print(f"\n== {name}", flush=True)
            if subprocess.run(words, env={**os.environ, "SCRUPLE": str(scruple)}).returncode != 0:
                failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

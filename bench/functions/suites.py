#!/usr/bin/env python3
"""The benches of five well-known Haskell packages under Scruple, with only the import of their harness changed: whether
each builds, and its results. Sources come from Debian by `apt-get source`, into a temporary folder; Debian's libraries
are used. Prints a table in Markdown; the exit code is 1 if a suite does not build or run. Packages
whose source cannot be downloaded are left out, with the reason.

    python3 bench/functions/suites.py [--scruple BIN] [--only PACKAGE]… [--keep FOLDER]
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SDK = pathlib.Path(__file__).resolve().parent.parent.parent / "sdk/haskell/src"
IMPORTS = [("Criterion.Main.Options", "Scruple.Criterion.Options"), ("Criterion.Main", "Scruple.Criterion"),
           ("Test.Tasty.Bench", "Scruple.TastyBench"), ("Gauge.Main", "Scruple.Gauge")]

# The main module of each suite in its package's source, further folders of modules, and its arguments.
SUITES = {
    "attoparsec": ("benchmarks/Benchmarks.hs", ["benchmarks/warp-3.0.1.1", "."], []),
    "unordered-containers": ("benchmarks/Benchmarks.hs", [], []),
    "primitive": ("bench/main.hs", [], []),
    "vector": ("benchmarks/Main.hs", [], ["--size", "20000"]),
    "conduit": ("benchmarks/unfused.hs", [], []),
}

# The package hashmap is not in Debian; unordered-containers measures it beside itself, and here itself once more.
STAND_INS = {"unordered-containers": {"Data/HashMap.hs": """module Data.HashMap (module Data.HashMap.Strict, Map) where
import Data.HashMap.Strict
type Map = HashMap
"""}}


class NoSource(Exception):
    """Why the source of a package is not there."""


def sources(package, folder):
    """The package's source, unpacked, with the harness's import changed."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', pathlib.Path("/etc/os-release").read_text(), re.M))
    (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
    listed = folder / "sources.list"
    options = ["-qq", "-o", f"Dir::Etc::SourceList={listed}", "-o", "Dir::Etc::SourceParts=/dev/null",
               "-o", f"Dir::State::Lists={folder / 'lists'}", "-o", "APT::Sandbox::User="]
    try:
        if not listed.exists():
            listed.write_text(f"deb-src http://deb.debian.org/debian {release['VERSION_CODENAME']} main\n")
            run(["apt-get", *options, "update"], folder)
        run(["apt-get", *options, "source", "--download-only", f"haskell-{package}"], folder)
    except RuntimeError as why:
        raise NoSource(str(why)) from None
    archive = next(folder.glob(f"haskell-{package}_*.orig.tar.*"))
    run(["tar", "xf", archive.name], folder)
    unpacked = next(path for path in folder.glob(f"{package}-[0-9]*") if path.is_dir())
    for file in unpacked.rglob("*.hs"):
        text = changed = file.read_text(encoding="utf-8", errors="surrogateescape")
        for theirs, ours in IMPORTS:
            changed = re.sub(rf"^(import\s+(?:qualified\s+)?){re.escape(theirs)}(?![\w.])", rf"\g<1>{ours}", changed, flags=re.M)
        if package in STAND_INS:
            changed = changed.replace('"hashmap" Data.HashMap', "Data.HashMap")
        if changed != text:
            file.write_text(changed, encoding="utf-8", errors="surrogateescape")
    return unpacked


def run(words, folder, environment=None):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {' | '.join((done.stderr.strip() or done.stdout.strip()).splitlines()[:6])}")
    return done.stdout


def weigh(package, scruple, folder):
    main, more, arguments = SUITES[package]
    unpacked = sources(package, folder)
    main = unpacked / main
    for name, text in STAND_INS.get(package, {}).items():
        (main.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (main.parent / name).write_text(text)
    objects, program = folder / f"{package}-objects", folder / f"{package}-bench"
    where = [f"-i{path}" for path in [SDK, main.parent, *(unpacked / path for path in more)]]
    # The package itself is Debian's build: its own source folder is left out.
    run(["ghc", "--make", "-v0", "-w", "-O2", "-XPackageImports", *where, "-outputdir", objects, main, "-o", program], main.parent)
    words = [scruple, "bench", "--quick", "--json", "--no-store", "--", program, *arguments]
    answer = json.loads(run(words, main.parent, {**os.environ, "LANG": "C.UTF-8"}))
    cases = [arm for arm in answer["arms"] if arm["role"] == "subject"]
    timed = [arm for arm in cases if "estimate" in arm["metrics"].get("time.wall", {})]
    counted = [arm for arm in cases if "estimate" in arm["metrics"].get("alloc.bytes", {})]
    return len(cases), len(timed), len(counted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", default="scruple", help="the program (default: the one on the path)")
    parser.add_argument("--only", action="append", choices=SUITES, help="only this package")
    parser.add_argument("--keep", type=pathlib.Path, help="work in this folder and leave it")
    options = parser.parse_args()
    for needed in ("apt-get", "ghc", options.scruple):
        if not shutil.which(needed):
            sys.exit(f"there is no ‘{needed}’")
    scruple = os.path.abspath(shutil.which(options.scruple))
    fine = True
    print("| Package | Cases | Timed | Allocations counted |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        for package in options.only or SUITES:
            try:
                cases, timed, counted = weigh(package, scruple, folder)
                fine = fine and cases == timed
                print(f"| {package} | {cases} | {timed} | {counted} |", flush=True)
            except NoSource as why:
                print(f"skipped: {package}: {why}", file=sys.stderr)
            except RuntimeError as why:
                fine = False
                print(f"| {package} | {str(why)[:600]} | | |", flush=True)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()

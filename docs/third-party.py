#!/usr/bin/env python3
"""Writes THIRD-PARTY.md: every crate that Cargo.lock names, with its licence and its purpose.

    python3 docs/third-party.py            writes the file
    python3 docs/third-party.py --check    exits with 1 if the file is not up to date
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD-PARTY.md"
PLATFORM = "x86_64-unknown-linux-gnu"

HEAD = """\
# Third parties

Written by `docs/third-party.py` from `Cargo.lock`; do not edit. Scruple itself is under MIT or Apache-2.0, as you like.

`program`: linked into `scruple`, or a macro in its source. `build`: runs while it is compiled. `tests`: for tests alone.
`elsewhere`: named in `Cargo.lock`, but not compiled on Linux. A crate that a manifest of this project names is **bold**;
the others are there because those need them. Where a licence reads `A OR B`, Scruple takes whichever the user prefers.

The crate libsqlite3-sys contains SQLite, which is in the public domain. The SDKs contain no code of others.
`instruments/calltree` is a separate program in C that is linked with Valgrind's core, and is under GPL-2.0-or-later
(its file `COPYING`); `scruple` carries its sources, compiles them on the user's machine, starts the result and reads a
file that it writes. `scruple-calltree.h` there is for users' programs, and under Scruple's own licence.
`examples/queues-rust` is a package of its own, with a `Cargo.lock` of its own that is not listed here.

"""


def metadata(*more):
    words = ["cargo", "metadata", "--format-version", "1", "--offline", "--locked", *more]
    return json.loads(subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def reached(graph, roots, kinds_at_roots, kinds_below):
    """The packages that can be reached from `roots`, first by edges of some kinds, then by edges of others."""
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    seen, waiting = set(), [(root, kinds_at_roots) for root in roots]
    while waiting:
        package, kinds = waiting.pop()
        for edge in nodes[package]["deps"]:
            if edge["pkg"] not in seen and any(kind["kind"] in kinds for kind in edge["dep_kinds"]):
                seen.add(edge["pkg"])
                waiting.append((edge["pkg"], kinds_below))
    return seen


def uses(graph):
    """The purpose of each package on this platform; the most important use counts."""
    members = graph["workspace_members"]
    program = reached(graph, members, {None}, {None})
    build = reached(graph, set(members) | program, {"build"}, {None, "build"})
    tests = reached(graph, members, {None, "build", "dev"}, {None, "build"})
    return [("program", program), ("build", build - program), ("tests", tests - build - program)]


def text():
    everything, here = metadata(), metadata("--filter-platform", PLATFORM)
    members = set(everything["workspace_members"])
    named = {edge["pkg"] for node in everything["resolve"]["nodes"] if node["id"] in members for edge in node["deps"]}
    classes = uses(here)
    rows = []
    for package in everything["packages"]:
        if package["id"] in members:
            continue
        use = next((name for name, packages in classes if package["id"] in packages), "elsewhere")
        name = f"**{package['name']}**" if package["id"] in named else package["name"]
        licence = (package["license"] or f"see its {package['license_file']}").replace("/", " OR ")
        rows.append((package["name"], package["version"], f"| {name} | {package['version']} | {licence} | {use} |"))
    table = [row for _, _, row in sorted(rows)]
    return HEAD + "\n".join(["| crate | version | licence | use |", "|---|---|---|---|", *table]) + "\n"


def main():
    wanted = text()
    if "--check" in sys.argv[1:]:
        if not FILE.exists() or FILE.read_text() != wanted:
            sys.exit("THIRD-PARTY.md is not up to date: run `python3 docs/third-party.py`")
    else:
        FILE.write_text(wanted)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the documents that are made from runs of the program.

    python3 docs/make.py --scruple target/release/scruple            writes them
    python3 docs/make.py --scruple target/release/scruple --check    exits with 1 where docs/cli.md is not up to date,
                                                                     or a command of a document does not end as it should

`docs/cli.md` holds what `--help` says of each verb. In README.md and docs/*.md,

    <!-- prepare: head -c 1000 /dev/urandom > data -->
    <!-- run: scruple run 'cat data' -->
    <!-- end -->

become the transcript of the command. The commands of one document run in one new folder, in their order, by `sh`; `run`
expects the exit code 0, and `run 1:` the code 1. `prepare` runs without being shown.

With --check, the lines that begin with `scruple` in ```sh blocks of docs/how-to.md and docs/tutorial.md are tried too,
with less effort than they would take. One that ends in a comment such as `# exits with 0, 1 or 3` may do that.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "cli.md"
RECIPES = [ROOT / "docs" / "how-to.md", ROOT / "docs" / "tutorial.md"]
COLUMNS = "100"
BLOCK = re.compile(r"^<!-- (?P<what>run|prepare)(?: (?P<code>\d+))?: (?P<command>.+?) -->\n(?P<old>.*?)(?P<end><!-- end -->\n|(?=^<!--|\Z))", re.M | re.S)
RUN_ID = re.compile(r"\b0?1[0-9a-hjkmnp-tv-z]{12}\b")

HEAD = """\
# The command line

Written by `docs/make.py` from `scruple --help`; do not edit. [how-to.md](how-to.md) shows the options at work,
[formats.md](formats.md) describes the output.
"""


class Place:
    """A folder to run commands in, with `scruple` on the search path and none of the user's settings."""

    def __init__(self, scruple, folder):
        self.home = Path(folder)
        self.folder = self.home / "project"
        programs = self.home / "bin"
        for path in (self.folder, programs):
            path.mkdir()
        (programs / "scruple").symlink_to(scruple)
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', '/usr/bin:/bin')}"
        # A store of the folder's own: without it, commands would find the one of a project further up, if any.
        (self.folder / ".scruple").mkdir()
        self.env = {**kept, "PATH": path, "HOME": str(self.home), "COLUMNS": COLUMNS, "ROOT": str(ROOT)}

    def run(self, words, **more):
        done = subprocess.run(words, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, **more)
        return done.returncode, self.masked(done.stdout)

    def masked(self, text):
        text = text.replace(str(self.folder), "/home/you/project").replace(str(self.home), "/home/you")
        text = text.replace(str(ROOT), "/home/you/scruple")
        return RUN_ID.sub("1abcdefgh0123", text)


def trimmed(text):
    return "".join(line.rstrip() + "\n" for line in text.strip("\n").split("\n"))


def reference(place):
    """The help of the program, of each of its verbs, and of theirs."""

    def help_of(verb):
        code, text = place.run(["scruple", *verb, "--help"])
        if code != 0:
            sys.exit(f"`scruple {' '.join(verb)} --help` exits with {code}:\n{text}")
        return trimmed(text)

    def sections(verb):
        text = help_of(verb)
        yield f"## scruple {' '.join(verb)}\n\n```\n{text}```\n" if verb else f"```\n{text}```\n"
        # Verbs stand before the options, with their first letter in the third column.
        head = text.split("Usage:", 1)[1].split("\nOptions:", 1)[0]
        for name in re.findall(r"^  ([a-z]\S*)", head, re.M):
            if name != "help":
                yield from sections([*verb, name])

    return "\n".join([HEAD, *sections([])])


LESS_EFFORT = """#!/bin/sh
case "$1 $*" in
*" --budget"* | *" --quick"*) ;;
"run "*) shift; set -- run --budget 0.3s "$@" ;;
"bench "*) shift; set -- bench --quick "$@" ;;
"doctor "*) shift; set -- doctor --quick "$@" ;;
esac
exec {scruple} "$@"
"""


def try_recipes(path, place, scruple, complaints):
    """Runs each recipe of a document."""
    program = place.home / "bin" / "scruple"
    program.unlink()
    program.write_text(LESS_EFFORT.replace("{scruple}", shlex.quote(str(scruple))))
    program.chmod(0o755)
    for block in re.findall(r"^```sh\n(.*?)^```", path.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line.startswith("scruple "):
                allowed = re.search(r"# exits with ([0-9, or]+)", line)
                codes = [int(code) for code in re.findall(r"\d+", allowed[1])] if allowed else [0]
                code, said = place.run(["sh", "-c", line], timeout=600)
                if code not in codes:
                    complaints.append(f"{path.relative_to(ROOT)}: `{line}` exits with {code}:\n{said}")


def filled(path, place, complaints):
    """The document with its transcripts made anew."""

    def replacement(found):
        command, wanted = found["command"], int(found["code"] or 0)
        code, said = place.run(["sh", "-c", command], timeout=600)
        where = f"{path.relative_to(ROOT)}: `{command}`"
        if code != wanted:
            complaints.append(f"{where} exits with {code} instead of {wanted}:\n{said}")
        if found["what"] == "prepare":
            return found[0]
        if not found["end"]:
            complaints.append(f"{where} has no `<!-- end -->`")
            return found[0]
        head = found[0].split("\n", 1)[0]
        transcript = trimmed(f"$ {command}\n{said}")
        return f"{head}\n\n```console\n{transcript}```\n\n<!-- end -->\n"

    return BLOCK.sub(replacement, path.read_text())


def main():
    parser = argparse.ArgumentParser(description="Writes the documents that are made from runs.")
    parser.add_argument("--scruple", required=True, type=Path, help="the program")
    parser.add_argument("--check", action="store_true", help="write nothing, complain instead")
    parser.add_argument("documents", nargs="*", type=Path, help="only these (default: README.md and docs/*.md)")
    args = parser.parse_args()
    scruple = args.scruple.resolve(strict=True)
    complaints = []
    with tempfile.TemporaryDirectory(prefix="scruple-docs-") as folder:
        text = reference(Place(scruple, folder))
    if not args.check:
        REFERENCE.write_text(text)
    elif not REFERENCE.exists() or REFERENCE.read_text() != text:
        complaints.append("docs/cli.md is not up to date: run `make docs`")
    documents = [path.resolve() for path in args.documents] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for path in documents:
        if path == REFERENCE or not path.exists() or not BLOCK.search(path.read_text()):
            continue
        with tempfile.TemporaryDirectory(prefix="scruple-docs-") as folder:
            place = Place(scruple, folder)
            text = filled(path, place, complaints)
            if args.check and path in RECIPES:
                try_recipes(path, place, scruple, complaints)
        if not args.check:
            path.write_text(text)
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()

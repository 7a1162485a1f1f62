#!/usr/bin/env python3
"""Checks every link between the documents, and builds the book from them.

    python3 docs/book.py                    exits with 1 if a link is dead
    python3 docs/book.py --build FOLDER     also builds the book there, with mdbook (https://rust-lang.github.io/mdBook)

A link is dead where the file that it names is not there, or has no heading of that name. The book holds all documents
at their own paths, so that their links are the book's; files that they lead to are copied beside them. In the built
book every link is checked once more.
"""

import argparse
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = ROOT / "docs" / "SUMMARY.md"
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.M | re.S)
INDENTED = re.compile(r"(?<=\n\n)(?:    .*\n)+")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
ATTRIBUTE = re.compile(r"<(?:img|source|a)\b[^>]*?\b(?:src|srcset|href)=\"([^\"]+)\"")


def documents():
    """The documents: those of the project itself, not of what it was built from."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True)
    # The head of a document that a program writes belongs where that document is.
    names = [name for name in listed.stdout.split() if not name.endswith(".head.md")] if listed.returncode == 0 else [str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md")]
    return [ROOT / name for name in names if (ROOT / name).exists()]


def prose(text):
    """The text without code, in which brackets are no links."""
    return CODE.sub("", INDENTED.sub("", FENCE.sub("", text)))


def links(path):
    text = prose(path.read_text())
    return LINK.findall(text) + ATTRIBUTE.findall(text)


def headings(path):
    """The names of a document's headings, as GitHub and mdbook derive them."""
    found = set()
    for line in FENCE.sub("", path.read_text()).splitlines():
        if heading := re.match(r"#{1,6} (.+)", line):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            words = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            name, number = words, 0
            while name in found:
                number += 1
                name = f"{words}-{number}"
            found.add(name)
    return found


def is_elsewhere(link):
    return bool(re.match(r"[a-z][a-z0-9+.-]*:", link))


def dead(paths):
    for path in paths:
        for link in links(path):
            if is_elsewhere(link):
                continue
            name, _, part = link.partition("#")
            target = (path.parent / urllib.parse.unquote(name)).resolve() if name else path
            if not target.exists():
                yield f"{path.relative_to(ROOT)}: {link}: there is no such file"
            elif part and target.suffix == ".md" and part not in headings(target):
                yield f"{path.relative_to(ROOT)}: {link}: there is no such heading"


def unlisted(paths):
    """Documents that the book's summary does not name."""
    listed = {(SUMMARY.parent / link).resolve() for link in links(SUMMARY)}
    return [f"docs/SUMMARY.md does not list {path.relative_to(ROOT)}" for path in paths
            if path.parent == SUMMARY.parent and path != SUMMARY and path not in listed]


def build(folder, paths):
    with tempfile.TemporaryDirectory(prefix="scruple-book-") as text:
        place = pathlib.Path(text)
        source = place / "src"
        for path in paths:
            copy = source / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            # In a book the README of a folder is its index.
            copy.write_text(re.sub(r"(\]\([^)\s]*)README\.md", r"\1index.md", path.read_text()))
            for link in links(path):
                target = (path.parent / urllib.parse.unquote(link.partition("#")[0])).resolve()
                if not is_elsewhere(link) and target.is_file() and target not in paths and ROOT in target.parents:
                    beside = source / target.relative_to(ROOT)
                    beside.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(target, beside)
        # The summary's links are from the root of the sources.
        inside = lambda found: f"]({(SUMMARY.parent / found[1]).resolve().relative_to(ROOT)})"
        (source / "SUMMARY.md").write_text(re.sub(r"\]\(([^)]+)\)", inside, SUMMARY.read_text()))
        shutil.copy(ROOT / "docs" / "book.toml", place / "book.toml")
        done = subprocess.run(["mdbook", "build", "--dest-dir", str(folder.resolve()), str(place)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mdbook ended with {done.returncode}: {done.stderr}")


class Page(html.parser.HTMLParser):
    """The links and the names of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names |= {values[key] for key in ("id", "name") if values.get(key)}
        self.links += [values[key] for key in ("href", "src") if values.get(key)]


def dead_in_book(folder):
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html") if path.name not in ("print.html", "404.html", "toc.html")}
    for path, page in pages.items():
        for link in page.links:
            if is_elsewhere(link) or link.startswith("//"):
                continue
            name, _, part = link.partition("#")
            target = (path.parent / urllib.parse.unquote(name)).resolve() if name else path
            known = target.exists() or (ROOT / target.relative_to(folder.resolve())).is_dir() if folder.resolve() in target.parents else False
            if not known:
                yield f"{path.relative_to(folder.resolve())}: {link}: there is no such page"
            elif part and target in pages and urllib.parse.unquote(part) not in pages[target].names:
                yield f"{path.relative_to(folder.resolve())}: {link}: there is no such heading"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, metavar="FOLDER", help="where the book goes")
    args = parser.parse_args()
    paths = documents()
    wrong = [*dead(paths), *unlisted(paths)]
    if args.build and not wrong:
        build(args.build, paths)
        wrong = list(dead_in_book(args.build))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()

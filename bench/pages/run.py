#!/usr/bin/env python3
"""How long the page of a large history takes to write, and until it is usable in a browser. Prints Markdown.

    python3 bench/pages/run.py --scruple target/release/scruple [--commits N] [--subjects N] [--metrics N]

A history of two commits is weighed in a repository of its own and multiplied in its store: every commit has every
subject in every metric, every tenth series changes once. The browser is Debian's Chromium in headless mode,
controlled by tests/pages/browser.mjs. A page is usable when the document can be scrolled and its folds opened
(domInteractive), and loaded when everything in it is laid out (loadEventEnd).
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
METRICS = ["time.wall", "time.cpu", "memory.peak", "malloc.bytes", "malloc.count", "instructions"]
EXACT = {"malloc.bytes", "malloc.count", "instructions"}
READINGS = 10

LOOK = """
import { Browser } from '%s';
import { pathToFileURL } from 'node:url';
const [file, times] = process.argv.slice(2);
const browser = new Browser();
for (let i = 0; i < Number(times); i++) {
  const tab = await browser.tab(1280, false);
  await tab.open(pathToFileURL(file).href);
  console.log(await tab.value(`JSON.stringify((({ domInteractive, loadEventEnd }) => ({ domInteractive, loadEventEnd }))(
    performance.getEntriesByType('navigation')[0]))`));
  await tab.close();
}
await browser.close();
"""


def weigh(scruple, place, env):
    repository = place / "repo"
    repository.mkdir()
    git = lambda *words: subprocess.run(
        ["git", "-c", "user.name=Someone", "-c", "user.email=someone@example.org", *words],
        cwd=repository, check=True, capture_output=True)
    git("init", "-q", "-b", "main")
    for text in ("one", "two"):
        (repository / "app").write_text(f"#!/bin/sh\n# {text}\ntrue\n")
        (repository / "app").chmod(0o755)
        git("add", "-A")
        git("commit", "-q", "-m", text)
    store = place / "store.db"
    words = [scruple, "history", "--repo", repository, "--build", "true", "--artifact", "app", "--rounds", "6",
             "--time-only", "--all", "--store", store, "--", "./app"]
    done = subprocess.run([str(word) for word in words], cwd=place, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{words} ended with {done.returncode}: {done.stderr}")
    return store


def multiply(store, commits, subjects, metrics):
    base = sqlite3.connect(store)
    columns = lambda table: [about[1] for about in base.execute(f"PRAGMA table_info({table})")]
    row = lambda table, where="": dict(zip(columns(table), base.execute(f"SELECT * FROM {table} {where}").fetchone()))
    arm, version = row("arm", "WHERE version IS NOT NULL"), row("version", "WHERE state = 'built'")
    samples = base.execute("SELECT * FROM sample").fetchall()
    sample = next(one for one in (dict(zip(columns("sample"), s)) for s in samples) if one["readings"])
    draw = random.Random(15)

    def insert(table, value):
        marks = ", ".join("?" * len(value))
        base.execute(f"INSERT INTO {table} ({', '.join(value)}) VALUES ({marks})", list(value.values()))

    with base:
        for table in ("sample", "arm", "version"):
            base.execute(f"DELETE FROM {table}")
        names = [hashlib.sha1(str(number).encode()).hexdigest() for number in range(commits)]
        for place, commit in enumerate(names):
            facts = {**json.loads(version["facts"]), "title": f"change {place}", "follows": names[max(place - 1, 0):place],
                     "parents": names[max(place - 1, 0):place]}
            insert("version", {**version, "commit_id": commit, "position": place, "artefacts": f"{place:064x}",
                               "facts": json.dumps(facts)})
            for subject in range(subjects):
                position = place * subjects + subject
                name = f"subject {subject}"
                insert("arm", {**arm, "position": position, "name": name, "version": commit})
                for number, metric in enumerate(METRICS[:metrics]):
                    series = subject * metrics + number
                    level = 1e6 * (1 + series) * (1.2 if series % 10 == 0 and place >= commits // 2 else 1.0)
                    value = lambda: round(level) if metric in EXACT else level * draw.gauss(1.0, 0.01)
                    unit = {"time": "ns", "memory": "B"}.get(metric.split(".")[0], "B" if "bytes" in metric else "count")
                    count = 2 if metric in EXACT else READINGS
                    quality = {"quality": "exact"} if metric in EXACT else {}
                    insert("sample", {**sample, **quality, "position": position, "metric": metric, "unit": json.dumps(unit)
                                      if sample["unit"].startswith('"') else unit,
                                      "readings": json.dumps([value() for _ in range(count)]),
                                      "blocks": json.dumps(list(range(count)))})
    base.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--subjects", type=int, default=50)
    parser.add_argument("--metrics", type=int, default=6)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path, help="copy the page there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scruple-pages-") as text:
        place = pathlib.Path(text)
        env = dict(os.environ, HOME=text, XDG_CACHE_HOME=f"{text}/cache", XDG_DATA_HOME=f"{text}/data",
                   GIT_CONFIG_GLOBAL="/dev/null")
        store = weigh(args.scruple, place, env)
        multiply(store, args.commits, args.subjects, args.metrics)
        page = place / "page.html"
        walls, cpus = [], []
        for _ in range(args.times):
            began, before = time.monotonic(), os.times()
            words = [str(args.scruple), "report", "--store", str(store), "--metrics", ",".join(METRICS[:args.metrics]), "--export", str(page)]
            subprocess.run(words, cwd=place, env=env, check=True, capture_output=True)
            after = os.times()
            walls.append(time.monotonic() - began)
            cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
        look = place / "look.mjs"
        look.write_text(LOOK % (ROOT / "tests/pages/browser.mjs"))
        done = subprocess.run(["node", str(look), str(page), str(args.times)], capture_output=True, text=True, check=True)
        loads = [json.loads(line) for line in done.stdout.splitlines()]
        if args.keep:
            args.keep.write_bytes(page.read_bytes())
        middle = statistics.median
        print("| what | median | most |\n|---|---:|---:|")
        print(f"| `scruple report --export page.html` | {middle(walls):.2f} s | {max(walls):.2f} s |")
        print(f"| its processor time | {middle(cpus):.2f} s | {max(cpus):.2f} s |")
        for key, name in (("domInteractive", "page of use"), ("loadEventEnd", "page loaded")):
            values = [one[key] / 1000 for one in loads]
            print(f"| {name} | {middle(values):.2f} s | {max(values):.2f} s |")
        print(f"\nThe page: {page.stat().st_size / 1e6:.2f} MB; the store: {store.stat().st_size / 1e6:.1f} MB; "
              f"load {os.getloadavg()[0]:.0f}.")


if __name__ == "__main__":
    main()

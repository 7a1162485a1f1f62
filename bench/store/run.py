#!/usr/bin/env python3
"""Times listings, series and comparisons of a store with a million readings, in a file and on a PostgreSQL server.

    python3 bench/store/run.py --scruple target/release/scruple [--quick]

It starts a server of its own on a Unix socket in a temporary folder (Debian's package postgresql), makes 500 runs of 20
subjects with 5 metrics of 20 readings each out of one real run, copies them to the server by `scruple store copy`, and
weighs each command on both stores side by side with `scruple run`.
"""

import argparse
import glob
import json
import os
import pathlib
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

METRICS = ["time.wall", "time.cpu", "time.user", "time.system", "faults.minor"]


def fill(scruple, store, runs, subjects, readings):
    """Multiplies one real run."""
    words = [scruple, "run", "--time-only", "-r", "6", "--store", str(store), "true"]
    subprocess.run(words, check=True, capture_output=True)
    base = sqlite3.connect(store)
    row = lambda table: base.execute(f"SELECT * FROM {table}").fetchall()
    columns = lambda table: [about[1] for about in base.execute(f"PRAGMA table_info({table})")]
    run = dict(zip(columns("run"), row("run")[0]))
    arm = dict(zip(columns("arm"), row("arm")[0]))
    sample = [dict(zip(columns("sample"), one)) for one in row("sample")]
    sample = next(one for one in sample if one["metric"] == "time.cpu")
    with base:
        base.execute("DELETE FROM run")
        for table in ("arm", "sample"):
            base.execute(f"DELETE FROM {table}")
        def insert(table, value):
            marks = ", ".join("?" * len(value))
            base.execute(f"INSERT INTO {table} ({', '.join(value)}) VALUES ({marks})", list(value.values()))
        for number in range(runs):
            name = f"{run['id'][:-6]}{number:06d}"
            label = f"label{number}" if number % 50 == 0 else None
            insert("run", {**run, "id": name, "started": run["started"] - 3_600_000 * (runs - number), "label": label})
            for position in range(subjects):
                insert("arm", {**arm, "run_id": name, "position": position, "name": f"subject {position}"})
                for metric in METRICS:
                    values = [1e6 * (position + 1) + (7919 * (number + place) % 1000) for place in range(readings)]
                    insert("sample", {**sample, "run_id": name, "position": position, "metric": metric,
                                      "readings": json.dumps(values), "blocks": json.dumps(list(range(readings)))})
    base.execute("VACUUM")
    base.close()


class Server:
    """A PostgreSQL server on a Unix socket; it ends with this object."""

    def __enter__(self):
        found = glob.glob("/usr/lib/postgresql/*/bin")
        if not found:
            sys.exit("no PostgreSQL server is installed: apt-get install postgresql")
        self.bin = sorted(found, key=lambda path: int(path.split("/")[-2]))[-1]
        self.folder = tempfile.mkdtemp(prefix="pg-", dir="/tmp")
        self.user = []
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
            self.user = ["runuser", "-u", "postgres", "--"]
        data = self.folder + "/data"
        self.call("initdb", "-D", data, "-A", "trust", "-U", "owner", "-E", "UTF8", "--locale=C")
        with open(data + "/postgresql.conf", "a") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n")
        self.call("pg_ctl", "-D", data, "-w", "-l", self.folder + "/log", "start")
        return f"postgres://owner@/postgres?host={self.folder}"

    def __exit__(self, *_):
        self.call("pg_ctl", "-D", self.folder + "/data", "-m", "fast", "stop")
        shutil.rmtree(self.folder)

    def call(self, program, *words):
        words = [*self.user, f"{self.bin}/{program}", *words]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scruple", required=True)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    options = parser.parse_args()
    scruple = str(pathlib.Path(options.scruple).resolve())
    runs = 50 if options.quick else 500
    with tempfile.TemporaryDirectory() as folder, Server() as url:
        os.environ["XDG_DATA_HOME"] = folder
        file = pathlib.Path(folder) / "store.db"
        begin = time.monotonic()
        fill(scruple, file, runs, 20, 20)
        print(f"{runs * 20 * 5 * 20:,} readings in {runs * 20 * 5:,} rows; made in {time.monotonic() - begin:.1f} s")
        begin = time.monotonic()
        subprocess.run([scruple, "store", "copy", str(file), url], check=True)
        print(f"copied to the server in {time.monotonic() - begin:.1f} s; the file has {file.stat().st_size / 1e6:.0f} MB")
        print(f"\n{'command':<42} {'file':>22} {'server':>22}")
        for words in (["store", "list"], ["store", "list", "-n", str(runs)], ["show", "label0"],
                      ["compare", "last~1", "last"], ["trend", "subject 3"],
                      ["trend", "subject 3", "--metrics", "time.cpu"]):
            commands = [shlex.join([scruple, *words, "--store", str(store)]) for store in (file, url)]
            answer = subprocess.run(
                [scruple, "run", "--no-store", "--time-only", "-r", "12", "--json", *commands],
                check=True, capture_output=True, text=True)
            arms = [arm for arm in json.loads(answer.stdout)["arms"] if arm["role"] == "subject"]
            cells = [cell(arm["metrics"]["time.wall"]) for arm in arms]
            print(f"{'scruple ' + ' '.join(words):<42} {cells[0]:>22} {cells[1]:>22}", flush=True)
    return 0


def cell(metric):
    low, high = min(metric["readings"]), max(metric["readings"])
    middle = sorted(metric["readings"])[len(metric["readings"]) // 2]
    return f"{middle / 1e6:.0f} ms [{low / 1e6:.0f}, {high / 1e6:.0f}]"


if __name__ == "__main__":
    sys.exit(main())

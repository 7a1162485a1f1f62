#!/usr/bin/env python3
"""Latencies of planted servers, as generators report them, beside the truth by construction.

    bench/load/stalls.py [--scruple PROGRAM] [--offsets N] [--jobs N] [--only KIND,...] [--others] [--quick]

Twelve kinds of misbehaviour are planted in a small server (crates/measure/tests/load/planted.c), each at ten offsets or
with ten seeds. Every generator sends 500 requests/s for 10 s over 10 connections, or does what comes closest to it,
with its defaults otherwise. The truth is computed by the same program without a server (`planted truth`): the response
of each of 5,000 requests that are due evenly. A run agrees when p50, p90, p99, p99.9 and the maximum are within 5 % of
it.

A beginning that Scruple shows separately as warm-up is compared with the truth of the requests that were due in it, and
the rest with that of the others. Of dead connections the truth is that each request on one waits for as long as the
time-out; how many there are depends on the generator, and is taken from the server's log.

A busy machine delays the server as well, and a client sees that. The server's log says when each request came and when
its answer was sent; from these and the schedule follow the responses that the server really gave. Scruple is compared
with both: with what was planted, and with the server's log. Other generators are compared with what was planted,
because most of them have no schedule with which the log could be compared. A run of Scruple that calls itself void, or
whose own bounds of a figure are more than 5 % apart, because the generator was late, does not say what the figure is;
it is repeated up to twice, and the number of repeated runs is printed.

`--others` runs wrk, wrk2, ab, h2load, oha, vegeta and k6 as well, where they are on the PATH. As root, generators and
servers get a real-time priority, because a machine that is busy with other work has stalls of its own. Prints Markdown;
the exit code is 1 when a run of Scruple disagrees with the log.
"""

import argparse
import concurrent.futures
import csv
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RATE, SECONDS, CONNECTIONS, TIMEOUT = 500, 10, 10, 5.0
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
# Eight workers that take 10 ms each, so that the server is the bottleneck and not the ten connections.
BASE = "workers=8 fixed=10"


def kinds(offsets):
    """Each kind with the words for its offsets."""
    at = [round(SECONDS * 1000 * (i + 0.3) / offsets) for i in range(offsets)]
    seeds = range(1, offsets + 1)
    return {
        "periodic, 100 ms in each second": [f"{BASE} stall=100 every=1000 at={a // SECONDS}" for a in at],
        "one of 0.1 s": [f"{BASE} stall=100 at={a}" for a in at],
        "one of 0.5 s": [f"{BASE} stall=500 at={a}" for a in at],
        "one of 1 s": [f"{BASE} stall=1000 at={a}" for a in at],
        "one of 3 s": [f"{BASE} stall=3000 at={a}" for a in at],
        "random": [f"{BASE} stall=200 random=1 seed={s}" for s in seeds],
        "growing": [f"{BASE} grow={0.05 * s:.2f}" for s in seeds],
        "slow by share": [f"{BASE} slow=100 share=0.015 seed={s}" for s in seeds],
        "backlog": [f"workers=8 fixed={16.5 + s / 2}" for s in seeds],
        # The additional work is small enough for no backlog to arise: requests in a backlog come later, and would not
        # be served so slowly.
        "slow start": [f"{BASE} start={0.5 * s} warm=1500" for s in seeds],
        "pauses of a collector": [f"{BASE} pause={20 + 5 * s} each={400 + 90 * s}" for s in seeds],
        "a dead worker of four": [f"{BASE} dead=4 body={s}" for s in seeds],
    }


# Idle threads of Go's scheduler spin: at real-time priority nothing else would run beside these.
NEVER_URGENT = {"hey", "k6", "vegeta"}


def urgent(argv, core=None):
    """The command with a real-time priority where that is allowed, and on one core if that is wanted."""
    allowed = os.geteuid() == 0 and shutil.which("chrt") and argv[0] not in NEVER_URGENT
    prefix = ["chrt", "-f", "10"] if allowed else []
    if core is not None and shutil.which("taskset"):
        prefix += ["taskset", "-c", str(min(core, (os.cpu_count() or 1) - 1))]
    return prefix + argv


def quantile(ordered, q):
    return ordered[max(math.ceil(len(ordered) * q), 1) - 1]


def quantiles(responses):
    ordered = sorted(responses)
    return {name: quantile(ordered, q) for name, q in QUANTILES.items()} if ordered else {}


def compiled(folder):
    """The planted server, compiled into a folder."""
    program = os.path.join(folder, "planted")
    source = os.path.join(ROOT, "crates", "measure", "tests", "load", "planted.c")
    subprocess.run(["gcc", "-O2", "-o", program, source, "-lm"], check=True)
    return program


class Planted:
    """A planted server on a free port, for as long as the block lasts."""

    def __init__(self, program, words):
        self.program, self.words = program, words

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.log = os.path.join(self.folder, "log")
        self.process = subprocess.Popen(
            urgent([self.program, "0"] + self.words.split()), stdout=subprocess.PIPE, text=True, env=dict(os.environ, PLANTED_LOG=self.log)
        )
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}/"
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        with open(self.log) as file:
            self.entries = [[int(word) for word in line.split()] for line in file]
        self.unanswered = sum(planted == 0 for _, planted, _ in self.entries)
        shutil.rmtree(self.folder)

    def truth(self):
        """The responses that were planted, in the order in which they were due, in seconds."""
        simulated = subprocess.run([self.program, "truth", str(RATE), str(SECONDS)] + self.words.split(), check=True, capture_output=True, text=True)
        responses = [int(line) / 1e9 for line in simulated.stdout.split()]
        if "dead=" in self.words:
            responses = [TIMEOUT] * self.unanswered + responses[self.unanswered:]
        return responses

    def seen(self):
        """The responses of an even schedule that follow from the server's log, in the same form. The schedule began
        late enough for no request to come before it was due."""
        gap = 1e9 / RATE
        began = min(came - index * gap for index, (came, _, _) in enumerate(self.entries))
        ended = lambda came, sent: sent if sent else came + TIMEOUT * 1e9
        return [(ended(came, sent) - began - index * gap) / 1e9 for index, (came, _, sent) in enumerate(self.entries)]


def of_buckets(buckets):
    """Quantiles of pairs of a latency in nanoseconds and a count."""
    total, found = sum(count for _, count in buckets), {}
    for name, q in QUANTILES.items():
        left = max(math.ceil(total * q), 1)
        for value, count in buckets:
            left -= count
            if left <= 0:
                found[name] = value / 1e9
                break
    return found


def scruple(program, url, folder):
    """Scruple's results: those that count, those of the warm-up, and how many requests were warm-up."""
    done = subprocess.run(urgent([program, "load", url, "--rate", str(RATE), "--json", "--no-store", "-i"]), capture_output=True, text=True, cwd=folder)
    try:
        server = json.loads(done.stdout)["load"]["servers"][0]
    except (json.JSONDecodeError, KeyError):
        raise ValueError(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}") from None
    why = "; ".join(doubt["text"] for doubt in server.get("doubts", []))[:200]
    if not server["valid"]:
        raise Void(why)
    if "delayed" in server:
        low, high = (of_buckets(found["buckets"]) for found in (server["delayed"]["least"], server["response"]))
        if any(low[name] < 0.95 * high[name] for name in high):
            raise Void(why)
    aside = server.get("set_apart", [])
    cut = round(sum(part["span"] for part in aside) / 1e9 * RATE)
    parts = [(of_buckets(server["response"]["buckets"]), slice(cut, None))]
    parts += [(of_buckets(part["response"]["buckets"]), slice(0, cut)) for part in aside]
    return parts


def seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}[unit]


def text_of(argv):
    return subprocess.run(urgent(argv), capture_output=True, text=True, timeout=120).stdout


def wrk(url, _):
    text = text_of(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}", "--latency", url])
    found = {f"p{name}": seconds(value) for name, value in re.findall(r"^\s+(50|90|99)%\s+(\S+)", text, re.M)}
    return dict(found, max=seconds(re.search(r"Latency\s+\S+\s+\S+\s+(\S+)", text).group(1)))


def wrk2(url, _):
    text = text_of(["wrk2", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}", f"-R{RATE}", "--latency", url])
    places = {"50.000": "p50", "90.000": "p90", "99.000": "p99", "99.900": "p99.9", "100.000": "max"}
    return {places[at]: seconds(value) for at, value in re.findall(r"^\s*([\d.]+)%\s+(\S+)", text, re.M) if at in places}


def ab(url, _):
    text = text_of(["ab", "-k", "-q", "-c", str(CONNECTIONS), "-t", str(SECONDS), "-n", "1000000", url])
    places = {"50": "p50", "90": "p90", "99": "p99", "100": "max"}
    return {places[at]: float(value) / 1e3 for at, value in re.findall(r"^\s+(\d+)%\s+(\d+)", text, re.M) if at in places}


def h2load(url, folder):
    log = os.path.join(folder, "h2load.log")
    text_of(["h2load", "--h1", "-c", str(CONNECTIONS), "--rps", str(RATE // CONNECTIONS), "-D", str(SECONDS), f"--log-file={log}", url])
    with open(log) as file:
        found = quantiles([int(line.split()[2]) / 1e6 for line in file])
    os.remove(log)
    return found


def oha(*more):
    def run(url, _):
        told = json.loads(text_of(["oha", "--no-tui", "--output-format", "json", *more, "-c", str(CONNECTIONS), "-q", str(RATE), "-z", f"{SECONDS}s", url]))
        found = {name: told["latencyPercentiles"][name] for name in QUANTILES if name != "max"}
        return dict(found, max=told["summary"]["slowest"])

    return run


def vegeta(url, _):
    attack = subprocess.Popen(urgent(["vegeta", "attack", f"-rate={RATE}", f"-duration={SECONDS}s"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    attack.stdin.write(f"GET {url}\n".encode())
    attack.stdin.close()
    rows = subprocess.run(["vegeta", "encode", "-to", "csv"], stdin=attack.stdout, capture_output=True, text=True).stdout
    attack.wait()
    return quantiles([int(row[2]) / 1e9 for row in csv.reader(io.StringIO(rows))])


def k6(users):
    def run(url, folder):
        scenario = {
            "executor": "constant-arrival-rate", "rate": RATE, "timeUnit": "1s", "duration": f"{SECONDS}s",
            "preAllocatedVUs": users, "maxVUs": users,
        }
        script, summary = os.path.join(folder, "k6.js"), os.path.join(folder, "k6.json")
        options = {"summaryTrendStats": ["p(50)", "p(90)", "p(99)", "p(99.9)", "max"], "scenarios": {"a": scenario}}
        with open(script, "w") as file:
            file.write(f"import http from 'k6/http';export const options={json.dumps(options)};")
            file.write(f"export default function(){{http.get('{url}');}}")
        text_of(["k6", "run", "-q", "--no-usage-report", "--summary-export", summary, script])
        with open(summary) as file:
            told = json.load(file)["metrics"]["http_req_duration"]
        return {name: told[name if name == "max" else f"p({name[1:]})"] / 1e3 for name in QUANTILES}

    return run


OTHERS = [
    ("wrk (closed loop)", "wrk", wrk), ("wrk2", "wrk2", wrk2), ("ab -k (closed loop)", "ab", ab), ("h2load --rps", "h2load", h2load),
    ("oha -q", "oha", oha()), ("oha -q --latency-correction", "oha", oha("--latency-correction")), ("vegeta", "vegeta", vegeta),
    ("k6, arrival rate, 10 users", "k6", k6(10)), ("k6, arrival rate, 500 users", "k6", k6(500)),
]  # fmt: skip


def errors(parts, truth):
    """By how much each quantile is off, as a share of the truth; the greatest of the parts."""
    off = {}
    for found, which in parts:
        true = quantiles(truth[which])
        for name in found:
            off[name] = max(off.get(name, 0.0), found[name] / true[name] - 1, key=abs)
    return off


def agrees(off):
    return len(off) == len(QUANTILES) and all(abs(error) <= 0.05 for error in off.values())


class Void(Exception):
    """The generator said itself that it was late, so that it does not know the figures to 5 %."""


def trial(program, words, generator):
    """The errors of a run against what was planted, those against the log, and how many runs were void."""
    for void in range(3):
        try:
            return *once(program, words, generator), void
        except Void as why:
            last = why
    return f"{words}: not known three times: {last}"


def once(program, words, generator):
    with tempfile.TemporaryDirectory() as folder:
        planted = Planted(program, words)
        try:
            with planted:
                parts = generator(planted.url, folder)
            several = isinstance(parts, list)
            parts = parts if several else [(parts, slice(None))]
            off = errors(parts, planted.truth()), errors(parts, planted.seen()) if several else None
        except (ValueError, KeyError, AttributeError, OSError, subprocess.SubprocessError) as error:
            return f"{words}: {type(error).__name__}: {error}", None
        if several and not agrees(off[1]):
            print(f"{words}: {off}", file=sys.stderr, flush=True)
        return off


def row(name, trials):
    """A line of the table, and how many of the trials do not agree with the log, or with what was planted where there
    is none."""
    told = [trial for trial in trials if isinstance(trial[0], dict)]
    count = lambda which: sum(agrees(trial[which]) for trial in told)
    logged = [trial for trial in told if trial[1] is not None]
    cells = [f"{count(0)} of {len(trials)}"] + ([f"{count(1)} of {len(trials)}", str(sum(trial[2] for trial in told))] if logged else [])
    for quantile_name in QUANTILES:
        seen = [trial[1 if logged else 0][quantile_name] for trial in told if quantile_name in trial[0]]
        cells.append(f"{max(seen, key=abs) * 100:+.1f} %" if seen else "not told")
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for trial in trials:
        if trial not in told:
            print(f"{name}: {trial if isinstance(trial, str) else trial[0]}", file=sys.stderr, flush=True)
    return len(trials) - count(1 if logged else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", default=os.path.join(ROOT, "target", "release", "scruple"))
    parser.add_argument("--offsets", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="servers that are loaded at the same time")
    parser.add_argument("--only", default="", help="kinds, by the beginnings of their names")
    parser.add_argument("--others", action="store_true", help="other generators as well")
    parser.add_argument("--quick", action="store_true", help="two offsets: shows that it works, proves little")
    wish = parser.parse_args()
    offsets = 2 if wish.quick else wish.offsets
    chosen = {name: words for name, words in kinds(offsets).items() if any(name.startswith(one) for one in wish.only.split(","))}
    generators = [("scruple", lambda url, folder: scruple(os.path.abspath(wish.scruple), url, folder))]
    if wish.others:
        missing = sorted({binary for _, binary, _ in OTHERS if not shutil.which(binary)})
        if missing:
            print(f"Not installed: {', '.join(missing)}.\n")
        generators += [(name, run) for name, binary, run in OTHERS if shutil.which(binary)]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(wish.jobs) as pool:
        program = compiled(folder)
        for name, run in generators:
            ours = name == "scruple"
            heads = ["planted", "within 5 %"] + (["of the log", "repeated"] if ours else []) + list(QUANTILES)
            print(f"\n### {name}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
            for kind, words in chosen.items():
                trials = list(pool.map(lambda one, run=run: trial(program, one, run), words))
                disagreeing = row(kind, trials)
                wrong += disagreeing if ours else 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

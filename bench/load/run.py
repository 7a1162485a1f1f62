#!/usr/bin/env python3
"""Compares the load engine with other generators: the truth about stalls, and processor time per request.

    bench/load/run.py [--scruple PROGRAM] [--rounds N] [--seconds S] [--only stall|cost|http2] [--connections 1,10,100]

Two questions are asked. A server that stalls for 100 ms in every second, loaded with 2,000 requests/s over 10
connections: what is the 99th percentile? The truth is 90 ms, since a tenth of the requests meet the stall and wait
evenly between 0 and 100 ms. And: nginx on one core, the generator on another: how many requests per second, and how
much processor time per request does the generator itself need, from its start to its end? The second question is asked
for HTTP/1.1, beside wrk and others, and for HTTP/2 without TLS, beside h2load.

Everything is sent to loopback and bounded. The generators take turns, in an order that is reversed in every other
round, since a machine that others use changes from minute to minute: rates are compared within rounds, and the median
of the ratios is what is printed. Generators that are not found on the PATH, or that fail, are named with the reason. As
root, generators and servers get a real-time priority. Prints Markdown.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stalls import ROOT, compiled, urgent

RATE, CONNECTIONS, TRUTH = 2000, 10, 90.0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def await_port(port):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    sys.exit(f"nothing listens on port {port}")


def ours(program):
    return [program, "load", "--json", "--no-store", "--no-cost", "--threads", "1@0", "--warmup", "off", "-i"]


def told(text):
    # A void run says so after its figures. The cost of the generator itself is valid nevertheless.
    return json.JSONDecoder().raw_decode(text, text.index("{"))[0]["load"]["servers"][0]


def run(argv, limit=60):
    """Runs a generator on core 0; returns what it printed and its processor time, user and system, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = dict(os.environ, GOMAXPROCS="1", TOKIO_WORKER_THREADS="1", K6_NO_USAGE_REPORT="true")
    # Scruple pins its own thread, and then knows that the server's core is another.
    core = None if "--threads" in argv else 0
    done = subprocess.run(urgent(argv, core), capture_output=True, text=True, timeout=limit, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout + done.stderr, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def in_turn(rounds, commands, weigh):
    """Runs the commands in turn. Returns, by name, the results of `weigh` for each round, or the reason why there are
    none."""
    seen, missing = {name: [] for name, _, _ in commands}, {}
    for number in range(rounds):
        for name, argv, read in commands[:: -1 if number % 2 else 1]:
            if not (os.path.exists(argv[0]) or shutil.which(argv[0])):
                missing[name] = f"{argv[0]} is not installed"
                continue
            text, user, system = run(argv)
            try:
                seen[name].append(weigh(read(text), user, system))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                missing[name] = f"what {argv[0]} printed was not understood: {text.strip()[-200:]!r}"
                seen[name] = []
                commands = [command for command in commands if command[0] != name]
    return seen, missing


def milliseconds(text):
    number, unit = re.match(r"([\d.]+)\s*(us|µs|ms|s|m)?", text).groups()
    return float(number) * {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, None: 1.0}[unit]


def first(pattern, text):
    found = re.search(pattern, text, re.M)
    return found.group(1) if found else None


def p99_ours(text):
    return told(text)["response"]["p99"] / 1e6


def p99_wrk(text):
    return milliseconds(first(r"^\s+99%\s+(\S+)", text))


def p99_ab(text):
    return float(first(r"^\s+99%\s+(\d+)", text))


def p99_oha(text):
    return json.loads(text)["latencyPercentiles"]["p99"] * 1e3


def p99_hey(text):
    return float(first(r"99%+ in ([\d.]+) secs", text)) * 1e3


def p99_k6(text):
    return milliseconds(first(r"http_req_duration.*p\(99\)=(\S+)", text))


def k6_script(folder, name, options, url):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(f"import http from 'k6/http';export const options={json.dumps(options)};")
        file.write(f"export default function(){{http.get('{url}');}}")
    return path


def stall_commands(ours, url, seconds, folder):
    def k6(users):
        scenario = {
            "executor": "constant-arrival-rate", "rate": RATE, "timeUnit": "1s", "duration": f"{seconds}s",
            "preAllocatedVUs": users, "maxVUs": users,
        }
        options = {"summaryTrendStats": ["p(99)"], "scenarios": {"a": scenario}}
        return ["k6", "run", "-q", k6_script(folder, f"k6-{users}.js", options, url)]

    every = str(RATE // CONNECTIONS)
    return [
        ("scruple, from the time due", ours + ["-c", str(CONNECTIONS), "-r", str(RATE), "-d", f"{seconds}s", url], p99_ours),
        ("wrk (closed loop)", ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--latency", url], p99_wrk),
        ("ab -k (closed loop)", ["ab", "-k", "-q", "-c", str(CONNECTIONS), "-t", str(seconds), "-n", "1000000", url], p99_ab),
        ("oha -q", ["oha", "--no-tui", "--output-format", "json", "-c", str(CONNECTIONS), "-q", str(RATE), "-z", f"{seconds}s", url], p99_oha),
        ("oha -q --latency-correction", ["oha", "--no-tui", "--output-format", "json", "--latency-correction", "-c", str(CONNECTIONS), "-q", str(RATE), "-z", f"{seconds}s", url], p99_oha),
        ("hey -q", ["hey", "-c", str(CONNECTIONS), "-q", every, "-z", f"{seconds}s", url], p99_hey),
        ("k6 arrival rate, 10 users", k6(10), p99_k6),
        ("k6 arrival rate, 200 users", k6(200), p99_k6),
    ]


def stalls(scruple, rounds, seconds, folder):
    port = free_port()
    server = subprocess.Popen(urgent([compiled(folder), str(port), "stall=100", "every=1000"], 1), stdout=subprocess.DEVNULL)
    try:
        await_port(port)
        print(f"## A stall of 100 ms in every second, {RATE} requests/s, {CONNECTIONS} connections, {seconds} s, {rounds} rounds\n")
        print("| generator | p99 in ms (median of rounds) | of the truth, 90 ms |\n|---|---|---|")
        commands = stall_commands(ours(scruple), f"http://127.0.0.1:{port}/", seconds, folder)
        seen, missing = in_turn(rounds, commands, lambda p99, user, system: p99)
        for name, _, _ in commands:
            if seen[name]:
                p99 = statistics.median(seen[name])
                print(f"| {name} | {p99:.2f} | {p99 / TRUTH * 100:.1f} % |", flush=True)
            else:
                print(f"| {name} | skipped: {missing[name]} | |", flush=True)
    finally:
        server.terminate()
        server.wait()


NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port} backlog=4096{http2}; root {folder}; }} }}
"""


def number(pattern, text):
    return float(first(pattern, text).replace(",", ""))


def both(count, rate):
    """Reads how many requests were answered, and the rate over the time that the generator reports."""
    return lambda text: (number(count, text), number(rate, text))


def oha_counts(text):
    found = json.loads(text)
    return sum(found["statusCodeDistribution"].values()), found["summary"]["requestsPerSec"]


def our_counts(text):
    return told(text)["answered"], told(text)["rate"]


def cost_commands(ours, url, connections, seconds, folder):
    c = str(connections)
    k6 = k6_script(folder, "k6.js", {"vus": connections, "duration": f"{seconds}s"}, url)
    return [
        ("scruple", ours + ["-c", c, "-d", f"{seconds}s", url], our_counts),
        ("wrk", ["wrk", "-t1", "-c", c, f"-d{seconds}", url], both(r"(\d+) requests in", r"Requests/sec:\s+(\S+)")),
        ("ab -k", ["ab", "-k", "-q", "-c", c, "-t", str(seconds), "-n", "10000000", url], both(r"Complete requests:\s+(\d+)", r"Requests per second:\s+(\S+)")),
        ("oha", ["oha", "--no-tui", "--output-format", "json", "-c", c, "-z", f"{seconds}s", url], oha_counts),
        ("hey", ["hey", "-c", c, "-z", f"{seconds}s", url], both(r"\[200\]\s+(\d+)", r"Requests/sec:\s+(\S+)")),
        ("k6", ["k6", "run", "-q", k6], both(r"http_reqs[.]*: (\d+)", r"http_reqs[.]*: \d+\s+([\d.]+)/s")),
    ]


def http2_commands(ours, url, connections, seconds, folder):
    c = str(connections)
    h2load = ["h2load", "-c", c, "-m", "1", "-t", "1", "-D", str(seconds), url]
    return [
        ("scruple", ours + ["--http2=1", "-c", c, "-d", f"{seconds}s", url], our_counts),
        ("h2load", h2load, both(r"(\d+) succeeded", r"finished in \S+, (\S+) req/s")),
    ]


def relative(rounds, base):
    """The median, and the quartiles, of the ratios within rounds."""
    if len(rounds) != len(base) or len(base) < 2 or 0 in base:
        return ""
    low, middle, high = statistics.quantiles([one / other for one, other in zip(rounds, base)], n=4, method="inclusive")
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def cost(commands, base, connections, rounds):
    weigh = lambda read, user, system: (read[1], user * 1e6 / read[0], system * 1e6 / read[0])
    seen, missing = in_turn(rounds, commands, weigh)
    columns = {name: list(zip(*seen[name])) for name in seen}
    for name, _, _ in commands:
        if not seen[name]:
            print(f"| {name} | {connections} | skipped: {missing[name]} | | | | |")
            continue
        rate, user, system = (statistics.median(column) for column in columns[name])
        versus = [relative(columns[name][at], columns[base][at]) if seen[base] else "" for at in (0, 1)]
        print(f"| {name} | {connections} | {rate:,.0f} | {versus[0]} | {user:.2f} | {versus[1]} | {system:.2f} |", flush=True)


def costs(scruple, every, rounds, seconds, http2):
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    of, base, protocol = (http2_commands, "h2load", "HTTP/2") if http2 else (cost_commands, "wrk", "HTTP/1.1")
    if not nginx:
        print("## Processor time per request\n\nSkipped: nginx is not installed.\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        port = free_port()
        with open(os.path.join(folder, "hello.txt"), "w") as file:
            file.write("Hello, world\n")
        config = os.path.join(folder, "nginx.conf")
        with open(config, "w") as file:
            file.write(NGINX.format(folder=folder, port=port, http2=" http2" if http2 else ""))
        server = subprocess.Popen(urgent([nginx, "-c", config], 1))
        try:
            await_port(port)
            print(f"## nginx, {protocol}, 13 bytes, one worker on another core, {seconds} s, median of {rounds} rounds; of {base}'s: median and quartiles\n")
            print(f"| generator | connections | requests/s | of {base}'s | user µs/request | of {base}'s | system µs/request |\n|---|---|---|---|---|---|---|")
            for connections in every:
                url = f"http://127.0.0.1:{port}/hello.txt"
                cost(of(ours(scruple), url, connections, seconds, folder), base, connections, rounds)
            print()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", default=os.path.join(ROOT, "target", "release", "scruple"))
    parser.add_argument("--quick", action="store_true", help="one second each: shows that it works, proves little")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", choices=["stall", "cost", "http2"])
    parser.add_argument("--connections", type=lambda text: [int(c) for c in text.split(",")], default=[1, 10, 100])
    wish = parser.parse_args()
    if wish.quick:
        wish.seconds = 1
    scruple = os.path.abspath(wish.scruple)
    if wish.only in (None, "stall"):
        with tempfile.TemporaryDirectory() as folder:
            stalls(scruple, wish.rounds, max(wish.seconds, 4), folder)
        print()
    for http2, name in ((False, "cost"), (True, "http2")):
        if wish.only in (None, name):
            costs(scruple, wish.connections, wish.rounds, wish.seconds, http2)


if __name__ == "__main__":
    main()

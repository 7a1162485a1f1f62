#!/usr/bin/env python3
"""Compares the load engine with other generators: the truth about stalls, and processor time per request.

    bench/load/run.py [--rounds N] [--seconds S] [--only stall|cost]

Two questions are asked. A server that stalls for 100 ms in every second, loaded with 2,000 requests/s over 10
connections: what is the 99th percentile? The truth is 90 ms, since a tenth of the requests meet the stall and wait
evenly between 0 and 100 ms. And: nginx on one core, the generator on another: how many requests per second, and how
much processor time per request does the generator itself need?

Everything is sent to loopback and bounded. Generators that are not installed are skipped with a line that says so. With
the right to do so (root), generators and servers get a real-time priority, so that other work on the machine does not
decide the figures. Prints Markdown.
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

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RATE, CONNECTIONS, TRUTH = 2000, 10, 90.0


def build():
    subprocess.run(
        ["cargo", "build", "-q", "--release", "-p", "scruple-measure", "--example", "load", "--example", "stall_server"],
        cwd=ROOT,
        check=True,
    )
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.path.join(target, "release", "examples")


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


def urgent(argv, core):
    """The command on one core, with a real-time priority where that is allowed."""
    cores = os.cpu_count() or 1
    prefix = ["taskset", "-c", str(min(core, cores - 1))] if shutil.which("taskset") else []
    if os.geteuid() == 0 and shutil.which("chrt"):
        prefix = ["chrt", "-f", "10"] + prefix
    return prefix + argv


def run(argv, core=0, limit=60):
    """Runs a generator; returns what it printed and the processor time it took, user and system, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = dict(os.environ, GOMAXPROCS="1", TOKIO_WORKER_THREADS="1")
    done = subprocess.run(urgent(argv, core), capture_output=True, text=True, timeout=limit, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout + done.stderr, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def milliseconds(text):
    number, unit = re.match(r"([\d.]+)\s*(us|µs|ms|s|m)?", text).groups()
    return float(number) * {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, None: 1.0}[unit]


def first(pattern, text):
    found = re.search(pattern, text, re.M)
    return found.group(1) if found else None


def p99_ours(text):
    return milliseconds(first(r"response ms:.* p99 ([\d.]+)", text) + "ms")


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


def stall_commands(ours, url, seconds, folder):
    script = os.path.join(folder, "k6.js")
    with open(script, "w") as file:
        file.write(
            "import http from 'k6/http';export const options={summaryTrendStats:['p(99)'],scenarios:{a:{executor:"
            f"'constant-arrival-rate',rate:{RATE},timeUnit:'1s',duration:'{seconds}s',preAllocatedVUs:{CONNECTIONS},"
            f"maxVUs:{CONNECTIONS}}}}}}};export default function(){{http.get('{url}');}}"
        )
    every = str(RATE // CONNECTIONS)
    return [
        ("scruple, from the time due", ours + ["-c", str(CONNECTIONS), "-r", str(RATE), "-d", str(seconds), "-W", url], p99_ours),
        ("wrk (closed loop)", ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--latency", url], p99_wrk),
        ("ab -k (closed loop)", ["ab", "-k", "-q", "-c", str(CONNECTIONS), "-t", str(seconds), "-n", "1000000", url], p99_ab),
        ("oha -q", ["oha", "--no-tui", "--output-format", "json", "-c", str(CONNECTIONS), "-q", str(RATE), "-z", f"{seconds}s", url], p99_oha),
        ("oha -q --latency-correction", ["oha", "--no-tui", "--output-format", "json", "--latency-correction", "-c", str(CONNECTIONS), "-q", str(RATE), "-z", f"{seconds}s", url], p99_oha),
        ("hey -q", ["hey", "-c", str(CONNECTIONS), "-q", every, "-z", f"{seconds}s", url], p99_hey),
        ("k6 arrival rate, 10 users", ["k6", "run", "-q", script], p99_k6),
    ]


def available(argv):
    return os.path.exists(argv[0]) or shutil.which(argv[0])


def stalls(examples, rounds, seconds):
    port = free_port()
    server = subprocess.Popen(urgent([os.path.join(examples, "stall_server"), str(port), "1000", "100"], 1))
    try:
        await_port(port)
        print(f"## A stall of 100 ms in every second, {RATE} requests/s, {CONNECTIONS} connections, {seconds} s, {rounds} rounds\n")
        print("| generator | p99 in ms (median of rounds) | of the truth, 90 ms |\n|---|---|---|")
        with tempfile.TemporaryDirectory() as folder:
            commands = stall_commands([os.path.join(examples, "load")], f"http://127.0.0.1:{port}/", seconds, folder)
            seen = {name: [] for name, _, _ in commands}
            for _ in range(rounds):
                for name, argv, read in commands:
                    if available(argv):
                        seen[name].append(read(run(argv)[0]))
            for name, argv, _ in commands:
                if seen[name]:
                    p99 = statistics.median(seen[name])
                    print(f"| {name} | {p99:.2f} | {p99 / TRUTH * 100:.1f} % |")
                else:
                    print(f"| {name} | skipped: {argv[0]} is not installed | |")
    finally:
        server.terminate()
        server.wait()


NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}; }} }}
"""


def cost_commands(ours, url, connections, seconds):
    c = str(connections)
    return [
        ("scruple", ours + ["-c", c, "-d", str(seconds), "-W", url], lambda t: int(first(r": (\d+) answered", t))),
        ("wrk", ["wrk", "-t1", "-c", c, f"-d{seconds}", url], lambda t: int(first(r"(\d+) requests in", t))),
        ("ab -k", ["ab", "-k", "-q", "-c", c, "-t", str(seconds), "-n", "10000000", url], lambda t: int(first(r"Complete requests:\s+(\d+)", t))),
        ("oha", ["oha", "--no-tui", "--output-format", "json", "-c", c, "-z", f"{seconds}s", url], lambda t: sum(json.loads(t)["statusCodeDistribution"].values())),
        ("hey", ["hey", "-c", c, "-z", f"{seconds}s", url], lambda t: int(first(r"\[200\]\s+(\d+)", t))),
    ]


def costs(examples, rounds, seconds):
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
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
            file.write(NGINX.format(folder=folder, port=port))
        server = subprocess.Popen(urgent([nginx, "-c", config], 1))
        try:
            await_port(port)
            print(f"## nginx, 13 bytes, one worker on another core, {seconds} s, median of {rounds} rounds\n")
            print("| generator | connections | requests/s | user µs/request | system µs/request |\n|---|---|---|---|---|")
            for connections in (1, 10, 100):
                commands = cost_commands([os.path.join(examples, "load")], f"http://127.0.0.1:{port}/hello.txt", connections, seconds)
                seen = {name: [] for name, _, _ in commands}
                for _ in range(rounds):
                    for name, argv, count in commands:
                        if available(argv):
                            text, user, system = run(argv)
                            n = count(text)
                            seen[name].append((n / seconds, user * 1e6 / n, system * 1e6 / n))
                for name, argv, _ in commands:
                    if seen[name]:
                        rate, user, system = (statistics.median(column) for column in zip(*seen[name]))
                        print(f"| {name} | {connections} | {rate:,.0f} | {user:.2f} | {system:.2f} |")
                    else:
                        print(f"| {name} | {connections} | skipped: {argv[0]} is not installed | | |")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", choices=["stall", "cost"])
    wish = parser.parse_args()
    examples = build()
    if wish.only != "cost":
        stalls(examples, wish.rounds, max(wish.seconds, 4))
        print()
    if wish.only != "stall":
        costs(examples, wish.rounds, wish.seconds)


if __name__ == "__main__":
    main()

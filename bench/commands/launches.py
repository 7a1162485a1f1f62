"""The cost of launching beyond the child's own lifetime, and peak memory."""

import shutil
import struct
import subprocess

from tools import median_interval, table

ROOM = 1 << 20


def lifetimes(path):
    """The nanoseconds between first and last instruction of each launch, in their order."""
    data = path.read_bytes()
    used = struct.unpack_from("q", data)[0]
    times = struct.unpack_from(f"{used}q", data, 8)
    return [last - first for first, last in zip(times[::2], times[1::2])]


def taxes(bench, tool, steps, runs, prefix):
    """Wall time as the tool measured it less the child's own, in microseconds, for each launch."""
    log = bench.path / "stamps"
    log.write_bytes(bytes(ROOM))
    command = f"./stamp stamps {steps}"
    if tool == "scruple":
        run = bench.weigh("--time-only", "-r", str(runs), command, prefix=prefix)
        seen = run["arms"][0]["metrics"]["time.wall"]["readings"]
    else:
        seen = [1e9 * time for time in bench.fine("--runs", str(runs), command, prefix=prefix)[0]["times"]]
    lived = lifetimes(log)
    assert len(lived) == len(seen), f"{tool}: {len(lived)} launches, {len(seen)} readings"
    return [(wall - life) / 1000 for wall, life in zip(seen, lived)]


def real_time_prefix():
    """The prefix for real-time priority, which keeps other work off the core; empty if that is not allowed."""
    prefix = ("chrt", "-f", "1")
    if not shutil.which("chrt") or subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        return None
    return prefix


def launch_tax(bench, rounds, runs):
    tools = ["scruple"] + (["hyperfine"] if bench.hyperfine else [])
    rows = []
    conditions = [("ordinary priority", ())]
    if real_time_prefix():
        conditions.append(("real-time priority", real_time_prefix()))
    for work, steps in (("an empty child", 0), ("a child of some ms", 10_000_000)):
        for condition, prefix in conditions:
            found = {tool: [] for tool in tools}
            for _ in range(rounds):
                for tool in tools:
                    found[tool] += taxes(bench, tool, steps, runs, prefix)
            bench.results[f"tax: {work}, {condition}"] = found
            medians = {tool: median_interval(values) for tool, values in found.items()}
            for tool in tools:
                middle, low, high = medians[tool]
                ratio = bar = ""
                if tool == "scruple" and "hyperfine" in medians:
                    value = middle / medians["hyperfine"][0]
                    ratio = f"{value:.2f}"
                    # If the child let other processes run, both tools would wait for a core when it ends.
                    if steps == 0 or prefix:
                        bar = f"at most 0.75: {'kept' if value <= 0.75 else 'MISSED'}"
                rows.append([
                    f"{work}, {condition}: {tool}", len(found[tool]), f"{middle:.0f} [{low:.0f}, {high:.0f}]",
                    f"{sorted(found[tool])[len(found[tool]) // 10]:.0f}", ratio, bar,
                ])
    print("\nWall time that the tool reports beyond the child's own, from its first to its last instruction, in µs.\n")
    print(table(["", "launches", "median [95 %]", "10th percentile", "of hyperfine's", "target"], rows))


def peak_memory(bench):
    """Peaks of nothing, 100 MB and nothing again, both tools started by a process that holds 200 MB."""
    held = bytearray(b"x") * 200_000_000
    commands = ["./burn 0", "./burn 0 100000000", "./burn 0 0"]
    run = bench.weigh("-r", "15", *commands)
    peaks = [run["arms"][i]["metrics"]["memory.peak"]["estimate"] for i in range(3)]
    fine = bench.fine("--runs", "3", *commands)
    alone = [own_account(bench, command) for command in commands]
    rows = []
    for i, command in enumerate(commands):
        said = fine[i].get("memory_usage_byte") if fine else None
        said = [max(said)] if isinstance(said, list) and said else ([said] if said else [])
        right = abs(peaks[i] - alone[i]) < 1 << 20
        rows.append([
            f"`{command}`", megabytes(alone[i]), megabytes(peaks[i]), "within 1 MiB: " + ("kept" if right else "MISSED"),
            megabytes(said[0]) if said else "not reported",
        ])
    bench.results["peak memory"] = {"alone": alone, "scruple": peaks}
    assert len(held) == 200_000_000
    print("\nPeak memory in MB, from a parent that holds 200 MB; ‘own account’ is what each program reads of itself in /proc.\n")
    print(table(["", "own account", "scruple", "target", "hyperfine"], rows))


def own_account(bench, command):
    """The peak in bytes that the program reads of itself just before it ends."""
    line = bench.run(["env", "PEAK=1", *command.split()])
    return int(line.split()[1]) * 1024


def megabytes(size):
    return f"{size / 1e6:.2f}"

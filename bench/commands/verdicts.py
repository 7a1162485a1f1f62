"""False alarms and power: how often two programs are called different, if they are the same and if they are not."""

import os

from tools import (
    calibrate, comparison, headline, percent, ratio_claims_difference, share, table, verdict_at, welch,
)

FIVE_MS = 5e6


def compare(bench, old, new, blocks, margin):
    """The same two commands through both tools, one after the other."""
    run = bench.weigh("--time-only", "-r", str(blocks), "--margin", f"{margin:g}", old, new)
    fine = bench.fine("--runs", str(blocks), old, new)
    found = {
        "headline": headline(run),
        "wall": comparison(run, "time.wall")["verdict"],
        "cpu": comparison(run, "time.cpu")["verdict"],
        "cpu effect": comparison(run, "time.cpu")["effect"],
        "cpu at 2 %": verdict_at(comparison(run, "time.cpu"), 0.02),
        "waited": waiting(run),
    }
    if fine:
        found["welch"] = welch(fine[0]["times"], fine[1]["times"]) < 0.05
        found["ratio"] = ratio_claims_difference(*fine)
        found["fine ratio"] = fine[1]["mean"] / fine[0]["mean"]
    return found


def waiting(run):
    metrics = run["arms"][0]["metrics"]
    return sum(metrics["time.wait"]["readings"]) / sum(metrics["time.wall"]["readings"])


def series(bench, count, factor, blocks, margin):
    """Many comparisons of fresh copies; the new one costs `factor` times as much as the old one."""
    steps = calibrate(bench)
    old, new = (f"./{name} {steps(FIVE_MS * by)}" for name, by in (("old", 1), ("new", factor)))
    found = []
    for _ in range(count):
        bench.copies("old", "new")
        found.append(compare(bench, old, new, blocks, margin))
    return found


def rows_of(name, found, wanted, bar):
    """The rows of both tools for one series; the required value is for the verdict that Scruple prints."""
    rows = []
    for label, key in (("the verdict printed", "headline"), ("wall time alone", "wall"), ("cpu time alone", "cpu")):
        verdicts = [one[key] for one in found]
        shares = [percent(share(verdicts, verdict)) for verdict in ("different", "small", "same", "can't tell")]
        reached = verdict_of(share(verdicts, *wanted), bar) if key == "headline" else ""
        rows.append([f"{name}: scruple, {label}", *shares, reached])
    if "welch" in found[0]:
        for label, key in (("Welch's test on its times", "welch"), ("its ratio ± beyond 1", "ratio")):
            different = share([one[key] for one in found], True)
            rows.append([f"{name}: hyperfine, {label}", percent(different), "", "", percent(1 - different), ""])
    return rows


def verdict_of(value, bar):
    kind, limit = bar
    kept = value <= limit if kind == "at most" else value >= limit
    return f"{percent(value)}, {kind} {percent(limit)}: {'kept' if kept else 'MISSED'}"


def false_alarms(bench, count):
    plan = ("the same program twice", count, 1.0, 20, 0.02, ("different",), ("at most", 0.05))
    show(bench, [plan])


def power(bench, two, five):
    show(bench, [
        ("+2 % cpu", two, 1.02, 80, 0.01, ("different", "small"), ("at least", 0.80)),
        ("+5 % cpu", five, 1.05, 20, 0.01, ("different",), ("at least", 0.97)),
    ])


def show(bench, plans):
    """Runs each series beside as many busy processes as there are cores, and prints one table."""
    cores = os.cpu_count() or 1
    bench.keep_company(cores)
    rows = []
    for name, count, factor, blocks, margin, wanted, bar in plans:
        found = series(bench, count, factor, blocks, margin)
        bench.results[name] = found
        title = f"{name} ({count} comparisons, {blocks} blocks, margin {margin:.0%})"
        rows += rows_of(title, found, wanted, bar)
        waited = sum(one["waited"] for one in found) / len(found)
        effects = sorted(one["cpu effect"] for one in found)
        never = ""
        if factor != 1.0:
            kept = all(one["headline"] != "same" for one in found)
            never = f"never same: {'kept' if kept else 'MISSED'}"
        remark = f"{name}: median effect on cpu time {effects[len(effects) // 2]:.4f}; {percent(waited)} of wall time waiting"
        rows.append([remark, "", "", "", "", never])
    bench.keep_company(0)
    print(f"\nA program of 5 ms, with {cores} cores kept busy by {cores} other processes.\n")
    print(table(["", "different", "small", "same", "can't tell", "target"], rows))

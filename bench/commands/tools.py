"""The two tools, the programs that they weigh, and the arithmetic that one of them leaves to its users."""

import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


class Bench:
    """A folder to work in, the tools, and the programs."""

    def __init__(self, scruple, quick):
        self.scruple = str(pathlib.Path(scruple).resolve())
        self.quick = quick
        self.hyperfine = shutil.which("hyperfine")
        self.folder = tempfile.TemporaryDirectory(prefix="scruple-bench-")
        self.path = pathlib.Path(self.folder.name)
        self.company = []
        self.results = {}
        compile_c("burn.c", self.path / "burn", ["-O1", "-static"])
        compile_c("stamp.c", self.path / "stamp", ["-O1", "-static", "-nostdlib", "-fno-stack-protector"])

    def close(self):
        self.keep_company(0)
        self.folder.cleanup()

    def keep_company(self, count):
        """Runs this many busy processes beside the measured ones; they end with this one."""
        for process in self.company:
            process.kill()
            process.wait()
        burn = str(self.path / "burn")
        self.company = [subprocess.Popen([burn, "forever"]) for _ in range(count)]

    def copies(self, *names):
        """Fresh copies of the burner with these names, so that their layout on the disk varies."""
        for name in names:
            shutil.copy(self.path / "burn", self.path / name)

    def weigh(self, *words, prefix=()):
        """One run of Scruple, as JSON."""
        command = [*prefix, self.scruple, "run", "--no-store", "--json", *words]
        return json.loads(self.run(command))

    def fine(self, *words, prefix=()):
        """One run of hyperfine, as its list of results; empty if it is not installed."""
        if not self.hyperfine:
            return None
        out = self.path / "hyperfine.json"
        self.run([*prefix, self.hyperfine, "-N", "--style=none", "--export-json", str(out), *words])
        return json.loads(out.read_text())["results"]

    def run(self, command):
        done = subprocess.run(command, cwd=self.path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit(f"{command} failed with {done.returncode}:\n{done.stderr}")
        return done.stdout


def compile_c(source, target, flags):
    subprocess.run(["cc", *flags, "-o", str(target), str(HERE / source)], check=True)


def cpu_of(command):
    """The processor time of one run, in nanoseconds."""
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, command
    return (usage.ru_utime + usage.ru_stime) * 1e9


def calibrate(bench):
    """Steps of the burner as a function of the processor time wanted, in nanoseconds: start-up cost and slope."""
    burn, many = str(bench.path / "burn"), 20_000_000
    idle, busy = [], []
    for _ in range(20 if bench.quick else 60):
        idle.append(cpu_of([burn, "0"]))
        busy.append(cpu_of([burn, str(many)]))
    start = statistics.median(idle)
    step = (statistics.median(busy) - start) / many
    return lambda wanted: max(0, round((wanted - start) / step))


def comparison(run, metric):
    return next((one for one in run["comparisons"] if one["metric"] == metric), None)


def headline(run):
    """The verdict that Scruple prints as a sentence."""
    return next(one["verdict"] for one in run["comparisons"] if one.get("headline"))


def verdict_at(one, margin):
    """The verdict of a comparison for another margin, from its interval."""
    if not one["interval"]:
        return "can't tell"
    low, high = (math.log(bound) for bound in one["interval"])
    limit = math.log1p(margin)
    if low > limit or high < -limit:
        return "different"
    if -limit <= low and high <= limit:
        return "same"
    return "small" if low > 0 or high < 0 else "can't tell"


def welch(a, b):
    """The two-sided p-value of Welch's t-test, which hyperfine's own script computes from its exported times."""
    va, vb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    if va + vb == 0:
        return 1.0
    t = (statistics.fmean(a) - statistics.fmean(b)) / math.sqrt(va + vb)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function, by its continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1 - x)
    )
    tiny, c, d = 1e-300, 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d or tiny)
    fraction = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + numerator * d) or tiny)
            c = (1 + numerator / c) or tiny
            fraction *= d * c
        if abs(d * c - 1) < 1e-12:
            break
    return front * fraction / a


def ratio_claims_difference(a, b):
    """Whether the interval in hyperfine's own line, such as ‘1.04 ± 0.01 times faster’, excludes 1."""
    fast, slow = sorted((a, b), key=lambda one: one["mean"])
    ratio = slow["mean"] / fast["mean"]
    spread = ratio * math.hypot(slow["stddev"] / slow["mean"], fast["stddev"] / fast["mean"])
    return ratio - spread > 1


def share(outcomes, *wanted):
    return sum(outcome in wanted for outcome in outcomes) / len(outcomes)


def median_interval(values):
    """The median with its 95 % interval from order statistics."""
    values, n = sorted(values), len(values)
    reach = 1.96 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - reach)), min(n - 1, math.ceil(n / 2 + reach))
    return statistics.median(values), values[low], values[high]


def table(head, rows):
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join([":---"] + ["---:"] * (len(head) - 1)) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def percent(value):
    return f"{100 * value:.1f} %"

#!/usr/bin/env python3
"""The cost of counting allocations: nanoseconds per malloc/free pair, and CPU time of programs, compared with other
tools. CPU time is user plus system of the whole tree, the smallest of interleaved rounds, so that other work on the
machine matters little. Prints Markdown.

    python3 bench/heap/run.py [--rounds N] [--pairs] [--no-rivals] [--only PROGRAM]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODES = {"counts": "off", "live + peak": "usable", "requested peak": "requested"}
# Short, so that some runs are not disturbed.
PAIRS = 4_000_000


def skip(what, why):
    print(f"skipped: {what}: {why}", file=sys.stderr)


def compile_programs(folder):
    def build(compiler, source):
        target = folder / pathlib.Path(source).stem
        subprocess.run([compiler, "-O2", "-fno-builtin", "-o", target, HERE / source], check=True)
        return str(target)

    return build("cc", "pair.c"), build("cc", "mix.c"), build("c++", "maps.cc")


def counter(example="heap"):
    command = ["cargo", "build", "--quiet", "--release", "-p", "scruple-measure", "--example", example]
    subprocess.run(command, cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    return str(pathlib.Path(target) / "release/examples" / example)


class Counting:
    """A session of the counter that stays open. Commands with `environment` are counted."""

    def __init__(self, runner, peak):
        command = [runner, f"--peak={peak}", "--hold"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.environment = dict(self.process.stdout.readline().rstrip("\n").split("=", 1) for _ in range(2))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def cpu(command, extra=None):
    """CPU seconds of one run and of all that it starts and waits for."""
    null = subprocess.DEVNULL
    environment = {**os.environ, "PYTHONHASHSEED": "0", "LC_ALL": "C", **(extra or {})}
    process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # `diff` exits with 1 if files differ
        raise RuntimeError(f"{command} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def smallest(arms, rounds):
    """The smallest CPU time of each arm, visiting all of them in each round."""
    best = {}
    for _ in range(rounds):
        for name, (command, extra) in arms.items():
            best[name] = min(best.get(name, float("inf")), cpu(command, extra))
    return best


def programs(mix, maps, folder):
    """Installed commands that allocate much and run for a few tenths of a second."""
    text = folder / "text"
    text.write_text("".join(f"{i * 7919 % 200003} line {i} {i % 17}\n" for i in range(200_000)))
    other = folder / "other"
    other.write_text(text.read_text().replace("3 line", "3 row"))
    sql = (
        "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<150000) "
        "insert into t select x, 'row '||x from c; select count(*), sum(length(b)) from t group by a%1000;"
    )
    python = "print(sum(len(str(i)) + len([i] * 9) + len({i: i}) for i in range(300_000)))"
    source = folder / "many.c"
    source.write_text("".join(f"int f{i}(int a) {{ return a * {i} + (a ? f{i - 1}(a - 1) : 0); }}\n" if i else
                              "int f0(int a) { return a; }\n" for i in range(400)))
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
    candidates = {
        "mix (C)": [mix, "4000000"],
        "maps (C++)": [maps, "150000"],
        "python": [sys.executable, "-S", "-c", python],
        "git diff": ["git", "diff", "--no-index", "--stat", "--patience", str(text), str(other)],
        "sqlite3": ["sqlite3", ":memory:", sql],
        "cc1 -O1": [compiler, "-quiet", "-O1", str(source), "-o", os.devnull],
        "sort": ["sort", "-n", str(text)],
        "awk": ["awk", "{n[$1] = $0} END {for (k in n) s += length(n[k]); print s}", str(text)],
        "perl": ["perl", "-e", "$h{$_} = [$_, \"x$_\"] for 1 .. 200000; print scalar keys %h"],
        "jq": ["jq", "-n", "[range(150000) | {a: ., b: \"x\\(.)\"}] | map(.b) | length"],
        "xz": ["xz", "-1kc", str(text)],
        "diff": ["diff", str(text), str(other)],
    }
    found = {}
    for name, command in candidates.items():
        if not shutil.which(command[0]):
            skip(name, f"{command[0] or 'gcc'} is not installed")
            continue
        code = subprocess.run(command, capture_output=True).returncode
        if code > 1:
            skip(name, f"ends with {code}")
            continue
        found[name] = command
    return found


def memray_of_its_own():
    """Installs memray into the cache of the benches, unless it is there; None without a network."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    place = cache / "scruple/bench/memray"
    program = place / "bin/memray"
    if not program.exists():
        for words in ([sys.executable, "-m", "venv", place], [place / "bin/pip", "install", "-q", "memray"]):
            if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
                return None
    return str(program) if program.exists() else None


def rivals(folder):
    out = str(folder / "rival")
    memray = shutil.which("memray") or memray_of_its_own()
    candidates = {
        "heaptrack": (shutil.which("heaptrack"), lambda command: ["heaptrack", "-o", out, *command]),
        "memcheck": (shutil.which("valgrind"), lambda command: ["valgrind", "--trace-children=yes", *command]),
        "DHAT": (
            shutil.which("valgrind"),
            lambda command: ["valgrind", "--tool=dhat", "--trace-children=yes", f"--dhat-out-file={out}", *command],
        ),
        "memray": (
            memray,
            lambda command: [memray, "run", "-qf", "-o", out, *command[2:]] if command[0] == sys.executable else None,
        ),
    }
    for name, (path, _) in candidates.items():
        if not path:
            skip(name, "not installed, and cannot be" if name == "memray" else "not installed")
    return {name: wrap for name, (path, wrap) in candidates.items() if path}


def pair_table(pair, sessions, rounds):
    arms = {"plain": ([pair, str(PAIRS), "64"], None)}
    for name, flags in {"passed on only": [], "counted in globals": ["-DCOUNT"]}.items():
        library = str(pathlib.Path(pair).parent / f"floor{len(flags)}.so")
        words = ["cc", "-O2", "-fPIC", "-shared", "-fno-builtin", *flags, "-o", library, HERE / "floor.c", "-ldl"]
        subprocess.run(words, check=True)
        arms[name] = ([pair, str(PAIRS), "64"], {"LD_PRELOAD": library})
    arms |= {name: ([pair, str(PAIRS), "64"], session.environment) for name, session in sessions.items()}
    best = smallest(arms, rounds)
    print(f"ns per malloc(64) and free, {PAIRS:,} of them, smallest of {rounds} rounds:\n")
    print("| | ns per pair | added |\n|---|---|---|")
    for name, seconds in best.items():
        added = "" if name == "plain" else f"+{(seconds - best['plain']) / PAIRS * 1e9:.1f}"
        print(f"| {name} | {seconds / PAIRS * 1e9:.1f} | {added} |")


def start_table(sessions, rounds):
    arms = {"plain": (["true"], None)} | {name: (["true"], s.environment) for name, s in sessions.items()}
    best = {name: [] for name in arms}
    for _ in range(rounds * 10):
        for name, (command, extra) in arms.items():
            best[name].append(cpu(command, extra))
    median = {name: sorted(times)[len(times) // 2] for name, times in best.items()}
    print("\nStarting a program (`true`), median CPU time:\n")
    print("| | µs | added |\n|---|---|---|")
    for name, seconds in median.items():
        added = "" if name == "plain" else f"+{(seconds - median['plain']) * 1e6:.0f}"
        print(f"| {name} | {seconds * 1e6:.0f} | {added} |")


def program_table(commands, sessions, others, rounds):
    columns = [*sessions, *others]
    print(f"\nCPU time of programs, as a multiple of the plain run (smallest of {rounds} rounds; others once):\n")
    print(f"| program | plain, s | {' | '.join(columns)} |\n|---|---|{'---|' * len(columns)}")
    for name, command in commands.items():
        arms = {"plain": (command, None)}
        arms |= {mode: (command, session.environment) for mode, session in sessions.items()}
        best = smallest(arms, rounds)
        for rival, wrap in others.items():
            wrapped = wrap(command)
            if not wrapped:
                continue
            try:
                best[rival] = cpu(wrapped)
            except RuntimeError as error:
                skip(f"{rival} of {name}", error)
        ratios = [f"×{best[column] / best['plain']:.2f}" if column in best else "–" for column in columns]
        print(f"| {name} | {best['plain']:.3f} | {' | '.join(ratios)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pairs", action="store_true", help="only the table of pairs")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--quick", action="store_true", help="three rounds: shows that it works, proves little")
    parser.add_argument("--scruple", help="not used: the counter is driven without the rest of Scruple")
    parser.add_argument("--only", default="", help="programs whose name holds this; no table of pairs and starts")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 3
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        pair, mix, maps = compile_programs(folder)
        runner = counter()
        sessions = {mode: Counting(runner, peak) for mode, peak in MODES.items()}
        try:
            if not arguments.only:
                pair_table(pair, sessions, arguments.rounds * 3)
            if arguments.pairs:
                return
            if not arguments.only:
                start_table(sessions, arguments.rounds)
            others = {} if arguments.no_rivals else rivals(folder)
            commands = {k: v for k, v in programs(mix, maps, folder).items() if arguments.only in k}
            program_table(commands, sessions, others, arguments.rounds)
        finally:
            for session in sessions.values():
                session.close()


if __name__ == "__main__":
    main()

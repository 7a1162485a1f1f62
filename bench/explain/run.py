#!/usr/bin/env python3
"""The cost and correctness of counting instructions by call tree, compared with callgrind (instructions of every
address), cachegrind (totals) and memcheck (allocations), on unmodified programs. CPU time is user plus system, the
smallest of interleaved rounds. Prints Markdown.

    python3 bench/explain/run.py --scruple target/release/scruple [--quick | --long N] [--rounds N] [--only PROGRAM]
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
QUERY = """create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<{n})
insert into t select x, x*x%1000 from c; select count(*), sum(b) from t group by a%10; create index i on t(b);
select b, count(*) from t group by b order by 2 desc limit 3;"""
PYTHON = """import json
d = {{}}
for i in range({n}): d[i * 7919 % 50021] = d.get(i * 7919 % 50021, 0) + i
print(len(json.dumps([{{'a': i}} for i in range({n} // 10)])))"""


def skip(what, why):
    print(f"skipped: {what}: {why}", file=sys.stderr)


def programs(folder, scale, longer=1):
    """Name and command line of each installed program. The work is a part, or a multiple, of the usual one."""
    text = folder / "text"
    text.write_text("\n".join(f"{i * 7919 % 300007:x} line {i} {i % 17}" for i in range(300_000 * longer // scale)))
    python = subprocess.run(["python3", "-c", "import sys; print(sys.executable)"], stdout=subprocess.PIPE, text=True)
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(folder / "clone")], check=True)
    words = {
        "gzip": ["gzip", "-kc", str(text)],
        "git": ["git", "-C", str(folder / "clone"), "log", "-p", "-n", str(300 * longer // scale)],
        "sqlite3": ["sqlite3", ":memory:", QUERY.format(n=200_000 * longer // scale)],
        "python3": [python.stdout.strip(), "-S", "-c", PYTHON.format(n=3_000_000 * longer // scale)],
    }
    if shutil.which("go"):
        shutil.copy(HERE / "map.go", folder)
        build = ["go", "build", "-o", str(folder / "map_go"), "map.go"]
        if subprocess.run(build, cwd=folder, stderr=subprocess.DEVNULL).returncode == 0:
            words["Go map"] = [str(folder / "map_go"), str(60 * longer // scale or 1)]
    if shutil.which("ghc"):
        shutil.copy(HERE / "Map.hs", folder)
        build = ["ghc", "-v0", "-O1", "-rtsopts", "Map.hs", "-o", "map_hs"]
        if subprocess.run(build, cwd=folder, stderr=subprocess.DEVNULL).returncode == 0:
            words["GHC Map"] = [str(folder / "map_hs"), str(400_000 * longer // scale), "+RTS", "-V0"]
    found = {}
    for name, command in words.items():
        path = shutil.which(command[0])
        if path:
            found[name] = [path, *command[1:]]
        else:
            skip(name, "not installed")
    return found


# Functions by which GHC's runtime allocates in its own heap, which memcheck does not see.
OF_GHC = {"allocateMightFail", "allocatePinned"}


class Scale:
    """Runs programs in one environment, with one folder of tools: valgrind's and the call tree."""

    def __init__(self, scruple, folder):
        self.folder = folder
        # Python reads the names of all files in its working folder.
        self.empty = folder / "empty"
        self.empty.mkdir()
        env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        said = subprocess.run([scruple, "doctor", "--quick"], env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
        made = [path.parent for path in (folder / "cache/scruple/calltree").glob("*/complete")]
        if not made:
            sys.exit("the call tree is not available here:  " + next(l for l in said.splitlines() if \
                "instructions" in l))
        self.env = {
            "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C", "VALGRIND_LIB": str(made[0]),
            "PYTHONHASHSEED": "0", "GOMAXPROCS": "1", "GODEBUG": "asyncpreemptoff=1",
        }
        valgrind = pathlib.Path(shutil.which("valgrind"))
        behind = valgrind.with_name("valgrind.bin")
        self.valgrind = str(behind if behind.exists() else valgrind)

    def tool(self, tool, *options):
        return [self.valgrind, "-q", "--vgdb=no", f"--tool={tool}", *options]

    def run(self, words):
        """CPU seconds."""
        with open(self.folder / "stderr", "w+b") as stderr:
            process = subprocess.Popen(["setarch", "-R", *words], env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=stderr, cwd=self.empty)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            stderr.seek(0)
            said = stderr.read().decode(errors="replace")
        if process.returncode != 0:
            sys.exit(f"{words} ended with {process.returncode}: {said}")
        return usage.ru_utime + usage.ru_stime


def tree(path):
    """Total, instructions by file and address, allocations and bytes, those in GHC's own heap, contexts."""
    files, names, addresses = {}, {}, collections.Counter()
    total, heap, of_ghc, contexts = 0, [0, 0], [0, 0], 0
    for line in path.read_text(errors="replace").splitlines():
        words = line.split(" ")
        if words[0] == "o":
            files[words[1]] = line.split(" ", 2)[2]
        elif words[0] == "f":
            names[words[1]] = line.split(" ", 4)[4]
        elif words[0] == "c":
            contexts += 1
            counts = of_ghc if names.get(words[3]) in OF_GHC else heap
            counts[0] += int(words[5])
            counts[1] += int(words[6])
        elif words[0] == "r":
            at = int(words[3], 16)
            for length in words[5]:
                addresses[files[words[2]], at] += int(words[4])
                at += int(length, 16)
        elif words[0] == "total":
            total = int(words[1])
    return total, addresses, heap, of_ghc, contexts


def callgrind(path):
    """Total, and instructions by file and address (--dump-instr=yes --compress-pos=no --skip-plt=no)."""
    names, addresses, file, total, inclusive = {}, collections.Counter(), "", 0, False
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith(("ob=", "cob=")):
            key, value = line.split("=", 1)
            number, _, name = value.partition(" ")
            names.setdefault(number, name)
            file = names[number] if key == "ob" else file
        elif line.startswith("calls="):
            inclusive = True
        elif line.startswith("totals:"):
            total = int(line.split()[1])
        elif line.startswith("0x"):
            words = line.split()
            if not inclusive and len(words) > 2:
                addresses[file, int(words[0], 16)] += int(words[2])
            inclusive = False
    return total, addresses


def differences(ours, theirs):
    """The sum of the differences over addresses. Callgrind knows no file for stubs that jump to other files, and prints
    their addresses in memory: those are compared by their offsets in a page."""
    def in_pages(counts):
        places = collections.Counter()
        for (_, address), count in counts.items():
            places[address & 0xFFF] += count
        return places

    known = {at for at in theirs if at[0] != "???" and at in ours}
    both = sum(abs(ours[at] - theirs[at]) for at in known)
    rest, their_rest = ({at: count for at, count in side.items() if at not in known} for side in (ours, theirs))
    places, their_places = in_pages(rest), in_pages(their_rest)
    return both + sum(abs(places[at] - their_places[at]) for at in {*places, *their_places})


def memcheck(said):
    """Allocations and bytes."""
    usage = re.search(r"total heap usage: ([\d,]+) allocs, [\d,]+ frees, ([\d,]+) bytes", said)
    return [int(number.replace(",", "")) for number in usage.groups()]


def pair(counts):
    return " / ".join(f"{count:,}" for count in counts)


def compare(scale, name, words, rounds):
    out = scale.folder / "profile"
    theirs = scale.folder / "callgrind"
    variants = {
        "native": words,
        "none": [*scale.tool("none"), *words],
        "total": [*scale.tool("calltree", f"--out={out}-total", "--total=yes"), *words],
        "tree": [*scale.tool("calltree", f"--out={out}"), *words],
        "callgrind": [*scale.tool("callgrind", f"--callgrind-out-file={theirs}"), *words],
    }
    best = {}
    for _ in range(rounds):
        for variant, command in variants.items():
            for old in scale.folder.glob("profile.*") if variant == "tree" else []:
                old.unlink()
            seconds = scale.run(command)
            best[variant] = min(best.get(variant, seconds), seconds)
    total, addresses, heap, of_ghc, contexts = tree(next(scale.folder.glob("profile.*.1")))
    options = ["--skip-plt=no", "--dump-instr=yes", "--compress-pos=no", f"--callgrind-out-file={theirs}"]
    scale.run([*scale.tool("callgrind", *options), *words])
    their_total, their_addresses = callgrind(theirs)
    other = differences(addresses, their_addresses)
    cachegrind = scale.folder / "cachegrind"
    # It warns of its cache model. On standard error, Python would find that something was written before.
    options = ["--cache-sim=no", "--vex-guest-chase=no", f"--cachegrind-out-file={cachegrind}",
               f"--log-file={scale.folder / 'warnings'}"]
    scale.run([*scale.tool("cachegrind", *options), *words])
    summary = int(re.search(r"^summary:\s*(\d+)", cachegrind.read_text(), re.M).group(1))
    # Its report goes to a file of its own, too.
    report = scale.folder / "memcheck"
    options = ["--leak-check=no", "--run-libc-freeres=no", "--run-cxx-freeres=no", f"--log-file={report}"]
    scale.run([word for word in scale.tool("memcheck", *options) if word != "-q"] + words)
    times = {variant: seconds / best["native"] for variant, seconds in best.items()}
    cost = f"| {name} | {best['native']:.2f} s | " + " | ".join(
        f"{times[key]:.1f} ×" for key in ("none", "total", "tree", "callgrind"))
    cost += f" | {times['callgrind'] / times['tree']:.1f} | {times['callgrind'] / times['none']:.1f} |"
    count = (f"| {name} | {total:,} | {total - their_total:+,} | {total - summary:+,} | {len(addresses):,} | {other:,} "
             f"| {contexts:,} | {pair(heap)} | {pair(memcheck(report.read_text()))} | {pair(of_ghc)} |")
    return cost, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scruple", required=True)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--long", type=int, default=1, metavar="N", help="N times the work")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        return skip("everything", "valgrind is not installed")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        scale = Scale(options.scruple, folder)
        rows = []
        commands = programs(folder, 10 if options.quick else 1, options.long)
        if options.only not in (None, *commands):
            parser.error(f"--only: ‘{options.only}’ is none of {', '.join(commands)}")
        for name, words in commands.items():
            if not options.only or options.only == name:
                rows.append(compare(scale, name, words, 1 if options.quick else options.rounds))
    print(f"Load {os.getloadavg()[0]:.1f}. CPU time relative to the program alone:\n")
    print("| program | alone | valgrind alone | total | call tree | callgrind | callgrind / call tree | callgrind / valgrind |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(cost for cost, _ in rows))
    print("\nInstructions, their difference to callgrind and cachegrind, and over all addresses the sum of differences to "
          "callgrind;\nallocations and bytes:\n")
    print("| program | call tree | − callgrind | − cachegrind | addresses | differ by | contexts | in the tree | memcheck "
          "| also in the tree: GHC's own heap |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    print("\n".join(count for _, count in rows))
    return None


if __name__ == "__main__":
    sys.exit(main())

"""A bench program whose clocks lie: what each case costs is said on the command line, and so is how it misbehaves.

Each argument is a case in JSON: what the protocol says of cases, and besides, `cost` and `tare` (ns for an iteration),
`bytes` (allocated in an iteration), `step` (bytes are counted in steps of so many), `tare_bytes` (allocated in a batch of
the tare), `stall` (ns that the first batch of 1000 iterations or more takes longer, of the case and of the tare),
`making` (ms for each input), `late_input` (only batches say that each iteration has its own input), `cold_iteration` (ns
that the first iteration of a request takes longer), `cold` (so many batches in a process in which an iteration takes ten times as long, and allocates `cold_bytes` more), `cold_calls` (the same for so many iterations in a process),
`late` (a file that each process looks for: the one that finds none makes it, and its case is cold to the end),
`turns` (in so many of ten batches the threads take turns), `jumps` (times differ from process to process), `spreads` (the same, up to a fifth, and not those of the tare),
`once` (bytes allocated by the first iteration in a process), `shares` (seconds that the first of the cases that have it takes to set up, in each process), `resumes` (whether threads made no progress for long, but have gone on when it is read), `stops` (seconds for which the process is stopped, once), `pause` (each so many iterations of a process,
the collector takes so many ns), `refill` (each so many iterations of a process take so many ns more), `drawn` (a file of lines, to which each process adds one: every
other process allocates 8 bytes more in an iteration), `touches` (pages of memory that an iteration takes from the kernel), `marked` (a variable, whose length is allocated besides), `does` (what goes wrong when the case is asked for). Of the options, `--version N`
answers to hello with that version, `--language WORD` with that language, `--chatter` prints to stdout all the time,
`--many N` declares N cases more, `--endless yes` goes on to name cases, `--sleep S` starts after so many seconds, and
`--log FILE` writes down which cases each process was asked for, and `--starts FILE` adds a line for each process.
"""

# Tests start this program hundreds of times. To import `json`, `collections` or `signal` would take longer than all else.
import itertools
import os
import sys
import time
from _collections import defaultdict
from _json import encode_basestring_ascii
from _signal import SIGCONT, SIGKILL, SIGSTOP

BATCH = 20  # What each batch costs by itself, in ns.


# Replies that replace an answer; others only damage one.
LOUD = ("throw", "skip", "stop", "hang", "spin", "die", "exit", "half", "garble", "blame")


def of_json(text):
    return eval(text, {"true": True, "false": False, "null": None})


def to_json(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"{to_json(key)}:{to_json(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(to_json, value)) + "]"
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)


def declare(words):
    options, cases = {"version": 1, "language": "none", "chatter": False, "many": 0, "log": None}, []
    words = iter(words)
    for word in words:
        if word == "--chatter":
            options["chatter"] = True
        elif word.startswith("--"):
            options[word[2:]] = next(words)
        else:
            cases.append(of_json(word))
    cases += [{"name": f"many/{i:05}", "cost": 5} for i in range(int(options["many"]))]
    return options, cases


def lie(what, reply):
    if what == "timeless":
        del reply["time.wall"]
    if what == "backwards":
        reply["time.wall"] = -5
    if what == "swift":
        reply["time.wall"] = 10**12
    if what == "endless-cpu":
        reply["time.cpu"] = 10**12
    if what == "still":
        reply["time.wall"] = reply["time.cpu"] = 0
    if what == "outside":
        reply["time.wall"] = reply["time.cpu"] = 600
    if what == "wrapped":
        reply["alloc.bytes"] = 2**64 - 1
    if what == "text":
        reply["time.wall"] = "12"
    if what == "stranger":
        reply["id"] = 77
    if what == "eager":
        reply["iterations"] += 1


def misbehave(what, out, index):
    if what == "throw":
        print("complaint of another case", file=sys.stderr, flush=True)
        return {"error": "ValueError: it threw", "kind": "exception", "id": index}
    if what == "skip":
        return {"error": "no such device", "kind": "skipped", "id": index}
    if what == "hang":
        time.sleep(3600)
    if what == "spin":
        while True:
            pass
    if what == "stop":
        os.kill(os.getpid(), SIGSTOP)
    if what == "die":
        os.kill(os.getpid(), SIGKILL)
    if what == "exit":
        print("first complaint\nlast complaint", file=sys.stderr, flush=True)
        os._exit(3)
    if what == "half":
        out.write('{"block":[{"id":')
        out.flush()
        os._exit(0)
    if what == "garble":
        return "this is no JSON"
    if what == "blame":
        return {"error": "ValueError: it threw", "kind": "exception", "id": 77}
    raise ValueError(what)


def stop(seconds):
    """Stops this process until another one wakes it."""
    stopped = os.getpid()
    if os.fork() == 0:
        while open(f"/proc/{stopped}/stat").read().rsplit(")")[-1].split()[0] != "T":
            time.sleep(0.01)
        time.sleep(seconds)
        os.kill(stopped, SIGCONT)
        os._exit(0)
    os.kill(stopped, SIGSTOP)
    os.wait()


evaluated, stalled, set_up = set(), set(), set()
batches_of, iterations_of = defaultdict(int), defaultdict(int)
draws = {}


def drawn(path):
    if path not in draws:
        with open(path, "a+") as lines:
            lines.seek(0)
            draws[path] = 8 * (len(lines.readlines()) % 2)
            lines.write("\n")
    return draws[path]


lateness = {}


def is_late(case):
    path = case.get("late")
    if path and path not in lateness:
        lateness[path] = not os.path.exists(path)
        open(path, "a").close()
    return lateness.get(path, False)


def touch(pages):
    import mmap

    with mmap.mmap(-1, 4096 * pages) as memory:
        for page in range(pages):
            memory[4096 * page] = 1


def batch(cases, word):
    index, kind, iterations, *threads = word.split(":")
    case, count, threads = cases[int(index)], int(iterations), int(threads[0]) if threads else 1
    tare = case.get("tare", 2)
    one = tare if kind == "t" else tare + case["cost"]
    if case.get("jumps"):
        # The padding is another in each process, and the same for a seed.
        share = len(os.environ.get("SCRUPLE_PADDING", "")) / 4096
        one *= 1 + 400 * share**4 if kind == "c" else 1 + 10 * (1 - share)
    if case.get("spreads") and kind == "c":
        one *= 1 + len(os.environ.get("SCRUPLE_PADDING", "")) / 4096 / 5
    batches_of[index, kind] += 1
    is_cold = kind == "c" and batches_of[index, kind] <= (1e9 if is_late(case) else case.get("cold", 0))
    is_cold = is_cold or kind == "c" and iterations_of[index, "calls"] < case.get("cold_calls", 0)
    iterations_of[index, "calls"] += count if kind == "c" else 0
    if is_cold:
        one *= 10
    wall = round(one * count) + BATCH
    if "stall" in case and count >= 1000 and (index, kind) not in stalled:
        stalled.add((index, kind))
        wall += case["stall"]
    if "refill" in case and kind == "c":
        every, length = case["refill"]
        before = iterations_of[index, "refill"]
        iterations_of[index, "refill"] += count
        wall += (iterations_of[index, "refill"] // every - before // every) * length
    reply = {"id": int(index), "kind": kind, "iterations": count * threads, "time.wall": wall, "time.cpu": wall * threads}
    if kind == "t":
        # Else Scruple would look whether this machine has the core to itself, and results would differ.
        reply["witness"] = one
    each = case.get("bytes", 0) + len(os.environ.get(case.get("marked", ""), ""))
    each += case.get("cold_bytes", 0) if is_cold else 0
    each += drawn(case["drawn"]) if "drawn" in case else 0
    reply["alloc.bytes"] = each * count * threads if kind == "c" else case.get("tare_bytes", 0)
    if kind == "c" and "once" in case and index not in evaluated:
        evaluated.add(index)
        reply["alloc.bytes"] += case["once"]
    if kind == "c":
        # What a body whose state grows allocates in every hundredth iteration.
        reply["alloc.bytes"] += count // 100 * case.get("segment", 0)
    if "shared" in case:
        # Small objects share a block, which each batch begins anew.
        reply["alloc.bytes"] += -reply["alloc.bytes"] % case["shared"]
    if "outside" in case:
        reply["js.external"] = case["outside"] * count if kind == "c" else 0
    if "step" in case:
        reply["alloc.bytes"] -= reply["alloc.bytes"] % case["step"]
    if kind == "c":
        lie(case.get("does"), reply)
    time.sleep(case.get("making", 0) * count / 1000)
    if case.get("late_input"):
        reply["per_iteration_input"] = True
    if "pause" in case:
        every, length = case["pause"]
        before = iterations_of[index, kind]
        iterations_of[index, kind] += count
        reply["gc.count"] = iterations_of[index, kind] // every - before // every if kind == "c" else 0
        reply["gc.time"] = reply["gc.count"] * length
    if "touches" in case and kind == "c":
        touch(case["touches"] * count)
    reply["zoo.visits"] = (case.get("visits", 0) if kind == "c" else 0) * count * threads
    if threads > 1:
        each = {"iterations": count, "time.wall": wall, "time.cpu": wall}
        reply["threads"] = [each] * threads
        # Where threads take turns, the batch takes as long as all of them.
        if (batches_of[index, kind] - 1) % 10 < case.get("turns", 0):
            reply["time.wall"] = wall * threads
    return reply


def answer(line, options, cases, out, asked):
    words = line.split()
    if words[0] == "hello":
        near = any("shared" in case for case in cases)
        counters = [
            {"key": "alloc.bytes", "unit": "bytes", "quality": "near" if near else "exact"}
            if not any("step" in case for case in cases)
            else {"key": "alloc.bytes", "unit": "bytes", "quality": "near", "granularity": cases[0]["step"]},
            {"key": "zoo.visits", "unit": "count", "quality": "exact"},
        ]
        if any("outside" in case for case in cases):
            counters.append({"key": "js.external", "unit": "bytes", "quality": "near"})
        if any("pause" in case for case in cases):
            counters.append({"key": "gc.count", "unit": "count", "quality": "near"})
            counters.append({"key": "gc.time", "unit": "ns", "quality": "near"})
        hello = {"scruple": int(options["version"]), "sdk": "fake 1", "language": options["language"], "counters": counters}
        return [{**hello, "features": ["threads"]}]
    if words[0] == "cases":
        own = ("cost", "tare", "bytes", "visits", "does", "step", "tare_bytes", "making", "late_input", "cold_iteration", "stall", "jumps", "spreads", "once", "drawn", "marked", "cold", "cold_calls", "late", "segment", "shares", "stops", "pause", "refill", "moved", "outside", "shared", "resumes", "touches")
        said = [
            {"case": {"id": i, **{key: value for key, value in case.items() if key not in own}}}
            for i, case in enumerate(cases)
        ]
        if "endless" in options:
            out.writelines(to_json(case) + "\n" for case in said)
            for i in itertools.count(len(said)):
                out.write(to_json({"case": {"id": i, "name": f"endless/{i}"}}) + "\n")
        return [*said, {"end": "cases", "count": len(said)}]
    if words[0] == "block":
        for word in words[1:]:
            index = int(word.split(":")[0])
            asked.add(cases[index]["name"])
            does = cases[index].get("does", "")
            if does == "few":
                words = words[:1]
            elif does in LOUD and ":c:" in word:
                return [misbehave(cases[index]["does"], out, index)]
            elif does == "shun" and ":c:" in word and int(word.split(":")[2]) > 300000:
                return [misbehave("throw", out, index)]
            elif does == "tire" and batches_of[str(index), "c"] == 20:
                return [misbehave("throw", out, index)]
        for shared in {cases[int(word.split(":")[0])].get("shares", 0) for word in words[1:]} - set_up:
            set_up.add(shared)
            time.sleep(shared)
        stops = max((cases[int(word.split(":")[0])].get("stops", 0) for word in words[1:]), default=0)
        if stops and "stops" not in set_up:
            set_up.add("stops")
            stop(stops)
        began = time.monotonic_ns()
        block = [batch(cases, word) for word in words[1:]]
        # What the first iteration takes longer, because other programs used the caches while this one waited.
        cold = sum(cases[int(word.split(":")[0])].get("cold_iteration", 0) for word in words[1:2])
        for first in [reply for reply in block if cold and reply["kind"] == "c"][:1]:
            first["time.wall"] += cold
        # What it allocates on a processor to which the program was moved while it waited.
        for word, reply in [(word, reply) for word, reply in zip(words[1:], block) if ":c:" in word][:1]:
            reply["alloc.bytes"] += cases[int(word.split(":")[0])].get("moved", 0)
        # The host looks at its own clock, too.
        claimed = sum(reply["time.wall"] for reply in block if isinstance(reply.get("time.wall"), int) and reply["time.wall"] < 10**11)
        time.sleep(max(0, claimed - (time.monotonic_ns() - began)) / 1e9)
        standing = [int(word.split(":")[0]) for word in words[1:] if cases[int(word.split(":")[0])].get("resumes")]
        stalls = [{"stalled": index, "seconds": 2.0, "put": 0, "got": 0} for index in standing[:1] * 2]
        return [*stalls, {"block": block, "lost": 0}]
    if words[0] == "once":
        case = cases[int(words[1])]
        wrong = case.get("does") == "wrong"
        return [{"once": int(words[1]), "ok": not wrong, "checked": True, **({"why": "7 is not 8"} if wrong else {})}]
    return [{"error": f"unknown request: {line}", "kind": "request"}]


def main():
    options, cases = declare(sys.argv[1:])
    if "starts" in options:
        with open(options["starts"], "a", encoding="utf-8") as starts:
            starts.write("started\n")
    time.sleep(float(options.get("sleep", 0)))
    asked = set()
    lines = open(os.environ["SCRUPLE_BENCH_IN"], encoding="utf-8")
    out = open(os.environ["SCRUPLE_BENCH_OUT"], "w", encoding="utf-8")
    for line in lines:
        if options["chatter"]:
            print("{\"block\":[]}\nhello from the program", flush=True)
        if line == "bye\n":
            out.write('{"bye":true}\n')
            break
        for reply in answer(line, options, cases, out, asked):
            out.write((reply if isinstance(reply, str) else to_json(reply)) + "\n")
        out.flush()
    if options["log"] and asked:
        with open(options["log"], "a", encoding="utf-8") as log:
            log.write(" ".join(sorted(asked)) + "\n")


main()

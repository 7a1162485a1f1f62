"""Checks that a transcript cannot express: arithmetic over replies, other ways of starting, many cases."""

import os
import re
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from program import Program
from transcript import find, mismatch


# After this many pairs of batches without it, a program does not name the thread that runs a batch.
NAMELESS = 20


def same_ids_in_every_process(argv, cases, _hello):
    with Program(argv) as program:
        again, end = program.cases()
    assert again == cases, "a second process declares other cases or other ids"
    assert end == {"end": "cases", "count": len(cases)}, f"the closing line is {end}"
    assert [c["id"] for c in cases] == list(range(len(cases))), "ids are not dense from 0"


def every_field_has_its_type(_argv, cases, _hello):
    text, integer, flag = str, int, bool
    types = {"id": integer, "name": text, "group": text, "shape": text, "params": dict, "throughput": dict,
             "threads": list, "budgets": dict, "tags": list, "fresh": flag, "first": flag, "per_iteration_input": flag,
             "max_iterations": integer, "time_limit": integer, "checked": flag, "source": text, "timing": text,
             "concurrency": dict, "readings": list}
    for case in cases:
        for key, value in case.items():
            assert key in types, f"{case['name']!r}: the protocol has no field {key!r}"
            assert type(value) is types[key], f"{case['name']!r}: {key} is {value!r}"
        assert case.get("timing", "latency") in ("latency", "throughput"), f"{case['name']!r}: timing {case['timing']!r}"
        if "source" in case:
            assert re.search(r":\d+$", case["source"]), f"source {case['source']!r} does not end in a line number"
        if case.get("per_iteration_input"):
            assert case.get("max_iterations", 0) > 0, f"{case['name']!r}: no max_iterations"
    declared = {(c["name"], tuple(sorted(c.get("params", {}).items()))) for c in cases}
    assert len(declared) == len(cases), "two cases have the same name and params"


def example_cases_arrive_as_declared(_argv, cases, hello):
    shapes = {find(cases, name).get("shape") for name in ("identity", "linear")}
    assert len(shapes) == 1 and None not in shapes, f"identity and linear have the shapes {shapes}"
    assert [c["params"] for c in cases if c["name"] == "growth"] == [{"n": n} for n in (0, 1, 2, 3, 10, 100)]
    expected = {
        "identity": {"params": "$absent", "threads": "$absent", "budgets": "$absent"},
        "threads/two": {"threads": [1, 2] if "threads" in hello.get("features", []) else "$absent"},
        "input/per-iteration": {"per_iteration_input": True, "max_iterations": 100},
        "check/passes": {"checked": True},
        "check/fails": {"checked": True},
        "budgets": {"budgets": {"time.wall": {"max": 1000000},
                                "alloc.bytes": {"max": "+5%", "against": "baseline"}}},
        "fields": {"group": "another group", "tags": ["slow", "two words"], "fresh": True,
                   "throughput": {"unit": "bytes", "amount": 4096}, "time_limit": 5_000_000_000},
    }
    if "queues" in hello.get("features", []):
        expected["queue/fifo"] = {"concurrency": {"producers": 2, "consumers": 2, "capacity": 64}}
    # Where programs declare groups, a slash in the name of a case in one does not divide it.
    if hello.get("language") in ("haskell", "javascript", "scheme"):
        expected["names/a//b/c"] = {"group": "names"}
    # A field with its default value may be left out or written.
    defaults = {"params": {}, "threads": [1], "budgets": {}}
    for name, pattern in expected.items():
        case = {k: v for k, v in find(cases, name).items() if v != defaults.get(k)}
        wrong = mismatch(pattern, case, cases, name)
        assert not wrong, wrong


def hello_is_complete(_argv, _cases, hello):
    for key in ("sdk", "language", "runtime"):
        assert isinstance(hello.get(key), str) and hello[key], f"hello has no {key}"
    assert re.fullmatch(r"scruple-\S+ \d+\.\d+\.\d+", hello["sdk"]), f"sdk is {hello['sdk']!r}"
    for name, clock in hello.get("clocks", {}).items():
        assert name in ("time.wall", "time.cpu"), f"unknown clock {name}"
        assert clock.get("resolution", 0) >= 1, f"the clock {name} has no resolution"
    assert "time.wall" in hello.get("clocks", {}), "hello does not list the clock time.wall"
    scope = scope_of_cpu_time(hello)
    assert "time.cpu" not in hello["clocks"] or scope in ("thread", "process"), f"the scope of time.cpu is {scope!r}"
    for counter in hello.get("counters", []):
        assert re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", counter["key"]), f"odd key {counter['key']!r}"
        assert counter["unit"] and counter["quality"] in ("exact", "near", "sampled", "estimated"), f"{counter}"
        assert counter.get("per", "iteration") in ("iteration", "batch"), f"{counter}"


def scope_of_cpu_time(hello):
    return hello["clocks"].get("time.cpu", {}).get("scope")


def announced_counters_are_reported(argv, cases, hello):
    with Program(argv) as program:
        case = find(cases, "identity")["id"]
        entry = program.ask(f"block {case}:c:10")["block"][0]
    for counter in hello.get("counters", []):
        if counter.get("per") != "batch":
            assert counter["key"] in entry, f"{counter['key']} is announced but not in {entry}"
    for clock in hello["clocks"]:
        assert type(entry.get(clock)) is int, f"{clock} is {entry.get(clock)!r}"
    readings = [*hello.get("counters", []), *find(cases, "identity").get("readings", [])]
    known = {"id", "kind", "iterations", "timing", "per_iteration_input", "thread", "witness", *hello["clocks"],
             *(reading["key"] for reading in readings)}
    assert not set(entry) - known, f"{sorted(set(entry) - known)} are in {entry} but not announced"


def each_thread_reads_the_clock_of_a_thread(argv, cases, hello):
    if "threads" not in hello.get("features", []) or scope_of_cpu_time(hello) != "thread":
        return f"no threads, or the scope of time.cpu is {scope_of_cpu_time(hello)}"
    with Program(argv) as program:
        entry = program.ask(f"block {find(cases, 'threads/two')['id']}:c:50:2")["block"][0]
    times = [thread.get("time.cpu") for thread in entry["threads"]]
    assert all(type(time) is int for time in times), f"time.cpu of the threads is {times}"
    assert abs(sum(times) - entry["time.cpu"]) <= len(times), f"time.cpu is {entry['time.cpu']}, of its threads {times}"


def the_kind_of_timing_is_reported(argv, cases, _hello):
    with Program(argv) as program:
        for name in ("identity", "linear"):
            case = find(cases, name)
            for kind in "ct":  # If the kind of timing depends on the result, it is known after the first batch.
                entry = program.ask(f"block {case['id']}:{kind}:10")["block"][0]
            said = entry.get("timing", case.get("timing"))
            assert said == "latency", f"{name} takes and returns a number, and its timing is {said!r}"
            assert case.get("timing", said) == said, f"{name} is declared as {case['timing']!r}, and timed as {said!r}"


def least(program, word, tries=15):
    """Returns the minimum, the least disturbed, of several readings: of CPU time if there is any, else of wall time."""
    entries = [program.ask(f"block {word}")["block"][0] for _ in range(tries)]
    for entry in entries:
        # Other threads of a runtime also use CPU time, and in some runtimes reading the clock takes microseconds.
        wall, cpu = entry["time.wall"], entry.get("time.cpu", 0)
        assert wall * 10 + 1_000_000 >= cpu, f"a batch takes {wall} ns of wall time and {cpu} ns of processor time"
    return min(entry.get("time.cpu", entry["time.wall"]) for entry in entries)


def the_thread_that_runs_a_batch_is_named(argv, cases, hello):
    if scope_of_cpu_time(hello) != "thread":
        return f"no thread has to be named: the scope of time.cpu is {scope_of_cpu_time(hello)}"
    if not Path("/proc/thread-self").is_symlink():
        return "no thread can be named: this system has no /proc/thread-self"
    with Program(argv) as program:
        case = find(cases, "linear")["id"]
        # A batch needs more time than anything else that a thread does between two readings of its record.
        tenth = program.ask(f"block {case}:c:2000")["block"][0]["time.cpu"]
        word = f"{case}:c:{20000 if tenth < 10_000_000 else 2000}"
        for _ in range(NAMELESS):  # A runtime may move what it runs from thread to thread.
            thread = program.ask(f"block {word}")["block"][0].get("thread")
            if thread is None:
                continue
            assert type(thread) is int, f"the thread is {thread!r}"
            record = Path(f"/proc/{program.process.pid}/task/{thread}/schedstat")
            assert record.exists(), f"the program has no thread {thread}"
            before = int(record.read_text().split()[0])
            entry = program.ask(f"block {word}")["block"][0]
            ran = int(record.read_text().split()[0]) - before
            if entry.get("thread") != thread:
                continue
            assert ran >= 0.9 * entry["time.cpu"], f"thread {thread} ran for {ran} ns, the batch for {entry['time.cpu']} ns"
            return None
    raise AssertionError(f"time.cpu is that of a thread, but of {NAMELESS} pairs of batches none names the thread that ran it")


def the_loop_is_not_hoisted(argv, cases, _hello):
    with Program(argv) as program:
        case = find(cases, "linear")["id"]
        for _ in range(20):
            program.ask(f"block {case}:c:400 {case}:t:400")
        for attempt in range(5):
            few, many = (least(program, f"{case}:c:{n}") for n in (100, 800))
            if 5 <= many / max(few, 1) <= 12:
                return
    raise AssertionError(f"100 iterations take {few} ns, 800 take {many} ns")


def the_tare_is_lighter_than_the_case(argv, cases, _hello):
    with Program(argv) as program:
        case = find(cases, "linear")["id"]
        for _ in range(20):
            program.ask(f"block {case}:c:400 {case}:t:400")
        for attempt in range(20):  # On a busy machine, a runtime may interpret both for long before it compiles them.
            body, tare = least(program, f"{case}:c:400"), least(program, f"{case}:t:400")
            if tare * 5 < body:
                return
    raise AssertionError(f"the case takes {body} ns, its tare {tare} ns")


def the_tare_grows_with_iterations(argv, cases, _hello):
    for name in ("identity", "alloc/known"):
        with Program(argv) as program:
            case = find(cases, name)["id"]
            # A compiler that optimises for what it has seen most often has then mostly seen this tare.
            for _ in range(20):
                program.ask(f"block {case}:t:400000")
            few, many = least(program, f"{case}:t:50000"), least(program, f"{case}:t:800000")
        assert many > few * 3, f"the tare of 50,000 takes {few} ns, of 800,000 {many} ns: the loop of ‘{name}’ was removed"


def known_allocation(argv, cases, hello):
    case = find(cases, "alloc/known")
    size = case["params"]["bytes"]
    assert size >= 1000, f"params.bytes is {size}"
    exact = [c["key"] for c in hello.get("counters", [])
             if c["key"] in ("alloc.bytes", "malloc.bytes") and c["quality"] in ("exact", "near")]
    with Program(argv) as program:
        program.ask(f"block {case['id']}:c:100 {case['id']}:t:100")
        body, tare = program.ask(f"block {case['id']}:c:1000 {case['id']}:t:1000")["block"]
    seen = {key: (body[key] - tare[key]) / 1000 for key in exact}
    if exact:
        assert any(size <= n <= 2 * size + 128 for n in seen.values()), f"{size} bytes expected, seen {seen}"
    return "; ".join(f"{k} {n:g} for {size}" for k, n in seen.items()) or "no allocation counter in this process"


def fifos_work_too(argv, cases, _hello):
    with Program(argv, transport="fifo") as program:
        assert program.ask("hello 1")["scruple"] == 1
        assert program.ask(f"block {find(cases, 'identity')['id']}:c:3")["block"][0]["iterations"] == 3
        assert program.ask("bye") == {"bye": True}
        assert program.exit_code() == 0, "it did not exit with 0"


def ten_thousand_cases(argv, _cases, _hello):
    started = time.monotonic()
    with Program(argv + ["many"]) as program:
        cases, end = program.cases()
        assert end.get("count") == 10_000 == len(cases), f"{len(cases)} cases, then {end}"
        assert cases[9999]["name"] == "many/09999", f"the last is {cases[9999]}"
        assert cases[9999]["params"] == {"index": 9999}, f"the last is {cases[9999]}"
        assert all(case["id"] == i for i, case in enumerate(cases)), "ids are not dense"
        block = program.ask("block " + " ".join(f"{i}:c:1" for i in range(10_000)))["block"]
        assert [entry["id"] for entry in block] == list(range(10_000)), "a block of all of them is out of order"
    took = time.monotonic() - started
    assert took < 30, f"it took {took:.1f} s"
    return f"{took:.2f} s"


def by_hand(argv, path, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SCRUPLE_BENCH")}
    environment.update(PATH=path, **more)
    done = subprocess.run(argv + ["an argument"], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def a_child_that_comes_back_is_an_error(argv, cases, _hello):
    if not any(case["name"] == "forks" for case in cases):
        return "no case forks"
    case = find(cases, "forks")["id"]
    for request in (f"block {case}:c:1", f"once {case}"):
        with Program(argv) as program:
            wrong = mismatch({"error": "$has:a child that the case forked", "kind": "exception", "id": case, "fatal": True},
                             program.ask(request), cases, request)
            assert not wrong, wrong
    for case in cases:
        if case["name"] == "forks and exits":
            with Program(argv) as program:
                reply = program.ask(f"block {case['id']}:c:3")
                assert "block" in reply, f"a child that exits in the case is no fault of it: {reply}"


def started_by_hand_it_names_the_command(argv, _cases, _hello):
    code, out, err = by_hand(argv, "/nonexistent")
    assert code == 2, f"the exit code is {code}; stderr: {err}"
    assert out == "", f"it wrote to stdout: {out!r}"
    assert len(err.strip().splitlines()) == 1 and "scruple bench --" in err, f"stderr is {err!r}"


def started_by_hand_it_executes_scruple(argv, _cases, _hello):
    with tempfile.TemporaryDirectory() as folder:
        fake = Path(folder, "scruple")
        fake.write_text('#!/bin/sh\nprintf "<%s>" "$@"\nexit 7\n', encoding="utf-8")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
        code, out, err = by_hand(argv, folder)
        assert code == 7 and out.startswith("<bench><-->"), f"exit {code}, stdout {out!r}, stderr {err!r}"
        assert out.endswith("<an argument>"), f"the arguments are {out!r}"
        code, out, err = by_hand(argv, folder, SCRUPLE_BENCH_HAND="1")
        assert code == 2 and out == "", f"a second round did not stop: exit {code}, {out!r}"


def one_variable_alone_is_refused(argv, _cases, _hello):
    code, out, err = by_hand(argv, os.environ.get("PATH", ""), SCRUPLE_BENCH_IN="/dev/null")
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1, f"exit {code}, {out!r}, {err!r}"


CHECKS = [same_ids_in_every_process, every_field_has_its_type,
          example_cases_arrive_as_declared, hello_is_complete, announced_counters_are_reported,
          each_thread_reads_the_clock_of_a_thread, the_kind_of_timing_is_reported, the_thread_that_runs_a_batch_is_named, the_loop_is_not_hoisted,
          the_tare_is_lighter_than_the_case, the_tare_grows_with_iterations,
          known_allocation, a_child_that_comes_back_is_an_error, fifos_work_too, ten_thousand_cases, started_by_hand_it_names_the_command,
          started_by_hand_it_executes_scruple, one_variable_alone_is_refused]

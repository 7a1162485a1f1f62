"""Tests of the Python SDK beyond conformance: options of decorators, and results of checks."""

import subprocess
import sys
from pathlib import Path

import pytest

SDK = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SDK))
sys.path.insert(0, str(SDK.parent / "conformance"))

from program import Program  # noqa: E402
import scruple_bench  # noqa: E402
from scruple_bench import Case  # noqa: E402


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    started = []

    def start(text):
        path = tmp_path / "cases.py"
        path.write_text("from scruple_bench import bench, main\n" + text + "\nmain()\n")
        started.append(Program([sys.executable, str(path)]))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_a_grid_of_params_is_a_case_each_with_arguments_in_order(program):
    bench = program("@bench(params={'a': [1, 2], 'b': ['x', 'y']}, check=lambda r, a, b: f'{a}{b}' + r)\n"
                    "def joined(a, b): return f'{a}-{b}'")
    cases, _ = bench.cases()
    assert [c["params"] for c in cases] == [
        {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert bench.ask("once 3")["digest"] == "2y2-y"


def test_a_text_in_the_place_of_a_list_of_values_is_one_value(program):
    cases, _ = program("@bench(params={'mode': 'fast', 'n': [1, 2]})\ndef f(mode, n): return n").cases()
    assert [c["params"] for c in cases] == [{"mode": "fast", "n": 1}, {"mode": "fast", "n": 2}]


def test_setup_gets_the_params_and_teardown_what_setup_made(program, tmp_path):
    note = tmp_path / "note"
    bench = program(f"@bench(params={{'n': [3]}}, setup=lambda n: [n], check=lambda r, n: r == n,\n"
                    f"       teardown=lambda made: open({str(note)!r}, 'a').write(str(made)))\n"
                    "def first(made): return made[0]")
    assert bench.ask("once 0")["ok"]
    bench.ask("reset 0")
    assert note.read_text() == "[3]"
    bench.ask("bye")
    assert bench.exit_code() == 0 and note.read_text() == "[3][3]"


@pytest.mark.parametrize("check, why", [
    ("lambda r: False", "returned False"), ("lambda r: 1 / 0", None), ("lambda r: None", "")])
def test_checks_are_judged(program, check, why):
    reply = program(f"@bench(check={check})\ndef f(): pass").ask("once 0")
    if why is None:
        assert reply["kind"] == "exception" and "ZeroDivisionError" in reply["error"]
    else:
        assert reply["ok"] == (why == "") and why in reply.get("why", "")


def test_an_exit_in_a_body_is_an_error_of_the_case(program):
    bench = program("import sys\n@bench\ndef leaves(): sys.exit(3)\n@bench\ndef stays(): pass")
    assert bench.ask("block 0:c:1")["kind"] == "exception"
    assert bench.ask("block 1:c:1")["block"][0]["iterations"] == 1


def test_a_body_that_cannot_run_here_is_skipped(program):
    bench = program("import unittest\n@bench\ndef f(): raise unittest.SkipTest('no such device')")
    assert bench.ask("block 0:c:1") == {"error": "no such device", "kind": "skipped", "id": 0}


def test_the_same_name_and_params_twice_are_refused(program):
    bench = program("@bench('x')\ndef f(): pass\n@bench('x')\ndef g(): pass")
    assert bench.exit_code() == 2
    assert "two cases have the name 'x'" in bench.output("errors")


def test_a_body_has_one_source_of_arguments():
    with pytest.raises(ValueError, match="only one of"):
        Case("x", print, args=[1], setup=dict)


def test_a_value_in_place_of_a_function_is_refused_where_it_is_declared():
    with pytest.raises(TypeError, match="case 'x': input is a function, such as lambda: ..., not dict"):
        Case("x", print, input={})


def test_the_example_declares_the_seven(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    with Program([sys.executable, str(SDK / "examples/fnv.py")]) as bench:
        assert [c["name"] for c in bench.cases()[0]] == [
            "fnv/loop", "fnv/id", "fnv/fnv1", "fnv/fnv4", "fnv/fnv8", "fnv/us", "fnv/ms"]


def test_the_module_needs_nothing_but_the_standard_library():
    code = f"import sys; sys.path.insert(0, {str(SDK)!r}); import scruple_bench"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False).returncode == 0


def batches(case, *kinds):
    server = scruple_bench._Server([case], None)
    case.prepare()
    return [server.run(case, kind, 10, 1)[0] for kind in kinds]


def test_iterations_wait_for_each_other_where_argument_and_result_are_one_number_each():
    seen = []
    doubled = scruple_bench.Case("doubled", lambda x: seen.append(x) or 2 * x, args=[21])
    assert [entry["timing"] for entry in batches(doubled, "c", "c", "t")] == ["latency"] * 3
    assert seen == [21] * 20 and doubled.chain is int
    half = scruple_bench.Case("half", lambda x: x / 2, args=[1.0])
    assert batches(half, "c")[0]["timing"] == "latency"
    mixed = scruple_bench.Case("mixed", lambda x: x / 2, args=[1])
    assert batches(mixed, "c", "t")[1]["timing"] == "throughput"
    asked = scruple_bench.Case("asked", lambda x: x, args=[1], timing="throughput")
    assert batches(asked, "c")[0]["timing"] == "throughput" and asked.chain is None


def test_coroutines_are_awaited_one_after_the_other():
    running = []

    async def body(x):
        running.append(x)
        import asyncio
        await asyncio.sleep(0)
        assert running.pop() == x and not running
        return x

    case = scruple_bench.Case("async", body, args=[3], check=lambda got: got == 3)
    entries = batches(case, "c", "t")
    assert [entry["timing"] for entry in entries] == ["throughput"] * 2
    assert entries[0]["time.wall"] > entries[1]["time.wall"]
    assert case.once() == {"ok": True, "checked": True}


@pytest.mark.parametrize("options", ["", "input=lambda: 1, "])
def test_an_awaitable_that_nothing_awaits_is_refused(program, options):
    bench = program(f"async def later(*_): return 1\n@bench({options}timing='throughput')\ndef f(*made): return later(*made)")
    reply = bench.ask("block 0:c:2")
    assert reply["kind"] == "exception" and "`async def`" in reply["error"]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_generator_of_which_nothing_runs_is_refused(program, kind):
    bench = program(f"@bench()\n{kind} f(): yield 1\n@bench()\ndef all_of_it(): return list(range(3))")
    reply = bench.ask("block 0:c:2")
    assert reply["kind"] == "exception" and "a call runs nothing of it" in reply["error"]
    assert "block" in bench.ask("block 1:c:2")

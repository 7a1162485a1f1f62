"""The pytest plugin: tests are tests under pytest, and cases under the host."""

import os
import subprocess
import sys
from pathlib import Path

SDK = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SDK.parent / "conformance"))

from program import Program  # noqa: E402

pytest_plugins = ["pytester"]

TESTS = """
    import pytest
    runs = []

    def test_plain():
        assert True

    def test_adding(scruple):
        assert scruple(sum, [1, 2]) == 3

    @pytest.mark.scruple(tags=["slow"], throughput=("items", 3))
    @pytest.mark.parametrize("n", [10, 20])
    def test_sorting(scruple, n, tmp_path):
        assert tmp_path.exists()
        assert scruple(sorted, list(range(n)), reverse=True)[-1] == 0

    def test_wrong(scruple):
        assert scruple(lambda: 4) == 5

    def test_idle(scruple):
        pass
"""


def test_by_hand_the_tests_are_tests(pytester):
    pytester.makepyfile(test_it=TESTS)
    pytester.syspathinsert(SDK)
    pytester.runpytest("-p", "scruple_pytest").assert_outcomes(passed=5, failed=1)


def test_under_the_host_they_are_cases(pytester, monkeypatch):
    path = pytester.makepyfile(test_it=TESTS)
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    with Program([sys.executable, "-m", "pytest", "-q", "-p", "scruple_pytest", str(path)]) as program:
        assert program.ask("hello 1")["scruple"] == 1
        cases, end = program.cases()
        assert [c["name"].rpartition("/")[2] for c in cases] == [
            "test_adding", "test_sorting", "test_sorting", "test_wrong", "test_idle"]
        assert cases[1]["params"] == {"n": 10} and cases[2]["params"] == {"n": 20}
        assert cases[1]["tags"] == ["slow"] and cases[1]["throughput"] == {"unit": "items", "amount": 3}
        assert cases[0]["source"].endswith(":7")
        block = program.ask("block 0:c:100 2:c:100 2:t:100")["block"]
        assert [entry["iterations"] for entry in block] == [100, 100, 100]
        assert program.ask("once 1") == {"once": 1, "ok": True, "checked": True}
        wrong = program.ask("once 3")
        assert not wrong["ok"] and "assert 4 == 5" in wrong["why"]
        assert program.ask("block 3:c:1")["kind"] == "exception"
        assert "did not hand anything" in program.ask("block 4:c:1")["error"]
        assert program.ask("block 0:c:1")["block"][0]["iterations"] == 1
        assert program.ask("bye") == {"bye": True}
        assert program.exit_code() == 0


BENCHMARKS = """
    def test_calling(benchmark):
        assert benchmark(sum, [1, 2]) == 3

    def test_pedantic(benchmark):
        assert benchmark.pedantic(max, args=(1, 2), iterations=3, rounds=2) == 2

    def test_setup(benchmark):
        made = []
        def setup():
            made.append(1)
            return ([3, 1, 2],), {}
        assert benchmark.pedantic(list.sort, setup=setup, rounds=10) is None
        assert made

    open_now = []

    def test_teardown(benchmark):
        def setup():
            assert not open_now, "set up twice"
            open_now.append(1)
            return (2,), {"key": 3}
        def teardown(number, key):
            assert (number, key) == (2, 3)
            open_now.pop()
        def body(number, key):
            assert open_now
            return number + key
        assert benchmark.pedantic(body, setup=setup, teardown=teardown, rounds=3) == 5
        assert not open_now

    def test_only_teardown(benchmark):
        ended = []
        assert benchmark.pedantic(max, args=(1, 2), teardown=lambda *args: ended.append(args)) == 2
        assert ended
"""


# What pytest-benchmark does that matters here: a fixture of that name, an option, and a check of what the fixture is.
RIVAL = """
    import pytest

    def pytest_addoption(parser):
        parser.addoption("--benchmark-min-rounds")

    @pytest.fixture
    def benchmark():
        return lambda function, *arguments: function(*arguments)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(item):
        assert "Benchmark" not in type(item.funcargs["benchmark"]).__name__, "another plugin's fixture"
"""


def test_under_the_host_pytest_benchmark_is_replaced_where_it_is_installed(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    pytester.makepyfile(test_it=BENCHMARKS, benchmark=RIVAL)
    words = ["-p", "scruple_pytest", "-p", "benchmark", "--benchmark-min-rounds=3"]
    with Program([sys.executable, "-m", "pytest", "-q", *words, "test_it.py"]) as program:
        cases, _ = program.cases()
        for case in cases:
            assert program.ask(f"once {case['id']}")["ok"]


def test_the_fixture_of_pytest_benchmark_hands_over_cases_with_and_without_a_setup(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    pytester.makepyfile(test_it=BENCHMARKS)
    pytester.syspathinsert(SDK)
    words = ["-p", "scruple_pytest", "-p", "no:benchmark"]
    pytester.runpytest(*words).assert_outcomes(passed=5)
    with Program([sys.executable, "-m", "pytest", "-q", *words, "test_it.py"]) as program:
        cases, _ = program.cases()
        assert [case["name"].rsplit("/")[-1] for case in cases] == [
            "test_calling", "test_pedantic", "test_setup", "test_teardown", "test_only_teardown"]
        for case in cases:
            entries = program.ask(f"block {case['id']}:c:20 {case['id']}:t:20")["block"]
            assert [entry["iterations"] for entry in entries] == [20, 20]
            # Only the test's run shows that every iteration gets its own input.
            own_input = case["name"].endswith(("_setup", "_teardown"))
            assert [entry.get("per_iteration_input", False) for entry in entries] == [own_input] * 2
            assert program.ask(f"once {case['id']}")["ok"]


# Each body needs what its test or a fixture undoes at the end; `test_other` runs between them.
ALIVE = """
    import asyncio
    import os
    import pytest

    events = []

    @pytest.fixture
    def opened(tmp_path):
        with open(tmp_path / "file", "w+") as file:
            file.write("text")
            yield file
        events.append("closed")

    def test_file(scruple, opened):
        def read():
            opened.seek(0)
            return opened.read()
        assert scruple(read) == "text"

    def test_variable(benchmark, monkeypatch):
        monkeypatch.setenv("ONLY_HERE", "1")
        assert benchmark(os.environ.get, "ONLY_HERE") == "1"

    def test_loop(benchmark):
        loop = asyncio.new_event_loop()
        async def answer():
            return 42
        assert benchmark(lambda: loop.run_until_complete(answer())) == 42
        loop.close()

    def test_other(benchmark):
        def unset():
            assert "ONLY_HERE" not in os.environ
        benchmark(unset)

    def test_wrong(benchmark, opened):
        assert benchmark(lambda: 4) == 5

    def test_pedantic(benchmark, opened):
        assert benchmark.pedantic(opened.seek, setup=lambda: ((0,), {}), rounds=3) == 0
"""


def test_batches_run_while_what_they_need_is_there(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    monkeypatch.delenv("ONLY_HERE", raising=False)
    pytester.makepyfile(test_it=ALIVE)
    words = ["-q", "-p", "scruple_pytest", "-p", "no:benchmark"]
    with Program([sys.executable, "-m", "pytest", *words, "test_it.py"]) as program:
        cases, _ = program.cases()
        numbers = {case["name"].rpartition("/")[2]: case["id"] for case in cases}
        right = [number for name, number in numbers.items() if name != "test_wrong"]
        for _ in range(2):
            for number in right:
                for _ in range(2):
                    entries = program.ask(f"block {number}:c:3 {number}:t:3")["block"]
                    assert [(entry["id"], entry["iterations"]) for entry in entries] == [(number, 3), (number, 3)]
        for number in right:
            assert program.ask(f"once {number}")["ok"]
        # A request for several cases does not run within one of their tests.
        mixed = program.ask(f"block {numbers['test_file']}:c:1 {numbers['test_other']}:c:1")
        assert "closed file" in mixed["error"]
        assert "assert 4 == 5" in program.ask(f"once {numbers['test_wrong']}")["why"]
        assert program.ask(f"block {numbers['test_wrong']}:c:1")["kind"] == "exception"
        assert program.ask("bye") == {"bye": True}
        assert program.exit_code() == 0


def test_the_end_of_input_ends_the_test_that_runs(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    pytester.makepyfile(test_it=ALIVE.replace('events.append("closed")', 'open("ended", "w").close()'))
    words = ["-q", "-p", "scruple_pytest", "-p", "no:benchmark"]
    with Program([sys.executable, "-m", "pytest", *words, "test_it.py"]) as program:
        assert program.ask("block 0:c:1")["block"]
        (pytester.path / "ended").unlink()
        assert program.ask("block 0:c:1")["block"]
        assert not (pytester.path / "ended").exists()
        program.end_of_input()
        assert program.exit_code() == 0
    assert (pytester.path / "ended").exists()


SUITE = """
    import enum
    import pytest

    class Kind(enum.Enum):
        FLAT = 1

    class Converter:
        def __init__(self, n):
            self.n = n

    @pytest.mark.benchmark(group="g", min_rounds=5)
    @pytest.mark.parametrize("kind", [Kind.FLAT, Converter, Converter(1)])
    @pytest.mark.parametrize("n", [1, 2])
    def test_kinds(benchmark, kind, n):
        assert benchmark(lambda: n) == n
        assert benchmark.group == "g" and benchmark.params["n"] == n
        if benchmark.enabled:
            assert benchmark.stats.stats.mean < 1

    @pytest.mark.skipif(True, reason="not here")
    def test_not_here(benchmark):
        benchmark(sum, [1])

    def test_skips(benchmark):
        pytest.skip("no such machine")
"""


def test_suites_of_pytest_benchmark_keep_their_params_and_marks(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    pytester.makepyfile(test_it=SUITE)
    words = ["-q", "--strict-markers", "-p", "scruple_pytest", "-p", "no:benchmark"]
    with Program([sys.executable, "-m", "pytest", *words, "test_it.py"]) as program:
        cases, _ = program.cases()
        assert [case["params"] for case in cases[:6]] == [
            {"n": n, "kind": kind} for n in (1, 2) for kind in ("Kind.FLAT", "Converter", "kind2")]
        assert [case["name"].rpartition("/")[2] for case in cases[6:]] == ["test_skips"]
        assert program.ask("once 0")["ok"]
        skipped = {"error": "no such machine", "kind": "skipped", "id": 6}
        assert program.ask("once 6") == program.ask("block 6:c:1") == skipped


# With what aspectlib does that matters here.
WOVEN = """
    import sys
    import types

    def weave(target, aspect, **options):
        Wait.inner = aspect(target)
        return types.SimpleNamespace(rollback=lambda: setattr(Wait, "inner", target))

    sys.modules["aspectlib"] = types.SimpleNamespace(weave=weave)

    class Wait:
        def run(self):
            return self.inner(1) + 1

        def inner(self, n):
            return n

    def test_woven(benchmark):
        benchmark.weave(Wait.inner)
        assert Wait().run() == 2

    def test_by_fixture(benchmark_weave):
        benchmark_weave(Wait.inner)
        assert Wait().run() == 2

    def test_not_woven(benchmark):
        assert "lambda" not in repr(Wait.inner)
        assert benchmark(Wait().run) == 2
"""

def test_a_woven_function_is_a_case(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SDK))
    pytester.makepyfile(test_it=WOVEN)
    words = ["-q", "-p", "scruple_pytest", "-p", "no:benchmark"]
    with Program([sys.executable, "-m", "pytest", *words, "test_it.py"]) as program:
        cases, _ = program.cases()
        assert [program.ask(f"once {case['id']}") for case in cases] == [
            {"once": number, "ok": True, "checked": True} for number in range(3)]
        assert program.ask("block 0:c:5 0:t:5")["block"][0]["iterations"] == 5


def test_a_file_that_cannot_be_collected_is_named_with_the_reason(pytester):
    pytester.makepyfile(test_it="import absent_module\n")
    env = {**os.environ, "PYTHONPATH": str(SDK), "SCRUPLE_BENCH_IN": os.devnull, "SCRUPLE_BENCH_OUT": os.devnull}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "scruple_pytest"]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert "pytest cannot collect test_it.py: ModuleNotFoundError: No module named 'absent_module'" in done.stderr

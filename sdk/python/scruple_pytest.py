"""Makes benchmarks of pytest tests, for Scruple. A test passes the function to weigh to the fixture `scruple`:

    def test_sorting(scruple):
        assert scruple(sorted, [3, 1, 2]) == [1, 2, 3]

Under plain `pytest` the fixture calls the function once, so the test is a test. Under `scruple bench -- pytest FILE`
each such test is a case: the test runs once to record the call, the function is then called in batches, and the test's
own assertions are the case's check. If the function needs what the test or its fixtures undo at their end, its batches
run while the test runs, within the call of the fixture.

Tests written for pytest-benchmark need no change. `benchmark(f, …)`, `benchmark.pedantic(f, args, kwargs, setup,
teardown)` and `benchmark.weave(f)` do the same. Under `scruple bench` this plugin replaces pytest-benchmark,
and Scruple chooses rounds and iterations. The fixture is as with `--benchmark-disable`: `enabled` is False, `stats` is
None, and `extra_info` is only visible in the test.

A mark sets the options of a case: `@pytest.mark.scruple(throughput=4096, tags=["slow"])`. Params of `parametrize`
become the case's params.
"""

import functools
import inspect
import os
import sys
import unittest

import pytest

import scruple_bench


def is_benched():
    return "SCRUPLE_BENCH_IN" in os.environ or "SCRUPLE_BENCH_OUT" in os.environ


class Recorder:
    """The fixture: calls the function, and records the call. If the test is run for its batches, they run then."""

    def __init__(self, item):
        self.call, self.make, self.undo = None, None, None
        self.batches = getattr(item, "scruple_batches", None)
        item.scruple_recorder = self

    def __call__(self, function, *args, **keywords):
        if self.call:
            raise RuntimeError("a test can hand only one function to its fixture")
        body = functools.partial(function, **keywords) if keywords else function
        self.call = (body, args)
        result = body(*args)
        self.run_batches()
        return result

    def run_batches(self):
        if self.batches:
            self.batches(self)


@pytest.fixture(name="scruple")
def _scruple(request):
    return Recorder(request.node)


class Benchmark(Recorder):
    """The fixture of pytest-benchmark."""

    def __init__(self, item):
        super().__init__(item)
        call, mark = getattr(item, "callspec", None), item.get_closest_marker("benchmark")
        self.name, self.fullname = item.name, item.nodeid
        self.param, self.params = (call.id, call.params) if call else (None, None)
        self.group, self.extra_info = mark.kwargs.get("group") if mark else None, {}
        self.stats, self.enabled, self.disabled, self.has_error, self.rollbacks = None, False, True, False, []

    def pedantic(self, target, args=(), kwargs=None, setup=None, teardown=None, rounds=1, warmup_rounds=0, iterations=1):
        """Every iteration of a case with a setup gets the setup's result: a pair of args and kwargs, or nothing. The
        teardown gets the same, after each iteration and before the next setup."""
        if setup is None and teardown is None:
            return self(target, *args, **(kwargs or {}))
        if self.call:
            raise RuntimeError("a test can hand only one function to its fixture")

        def make():
            return setup and setup() or (args, kwargs or {})

        def body(made):
            return target(*made[0], **made[1])

        def undo(made):
            teardown(*made[0], **made[1])

        self.call, self.make, self.undo = (body, ()), make, undo if teardown else None
        made = make()
        result = body(made)
        if teardown:
            undo(made)
        self.run_batches()
        return result

    def weave(self, target, **options):
        """Makes a case of the first call of this function that the test causes, as aspectlib finds it."""
        try:
            import aspectlib
        except ImportError:
            raise RuntimeError("benchmark.weave needs the package aspectlib") from None

        def aspect(function):
            return functools.wraps(function)(lambda *args, **keywords: self(function, *args, **keywords))

        self.rollbacks.append(aspectlib.weave(target, aspect, **options).rollback)

    patch = weave

    def end(self):
        while self.rollbacks:
            self.rollbacks.pop()()


class BenchmarkFixture:
    """A plugin of its own, which is registered late: of two fixtures of one name, the later one wins."""

    @pytest.fixture(name="benchmark")
    def _benchmark(self, request):
        recorder = Benchmark(request.node)
        yield recorder
        recorder.end()

    @pytest.fixture(name="benchmark_weave")
    def _benchmark_weave(self, benchmark):
        return benchmark.weave


# Fixtures that end with the test, but whose end a body does not notice.
HARMLESS = {"scruple", "benchmark", "benchmark_weave", "tmp_path", "tmpdir", "capsys", "capfd", "capsysbinary",
            "capfdbinary", "caplog", "recwarn"}


def ends_fixtures(item):
    """Whether a fixture of this test undoes something at the end of the test."""
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(definition.scope == "function" and undoes(definition.func)
               for name, several in definitions.items() if name not in HARMLESS for definition in several)


def undoes(function):
    code = inspect.unwrap(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        return True
    return "addfinalizer" in getattr(getattr(code, "__code__", None), "co_names", ())


class TestCase(scruple_bench.Case):
    """A case whose body is found by running a test."""

    __test__ = False

    def __init__(self, item):
        path, line, _ = item.location
        mark = item.get_closest_marker("scruple")
        super().__init__(item.nodeid.partition("[")[0].replace("::", "/"), None, params=params_of(item), check=True,
                         source=f"{path}:{(line or 0) + 1}", **(mark.kwargs if mark else {}))
        self.item, self.failure, self.make, self.undo = item, None, None, None
        # Whether batches run while the test runs; and whether it runs for them now.
        self.needs_test, self.in_test = ends_fixtures(item), False

    def run_test(self, batches=None):
        """Runs the test, and these batches within the call of its fixture. Returns the exception that says why it fails
        or is skipped, or None."""
        from _pytest.runner import runtestprotocol

        self.item.scruple_recorder, self.item.scruple_batches = None, batches
        for report in runtestprotocol(self.item, log=False, nextitem=None):
            if report.failed:
                return RuntimeError(f"{report.when} of the test failed: {last_line(report.longreprtext)}")
            if report.skipped:
                return unittest.SkipTest(reason_of_skip(report))
        return None

    def learn_call(self, recorder):
        self.body, self.made = recorder.call
        self.make, self.undo = recorder.make, recorder.undo
        self.late_input = self.make is not None

    def prepare(self):
        if self.ready or self.in_test:
            return
        self.failure = self.run_test()
        recorder = self.item.scruple_recorder
        if recorder and recorder.call:
            self.learn_call(recorder)
            if not self.failure and not self.needs_test and not self.outlives_test():
                self.needs_test = True
        else:
            self.failure = self.failure or RuntimeError("the test did not hand anything to its fixture")
        self.ready = True

    def outlives_test(self):
        """Whether the body runs after the end of the test, which has passed."""
        try:
            self.loop("c", 1)()
        except KeyboardInterrupt:
            raise
        except BaseException:  # pytest.fail raises one.
            return False
        return True

    def around(self, serve_these):
        self.prepare()
        if self.failure or not self.needs_test:
            return

        def batches(recorder):
            self.learn_call(recorder)
            self.in_test = True
            try:
                serve_these()
            finally:
                self.in_test = False

        self.failure = self.run_test(batches)

    def loop(self, kind, iterations):
        if self.failure:
            raise self.failure
        if self.make:
            body = self.body if kind == "c" else lambda made: made
            if self.undo:
                return lambda: one_by_one(body, self.make, self.undo, iterations)
            inputs = [self.make() for _ in range(iterations)]
            return lambda: scruple_bench._loop_over(body, inputs)
        return super().loop(kind, iterations)

    def once(self):
        failure = self.failure or self.run_test()
        if isinstance(failure, unittest.SkipTest):
            raise failure
        return {"ok": False, "checked": True, "why": str(failure)} if failure else {"ok": True, "checked": True}


def params_of(item):
    """The params of a test: numbers and texts as they are, other objects by their part of the test's id. The text of an
    object is long, and may contain an address that differs from process to process."""
    call = getattr(item, "callspec", None)
    if not call:
        return {}
    ids = list(getattr(call, "_idlist", ()))
    if len(ids) != len(call.params):
        ids = [getattr(value, "__name__", f"{name}{call.indices.get(name, 0)}") for name, value in call.params.items()]
    return {name: value if isinstance(value, (int, float, str)) else word
            for (name, value), word in zip(call.params.items(), ids)}


def one_by_one(body, make, undo, iterations):
    """Times each iteration by itself, between its setup and its teardown, and returns the sums as one timed part."""
    wall, cpu, result = 0, 0, None
    for _ in range(iterations):
        made = make()
        start, end, used, result = scruple_bench._loop_over(body, [made])
        undo(made)
        wall, cpu = wall + end - start, cpu + used
    return 0, wall, cpu, result


def reason_of_skip(report):
    """Returns why pytest skipped the test, without the place."""
    why = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.partition("Skipped: ")[2] or why


def is_skipped(item):
    """Whether a mark says that the test is to be skipped."""
    from _pytest.skipping import evaluate_skip_marks

    return evaluate_skip_marks(item) is not None


def last_line(text):
    """Returns the message of pytest's report: its lines that begin with E, or else its last line."""
    lines = text.strip().splitlines() or [""]
    return " ".join(line[1:].strip() for line in lines if line.startswith("E ")) or lines[-1]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    plugins = config.pluginmanager
    rival = plugins.get_plugin("benchmark")
    if is_benched() or not rival:
        plugins.register(BenchmarkFixture(), "scruple benchmark")
    if is_benched() and rival:
        # It refuses a fixture of its name. Its options stay known, so that a project's configuration is still read.
        plugins.unregister(rival)
    config.addinivalue_line("markers", "scruple(**options): options of the case that Scruple makes of this test")
    config.addinivalue_line("markers", "benchmark(**options): options of pytest-benchmark, which Scruple ignores")


NOT_COLLECTED = []


def pytest_collectreport(report):
    if report.failed and is_benched():
        NOT_COLLECTED.append(f"{report.nodeid or 'the tests'}: {last_line(report.longreprtext)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if not is_benched() or session.config.option.collectonly:
        return None
    if session.testsfailed:
        for why in NOT_COLLECTED:
            print(f"scruple: pytest cannot collect {why}", file=sys.stderr)
        raise session.Failed("errors while collecting")
    scruple_bench.serve([TestCase(item) for item in session.items
                         if {"scruple", "benchmark"} & set(getattr(item, "fixturenames", ())) and not is_skipped(item)])
    return True

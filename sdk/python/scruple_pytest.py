"""Makes benchmarks of pytest tests, for Scruple. A test passes the function to weigh to the fixture `scruple`:

    def test_sorting(scruple):
        assert scruple(sorted, [3, 1, 2]) == [1, 2, 3]

Under plain `pytest` the fixture calls the function once, so the test is a test. Under `scruple bench -- pytest FILE`
each such test is a case: the test runs once to record the call (its fixtures end then, so pass objects that must still
exist as arguments), the function is then called in batches, and the test's own assertions are the case's check.

Tests written for pytest-benchmark need no change. `benchmark(f, …)` and `benchmark.pedantic(f, args, kwargs, setup,
teardown)` do the same. Under `scruple bench` this plugin takes the place of pytest-benchmark, and Scruple chooses rounds
and iterations; `extra_info` is only visible in the test, and `stats` is None.

A mark sets the options of a case: `@pytest.mark.scruple(throughput=4096, tags=["slow"])`. Params of `parametrize`
become the case's params.
"""

import functools
import os
import sys

import pytest

import scruple_bench


def is_benched():
    return "SCRUPLE_BENCH_IN" in os.environ or "SCRUPLE_BENCH_OUT" in os.environ


class Recorder:
    """The fixture: calls the function, and records the call."""

    def __init__(self):
        self.call, self.make, self.undo = None, None, None

    def __call__(self, function, *args, **keywords):
        if self.call:
            raise RuntimeError("a test can hand only one function to its fixture")
        body = functools.partial(function, **keywords) if keywords else function
        self.call = (body, args)
        return body(*args)


@pytest.fixture(name="scruple")
def _scruple(request):
    recorder = Recorder()
    request.node.scruple_recorder = recorder
    return recorder


class Benchmark(Recorder):
    """The fixture of pytest-benchmark."""

    def __init__(self):
        super().__init__()
        self.group, self.extra_info, self.stats, self.enabled = None, {}, None, True

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
        return result

    def weave(self, *_arguments, **_keywords):
        raise RuntimeError("benchmark.weave is not supported: hand the function to benchmark itself")


class BenchmarkFixture:
    """A plugin of its own, which is registered late: of two fixtures of one name, the later one wins."""

    @pytest.fixture(name="benchmark")
    def _benchmark(self, request):
        recorder = Benchmark()
        request.node.scruple_recorder = recorder
        return recorder


class TestCase(scruple_bench.Case):
    """A case whose body is found by running a test."""

    __test__ = False

    def __init__(self, item):
        path, line, _ = item.location
        mark = item.get_closest_marker("scruple")
        params = getattr(item, "callspec", None)
        super().__init__(item.nodeid.partition("[")[0].replace("::", "/"), None,
                         params=params.params if params else {}, check=True, source=f"{path}:{(line or 0) + 1}",
                         **(mark.kwargs if mark else {}))
        self.item, self.failure, self.make, self.undo = item, None, None, None

    def run_test(self):
        """Runs the test. Returns the reason why it fails, or None."""
        from _pytest.runner import runtestprotocol

        self.item.scruple_recorder = None
        for report in runtestprotocol(self.item, log=False, nextitem=None):
            if report.failed:
                return f"{report.when} of the test failed: {last_line(report.longreprtext)}"
            if report.skipped:
                return "the test was skipped"
        return None

    def prepare(self):
        if not self.ready:
            self.failure = self.run_test()
            recorder = self.item.scruple_recorder
            if recorder and recorder.call:
                self.body, self.made = recorder.call
                self.make, self.undo = recorder.make, recorder.undo
            else:
                self.failure = self.failure or "the test did not hand anything to its fixture"
            self.ready = True

    def loop(self, kind, iterations):
        if self.failure:
            raise RuntimeError(self.failure)
        if self.make:
            body = self.body if kind == "c" else lambda made: made
            if self.undo:
                return lambda: one_by_one(body, self.make, self.undo, iterations)
            inputs = [self.make() for _ in range(iterations)]
            return lambda: scruple_bench._loop_over(body, inputs)
        return super().loop(kind, iterations)

    def once(self):
        why = self.failure or self.run_test()
        return {"ok": False, "checked": True, "why": why} if why else {"ok": True, "checked": True}


def one_by_one(body, make, undo, iterations):
    """Times each iteration by itself, between its setup and its teardown, and returns the sums as one timed part."""
    wall, cpu, result = 0, 0, None
    for _ in range(iterations):
        made = make()
        start, end, used, result = scruple_bench._loop_over(body, [made])
        undo(made)
        wall, cpu = wall + end - start, cpu + used
    return 0, wall, cpu, result


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if not is_benched() or session.config.option.collectonly:
        return None
    if session.testsfailed:
        print("scruple: there were errors while collecting tests", file=sys.stderr)
        raise session.Failed("errors while collecting")
    scruple_bench.serve([TestCase(item) for item in session.items 
                         if {"scruple", "benchmark"} & set(getattr(item, "fixturenames", ()))])
    return True

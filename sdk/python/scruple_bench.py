"""Declares cases that Scruple weighs, and implements its bench protocol. One file, only the standard library.

    from scruple_bench import bench, main

    @bench(params={"n": [10, 100, 1000]})
    def sums(n):
        return sum(range(n))

    if __name__ == "__main__":
        main()

`scruple bench -- python3 this_file.py` then does the sampling and the statistics.
"""

import gc
import inspect
import itertools
import json
import math
import os
import platform
import re
import shutil
import sys
import threading
import time
import types

__version__ = "0.1.0"
__all__ = ["bench", "main", "serve", "Case"]

_wall, _cpu, _repeat = time.monotonic_ns, time.thread_time_ns, itertools.repeat
_registry = []


def bench(name=None, *, params=None, check=None, **options):
    """Declares the decorated function as a case, or as one case for each combination of `params`.

    The body's arguments are `args`; or the one object that `setup` or `input` makes; or else the values of the params
    in order. `setup`, `input` and `check` get the params as keywords. `input` makes a new argument for every iteration,
    outside the timed part. `check` gets the result of one call: it raises AssertionError or returns False if that is
    wrong, and may return a str, the digest by which outputs are compared. The other options are those of `Case`.
    A text in place of a list of params is one value.
    """
    def declare(body):
        lists = [[values] if isinstance(values, (str, bytes)) else values for values in (params or {}).values()]
        grid = [dict(zip(params or {}, values)) for values in itertools.product(*lists)]
        for chosen in grid:
            _registry.append(Case(name or body.__qualname__, body, params=chosen, check=check, **options))
        return body

    if callable(name):
        body, name = name, None
        return declare(body)
    return declare


class Case:
    """One case; the decorator `bench` makes them."""

    def __init__(self, name, body, *, params=None, args=None, setup=None, teardown=None, input=None, check=None,
                 max_iterations=1000, threads=None, throughput=None, budgets=None, tags=None, group=None, shape=None,
                 fresh=False, time_limit=None, timing=None, source=None):
        if (setup is not None) + (input is not None) + (args is not None) > 1:
            raise ValueError(f"case {name!r}: only one of args, setup and input can make the body's arguments")
        functions = {"setup": setup, "teardown": teardown, "input": input}
        for what, given in functions.items():
            if given is not None and not callable(given):
                raise TypeError(f"case {name!r}: {what} is a function, such as lambda: ..., not {type(given).__name__}")
        if timing not in (None, "latency", "throughput"):
            raise ValueError(f"case {name!r}: timing is latency or throughput")
        self.name, self.body, self.params = str(name), body, dict(params or {})
        # Whether latency or throughput is timed depends on the types of argument and result, which are known after the
        # first run.
        self.awaited = inspect.iscoroutinefunction(body)
        self.timing = "throughput" if input or self.awaited else timing
        self.args, self.setup, self.teardown, self.input = args, setup, teardown, input
        self.check, self.max_iterations, self.source = check, max_iterations, source or _source(body)
        self.options = {"group": group, "shape": shape, "throughput": _throughput(throughput), "budgets": budgets,
                        "threads": list(threads or []), "tags": list(tags or []), "fresh": fresh,
                        "time_limit": time_limit}
        # Whether every iteration gets its own input although the declaration could not say so.
        self.late_input = False
        self.ready, self.made, self.chain, self.seen = False, (), None, False

    def declaration(self, number):
        fields = {"id": number, "name": self.name, "params": {k: _param(v) for k, v in self.params.items()},
                  **self.options, "checked": self.check is not None, "source": self.source, "timing": self.timing}
        if self.input:
            fields.update(per_iteration_input=True, max_iterations=self.max_iterations)
        return {key: value for key, value in fields.items() if value or key in ("id", "name")}

    def prepare(self):
        """Makes the body's arguments, once."""
        if not self.ready:
            if self.setup:
                self.made = (self.setup(**self.params),)
            else:
                self.made = tuple(self.params.values() if self.args is None else self.args)
            self.ready = True

    def around(self, serve_these):
        """May call `serve_these`, which answers this request for batches of the case, and those that follow it. If it
        does not, they are answered like all other requests."""

    def dismiss(self):
        if self.ready:
            self.ready, made, self.made = False, self.made, ()
            if self.teardown:
                self.teardown(*made)

    def loop(self, kind, iterations):
        """Returns a function that runs the timed part and returns (start, end, CPU time, last result)."""
        body = self.body if kind == "c" else _at_once if self.awaited else _identities[min(len(self.made), 3)]
        if self.input:
            inputs = [self.input(**self.params) for _ in range(iterations)]
            if self.awaited:
                return lambda: _finished(_awaited_over(body, inputs))
            body = self.body if kind == "c" else _identities[1]
            return lambda: _loop_over(body, inputs)
        if self.awaited:
            return lambda: _finished(_awaited(body, iterations, *self.made))
        loop = _chains[self.chain] if self.chain else _loops[min(len(self.made), 3)]
        return lambda: loop(body, iterations, *self.made)

    def learn(self, result):
        """Decides by the first result whether iterations can wait for each other."""
        both = {type(made) for made in self.made} | {type(result)}
        can = len(self.made) == 1 and len(both) == 1 and both <= {int, float} and (both == {int} or math.isfinite(result))
        if self.timing == "latency" and not can:
            raise TypeError("there is no latency: argument and result must be one int, or one float, each")
        self.chain = type(result) if can and self.timing != "throughput" else None
        self.timing = "latency" if self.chain else "throughput"

    def once(self):
        """Runs the body once. Returns the fields with the verdict of the check."""
        result = self.body(self.input(**self.params)) if self.input else self.body(*self.made)
        if self.awaited:
            result = _finished(result)
        if not self.check:
            return {"ok": True, "checked": False}
        try:
            said = self.check(result, **self.params)
        except AssertionError as wrong:
            return {"ok": False, "checked": True, "why": str(wrong) or "an assertion of the check failed"}
        if said is False:
            return {"ok": False, "checked": True, "why": "the check returned False"}
        return {"ok": True, "checked": True, **({"digest": said} if isinstance(said, str) else {})}


# The timed loops, made from text so that the call is the same as in a program. They read the clocks, the monotonic one
# innermost. For latency each argument is computed from the input and the previous result, which are numbers of one
# type. Coroutines are awaited one after the other, in an event loop that is started before the clocks are read.

_TEXT = """
{kind} loop(body, n, {names}):
    turns, result = {turns}, zero
    cpu, start = _cpu(), _wall()
    for each in turns:
        result = {call}
    end = _wall()
    return start, end, _cpu() - cpu, result
"""


def _loop(call, names="*args", turns="_repeat(None, n)", kind="def"):
    made = {"_cpu": _cpu, "_wall": _wall, "_repeat": _repeat, "zero": 0}
    exec(_TEXT.format(kind=kind, names=names, turns=turns, call=call), made)
    return made["loop"]


_loops = (_loop("body()"), _loop("body(a)", "a"), _loop("body(a, b)", "a, b"), _loop("body(*args)"))
_loop_over = _loop("body(each)", turns="n")
_chains = {int: _loop("body(a + (result & zero))", "a, zero=0"), float: _loop("body(a + result * zero)", "a, zero=0.0")}
_awaited = _loop("await body(*args)", kind="async def")
_awaited_over = _loop("await body(each)", turns="n", kind="async def")
_identities = (lambda: None, lambda a: a, lambda a, b: a, lambda *args: args)


async def _at_once(*args):
    return args


def _finished(coroutine):
    import asyncio  # The import is slow.
    return asyncio.run(coroutine)


# The preload library's totals in its order, and the value that stands for a total that it does not keep.
_MALLOC = (("count", "count"), ("bytes", "bytes"), ("frees", "count"), ("freed_bytes", "bytes"))
_UNKNOWN = 2**64 - 1


def _counting_environment():
    """Returns the variables for processes that count allocations: all objects come from malloc there, which otherwise only
    serves large ones. A build without the global lock has an allocator of its own."""
    possible = sys.implementation.name == "cpython" and "free-threading" not in sys.version
    obeyed = not sys.flags.ignore_environment and "PYTHONMALLOC" not in os.environ
    return {"PYTHONMALLOC": "malloc"} if possible and obeyed else {}


class _Counters:
    """The counters of this process, with the preload library's if it is attached and sees all objects."""

    def __init__(self):
        self.announced = [] if _collections() is None else [{"key": "gc.count", "unit": "count", "quality": "exact"}]
        self.snapshot = None
        try:
            import ctypes
            self.heap = (ctypes.c_uint64 * 8)(), (ctypes.c_uint64 * 8)()
            snapshot = ctypes.CDLL(None).scruple_heap_snapshot
            snapshot.argtypes, snapshot.restype = [ctypes.c_uint64 * 8], None
        except (ImportError, OSError, AttributeError, TypeError):
            return
        # Python's own arenas hold no blocks if all objects come from malloc.
        if sys.implementation.name != "cpython" or sys.getallocatedblocks():
            return
        self.snapshot = snapshot
        self.snapshot(self.heap[0])
        for i, (word, unit) in enumerate(_MALLOC):
            if self.heap[0][i] != _UNKNOWN:
                self.announced.append({"key": f"malloc.{word}", "unit": unit, "quality": "exact"})
        if self.heap[0][5] != _UNKNOWN:
            self.announced.append({"key": "malloc.peak", "unit": "bytes", "quality": "exact", "per": "batch"})

    def begin(self):
        self.collections = _collections()
        if self.snapshot:
            self.snapshot(self.heap[0])

    def end(self):
        if self.snapshot:
            self.snapshot(self.heap[1])
        if self.announced:
            self.collections = _collections() - self.collections

    def difference(self):
        """Returns the fields of the batch's entry, and the number of events that were lost."""
        fields = {"gc.count": self.collections} if self.announced else {}
        if not self.snapshot:
            return fields, 0
        old, new = self.heap
        fields.update({f"malloc.{word}": new[i] - old[i] for i, (word, _) in enumerate(_MALLOC) if new[i] != _UNKNOWN})
        if new[5] != _UNKNOWN and new[5] > max(old[5], old[4]):
            fields["malloc.peak"] = new[5] - old[4]
        return fields, new[7] - old[7]


def _collections():
    """Returns the number of collections so far, if the runtime counts them. PyPy does not."""
    stats = gc.get_stats()
    return sum(generation["collections"] for generation in stats) if isinstance(stats, list) else None


# What unittest and pytest raise for a test that cannot run here. They need not be imported.
_SKIPS = {("unittest.case", "SkipTest"), ("_pytest.outcomes", "Skipped")}


def _says_skip(problem):
    return any((kind.__module__, kind.__name__) in _SKIPS for kind in type(problem).__mro__)


def _loaded():
    """Returns the files that hold the code of this process, and texts that identify code that is in none of them."""
    # Only executable mappings: others also hold data, which may change.
    files = {line.split(None, 5)[5].rstrip("\n") for line in open("/proc/self/maps") if re.match(r"\S+ ..x. .*/", line)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        archive = getattr(getattr(module, "__loader__", None), "archive", None)
        if file:
            files.add(os.path.abspath(archive or file))
    generated = set()
    codes = {id(f.__code__): f.__code__ for f in gc.get_objects() if type(f) is types.FunctionType}
    # Functions that PyPy has built in have code of another kind.
    for code in (code for code in codes.values() if type(code) is types.CodeType):
        file = os.path.abspath(code.co_filename)
        if os.path.isfile(file):
            files.add(file)
        elif not code.co_filename.startswith("<frozen ") and not any(file.startswith(known + os.sep) for known in files):
            generated.add(repr(_plain(code)))
    return {"loaded": sorted(files), "generated": sorted(generated)}


def _plain(value):
    """Returns the parts of a constant or of code, which are the same in every process."""
    if isinstance(value, types.CodeType):
        return [value.co_name, value.co_code, value.co_names, value.co_varnames, _plain(value.co_consts)]
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


class _Refused(Exception):
    def __init__(self, kind, text, **more):
        super().__init__(text)
        self.reply = {"error": text, "kind": kind, **more}


class _Server:
    def __init__(self, cases, replies):
        self.cases, self.replies, self.counters = cases, replies, _Counters()
        self.process, self.current = os.getpid(), None

    def say(self, reply):
        if os.getpid() != self.process:
            self.end_child(reply)
        self.replies.write(_line(reply))

    def end_child(self, reply):
        """Ends a child process that a case has forked and that came back from it. It must not answer as well."""
        how = f"left it with {reply['error']}" if "error" in reply else "returned from it"
        text = f"a child that the case forked {how}; it must end in the case, as by os._exit"
        told = _line({"error": text, "kind": "exception", "id": self.current, "fatal": True})
        os.write(self.replies.fileno(), told)
        os._exit(1)

    def serve(self, requests):
        """Answers requests until `bye` or the end of input."""
        request = _next(requests)
        while request is not None:
            case, following = self.case_of_batches(request), []
            if case:
                case.around(lambda: following.append(self.serve_batches(case, request, requests)))
            if following:
                request = following[0]
            elif self.answer(request):
                request = _next(requests)
            else:
                return
        self.dismiss()

    def case_of_batches(self, request):
        """Returns the case if the request is for batches of one only."""
        words = (request or "").split(" ")
        if words[0] != "block" or len(words) < 2:
            return None
        try:
            numbers = {self.batch(word)[0] for word in words[1:]}
        except _Refused:
            return None
        return self.cases[numbers.pop()] if len(numbers) == 1 else None

    def serve_batches(self, case, request, requests):
        """Answers requests while they are for batches of this case. Returns the first other one."""
        while self.case_of_batches(request) is case:
            self.answer(request)
            request = _next(requests)
        return request

    def answer(self, request):
        """Answers one request. Returns False after `bye`."""
        words = request.split(" ")
        action = {"hello": self.hello, "cases": self.list, "block": self.block, "once": self.once,
                  "reset": self.reset, "loaded": self.loaded, "bye": self.bye}.get(words[0])
        self.current = None
        try:
            if not action:
                raise _Refused("request", f"unknown request: {request}")
            action(words[1:])
        except _Refused as refused:
            self.say(refused.reply)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # A body may also call sys.exit or pytest.fail.
            if isinstance(problem, SystemExit) and os.getpid() != self.process:
                raise
            skip = _says_skip(problem)
            text = str(problem) if skip else f"{type(problem).__name__}: {problem}"
            where = {} if self.current is None else {"id": self.current}
            self.say({"error": text, "kind": "skipped" if skip else "exception", **where})
        self.replies.flush()
        return words != ["bye"]

    def hello(self, words):
        if len(words) != 1 or not _whole(words[0]):
            raise _Refused("request", "hello takes one version number")
        cpu = {"resolution": _resolution("thread_time"), "scope": "thread"}
        self.say({"scruple": 1, "sdk": f"scruple-python {__version__}", "language": "python",
                  "runtime": f"{platform.python_implementation().lower()} {platform.python_version()}",
                  "clocks": {"time.wall": {"resolution": _resolution("monotonic")}, "time.cpu": cpu},
                  "features": ["threads", "loaded"], "counters": self.counters.announced,
                  "counting_environment": _counting_environment()})

    def list(self, words):
        if words:
            raise _Refused("request", "cases takes no words")
        for number, case in enumerate(self.cases):
            self.say({"case": case.declaration(number)})
        self.say({"end": "cases", "count": len(self.cases)})

    def block(self, words):
        if not words:
            raise _Refused("request", "block takes words ID:KIND:ITERATIONS[:THREADS]")
        batches = [self.batch(word) for word in words]
        for number, *_ in batches:
            self.current = number
            self.cases[number].prepare()
        entries, lost = [], 0
        for number, kind, iterations, threads in batches:
            self.current = number
            entry, missed = self.run(self.cases[number], kind, iterations, threads)
            entries.append({"id": number, "kind": kind, **entry})
            lost += missed
        self.say({"block": entries, "lost": lost})

    def batch(self, word):
        parsed = re.fullmatch(r"([0-9]{1,16}):([ct]):([0-9]{1,16})(?::([0-9]{1,9}))?", word)
        if not parsed:
            raise _Refused("request", f"not ID:KIND:ITERATIONS[:THREADS]: {word}")
        number, iterations, threads = int(parsed[1]), int(parsed[3]), int(parsed[4] or 1)
        case = self.case(number)
        if iterations < 1 or threads < 1:
            raise _Refused("request", f"iterations and threads begin at 1: {word}", id=number)
        if case.input and iterations > case.max_iterations:
            raise _Refused("request", f"at most {case.max_iterations} iterations in one batch: {word}", id=number)
        return number, parsed[2], iterations, threads

    def run(self, case, kind, iterations, threads):
        loops = [case.loop(kind, iterations) for _ in range(threads)]
        if threads == 1:
            self.counters.begin()
            start, end, cpu, result = loops[0]()
            if case.seen or kind == "t":
                result = None  # Only the first result is looked at. Later ones are freed while frees are counted.
            self.counters.end()
            times = [(start, end, cpu)]
        else:
            times, result = self.run_threads(loops)
        if kind == "c" and not case.awaited and inspect.isawaitable(result):
            raise TypeError("the body returns an awaitable, which nothing awaits: make the body an `async def`")
        if kind == "c" and (inspect.isgeneratorfunction(case.body) or inspect.isasyncgenfunction(case.body)):
            raise TypeError("the body is a generator, and a call runs nothing of it: take its elements in the body")
        fields, lost = self.counters.difference()
        entry = {"iterations": iterations * threads,
                 "time.wall": max(end for _, end, _ in times) - min(start for start, *_ in times),
                 "time.cpu": sum(cpu for _, _, cpu in times), **fields}
        if kind == "c":
            if not (case.chain or case.timing == "throughput"):
                case.learn(result)
            case.seen = True
        if case.timing:
            entry["timing"] = case.timing
        if case.late_input:
            entry["per_iteration_input"] = True
        if threads > 1:
            entry["threads"] = [{"iterations": iterations, "time.wall": end - start, "time.cpu": cpu}
                                for start, end, cpu in times]
        else:
            entry["thread"] = threading.get_native_id()
        return entry, lost

    def run_threads(self, loops):
        times, problems = [None] * len(loops), []
        barrier = threading.Barrier(len(loops) + 1)

        def work(i):
            barrier.wait()
            try:
                times[i] = loops[i]()
            except BaseException as problem:
                problems.append(problem)

        workers = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(loops))]
        for worker in workers:
            worker.start()
        self.counters.begin()
        barrier.wait()
        for worker in workers:
            worker.join()
        self.counters.end()
        if problems:
            raise problems[0]
        return [each[:3] for each in times], times[0][3]

    def case(self, number):
        if number >= len(self.cases):
            raise _Refused("unknown-case", f"there is no case {number}", id=number)
        return self.cases[number]

    def one(self, words):
        if len(words) != 1 or not _whole(words[0]):
            raise _Refused("request", "this request takes one case id")
        case = self.case(int(words[0]))
        self.current = int(words[0])
        return case

    def once(self, words):
        case = self.one(words)
        case.prepare()
        self.say({"once": self.current, **case.once()})

    def reset(self, words):
        case = self.one(words)
        case.dismiss()
        case.prepare()
        self.say({"reset": self.current})

    def loaded(self, words):
        if words:
            raise _Refused("request", "loaded takes no words")
        try:
            self.say(_loaded())
        except Exception as problem:
            raise _Refused("unsupported", f"{type(problem).__name__}: {problem}") from problem

    def bye(self, words):
        if words:
            raise _Refused("request", "bye takes no words")
        self.dismiss()
        self.say({"bye": True})

    def dismiss(self):
        for case in self.cases:
            try:
                case.dismiss()
            except Exception as problem:
                print(f"teardown of {case.name}: {problem!r}", file=sys.stderr)


def serve(cases):
    """Serves the protocol over the two paths in the environment until the host sends bye."""
    seen = set()
    for case in cases:
        key = (case.name, json.dumps({k: _param(v) for k, v in case.params.items()}, sort_keys=True))
        if key in seen:
            _end(f"two cases have the name {case.name!r} and the params {case.params}")
        seen.add(key)
    paths = os.environ.pop("SCRUPLE_BENCH_IN", None), os.environ.pop("SCRUPLE_BENCH_OUT", None)
    if None in paths:
        _end("only one of SCRUPLE_BENCH_IN and SCRUPLE_BENCH_OUT is set")
    try:
        requests = open(paths[0], "rb")
        replies = open(paths[1], "wb", buffering=1 << 16)
    except OSError as problem:
        _end(f"cannot open {problem.filename}: {problem.strerror}")
    for path in paths:
        if match := re.fullmatch(r"/dev/fd/(\d+)", path):
            os.set_inheritable(int(match[1]), False)
    _Server(cases, replies).serve(requests)


def _line(reply):
    text = json.dumps(reply, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def _next(requests):
    """Returns the next request, or None at the end of input. A line without its end is no request."""
    line = requests.readline()
    return line[:-1].decode("utf-8", "replace") if line.endswith(b"\n") else None


def main():
    """Serves the declared cases. If the program was started by hand, it executes `scruple bench` with itself."""
    if "SCRUPLE_BENCH_IN" in os.environ or "SCRUPLE_BENCH_OUT" in os.environ:
        serve(_registry)
        sys.exit(0)
    me = [sys.executable, *getattr(sys, "orig_argv", [sys.executable, *sys.argv])[1:]]
    scruple = shutil.which("scruple")
    if scruple and "SCRUPLE_BENCH_HAND" not in os.environ:
        sys.stdout.flush()
        os.execve(scruple, ["scruple", "bench", "--", *me], {**os.environ, "SCRUPLE_BENCH_HAND": "1"})
    _end(f"this is a bench program; run it with: scruple bench -- {' '.join(me)}")


def _end(text):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(2)


def _whole(word):
    return re.fullmatch(r"[0-9]{1,16}", word) is not None


def _resolution(clock):
    return max(1, round(time.get_clock_info(clock).resolution * 1e9))


def _param(value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return value if number and abs(value) <= 2**53 else str(value)


def _throughput(amount):
    """Returns the field for an amount: a number of bytes, or a pair with a unit, such as ("items", 12)."""
    if amount is None:
        return None
    unit, amount = amount if isinstance(amount, (tuple, list)) else ("bytes", amount)
    return {"unit": unit, "amount": amount}


def _source(body):
    code = getattr(body, "__code__", None)
    return code and f"{os.path.relpath(code.co_filename)}:{code.co_firstlineno}"

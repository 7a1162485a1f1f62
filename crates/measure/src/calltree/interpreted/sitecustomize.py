"""Counts the bytecode instructions that a Python program executes, by calling context, and the calls.
`counter/python.c` does that; this module makes Python call it, and names the functions.

Python imports this module before the program, because its folder is the first of PYTHONPATH. Each process writes one
file into that folder at its end. Nothing is imported that a program might notice as imported already.
"""

import sys


def start():
    import _thread
    import atexit
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    counter = load(os.path.join(folder, "scruple_count.so"))
    # Stands for the code of all functions of Python's import system. Its digest says that it belongs to the
    # interpreter.
    IMPORTS = "(import system)"
    functions, names = {IMPORTS: 0}, [("_frozen_importlib", IMPORTS, 1)]
    # Before 3.12, these are functions. They count as a part of the function around them, as from 3.12 on.
    COMPREHENSIONS, PART = ("<listcomp>", "<setcomp>", "<dictcomp>"), 0xFFFFFFFE
    # Stands for the functions of this module, which are not counted.
    NONE, own = 0xFFFFFFFF, start.__code__.co_filename
    qualified = {}

    def digest(code):
        """A number of what the code does: without its name, its place, and functions that are defined in it."""
        constants = []
        for constant in code.co_consts:
            if isinstance(constant, frozenset):
                constants.append(sorted(map(repr, constant)))
            elif not isinstance(constant, type(code)):
                constants.append(repr(constant))
            elif constant.co_name in COMPREHENSIONS:
                constants.append(digest(constant))
        words = (constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
                 code.co_kwonlyargcount, code.co_flags)
        value = 0xCBF29CE484222325
        for byte in code.co_code + repr(words).encode(errors="replace"):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return value

    def qualify(code, prefix):
        """Gives names to the functions in a module: code has none with its class before 3.11."""
        for inner in code.co_consts:
            if isinstance(inner, type(code)):
                qualified[inner] = prefix + inner.co_name
                # Unlike the body of a class, a function has names that are local.
                qualify(inner, qualified[inner] + (".<locals>." if inner.co_flags & 1 else "."))

    def describe(code, namespace):
        """The number of a function whose code the counter has not seen before."""
        if code.co_filename.startswith(("<frozen importlib", "<frozen zipimport")):
            return functions[IMPORTS]
        if code.co_filename == own:
            return NONE
        if code.co_name in COMPREHENSIONS:
            return PART
        number = functions.get(code)
        if number is None:
            number = functions[code] = len(names)
            module = namespace.get("__name__") if isinstance(namespace, dict) else None
            name = getattr(code, "co_qualname", None)
            if name is None:
                if code.co_name == "<module>":
                    qualify(code, "")
                name = qualified.get(code, code.co_name)
            if name == "<module>" and module != "__main__":
                name = "<module %s>" % module
            names.append((module if isinstance(module, str) else "", name, digest(code)))
        return number

    def trace_calls():
        def counted(start_thread):
            def start_counted(function, *arguments, **options):
                def run(*words, **named):
                    counter.trace_thread()
                    return function(*words, **named)
                return start_thread(run, *arguments, **options)
            return start_counted

        # threading is not imported here, but may have been imported before.
        for module in (_thread, sys.modules.get("threading")):
            for name in ("start_new_thread", "start_new", "_start_new_thread"):
                if hasattr(module, name):
                    setattr(module, name, counted(getattr(module, name)))
        counter.trace_thread()

        def stop():
            replaced = sys.gettrace() is not tracer or counter.was_interrupted()
            sys.settrace(None)
            return replaced
        return stop

    def monitor():
        monitoring = sys.monitoring
        tool = next(one for one in (monitoring.PROFILER_ID, 3, 4) if monitoring.get_tool(one) is None)
        monitoring.use_tool_id(tool, "scruple")
        events = monitoring.events
        begins = (events.PY_START, events.PY_RESUME, events.PY_THROW)
        ends = (events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND)
        callbacks = {event: counter.begun for event in begins}
        callbacks.update({event: counter.ended for event in ends})
        callbacks[events.INSTRUCTION] = counter.executed
        for event, callback in callbacks.items():
            monitoring.register_callback(tool, event, callback)
        monitoring.set_events(tool, sum(callbacks))

        def stop():
            replaced = monitoring.get_tool(tool) != "scruple"
            if not replaced:
                monitoring.set_events(tool, 0)
            return replaced
        return stop

    def running():
        return "%s/%d.running" % (folder, os.getpid())

    def mark():
        # A forked process counts already: `open` would call functions of Python.
        os.close(os.open(running(), os.O_CREAT | os.O_WRONLY, 0o666))

    def forked():
        counter.clear()
        mark()

    def text(word):
        return word.encode("unicode_escape").decode("ascii")

    def write():
        replaced = stop()
        path = os.path.join(folder, "%d.calls" % os.getpid())
        with open(path + ".new", "w") as file:
            file.write("scruple-calls 2 %d %d\n" % (replaced, counter.folds_by_call()))
            for module, name, code in names:
                file.write("f\t%x\t%s\t%s\n" % (code, text(module), text(name)))
        if counter.append(path + ".new"):
            os.replace(path + ".new", path)
            os.remove(running())

    mark()
    atexit.register(write)
    os.register_at_fork(after_in_child=forked)
    tracer = counter.start(describe)
    stop = monitor() if hasattr(sys, "monitoring") else trace_calls()


def load(path):
    """The module that counts, which is not one of `sys.modules`."""
    import _frozen_importlib
    import _imp

    return _imp.create_dynamic(_frozen_importlib.ModuleSpec("scruple_count", None, origin=path))


def go_on():
    """Imports the other module of this name, which this one hides, if there is one."""
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize
    except ImportError:
        sys.modules["sitecustomize"] = this


go_on()
# The counter knows the objects of the usual builds: not of those without the global lock, or that list all objects.
if (sys.version_info >= (3, 7) and sys.implementation.name == "cpython" and "t" not in getattr(sys, "abiflags", "")
        and not hasattr(sys, "getobjects")):
    start()

"""Counts the bytecode instructions that a Python program executes, by calling context, and the calls.

Python imports this module before the program, because its folder is the first of PYTHONPATH. Each process writes one
file into that folder at its end. Nothing is imported that a program might notice as imported already.
"""

import sys


def start():
    import _thread
    import atexit
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    # Stands for the code of all functions of Python's import system. Its digest says that it belongs to the interpreter.
    IMPORTS = "(import system)"
    functions, names = {IMPORTS: 0}, [("_frozen_importlib", IMPORTS, 1)]
    stands_for = {}
    # A context: instructions, function, edges by code, parent, code. An edge: the context to which it leads, calls.
    INSTRUCTIONS, FUNCTION, EDGES, PARENT, CODE = range(5)
    TO, CALLS = range(2)
    root = [0, None, {}, None, None]
    contexts, stacks = [], {}
    # With more contexts than this, recursion leads back to the function's context, whoever calls it: functions that
    # call each other have as many paths as there are orders of their calls.
    MOST_BY_CALL = 100000
    get_ident = _thread.get_ident

    def digest(code):
        """A number of what the code does: without its name, its place, and functions that are defined in it."""
        constants = []
        for constant in code.co_consts:
            if isinstance(constant, frozenset):
                constants.append(sorted(map(repr, constant)))
            elif not isinstance(constant, type(code)):
                constants.append(repr(constant))
        words = (constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
                 code.co_kwonlyargcount, code.co_flags)
        value = 0xCBF29CE484222325
        for byte in code.co_code + repr(words).encode(errors="replace"):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return value

    def stand_in(code):
        known = stands_for.get(code)
        if known is None:
            imports = code.co_filename.startswith(("<frozen importlib", "<frozen zipimport"))
            known = stands_for[code] = IMPORTS if imports else code
        return known

    def number_of(code, module):
        number = functions.get(code)
        if number is None:
            number = functions[code] = len(names)
            name = getattr(code, "co_qualname", code.co_name)
            if name == "<module>" and module != "__main__":
                name = "<module %s>" % module
            names.append((module if isinstance(module, str) else "", name, digest(code)))
        return number

    def destination(parent, code, module):
        """The context to which a new edge leads. A recursive call leads back to a context that the same function has
        called, so that its cost is apart from that of the outer call."""
        above = parent
        function = number_of(code, module)
        any_caller = code is IMPORTS or len(contexts) >= MOST_BY_CALL
        while above is not root:
            if above[FUNCTION] == function and (any_caller or above[PARENT][FUNCTION] == parent[FUNCTION]):
                return above
            above = above[PARENT]
        context = [0, function, {}, parent, code]
        contexts.append(context)
        return context

    def edge_to(parent, code, module):
        edge = parent[EDGES].get(code)
        if edge is None:
            edge = parent[EDGES][code] = [destination(parent, code, module), 0]
        return edge

    def caller(context, code):
        # What a module executes counts for the module that imports it: imports within imports would look like recursion.
        return context[PARENT] if context[CODE] is IMPORTS and code is not IMPORTS else context

    def enter(stack, frame, code, module):
        code = stand_in(code)
        parent = caller(stack[-1][1] if stack else root, code)
        edge = edge_to(parent, code, module)
        edge[CALLS] += 1
        stack.append((frame, edge[TO]))
        return edge[TO]

    def leave(frame):
        stack = stacks.get(get_ident(), ())
        # A frame that was running before the counting began was never entered.
        for at in range(len(stack) - 1, -1, -1):
            if stack[at][0] is frame:
                del stack[at:]
                return

    def on_call(frame, event, argument):
        context = enter(stacks.setdefault(get_ident(), []), frame, frame.f_code, frame.f_globals.get("__name__"))
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True

        def trace(frame, event, argument):
            if event == "opcode":
                context[INSTRUCTIONS] += 1
            elif event == "return":
                leave(frame)
            return trace

        return trace

    def begun(code, offset, error=None):
        module = sys._getframe(1).f_globals.get("__name__")
        enter(stacks.setdefault(get_ident(), []), code, code, module)

    def executed(code, offset):
        stack = stacks.get(get_ident())
        context = stack[-1][1] if stack else root
        code = stand_in(code)
        if context[CODE] is not code:
            # A few instructions precede the event that a function begins.
            context = edge_to(caller(context, code), code, sys._getframe(1).f_globals.get("__name__"))[TO]
        context[INSTRUCTIONS] += 1

    def trace_calls():
        def counted(start_thread):
            def start_counted(function, *arguments, **options):
                def run(*words, **named):
                    sys.settrace(on_call)
                    return function(*words, **named)
                return start_thread(run, *arguments, **options)
            return start_counted

        # threading is not imported here; where the program imports it, it takes the function from there.
        for name in ("start_new_thread", "start_new"):
            setattr(_thread, name, counted(getattr(_thread, name)))
        if "threading" in sys.modules:
            sys.modules["threading"].settrace(on_call)
        sys.settrace(on_call)
        return lambda: sys.gettrace() is not on_call

    def monitor():
        monitoring = sys.monitoring
        tool = next(one for one in (monitoring.PROFILER_ID, 3, 4) if monitoring.get_tool(one) is None)
        monitoring.use_tool_id(tool, "scruple")
        events = monitoring.events
        begins = (events.PY_START, events.PY_RESUME, events.PY_THROW)
        ends = (events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND)
        callbacks = {event: begun for event in begins}
        callbacks.update({event: lambda code, *rest: leave(code) for event in ends})
        callbacks[events.INSTRUCTION] = executed
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
        return os.path.join(folder, "%d.running" % os.getpid())

    def mark():
        with open(running(), "w"):
            pass

    def forked():
        for context in (root, *contexts):
            context[INSTRUCTIONS] = 0
            for edge in context[EDGES].values():
                edge[CALLS] = 0
        mark()

    def text(word):
        return word.encode("unicode_escape").decode("ascii")

    def write():
        replaced = stop()
        sys.settrace(None)
        numbers = {id(context): number for number, context in enumerate(contexts, 1)}
        path = os.path.join(folder, "%d.calls" % os.getpid())
        with open(path + ".new", "w") as file:
            file.write("scruple-calls 2 %d %d\n" % (replaced, len(contexts) < MOST_BY_CALL))
            for module, name, code in names:
                file.write("f\t%x\t%s\t%s\n" % (code, text(module), text(name)))
            for context in contexts:
                parent = numbers.get(id(context[PARENT]), 0)
                file.write("c\t%d\t%d\t%d\n" % (parent, context[FUNCTION], context[INSTRUCTIONS]))
            for number, context in enumerate((root, *contexts)):
                for to, calls in context[EDGES].values():
                    file.write("e\t%d\t%d\t%d\n" % (number, numbers[id(to)], calls))
            file.write("end\n")
        os.replace(path + ".new", path)
        os.remove(running())

    mark()
    atexit.register(write)
    os.register_at_fork(after_in_child=forked)
    stop = monitor() if hasattr(sys, "monitoring") else trace_calls()


def go_on():
    """Imports the module that this one stands in front of, if there is one."""
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize
    except ImportError:
        sys.modules["sitecustomize"] = this


go_on()
if sys.version_info >= (3, 7) and sys.implementation.name == "cpython":
    start()

"""The conformance program with one plausible mistake in the SDK, chosen by the first argument."""

import json
import os
import sys
from pathlib import Path

SDK = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SDK))

import scruple_bench as sdk  # noqa: E402

bug = sys.argv.pop(1)
server, case, say = sdk._Server, sdk.Case, sdk._Server.say


def changed(change):
    """Applies `change` to every reply before it is written."""
    def new(self, reply):
        say(self, change(dict(reply)) or reply)
    server.say = new


def entries(change):
    def each(reply):
        for entry in reply.get("block", []):
            change(entry)
        return reply
    changed(each)


def answered_twice(self, reply):
    say(self, reply)
    if "once" in reply:
        say(self, reply)


def tare_is_the_case(self, kind, iterations, original=case.loop):
    return original(self, "c", iterations)


def loop_is_hoisted(self, kind, iterations, original=case.loop):
    return original(self, kind, 1)


def one_input_for_all(self, kind, iterations, original=case.loop):
    if not self.input:
        return original(self, kind, iterations)
    one = self.input()
    return lambda: sdk._loop_over(self.body if kind == "c" else sdk._identities[1], [one] * iterations)


def setup_each_time(self):
    self.ready = False
    original_prepare(self)


original_prepare, original_answer = case.prepare, server.answer

BUGS = {
    "order": lambda: changed(lambda r: {**r, "block": r["block"][::-1]} if "block" in r else r),
    "seconds": lambda: entries(lambda e: e.update({"time.wall": e["time.wall"] / 1e9})),
    "per iteration": lambda: entries(lambda e: e.update({"time.wall": e["time.wall"] // e["iterations"]})),
    "no lost": lambda: changed(lambda r: {k: v for k, v in r.items() if k != "lost"}),
    "no error kind": lambda: changed(lambda r: {k: v for k, v in r.items() if k != "kind"}),
    "twice": lambda: setattr(server, "say", answered_twice),
    "tare": lambda: setattr(case, "loop", tare_is_the_case),
    "hoisted": lambda: setattr(case, "loop", loop_is_hoisted),
    "inputs": lambda: setattr(case, "loop", one_input_for_all),
    "setup": lambda: setattr(case, "prepare", setup_each_time),
    "no reset": lambda: setattr(case, "dismiss", lambda self: None),
    "bye": lambda: setattr(server, "bye", lambda self, w, c: self.say({"end": "bye"})),
    "dies": lambda: setattr(server, "answer", lambda s, r: sys.exit(1) if r == "nonsense" else original_answer(s, r)),
    "ids": lambda: setattr(case, "declaration",
                           lambda self, n, original=case.declaration: {**original(self, n), "id": n + 1}),
    "names": lambda: setattr(json, "dumps", lambda v, dumps=json.dumps, **k: dumps(v, **k).replace("\\t", " ")),
    "unstable": lambda: setattr(case, "declaration", lambda self, n, original=case.declaration:
                                {**original(self, n), "group": str(os.getpid())}),
    "hand": lambda: setattr(sdk, "_end", lambda text: sys.exit(1)),
}

BUGS[bug]()
text = (SDK / "conformance.py").read_text(encoding="utf-8")
# Fewer steps: a check tries again for long before it finds that a tare takes as long as its case.
steps = "for i in range(1000):"
assert steps in text
text = text.replace(steps, "for i in range(50):")
exec(compile(text, "conformance.py", "exec"), {"__name__": "__main__"})

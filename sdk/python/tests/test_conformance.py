"""The conformance runner notices each of the mistakes that are planted in the SDK."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SDK = Path(__file__).resolve().parent.parent
RUN = SDK.parent / "conformance" / "run.py"

# The mistake, what to run, and a check that must turn red.
PLANTED = [
    ("order", "block", "block:5"),
    ("seconds", "block", "block:3"),
    ("per iteration", "hoisted", "the loop is not hoisted"),
    ("no lost", "block", "block:3"),
    ("no error kind", "misuse", "misuse:3"),
    ("twice", "once", "once:5"),
    ("tare", "lighter", "the tare is lighter"),
    ("hoisted", "hoisted", "the loop is not hoisted"),
    ("inputs", "input", "input:3"),
    ("setup", "setup", "setup:9"),
    ("no reset", "setup", "setup:13"),
    ("bye", "hello", "hello:15"),
    ("dies", "misuse", "misuse:3"),
    ("ids", "same", "same ids"),
    ("names", "names", "names:"),
    ("unstable", "same", "same ids"),
    ("hand", "names the command", "started by hand it names the command"),
]


def run(only, *program):
    done = subprocess.run([sys.executable, str(RUN), "--only", only, "--", sys.executable, *program],
                          capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout


@pytest.mark.parametrize("bug, only, red", PLANTED)
def test_a_planted_mistake_is_noticed(bug, only, red):
    code, out = run(only, str(SDK / "tests" / "planted.py"), bug)
    assert code == 1
    assert re.search(f"^FAIL {re.escape(red)}", out, re.MULTILINE), out

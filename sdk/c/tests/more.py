"""Talks to tests/more.c: more.py PROGRAM."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "conformance"))

from program import Program  # noqa: E402


def main(path):
    with Program([path]) as program:
        cases, end = program.cases()
        names = [case["name"] for case in cases]
        assert names[3] == "not \ufffd UTF-8 \ufffd\ufffd\ufffd", names[3]
        assert names[7] == "other file" and cases[7]["tags"] == ["other"]
        assert program.ask("block 0:c:1 7:c:1")["block"][0]["iterations"] == 1
        assert program.ask("reset 0") == {"reset": 0}
        assert program.output() == "torn down 42\n"
        assert program.ask("once 8") == {"once": 8, "ok": True, "checked": True}
        failed = program.ask("block 1:c:2:4")
        assert failed == {"error": "the third arrival", "kind": "exception", "id": 1}, failed
        assert program.ask("block 2:c:3")["block"][0]["iterations"] == 3
        assert program.ask("block 2:c:3")["error"] == "no more inputs"
        for n in (1, 2, 777):
            entry = program.ask(f"block 4:c:{n}")["block"][0]
            assert (entry["queue.put"], entry["queue.got"], entry["queue.lost"]) == (n, n, 0), entry
        fair = program.ask("once 4")
        assert fair["ok"] and fair["queue.sojourn.p50"] > 0, fair
        wrong = program.ask("block 5:c:100")
        assert wrong["kind"] == "ledger" and wrong["batch"]["queue.invented"] == 10, wrong
        assert wrong["batch"]["queue.lost"] == 10, wrong
        fatal = program.ask("block 6:c:100")
        assert (fatal["error"], fatal["kind"], fatal["fatal"]) == ("cannot put the eighth", "exception", True), fatal
        assert program.exit_code() == 1
    with Program([path, "more"]) as program:
        assert program.cases()[1]["count"] == 10
    with Program([path, "more", "again"]) as program:
        assert program.exit_code() == 2
        assert "two cases" in program.output("errors")
    print("more: fine")


main(sys.argv[1])

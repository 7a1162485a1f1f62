"""Checks that a case which allocates soon gets memory that was used before, so that its time does not include the
kernel's for new pages: pages.py PROGRAM …"""

import os
import sys
from pathlib import Path

CONFORMANCE = os.environ.get("SCRUPLE_CONFORMANCE", str(Path(__file__).resolve().parent.parent / "conformance"))
sys.path.insert(0, CONFORMANCE)

from program import Program  # noqa: E402

PAGE = os.sysconf("SC_PAGE_SIZE")


def faults(process):
    """Returns the number of pages that the kernel has provided without reading them from a disk."""
    return int(Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[7])


def main():
    with Program(sys.argv[1:]) as program:
        program.ask("hello 1")
        cases, _ = program.cases()
        case = next(case["id"] for case in cases if case["name"] == "strings/repeat")
        batch = f"block {case}:c:1000"
        for _ in range(100):
            program.ask(batch)
        before = faults(program.process)
        made = sum(program.ask(batch)["block"][0]["alloc.bytes"] for _ in range(2000))
        new = faults(program.process) - before
    share = new * PAGE / made
    fine = share <= 0.1
    print(f"{'ok  ' if fine else 'FAIL'} of {made >> 20} MB that a case allocated, {100 * share:.1f} % were new pages")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())

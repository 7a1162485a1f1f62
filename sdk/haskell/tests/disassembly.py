"""Checks that case and tare differ only by the called function: disassembly.py FOLDER, where a suite was built with its
object files kept. The timed loops are in the library, one for each type of number, and call an unknown function; the
compiler could merge a copy in the suite's own module with a body. Only for x86-64, and if objdump is installed."""

import pathlib
import platform
import re
import shutil
import subprocess
import sys

TYPES = 15
# The loop for latency is recognised by its sequence of multiplications, which no other code in the library has.
PRODUCTS = 5


def parts(file):
    """Splits the code of an object file into parts from one entry point to the next."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", file], capture_output=True, text=True, check=True).stdout
    return re.split(r"\n\n|\tret\s*\n|\tjmp\s+\*.*\n", text)


def loops(file):
    return [part for part in parts(file) if len(re.findall(r"\timul\s", part)) >= PRODUCTS]


def main():
    if platform.machine() != "x86_64" or not shutil.which("objdump"):
        print("disassembly: not tested here")
        return 0
    folder = pathlib.Path(sys.argv[1])
    library, suite = loops(folder / "Scruple/Bench/Body.o"), loops(folder / "Main.o")
    unknown = sum("stg_ap_p_fast" in part or "jmp" in part for part in library)
    print(f"disassembly: {len(library)} loops in the library, {len(suite)} in the suite")
    return int(bool(suite) or len(library) < TYPES or unknown != len(library))


sys.exit(main())

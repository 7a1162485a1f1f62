"""Checks in the compiled code that case and tare of every type of number differ only by the body: disassembly.py
PROGRAM, which is pairs. Case and tare share the loop and differ by the called function: an identity must have the same
instructions in both. Only for x86-64."""

import platform
import re
import subprocess
import sys

TYPES = 13


def functions(program):
    text = subprocess.run(["go", "tool", "objdump", "-s", r"scruple\.|main\.main", program], capture_output=True, text=True, check=True).stdout
    for function in text.split("TEXT ")[1:]:
        head, *lines = function.splitlines()
        yield head.split("(SB)")[0], [re.split(r"\t+", line.strip())[3].strip() for line in lines if line.strip()]


def main():
    if platform.machine() != "x86_64":
        print("disassembly: not tested here")
        return 0
    wrong, cases, tares, loops = [], [], [], 0
    for name, code in functions(sys.argv[1]):
        if re.fullmatch(r"main\.main\.func\d+", name):
            cases.append((name, code))
        elif re.search(r"chained.*(func\d|integers)", name) and code[-1:] == ["RET"] and not any("CALL" in word for word in code):
            tares.append((name, code))
        elif re.fullmatch(r"scruple\.chain(Integer|Single|Double)(\[.*\])?", name):
            loops += 1
            calls = sum(word.startswith("CALL") and "runtime" not in word for word in code)
            products = sum("MUL" in word for word in code)
            if calls != 1 or products < 2 or not any(word.startswith("AND") for word in code):
                wrong.append(f"{name}: {calls} calls of the body, {products} products: {code}")
    wrong += [f"{name}: an identity costs something: {code}" for name, code in cases + tares if code != ["RET"]]
    if len(cases) != TYPES or len(tares) < 3 or loops < TYPES:
        wrong.append(f"{len(cases)} identities as cases, {len(tares)} as tares, {loops} loops: {[name for name, _ in tares]}")
    print("\n".join(wrong))
    print(f"disassembly: {loops} loops, {len(cases)} cases, {len(tares)} tares, {len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main())

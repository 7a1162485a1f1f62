"""Checks in the compiled code that case and tare of every pair of scalar types differ only by the body: disassembly.py
PROGRAM, which is tests/pairs.c compiled as C or C++. Does nothing on other processors, or without objdump."""

import platform
import re
import shutil
import subprocess
import sys

FLOATS = {"float", "double"}
# The instructions that conversions between two types may use.
CONVERSIONS = re.compile(r"mov|cvt|and|pxor|xorps|cwt|c[bwlq]t|unpck|pause$")


def loops(function):
    """Yields the mnemonics of each innermost loop, without moves between registers of one kind: these take no time, and
    compilers insert them freely."""
    lines = re.findall(r"^\s*([0-9a-f]+):\t(?:notrack )?((\S+)(?:\s+([0-9a-f]+) <)?.*)$", function, re.M)
    code = [(int(at, 16), text.strip(), word, int(to, 16) if to and word.startswith("j") else None)
            for at, text, word, to in lines]
    where = {one[0]: index for index, one in enumerate(code)}
    for end, (at, _, _, to) in enumerate(code):
        if to in where and to <= at:
            body = code[where[to]:end + 1]
            if not any(other is not None and other <= place for place, _, _, other in body[:-1]):
                yield [word.replace("movd", "movq") for _, text, word, _ in body
                       if not re.fullmatch(r"mov(ap[sd])?\s+%\w+,%\w+", text)]


def without(case, tare):
    """Removes the tare's instructions from the case in their order. Returns None if one is missing."""
    due, rest = list(tare), []
    for word in case:
        if due and due[0] == word:
            due.pop(0)
        else:
            rest.append(word)
    return None if due else rest


def types_of(symbol):
    """Returns the two types in a symbol, or None. In C it is scruple_case_uint8_t_to_float, in C++ (demangled)
    …held<float, uint8_t, …>::loop<false>."""
    found = re.search(r"scruple_(?:case|tare)_(\w+?)_to_(\w+)", symbol)
    if found:
        return found[1], found[2]
    found = re.search(r"held<([a-z ]+), ([a-z ]+), .*>::(?:loop|rounds|around)", symbol)
    return (found[1], found[2]) if found else None


def compare(types, cases, tares):
    crosses = (types[0] in FLOATS) != (types[1] in FLOATS)
    for case, tare in ((case, tare) for case in cases for tare in tares):
        harness = list(tare)
        if crosses:  # The tare moves the bits; the case converts them.
            harness.reverse()
            harness.remove(next(word for word in harness if re.match("movq|movd", word)))
            harness.reverse()
        rest = without(case, harness)
        if rest is None or "pause" not in rest or not all(CONVERSIONS.match(word) for word in rest):
            return f"{types}: {' '.join(case)} | {' '.join(tare)}"
        if types[0] == types[1] and rest != ["pause"]:
            return f"{types}: an identity costs something: {' '.join(case)} | {' '.join(tare)}"
    return None


def main():
    if platform.machine() != "x86_64" or not shutil.which("objdump"):
        print("disassembly: not tested here")
        return 0
    text = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    found = {}
    for function in text.split("\n\n"):
        types = types_of(function.lstrip("\n").split("\n", 1)[0])
        if types:
            found.setdefault(types, []).extend(loops(function))
    wrong, compared = [], 0
    for types, every in found.items():
        # In a loop for latency three instructions make the next argument wait for the result.
        for chained in (True, False):
            chosen = [loop for loop in every if (["or", "and", "add"] in (loop[at:at + 3] for at in range(len(loop)))) == chained]
            cases = [loop for loop in chosen if "pause" in loop]
            tares = [loop for loop in chosen if "pause" not in loop]
            if cases and tares:
                compared += 1
                wrong.append(compare(types, cases, tares))
            else:
                wrong.append(f"{types}: {len(cases)} loops of the case, {len(tares)} of the tare: {every}")
    wrong = [why for why in wrong if why]
    print("\n".join(wrong[:8]))
    print(f"disassembly: {compared} pairs of loops, {len(wrong)} wrong")
    return 1 if wrong or compared < 100 else 0


sys.exit(main())

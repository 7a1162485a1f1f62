"""Reads transcripts and matches replies against their patterns."""

import json
import re

from program import Gone, Program, Silent

# A program that uses a smaller share of a core is idle.
IDLE_SHARE = 0.02
# A compiler may still be at work on what ran before, and a busy program may wait for a core, both for longer on a busy
# machine. A program may take this many further silences, which are longer, to become idle or busy.
MOST_SILENCES = 5


def find(cases, wanted):
    """Returns the case with the name NAME. NAME KEY=VALUE names one of several cases by its params."""
    for case in cases:
        params = case.get("params", {})
        if case["name"] == wanted or any(f"{case['name']} {k}={v}" == wanted for k, v in params.items()):
            return case
    raise LookupError(f"the program declares no case {wanted!r}")


def mismatch(pattern, value, cases, path="reply"):
    """Returns None if the value matches the pattern, else a description of the difference."""
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return f"{path} is not an object"
        for key, part in pattern.items():
            where = f"{path}.{key}"
            if part == "$absent":
                if key in value:
                    return f"{where} should be absent"
            elif key not in value:
                return f"{where} is missing"
            elif wrong := mismatch(part, value[key], cases, where):
                return wrong
        return None
    if isinstance(pattern, list):
        if not isinstance(value, list):
            return f"{path} is not an array"
        more = pattern[-1:] == ["…"]
        parts = pattern[:-1] if more else pattern
        if len(value) < len(parts) or (len(value) > len(parts) and not more):
            return f"{path} has {len(value)} elements, {len(parts)} expected"
        for i, part in enumerate(parts):
            if wrong := mismatch(part, value[i], cases, f"{path}[{i}]"):
                return wrong
        return None
    if isinstance(pattern, str) and pattern.startswith("$"):
        return None if placeholder(pattern, value, cases) else f"{path} is {value!r}, expected {pattern}"
    same = value == pattern and isinstance(value, bool) == isinstance(pattern, bool)
    return None if same else f"{path} is {value!r}, expected {pattern!r}"


def placeholder(pattern, value, cases):
    integer = isinstance(value, int) and not isinstance(value, bool)
    number = integer or isinstance(value, float)
    word, _, rest = pattern[1:].partition(":")
    return {
        "int": lambda: integer and value >= 0,
        "pos": lambda: integer and value > 0,
        "number": lambda: number,
        "string": lambda: isinstance(value, str),
        "bool": lambda: isinstance(value, bool),
        "any": lambda: True,
        "id": lambda: integer and value == find(cases, rest)["id"],
        "has": lambda: isinstance(value, str) and rest in value,
    }[word]()


def steps(text):
    """Yields (line number, sign, rest) of every line that is a step."""
    for number, line in enumerate(text.splitlines(), 1):
        if line[:1] in ("<", ">", "%"):
            yield number, line[0], line[2:] if line[1:2] == " " else line[1:]


def applies(text, features):
    for _, sign, rest in steps(text):
        word, _, feature = rest.partition(" ")
        if sign == "%" and word in ("needs", "lacks") and (feature in features) != (word == "needs"):
            return False
    return True


def play(path, argv, cases, check):
    """Plays one transcript; calls check(name, wrong) for every expectation in it."""
    text = path.read_text(encoding="utf-8")
    with Program(argv) as program:
        last = "start"
        for number, sign, rest in steps(text):
            name = f"{path.stem}:{number} {last}"
            try:
                if sign == ">":
                    last = rest
                    program.send(re.sub(r"@\{(.*?)\}", lambda m: str(find(cases, m[1])["id"]), rest))
                elif sign == "<":
                    reply = program.reply()
                    wrong = mismatch(json.loads(rest), reply, cases)
                    check(name, wrong and f"{wrong}; the reply was {json.dumps(reply, ensure_ascii=False)[:400]}")
                else:
                    directive(program, rest, name, check)
            except (Gone, Silent, ValueError, LookupError) as problem:
                check(name, str(problem))
                return


def share_of_further_silence(program):
    """The share of a core that the program uses while it is silent for two more seconds."""
    try:
        reply = program.silence(2)
    except Silent:
        return program.busy_share()
    raise ValueError(f"it replied {reply[:200]!r}")


def directive(program, words, name, check):
    word, _, rest = words.partition(" ")
    name = f"{name} % {words}"
    if words == "end of input":
        program.end_of_input()
    elif word == "half":
        program.send(rest, newline=False)
    elif word == "exits":
        code = program.exit_code()
        check(name, None if code == int(rest) else f"the exit code is {code}" if code is not None else "it still runs")
    elif word == "silent":
        try:
            check(name, f"it replied {program.silence(float(rest))[:200]!r}")
        except Silent:
            check(name, None)
    elif word == "stdout":
        check(name, None if rest in program.output() else f"stdout holds {program.output()[-200:]!r}")
    elif word == "unprinted":
        check(name, f"stdout holds {rest!r}" if rest in program.output() else None)
    elif word in ("busy", "idle"):
        share, waits = program.busy_share(), MOST_SILENCES
        while (share >= IDLE_SHARE) != (word == "busy") and waits > 0:
            waits -= 1
            share = share_of_further_silence(program)
        check(name, None if (share >= IDLE_SHARE) == (word == "busy") else f"it used {share:.1%} of a core")
    elif word not in ("needs", "lacks"):
        raise ValueError(f"unknown directive {words!r}")

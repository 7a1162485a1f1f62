#!/usr/bin/env python3
"""Whether `scruple explain` names the true cause of a planted difference: programs in nine languages, each compared
with a copy that has one change. Then identical programs, for which it must not report anything. Prints Markdown.

    python3 bench/explain/planted.py --scruple target/release/scruple [--tries N] [--only LANGUAGE] [--strip]

With --strip programs and libraries have no symbols; C, C++ and Rust then have functions by address.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PLANTED = pathlib.Path(__file__).resolve().parent / "planted"
SAME = {"ROUNDS": "40", "TIMES": "1", "EXTRA": "", "HASH": "hash"}

# The change, and the function that must be named; none if nothing may be reported.
CHANGES = [
    ("10 % dearer", {"ROUNDS": "44"}, "hash"),
    ("3 times as often", {"TIMES": "3"}, "parse"),
    ("allocates", {"EXTRA": True}, "parse"),
    ("renamed", {"HASH": "digest"}, None),
    ("inlined", {"INLINE": True}, "parse"),
    ("other input", {"words": True}, "main"),
    ("library only", {"LIBRARY": "44"}, "hash"),
    ("other flag", {"flag": True}, "flags"),
]


def run(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{words} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def filled(name, values):
    text = (PLANTED / name).read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def of_c(compiler):
    def build(folder, values, flag):
        values = dict(values)
        extra = "char *volatile copy = (char *)malloc(48); copy[0] = *text; free(copy);" if values["EXTRA"] else ""
        defines = [f"-DEXTRA={extra}", *(f"-D{key}={values[key]}" for key in ("ROUNDS", "TIMES", "HASH"))]
        defines += ["-DINLINE"] if values.get("INLINE") else []
        base = [compiler, "-O1" if flag else "-O2", "-g", *defines]
        base += ["-x", "c++"] if compiler == "g++" else []
        if values.get("LIBRARY"):
            library = [word.replace(f"-DROUNDS={values['ROUNDS']}", f"-DROUNDS={values['LIBRARY']}") for word in base]
            run([*library, "-DONLY_LIBRARY", "-shared", "-fPIC", PLANTED / "plant.c", "-o", folder / "libhash.so"])
            run([*base, "-DLIBRARY", PLANTED / "plant.c", "-x", "none", "-L", folder, "-lhash", "-Wl,-rpath,$ORIGIN",
                 "-o", folder / "plant"])
        else:
            run([*base, PLANTED / "plant.c", "-o", folder / "plant"])

    return build


def rust(folder, values, flag):
    extra = "drop(black_box(word.to_uppercase()));" if values["EXTRA"] else ""
    inline = "always" if values.get("INLINE") else "never"
    (folder / "plant.rs").write_text(filled("plant.rs", {**values, "EXTRA": extra, "INLINE": inline}))
    level = "1" if flag else "2"
    run(["rustc", "--edition=2021", "-C", f"opt-level={level}", "-g", "plant.rs", "-o", "plant"], cwd=folder)


def go(folder, values, flag):
    extra = "sink = make([]byte, 100)" if values["EXTRA"] else ""
    inline = "" if values.get("INLINE") else "//go:noinline"
    (folder / "main.go").write_text(filled("plant.go", {**values, "EXTRA": extra, "INLINE": inline}))
    flags = ["-gcflags=-N"] if flag else []
    run(["go", "build", *flags, "-o", "plant", "main.go"], cwd=folder)


def haskell(folder, values, flag):
    extra = "+ length (show h) - length (show h)" if values["EXTRA"] else ""
    inline = "INLINE" if values.get("INLINE") else "NOINLINE"
    (folder / "Main.hs").write_text(filled("Plant.hs", {**values, "EXTRA": extra, "INLINE": inline}))
    level = "-O0" if flag else "-O1"
    run(["ghc", "-v0", level, "-g1", "-rtsopts", "-fforce-recomp", "Main.hs", "-o", "plant"], cwd=folder)


def python(folder, values, flag):
    extra = "bytes(48)" if values["EXTRA"] else "None"
    (folder / "plant.py").write_text(filled("plant.py", {**values, "EXTRA": extra}))
    program = run(["python3", "-c", "import sys; print(sys.executable)"]).strip()
    scripted(folder, f"{program} {folder}/plant.py")


def scripted(folder, words):
    (folder / "plant").write_text(f"#!/bin/sh\nexec {words} $*\n")
    (folder / "plant").chmod(0o755)


def ruby(folder, values, flag):
    extra = "String.new(capacity: 48)" if values["EXTRA"] else "nil"
    (folder / "plant.rb").write_text(filled("plant.rb", {**values, "EXTRA": extra}))
    scripted(folder, f"{shutil.which('ruby')} {folder}/plant.rb")


def guile(folder, values, flag):
    extra = "(make-bytevector 48)" if values["EXTRA"] else "#f"
    (folder / "plant.scm").write_text(filled("plant.scm", {**values, "EXTRA": extra}))
    scripted(folder, f"{shutil.which('guile')} --no-auto-compile {folder}/plant.scm")


def javascript(template):
    def build(folder, values, flag):
        extra = "new Uint8Array(48)" if values["EXTRA"] else ""
        (folder / "plant.js").write_text(filled(template, {**values, "EXTRA": extra}))
        scripted(folder, f"{shutil.which('node')} {folder}/plant.js")

    return build


LANGUAGES = {
    "C": ("gcc", of_c("gcc")),
    "C++": ("g++", of_c("g++")),
    "Rust": ("rustc", rust),
    "Go": ("go", go),
    "Haskell": ("ghc", haskell),
    "Python": ("python3", python),
    "Ruby": ("ruby", ruby),
    "Guile": ("guile", guile),
    "JavaScript": ("node", javascript("plant.js")),
    "JavaScript, called back": ("node", javascript("callback.js")),
}

# Where the input of Haskell's program is used: a function of its own, where other languages have a loop in main.
INPUT = {"Haskell": "loop", "Python": "<module>", "Ruby": "<main>", "Guile": "(top level)", "JavaScript": "(top level)",
         "JavaScript, called back": "(top level)"}

INTERPRETED = {"Python", "Ruby", "Guile", "JavaScript", "JavaScript, called back"}

# Languages whose compilers write symbols that strip removes.
NATIVE = {"C", "C++", "Rust", "Go"}

# Changes that do not apply: no compiler inlines or has flags.
UNCOMPILED = {"inlined", "other flag"}


def explained(scruple, old, new):
    began = time.monotonic()
    page = json.loads(run([scruple, "explain", "--json", "--no-time", old, new]))["explain"]
    return page, time.monotonic() - began


def told(page):
    """The reported rows, which are the subjects of the sentences."""
    return [row for row in counted(page)["rows"] if row["shown"]]


def counted(page):
    """The instructions, or those of the interpreted program where its interpreter counted them."""
    return page.get("script") or page["counts"][0]


def stripped(folder):
    """Strips the programs of a folder. Returns the symbols that their code had, by address."""
    names = {}
    for file in [folder / "plant", *folder.glob("*.so")]:
        for line in run(["nm", file]).splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwW":
                names.setdefault(int(words[0], 16), []).append(words[2])
        run(["strip", file])
    return names


def name_of(row, names):
    """The symbol that a function had; functions of Go have their names, and those of other files, too."""
    words = row["function"].replace(",", "").split()
    address = words[2] if words[:2] == ["function", "at"] else None
    return " ".join(names.get(int(address, 16), [])) if address else row["function"]


def is_right(page, wanted, language, names):
    rows = told(page)
    if language in INTERPRETED and "script" not in page:
        return False, "the functions of the script were not counted"
    total = sum(row["difference"] for row in counted(page)["rows"])
    if abs(total - counted(page)["difference"]) > 1:
        return False, "the parts do not add up"
    first = f"{name_of(rows[0], names)} ({rows[0]['code']}, {rows[0]['parts'][0]['kind']})" if rows else "nothing"
    if wanted is None:
        return not rows, first
    if wanted == "flags":
        return any("other flags" in remark for remark in page["remarks"]), first
    wanted = INPUT.get(language, wanted) if wanted == "main" else wanted
    return bool(rows) and wanted in name_of(rows[0], names), first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scruple", required=True, type=pathlib.Path)
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--only", choices=LANGUAGES, metavar="LANGUAGE")
    parser.add_argument("--strip", action="store_true")
    options = parser.parse_args()
    if options.strip and options.only not in (None, *NATIVE):
        parser.error(f"--strip is for {', '.join(sorted(NATIVE))}")
    scruple = options.scruple.resolve()
    print("| language | change | difference | first row | right |\n|---|---|---:|---|---|")
    failures = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        folder = pathlib.Path(folder)
        for number, (language, (compiler, build)) in enumerate(LANGUAGES.items()):
            if options.only and options.only != language or options.strip and language not in NATIVE:
                continue
            if not shutil.which(compiler):
                print(f"skipped: {language}: no {compiler}", file=sys.stderr)
                continue
            for index, (change, values, wanted) in enumerate(CHANGES):
                if "LIBRARY" in values and language not in ("C", "C++"):
                    continue
                if language in INTERPRETED and change in UNCOMPILED:
                    continue
                # Paths of equal length, because processing names costs instructions, too.
                sides = [folder / f"{number}-{index}-{side}" for side in ("a", "b")]
                for side, more in zip(sides, ({"LIBRARY": "40"} if "LIBRARY" in values else {}, values)):
                    side.mkdir()
                    build(side, {**SAME, **more}, more.get("flag", False))
                names = [stripped(side) for side in sides][0] if options.strip else {}
                words = " 5000" if "words" in values else ""
                old, new = f"{sides[0]}/plant", f"{sides[1]}/plant{words}"
                page, _ = explained(scruple, old + (" 4000" if words else ""), new)
                right, first = is_right(page, wanted, language, names)
                failures += not right
                difference = f"{counted(page)['difference']:+,.0f}"
                print(f"| {language} | {change} | {difference} | {first} | {'yes' if right else 'NO'} |", flush=True)
            program = folder / f"{number}-0-a" / "plant"
            seen = 0
            for _ in range(options.tries):
                page, _ = explained(scruple, program, program)
                seen += bool(told(page))
            failures += seen
            print(f"| {language} | beside itself, {options.tries} times | | told in {seen} | {'yes' if not seen else 'NO'} |",
                  flush=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()

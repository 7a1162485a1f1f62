#!/usr/bin/env python3
"""Whether `scruple explain` names the function that a commit of a public repository changed, for commits whose
messages report a speed-up. Each commit and its parent are built with a small program that uses the changed code. The
repositories are cloned to a temporary folder, which is deleted. Prints Markdown.

    python3 bench/explain/commits.py --scruple target/release/scruple [--mirror FOLDER]

With --mirror, repositories are taken from FOLDER/OWNER+NAME/repo instead of from GitHub.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HEAD = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
CJSON = HEAD + '#include "cJSON.h"\n'

ARRAY = CJSON + """int main(void) {
    cJSON *array = cJSON_CreateArray();
    for (int i = 0; i < 1500; i++) cJSON_AddItemToArray(array, cJSON_CreateNumber(i));
    printf("%d\\n", cJSON_GetArraySize(array));
    return 0;
}"""

PRINT = CJSON + """int main(void) {
    cJSON *array = cJSON_CreateArray();
    for (int i = 0; i < 200; i++) cJSON_AddItemToArray(array, cJSON_CreateString("some plain words and \\"more\\" of them"));
    char *text = cJSON_Print(array);
    printf("%zu\\n", strlen(text));
    return 0;
}"""

PARSE = CJSON + """int main(void) {
    static char text[400000];
    char *at = text;
    at += sprintf(at, "[");
    for (int i = 0; i < 3000; i++) at += sprintf(at, "{\\"name\\":\\"a name that is not short\\",\\"size\\":%d,\\"all\\":[]},", i);
    sprintf(at, "0]");
    cJSON *whole = cJSON_Parse(text);
    printf("%d\\n", cJSON_GetArraySize(whole));
    return 0;
}"""

UPPER = HEAD + """#include "sds.h"
int main(void) {
    sds text = sdsempty();
    for (int i = 0; i < 2000; i++) text = sdscat(text, "some words in lower case ");
    for (int i = 0; i < 20; i++) { sdstoupper(text); sdstolower(text); }
    printf("%c\\n", text[5]);
    return 0;
}"""

# The repository, the commit, what its message says, the file, the program, and the functions that it changed.
COMMITS = [
    ("DaveGamble/cJSON", "3ece4c893c123aa3d77f90d580cf6b0a4b3a2ad5", "Improve performance of adding item to array",
     "cJSON.c", ARRAY, ["AddItemToArray", "add_item_to_array"]),
    ("DaveGamble/cJSON", "c9739c59fd900e388e305e0eb1113664e97cbb74", "Replace strchr with switch case",
     "cJSON.c", PRINT, ["print_string"]),
    ("DaveGamble/cJSON", "afc246f1d5c7ae1b14bb38da0e1cb690abd1e1a8", "parse_value: Check only first character at first",
     "cJSON.c", PARSE, ["parse_value"]),
    ("DaveGamble/cJSON", "e64b984ddc514a0c7d7f5db3f43590e62285c722",
     "Optimise string parsing when there are no escape characters", "cJSON.c", PARSE, ["parse_string"]),
    ("antirez/sds", "6b2a03b304ff8098188f78b4e148fda3f9d27e86", "Performance based improvements to sdstoupper & sdstolower",
     "sds.c", UPPER, ["sdstoupper", "sdstolower"]),
]


def run(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{words} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def cloned(folder, name, mirror):
    clone = folder / name.replace("/", "+")
    if clone.exists():
        return clone
    if mirror:
        run(["git", "clone", "-q", "--shared", "--no-checkout", mirror / name.replace("/", "+") / "repo", clone])
    else:
        run(["git", "clone", "-q", "--no-checkout", f"https://github.com/{name}", clone])
    return clone


def has(clone, commit):
    return subprocess.run(["git", "-C", str(clone), "cat-file", "-e", commit], capture_output=True).returncode == 0


def explained(scruple, clone, commit, file, driver):
    build = f"cc -O2 -g -w -I. {driver} {file} -lm -o app"
    words = [scruple, "explain", "--json", "--no-time", "--repo", clone, "--build", build, "--artifact", "app",
             f"{commit}~1", commit, "--", "./app"]
    return json.loads(run(words))["explain"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scruple", required=True, type=pathlib.Path)
    parser.add_argument("--mirror", type=pathlib.Path)
    options = parser.parse_args()
    for needed in ("valgrind", "cc", "git"):
        if not shutil.which(needed):
            print(f"skipped: everything: {needed} is not installed", file=sys.stderr)
            return 0
    scruple, failures = options.scruple.resolve(), 0
    print("| commit | says | instructions | first row | part of the diff | right |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="commits-") as folder:
        folder = pathlib.Path(folder)
        for index, (name, commit, says, file, program, wanted) in enumerate(COMMITS):
            clone = cloned(folder, name, options.mirror)
            if not has(clone, commit):
                # A proposal that was merged in another form is in no branch.
                run(["git", "-C", clone, "fetch", "-q", "origin", commit])
            driver = folder / f"driver{index}.c"
            driver.write_text(program)
            page = explained(scruple, clone, commit, file, driver)
            count = page["counts"][0]
            told = [row for row in count["rows"] if row["shown"]]
            first = told[0] if told else {"function": "nothing", "code": "-"}
            right = any(part in first["function"] for part in wanted)
            failures += not right
            change = f"{count['a']:,.0f} → {count['b']:,.0f} ({(count['b'] / count['a'] - 1) * 100:+.1f} %)"
            print(f"| {name.split('/')[1]} {commit[:7]} | {says} | {change} | {first['function']} ({first['code']}) "
                  f"| {first.get('hunk') or '–'} | {'yes' if right else 'NO'} |", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Applies each wrong edit in this folder, and checks that the test which it names fails.

A patch begins with `Turns red: PACKAGE TARGET TEST` (TARGET is `lib`, `bin` or the name of an integration test) and
`Because: …`. The edits are made in a copy of the last commit, never in this tree. Arguments are names of patches;
without arguments all are applied. Each named test must pass without the edit. Exits with 1 if an edit is not detected.
"""
import fcntl
import itertools
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = ROOT / 'target/planted/tree'
BUILT = ROOT / 'target/planted/built'


class Mutation:
    """One wrong edit: the test it must turn red, and the blocks of lines it changes."""

    def __init__(self, path):
        self.name = path.stem
        head, _, diff = path.read_text().partition('\n\n')
        self.package, self.target, self.test = re.match(r'Turns red: (\S+) (\S+) (\S+)', head).groups()
        self.edits = []
        file = None
        for line in diff.splitlines():
            if line.startswith('+++ b/'):
                file = line[len('+++ b/'):]
            elif line.startswith('@@'):
                self.edits.append((file, [], []))
            elif self.edits and line[:1] in (' ', '-', '+') and not line.startswith('--- '):
                _, old, new = self.edits[-1]
                if line[0] != '+':
                    old.append(line[1:])
                if line[0] != '-':
                    new.append(line[1:])

    def files(self):
        return sorted({file for file, _, _ in self.edits})

    def make(self, tree):
        """Makes the edit. Fails if the lines to change do not occur exactly once."""
        for file, old, new in self.edits:
            path = tree / file
            text, old, new = path.read_text(), '\n'.join(old), '\n'.join(new)
            if text.count(old) != 1:
                raise SystemExit(f'{self.name}: the lines to change stand {text.count(old)} times in {file}')
            path.write_text(text.replace(old, new))


def run_tests(package, target, names):
    """The result of each of these tests of one program: True if it passes, False if it fails. A missing test did not
    run, because the code does not compile or there is no such test."""
    option = {'lib': ['--lib'], 'bin': ['--bins']}.get(target, ['--test', target])
    words = ['cargo', 'test', '--package', package, *option, '--', '--exact', *names]
    # Two builds differ by a few lines, so only those are compiled again.
    environment = {'CARGO_INCREMENTAL': '1', **os.environ, 'CARGO_TARGET_DIR': str(BUILT), 'RUST_BACKTRACE': '0'}
    done = subprocess.run(words, cwd=COPY, env=environment, text=True, capture_output=True)
    said = done.stdout + done.stderr
    results = {name: f'test {name} ... ok' in said for name in names if f'test {name} ... ' in said}
    if len(results) < len(names):
        print(said[-2000:], file=sys.stderr)
    return results


def git(*words, cwd=ROOT):
    subprocess.run(['git', *words], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def main():
    wanted = sys.argv[1:]
    mutations = [Mutation(path) for path in sorted(HERE.glob('*.patch')) if not wanted or path.stem in wanted]
    missing = set(wanted) - {mutation.name for mutation in mutations}
    if missing:
        raise SystemExit(f'there is no {", ".join(sorted(missing))} in {HERE}')
    COPY.parent.mkdir(parents=True, exist_ok=True)
    alone = open(COPY.parent / 'lock', 'w')
    # A second run would undo the edits of this one.
    fcntl.flock(alone, fcntl.LOCK_EX)
    subprocess.run(['git', 'worktree', 'remove', '--force', str(COPY)], cwd=ROOT, capture_output=True)
    git('worktree', 'prune')
    git('worktree', 'add', '--quiet', '--detach', str(COPY), 'HEAD')
    undetected = []
    # Edits that are tested by the same program follow each other, so that each build differs from the last by two
    # edits.
    mutations.sort(key=lambda mutation: (mutation.package, mutation.target, mutation.files(), mutation.name))
    for (package, target), group in itertools.groupby(mutations, lambda mutation: (mutation.package, mutation.target)):
        group = list(group)
        began = time.monotonic()
        unedited = run_tests(package, target, sorted({mutation.test for mutation in group}))
        print(f'{package} {target} without an edit ({time.monotonic() - began:.0f} s)', flush=True)
        for mutation in group:
            began = time.monotonic()
            if unedited.get(mutation.test):
                mutation.make(COPY)
                passes = run_tests(package, target, [mutation.test]).get(mutation.test)
                git('checkout', '--quiet', '--', '.', cwd=COPY)
                said = {False: 'red', True: 'SURVIVES', None: 'DOES NOT COMPILE'}[passes]
            else:
                said = 'FAILS WITHOUT THE EDIT' if mutation.test in unedited else 'NO SUCH TEST'
            print(f'{mutation.name}: {said} ({mutation.test}, {time.monotonic() - began:.0f} s)', flush=True)
            if said != 'red':
                undetected.append(mutation.name)
    git('worktree', 'remove', '--force', str(COPY))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f'{len(mutations) - len(undetected)} of {len(mutations)} turn their test red, '
          f'in {(used.ru_utime + used.ru_stime) / 60:.0f} minutes of processor time')
    return 1 if undetected else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Applies each wrong edit in this folder, and checks that the test which it names fails.

A patch begins with `Turns red: PACKAGE TARGET TEST` (TARGET is `lib`, `bin` or the name of an integration test) and
`Because: …`. The edits are made in a copy of the last commit, never in this tree. Arguments are names of patches;
without arguments all are applied. Exits with 1 if an edit is not detected.
"""
import pathlib
import re
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

    def make(self, tree):
        """Makes the edit. Fails if the lines to change do not occur exactly once."""
        for file, old, new in self.edits:
            path = tree / file
            text, old, new = path.read_text(), '\n'.join(old), '\n'.join(new)
            if text.count(old) != 1:
                raise SystemExit(f'{self.name}: the lines to change stand {text.count(old)} times in {file}')
            path.write_text(text.replace(old, new))

    def turns_red(self):
        """Whether the named test fails; None if the code does not compile or the test does not exist."""
        target = {'lib': ['--lib'], 'bin': ['--bins']}.get(self.target, ['--test', self.target])
        words = ['cargo', 'test', '--package', self.package, *target, '--', '--exact', self.test]
        done = subprocess.run(words, cwd=COPY, env=environment(), text=True, capture_output=True)
        said = done.stdout + done.stderr
        if f'test {self.test} ... FAILED' in said:
            return True
        return False if f'test {self.test} ... ok' in said else None


def environment():
    import os
    return {**os.environ, 'CARGO_TARGET_DIR': str(BUILT), 'RUST_BACKTRACE': '0'}


def git(*words, cwd=ROOT):
    subprocess.run(['git', *words], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def main():
    wanted = sys.argv[1:]
    mutations = [Mutation(path) for path in sorted(HERE.glob('*.patch')) if not wanted or path.stem in wanted]
    missing = set(wanted) - {mutation.name for mutation in mutations}
    if missing:
        raise SystemExit(f'there is no {", ".join(sorted(missing))} in {HERE}')
    subprocess.run(['git', 'worktree', 'remove', '--force', str(COPY)], cwd=ROOT, capture_output=True)
    git('worktree', 'prune')
    git('worktree', 'add', '--quiet', '--detach', str(COPY), 'HEAD')
    survivors = []
    for mutation in mutations:
        began = time.monotonic()
        mutation.make(COPY)
        red = mutation.turns_red()
        git('checkout', '--quiet', '--', '.', cwd=COPY)
        said = {True: 'red', False: 'SURVIVES', None: 'DOES NOT COMPILE, or there is no such test'}[red]
        print(f'{mutation.name}: {said} ({mutation.test}, {time.monotonic() - began:.0f} s)', flush=True)
        if red is not True:
            survivors.append(mutation.name)
    git('worktree', 'remove', '--force', str(COPY))
    print(f'{len(mutations) - len(survivors)} of {len(mutations)} turn their test red')
    return 1 if survivors else 0


if __name__ == '__main__':
    sys.exit(main())

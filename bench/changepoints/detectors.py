"""The detectors that are compared: Scruple's own, and others from PyPI, each in a virtual environment of its own, since
their packages ask for different versions of the same libraries."""

import json
import os
import pathlib
import resource
import subprocess
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(__file__).resolve().parent / "rivals.py"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "scruple-bench" / "changepoints"

# Name in tables, package, module.
RIVALS = {
    "otava": ("Otava 0.8.0", "apache-otava==0.8.0", "otava"),
    "asv": ("asv 0.6.6", "asv==0.6.6", "asv"),
    "edivisive": ("E-divisive", "signal-processing-algorithms==2.1.6", "signal_processing_algorithms"),
    "pelt": ("PELT", "ruptures==1.1.10", "ruptures"),
}


def scruple(least=None):
    """The example's command, built; `least` is the least step that is named, as a share."""
    build = ["cargo", "build", "--release", "--quiet", "-p", "scruple-core", "--example", "changepoints"]
    subprocess.run(build, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(target / "release" / "examples" / "changepoints")] + ([] if least is None else [str(least)])


def rivals(names):
    """The command for each rival, by its name in tables, and the reason for each that is left out."""
    found, absent = {}, {}
    for name in names:
        title, package, module = RIVALS[name]
        why = installed(CACHE / name, package, module)
        if why:
            absent[title] = why
        else:
            found[title] = [str(CACHE / name / "bin" / "python"), str(PROGRAM), name]
    return found, absent


def installed(folder, package, module):
    """Installs a package if it is missing. Returns the reason if that fails, or nothing."""
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as why:
        return f"no virtual environment: {why}"
    if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
        return None
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    try:
        done = subprocess.run(pip, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return f"installing {package} took longer than ten minutes"
    if done.returncode:
        return f"pip cannot install {package}: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    return None


def detect(command, series):
    """A detector's result for each series: the places, and further details if it has some."""
    lines = "".join(json.dumps(values) + "\n" for values in series)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(series):
        raise RuntimeError(f"{command[0]} answered {len(answers)} of {len(series)} series")
    # Processor time, since the machine may be busy. A rival reports its own, without the start of its interpreter.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for answer in answers:
        answer.setdefault("ms", 1000 * spent / len(series))
    return answers

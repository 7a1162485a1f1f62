"""The function suites of the SDKs, and those of other tools: how each is built, and the command that runs it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SDK = ROOT / "sdk"


class Absent(Exception):
    """Why a suite is left out."""


def build(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode:
        raise Absent(f"‘{words[0]}’ cannot build it: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


def need(program):
    if not shutil.which(program):
        raise Absent(f"there is no {program}")


def in_c(folder):
    need("cc")
    build(["cc", "-O2", "-pthread", SDK / "c/examples/fnv.c", "-o", folder / "fnv-c"])
    return [str(folder / "fnv-c")]


def in_rust(folder):
    return [rust_bench("scruple")]


def in_python(folder):
    os.environ["PYTHONPATH"] = str(SDK / "python")
    return [sys.executable, str(SDK / "python/examples/fnv.py")]


def in_haskell(folder):
    return seven_in_haskell(folder, "seven-scruple", [f"-i{SDK / 'haskell/src'}"])


def seven_in_haskell(folder, name, options):
    need("ghc")
    own = folder / name
    own.mkdir(exist_ok=True)
    build(["ghc", "--make", "-v0", "-O", *options, "-outputdir", own, HERE / "Seven.hs", "-o", own / "program"])
    return [str(own / "program")]


def rust_bench(name):
    """The newest program that cargo made of the bench of that name."""
    need("cargo")
    target = os.environ.get("CARGO_TARGET_DIR", str(HERE / "rust/target"))
    words = ["cargo", "bench", "--quiet", "--locked", "--no-run", "--message-format=json", "--bench", name]
    done = subprocess.run(
        words, cwd=HERE / "rust", env={**os.environ, "CARGO_TARGET_DIR": target}, capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return message["executable"]
    raise Absent(f"cargo cannot build it: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


def in_cpp(folder):
    need("c++")
    build(["c++", "-O2", "-pthread", SDK / "c/examples/fnv.cpp", "-o", folder / "fnv-cpp"])
    return [str(folder / "fnv-cpp")]


def in_criterion(folder):
    """The seven functions as a criterion suite with its import changed."""
    where = ["-DRIVAL=Scruple.Criterion", f"-i{SDK / 'haskell/src'}"]
    return seven_in_haskell(folder, "seven-criterion-import", where)


def in_go(folder):
    need("go")
    own = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    build(["go", "build", "-o", folder / "fnv-go", "./example"], cwd=SDK / "go", env=own)
    return [str(folder / "fnv-go")]


def in_java(folder):
    need("javac")
    names = ["ScrupleBench", "ScrupleLines", "ScrupleLoops", "ScrupleCode", "Example"]
    sources = [SDK / f"java/{name}.java" for name in names]
    build(["javac", "--release", "11", "-encoding", "UTF-8", "-d", folder / "java", *sources])
    return ["java", "-cp", str(folder / "java"), "Example"]


def in_javascript(_):
    need("node")
    return ["node", str(SDK / "js/example.mjs")]


def in_guile(_):
    need("guile")
    return ["guile", "-L", str(SDK / "guile"), str(SDK / "guile/example.scm")]


# The rivals, each used as its manual recommends.


def in_go_testing(folder):
    need("go")
    own = {**os.environ, "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    build(["go", "test", "-c", "-o", folder / "seven-go", "."], cwd=HERE / "go", env=own)
    return [str(folder / "seven-go"), "-test.bench", "."]


def in_benchmark_js(_):
    need("node")
    os.environ.setdefault("NODE_PATH", "/usr/share/nodejs")
    build(["node", "-e", "require('benchmark')"])
    return ["node", str(HERE / "seven.cjs")]


def in_timeit(_):
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SDK / "python"), str(SDK / "python/examples")])
    return [sys.executable, str(HERE / "seven_timeit.py")]


def in_google(folder):
    need("c++")
    target = folder / "google"
    if not target.exists():
        build(["c++", "-O2", HERE / "google.cc", "-lbenchmark", "-lpthread", "-o", target])
    return [str(target), "--benchmark_format=json"]


def in_criterion_itself(folder):
    return seven_in_haskell(folder, "seven-criterion", ["-DRIVAL=Criterion.Main"])


def in_tasty_bench(folder, source):
    if not source:
        raise Absent("it is in no package here; name the folder of its source with --tasty-bench")
    where = ["-w", "-DRIVAL=Test.Tasty.Bench", f"-i{pathlib.Path(source) / 'src'}"]
    return seven_in_haskell(folder, "seven-tasty-bench", where)


def in_nanobench(folder, header):
    need("c++")
    places = [header] if header else ["/usr/include", "/usr/local/include"]
    place = next((f for f in places if (pathlib.Path(f) / "nanobench.h").exists()), None)
    if not place:
        raise Absent("no nanobench.h (it is in no package here; name its folder with --nanobench)")
    build(["c++", "-O2", f"-I{place}", HERE / "nano.cc", "-o", folder / "nano"])
    return [str(folder / "nano")]

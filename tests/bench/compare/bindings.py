"""What a call costs from Go, Rust and Java on top of C: crossing.c and its twins, C and the language in turns, against an installed copy
of the build. Our figure is the price added, the peer's is what it may be, and their ratio is wanted to be 1 or more. A language
whose tools are missing is left out."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from sides import say

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.append(str(SOURCE / "tests" / "bindings"))
import programs  # noqa: E402
ALLOWED = {"Go": 300e-9, "Rust": 30e-9, "Java": 150e-9}
# What only some languages print: a run that a context may end, and one that is a future.
ENDS_EARLY = {"cancellable": ("a prepared run with a context that can end", 2e-6), "future": ("a brief run as a future", 5e-6)}


def build_go(folder, _):
    subprocess.run(["go", "build", "-o", folder / "crossing_go", SOURCE / "tests/bench/compare/crossing_go/main.go"], check=True, cwd=SOURCE / "bindings/go")
    return [folder / "crossing_go"]


def build_rust(_, build):
    target = build / "rust"
    command = ["cargo", "build", "-q", "--release", "-p", "crossing"]
    subprocess.run(command, check=True, cwd=SOURCE / "bindings/rust", env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    return [target / "release" / "crossing"]


def build_java(folder, _):
    """Without Maven: the classes, and the native half where the loader looks for it in a jar."""
    java, classes = SOURCE / "bindings/java", folder / "java"
    sources = [*(java / "src/main/java/org").rglob("*.java"), SOURCE / "tests/bench/compare/CrossingJava.java"]
    subprocess.run(["javac", "--release", "17", "-d", classes, *sources], check=True)
    subprocess.run(["sh", java / "native/build.sh", classes / "META-INF/native/linux-x86_64", programs.java_home()], check=True)
    return ["java", "-cp", classes, "CrossingJava"]


LANGUAGES = {"Go": ("go", build_go), "Rust": ("cargo", build_rust), "Java": ("javac", build_java)}


def figures(command):
    """{"crossing": seconds, "warm_step": seconds} of one run of a program."""
    output = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {row["name"]: row["ns"] * 1e-9 for row in rows}


def compare(run, language, command):
    ours, theirs = [], []
    for _ in range(run.options.pairs):
        theirs.append(figures([run.options.build / "bench_crossing"]))
        ours.append(figures(command))
    for name, what in (("crossing", "the cheapest call"), ("warm_step", "a prepared run")):
        added = max(statistics.median(a[name] - b[name] for a, b in zip(ours, theirs)), 1e-10)
        c = statistics.median(b[name] for b in theirs)
        run.table.add(40, f"{language}: {what}, on top of C's {c * 1e9:.0f} ns", added, ALLOWED[language], "what it may cost", ALLOWED[language] / added, 1)
    for name, (what, allowed) in ENDS_EARLY.items():
        if name not in ours[0]:
            continue
        added = max(statistics.median(a[name] - b["warm_step"] for a, b in zip(ours, theirs)), 1e-10)
        run.table.add(40, f"{language}: {what}, on top of C's prepared run", added, allowed, "what it may cost", allowed / added, 1)


def goal_40(run):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = run.options.build / "prefix"
        subprocess.run(["cmake", "--install", run.options.build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        os.environ.update(programs.environment(prefix))
        for language, (tool, build) in LANGUAGES.items():
            if shutil.which(tool) is None:
                say(f"goal 40  {language}: left out, {tool} is not installed")
                continue
            try:
                command = build(folder, run.options.build)
            except subprocess.CalledProcessError as failed:
                say(f"goal 40  {language}: left out, it did not build: {failed}")
                continue
            compare(run, language, command)


GOALS = {40: goal_40}

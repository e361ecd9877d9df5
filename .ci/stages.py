#!/usr/bin/env python3
"""Runs the stages of testing and adds up what passed.

    .ci/stages.py test sanitize fuzz-smoke     any of: test, sanitize, arm64, sim, fuzz-smoke, fuzz, bench

Each stage prints its time. The last line is `N passed, N failed`, counting GoogleTest cases one by one and every other test as
one; the exit code is 0 only if something passed and nothing failed. A stage that cannot run (a build that breaks, a configuration
that fails) counts as one failure, and the stages after it still run where they can.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = os.environ.get("JOBS") or str(os.cpu_count() or 1)
# Lines of a failed test's output that are printed again at the end, where a reader of a long log looks first.
LAST_WORDS = 60


class Tally:
    """Passed and failed so far, the names of what failed and how their output ended, and what was left out for want of a tool."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.last_words = []

    def fail(self, name):
        self.failed.append(name)


def say(text):
    print(text, flush=True)


def stage(name, command, quiet=False):
    """Runs one command and prints how long it took; False when it did not succeed. A quiet one is shown only then."""
    if not quiet:
        say(f"==> {name}")
    start = time.monotonic()
    capture = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True} if quiet else {}
    result = subprocess.run([str(word) for word in command], cwd=ROOT, check=False, **capture)
    code = result.returncode
    if quiet and code != 0:
        say(result.stdout)
    say(f"<== {name}: {'ok' if code == 0 else f'FAILED ({code})'} in {time.monotonic() - start:.1f} s")
    return code == 0


def configure_and_build(tally, preset, targets=()):
    extra = os.environ.get("CMAKE_FLAGS", "").split()
    # Configuring takes a second; its hundred lines of "-- found" are noise unless it fails.
    name = f"{preset}: configure"
    if not stage(name, ["cmake", "--preset", preset, *extra], quiet=True):
        tally.fail(name)
        return False
    name = f"{preset}: build"
    command = ["cmake", "--build", "--preset", preset, "-j", JOBS]
    if targets:
        command += ["--target", *targets]
    if not stage(name, command):
        tally.fail(name)
        return False
    return True


def count_gtest(tally, name, report):
    """Adds the cases of one GoogleTest report; False when there is no usable report (the program died)."""
    try:
        suites = json.loads(report.read_text())["testsuites"]
    except (OSError, ValueError, KeyError):
        return False
    for suite in suites:
        for case in suite["testsuite"]:
            if case.get("result") == "SKIPPED" or case.get("status") == "NOTRUN":
                continue
            if case.get("failures"):
                tally.fail(f"{name}: {suite['name']}.{case['name']}")
            else:
                tally.passed += 1
    return True


def run_tests(tally, preset, selection=()):
    build = ROOT / "build" / preset
    results = build / "results"
    results.mkdir(parents=True, exist_ok=True)
    for old in results.glob("*.json"):
        old.unlink()
    junit = results / "ctest.xml"
    # Real readers of our file formats; without them their tests would be skipped, so their absence is a failure.
    judges = subprocess.run([str(ROOT / ".deps" / "build.sh"), "--judges"], cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    if judges.returncode == 0:
        os.environ["DTG_PYTHON"] = judges.stdout.strip()
    else:
        tally.fail("the Python packages of tests/requirements.txt")
    # Many tests wait, for time or for other processes: one more than there are processors keeps those busy.
    stage(f"{preset}: tests", ["ctest", "--test-dir", build, "-j", str(int(JOBS) + 1), "--output-on-failure", "--no-tests=ignore",
                                      "--output-junit", junit, *selection])
    if not junit.exists():
        tally.fail(f"{preset}: ctest wrote no report")
        return
    slow = []
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        name, ok = case.get("name"), case.get("status") == "run"
        slow.append((float(case.get("time") or 0), name))
        if case.get("status") in ("notrun", "disabled"):
            # Skipped by itself (no data set here, say) is neither; a program that could not even start is a failure.
            if case.find("skipped") is None or "SKIP" not in (case.find("skipped").get("message") or ""):
                tally.fail(f"{preset}: {name} did not run")
            output = case.findtext("system-out") or ""
            tally.skipped += [line for line in output.splitlines() if line.startswith("SKIPPED ")]
            continue
        if not ok:
            tally.last_words.append((f"{preset}: {name}", (case.findtext("system-out") or "").splitlines()[-LAST_WORDS:]))
        before = len(tally.failed)
        counted = count_gtest(tally, f"{preset}: {name}", results / f"{name}.json")
        if ok and not counted:
            tally.passed += 1
        elif not ok and len(tally.failed) == before:
            tally.fail(f"{preset}: {name}")
    for seconds, name in sorted(slow, reverse=True)[:5]:
        if seconds >= 1:
            say(f"    {seconds:6.1f} s  {name}")


def test(tally):
    if configure_and_build(tally, "release"):
        run_tests(tally, "release")


def sanitize(tally):
    if configure_and_build(tally, "asan"):
        run_tests(tally, "asan")
    if configure_and_build(tally, "tsan"):
        run_tests(tally, "tsan")
    arm64_kernels(tally)


# The kernels' loops are other code on 64-bit ARM: built by a cross compiler and run by an emulator.
def arm64_kernels(tally):
    if not stage("arm64: dependencies", [ROOT / ".deps" / "build.sh", "--arm64"]):
        tally.fail("arm64: dependencies")
    elif configure_and_build(tally, "arm64", ["test_device", "test_ops"]):
        run_tests(tally, "arm64")


# The whole library there, and programs of all languages on it; takes long in an emulator, so it is run by hand.
def arm64(tally):
    arm64_kernels(tally)
    if not configure_and_build(tally, "arm64", ["dtg", "dtg_archive", "dtg_cli", "examples"]):
        return
    roots = []
    for name in ("java", "rust"):
        made = subprocess.run([str(ROOT / ".deps" / "build.sh"), "--arm64-root", name], cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
        roots.append(made.stdout.strip() if made.returncode == 0 else "-")
    results = ROOT / "build" / "arm64" / "results"
    os.environ["DTG_RESULTS"] = str(results)
    name = "arm64: programs in every language"
    ok = stage(name, [sys.executable, ROOT / "tests" / "arm64" / "arm64_test.py", ROOT / "build" / "arm64", ROOT, *roots])
    if not count_gtest(tally, name, results / "arm64.json") or not ok:
        tally.fail(name)


# A short run takes the same seeds every time; a long one takes those that nobody has tried.
def fuzz_graphs(tally, seconds):
    random = ROOT / "tests" / "random"
    first = 1_000_000 if seconds <= 30 else int(time.time()) * 1000
    command = [ROOT / "build" / "asan" / "random_graphs", "--from", first, "--count", 10**9, "--seconds", seconds,
               "--jobs", JOBS, "--corpus", random / "corpus"]
    if stage(f"fuzz random_graphs ({seconds} s)", command):
        tally.passed += 1
    else:
        tally.fail("fuzz random_graphs: reproduce with the seed named above")


# Seeds that nobody has tried, unless FROM says which.
def sim(tally):
    if not configure_and_build(tally, "release", ["sim_cluster"]):
        return
    first = os.environ.get("FROM") or int(time.time()) * 1000
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True).stdout.strip()
    seeds = int(os.environ.get("SEEDS", "10000"))
    # A group's seed takes some three times as long as a cluster's.
    for name, count, words in (("simulated clusters", seeds, []), ("simulated groups", max(1, seeds // 4), ["--groups"]),
                               ("simulated closures", seeds, ["--closures"]), ("simulated bounded staleness", seeds, ["--bounded"])):
        command = [ROOT / "build" / "release" / "sim_cluster", *words, "--from", first, "--count", count, "--jobs", JOBS,
                   "--ledger", ROOT / "tests" / "sim" / "ledger.tsv", "--commit", commit or "-"]
        if stage(name, command):
            tally.passed += 1
        else:
            tally.fail(f"{name}: reproduce with the seed named above")


def fuzz(tally, seconds):
    targets = sorted(path.stem for path in (ROOT / "fuzz").glob("*.cc"))
    if not targets:
        say("    no fuzz targets")
        return
    if not configure_and_build(tally, "asan", [*[f"fuzz_{name}" for name in targets], "random_graphs"]):
        return
    fuzz_graphs(tally, seconds)
    # Each takes one processor.
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        for name, ok in zip(targets, pool.map(lambda name: fuzz_target(name, seconds), targets)):
            if ok:
                tally.passed += 1
            else:
                tally.fail(f"fuzz {name}: reproduce with the file named above")


def fuzz_target(name, seconds):
    seeds = ROOT / "fuzz" / "corpus" / name
    # New finds go to the build folder; the committed corpus is only read.
    work = ROOT / "build" / "fuzz" / name
    work.mkdir(parents=True, exist_ok=True)
    command = [ROOT / "build" / "asan" / f"fuzz_{name}", f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
               "-print_final_stats=0", "-verbosity=0", f"-artifact_prefix={work}/crash-", work]
    if seeds.is_dir():
        command.append(seeds)
    return stage(f"fuzz {name} ({seconds} s)", command, quiet=True)


def bench(tally):
    sources = sorted((ROOT / "tests" / "bench").glob("*.cc"))
    if not sources:
        say("    no benchmarks")
        return
    if not configure_and_build(tally, "release", ["bench"]):
        return
    for source in sources:
        name = "bench_" + re.sub(r"_bench$", "", source.stem)
        if stage(name, [ROOT / "build" / "release" / name]):
            tally.passed += 1
        else:
            tally.fail(name)
    compare = ROOT / "tests" / "bench" / "compare" / "compare.py"
    command = [sys.executable, compare, "--build", ROOT / "build" / "release", "--json", ROOT / "build" / "bench.json"]
    if stage("bench against the peers", command):
        tally.passed += 1
    else:
        tally.fail("bench against the peers")


STAGES = {
    "test": test,
    "sanitize": sanitize,
    "arm64": arm64,
    "sim": sim,
    "fuzz-smoke": lambda tally: fuzz(tally, 10),
    "fuzz": lambda tally: fuzz(tally, int(os.environ.get("FUZZ_SECONDS") or 600)),
    "bench": bench,
}


def main():
    wanted = sys.argv[1:]
    if not wanted or any(name not in STAGES for name in wanted):
        say(__doc__)
        return 2
    start = time.monotonic()
    tally = Tally()
    for name in wanted:
        STAGES[name](tally)
    for name, lines in tally.last_words:
        say(f"the end of {name}:")
        for line in lines:
            say(f"    {line}")
    for line in tally.skipped:
        say(line)
    for name in tally.failed:
        say(f"FAILED  {name}")
    say(f"total {time.monotonic() - start:.1f} s")
    say(f"{tally.passed} passed, {len(tally.failed)} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())

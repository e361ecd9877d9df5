#!/usr/bin/env python3
"""Does random_graphs find a planner that is wrong on purpose?

    tests/random/mutants/run.py [NAME ...]      all patches of this folder, or these

Works in a git worktree of its own below build/, at the last commit, so nothing of yours is touched; refuses while there are changes
that are not committed, because they would not be tried. A mutant is found when a graph fails with it that does not fail without
it. A line "# flags: ..." in a patch is handed to random_graphs. The last line is `N found, N missed`.
"""

import atexit
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TREE = ROOT / "build" / "mutants"
BINARY = TREE / "build" / "release" / "random_graphs"
SECONDS = 60


def git(*words, cwd=ROOT, check=True):
    return subprocess.run(["git", *words], cwd=cwd, check=check, capture_output=True, text=True).stdout


def drop_tree():
    git("worktree", "remove", "--force", str(TREE), check=False)
    git("worktree", "prune", check=False)


def build(target="random_graphs"):
    subprocess.run(["cmake", "--preset", "release"], cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(["cmake", "--build", "build/release", "--target", target, "-j", "2"], cwd=TREE, check=False, capture_output=True,
                          text=True)
    if done.returncode != 0:
        print(done.stdout[-3000:])
    return done.returncode == 0


def failures(flags, known):
    """The first failure that is not among the known ones, and all that were seen until then: pairs of seed and mode."""
    command = [str(BINARY), "--count", "1000000", "--seconds", str(SECONDS), "--most", "1000000", *flags]
    seen = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        for line in program.stdout:
            words = re.match(r"FAILED  (\S+) (\S+)", line)
            if not words:
                continue
            seen.add(words.groups())
            if known is not None and words.groups() not in known:
                program.terminate()
                return line.strip(), seen
    return None, seen


def flags_of(patch):
    found = re.search(r"^# flags: (.*)$", patch.read_text(), re.MULTILINE)
    return found.group(1).split() if found else []


def judge(patch, baselines):
    flags = flags_of(patch)
    key = " ".join(flags)
    if key not in baselines:
        if not build():
            return False
        baselines[key] = failures(flags, None)[1]
        print(f"without a mutant ({key or 'all modes'}): {len(baselines[key])} failures in {SECONDS} s", flush=True)
    git("apply", str(patch), cwd=TREE)
    try:
        start = time.monotonic()
        if not build():
            print(f"MISSED  {patch.stem}: it does not build")
            return False
        start = time.monotonic()
        found, _ = failures(flags, baselines[key])
        print(f"found   {patch.stem} in {time.monotonic() - start:.1f} s: {found}" if found else f"MISSED  {patch.stem} in {SECONDS} s", flush=True)
        return found is not None
    finally:
        git("checkout", "--", ".", cwd=TREE)


def main(folder=HERE, tried=judge):
    wanted = sys.argv[1:]
    patches = [path for path in sorted(folder.glob("*.patch")) if not wanted or path.stem in wanted]
    if not patches:
        print(f"no such mutant: {' '.join(wanted)}")
        return 2
    if git("status", "--porcelain").strip():
        print("there are changes that are not committed; the mutants are tried on the last commit")
        return 2
    drop_tree()
    atexit.register(drop_tree)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    git("worktree", "add", "--detach", str(TREE), "HEAD")
    baselines = {}
    results = [tried(patch, baselines) for patch in patches]
    print(f"{sum(results)} found, {len(results) - sum(results)} missed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

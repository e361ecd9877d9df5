#!/usr/bin/env python3
"""Does the simulator find a cluster that is wrong on purpose?

    tests/sim/mutants/run.py [NAME ...]      all patches of this folder, or these

Works as tests/random/mutants/run.py does, in a git worktree at the last commit. A mutant is found when a seed fails with it within 10,000;
a line "# flags: ..." in a patch says which workload. Without a mutant none of the first 300 seeds may fail. The last line is `N found, N missed`.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SEEDS, SOUND = 10_000, 300

spec = importlib.util.spec_from_file_location("planners", HERE.parents[1] / "random" / "mutants" / "run.py")
planners = importlib.util.module_from_spec(spec)
spec.loader.exec_module(planners)
BINARY = planners.TREE / "build" / "release" / "sim_cluster"


def first_failure(flags, seeds):
    """The first seed that fails and what it says; None where none does."""
    with subprocess.Popen([str(BINARY), *flags, "--from", "1", "--count", str(seeds)], stdout=subprocess.PIPE, text=True) as program:
        for line in program.stdout:
            if re.match(r"seed \d+: ", line):
                program.terminate()
                return line.strip()
    return None


def judge(patch, sound):
    flags = planners.flags_of(patch)
    key = " ".join(flags)
    if key not in sound:
        if not planners.build("sim_cluster"):
            return False
        failed = first_failure(flags, SOUND)
        print(f"without a mutant ({key or 'cluster'}): {failed or f'{SOUND} seeds, none failed'}", flush=True)
        sound[key] = failed is None
    if not sound[key]:
        return False
    planners.git("apply", str(patch), cwd=planners.TREE)
    try:
        if not planners.build("sim_cluster"):
            print(f"MISSED  {patch.stem}: it does not build")
            return False
        start = time.monotonic()
        found = first_failure(flags, SEEDS)
        said = f"found   {patch.stem} in {time.monotonic() - start:.1f} s: {found}" if found else f"MISSED  {patch.stem} in {SEEDS} seeds"
        print(said, flush=True)
        return found is not None
    finally:
        planners.git("checkout", "--", ".", cwd=planners.TREE)


if __name__ == "__main__":
    sys.exit(planners.main(HERE, judge))

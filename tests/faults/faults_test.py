#!/usr/bin/env python3
"""Kills a process that saves sets, and makes its system calls fail, each in turn; then looks what a restore finds.

Usage: faults_test.py SAVER [--kills N] [--calls few|all]

Every system call that a save makes on files is counted once by strace. Then each of them, by its number, ends in SIGKILL, EIO, ENOSPC
or EINTR. Afterwards the newest set must be the old one or the new one, whole, and the new one where the saver had said so; and the next
save must work. --kills: besides, so many SIGKILLs at random moments of a process that saves without pause. --calls few: only the calls
that change the disk, and no EINTR. Exits 77 where strace is missing or may not trace.
"""

import argparse
import collections
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

FEW = {"fsync", "rename", "mkdir", "fallocate", "unlink", "rmdir"}
ALL = FEW | {"openat", "write", "read", "close", "newfstatat", "fstat", "lstat", "stat", "statfs", "fstatfs", "getdents64"}
FAULTS = {"SIGKILL": "signal=KILL", "EIO": "error=EIO", "ENOSPC": "error=ENOSPC", "EINTR": "error=EINTR"}
LIMIT = 120


class Wrong(Exception):
    pass


def run(*words):
    return subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True, timeout=LIMIT)


def newest(saver, folder):
    told = run(saver, "check", folder)
    if told.returncode != 0:
        raise Wrong(f"cannot be restored: {told.stderr.strip()}")
    return 0 if told.stdout.strip() == "none" else int(told.stdout)


def published(text):
    steps = [int(step) for step in re.findall(r"^published (\d+)$", text, re.M)]
    return steps[-1] if steps else 0


def look(saver, folder, said, old, new):
    """What is there after a fault: one of the two, and the new one where that was said."""
    found = newest(saver, folder)
    if found not in ((new,) if said == new else (old, new)):
        raise Wrong(f"step {found} is the newest; {old} was there, {said or 'nothing'} was published")
    return found


def count_calls(saver, folder, calls):
    log = folder.parent / "calls"
    told = run("strace", "-f", "-qq", "-o", log, saver, "save", folder, 2)
    if told.returncode != 0 or published(told.stdout) != 2:
        return None
    # The loader's calls are not ours: they end where the folder is first named.
    lines = log.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if str(folder) in line and "execve" not in line)
    seen, ours = collections.Counter(), []
    for i, line in enumerate(lines):
        match = re.match(r"(?:\d+\s+)?(\w+)\(", line)
        if match:
            seen[match[1]] += 1
            if i >= first and match[1] in calls:
                ours.append((match[1], seen[match[1]]))
    return ours


def fault_each_call(saver, scratch, calls, faults):
    base = scratch / "base"
    if published(run(saver, "save", base, 1).stdout) != 1:
        raise Wrong("nothing can be saved here at all")
    folder = scratch / "run"
    shutil.copytree(base, folder)
    ours = count_calls(saver, folder, calls)
    if ours is None:
        print("SKIPPED faults: strace cannot trace here", flush=True)
        sys.exit(77)
    tally, wrong = collections.Counter(), []
    for name, number in ours:
        for fault, injected in faults.items():
            shutil.rmtree(folder)
            shutil.copytree(base, folder)
            told = run("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:{injected}:when={number}",
                       saver, "save", folder, 2)
            try:
                found = look(saver, folder, published(told.stdout), 1, 2)
                if run(saver, "save", folder, 3).returncode != 0 or newest(saver, folder) != 3:
                    raise Wrong("the next save fails")
                tally["old" if found == 1 else "new"] += 1
            except Wrong as problem:
                wrong.append(f"{fault} at {name} number {number}: {problem}")
    print(f"faults: {len(ours)} calls, {tally['old'] + tally['new'] + len(wrong)} faults ({', '.join(faults)}): "
          f"{tally['old']} left the old set, {tally['new']} the new, {len(wrong)} anything else", flush=True)
    return wrong


def kill_at_random(saver, scratch, kills):
    folder = scratch / "killed"
    wrong, old, saved = [], 0, 0
    for kill in range(kills):
        with subprocess.Popen([saver, "loop", folder, str(old + 1)], stdout=subprocess.PIPE, text=True) as process:
            time.sleep(random.uniform(0.002, 0.08))
            process.kill()
            said = published(process.communicate()[0])
        try:
            found = newest(saver, folder)
            # The last one may have been published without a word.
            if found not in (max(old, said), max(old, said) + 1):
                raise Wrong(f"step {found} is the newest; {max(old, said)} was published")
            saved += found - old
            old = found
        except Wrong as problem:
            wrong.append(f"kill {kill}: {problem}")
            break
    if kills:
        print(f"faults: {kills} kills among {saved} saves, {len(wrong)} unreadable or gone back", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("saver", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--calls", choices=["few", "all"], default="all")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        print("SKIPPED faults: strace is not installed; to install it: apt-get install strace", flush=True)
        return 77
    few = options.calls == "few"
    faults = {name: how for name, how in FAULTS.items() if not few or name != "EINTR"}
    with tempfile.TemporaryDirectory() as scratch:
        wrong = fault_each_call(options.saver, pathlib.Path(scratch), FEW if few else ALL, faults)
        wrong += kill_at_random(options.saver, pathlib.Path(scratch), options.kills)
    for problem in wrong:
        print(f"faults: {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Members of a group that die or stand still at random moments, as real processes: the others hear the name of the lost one within
T_dead + 1 s, agree on the next epoch within 1 s, and make each step once. The seed is printed.

    tests/checks/group_kill_test.py EXAMPLE_GROUP [--rounds N] [--seed N]
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

SIZE = 4
STEPS = 400
DEAD = 5.0  # s, the default


class Member:
    def __init__(self, command, cluster, index, extra):
        environment = dict(os.environ, TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}), **extra)
        self.index = index
        self.lines = []  # (time, text)
        self.process = subprocess.Popen([*command, str(STEPS), "1500"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))

    def find(self, pattern):
        return next(((when, re.search(pattern, text)) for when, text in self.lines if re.search(pattern, text)), None)

    def wait_for(self, pattern, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.find(pattern):
                return found
            time.sleep(0.005)
        return None

    def all(self):
        return f"--- member {self.index}\n" + "\n".join(text for _, text in self.lines)


def round_of(commands, chance, faults, fate=None, extra=None):
    """`commands`: of the members. `fate`: a signal, and which of them gets it."""
    how, which = fate or (chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)), chance.randrange(SIZE))
    with tempfile.TemporaryDirectory() as folder:
        cluster = {"worker": [f"unix:{folder}/w{i}" for i in range(SIZE)]}
        members = [Member(command, cluster, i, extra or {}) for i, command in enumerate(commands)]
        victim = members[which]
        others = [member for member in members if member is not victim]
        try:
            if not all(member.wait_for("joined: rank", 30) for member in members):
                return faults.append("they did not come together\n" + "\n".join(member.all() for member in members))
            time.sleep(chance.uniform(0, 0.5))
            began = time.monotonic()
            victim.process.send_signal(how)
            for member in others:
                what = f"{how.name} of {victim.index}, seen by {member.index}"
                heard = member.wait_for("^lost: ", DEAD + 4)
                if not heard:
                    faults.append(f"{what}: nothing was heard\n{member.all()}")
                    continue
                line = next(text for _, text in member.lines if text.startswith("lost: "))
                if f"/job:worker/replica:0/task:{victim.index})" not in line:
                    faults.append(f"{what}: it names somebody else: {line}")
                limit = (DEAD if how == signal.SIGSTOP else 0) + 1
                if heard[0] - began > limit:
                    faults.append(f"{what}: heard after {heard[0] - began:.2f} s, {limit:.0f} s are allowed")
                formed = member.wait_for(r"^re-formed in ([\d.]+) s: rank \d+ of 3", 20)
                if not formed or float(formed[1][1]) > 1.0:
                    faults.append(f"{what}: it did not go on within 1 s\n{member.all()}")
            ends = set()
            for member in others:
                try:
                    member.process.wait(60)
                except subprocess.TimeoutExpired:
                    faults.append(f"{how.name} of {victim.index}: member {member.index} does not end\n{member.all()}")
                    member.process.kill()
                member.reader.join()
                done = member.find(r"^done: .*")
                ends.add(done[1][0] if done else f"no end\n{member.all()}")
            # Four ranks add 3 to the first row in each step, three add 2.
            row = re.search(r"row (\d+)$", next(iter(ends)))
            if len(ends) != 1 or f"done: {STEPS} steps, weight {STEPS * (STEPS + 1) // 2:g}," not in next(iter(ends)) or not row or not 2 * STEPS <= int(row[1]) <= 3 * STEPS:
                faults.append(f"{how.name} of {victim.index}: " + "\n".join(sorted(ends)))
        finally:
            for member in members:
                member.process.kill()
                member.process.wait()
                member.reader.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    chance, faults = random.Random(args.seed), []
    for number in range(args.rounds):
        began = time.monotonic()
        before = len(faults)
        round_of([[str(pathlib.Path(args.program).resolve())]] * SIZE, chance, faults)
        print(f"round {number}: {'ok' if len(faults) == before else 'FAILED'} in {time.monotonic() - began:.1f} s", flush=True)
    for fault in faults:
        print("FAILED:", fault)
    print(f"{args.rounds - len(faults) if len(faults) < args.rounds else 0} passed, {len(faults)} failed")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

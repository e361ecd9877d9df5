#!/usr/bin/env python3
"""Compares libdtg with TensorFlow and PyTorch on this machine: one ratio per line, and all of them in build/bench.json.

    tests/bench/compare/compare.py --build build/release [--goals 1,2,9] [--pairs 5] [--json build/bench.json]

Every ratio is taken A B A B, the median of the pairs counts. Each peer runs in each of its configurations, one process per
configuration that stays alive, and the fastest one is the peer of the row. The peers are installed from PyPI on first use, into a
virtual environment in the cache (DTG_CACHE_DIR) or in DTG_BENCH_VENV; without a network the rows against them are left out. The
exit code says whether the measuring worked, never whether we won: a goal that is missed is a line that says so.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import bindings
import checkpoint
import cluster
import collectives
import control
import durability
import planning
from sides import Side, Table, race, say, side_by_side

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE / "peers"


# ---- the peers' installation -------------------------------------------------------------------------------------------------

def environment():
    """The Python of the peers, or None when it cannot be made."""
    cache = pathlib.Path(os.environ.get("DTG_CACHE_DIR") or pathlib.Path.home() / ".cache" / "dtg")
    home = pathlib.Path(os.environ.get("DTG_BENCH_VENV") or cache / "bench-venv")
    python, done = home / "bin" / "python", home / "installed"
    if done.exists() or ("DTG_BENCH_VENV" in os.environ and python.exists()):
        return python
    say(f"    installing the peers into {home} (gigabytes, once)")
    home.parent.mkdir(parents=True, exist_ok=True)
    for command in ([sys.executable, "-m", "venv", home], [python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"]):
        if subprocess.run([str(word) for word in command], check=False).returncode != 0:
            say("    the peers could not be installed; the rows against them are left out")
            return None
    done.write_text("")
    return python


# ---- rows ------------------------------------------------------------------------------------------------------------------

class Comparison:
    """One run of the driver: the processes of all sides, by threads."""

    def __init__(self, options, python):
        self.options, self.python = options, python
        self.table = Table()
        self.sides = {}

    def ours(self, threads):
        return self.side(("dtg", threads), [self.options.build / "bench_ours", threads])

    def torch(self, threads):
        return self.side(("torch", threads), [self.python, PEERS / "torch_peer.py", threads])

    def tf(self, threads, onednn=True):
        name = "TF" if onednn else "TF without oneDNN"
        command = [self.python, PEERS / "tf_peer.py", threads]
        return self.side((name, threads), command, {"TF_ENABLE_ONEDNN_OPTS": "1" if onednn else "0"})

    def side(self, key, command, extra=None):
        if key not in self.sides:
            self.sides[key] = Side(key[0], command, extra)
        return self.sides[key]

    def race(self, goal, workload, name, threads, candidates, target, note=""):
        names = [(side, [workload + form for form in forms]) for side, forms in candidates]
        race(self.table, self.options.pairs, (goal, name, target, note), (self.ours(threads), workload), names)

    def end(self):
        for side in self.sides.values():
            if side:
                side.end()
        cluster.end(self)


def tf_forms(run, threads, forms=("", ":function", ":xla")):
    return [(run.tf(threads), forms), (run.tf(threads, onednn=False), forms[:1])]


def goal_1(run):
    if run.python:
        run.race(1, "call", "call, result in place", 1, [(run.torch(1), [""])], 1 / 0.6)
        run.race(1, "call_new", "call, new result", 1, [(run.torch(1), [""])], 1 / 0.6)
        run.race(1, "call", "call, result in place", 1, [(run.tf(1), [""])], 150)


def goal_2(run):
    if run.python:
        run.race(2, "chain", "chain of 1,000 adds, per add", 1, [(run.torch(1), [""])], 20)
        run.race(2, "chain", "chain of 1,000 adds, per add", 1, [(run.tf(1), [""])], 8)


def goal_3(run):
    if run.python:
        run.race(3, "chain_gradient", "the chain and its gradient, per add", 1, [(run.torch(1), [""])], 30)


def goal_4(run):
    if run.python:
        run.race(4, "tiny", "MLP 8-8-2 b4 step", 1, [(run.torch(1), [""])], 8)
        run.race(4, "tiny", "MLP 8-8-2 b4 step", 1, tf_forms(run, 1), 15)


def training_goal(run, goal, workload, name, torch_forms, targets):
    if not run.python:
        return
    for threads in (1, 2):
        rate = second_cpu(run.options.build) if threads == 2 else FULL_RATE
        if rate is None:
            say(f"goal {goal:2}  {name}, 2 threads: left out, there is one CPU only")
            continue
        note = "" if rate >= FULL_RATE else f"doubtful: two CPUs at once gave {rate:.2f} G additions/s, not {FULL_RATE:g}"
        candidates = tf_forms(run, threads) + [(run.torch(threads), torch_forms)]
        run.race(goal, workload, f"{name}, {threads} thread{'s' * (threads > 1)}", threads, candidates, targets[threads - 1], note)


def goal_9(run):
    training_goal(run, 9, "mlp", "MLP 784-512-512-10 b128 step", ["", ":compiled"], (1.06, 1.3))


def goal_10(run):
    training_goal(run, 10, "lenet", "LeNet b128 step", ["", ":channels_last"], (1.06, 1.3))


def goal_21(run):
    """The same call where the graph has 100,000 nodes; the ratio wanted is that of an equal cost within 1.2x."""
    side = run.ours(1)
    result = side_by_side(lambda: side.measure("call_big"), lambda: side.measure("call"), max(run.options.pairs, 9))
    if result:
        run.table.add(21, "call on a graph of 100,000 nodes", result[0], result[1], "call on a graph of 3 nodes", result[2], 1 / 1.2)


def goal_22(run):
    mine = run.ours(1)
    for side in (run.torch(1), run.tf(1)) if run.python else ():
        result = side_by_side(lambda: mine.start_to_first_step("mlp"), lambda: side.start_to_first_step("mlp"), run.options.pairs)
        if result:
            run.table.add(22, "process start to first MLP step", result[0], result[1], side.name, result[2], 20)


def section_sizes(library):
    """Bytes of the file as installed, and of what in it is oneDNN's, from the symbols."""
    # Into a folder of its own: strip replaces the file that it is told to write, whatever that is.
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "stripped"
        subprocess.run(["strip", "--strip-unneeded", "-o", str(stripped), str(library)], check=True)
        whole = stripped.stat().st_size
    symbols = subprocess.run(["nm", "-S", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    total = 0
    for line in symbols.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTrRdDvVwWuVbB" and ("dnnl" in words[3] or "Xbyak" in words[3]):
            total += int(words[1], 16) if words[2] not in "bB" else 0
    return whole, total


def run_bytes(command):
    return subprocess.run([str(word) for word in command], capture_output=True, check=True).stdout


def goal_24(run):
    library = run.options.build / "libdtg.so"
    whole, onednn = section_sizes(library)
    run.table.add(24, "libdtg.so, stripped", whole / 1e6, 45.0, "45 MB", 45e6 / whole, 1, "MB")
    ours = whole - onednn
    run.table.add(24, "libdtg.so without oneDNN's symbols", ours / 1e6, 8.0, "8 MB", 8e6 / ours, 1, "MB")


def goal_25(run):
    """Resident memory after start, and after training."""
    def one(side, workload=None):
        if workload:
            side.measure(workload)
        return int(side.ask("memory") or 0) / 1024

    rows = []
    for make in (run.ours, run.torch, run.tf) if run.python else (run.ours,):
        old = make(1)
        fresh = Side(old.name, old.command, old.extra)
        rows.append((old.name, one(fresh), one(fresh, "mlp")))
        fresh.end()
    _, idle, training = rows[0]
    run.table.add(25, "memory, idle", idle, 12.0, "12 MB", 12 / idle, 1, "MB")
    run.table.add(25, "memory, training the MLP", training, 40.0, "40 MB", 40 / training, 1, "MB")
    for name, peer_idle, peer_training in rows[1:]:
        run.table.add(25, "memory, idle", idle, peer_idle, name, peer_idle / idle, 15, "MB")
        run.table.add(25, "memory, training the MLP", training, peer_training, name, peer_training / training, 6, "MB")


def goal_27(run):
    """What one hundred warm steps allocate, release and lock: nothing."""
    for threads in (1, 2):
        side = Side("dtg", [run.options.build / "bench_ours_counted", threads])
        for workload in ("call", "call_new", "tiny", "mlp", "lenet"):
            answer = side.ask(f"allocations {workload}")
            if not answer:
                say(f"goal 27  {workload}: no answer")
                continue
            total = sum(int(word) for word in answer.split())
            run.table.add(27, f"{workload}, 100 calls, {threads} thread{'s' * (threads > 1)}: allocations + frees + locks", total, 0,
                          "none", 1.0 if total == 0 else 0.0, 1, "events")
        side.end()


GOALS = {1: goal_1, 2: goal_2, 3: goal_3, 4: goal_4, 9: goal_9, 10: goal_10, 21: goal_21, 22: goal_22, 24: goal_24, 25: goal_25,
         27: goal_27, **cluster.GOALS, **collectives.GOALS, **bindings.GOALS, **planning.GOALS,
         **checkpoint.GOALS, **control.GOALS, **durability.GOALS}


# What a CPU of the machines that the goals were set on gives by itself (billions of dependent additions per second).
FULL_RATE = 4.0


def second_cpu(build):
    """The rate of the slower of two CPUs that work at the same time, or None where there is one. The second one is
    sometimes a mere promise of the machine below, or somebody else is at work; then two threads say little."""
    if len(os.sched_getaffinity(0)) < 2:
        return None
    return max(float(run_bytes([build / "bench_spin"])) for _ in range(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--goals", default=",".join(str(goal) for goal in GOALS))
    options = parser.parse_args()
    options.build = options.build.resolve()
    run = Comparison(options, environment())
    failed = []
    try:
        for goal in (int(word) for word in options.goals.split(",")):
            # A side that cannot be built or ends early takes its own rows with it, not those after them.
            try:
                GOALS[goal](run)
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                failed.append(goal)
                say(f"goal {goal:2}  could not be measured: {error}")
    finally:
        run.end()
    out = options.json or options.build.parent / "bench.json"
    out.write_text(json.dumps(run.table.rows, indent=1) + "\n")
    reached = sum(row["pass"] for row in run.table.rows)
    say(f"{reached} of {len(run.table.rows)} ratios reached; all in {out}")
    if failed:
        say(f"not measured: goals {', '.join(str(goal) for goal in failed)}")
    return 0 if run.table.rows and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

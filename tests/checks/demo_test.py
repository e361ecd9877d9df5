"""Trains the demo on the digits of the repository, alone and as clusters of processes, and lets other people's readers open what it
leaves behind. Equal seeds must give equal files: run after run, over unix sockets and TCP, and as towers in one process.

Usage: demo_test.py PROGRAM DTG    with DTG_PYTHON naming a Python that has tests/requirements.txt; without it nobody reads the run
directories, and once the rest is done the test counts as skipped (77).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, DTG = sys.argv[1:3]
LAUNCH = [DTG, "run", "--local", "--workers", "2"]

# What is started, how, and how good it must get in that many epochs.
CASES = {
    "alone": ([], [], 20),
    "towers": ([], ["--shards", "2"], 6),
    "sync": (LAUNCH, ["--mode", "sync"], 6),
    "sync-again": (LAUNCH, ["--mode", "sync"], 6),
    "sync-tcp": ([*LAUNCH, "--channel", "tcp"], ["--mode", "sync"], 6),
    "sync-2ps": ([*LAUNCH, "--ps", "2", "--channel", "tcp", "--clear-frames"], ["--mode", "sync"], 6),
    "multi-worker": ([*LAUNCH, "--ps", "0"], ["--strategy", "multi-worker"], 6),
    "towers-4": ([], ["--shards", "4"], 6),
    "one": ([], ["--strategy", "one"], 6),
    "mirrored": ([], ["--strategy", "mirrored", "--shards", "4"], 6),
    "central": ([], ["--strategy", "central", "--shards", "4"], 6),
    "custom": ([], ["--strategy", "custom", "--shards", "4"], 6),
    "multi-worker-4": ([*LAUNCH[:-1], "4", "--ps", "0"], ["--strategy", "multi-worker"], 6),
    "coordinator": ([*LAUNCH, "--chief"], ["--strategy", "coordinator"], 6),
    "sync-replicas": (LAUNCH, ["--mode", "sync-replicas"], 6),
    "async": (LAUNCH, ["--mode", "async"], 6),
    "elastic": (LAUNCH, ["--mode", "elastic"], 6),
    "ssp": (LAUNCH, ["--mode", "ssp", "--staleness", "2"], 6),
}
EQUAL = {"towers": ["sync", "sync-again", "sync-tcp", "sync-2ps", "multi-worker"], "towers-4": ["mirrored", "central", "multi-worker-4"]}
# What trains on whole batches, however they are cut, comes to one accuracy.
ALIKE = ["towers", "sync", "multi-worker", "towers-4", "one", "mirrored", "central", "custom", "multi-worker-4"]


def train(name, run, python):
    launch, options, epochs = CASES[name]
    # A data folder that is not there makes the program take the digits.
    command = [PROGRAM, "--data", os.path.join(run, "absent"), "--run", run, "--epochs", str(epochs), "--batch", "32", "--rate", "0.03",
               *options]
    told = subprocess.run([*launch, *(["--"] if launch else []), *command], check=False, cwd=HERE.parent.parent, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if told.returncode != 0:
        print(f"{name}: exit code {told.returncode}\n{told.stdout}")
        return False
    if not python:
        return True
    return subprocess.run([python, HERE / "run_dir_check.py", run, "--min-accuracy", "0.85"], check=False, timeout=100).returncode == 0


def main():
    python = os.environ.get("DTG_PYTHON")
    with tempfile.TemporaryDirectory() as place:
        failed = [name for name in CASES if not train(name, os.path.join(place, name), python)]
        weights = {name: pathlib.Path(place, name, "model.safetensors").read_bytes() for name in CASES if name not in failed}
        right = {name: json.loads(pathlib.Path(place, name, "summary.json").read_text())["accuracy"] for name in ALIKE if name not in failed}
    for towers, names in EQUAL.items():
        for name in names:
            if name in weights and weights[name] != weights.get(towers):
                print(f"{name}: other weights than {towers} in one process")
                failed.append(name)
    for name, accuracy in right.items():
        if abs(accuracy - right.get("towers", 0)) > 0.02:
            print(f"{name}: accuracy {accuracy}, and {right.get('towers')} of two towers")
            failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "demo: all as expected")
    if failed:
        return 1
    if not python:
        print("skipped the readers: DTG_PYTHON names no Python with the packages of tests/requirements.txt")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())

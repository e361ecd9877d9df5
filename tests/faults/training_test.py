#!/usr/bin/env python3
"""Kills a program that trains and saves checkpoints, over and over, starting it again with the same command; then compares the weights.

Usage: training_test.py EXAMPLE DTG [--kills N]

EXAMPLE is example_fashion_mnist, which saves a set after as many steps as it can; DTG the dtg command. After each SIGKILL every byte of
every set must be as it was saved, and the newest may not be of an earlier step than before. The training that was killed so often must end
with the bytes of one that was not. Training that ends before all kills were made begins anew, in another directory.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

LIMIT = 300
EPOCHS = 12


class Wrong(Exception):
    pass


def command(example, run, sets):
    words = [example, "--data", "absent", "--epochs", EPOCHS, "--run", run]
    return [str(word) for word in words + (["--checkpoint", sets, "--every", 1] if sets else [])]


def told(dtg, action, sets):
    done = subprocess.run([str(dtg), "checkpoint", action, str(sets), "--json"], check=False, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        raise Wrong(f"dtg checkpoint {action}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def names(sets):
    return {entry.name for entry in sets.iterdir()} if sets.exists() else set()


def newest(dtg, sets):
    """The step of the newest set, after every byte of all was read; 0 where there is none yet."""
    if not any(name.startswith("step-") for name in names(sets)):
        return 0
    for each in told(dtg, "verify", sets)["sets"]:
        if not each["valid"]:
            raise Wrong(f"{each['name']} is damaged: {each['problems']}")
    return max(each["step"] for each in told(dtg, "list", sets)["sets"])


def finish(example, run, sets):
    done = subprocess.run(command(example, run, sets), check=False, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        raise Wrong(f"training failed: {done.stdout}{done.stderr}")
    return (run / "model.safetensors").read_bytes()


def wait_for_a_save(process, sets):
    """Until the process has begun a save, and then a moment; False when it ended before. How long a busy machine takes to get there says
    nothing about when to kill."""
    before = names(sets)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and names(sets) <= before:
        if process.poll() is not None:
            return False
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.06))
    return process.poll() is None


def train_and_kill(example, dtg, scratch, kills):
    """How many kills it took, and between which steps they were, until `kills` or the end of training."""
    run, sets = scratch / "run", scratch / "sets"
    made, step, hit = 0, 0, 0
    while made < kills:
        with subprocess.Popen(command(example, run, sets), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            over = not wait_for_a_save(process, sets)
            process.kill()
            words = process.communicate()[1]
        if over and process.returncode != 0:
            raise Wrong(f"training failed after {made} kills: {words}")
        found = newest(dtg, sets)
        if found < step:
            raise Wrong(f"step {found} is the newest, {step} was there before")
        hit += any(name.startswith(".saving-") for name in names(sets))
        step = found
        if over:
            break
        made += 1
    return made, hit, finish(example, run, sets)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("example", type=pathlib.Path)
    parser.add_argument("dtg", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args()
    made = hit = lives = 0
    try:
        with tempfile.TemporaryDirectory() as scratch:
            wanted = finish(options.example, pathlib.Path(scratch) / "run", None)
        while made < options.kills:
            with tempfile.TemporaryDirectory() as scratch:
                kills, writing, weights = train_and_kill(options.example, options.dtg, pathlib.Path(scratch), options.kills - made)
            made, hit, lives = made + kills, hit + writing, lives + 1
            if weights != wanted:
                raise Wrong(f"after {kills} kills the weights are not those of a training without")
            if kills == 0 and lives > 20:
                raise Wrong("training ends before it can be killed")
    except Wrong as problem:
        print(f"training: after {made} kills: {problem}")
        return 1
    print(f"training: {made} kills of {lives} trainings, {hit} in the middle of a save, 0 unreadable, 0 gone back; the weights are the same", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

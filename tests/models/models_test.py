#!/usr/bin/env python3
"""The first 50 steps of each model of capi/examples/models against real TensorFlow (losses.json, made by make.py): every loss to 1e-4.

    models_test.py EXAMPLE_MODELS [--device /device:EMU:0] [--before WORD ...] [MODEL ...]

--before: what the program is run by, such as a Java machine; EXAMPLE_MODELS is an argument of it then.
"""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-4


def check(program, name, device, expected):
    """What is wrong, or None."""
    command = [*program, name, "--reference", str(len(expected)), *(["--device", device] if device else [])]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        return f"exit code {run.returncode}: {run.stderr.strip()}"
    found = [json.loads(line) for line in run.stdout.splitlines()]
    if [len(step) for step in found] != [len(step) for step in expected]:
        return f"{len(found)} steps for {len(expected)}, or another number of losses in one of them"
    for number, (ours, theirs) in enumerate(zip(found, expected)):
        for a, b in zip(ours, theirs):
            if not abs(a - b) <= TOLERANCE * abs(b):
                return f"step {number}: {ours}, but TensorFlow has {theirs}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--before", action="append", default=[])
    parser.add_argument("--device", default="")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    program = [*options.before, options.program if options.before else str(pathlib.Path(options.program).resolve())]
    golden = json.loads((HERE / "losses.json").read_text())
    listed = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    names = options.models or [line.split()[0] for line in listed]
    failed = 0
    for name in names:
        wrong = check(program, name, options.device, golden[name]) if name in golden else "losses.json does not have it: run make.py"
        print(f"{name}: {wrong or 'as TensorFlow'}", flush=True)
        failed += wrong is not None
    if not names:
        print("there is no model")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())

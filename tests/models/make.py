#!/usr/bin/env python3
"""Writes losses.json: what the first 50 steps of each model of capi/examples/models lose in real TensorFlow, from our first weights and batches.

    make.py EXAMPLE_MODELS [MODEL ...]      needs the packages tensorflow, keras and safetensors; the other models' losses stay

models_test.py holds the library to them.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 50


def losses(program, name):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, name, "--dump", folder, str(STEPS)], check=True)
        out = subprocess.run([sys.executable, "-W", "ignore", HERE / "peer_tensorflow.py", "losses", name, folder], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    listed = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    path = HERE / "losses.json"
    for name in sys.argv[2:] or [line.split()[0] for line in listed]:
        found = losses(program, name)
        print(name, found[0], found[-1], flush=True)
        known = {**(json.loads(path.read_text()) if path.exists() else {}), name: found}
        lines = [f'"{each}": {json.dumps(values)}' for each, values in sorted(known.items())]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""`make models`: trains each model of capi/examples/models, and runs it against TensorFlow where that is installed.

    compare.py EXAMPLE_MODELS [--models a,b] [--seconds 15] [--pairs 3] [--json build/models.json]

First each model trains for so many seconds and says what it has reached. Then ours and TensorFlow (tf.function, both with all processors'
threads as they come by default) take turns on the same batches, A B A B; a ratio is that of the medians of the pairs, above 1 where we are
faster. TensorFlow is looked for where `make bench` installs it, or in the Python of DTG_BENCH_VENV.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BATCHES = 20
TURN = 2


def peer_python():
    """A Python that has TensorFlow, or None."""
    cache = pathlib.Path(os.environ.get("DTG_CACHE_DIR") or pathlib.Path.home() / ".cache" / "dtg")
    python = pathlib.Path(os.environ.get("DTG_BENCH_VENV") or cache / "bench-venv") / "bin" / "python"
    if not python.exists():
        return None
    found = subprocess.run([python, "-c", "import tensorflow, safetensors"], check=False, stderr=subprocess.DEVNULL)
    return python if found.returncode == 0 else None


def train(program, name, seconds):
    """The last line that it says, as a dictionary."""
    run = subprocess.run([program, name, "--seconds", str(seconds), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def race(program, python, name, pairs):
    """Items per second: ours, TensorFlow's, the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, name, "--dump", folder, str(BATCHES)], check=True)
        command = [python, HERE / "peer_tensorflow.py", "speed", name, folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as peer:
            rates = []
            for _ in range(pairs):
                ours = train(program, name, TURN)
                peer.stdin.write(f"{TURN}\n")
                peer.stdin.flush()
                answer = peer.stdout.readline()
                if not answer:
                    return None
                rates.append((ours["items_per_second"], float(answer) * ours["batch"]))
            peer.stdin.close()
    return [statistics.median(each) for each in ([a for a, _ in rates], [b for _, b in rates], [a / b for a, b in rates])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--models")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    program, python = options.program.resolve(), peer_python()
    if not python:
        print("TensorFlow is not here (`make bench` installs it; its Python needs safetensors too): ours alone", flush=True)
    listed = [line.split(maxsplit=2) for line in subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
    rows = []
    for name, items, metric in listed:
        if options.models and name not in options.models.split(","):
            continue
        row = {**train(program, name, options.seconds), "items": items, "metric_name": metric}
        line = f"{name:17} step {row['step']:6}  loss {row['loss']:9.4g}  {metric} {row['metric']:.4g}"
        speed = race(program, python, name, options.pairs) if python else None
        if speed:
            row["ours"], row["tensorflow"], row["ratio"] = speed
            line += f"  {items}/s: ours {speed[0]:.4g}, TensorFlow {speed[1]:.4g}, ratio {speed[2]:.2f}"
        else:
            line += f"  {items}/s: ours {row['items_per_second']:.4g}" + (", TensorFlow gave no answer" if python else "")
        print(line, flush=True)
        rows.append(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""`make models`: trains each model of capi/examples/models, and runs it against TensorFlow and PyTorch where they are installed.

    compare.py EXAMPLE_MODELS [--models a,b] [--seconds 15] [--pairs 3] [--json build/models.json]

First each model trains for so many seconds and says what it has reached. Then ours, TensorFlow (tf.function) and PyTorch (peer_pytorch.py
says what of it is compiled), all with all processors' threads, take turns on the same batches, A B C A B C; a ratio is the median of the
ratios of the pairs, above 1 where we are faster. Before the first turn each peer has started, compiled and made a step: PyTorch's compiler
takes from some seconds to minutes per model the first time, and keeps what it made. A peer that is not installed or fails is said in its
place. Peers are looked for where `make bench` installs them, or in the Python of DTG_BENCH_VENV.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
BATCHES = 20
TURN = 2
LIMIT = 900  # seconds that a peer may take to an answer, the first one with its compiler's work
PEERS = {"TensorFlow": ("peer_tensorflow.py", "tensorflow"), "PyTorch": ("peer_pytorch.py", "torch")}


class Failed(Exception):
    """A peer gave no answer; says why."""


def peer_python():
    """The Python of the peers, which may not be there."""
    cache = pathlib.Path(os.environ.get("DTG_CACHE_DIR") or pathlib.Path.home() / ".cache" / "dtg")
    return pathlib.Path(os.environ.get("DTG_BENCH_VENV") or cache / "bench-venv") / "bin" / "python"


def missing(python, module):
    """What a peer lacks, or None."""
    if not python.exists():
        return "not installed (`make bench` does it)"
    for needed in (module, "safetensors"):
        found = subprocess.run([python, "-c", f"import {needed}"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if found.returncode:
            return f"its Python has no {needed} (`make bench` installs it)"
    return None


class Peer:
    """A peer's process with one model, ready to take turns."""

    def __init__(self, python, script, name, folder):
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115 closed with the peer
        command = [python, HERE / script, "speed", name, folder]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True)  # noqa: SIM115

    def steps_per_second(self, seconds):
        limit = threading.Timer(LIMIT, self.process.kill)
        limit.start()
        try:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        limit.cancel()
        if answer:
            return float(answer)
        code = self.process.wait()
        self.said.seek(0)
        lines = self.said.read().split("\n")
        raise Failed(f"exit code {code}: " + next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing"))

    def close(self):
        try:
            self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()


def train(program, name, seconds):
    """The last line that it says, as a dictionary."""
    run = subprocess.run([program, name, "--seconds", str(seconds), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def turns(program, peers, name, pairs, failed):
    """Items per second of each turn, by who had it. Whoever fails leaves and stands in `failed`."""
    rates = {"ours": [], **{who: [] for who in peers}}
    for number in range(-1, pairs):  # the first time round only the peers start
        if number >= 0:
            ours = train(program, name, TURN)
            rates["ours"].append(ours["items_per_second"])
        for who in [who for who in peers if who not in failed]:
            try:
                steps = peers[who].steps_per_second(TURN if number >= 0 else 0)
            except Failed as reason:
                failed[who] = str(reason)
                continue
            if number >= 0:
                rates[who].append(steps * ours["batch"])
    return rates


def race(program, python, name, pairs, failed):
    """What each did, and ours by each peer's: medians, and all the turns. `failed`: peers that are not there; grows by those that fail."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, name, "--dump", folder, str(BATCHES)], check=True)
        peers = {who: Peer(python, script, name, folder) for who, (script, _) in PEERS.items() if who not in failed}
        try:
            rates = turns(program, peers, name, pairs, failed)
        finally:
            for peer in peers.values():
                peer.close()
    found = {"ours": statistics.median(rates["ours"]), "turns": rates, "peers": {}}
    for who in PEERS:
        if who in failed:
            found["peers"][who] = {"failed": failed[who]}
        else:
            ratio = statistics.median(a / b for a, b in zip(rates["ours"], rates[who]))
            found["peers"][who] = {"items_per_second": statistics.median(rates[who]), "ratio": ratio}
    return found


def line_of(row):
    said = f"{row['model']:17} step {row['step']:6}  loss {row['loss']:9.4g}  {row['metric_name']} {row['metric']:.4g}"
    said += f"\n{'':17} {row['items']}/s: ours {row['ours']:.4g}"
    for who, peer in row["peers"].items():
        said += f", {who} " + (peer["failed"] if "failed" in peer else f"{peer['items_per_second']:.4g} (ratio {peer['ratio']:.2f})")
    return said


def table(rows):
    """All ratios side by side."""
    print(f"\n{'ours / peer':17}" + "".join(f"{who:>12}" for who in PEERS))
    for row in rows:
        ratios = [f"{peer['ratio']:.2f}" if "ratio" in peer else "none" for peer in row["peers"].values()]
        print(f"{row['model']:17}" + "".join(f"{ratio:>12}" for ratio in ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--models")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    program, python = options.program.resolve(), peer_python()
    absent = {who: reason for who, (_, module) in PEERS.items() if (reason := missing(python, module))}
    for who, reason in absent.items():
        print(f"{who}: {reason}", flush=True)
    listed = [line.split(maxsplit=2) for line in subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
    rows = []
    for name, items, metric in listed:
        if options.models and name not in options.models.split(","):
            continue
        row = {**train(program, name, options.seconds), "items": items, "metric_name": metric}
        row.update(race(program, python, name, options.pairs, dict(absent)))
        print(line_of(row), flush=True)
        rows.append(row)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    table(rows)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())

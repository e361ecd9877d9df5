"""Goal 43: what it costs that a parameter server loses nothing, and how soon it is back.

Recovery: the server is killed and started again at once, on its address; the time is that from the kill to the end of the next step of a
client that goes on meanwhile. Cost: the demo's program, with a log of every update and without. Workers: the same with more of them than
before, beside as many times one, or as many times as there are processors. DTG_KILLS says how often it is killed, 20 times by default."""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

from sides import Side, say

RECOVERIES = ((64, 1.0, 3.0, "p99"), (1024, 0.1, 10.0, "the longest"))  # MiB, kills as a part of all, seconds allowed, of which
MODE = "async"


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Server:
    """One parameter server as a process, whose state outlives it."""

    def __init__(self, run, scratch):
        self.command = [str(run.options.build / "dtg"), "server", "--cluster", f"ps=unix:{scratch}/ps", "--job", "ps", "--task", "0"]
        self.environment = {**os.environ, "DTG_STATE_DIR": f"{scratch}/state", "DTG_DURABILITY": "wal"}
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def recoveries(run, mebibytes, kills):
    """Seconds from each kill to the end of the next step, and whether the count of steps is right at the end."""
    with tempfile.TemporaryDirectory(dir=run.options.build) as scratch:
        os.chmod(scratch, 0o700)
        server = Server(run, scratch)
        side = Side("dtg", [run.options.build / "bench_durability", f"unix:{scratch}/ps"])
        took, steps = [], 0
        try:
            if not side.ask(f"init {mebibytes}"):
                return None, False
            for _ in range(kills):
                for _ in range(3):
                    steps += side.ask("step") is not None
                time.sleep(0.1)
                begun = time.perf_counter()
                server.kill()
                server.start()
                if not side.ask("step"):
                    return None, False
                took.append(time.perf_counter() - begun)
                steps += 1
            counted = side.ask("count")
            return took, counted is not None and float(counted) == steps
        finally:
            server.kill()
            side.end()


def demo(run, scratch, words, workers):
    """Images per second of the demo's program, all workers together."""
    directory = tempfile.mkdtemp(dir=scratch)
    command = [run.options.build / "dtg", "run", "--local", "--ps", 1, "--workers", workers, *[word.format(directory) for word in words], "--",
               run.options.build / "example_fashion_mnist", "--data", "absent", "--run", directory + "/run", "--epochs", 40, "--mode", MODE]
    done = subprocess.run([str(word) for word in command], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    summary = pathlib.Path(directory, "run", "summary.json")
    return json.loads(summary.read_text())["images_per_second"] if done.returncode == 0 and summary.exists() else None


def cost(run, scratch):
    for level, words, target in (("wal-async", ["--state", "{}/state", "--durability", "wal-async"], 0.97),
                                 ("wal", ["--state", "{}/state", "--durability", "wal"], 0.9)):
        pairs = [(demo(run, scratch, words, 2), demo(run, scratch, [], 2)) for _ in range(run.options.pairs)]
        if not all(all(pair) for pair in pairs):
            return say("goal 43  the demo gave no answer")
        mine, theirs = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(a / b for a, b in pairs)
        run.table.add(43, f"training with durability {level}", mine, theirs, "memory", ratio, target, unit="images/s")


def workers(run, scratch):
    alone = [demo(run, scratch, [], 1) for _ in range(3)]
    for count in (2, 4, 8):
        speeds = [demo(run, scratch, [], count) for _ in range(3)]
        if not all(alone) or not all(speeds):
            return say("goal 43  the demo gave no answer")
        many, one = statistics.median(speeds), statistics.median(alone)
        most = min(count, len(os.sched_getaffinity(0)))
        run.table.add(43, f"{count} workers on one host", many, one, f"one worker, {most} times", many / (one * most), 0, unit="images/s")


def goal_43(run):
    kills = int(os.environ.get("DTG_KILLS") or 20)
    for mebibytes, part, allowed, which in RECOVERIES:
        count = max(2, round(kills * part))
        took, right = recoveries(run, mebibytes, count)
        if not took:
            say(f"goal 43  recovery, {mebibytes} MiB: no answer")
            continue
        longest = percentile(took, 0.99)
        run.table.add(43, f"a server of {mebibytes} MiB is back", longest, allowed, f"{which} of {count} kills allowed",
                      allowed / longest if right else 0, 1, note=f"median {statistics.median(took):.2f} s" if right else "steps are missing")
    with tempfile.TemporaryDirectory(dir=run.options.build) as scratch:
        cost(run, scratch)
        workers(run, scratch)


GOALS = {43: goal_43}

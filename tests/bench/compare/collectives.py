"""The goals with ranks that are equals: all-reduce, training by it, and how a null step grows with the number of processes. Against gloo
as PyTorch brings it, and bare sockets. Driven by compare.py.

Every rank is a process of its own with one compute thread, on this machine; all take the same steps at the same time. A figure is rank
0's. Ours runs over each channel that there is, see cluster.py; what one host takes by itself is a unix socket with shared memory."""

import json
import os
import shutil
import statistics
import subprocess

from cluster import HERE, PATIENCE, PEERS, against, compiled, free_ports, line_within, processes
from sides import Side, race, say

SLICE, BATCHES = 0.3, 5
SIZES = {4 << 10: "4 KiB", 64 << 10: "64 KiB", 1 << 20: "1 MiB", 4 << 20: "4 MiB", 64 << 20: "64 MiB"}


class Ranks(Side):
    """So many processes that take steps together."""

    def __init__(self, name, commands, extra=None):
        super().__init__(name, commands[0], extra)
        self.commands = [[str(word) for word in command] for command in commands]
        self.ranks, self.repeats = [], {}
        self.silent = False

    def start(self):
        self.ranks = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL,
                                       env={**os.environ, **self.extra}) for command in self.commands]
        self.silent = any(line_within(rank, PATIENCE) != "ready" for rank in self.ranks)
        if self.silent:
            say(f"    {self.name}: its {len(self.ranks)} ranks have not met")

    def together(self, workload, steps):
        """Seconds of a step, and the processor's of all ranks; None where one gave no answer."""
        if not self.ranks:
            self.start()
        if self.silent:
            return None
        try:
            for rank in self.ranks:
                rank.stdin.write(f"{workload} {steps}\n")
                rank.stdin.flush()
        except OSError:
            self.silent = True
        answers = [line_within(rank, PATIENCE).split() for rank in self.ranks] if not self.silent else []
        self.silent = self.silent or any(len(answer) != 2 for answer in answers)
        if self.silent:
            return None
        return float(answers[0][0]), sum(float(answer[1]) for answer in answers)

    def measure(self, workload):
        steps = self.repeats.get(workload, 1)
        while workload not in self.repeats:
            found = self.together(workload, steps)
            if not found:
                return None
            if found[0] * steps >= SLICE / BATCHES / 2:
                self.repeats[workload] = steps
            else:
                steps *= 2
        parts = [self.together(workload, steps) for _ in range(BATCHES)]
        if not all(parts):
            return None
        self.processor.append(statistics.median(part[1] for part in parts))
        return statistics.median(part[0] for part in parts)

    def end(self):
        for rank in self.ranks:
            rank.stdin.close()
        for rank in self.ranks:
            try:
                rank.wait(10)
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()
            rank.stdout.close()
        self.ranks = []


def ours(run, channel, size=2):
    at = processes(run)

    def make():
        addresses = at.addresses(channel, size)
        cluster = "worker=" + ",".join(("unix:" if channel == "unix" else "") + each for each in addresses)
        program = run.options.build / "bench_ours_group"
        return Ranks("dtg", [[program, cluster, "clear" if channel == "clear" else "tls", rank] for rank in range(size)])
    return at.side(("dtg group", channel, size), make)


def gloo(run, size=2):
    def make():
        port = free_ports(1)[0]
        return Ranks("gloo", [[run.python, PEERS / "gloo_peer.py", port, size, rank] for rank in range(size)])
    return processes(run).side(("gloo", size), make)


def raw(run):
    def make():
        source = PEERS / "raw_ranks.c"
        ranks = run.options.build / "bench_ranks.o"
        done = subprocess.run(["cc", "-std=c11", "-O2", "-c", HERE / "ranks.c", "-o", ranks], check=False).returncode == 0
        program = done and compiled(run, "bench_raw_ranks", ["cc", "-std=c11", "-O3", "-march=native", source, ranks], [source])
        port = free_ports(1)[0]
        return Ranks("bare sockets", [[program, port, rank] for rank in range(2)]) if program else None
    return processes(run).side(("raw ranks",), make)


# ---- rows --------------------------------------------------------------------------------------------------------------------

def reduction_rows(run, goal, channel, words, targets):
    """`targets`: of each size, against gloo."""
    for size, target in targets.items():
        if run.python:
            against(run, (goal, f"all-reduce {SIZES[size]}, 2 ranks, {words}", target, ""), ours(run, channel), f"reduce:{size}", gloo(run))


def goal_13(run):
    reduction_rows(run, 13, "clear", "TCP", {4 << 10: 3, 64 << 10: 3})


def goal_14(run):
    targets = {1 << 20: 1.6, 4 << 20: 1.6, 64 << 20: 1.6}
    reduction_rows(run, 14, "clear", "TCP", targets)
    for size in targets:
        against(run, (14, f"all-reduce {SIZES[size]}, 2 ranks, TCP", 0.9, ""), ours(run, "clear"), f"reduce:{size}", raw(run))


def goal_15(run):
    reduction_rows(run, 15, "unix", "shared memory", {4 << 10: 50, 1 << 20: 7, 4 << 20: 7, 64 << 20: 2.2})
    growth(run)


def growth(run):
    """Not a goal: what more ranks cost, on as many processors as there are."""
    for size in (4 << 10, 1 << 20):
        figures = []
        for ranks in (2, 3, 4, 8, 16):
            side = ours(run, "unix", ranks)
            seconds = side.measure(f"reduce:{size}")
            figures.append(f"{ranks}: {seconds * 1e6:.0f} us" if seconds else f"{ranks}: no answer")
            if ranks > 2:
                side.end()
        say(f"    growth of an all-reduce of {SIZES[size]} with the ranks, on {os.cpu_count()} processors: " + ", ".join(figures))


def goal_16(run):
    """Two ranks with half of the batch each, against DDP, and against one process of ours with the whole batch and one thread."""
    for channel, words in (("unix", "shared memory"), ("clear", "TCP")):
        name = f"data-parallel MLP, 2 processes of 64, {words}"
        if run.python:
            race(run.table, run.options.pairs, (16, name, 3.5, ""), (ours(run, channel), "mlp:64"),
                 [(gloo(run), ["mlp:64", "mlp_one_bucket:64"])])
        race(run.table, run.options.pairs, (16, name, 1.5, ""), (ours(run, channel), "mlp:64"), [(run.ours(1), ["mlp"])])


def goal_17(run):
    """64 clients of one server against 8; the ratio is what eight times as many cost less than this many times."""
    at = processes(run)
    for channel, words, most in (("clear", "TCP", 7.5), ("unix", "shared memory", 6)):
        pairs = [(at.ours(channel).measure("null:64"), at.ours(channel).measure("null:8")) for _ in range(run.options.pairs)]
        if not all(a and b for a, b in pairs):
            say(f"goal 17  growth of the null step, {words}: no answer")
            continue
        many, few = (statistics.median(side) for side in zip(*pairs))
        run.table.add(17, f"null step of 64 clients over that of 8, {words}", many, few, f"8 clients, of which {most:g} times",
                      most * few / many, 1)


def goal_6(run):
    at = processes(run)
    for clients in (2, 8, 64):
        against(run, (6, f"null step on one host, {clients} clients", 50 if clients == 2 else 4, ""), at.ours("unix"), f"null:{clients}",
                at.grpc())


def goal_8(run):
    at = processes(run)
    for what in ("pull", "push"):
        for size in (4, 64):
            row = f"{what} {size} MiB on one host"
            if at.raw("clear"):
                race(run.table, run.options.pairs, (8, f"{row} (memcpy)", 0.6, ""), (at.ours("unix"), f"{what}:{size}"),
                     [(at.raw("clear"), [f"copy:{size}"])])
            against(run, (8, row, 4, ""), at.ours("unix"), f"{what}:{size}", at.grpc())


# ---- the demo ----------------------------------------------------------------------------------------------------------------

DEMO_EPOCHS = 3


def demo_seconds(run, workers):
    """Seconds of training by the program's own account; None where it does not end well."""
    folder = run.options.build / "bench-demo"
    data = os.environ.get("DTG_DEMO_DATA", "/usr/share/datasets/fashion-mnist")
    program = [run.options.build / "example_fashion_mnist", "--data", data, "--run", folder, "--mode", "sync", "--seed", 1,
               "--batch", 64, "--epochs", DEMO_EPOCHS, "--shards", 1 if workers else 2]
    launch = [run.options.build / "bin" / "dtg", "run", "--local", "--ps", 1, "--workers", workers, "--channel", "unix", "--"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    words = [str(word) for word in (launch if workers else []) + program]
    done = subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        return None
    return json.loads((folder / "summary.json").read_text())["seconds"]


def goal_34(run):
    """One ps and two workers against one process with two towers on two threads, by the seconds that training took."""
    pairs = [(demo_seconds(run, 2), demo_seconds(run, 0)) for _ in range(run.options.pairs)]
    if not all(a and b for a, b in pairs):
        return say("goal 34  sync demo: it did not end well")
    mine, alone = (statistics.median(side) for side in zip(*pairs))
    return run.table.add(34, f"sync demo of {DEMO_EPOCHS} epochs, 1 ps and 2 workers", mine, alone, "one process, two threads",
                         statistics.median(b / a for a, b in pairs), 0.95)


GOALS = {6: goal_6, 8: goal_8, 13: goal_13, 14: goal_14, 15: goal_15, 16: goal_16, 17: goal_17, 34: goal_34}

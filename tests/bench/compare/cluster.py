"""The goals with several processes: steps over the network, pulls and pushes, training with a parameter server, the start of a
cluster. Against TensorFlow's v1 Server, gRPC, and bare sockets; those written in C and C++ are built here, gRPC's only where its
library is or can be installed. Driven by compare.py.

Ours runs over each channel that there is: a unix socket (what one host takes by itself), TCP with frames in the clear, TCP with
TLS. TensorFlow has TCP in the clear only, so that is what it is compared with everywhere."""

import os
import pathlib
import random
import select
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

from sides import Side, race, say

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE / "peers"
CHANNELS = {"unix": "unix socket", "clear": "TCP, clear frames", "tls": "TCP, TLS"}
PATIENCE = 40  # seconds for a server to start


# ---- peers that have to be built ---------------------------------------------------------------------------------------------

def compiled(run, name, command, sources):
    """The program, or None where it cannot be built."""
    program = run.options.build / name
    newest = max(source.stat().st_mtime for source in [*sources, HERE / "turns.c", HERE / "turns.h"])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    turns = run.options.build / (name + "_turns.o")
    done = subprocess.run(["cc", "-std=c11", "-O2", "-c", HERE / "turns.c", "-o", turns], check=False).returncode == 0
    words = [turns if word == "TURNS" else word for word in command]
    done = done and subprocess.run([*words, "-o", program], check=False, stderr=subprocess.DEVNULL).returncode == 0
    turns.unlink(missing_ok=True)
    return program if done else None


def raw_program(run):
    sources = [PEERS / "raw.c", PEERS / "raw_tls.c"]
    program = compiled(run, "bench_raw", ["cc", "-std=c11", "-O2", *sources, "TURNS", "-lssl", "-lcrypto"], sources)
    if not program:
        say("    bare sockets: peers/raw.c needs OpenSSL's headers and could not be built; the rows against it are left out")
    return program


def grpc_program(run):
    source = PEERS / "grpc_peer.cc"
    command = ["c++", "-std=c++17", "-O2", source, "TURNS", "-lgrpc++", "-lgrpc", "-lgpr", "-labsl_synchronization"]
    program = compiled(run, "bench_grpc", command, [source])
    if not program and os.geteuid() == 0 and shutil.which("apt-get"):
        say("    installing libgrpc++-dev with apt-get")
        for words in (["update"], ["install", "-y", "--no-install-recommends", "libgrpc++-dev"]):
            subprocess.run(["apt-get", "-qq", *words], check=False, stdout=subprocess.DEVNULL,
                           env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        program = compiled(run, "bench_grpc", command, [source])
    if not program:
        say("    gRPC C++: peers/grpc_peer.cc needs libgrpc++-dev, which is not here; the rows against it are left out")
    return program


# ---- two processes -----------------------------------------------------------------------------------------------------------

def free_ports(count):
    """Ports that nobody listens on, below those that the system gives to connections, which come and go all the time."""
    found = []
    while len(found) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if port not in found and probe.connect_ex(("127.0.0.1", port)) != 0:
                found.append(port)
    return found


def processor_seconds(process):
    """What a child has used of the processor so far, all its threads together: the clock that clock_getcpuclockid gives."""
    return time.clock_gettime((~process.pid << 3) | 2)


def line_within(process, seconds):
    """The next line of a process that writes whole lines; "" when it does not come."""
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline().strip() if ready else ""


class Pair(Side):
    """A server in a process of its own, and the clients that answer requests. The server's time counts as well."""

    def __init__(self, name, server, client, extra=None):
        super().__init__(name, client, extra)
        self.server_command, self.server = [str(word) for word in server], None

    def ask(self, line):
        if not self.server:
            self.server = subprocess.Popen(self.server_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                           stderr=subprocess.DEVNULL, env={**os.environ, **self.extra})
            if line_within(self.server, PATIENCE) != "ready":
                say(f"    {self.name}: the server has not started")
        return super().ask(line)

    def measure(self, workload):
        before = processor_seconds(self.server) if self.server and self.server.poll() is None else None
        seconds = super().measure(workload)
        if seconds and before is not None:
            self.processor[-1] += (processor_seconds(self.server) - before) / self.steps
        return seconds

    def end(self):
        super().end()
        if self.server:
            self.server.stdin.close()
            try:
                self.server.wait(10)
            except subprocess.TimeoutExpired:
                self.server.kill()
            self.server = None


class Processes:
    """All sides of one run of the driver, made when first asked for."""

    def __init__(self, run):
        self.run = run
        self.folder = tempfile.mkdtemp(prefix="dtg-bench-")  # only its owner may enter, as sockets of ours want it
        self.sockets = 0

    def addresses(self, channel, count):
        if channel != "unix":
            return [f"127.0.0.1:{port}" for port in free_ports(count)]
        self.sockets += count
        return [f"{self.folder}/{self.sockets - i}" for i in range(count)]

    def cluster(self, channel, workers):
        first, *others = self.addresses(channel, 1 + workers)
        prefix = "unix:" if channel == "unix" else ""
        return f"ps={prefix}{first}" + (";worker=" + ",".join(prefix + each for each in others) if others else "")

    def side(self, key, make):
        if key not in self.run.sides:
            self.run.sides[key] = make()
        return self.run.sides[key]

    def ours(self, channel, workers=0):
        def make():
            cluster = self.cluster(channel, workers)
            words = [cluster, "clear" if channel == "clear" else "tls", 1]
            program = self.run.options.build / "bench_ours_cluster"
            return Pair("dtg", [program, "serve", *words], [program, "client", *words])
        return self.side(("dtg cluster", channel, workers), make)

    def raw(self, security):
        def make():
            program = raw_program(self.run)
            words = [free_ports(1)[0], security]
            name = "bare sockets, OpenSSL" if security == "tls" else "bare sockets"
            return program and Pair(name, [program, "serve", *words], [program, "client", *words])
        return self.side(("raw", security), make)

    def grpc(self):
        def make():
            program, port = grpc_program(self.run), free_ports(1)[0]
            return program and Pair("gRPC C++", [program, "serve", port], [program, "client", port])
        return self.side(("grpc",), make)

    def tf(self, threads, onednn=True):
        def make():
            words = [self.cluster("clear", 1), threads]
            command = [self.run.python, PEERS / "tf_cluster_peer.py"]
            name = "TF Server" if onednn else "TF Server without oneDNN"
            return Pair(name, [*command, "serve", *words], [*command, "client", *words],
                        {"TF_ENABLE_ONEDNN_OPTS": "1" if onednn else "0"})
        return self.side(("TF Server", threads, onednn), make)


def processes(run):
    if not hasattr(run, "processes"):
        run.processes = Processes(run)
    return run.processes


def against(run, row, ours, workload, peer, forms=("",)):
    if peer:
        race(run.table, run.options.pairs, row, (ours, workload), [(peer, [workload + form for form in forms])])


# ---- rows --------------------------------------------------------------------------------------------------------------------

def goal_5(run):
    """The time in which each of W clients takes one step; nobody waits for the others."""
    at = processes(run)
    ours = at.ours("clear")
    for clients in (1, 2, 8):
        name = f"null step over TCP, {clients} client{'s' * (clients > 1)}"
        against(run, (5, name, 1.8 if clients >= 8 else 1.2, ""), ours, f"null:{clients}", at.grpc())
        against(run, (5, name, 1 / 1.15, ""), ours, f"null:{clients}", at.raw("clear"))


def goal_7(run):
    at = processes(run)
    ours = at.ours("clear")
    for what in ("pull", "push"):
        for size in (4, 64):
            against(run, (7, f"{what} {size} MiB over TCP", 0.9, ""), ours, f"{what}:{size}", at.raw("clear"))
            against(run, (7, f"{what} {size} MiB over TCP", 1.7, ""), ours, f"{what}:{size}", at.grpc())


def goal_30(run):
    at = processes(run)
    for channel, words in CHANNELS.items() if run.python else ():
        target = 20 if channel == "unix" else 6
        against(run, (30, f"null remote step, {words}", target, ""), at.ours(channel), "count:1", at.tf(0), ("", ":direct"))


def goal_31(run):
    at = processes(run)
    for what in ("pull", "push"):
        for size in (16, 64):
            for channel, words in CHANNELS.items():
                name, workload = f"{what} {size} MiB, {words}", f"{what}:{size}"
                if run.python:
                    target = 5 if channel == "unix" else 2
                    against(run, (31, name, target, ""), at.ours(channel), workload, at.tf(0), ("", ":direct", ":device"))
                if channel == "tls":
                    against(run, (31, name, 0.9, ""), at.ours(channel), workload, at.raw("tls"))


def goal_32(run):
    at = processes(run)
    for channel, words in CHANNELS.items():
        ours, name = at.ours(channel, 1), f"MLP b128 step, 1 worker and 1 ps, {words}"
        if run.python:
            peers = [(at.tf(1), ["mlp:1"]), (at.tf(1, onednn=False), ["mlp:1"])]
            race(run.table, run.options.pairs, (32, name, 2.2 if channel == "unix" else 1.6, ""), (ours, "mlp:1"), peers)
        alone = run.side(("dtg, one process",), [run.options.build / "bench_ours", 1])
        race(run.table, run.options.pairs, (32, name, 1 / 1.05, "no release goal"), (ours, "mlp:1"), [(alone, ["mlp"])])


def start_of_cluster(commands):
    """Seconds from "all have loaded what they need" to the first synchronous step of every worker, and from nothing to it."""
    began = time.perf_counter()
    tasks = [subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL) for command in commands]
    try:
        if any(line_within(task, PATIENCE) != "loaded" for task in tasks):
            return None
        loaded = time.perf_counter()
        for task in tasks:
            task.stdin.write("\n")
            task.stdin.flush()
        if any(line_within(task, PATIENCE) != "ready" for task in tasks[1:]):
            return None
        end = time.perf_counter()
        return end - loaded, end - began
    finally:
        for task in tasks:
            task.stdin.close()
        for task in tasks:
            try:
                task.wait(10)
            except subprocess.TimeoutExpired:
                task.kill()
                task.wait()
            task.stdout.close()


def goal_33(run):
    """The MLP, three processes, SyncReplicasOptimizer on their side."""
    at = processes(run)

    def task_words(channel):
        cluster = at.cluster(channel, 2)
        return [(cluster, *task) for task in (("ps", 0), ("worker", 0), ("worker", 1))]

    def ours(channel):
        program, security = run.options.build / "bench_ours_cluster", "clear" if channel == "clear" else "tls"
        return start_of_cluster([[program, "start", cluster, security, 1, job, task] for cluster, job, task in task_words(channel)])

    def tf():
        command = [run.python, PEERS / "tf_cluster_peer.py", "start"]
        return start_of_cluster([[*command, cluster, 0, job, task] for cluster, job, task in task_words("clear")])

    for channel, words in CHANNELS.items() if run.python else ():
        asked = [(ours(channel), tf()) for _ in range(run.options.pairs)]
        pairs = [(a, b) for a, b in asked if a and b]
        silent = [sum(not each for each in side) for side in zip(*asked)]
        note = f"no answer in time: {silent[0]} of ours, {silent[1]} of TF's" if any(silent) else ""
        if not pairs:
            say(f"goal 33  start of a cluster, {words}: {note}")
            continue
        for i, what in enumerate(("start of a cluster to first step", "the same with loading")):
            mine, theirs = [a[i] for a, _ in pairs], [b[i] for _, b in pairs]
            ratio = statistics.median(b / a for a, b in zip(mine, theirs))
            run.table.add(33, f"{what}, {words}", statistics.median(mine), statistics.median(theirs), "TF Server", ratio, 10,
                          note=note)


GOALS = {5: goal_5, 7: goal_7, 30: goal_30, 31: goal_31, 32: goal_32, 33: goal_33}


def end(run):
    """The sides themselves are ended by the driver."""
    if hasattr(run, "processes"):
        shutil.rmtree(run.processes.folder, ignore_errors=True)

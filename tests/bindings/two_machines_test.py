"""capi/TWO_MACHINES.md, done: every command of the page is run, as two machines, and every error that its table has is met.

Once on two loopback addresses of this machine, with the ports that are free; and once between two network namespaces with the page's own
addresses, where this is root and has `ip`. The key comes from the environment everywhere, in programs of every language and for the command.

    tests/bindings/two_machines_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import programs
from report import Report

FIRST, SECOND = 1, 2
ADDRESSES = {FIRST: "10.0.0.1", SECOND: "10.0.0.2"}
NOBODY, SILENT = "10.0.0.8", "10.0.0.9"  # no such machine, and one that drops all that comes
LIMIT = 90  # seconds for any one command
FITTED = "y = 3.000 x + 2.000"

# Time of another machine, ten years on.
OTHER_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
#define AHEAD (10L * 365 * 86400)
int clock_gettime(clockid_t id, struct timespec *at) {
  int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, at);
  if (id == CLOCK_REALTIME) at->tv_sec += AHEAD;
  return result;
}
time_t time(time_t *into) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (into) *into = at.tv_sec;
  return at.tv_sec;
}
int gettimeofday(struct timeval *at, void *zone) {
  struct timespec fine;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &fine);
  at->tv_sec = fine.tv_sec;
  at->tv_usec = fine.tv_nsec / 1000;
  return 0;
}
"""


class Commands:
    """What the page shows: blocks of a shell, by the comment that each begins with."""

    def __init__(self, page):
        self.text = page.read_text()
        self.blocks = {}
        for block in re.findall(r"(?:^    .*\n)+", self.text, flags=re.M):
            lines = [line[4:] for line in block.splitlines()]
            self.blocks[lines[0][2:] if lines[0].startswith("# ") else lines[0].split()[1]] = "\n".join(lines) + "\n"


class Machines:
    """Two of them: a folder each, and a way to run a shell there. Here both are this machine, on two loopback addresses."""

    name = "two loopback addresses"

    def __init__(self, folder, environment):
        self.folders = {each: pathlib.Path(folder, str(each)) for each in ADDRESSES}
        for each in self.folders.values():
            each.mkdir()
        tools = pathlib.Path(folder, "tools")
        tools.mkdir()
        scp = tools / "scp"
        scp.write_text(f'#!/bin/sh\n[ "$1" = -p ] && cp -p "$2" {shlex.quote(str(self.folders[SECOND]))}/"${{3#*:}}"\n')
        scp.chmod(0o755)
        self.environment = {**os.environ, **environment, "PATH": f"{tools}:{environment['PATH']}"}
        self.environment.pop("DTG_KEY_FILE", None)
        self.started = []
        self.ports = [free_port(), free_port()]

    def here(self, text):
        """The page's text with what stands for its addresses and ports."""
        for port, own in zip(("2222", "2223"), self.ports):
            text = text.replace(f":{port}", f":{own}")
        return text.replace("10.0.0.", "127.0.0.")

    def words(self, machine, script):
        return ["bash", "-c", self.here(script)]

    def start(self, machine, script, **environment):
        process = subprocess.Popen(self.words(machine, script), cwd=self.folders[machine], env={**self.environment, **environment}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.started.append(process)
        return process

    def run(self, machine, script, **environment):
        """The exit code and all that was printed."""
        process = self.start(machine, script, **environment)
        return self.end(process)

    def end(self, process):
        try:
            printed, _ = process.communicate(timeout=LIMIT)
            return process.returncode, printed
        except subprocess.TimeoutExpired:
            self.stop(process)
            return -1, f"not done within {LIMIT} s\n{process.communicate()[0]}"

    @staticmethod
    def stop(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        for process in self.started:
            self.stop(process)
            process.wait()
            process.stdout.close()


class Namespaces(Machines):
    """Two network stacks with the page's addresses, and a cable between them."""

    name = "two network namespaces"

    def __init__(self, folder, environment):
        super().__init__(folder, environment)
        self.spaces = {each: f"dtg-{os.getpid()}-{each}" for each in ADDRESSES}
        try:
            self.lay_cable()
        except subprocess.CalledProcessError:
            self.close()
            raise

    def lay_cable(self):
        for space in self.spaces.values():
            ip("netns", "add", space)
        ip("-n", self.spaces[FIRST], "link", "add", "name", "end1", "type", "veth", "peer", "name", "end2", "netns", self.spaces[SECOND])
        for each, space in self.spaces.items():
            ip("-n", space, "address", "add", f"{ADDRESSES[each]}/24", "dev", f"end{each}")
            for device in (f"end{each}", "lo"):
                ip("-n", space, "link", "set", "dev", device, "up")
            ip("-n", space, "neighbour", "add", SILENT, "lladdr", "02:00:00:00:00:99", "nud", "permanent", "dev", f"end{each}")

    def here(self, text):
        return text

    def words(self, machine, script):
        return ["ip", "netns", "exec", self.spaces[machine], "bash", "-c", script]

    def listening(self, machine):
        """The ports where somebody listens."""
        _, table = self.run(machine, "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp")
        return {int(row.split()[1].rsplit(":", 1)[1], 16) for row in table.splitlines() if row.split()[3:4] in (["0A"], ["07"])}

    def close(self):
        super().close()
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def stacks_missing():
    """Why there can be no second network stack here, or ""."""
    if not shutil.which("ip"):
        return "ip is not installed; to install it: apt-get install iproute2"
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    name = f"dtg-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True, text=True)
    if tried.returncode == 0:
        ip("netns", "delete", name)
    return tried.stderr.strip()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def told(report, name, began, fault, *outputs):
    report.verdict(name, fault, time.monotonic() - began)
    if fault:
        print("\n".join(str(output) for output in outputs), flush=True)


def the_key(report, commands, machines):
    began = time.monotonic()
    code, printed = machines.run(FIRST, commands.blocks["keygen"])
    keys = [machines.folders[each] / "job.key" for each in ADDRESSES]
    fault = None
    if code != 0 or not all(key.exists() for key in keys):
        fault = "the key is not on both"
    elif keys[0].read_bytes() != keys[1].read_bytes() or any(key.stat().st_mode & 0o777 != 0o600 for key in keys):
        fault = "it is not the same key, with its mode, on both"
    told(report, f"{machines.name}: a key on both", began, fault, code, printed)


def the_job(report, commands, machines, name, second=None, asked=False):
    """The blocks of both machines, and between them what the page asks the cluster. `second`: more of the second's environment."""
    began = time.monotonic()
    first = machines.start(FIRST, commands.blocks["on 10.0.0.1"] + "code=$?; wait; exit $code\n")
    status, fault = "", None
    if asked:
        end = time.monotonic() + LIMIT
        while "/job:worker/replica:0/task:0  " not in status or "incarnation" not in status.partition("/job:worker/replica:0/task:0  ")[2]:
            _, status = machines.run(SECOND, commands.blocks["on 10.0.0.2, meanwhile"])
            if time.monotonic() > end:
                break
        if "tls1.3" not in status:
            fault = "dtg status does not say that it is TLS"
        if isinstance(machines, Namespaces) and machines.listening(FIRST) != {2222, 2223}:
            fault = f"it listens at {machines.listening(FIRST)}"
    code, printed = machines.run(SECOND, commands.blocks["on 10.0.0.2"], **(second or {}))
    first_code, first_printed = machines.end(first)
    if code or first_code:
        fault = f"exit codes {first_code} and {code}"
    told(report, f"{machines.name}: {name}", began, fault, status, first_printed, printed)
    return first_printed, printed


def put_program(machines, machine, words):
    script = machines.folders[machine] / "program"
    script.write_text(f"#!/bin/sh\nexec {shlex.join(str(word) for word in words)}\n")
    script.chmod(0o755)


def expect(report, machines, commands, phrase, machine, script, **environment):
    """The command fails and says what the page's table quotes."""
    began = time.monotonic()
    code, printed = machines.run(machine, script, **environment)
    fault = None if code != 0 and phrase in printed else f"it ends with {code} and does not say it"
    if f"`{phrase}`" not in commands.text:
        fault = "the page does not quote it"
    told(report, f"{machines.name}: \"{phrase}\"", began, fault, printed)


def mistakes(report, commands, machines):
    """Each of them beside a parameter server and a task in worker 0's place that never begins."""
    apart = isinstance(machines, Namespaces)
    head, *_ = commands.blocks["on 10.0.0.1"].partition("TF_CONFIG=")
    task = "TF_CONFIG='{\"cluster\": '\"$cluster\"', \"task\": {\"type\": \"%s\", \"index\": %d}}' "
    swapped = head.replace("10.0.0.1:2222", "x").replace("10.0.0.1:2223", "10.0.0.1:2222").replace('"x"', '"10.0.0.1:2223"')
    server = machines.start(FIRST, head + task % ("ps", 0) + "dtg server --tf-config & " + task % ("worker", 0) + "dtg server --tf-config & wait")
    ask = "dtg status 10.0.0.1:2222 --timeout 5"
    end = time.monotonic() + LIMIT
    while machines.run(SECOND, f"DTG_KEY_FILE=job.key {ask} | grep -c incarnation | grep 2")[0] and time.monotonic() < end:
        time.sleep(0.1)
    same = "both ends need the same job key (key_file) and the same cluster"
    expect(report, machines, commands, same, SECOND, f"dtg keygen other.key; DTG_KEY_FILE=other.key {ask}")
    expect(report, machines, commands, same, SECOND, swapped + task % ("worker", 1) + "./program")
    alone = "dtg server --cluster ps=0.0.0.0:0" if not apart else head.replace("export DTG_KEY_FILE", "unused") + task % ("worker", 1) + "./program"
    expect(report, machines, commands, "is beyond this machine and there is no job key", SECOND, alone)
    expect(report, machines, commands, "others have rights to the file", SECOND, f"cp job.key open.key; chmod 644 open.key; DTG_KEY_FILE=open.key {ask}")
    expect(report, machines, commands, "Connection refused", FIRST, "DTG_KEY_FILE=job.key dtg status 10.0.0.2:2222 --timeout 2")
    expect(report, machines, commands, "the address is in use", FIRST, head + task % ("ps", 0) + "dtg server --tf-config")
    if apart:
        expect(report, machines, commands, "Cannot assign requested address", SECOND, head + task % ("worker", 0) + "./program")
        expect(report, machines, commands, "No route to host", SECOND, f"DTG_KEY_FILE=job.key dtg status {NOBODY}:2222 --timeout 6")
        expect(report, machines, commands, "nobody answered in time", SECOND, f"DTG_KEY_FILE=job.key dtg status {SILENT}:2222 --timeout 3")
    expect(report, machines, commands, "wait for the variables of the model", SECOND, head + task % ("worker", 1) + "./program")
    machines.stop(server)


def other_clock(scratch):
    source, library = pathlib.Path(scratch, "clock.c"), pathlib.Path(scratch, "clock.so")
    source.write_text(OTHER_CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def fitted(report, machines, name, printed):
    report.verdict(f"{machines.name}: {name}: both have trained", None if all(FITTED in each for each in printed) else f"no \"{FITTED}\": {printed}", 0)


def try_out(report, commands, machines, made, build, data, scratch):
    the_key(report, commands, machines)
    for each in ADDRESSES:
        put_program(machines, each, [build / "example_between_graph"])
    fitted(report, machines, "the page", the_job(report, commands, machines, "the page's job", asked=True))
    fitted(report, machines, "another clock", the_job(report, commands, machines, "clocks ten years apart", second=other_clock(scratch)))
    mistakes(report, commands, machines)
    for language, commands_of in made.items():
        put_program(machines, FIRST, [*made["c"]["sync_worker"], data, "weights.safetensors"])
        put_program(machines, SECOND, [*commands_of["sync_worker"], data, "weights.safetensors"])
        the_job(report, commands, machines, f"c on the first, {language} on the second")


def main():
    prefix, build, source = programs.arguments()
    report = Report("bindings_two_machines")
    commands = Commands(source / "capi" / "TWO_MACHINES.md")
    data = source / "tests" / "data" / "digits.csv.gz"
    environment = {**programs.environment(prefix), "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}"}
    made = programs.build_all(report, prefix, build, source)
    missing = stacks_missing()
    if missing:
        print(f"left out: two network namespaces: {missing}", flush=True)
    for kind in (Machines, *([] if missing else [Namespaces])):
        with tempfile.TemporaryDirectory() as scratch:
            machines = kind(scratch, environment)
            try:
                try_out(report, commands, machines, made, build, data, scratch)
            finally:
                machines.close()
    report.finish()


if __name__ == "__main__":
    main()

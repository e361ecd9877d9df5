"""Trains a real program as `dtg run --workers 2..4` launches it, elastically: workers are added, killed and removed while it goes on, and the
job ends well, with every step made once.

Usage: elastic_test.py DTG PROGRAM    where PROGRAM is example_fashion_mnist. Needs python alone.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

DTG, PROGRAM = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[:2]
from cli_test import LIMIT, dtg, wait_until


def main():
    with tempfile.TemporaryDirectory() as place:
        pids, run = pathlib.Path(place, "pids"), os.path.join(place, "run")
        environment = dict(os.environ, XDG_RUNTIME_DIR=place, TMPDIR=place)

        def running():
            return {line.split()[0]: int(line.split()[1]) for line in pids.read_text().splitlines()} if pids.exists() else {}

        def await_workers(*indices):
            wanted = {f"worker/{i}" for i in indices}
            wait_until(lambda: {name for name in running() if name.startswith("worker")} == wanted, f"just {sorted(wanted)}")

        def worker(*words):
            told = dtg("worker", *words, env=environment)
            assert told.returncode == 0, told.stderr
            return told.stdout

        command = [DTG, "run", "--local", "--ps", "2", "--workers", "2..4", "--pids", str(pids), "--log-dir", place, "--json", "--",
                   PROGRAM, "--data", os.path.join(place, "absent"), "--run", run, "--epochs", "400", "--batch", "32", "--rate", "0.03",
                   "--mode", "elastic"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            epochs = lambda: pathlib.Path(place, "worker-0.log").read_text().count("epoch") if pathlib.Path(place, "worker-0.log").exists() else 0
            try:
                await_workers(0, 1)
                wait_until(lambda: epochs() > 2, "an epoch of two workers")
                assert worker("add", "2") == "started worker/2 worker/3\n"
                await_workers(0, 1, 2, 3)
                before = epochs()
                wait_until(lambda: epochs() > before + 2, "an epoch of four workers")
                os.kill(running()["worker/1"], signal.SIGKILL)
                await_workers(0, 2, 3)
                before = epochs()
                wait_until(lambda: epochs() > before + 2, "an epoch after a worker died")
                assert worker("remove") == "ended worker/3\n"
                assert worker("add") == "started worker/1\n"
                out, err = process.communicate(timeout=4 * LIMIT)  # training may share the machine
            finally:
                process.kill()
        report = json.loads(out)
        assert process.returncode == 0, f"{process.returncode}\n{err}"
        assert "worker/1 was killed by SIGKILL" in err and "going on with 3 workers" in err, err
        log = pathlib.Path(place, "worker-0.log").read_text()
        assert ", 0 lost, 0 doubled" in log, log
        summary = json.loads(pathlib.Path(run, "summary.json").read_text())
        assert summary["accuracy"] > 0.85, summary["accuracy"]
        print(f"accuracy {summary['accuracy']}, {len(report['deaths'])} deaths")


main()

"""Holds `dtg run --workers LEAST..MOST` and `dtg worker` to what their help says: who is started, added, ended, and when the launch goes on.

Usage: range_test.py DTG    where DTG is the command. Needs python alone; the programs that it launches are shell scripts.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from cli_test import DTG, LIMIT, dtg, gone, script, wait_until

# Lives until it is told to end, which it does well.
LIVES = "trap 'exit 0' TERM; echo up $$; while :; do sleep 0.05; done"


class Ranges(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=self.place, TMPDIR=self.place)
        self.pids = pathlib.Path(self.place, "pids")

    def launch(self, *words, program):
        process = subprocess.Popen([DTG, "run", "--local", "--pids", str(self.pids), "--json", *words, "--", *program], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def running(self):
        return {line.split()[0]: int(line.split()[1]) for line in self.pids.read_text().splitlines()} if self.pids.exists() else {}

    def worker(self, *words, **environment):
        return dtg("worker", *words, env=dict(self.environment, **environment))

    def await_workers(self, *indices):
        wanted = {f"worker/{i}" for i in indices}
        wait_until(lambda: {name for name in self.running() if name.startswith("worker")} == wanted, f"just {sorted(wanted)}")

    def end(self, process):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        return json.loads(out), err

    def test_workers_are_added_and_ended(self):
        said = 'echo "least $DTG_MIN_WORKERS at $DTG_CONTROL of $TF_CONFIG"; ' + LIVES
        process = self.launch("--workers", "2..4", program=script(ps="exec sleep 1000", chief=said))
        self.await_workers(0, 1)
        self.assertEqual(self.worker("list").stdout, "worker/0 worker/1\n")
        told = self.worker("add")
        self.assertEqual((told.returncode, told.stdout), (0, "started worker/2\n"), told.stderr)
        self.await_workers(0, 1, 2)
        self.assertEqual(self.worker("add", "1").stdout, "started worker/3\n")
        more = self.worker("add")
        self.assertEqual(more.returncode, 1)
        self.assertIn("all workers of the range run", more.stderr)
        third = self.running()["worker/3"]
        self.assertEqual(self.worker("remove", "2").stdout, "ended worker/3 worker/2\n")
        self.await_workers(0, 1)
        self.assertTrue(gone(third))
        fewer = self.worker("remove")
        self.assertEqual(fewer.returncode, 1)
        self.assertIn("2 workers run, and the launch was begun with 2 at least", fewer.stderr)
        # One that was there comes back in its place.
        self.assertEqual(self.worker("add").stdout, "started worker/2\n")
        self.await_workers(0, 1, 2)
        report, err = self.end(process)
        self.assertEqual({task["task"] for task in report["tasks"]}, {"worker/0", "worker/1", "worker/2", "worker/3", "ps/0"})
        spec, least = re.search(r"least (\d) at \S+/control of ({.*})", err).group(2, 1)
        self.assertEqual((len(json.loads(spec)["cluster"]["worker"]), least), (4, "2"))

    def test_it_goes_on_as_long_as_enough_are_there(self):
        process = self.launch("--workers", "2..4", "--start", "3", program=script(ps="exec sleep 1000", chief=LIVES))
        self.await_workers(0, 1, 2)
        os.kill(self.running()["worker/1"], signal.SIGKILL)
        self.await_workers(0, 2)
        # It may be started again by hand.
        self.assertEqual(self.worker("add", "2").stdout, "started worker/3 worker/1\n")
        self.await_workers(0, 1, 2, 3)
        for name in ("worker/3", "worker/2", "worker/1"):
            os.kill(self.running()[name], signal.SIGKILL)
            wait_until(lambda name=name: name not in self.running(), f"the end of {name}")
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertRegex(err, r"worker/1 was killed by SIGKILL after \d+\.\d s; going on with 2 workers\n")
        self.assertRegex(err, r"worker/1 was ended by signal 9 \(Killed\) after \d+\.\d s; ending the others")
        self.assertEqual(len(json.loads(out)["deaths"]), 4)

    def test_the_chief_is_never_done_without(self):
        process = self.launch("--workers", "1..3", "--start", "3", program=script(ps="exec sleep 1000", chief=LIVES))
        self.await_workers(0, 1, 2)
        self.assertEqual(self.worker("remove", "2").stdout, "ended worker/2 worker/1\n")
        self.await_workers(0)
        self.assertEqual(self.worker("add", "2").stdout, "started worker/1 worker/2\n")
        self.await_workers(0, 1, 2)
        os.kill(self.running()["worker/0"], signal.SIGKILL)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)

    def test_one_that_will_not_end(self):
        process = self.launch("--workers", "1..2", "--start", "2", "--grace", "1",
                              program=script(ps="exec sleep 1000", chief=LIVES, other="trap '' TERM; while :; do sleep 0.05; done"))
        self.await_workers(0, 1)
        self.assertEqual(self.worker("remove").returncode, 0)
        self.await_workers(0)
        self.assertIn("worker/1 did not end within 1 s; killing", self.end(process)[1])

    def test_restarts_come_first(self):
        process = self.launch("--workers", "1..2", "--start", "2", "--restart", "on-failure", program=script(ps="exec sleep 1000", chief=LIVES))
        self.await_workers(0, 1)
        before = self.running()["worker/1"]
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.running().get("worker/1", before) != before, "the restart of worker/1")
        self.assertIn("started again in", self.end(process)[1])

    def test_who_asks_without_end_delays_nobody(self):
        import socket
        process = self.launch("--workers", "1..2", program=script(ps="exec sleep 1000", chief=LIVES))
        self.await_workers(0)
        path = next(pathlib.Path(self.place).glob("dtg-*/control"))
        silent = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for one in silent:
            one.connect(str(path))
        silent[0].close()
        silent[-1].sendall(b"add" * 100)
        self.assertEqual(self.worker("list").stdout, "worker/0\n")
        for question in (b"\n", b"add\n", b"add -1\n", b"add x\n", b"kill 1\n"):
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(str(path))
                one.sendall(question)
                self.assertIn(b"is not understood", one.recv(1000))
        for one in silent:
            one.close()
        self.assertEqual(self.worker("add", "--control", str(path)).stdout, "started worker/1\n")
        self.end(process)

    def test_mistakes(self):
        for words in (["--workers", "4..2"], ["--workers", "2..2"], ["--workers", "2.."], ["--workers", "..2"], ["--workers", "1..999"],
                      ["--workers", "2..4", "--start", "5"], ["--workers", "2..4", "--start", "1"], ["--workers", "2", "--start", "2"]):
            told = dtg("run", "--local", *words, "--", "true")
            self.assertEqual(told.returncode, 2, words)
        self.assertIn("two of them as a range, such as 2..8", dtg("run", "--local", "--workers", "x", "--", "true").stderr)
        self.assertIn("say --workers 2..3 too, or neither", dtg("run", "--local", "--workers", "2", "--start", "2", "--", "true").stderr)
        self.assertEqual(self.worker("dismiss").returncode, 2)
        self.assertEqual(self.worker("add", "none").returncode, 2)
        self.assertEqual(self.worker("add", "0").returncode, 2)
        told = self.worker("add")
        if "several launches" not in told.stderr:  # of others of this user, in the common place
            self.assertIn("no launch of yours", told.stderr)
        self.assertEqual(told.returncode, 1)
        told = self.worker("add", DTG_CONTROL=self.place + "/none")
        self.assertEqual(told.returncode, 1)
        self.assertIn("does the launch still run?", told.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

"""Holds `dtg run --restart on-failure` to what its help says: who is started again, when, how often, and what is told of it.

Usage: restarts_test.py DTG    where DTG is the command. Needs python alone; the programs that it launches are shell scripts.
"""

import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from cli_test import DTG, LIMIT, dtg, gone, script, wait_until

AGAIN = ["run", "--local", "--ps", "0", "--restart", "on-failure"]


def first(n, then):
    """A script that does `then` in its first n lives, and ends well in the next."""
    return f'if [ "$DTG_RESTARTS" -lt {n} ]; then {then}; fi; echo life $DTG_RESTARTS; exit 0'


class Restarting(unittest.TestCase):
    def test_a_program_that_crashes_at_first(self):
        told = dtg(*AGAIN, "--json", "--", "sh", "-c", first(3, 'echo "at $TF_CONFIG"; kill -KILL $$'))
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("worker/0 | life 3\n", told.stderr)
        said = re.findall(r"worker/0 was killed by SIGKILL after \d+\.\d s; started again in (\d\.\d) s \((\d) of 10\)", told.stderr)
        self.assertEqual(said, [("0.1", "1"), ("0.2", "2"), ("0.4", "3")], told.stderr)
        self.assertEqual(len(set(re.findall(r"at ({.*})", told.stderr))), 1, "another TF_CONFIG after a restart")
        self.assertRegex(told.stderr, r"dtg: worker/0 died 3 times \(SIGKILL 3 times\) and was started again 3 times\n")
        report = json.loads(told.stdout)
        self.assertEqual(report["exit_code"], 0)
        self.assertEqual([(task["task"], task["restarts"], task["exit_code"]) for task in report["tasks"]], [("worker/0", 3, 0)])
        self.assertEqual([(death["task"], death["signal"], death["exit_code"], death["restarted"]) for death in report["deaths"]],
                         [("worker/0", "SIGKILL", 137, True)] * 3)
        times = [death["seconds"] for death in report["deaths"]]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[2] - times[0], 0.2)

    def test_a_ps_and_a_worker(self):
        told = dtg("run", "--local", "--restart", "on-failure", "--json", "--", *script(ps=first(1, "exit 3"), chief=first(2, "kill -SEGV $$")))
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("ps/0 ended with exit code 3 after", told.stderr)
        self.assertEqual({task["task"]: task["restarts"] for task in json.loads(told.stdout)["tasks"]}, {"worker/0": 2, "ps/0": 1})

    def test_others_live_on(self):
        told = dtg(*AGAIN, "--workers", "2", "--", *script(chief="echo one $$; sleep 0.6; echo two $$; exit 0", other=first(1, "exit 9")))
        self.assertEqual(told.returncode, 0, told.stderr)
        chief = re.findall(r"worker/0 \| (one|two) (\d+)", told.stdout)
        self.assertEqual([word for word, _ in chief], ["one", "two"])
        self.assertEqual(chief[0][1], chief[1][1])

    def test_never_is_the_default(self):
        for words in ([], ["--restart", "never"]):
            told = dtg("run", "--local", "--ps", "0", *words, "--", "sh", "-c", first(1, "exit 5"))
            self.assertEqual(told.returncode, 5)
            self.assertNotIn("again", told.stderr)
            self.assertNotIn("life", told.stdout)

    def test_limit(self):
        told = dtg(*AGAIN, "--workers", "2", "--restart-limit", "3", "--json", "--",
                   *script(chief="sleep 1000", other='echo "life $DTG_RESTARTS"; exit 7'))
        self.assertEqual(told.returncode, 7)
        self.assertEqual(re.findall(r"worker/1 \| life (\d)", told.stderr), ["0", "1", "2", "3"])
        self.assertRegex(told.stderr, r"worker/1 ended with exit code 7 after .* s; not started again: it has been 3 times within 60 s, which is the "
                                      r"limit; ending the others")
        report = json.loads(told.stdout)
        self.assertEqual([death["restarted"] for death in report["deaths"]], [True, True, True, False])
        self.assertEqual([task["ended_by_launcher"] for task in report["tasks"]], [True, False])

    def test_mistakes_are_not_repeated(self):
        for code in (2, 126, 127):
            told = dtg(*AGAIN, "--", "sh", "-c", f"echo life; exit {code}")
            self.assertEqual((told.returncode, told.stdout.count("life")), (code, 1), told.stderr)
            self.assertIn("not started again", told.stderr)
        self.assertEqual(dtg(*AGAIN, "--", "/no/such/program").returncode, 127)

    def test_a_program_that_vanishes(self):
        with tempfile.TemporaryDirectory() as place:
            program = pathlib.Path(place, "program")
            program.write_text('#!/bin/sh\nrm "$0"\nexit 3\n')
            program.chmod(0o700)
            told = dtg(*AGAIN, "--", str(program))
            self.assertEqual(told.returncode, 127, told.stderr)
            self.assertIn("cannot start", told.stderr)

    def test_nothing_is_restarted_at_the_end(self):
        # The workers are done; what the ps then dies of is how the launch ends.
        told = dtg("run", "--local", "--restart", "on-failure", "--", *script(ps="sleep 0.5; echo life; exit 4", chief="exit 0"))
        self.assertEqual((told.returncode, told.stdout.count("life")), (4, 1), told.stderr)
        self.assertNotIn("started again in", told.stderr)

    def test_nothing_is_restarted_when_the_job_is_over(self):
        # The worker fails when the launcher has seen the others end.
        for ps, gone in (("0", "worker/0"), ("1", "ps/0")):
            with tempfile.TemporaryDirectory() as place:
                ends = "echo $$ > {0}/{1}.new; mv {0}/{1}.new {0}/{1}; exit 0"
                awaits = "".join(f"until [ -e {place}/{task} ] && ! kill -0 $(cat {place}/{task}) 2>/dev/null; do sleep 0.02; done; "
                                 for task in ("chief", *["ps"] * int(ps)))
                told = dtg("run", "--local", "--ps", ps, "--workers", "2", "--restart", "on-failure", "--json", "--",
                           *script(ps=ends.format(place, "ps"), chief=ends.format(place, "chief"), other=f"echo life; {awaits}exit 9"))
                self.assertEqual((told.returncode, told.stderr.count("life")), (9, 1), told.stderr)
                self.assertIn(f"not started again: it needs {gone}, which has ended", told.stderr)
                self.assertEqual([death["restarted"] for death in json.loads(told.stdout)["deaths"]], [False])

    def test_the_job_ends_while_a_worker_waits(self):
        # The chief ends when it sees that the other is dead, however often that has been started again until then.
        with tempfile.TemporaryDirectory() as place:
            ends = f"until [ -e {place}/pid ] && ! kill -0 $(cat {place}/pid) 2>/dev/null; do sleep 0.02; done; exit 0"
            fails = f"echo life; echo $$ > {place}/pid.new; mv {place}/pid.new {place}/pid; exit 9"
            told = dtg(*AGAIN, "--workers", "2", "--json", "--", *script(chief=ends, other=fails))
            self.assertEqual(told.returncode, 9, told.stderr)
            self.assertRegex(told.stderr, "not started again( after all)?: it needs worker/0, which has ended")
            deaths = json.loads(told.stdout)["deaths"]
            self.assertEqual([death["restarted"] for death in deaths], [True] * (told.stderr.count("life") - 1) + [False])
            # What was said of its last death is what came of it, or is taken back.
            last = told.stderr[told.stderr.rindex("worker/1 ended with exit code 9"):]
            self.assertEqual("; started again in" in last.splitlines()[0], "not started again after all" in last, told.stderr)

    def test_bad_options(self):
        self.assertEqual(dtg("run", "--local", "--restart", "always", "--", "true").returncode, 2)
        self.assertEqual(dtg(*AGAIN, "--restart-limit", "0", "--", "true").returncode, 2)
        self.assertEqual(dtg("run", "--local", "--durability", "paper", "--", "true").returncode, 2)
        self.assertIn("--state", dtg("run", "--local", "--durability", "wal", "--", "true").stderr)


class Waiting(unittest.TestCase):
    def test_interrupt_while_a_task_waits(self):
        process = subprocess.Popen([DTG, *AGAIN, "--grace", "600", "--", "sh", "-c", "exit 3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        # The pause in front of the sixth life is over 2.8 s, long enough to be met.
        while "(6 of 10)" not in process.stderr.readline():
            pass
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - start, 1.5)
        self.assertNotIn("(7 of 10)", err)
        self.assertIn("worker/0 is not started again after all: the launch is ending", err)
        self.assertIn("worker/0 died 6 times (exit code 3 6 times) and was started again 5 times", err)

    def test_no_busy_waiting(self):
        before = os.times()
        told = dtg(*AGAIN, "--", "sh", "-c", first(5, "exit 3"))
        after = os.times()
        self.assertEqual(told.returncode, 0)
        self.assertLess(after.children_user + after.children_system - before.children_user - before.children_system, 1.5)


class Files(unittest.TestCase):
    def test_log_of_all_lives(self):
        with tempfile.TemporaryDirectory() as place:
            dtg(*AGAIN, "--log-dir", place, "--", "sh", "-c", first(2, "printf 'broken off'; kill -KILL $$"))
            self.assertEqual(pathlib.Path(place, "worker-0.log").read_text().splitlines(), ["broken off", "broken off", "life 2"])

    def test_state(self):
        with tempfile.TemporaryDirectory() as place:
            told = dtg("run", "--local", "--state", "state", "--durability", "wal", "--", "sh", "-c", 'echo "$DTG_DURABILITY $DTG_STATE_DIR"', cwd=place)
            self.assertEqual(told.returncode, 0, told.stderr)
            root = pathlib.Path(place).resolve() / "state"
            for task in ("worker-0", "ps-0"):
                self.assertIn(f"wal {root}/{task}\n", told.stdout)
                self.assertEqual(stat.S_IMODE((root / task).stat().st_mode), 0o700)
            self.assertEqual(stat.S_IMODE(root.stat().st_mode), 0o700)
            # What is there already is kept.
            (root / "ps-0" / "kept").write_text("x")
            self.assertEqual(dtg("run", "--local", "--state", str(root), "--", "true").returncode, 0)
            self.assertTrue((root / "ps-0" / "kept").exists())
            (root / "file").write_text("x")
            self.assertEqual(dtg("run", "--local", "--state", str(root / "file"), "--", "true").returncode, 1)

    def test_pids(self):
        with tempfile.TemporaryDirectory() as place:
            pids = pathlib.Path(place, "pids")
            process = subprocess.Popen([DTG, *AGAIN, "--workers", "2", "--pids", str(pids), "--", "sh", "-c", "exec sleep 1000"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            def running():
                return {line.split()[0]: line.split()[1:] for line in pids.read_text().splitlines()} if pids.exists() else {}

            wait_until(lambda: len(running()) == 2, "two tasks in the file")
            before = running()
            for pid, start in before.values():
                self.assertEqual(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19], start)
            os.kill(int(before["worker/1"][0]), signal.SIGKILL)
            wait_until(lambda: len(running()) == 2 and running() != before, "the restart in the file")
            self.assertEqual(running()["worker/0"], before["worker/0"])
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT)
            self.assertFalse(pids.exists())
            self.assertTrue(all(gone(int(pid)) for pid, _ in before.values()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

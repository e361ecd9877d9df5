"""What the example programs say where their data is not: what to give them. Their exit code is 1; a sanitizer that finds the error of
such a run unreleased gives another.

Usage: examples_test.py DIGITS FIT RESUME FASHION_MNIST    the programs
"""

import os
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = dict(zip(("digits", "fit", "resume", "fashion_mnist"), sys.argv[1:5]))


def told(name):
    """The program's run in an empty folder."""
    environment = {key: value for key, value in os.environ.items() if key != "DTG_SOURCE_DIR"}
    words = [PROGRAMS[name], *(("--data", "nowhere") if name == "fashion_mnist" else ())]
    with tempfile.TemporaryDirectory() as place:
        return subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, timeout=120, check=False)


class WithoutData(unittest.TestCase):
    def test_usage(self):
        for name in ("digits", "fit", "resume"):
            run = told(name)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("NOT_FOUND", run.stderr)
            self.assertIn(f"usage: {name} DIGITS", run.stderr)

    def test_the_demo_names_its_option(self):
        run = told("fashion_mnist")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("--data DIR names the folder of either", run.stderr)
        self.assertIn("in nowhere are neither", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

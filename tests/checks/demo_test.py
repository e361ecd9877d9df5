"""Trains the demo on the digits of the repository and lets other people's readers open what it leaves behind.

Usage: demo_test.py PROGRAM    with DTG_PYTHON naming a Python that has tests/requirements.txt (77 = skipped without it)
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main():
    python = os.environ.get("DTG_PYTHON")
    if not python:
        print("skipped: DTG_PYTHON names no Python with the packages of tests/requirements.txt")
        return 77
    with tempfile.TemporaryDirectory() as run:
        # A data folder that is not there makes the program take the digits, 20 epochs of them.
        subprocess.run([sys.argv[1], os.path.join(run, "absent"), run, "20"], check=True, cwd=HERE.parent.parent, timeout=200)
        return subprocess.run([python, HERE / "run_dir_check.py", run, "--min-accuracy", "0.93"], check=False, timeout=100).returncode


if __name__ == "__main__":
    sys.exit(main())

"""What bindings/generate writes is what is committed: a change of the op table or of an emitter comes with its output."""

import argparse
import pathlib
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options, _ = parser.parse_known_args()
    command = [sys.executable, options.source / "bindings" / "generate" / "main.py", "--dtg", options.build / "bin" / "dtg", "--check"]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

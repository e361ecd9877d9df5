"""Sources are laid out as `make format` would: what the formatter would change fails here, with the place.

Versions of clang-format lay out differently, so only version 14 counts. Where it is missing, the test is named as skipped.
"""

import re
import subprocess
import sys

import common

SKIPPED = 77
VIOLATION = re.compile(r"^(.+?):(\d+):\d+: error: .*\[-Wclang-format-violations\]$", re.M)


def main():
    arguments = common.arguments()
    root = arguments.source
    findings = common.Findings(root)
    done = subprocess.run([root / ".ci" / "format", "--check"], capture_output=True, text=True, check=False)
    if done.returncode == SKIPPED:
        print("SKIPPED tidy_format: clang-format 14 is not installed; to install it: apt-get install clang-format-14", flush=True)
        sys.exit(SKIPPED)
    places = {}
    for match in VIOLATION.finditer(done.stderr):
        places.setdefault(match.group(1).removeprefix("./"), int(match.group(2)))
    for name, line in sorted(places.items()):
        findings.add(root / name, line, "the formatter would change this", "make format; `// clang-format off` is for tables")
    if done.returncode and not places:
        findings.add(root / ".ci" / "format", 0, f"ended with exit code {done.returncode}", (done.stdout + done.stderr).strip())
    findings.finish("format")


if __name__ == "__main__":
    main()

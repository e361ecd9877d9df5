"""Keeps the mutants alive: each patch of tests/random/mutants and tests/sim/mutants still fits what it breaks.

`make mutants` and `make mutants-sim` take their time and are run now and then; a patch that fits nothing any more would only be noticed there.
"""

import subprocess

import common


def main():
    arguments = common.arguments()
    findings = common.Findings(arguments.source)
    patches = common.files(arguments.source, "tests/*/mutants/*.patch")
    for path in patches:
        tried = subprocess.run(["git", "apply", "--check", path], cwd=arguments.source, capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            findings.add(path, 0, "does not apply: " + (tried.stderr.strip().splitlines() or ["?"])[0],
                         "make the same mistake in the code as it is now, and write the patch anew with git diff")
    findings.finish(f"mutants, {len(patches)} patches")


if __name__ == "__main__":
    main()

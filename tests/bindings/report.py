"""The results of a binding's tests, case by case, in the form that .ci/stages.py counts.

    report = Report("bindings_go")
    report.need("go", "apt-get install golang-go, or https://go.dev/dl")     missing: named as skipped, and the program ends
    report.case("go vet", ["go", "vet", "./..."], cwd=source, env={"PKG_CONFIG_PATH": ...})
    report.finish()

The report goes to $DTG_RESULTS/NAME.json where that is set (ctest does), otherwise only to the terminal. A tool that is missing makes
the whole test end with code 77, which ctest knows as skipped; its line "SKIPPED ..." is repeated at the end of `make test`.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

SKIPPED = 77


class Report:
    def __init__(self, name):
        self.name = name
        self.cases = []

    def need(self, tool, install):
        """Ends the test as skipped, naming the command that installs the tool, where it cannot be found."""
        if shutil.which(tool) is None:
            self.skip(tool, install)

    def skip(self, tool, install):
        print(f"SKIPPED {self.name}: {tool} is not installed; to install it: {install}", flush=True)
        sys.exit(SKIPPED)

    def case(self, name, command, cwd=None, env=None, timeout=540, check=None):
        """Runs one check: passed when the command succeeds and `check`, if given, finds no fault in what it printed (it returns a text
        that says what is wrong, or None). The output is shown when it failed. Returns the output, None when it failed."""
        start = time.monotonic()
        words = [str(word) for word in command]
        try:
            done = subprocess.run(
                words, check=False, cwd=cwd, env={**os.environ, **(env or {})}, timeout=timeout, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            fault = f"exit code {done.returncode}" if done.returncode else check(done.stdout) if check else None
            output = done.stdout
        except subprocess.TimeoutExpired as late:
            fault, output = f"not done within {timeout} s", (late.stdout or b"").decode(errors="replace")
        except OSError as error:
            fault, output = str(error), ""
        self.verdict(name, fault, time.monotonic() - start)
        if fault:
            print("    " + " ".join(words) + "\n" + output, flush=True)
        return None if fault else output

    def verdict(self, name, fault, seconds):
        """One check that was made: `fault` says what is wrong, or None."""
        self.cases.append((name, fault, seconds))
        print(f"{'FAILED' if fault else 'ok    '} {seconds:6.1f} s  {name}{': ' + fault if fault else ''}", flush=True)

    def finish(self):
        """Writes the report and ends the program: 0 only if something passed and nothing failed."""
        cases = []
        for name, fault, seconds in self.cases:
            case = {"name": name, "status": "RUN", "result": "COMPLETED", "time": f"{seconds:.3f}s"}
            if fault:
                case["failures"] = [{"failure": fault}]
            cases.append(case)
        folder = os.environ.get("DTG_RESULTS")
        if folder:
            pathlib.Path(folder, f"{self.name}.json").write_text(json.dumps({"testsuites": [{"name": self.name, "testsuite": cases}]}))
        failed = sum(1 for _, fault, _ in self.cases if fault)
        print(f"{len(self.cases) - failed} passed, {failed} failed", flush=True)
        sys.exit(0 if self.cases and not failed else 1)

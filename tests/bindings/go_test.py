#!/usr/bin/env python3
"""The Go binding's tests: tests/bindings/go_test.py PREFIX BUILD_DIR SOURCE_DIR.

PREFIX: an installation of the library. The tests of bindings/go run against it, plain, under the race detector and with cgo's own
checks; gofmt, vet and staticcheck look at the source; a module outside the tree builds and runs against the installation; the
example programs print what those of C print.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import programs
from report import Report

STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@"
OUTSIDE = """package main

import (
	"fmt"

	dtg "github.com/dtg-project/dtg/bindings/go"
)

func main() {
	t := dtg.Must(dtg.NewTensor([]float32{1, 2}))
	fmt.Println(dtg.Version(), dtg.Must(dtg.Copy[float32](t)), t.Close(), dtg.LiveHandles())
}
"""


def outside(report, source, scratch, env, tags=()):
    """A module of its own, as a user has it; `replace` stands for the tag of a release."""
    folder = scratch / "outside"
    folder.mkdir(exist_ok=True)
    (folder / "main.go").write_text(OUTSIDE)
    (folder / "go.mod").write_text(
        "module example.org/outside\n\ngo 1.24\n\nrequire github.com/dtg-project/dtg/bindings/go v0.0.0\n\n"
        f"replace github.com/dtg-project/dtg/bindings/go => {source / 'bindings' / 'go'}\n"
    )
    name = "a module outside the tree" + (f", {' '.join(tags)}" if tags else "")
    if "dtg_static" in tags:
        env = {**env, "LD_LIBRARY_PATH": ""}  # it has the library in itself
    report.case(name, ["go", "run", *(["-tags", ",".join(tags)] if tags else []), "."], cwd=folder, env=env,
                check=lambda output: None if output.endswith("[1 2] <nil> 0\n") else "it prints something else")


def staticcheck(report, module, env):
    """The pinned version that runs with this go; it comes through the module proxy, once per machine."""
    tool = STATICCHECK + ("v0.7.0" if programs.go_version() >= (1, 25) else "v0.6.1")
    if subprocess.run(["go", "run", tool, "-version"], cwd=module, env={**os.environ, **env}, check=False, capture_output=True).returncode != 0:
        print(f"SKIPPED staticcheck: {tool} cannot be had without a network; to fetch it: go run {tool} -version", flush=True)
        return
    report.case("staticcheck", ["go", "run", tool, "./..."], cwd=module, env=env)


def main():
    prefix, build, source = programs.arguments()
    report = Report("bindings_go")
    report.need("go", programs.INSTALL["go"])
    if programs.go_version() < (1, 24):
        report.skip("go 1.24", programs.INSTALL["go"])
    report.need("pkg-config", "apt-get install pkg-config")
    module = source / "bindings" / "go"
    env = programs.environment(prefix)
    report.case("gofmt", ["gofmt", "-l", "."], cwd=module, check=lambda output: "not formatted: " + output if output else None)
    report.case("go vet", ["go", "vet", "./..."], cwd=module, env=env)
    report.case("go test", ["go", "test", "-count=1", "./..."], cwd=module, env=env)
    report.case("go test -race", ["go", "test", "-race", "-count=1", "."], cwd=module, env=env)
    report.case("go test, cgocheck2", ["go", "test", "-count=1", "."], cwd=module, env={**env, "GOEXPERIMENT": "cgocheck2"})
    staticcheck(report, module, env)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        report.case("build the examples", ["go", "build", "-o", f"{scratch}/", "./examples/..."], cwd=module, env=env)
        digits = source / "tests" / "data" / "digits.csv.gz"
        c = subprocess.run([build / "example_digits", digits], check=True, stdout=subprocess.PIPE, text=True).stdout
        report.case("digits as in C", [scratch / "digits", digits], env=env, check=lambda output: None if output == c else f"C prints\n{c}")
        c = subprocess.run([build / "example_fit", digits], check=True, stdout=subprocess.PIPE, text=True).stdout
        for epochs in "2", "5":
            expected = "".join(c.splitlines(keepends=True)[:int(epochs)])
            # The second one goes on with what the first one has left.
            expected = expected if epochs == "2" else "".join(c.splitlines(keepends=True)[2:])
            report.case(f"fit to epoch {epochs} as in C", [scratch / "fit", digits, scratch / "run", epochs], env=env,
                        check=lambda output, expected=expected: None if output == expected else f"C prints\n{expected}")
        report.case("models as TensorFlow", [sys.executable, source / "tests" / "models" / "models_test.py", scratch / "models"], env=env)
        programs.writes_as_c(report, build, [scratch / "models"], env)
        weights = {}
        for language, worker in (("c", build / "example_sync_worker"), ("go", scratch / "sync_worker")):
            weights[language] = scratch / f"{language}.safetensors"
            report.case(f"two synchronous workers in {language}",
                        [build / "bin" / "dtg", "run", "--local", "--ps", "1", "--workers", "2", "--", worker, digits, weights[language]], env=env)
        report.case("the same weights", ["cmp", weights["c"], weights["go"]])
        outside(report, source, scratch, env)
        outside(report, source, scratch, env, ("dtg_static",))
    report.finish()


if __name__ == "__main__":
    main()

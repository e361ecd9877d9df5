#!/usr/bin/env python3
"""Writes what is generated for the bindings: typed op wrappers for every language from the op table, the table of C functions and who
reaches them, and the words of C in messages with those of each language.

    bindings/generate/main.py [--dtg PATH] [--check] [--stem NAME ...]

--dtg: the dtg command that knows the ops (default: build/release/bin/dtg). --check writes nothing and fails where something on disk
is not what would be written. --stem: only these emitters (c, go, java, rust, functions, words).

An emitter is a module beside this one with emit(ops) -> {path from the root of the repository: text}.
"""

import argparse
import importlib
import pathlib
import subprocess
import sys

import ops

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NOT_EMITTERS = {"main", "ops"}


def emitters(wanted):
    names = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_EMITTERS)
    unknown = set(wanted) - set(names)
    if unknown:
        sys.exit(f"there is no emitter {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [importlib.import_module(name) for name in names if not wanted or name in wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtg", default=ROOT / "build" / "release" / "bin" / "dtg", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stem", nargs="*", default=[])
    options = parser.parse_args()
    table = ops.parse(subprocess.run([options.dtg, "ops", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    stale = []
    for emitter in emitters(options.stem):
        for path, text in emitter.emit(table).items():
            target = ROOT / path
            if target.exists() and target.read_text() == text:
                continue
            stale.append(path)
            if not options.check:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
    for path in stale:
        print(f"{path}: {'not what bindings/generate/main.py writes; run it' if options.check else 'written'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

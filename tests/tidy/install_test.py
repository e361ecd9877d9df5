"""`make install` on a fresh clone finds what it installs: each target that is installed is one that `make build` builds.

The tests build everything, so that nothing else would notice.
"""

import re

import common


def main():
    arguments = common.arguments()
    findings = common.Findings(arguments.source)
    makefile, rules = arguments.source / "Makefile", arguments.source / ".cmake" / "DtgInstall.cmake"
    recipe = re.search(r"^build:.*\n((?:\t.*\n)+)", makefile.read_text(), re.MULTILINE)
    built = set(recipe.group(1).split("--target", 1)[1].split()) if recipe and "--target" in recipe.group(1) else set()
    installed = re.findall(r"install\(TARGETS (\w+)", rules.read_text())
    for target in installed:
        if target not in built:
            findings.add(makefile, 0, f"`make build` does not build {target}, which is installed", "name it among the targets of build")
    if not installed:
        findings.add(rules, 0, "installs no targets, or this test reads it wrongly", "mend tests/tidy/install_test.py")
    findings.finish(f"install, {len(installed)} targets")


if __name__ == "__main__":
    main()

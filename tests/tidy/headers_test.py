"""Compiles every public header alone, as strict C11, as C++11 and as C++20, and checks the version they announce.

A header that needs another one included first, or that warns under a host's flags, is a bug in the header: the host cannot fix it. What
the library calls the phase of an error stands in the list of dtg_error_phase, and in those of the bindings.
"""

import re
import subprocess
import tempfile

import common

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def check_phases(root, findings):
    """The phases of errors are those that dtg_error_phase lists, and so do the bindings."""
    said = {}
    for source in common.files(root, "internal/**/*.cc", "internal/**/*.h", "capi/*.cc"):
        text = source.read_text()
        for phase in re.findall(r'in_phase\("(\w+)"\)', text) + re.findall(r'told_by\([^;]*"(\w+)"\)', text):
            said[phase] = source
    header = root / "capi/include/dtg/error.h"
    listed = re.findall(r'^ \*   "(\w+)" ', re.search(r"/\* When it failed(.*?)\*/", header.read_text(), flags=re.S).group(1), flags=re.M)
    for phase in sorted(said.keys() - set(listed)):
        findings.add(said[phase], 0, f'the phase "{phase}" is not in the list of dtg_error_phase', "add it there and in the bindings")
    for phase in sorted(set(listed) - said.keys()):
        findings.add(header, 0, f'nobody says the phase "{phase}"', "take it out of the list, there and in the bindings")
    for name in ("go/error.go", "rust/dtg/src/error.rs", "java/src/main/java/org/dtg/DtgException.java"):
        path = root / "bindings" / name
        text = path.read_text()
        for phase in listed:
            if f'"{phase}"' not in text and f"`{phase}`" not in text:
                findings.add(path, 0, f'the phase "{phase}" of dtg_error_phase is not in the list', "add it with what it means")


def main():
    arguments = common.arguments()
    root = arguments.source
    findings = common.Findings(root)
    headers = common.files(root, "capi/include/dtg/*.h")
    # As a host would see them: not as system headers, so that warnings count.
    include = f"-I{root / 'capi/include'}"
    dialects = [
        ("C11", [arguments.cc, "-x", "c", "-std=c11", "-Wstrict-prototypes"]),
        ("C++11", [arguments.cxx, "-x", "c++", "-std=c++11", "-Wold-style-cast", "-Wzero-as-null-pointer-constant"]),
        ("C++20", [arguments.cxx, "-x", "c++", "-std=c++20", "-Wold-style-cast", "-Wzero-as-null-pointer-constant"]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for header in headers:
            # Twice: an include guard is part of the contract.
            probe = f"{folder}/probe.inc"
            with open(probe, "w", encoding="utf-8") as file:
                file.write(f"#include <dtg/{header.name}>\n" * 2 + "int probe_uses_nothing;\n")
            for dialect, command in dialects:
                result = subprocess.run(command + WARNINGS + [include, probe], capture_output=True, text=True, check=False)
                if result.returncode != 0:
                    findings.add(header, 0, f"does not compile alone as {dialect}", "\n    ".join(result.stderr.strip().splitlines()[:12]))

    project = re.search(r"project\(dtg VERSION (\d+)\.(\d+)\.(\d+)", (root / "CMakeLists.txt").read_text()).groups()
    text = "\n".join(header.read_text() for header in headers)
    for name, wanted in zip(("MAJOR", "MINOR", "PATCH"), project):
        for announced in re.findall(rf"#\s*define\s+DTG_VERSION_{name}\s+(\d+)", text):
            if announced != wanted:
                findings.add(root / "capi/include/dtg", 0, f"DTG_VERSION_{name} is {announced}, the project says {wanted}",
                             "CMakeLists.txt has the version; make the header follow")
    check_phases(root, findings)
    findings.finish(f"headers, {len(headers)} headers in {len(dialects)} dialects")


if __name__ == "__main__":
    main()

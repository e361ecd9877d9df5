"""Wants a row in the tests for every struct of the public headers that begins with its size.

Such a struct may grow: what an older host leaves out and a newer one has in addition is decided in each function that reads or writes it
(read_struct and write_struct of capi/), and nobody sees that one forgot. So tests/abi/structs*_test.cc give each function every size:
each_size("dtg_run_args", ...); a struct that only the library makes has says_its_size("dtg_variable_place", ...).

And their strings, each with a length beside it, must stand in capi/given.h, which refuses those whose length was forgotten.
"""

import re

import common

STRUCT = re.compile(r"typedef struct (dtg_\w+) \{(.*?)\} \1;", re.S)
LENGTH = re.compile(r"\bsize_t (\w+)_len;")
VALUES = {"s"}  # a string that is a value may be empty
ROW = re.compile(r'\b(?:each_size|says_its_size)\(\s*"(dtg_\w+)"')


def main():
    arguments = common.arguments()
    root = arguments.source
    findings = common.Findings(root)
    structs = {}
    given = set(re.findall(r"^  DTG_GIVEN\((\w+)\)$", (root / "capi/given.h").read_text(), flags=re.M))
    for header in common.files(root, "capi/include/dtg/*.h"):
        text = header.read_text()
        for match in STRUCT.finditer(text):
            if re.search(r"\bsize_t struct_size;", match.group(2)):
                structs[match.group(1)] = (header, common.line_of(text, match.start()))
                for field in sorted(set(LENGTH.findall(match.group(2))) - given - VALUES):
                    findings.add(header, common.line_of(text, match.start()), f"{match.group(1)}.{field} is missing in capi/given.h",
                                 f"add DTG_GIVEN({field})")
    rows = set()
    for source in common.files(root, "tests/abi/structs*_test.cc"):
        rows.update(ROW.findall(source.read_text()))
    for name, (header, line) in structs.items():
        if name not in rows:
            findings.add(header, line, f"{name} has no row in tests/abi/structs*_test.cc",
                         f'add each_size("{name}", ...) with a function that takes it')
    for name in sorted(rows - structs.keys()):
        findings.add(root / "tests/abi", 0, f"has a row for {name}, which is no struct with a size of the public headers", "its name has changed")
    # Headers that are written in another way than this expects would have no structs.
    if len(structs) < 60:
        findings.add(root / "capi/include/dtg", 0, f"has {len(structs)} structs with a size only", "the pattern of this test no longer fits")
    findings.finish(f"structs, {len(structs)} of them")


if __name__ == "__main__":
    main()

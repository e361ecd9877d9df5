"""Every function of the public headers stands in a scene of failing memory (tests/abi/oom_*.c), where its allocations fail one by one.

A function that is only called by an inline one of dtg/sugar.h or dtg/sugar_ops.h counts where that is called. Exceptions are listed with
their reason; there should be none that a scene could have.
"""

import re

import common

# Nothing that a scene calls by name, and why.
EXCEPTIONS = {
    "dtg_graph_add_op": "every node of every scene is added by it, through dtg/sugar_ops.h",
}
DECLARED = re.compile(r"^(?:DTG_API|DTG_ERR)\b[^;{]*?\b(dtg_\w+)\s*\(", re.M)


def main():
    arguments = common.arguments()
    root = arguments.source
    findings = common.Findings(root)
    scenes = "\n".join(common.blank(path.read_text()) for path in common.files(root, "tests/abi/oom_*.c", "tests/abi/oom.h"))
    named = set(re.findall(r"\bdtg_\w+\b", scenes))
    functions = 0
    for header in common.files(root, "capi/include/dtg/*.h"):
        code = common.blank(header.read_text())
        for match in DECLARED.finditer(code):
            functions += 1
            name = match.group(1)
            if name in named and name in EXCEPTIONS:
                findings.add(root / "tests/tidy/memory_test.py", 0, f"{name} is an exception, but stands in a scene", "take it off the list")
            if name not in named and name not in EXCEPTIONS:
                findings.add(header, common.line_of(code, match.start()), f"{name} stands in no scene of failing memory",
                             "call it in a scene of tests/abi/oom_*.c")
    if not functions:
        findings.add(root / "capi/include/dtg", 0, "no header declares a function", "mend the pattern of this test")
    findings.finish(f"memory, {functions} functions")


if __name__ == "__main__":
    main()

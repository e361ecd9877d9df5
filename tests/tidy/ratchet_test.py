"""Keeps files and functions short, files introduced, and the tree free of postponed work.

ratchet.json holds the greatest length a file and a function may have. It only ever shrinks: when the longest ones got shorter, run
this with --update and commit the smaller numbers. A number is never raised to let something in; split that something.
"""

import json
import re

import common

CONTROL = re.compile(r"^(?:if|for|while|switch|catch|do|else|try|return|case|default)\b")
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern|concept)\b")
POSTPONED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")


def functions(text):
    """Yields (first line, length, head) of every function body; lambdas and blocks count to the function around them."""
    stack = []
    start = 0
    inside = None
    for match in re.finditer(r"[;{}]", text):
        offset = match.start()
        head = " ".join(line for line in text[start:offset].split("\n") if not line.lstrip().startswith("#"))
        head = re.sub(r"\s+", " ", re.sub(r"^\s*(?:public|private|protected)\s*:", "", head)).strip()
        start = offset + 1
        if match.group() == "{":
            # `struct dtg_error* name(...) {` is a function, `class Name : Base<int(char)> {` is not.
            scope = SCOPE.search(head.split("(")[0]) and not re.search(r"\)\s*(?:const|noexcept|override|final|\s)*$", head)
            if inside is None and "(" in head and not scope and not CONTROL.match(head) and not head.endswith("="):
                inside = (len(stack), offset, head)
            stack.append(offset)
        elif match.group() == "}" and stack:
            stack.pop()
            if inside and len(stack) == inside[0]:
                first, last = common.line_of(text, inside[1]), common.line_of(text, offset)
                yield first, last - first + 1, inside[2]
                inside = None


def main():
    arguments = common.arguments()
    root = arguments.source
    findings = common.Findings(root)
    ratchet_file = root / "tests/tidy/ratchet.json"
    limits = json.loads(ratchet_file.read_text())

    longest = {"file_lines": 0, "function_lines": 0}
    sources = common.library_sources(root)
    for path in sources:
        text = path.read_text()
        lines = text.count("\n")
        longest["file_lines"] = max(longest["file_lines"], lines)
        if lines > limits["file_lines"]:
            findings.add(path, 0, f"{lines} lines, limit {limits['file_lines']}", "split it by concept")
        for line, length, head in functions(common.blank(text)):
            longest["function_lines"] = max(longest["function_lines"], length)
            if length > limits["function_lines"]:
                name = re.findall(r"([\w:~]+)\s*\(", head)
                findings.add(path, line, f"{name[0] if name else head[:40]} has {length} lines, limit {limits['function_lines']}",
                             "give its parts names")
        if not re.match(r"\s*(?://|/\*)", text):
            findings.add(path, 1, "does not open with a comment", "say in a paragraph what the file is and why it exists")

    others = common.files(root, "tests/**/*.cc", "tests/**/*.c", "tests/**/*.h", "tests/**/*.py", "fuzz/*.cc", "capi/examples/*.c",
                          "bindings/**/*.go", "bindings/**/*.rs", "bindings/**/*.java", ".cmake/*", ".deps/*", ".ci/*", "CMakeLists.txt",
                          "Makefile")
    for path in sources + others:
        text = path.read_text(errors="replace")
        for match in POSTPONED.finditer(text):
            findings.add(path, common.line_of(text, match.start()), f"says {match.group()}", "do it, or leave it out; plans live elsewhere")

    if arguments.update:
        lowered = {name: min(limit, longest[name]) if name in longest else limit for name, limit in limits.items()}
        ratchet_file.write_text(json.dumps(lowered, indent=2) + "\n")
    findings.finish(f"ratchet, {len(sources)} sources, longest file {longest['file_lines']}, longest function {longest['function_lines']}")


if __name__ == "__main__":
    main()

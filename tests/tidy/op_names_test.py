"""Keeps the names of ops out of whoever plans and runs graphs.

What an op means to a pass, to the executor or to a cluster is in its definition (internal/graph/op_def.h: effects, roles, forwarding,
value functions and rules). A list of names beside it drifts from it, and then values are wrong without an error. So no literal in
these folders may be the name of an op; a comment may. The names are those of the built library, and of the definitions that it keeps
to itself.
"""

import json
import re
import subprocess

import common

FOLDERS = ("plan", "exec", "cluster", "session")
PRIVATE = re.compile(r'\bOpDef::make\(\s*"(\w+)"')


def op_names(root, build):
    """Public ops as the command lists them, private ones as their definitions are written."""
    table = subprocess.run([build / "bin" / "dtg", "ops", "--json"], capture_output=True, text=True, check=True).stdout
    names = {op["name"] for op in json.loads(table)}
    for path in common.files(root, "internal/ops/*.cc"):
        names.update(PRIVATE.findall(path.read_text()))
    return names


def literals(text):
    """Offset and content of each string; the pattern also takes comments, so that what stands in them does not count."""
    for match in common.TOKEN.finditer(text):
        token = match.group(0)
        if token.startswith('"'):
            yield match.start(), token[1:-1]
        elif token.startswith("R"):
            yield match.start(), token[token.index("(") + 1:token.rindex(")")]


def main():
    arguments = common.arguments()
    root = arguments.source
    findings = common.Findings(root)
    names = op_names(root, arguments.build)
    sources = common.files(root, *(f"internal/{folder}/**/*.{kind}" for folder in FOLDERS for kind in ("cc", "h", "cu")))
    # Of a tree or a library that is not what this expects nothing would be found.
    for known in ("ReadVariableOp", "_ElementChain"):
        if known not in names:
            findings.add(arguments.build / "bin" / "dtg", 0, f"does not know {known}", "build the command; the names of ops come from it")
    for path in sources:
        text = path.read_text()
        for offset, content in literals(text):
            if content in names:
                findings.add(path, common.line_of(text, offset), f'names the op "{content}"',
                             "ask its definition (graph/op_def.h): a role, an access, a value function or a rule says what it means here")
    if not sources:
        findings.add(root / "internal", 0, "has no sources here", "the folders of this test have moved")
    findings.finish(f"op names, {len(sources)} sources, {len(names)} ops")


if __name__ == "__main__":
    main()

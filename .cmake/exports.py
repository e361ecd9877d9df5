#!/usr/bin/env python3
"""Derives what libdtg exports from its public headers.

Every function declared with DTG_API or DTG_ERR in the given headers is exported, nothing else. Writes a linker version script
(--map) that names them one by one, and the bare names (--symbols) for objcopy and for the test that compares them with the
library. Files are rewritten only when they change, so that a comment in a header does not relink everything.
"""

import argparse
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
EXPORTED = re.compile(r"\bDTG_(?:API|ERR)\b")
NAME = re.compile(r"\b(dtg_\w+)\s*\(")


def exported_functions(text):
    """Names of the functions that one header declares as exported."""
    text = DIRECTIVE.sub("", COMMENT.sub(" ", text))
    names = []
    for declaration in re.split(r"[;{}]", text):
        marker = EXPORTED.search(declaration)
        if not marker or re.search(r"\bstatic\b", declaration):
            continue
        name = NAME.search(declaration, marker.end())
        if name:
            names.append(name.group(1))
    return names


def write_if_changed(path, text):
    path = pathlib.Path(path)
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", required=True, help="version node, e.g. DTG_0.1")
    parser.add_argument("--map", required=True)
    parser.add_argument("--symbols", required=True)
    parser.add_argument("headers", nargs="*")
    arguments = parser.parse_args()

    names = sorted({name for header in arguments.headers for name in exported_functions(pathlib.Path(header).read_text())})
    exported = "  global:\n" + "".join(f"    {name};\n" for name in names) if names else ""
    write_if_changed(arguments.map, f"{arguments.node} {{\n{exported}  local:\n    *;\n}};\n")
    # objcopy refuses an empty list, hence the comment line.
    write_if_changed(arguments.symbols, "# exported by libdtg\n" + "".join(name + "\n" for name in names))
    return 0


if __name__ == "__main__":
    sys.exit(main())

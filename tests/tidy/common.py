"""What the tidy tests share: their arguments, the list of our files, a C++ comment stripper, and how a finding is reported.

A tidy test holds the whole tree to a rule that no compiler checks. Each finding says where, what, and what to do about it. They
need python alone, and read files from the work tree, so a file counts from the moment it is written.
"""

import argparse
import pathlib
import re
import sys


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True, help="repository root")
    parser.add_argument("--build", type=pathlib.Path, help="build folder, for tests that look at binaries")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--update", action="store_true", help="lower the ratchets to what the tree has")
    return parser.parse_args()


def files(root, *patterns):
    """Our files matching the patterns, below root, sorted."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return sorted(found)


def library_sources(root):
    return files(root, "internal/**/*.cc", "internal/**/*.h", "internal/**/*.cu", "capi/*.cc", "capi/*.h", "capi/include/**/*.h")


TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\\ ]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""", re.S)


def blank(text):
    """The text with comments and literals blanked out, same length and lines, so that offsets still tell the place."""

    def replace(match):
        token = match.group(0)
        keep = token[0] if token[0] in "\"'" else " "
        return keep + re.sub(r"[^\n]", " ", token[1:-1]) + keep if len(token) > 1 else token

    return TOKEN.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Findings:
    """Collects what is wrong and ends the test."""

    def __init__(self, root):
        self.root = root
        self.count = 0

    def add(self, path, line, problem, remedy):
        try:
            path = path.relative_to(self.root)
        except ValueError:
            pass
        place = f"{path}:{line}" if line else str(path)
        print(f"{place}: {problem}\n    {remedy}")
        self.count += 1

    def finish(self, checked):
        print(f"{checked}: " + (f"{self.count} findings" if self.count else "clean"))
        sys.exit(1 if self.count else 0)

#!/usr/bin/env python3
"""Puts sources together into few translation units, so that what they include is parsed once for many of them.

    unity.py --root ROOT --out FOLDER --prefix NAME SOURCE...    prints one line: the sources to compile, separated by ';'

Sources of one folder share a unit (FOLDER/NAME_<folder>_<number>.cc, which includes them) as long as none uses a name that one before
it in the unit keeps to itself: in an unnamed namespace, by `static`, by an alias or a macro. Names are read from the text, not from
a parse; what is overlooked is an error of the compiler that names both places, never another meaning, since a name in an unnamed
namespace that another file also means would be ambiguous. One that keeps a name to itself which a header uses too comes last in its unit. A source that compiles itself several times (Highway's) stays alone.
Files are written only when they change, so that a new run costs no compilation.
"""

import argparse
import os
import pathlib
import re

LINES = 1500  # of a unit, unless --large: many would make a change of one file slow to compile
FILES = 10
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "alignas", "decltype", "operator", "static_assert", "requires", "noexcept"}
TEST = re.compile(r"\b(?:TEST|TEST_F|TEST_P|INSTANTIATE_TEST_SUITE_P|TYPED_TEST|TYPED_TEST_SUITE)\s*\(\s*(\w+)\s*,\s*(\w+)\s*")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<d>\w*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
TOKEN = re.compile(r"(?P<before>::|\.|->)?\s*(?P<name>[A-Za-z_]\w*)|(?P<sign>[{}();=\[\]<>,:])")


def bare(text):
    """The code without comments and texts; the tests' macros become functions of a name of their own."""
    text = NOISE.sub(lambda m: '""' if m.group(0)[0] in "R\"'" else " ", text)
    return TEST.sub(lambda m: f"void {m.group(1)}_{m.group(2)}_Test(", text)


def declared(statement):
    """The name that one declaration at the level of a namespace gives, or None."""
    if found := re.match(r"\s*(?:template\s*<.*?>\s*)?(?:class|struct|union|enum(?:\s+class)?)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)", statement, re.S):
        return found.group(1)
    if found := re.match(r"\s*(?:template\s*<[^;]*?>\s*)?using\s+(\w+)\s*=", statement):
        return found.group(1)
    if found := re.match(r"\s*using\s+[\w:]*::(\w+)", statement):
        return found.group(1)
    if found := re.match(r"\s*namespace\s+(\w+)\s*=", statement):
        return found.group(1)
    # A directive gives no name.
    if re.match(r"\s*using\s+namespace\b", statement):
        return None
    head = re.split(r"[=({\[;]", re.sub(r"<[^<>()]*>", " ", re.sub(r"<[^<>()]*>", " ", statement)), maxsplit=1)[0]
    names = re.findall(r"[\w:~]+", head)
    if not names or "::" in names[-1] or names[-1] in KEYWORDS:
        return None
    return names[-1]


def alias(statement):
    """What a using declaration says, without spaces, or None."""
    found = re.match(r"\s*using\s+([\w:]*::\w+)\s*$", statement)
    return found and found.group(1)


def private_names(code):
    """What a file declares for itself alone: in unnamed namespaces, static, by alias and by macro. With what it means, where that is known:
    a using declaration may stand twice."""
    names = dict.fromkeys(set(re.findall(r"^\s*#\s*define\s+(\w+)", code, re.M)) - set(re.findall(r"^\s*#\s*undef\s+(\w+)", code, re.M)))
    code = re.sub(r"^\s*#(?:[^\n\\]|\\\n|\\.)*", "", code, flags=re.M)
    stack, statement, depth = [], "", 0  # the namespaces we are in; depth: braces within a declaration
    for part in re.split(r"([{};])", code):
        if part == "{" and depth == 0:
            if found := re.match(r"\s*(?:inline\s+)?namespace\b\s*([\w:]*)\s*$", statement):
                stack.append(found.group(1))
                statement = ""
                continue
            if re.match(r'\s*extern\s+""\s*$', statement):
                stack.append('extern "C"')
                statement = ""
                continue
        if part == "{":
            depth += 1
        elif part == "}":
            if depth == 0:
                if stack:
                    stack.pop()
                statement = ""
                continue
            depth -= 1
            if depth:
                continue
            if "" in stack or re.match(r"\s*(static|using|constexpr|const|namespace)\b", statement):
                if name := declared(statement):
                    names[name] = None
            if enumeration := re.match(r"\s*enum\s+(?!class\b|struct\b)(\w+)[^{]*$", statement):
                names[enumeration.group(1)] = None
            # A braced initialiser goes on to its semicolon; a body ends here.
            statement = ""
        elif part == ";" and depth == 0:
            if statement.strip() and ("" in stack or re.match(r"\s*(static|using|constexpr|const|namespace)\b", statement)):
                if name := declared(statement + ";"):
                    names[name] = alias(statement)
            statement = ""
        elif depth == 0:
            statement += part
    return names


def used_names(code):
    """Every name of a file but members (after . or ->) and what is qualified (after ::)."""
    return {m.group("name") for m in TOKEN.finditer(code) if m.group("name") and not m.group("before")}


class Unit:
    """Sources that are compiled together."""

    def __init__(self):
        self.sources, self.names, self.used, self.lines, self.closed = [], {}, set(), 0, False

    def takes(self, names, used, lines, times):
        full = self.closed or len(self.sources) >= times * FILES or self.lines + lines > times * LINES
        same = {name for name, meaning in names.items() if meaning and self.names.get(name) == meaning}
        return not full and not ((self.names.keys() & used) - same) and not ((names.keys() & self.names.keys()) - same)

    def add(self, source, names, used, lines):
        self.sources.append(source)
        self.names.update(names)
        self.used |= used
        self.lines += lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    alone, folders = [], {}
    in_headers, macros = set(), set()
    for header in [*options.root.glob("internal/**/*.h"), *options.root.glob("capi/**/*.h"), *options.root.glob("tests/**/*.h")]:
        text = bare(header.read_text())
        in_headers |= set(re.findall(r"\b(?:class|struct|enum class|using|namespace)\s+(\w+)", text))
        macros |= set(re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M))
    for source in sorted(options.sources):
        text = source.read_text()
        if "HWY_TARGET_INCLUDE" in text or source.suffix != ".cc":
            alone.append(str(source))
            continue
        code = bare(text)
        names, used = private_names(code), used_names(code)
        if names.keys() & macros:
            alone.append(str(source))
            continue
        units = folders.setdefault(source.parent, [])
        lines = text.count("\n")
        unit = next((unit for unit in units if unit.takes(names, used, lines, 3 if options.large else 1)), None)
        if unit is None:
            unit = Unit()
            units.append(unit)
        unit.add(source, names, used, lines)
        unit.closed = bool(names.keys() & in_headers)
    written = []
    options.out.mkdir(parents=True, exist_ok=True)
    for folder, units in folders.items():
        name = str(folder.relative_to(options.root)).replace("/", "_")
        for number, unit in enumerate(units):
            if len(unit.sources) == 1:
                alone.append(str(unit.sources[0]))
                continue
            path = options.out / f"{options.prefix}_{name}_{number}.cc"
            # Relative to the unit, so that checkouts in different places have the same text.
            text = "".join(f'#include "{os.path.relpath(source, options.out)}"\n' for source in unit.sources)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
            written.append(path)
    for old in options.out.glob(f"{options.prefix}_*.cc"):
        if old not in written:
            old.unlink()
    print(";".join(alone + [str(path) for path in written]), end="")


if __name__ == "__main__":
    main()

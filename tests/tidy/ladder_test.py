"""Holds every #include against internal/LADDER.

A folder under internal/ may include itself and the rungs above it in that file, never one below. capi/ may include anything
internal; bindings/, tests/abi/ and the examples see only the public headers, because that is what their users have. A few
third-party headers are one rung's secret and stay there.
"""

import re

import common

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">\n]+)[">]', re.M)

# Third-party headers that one rung keeps to itself: what it wraps, and who may see it.
SECRETS = {
    re.compile(r"^(flatbuffers/|wire/schema/)"): {"wire"},
    re.compile(r"^uv(/.*)?\.h$|^openssl/"): {"net"},
}


def main():
    arguments = common.arguments()
    root = arguments.source
    findings = common.Findings(root)
    ladder = (root / "internal/LADDER").read_text().split()
    height = {rung: index for index, rung in enumerate(ladder)}

    for folder in sorted(path for path in (root / "internal").iterdir() if path.is_dir()):
        if folder.name not in height and common.files(folder, "**/*.h", "**/*.cc"):
            findings.add(folder, 0, f"{folder.name} is not on the ladder", "add it to internal/LADDER at its height, or move the files")

    internal = common.files(root, "internal/**/*.cc", "internal/**/*.h", "internal/**/*.cu")
    for path in internal:
        rung = path.relative_to(root / "internal").parts[0]
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            style, name = match.groups()
            line = common.line_of(text, match.start())
            for pattern, owners in SECRETS.items():
                if pattern.search(name) and rung not in owners:
                    findings.add(path, line, f"includes {name}", f"only internal/{', '.join(sorted(owners))} may; go through its interface")
            # Highway's multi-target scheme includes its own headers in quotes, and the file itself, again and again.
            if style == "<" or name.startswith("hwy/"):
                continue
            target = name.split("/")[0]
            generated = name.startswith("wire/schema/")
            if target in height and (generated or (root / "internal" / name).exists()):
                if rung in height and height[target] > height[rung]:
                    findings.add(path, line, f"{rung} includes {name}, which stands lower on the ladder",
                                 f"let {rung} own an interface that {target} implements, or move the code")
            else:
                findings.add(path, line, f'"{name}" is not a file under internal/', 'write includes from there: "base/status.h"')

    outside = common.files(root, "bindings/**/*.c", "bindings/**/*.h", "bindings/**/*.go", "tests/abi/*.cc", "tests/abi/*.c",
                           "tests/abi/*.h", "tests/oracle/*.cc", "tests/oracle/*.h", "capi/examples/*.c", "capi/include/dtg/*.h")
    for path in outside:
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            name = match.group(2)
            if name.startswith("dtg/") or (path.parent / name).exists():
                continue
            if (root / name).exists() or (root / "internal" / name).exists():
                findings.add(path, common.line_of(text, match.start()), f"includes {name}",
                             "only the public headers, <dtg/...>, are visible here; export what is missing")
    findings.finish(f"ladder, {len(internal) + len(outside)} files")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A Go module as files that GOPROXY=file://... reads.

    tests/packages/go_proxy.py MODULE_DIR VERSION OUT_DIR

The layout is that of a module proxy: OUT_DIR/<module>/@v/{list, VERSION.info, VERSION.mod, VERSION.zip}. The archive holds what git
knows of the folder, and the licence of the repository, as Go's own tools put it there.
"""

import json
import pathlib
import re
import subprocess
import sys
import zipfile

LICENSE = "LICENSE"


def main():
    folder, version, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    mod = (folder / "go.mod").read_text()
    module = re.search(r"^module (\S+)$", mod, re.MULTILINE).group(1)
    listed = subprocess.run(["git", "ls-files", "-z", "."], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    top = subprocess.run(["git", "rev-parse", "--show-toplevel"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    when = subprocess.run(["git", "log", "-1", "--format=%cI"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    at = out / module / "@v"
    at.mkdir(parents=True, exist_ok=True)
    files = {name: folder / name for name in listed.split("\0") if name and (folder / name).is_file()}
    files.setdefault(LICENSE, pathlib.Path(top) / LICENSE)
    with zipfile.ZipFile(at / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            # A fixed time, so that equal sources give equal archives.
            entry = zipfile.ZipInfo(f"{module}@{version}/{name}", (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name].read_bytes())
    (at / f"{version}.info").write_text(json.dumps({"Version": version, "Time": when}))
    (at / f"{version}.mod").write_text(mod)
    (at / "list").write_text(version + "\n")


if __name__ == "__main__":
    main()

"""Reads every shard of a set with the reference library, and its manifest with nothing but the standard one.

Usage: sets_check.py SET, a set directory written by the test CheckpointDirectory.TheReferenceLibraryReadsEachShard, whose values are
repeated here. Exits 0 when everything is as expected, 1 with a reason per line otherwise, 77 without the packages of
tests/requirements.txt.
"""

import hashlib
import json
import pathlib
import sys

try:
    import numpy as np
    from safetensors import safe_open
except ImportError as missing:
    print(f"sets_check: {missing}")
    sys.exit(77)

WANTED = {
    "w": np.array([2.5, 5, -2.5], np.float32),
    "w/momentum": np.array([2.5, 5, -2.5], np.float32),
    "flags": np.array([True, False]),
    "global_step": np.array(2, np.int64),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    text = (folder / "manifest.json").read_bytes()
    manifest = json.loads(text)
    problems = []
    if hashlib.sha256(text.replace(manifest["sha256"].encode(), b"0" * 64, 1)).hexdigest() != manifest["sha256"]:
        problems.append("the manifest has another hash than it says")
    rows = {row["name"]: row for row in manifest["tensors"]}
    found = {}
    for number, shard in enumerate(manifest["shards"]):
        path = folder / shard["file"]
        if hashlib.sha256(path.read_bytes()).hexdigest() != shard["sha256"] or path.stat().st_size != shard["bytes"]:
            problems.append(f"{path.name} is not what the manifest says")
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():
                found[name] = file.get_tensor(name)
                if rows[name]["shard"] != number or rows[name]["shape"] != list(found[name].shape):
                    problems.append(f"{name}: the manifest says {rows[name]}")
    if set(found) != set(WANTED) or set(rows) != set(WANTED):
        problems.append(f"the set holds {sorted(found)}")
    for name, wanted in WANTED.items():
        if name in found and (found[name].dtype != wanted.dtype or not np.array_equal(found[name], wanted)):
            problems.append(f"{name}: {found[name]}")
    for problem in problems:
        print(f"sets_check: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

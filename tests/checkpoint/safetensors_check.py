"""Reads our safetensors file with the reference library and writes one for us.

Usage: safetensors_check.py DIR. DIR/ours.safetensors was written by the test Safetensors.TheReferenceLibraryAgrees; its values are
repeated here. Writes DIR/theirs.safetensors with the same tensors (without the bfloat16 one, which NumPy lacks). Exits 0 when
everything is as expected, 1 with a reason per line otherwise, 77 without the packages of tests/requirements.txt.
"""

import os
import sys

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import save_file
except ImportError as missing:
    print(f"safetensors_check: {missing}")
    sys.exit(77)

WANTED = {
    "dense/kernel": np.array([[1, 2, 3], [4, 5, -0.5]], np.float32),
    "step": np.array(1234567890123, np.int64),
    "bytes": np.array([1, 2, 255], np.uint8),
    "empty": np.zeros((0, 4), np.float64),
    "half": np.array([1.5, -2.0], np.float16),
    "wide": np.array([0.1, -1e300], np.float64),
    'odd name "é"': np.array([-7], np.int32),
    "small": np.array([-1, 300], np.int16),
    "unsigned": np.array([4000000000], np.uint32),
    "flags": np.array([True, False, True]),
}


def main():
    directory = sys.argv[1]
    problems = []
    with safe_open(os.path.join(directory, "ours.safetensors"), framework="numpy") as ours:
        if set(ours.keys()) != set(WANTED) | {"brain"}:
            problems.append(f"names are {sorted(ours.keys())}")
        if ours.metadata().get("format") != "np" or len(ours.metadata()["dtg.crc32c"]) != 8:
            problems.append(f"metadata is {ours.metadata()}")
        for name, wanted in WANTED.items():
            got = ours.get_tensor(name)
            if got.dtype != wanted.dtype or got.shape != wanted.shape or not np.array_equal(got, wanted):
                problems.append(f"{name}: {got.dtype}{got.shape} {got}")
        brain = ours.get_slice("brain")
        if brain.get_dtype() != "BF16" or brain.get_shape() != [1, 2]:
            problems.append(f"brain: {brain.get_dtype()} {brain.get_shape()}")
    save_file(WANTED, os.path.join(directory, "theirs.safetensors"), metadata={"made by": "numpy"})
    for problem in problems:
        print(f"safetensors_check: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

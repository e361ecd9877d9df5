"""Reads every shard of a set that training has saved with the reference library of the format.

Usage: training_set_check.py SET, a set directory written by the test Checkpoints.SlotsAndStepsAreSavedAsSuch: w, 1000 ones that have made
one step of Adam towards 3, what Adam keeps of it, and the count of steps. Exits 0 when everything is as expected, 1 with a reason per line
otherwise, 77 without the packages of tests/requirements.txt.
"""

import pathlib
import sys

try:
    import numpy as np
    from safetensors.numpy import load_file
except ImportError as missing:
    print(f"training_set_check: {missing}")
    sys.exit(77)

WANTED = {"w": (np.float32, (1000,)), "w/Adam": (np.float32, (1000,)), "w/Adam_1": (np.float32, (1000,)), "beta1_power": (np.float32, ()),
          "beta2_power": (np.float32, ()), "global_step": (np.int64, ())}


def main():
    shards = sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors"))
    found, problems = {}, []
    for shard in shards:
        found |= load_file(shard)
    if len(shards) != 3:
        problems.append(f"{len(shards)} shards")
    if {name: (tensor.dtype.type, tensor.shape) for name, tensor in found.items()} != WANTED:
        problems.append(f"the set holds { {name: (tensor.dtype, tensor.shape) for name, tensor in found.items()} }")
    elif found["global_step"] != 1 or not np.allclose(found["w/Adam"], -0.4) or not np.allclose(found["w"], 1.01) or found["beta1_power"] >= 0.9:
        problems.append(f"values: {found}")
    for problem in problems:
        print(f"training_set_check: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

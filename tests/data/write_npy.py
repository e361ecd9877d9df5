"""Writes arrays of every type and order by real NumPy, for npy_test.cc: element i of each, in row-major order, is (i * 7) % 100, in complex
numbers with the imaginary part 1, in bools whether that is odd."""

import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)

folder = sys.argv[1]
shapes = {"v": (5,), "m": (4, 3), "t": (2, 3, 4), "e": (0, 2), "s": ()}
types = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
archive = {}
for name in types:
    for letter, shape in shapes.items():
        plain = (np.arange(int(np.prod(shape)), dtype=np.int64) * 7 % 100).reshape(shape)
        if name == "b1":
            array = plain % 2 == 1
        elif name[0] == "c":
            array = (plain + 1j).astype(name)
        else:
            array = plain.astype("<" + name)
        for order in "CF":
            made = np.asarray(array, order=order)
            np.save(f"{folder}/{name}_{letter}_{order}.npy", made)
        if letter == "t":
            archive[name] = np.asfortranarray(array) if len(name) == 2 else array
np.savez(f"{folder}/stored.npz", **archive)
np.savez_compressed(f"{folder}/packed.npz", **archive)
np.save(f"{folder}/big.npy", np.arange(6, dtype=">i4").reshape(2, 3))
np.save(f"{folder}/objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
np.save(f"{folder}/text.npy", np.array(["a", "bc"]))
np.save(f"{folder}/fields.npy", np.zeros(3, dtype=[("a", "<i4"), ("b", "<f4")]))
np.save(f"{folder}/dates.npy", np.zeros(3, dtype="datetime64[s]"))

#!/usr/bin/env python3
"""Golden answers of hashing and lookup layers, made with real Keras 3 on TensorFlow: tests/nn/categories_test.cc holds ours to them.

    python3 make_categories.py [--seed N] [--rounds N]      writes categories.json.gz beside this file; needs the package tensorflow-cpu

Each case is a layer with random settings, an input of texts or integers, and the output. Settings are named as Keras names them. Keras 3
gives rows of lookups as integers; they are written as the numbers that they are.
"""

import argparse
import gzip
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from make import Draw  # noqa: E402

LETTERS = list("abcdefghij ÄßЖ猫🙂\n\t\"\\")


def text(draw):
    length = draw.pick(0, 1, 2, 3, 5, 8, 13, 20, 40, 70, 200)
    return "".join(draw.pick(*LETTERS) for _ in range(length))


def integer(draw):
    return draw.pick(draw.int(-5, 20), draw.int(-(2**40), 2**40), 2**63 - 1, -(2**63), 0)


def shape(draw, mode):
    batch, places = draw.int(1, 4), draw.int(1, 6)
    if mode == "int":
        return draw.pick((), (batch,), (batch, places), (batch, 1, places))
    return draw.pick((places,), (batch, places), (batch, 1))


def drawn(draw, dims, some, texts):
    values = [draw.pick(*some) for _ in range(int(np.prod(dims, dtype=int)))]
    return values, tf.constant(np.array(values, dtype=object if texts else np.int64).reshape(dims), tf.string if texts else tf.int64)


def plain(output):
    array = np.asarray(output)
    if array.dtype == object:
        return {"shape": list(array.shape), "texts": [v.decode() for v in array.reshape(-1)]}
    return {"shape": list(array.shape), "values": [int(v) for v in array.reshape(-1)]}


def finished(layer, settings, dims, values, texts, output):
    return {"layer": layer, "settings": {k: v for k, v in settings.items() if v is not None},
            "x": {"shape": list(dims), "texts" if texts else "values": values}, "output": plain(output)}


def hashing(draw):
    texts, mode = draw.pick(True, False), draw.pick("int", "int", "int", "one_hot", "multi_hot", "count")
    some = [(text if texts else integer)(draw) for _ in range(8)]
    settings = {"num_bins": draw.pick(1, 2, 3, 7, 11) if mode != "int" else draw.pick(1, 2, 3, 7, 1000, 2**40),
                "mask_value": draw.pick(None, some[0]), "output_mode": mode,
                "salt": draw.pick(None, None, [draw.int(0, 2**60), draw.int(0, 2**60)])}
    dims = shape(draw, mode)
    values, x = drawn(draw, dims, some, texts)
    return finished("hashing", settings, dims, values, texts, keras.layers.Hashing(**settings)(x))


def lookup(draw):
    texts, mode = draw.pick(True, False), draw.pick("int", "int", "int", "one_hot", "multi_hot", "count")
    make = text if texts else integer
    tokens = list(dict.fromkeys(make(draw) for _ in range(draw.int(2, 30))))
    mask = tokens.pop() if len(tokens) > 1 and draw.pick(True, False) else None
    settings = {"vocabulary": tokens, "mask_token": mask, "num_oov_indices": draw.pick(0, 1, 1, 2, 5), "output_mode": mode}
    some = tokens + ([mask] if mask is not None else [])
    if settings["num_oov_indices"]:
        some = some + [make(draw) for _ in range(5)]
    if draw.pick(True, False, False):  # as get_vocabulary gives it out
        special = [mask] if mask is not None and mode == "int" else []
        settings["vocabulary"] = special + ["[UNK]" if texts else -1] * settings["num_oov_indices"] + [t for t in tokens if texts or t != -1]
    dims = shape(draw, mode)
    values, x = drawn(draw, dims, [s for s in some if texts or s != -1], texts)
    layer = (keras.layers.StringLookup if texts else keras.layers.IntegerLookup)(**settings)
    return finished("lookup", settings, dims, values, texts, layer(x))


def inverted(draw):
    texts = draw.pick(True, False)
    make = text if texts else integer
    tokens = list(dict.fromkeys(make(draw) for _ in range(draw.int(2, 12))))
    tokens = [t for t in tokens if t != -1] or [1]
    mask = tokens.pop() if len(tokens) > 1 and draw.pick(True, False) else None
    settings = {"vocabulary": tokens, "mask_token": mask, "num_oov_indices": draw.pick(0, 1, 1, 3), "invert": True,
                "oov_token": draw.pick(None, "what?" if texts else 77777)}
    settings = {k: v for k, v in settings.items() if v is not None}
    dims = shape(draw, "int")
    values, x = drawn(draw, dims, list(range(0, len(tokens) + 6)) + [-1, -3, 2**63 - 1, -(2**63)], False)
    layer = (keras.layers.StringLookup if texts else keras.layers.IntegerLookup)(**settings)
    return finished("lookup", settings, dims, values, False, layer(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    draw = Draw(options.seed)
    cases = [make(draw) for _ in range(options.rounds) for make in (hashing, lookup, inverted)]
    target = pathlib.Path(__file__).with_name("categories.json.gz")
    data = json.dumps({"keras": keras.__version__, "cases": cases}, ensure_ascii=True, separators=(",", ":")).encode()
    target.write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{target.name}: {len(cases)} cases, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Golden values of adaptive pooling, bags of embeddings and position encodings: tests/nn/places_test.cc holds ours to them.

    python3 make_places.py [--seed N]      writes places.json.gz beside this file; needs the package tensorflow-cpu

Pooling is Keras', bags are tf.nn.safe_embedding_lookup_sparse's; for the encodings of keras_hub (SinePositionEncoding, PositionEmbedding) its
formula stands here. As in make.py, gradients are those of sum(output * direction).
"""

import argparse
import gzip
import json
import pathlib

import keras
import numpy as np
import tensorflow as tf
from make import Draw, plain


def finished(draw, layer, settings, inputs, weights, call, ints=None):
    variables = {key: tf.Variable(value) for key, value in {**inputs, **weights}.items()}
    output = call(variables)
    direction = draw.tensor(*output.shape)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(call(variables) * direction)
    found = tape.gradient(total, list(variables.values()))
    gradients = {key: plain(tf.convert_to_tensor(each)) for key, each in zip(variables, found) if each is not None}
    return {"layer": layer, "settings": settings, "inputs": {k: plain(v) for k, v in inputs.items()},
            "weights": {k: plain(v) for k, v in weights.items()}, "ints": {k: np.asarray(v).tolist() for k, v in (ints or {}).items()},
            "output": plain(output), "direction": plain(direction), "gradients": gradients}


def adaptive(draw):
    dims, most = draw.int(1, 3), draw.pick(True, False)
    sizes = [draw.int(1, 5) for _ in range(dims)]
    x = draw.tensor(draw.int(1, 2), *[size + draw.int(0, 4) for size in sizes], draw.int(1, 3))  # Keras divides by zero where that is less
    layer = getattr(keras.layers, f"Adaptive{'Max' if most else 'Average'}Pooling{dims}D")(tuple(sizes))
    return finished(draw, "adaptive", {"sizes": sizes, "max": most}, {"x": x}, {}, lambda v: layer(v["x"]))


def bag(draw):
    rows, width, batch, places = draw.int(2, 6), draw.int(1, 4), draw.int(1, 4), draw.int(1, 5)
    ids = np.array([[draw.int(0, rows - 1) for _ in range(places)] for _ in range(batch)])
    lengths = [draw.int(0, places) for _ in range(batch)] if draw.pick(True, False) else None
    if lengths and max(lengths) == 0:
        lengths[0] = 1  # TensorFlow dies of a batch of nothing
    weighted, combiner = draw.pick(True, False), draw.pick("mean", "sum", "sqrtn")
    where = np.array([(b, p) for b in range(batch) for p in range(places) if lengths is None or p < lengths[b]], np.int64).reshape(-1, 2)

    def call(v):
        def of(values):
            return tf.SparseTensor(where, values, (batch, places))

        chosen = tf.constant([ids[b, p] for b, p in where], tf.int64)
        weights = tf.gather_nd(v["w"], where) if weighted else tf.ones((len(where),))
        # The rows by hand, so that weights have a gradient; tf.nn has none towards sparse weights.
        each = tf.gather(v["embeddings"], chosen) * weights[:, None]
        total = tf.math.unsorted_segment_sum(each, where[:, 0], batch)
        if combiner != "sum":
            share = tf.math.unsorted_segment_sum(weights if combiner == "mean" else weights**2, where[:, 0], batch)
            share = tf.where(share == 0, tf.ones_like(share), share)
            total /= (share if combiner == "mean" else tf.sqrt(share))[:, None]
        theirs = tf.nn.safe_embedding_lookup_sparse(v["embeddings"], of(chosen), of(weights), combiner)
        tf.debugging.assert_near(total, theirs, 1e-4, 1e-5)
        return total

    inputs = {"w": np.abs(draw.tensor(batch, places)) + np.float32(0.1)} if weighted else {}
    ints = {"ids": ids, **({} if lengths is None else {"lengths": lengths})}
    return finished(draw, "bag", {"combiner": combiner}, inputs, {"embeddings": draw.tensor(rows, width)}, call, ints)


def position(draw):
    batch, steps, width, start = draw.int(1, 3), draw.int(1, 6), draw.int(1, 6), draw.int(0, 3)
    x, learned, wavelength = draw.tensor(batch, steps, width), draw.pick(True, False), draw.pick(10000.0, 50.0)
    settings = {"kind": "learned" if learned else "sine", "start": start, "wavelength": wavelength}
    if learned:
        table = draw.tensor(start + steps + draw.int(0, 2), width)
        return finished(draw, "position", settings, {"x": x}, {"embeddings": table}, lambda v: v["x"] + v["embeddings"][start:start + steps])
    rates = (1 / wavelength) ** (2 * (np.arange(width) // 2) / width)
    angles = (start + np.arange(steps))[:, None] * rates[None, :]
    added = np.where(np.arange(width) % 2, np.cos(angles), np.sin(angles)).astype(np.float32)
    return finished(draw, "position", settings, {"x": x}, {}, lambda v: v["x"] + added)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    draw = Draw(options.seed)
    cases = [make(draw) for make in (adaptive, bag, position) for _ in range(24)]
    text = json.dumps({"keras": keras.__version__, "tensorflow": tf.__version__, "seed": options.seed, "cases": cases}, separators=(",", ":"))
    out = pathlib.Path(__file__).parent / "places.json.gz"
    out.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(cases)} cases, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Golden values of ops, made with real TensorFlow, in the format of data/ops (README.md).

    python3 make_ops.py [--out DIR]       writes DIR/<Op>.json.gz (default: data/ops beside this file); needs the package tensorflow-cpu

Inputs are drawn with a fixed seed. A case that TensorFlow refuses has the code of its error instead of outputs. Random attributes and shapes
for quantization and sets, written-down ones for text.
"""

import argparse
import gzip
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its kernels of quantization know few types
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

random = np.random.default_rng(12)
NAMES = {tf.qint8: "qint8", tf.quint8: "quint8", tf.qint16: "qint16", tf.quint16: "quint16", tf.qint32: "qint32"}


def pick(*choices):
    return choices[int(random.integers(len(choices)))]


def floats(*shape, high=4.0):
    return tf.constant(np.round(random.uniform(-high, high, shape), 3).astype(np.float32))


def plain(tensor):
    dtype = NAMES.get(tensor.dtype, tensor.dtype.name)
    data = np.array(tensor).reshape(-1).tolist()
    if dtype == "string":
        data = [each.decode() for each in data]
    if dtype == "float32":
        data = [float(f"{each:.9g}") if np.isfinite(each) else str(each) for each in data]
    if dtype.startswith("q"):
        data = tf.bitcast(tensor, tf.as_dtype(dtype[1:])).numpy().reshape(-1).tolist()
    return {"dtype": dtype, "shape": list(tensor.shape), "data": data}


def attr(value):
    if isinstance(value, tf.DType):
        return {"type": "type", "value": NAMES.get(value, value.name)}
    if isinstance(value, list):
        return {"type": "list(type)", "value": [each.name for each in value]}
    kind = {bool: "bool", int: "int", float: "float", str: "string"}[type(value)]
    return {"type": kind, "value": value}


def case(op, name, inputs, attrs, types, grads=False, rtol=0.0):
    """`inputs` by the op's names of them, `types` the type attributes, which the call finds by itself."""
    made = {"name": name, "attrs": {key: attr(value) for key, value in {**attrs, **types}.items()},
            "inputs": [plain(each) for value in inputs.values() for each in (value if isinstance(value, list) else [value])]}
    call = {key: value for key, value in attrs.items()}
    call.update({key: value for key, value in types.items() if key in ("T", "dtype") and op in ("QuantizeV2", "Dequantize")
                 and not (op == "Dequantize" and key == "T")})
    try:
        with tf.GradientTape() as tape:
            watched = [each for each in inputs.values() if not isinstance(each, list) and each.dtype.is_floating]
            tape.watch(watched)
            result = getattr(tf.raw_ops, op)(**inputs, **call)
    except tf.errors.InvalidArgumentError:
        return {**made, "error": "INVALID_ARGUMENT", "at": "run", "rtol": 0.0, "atol": 0.0, "derived": False}
    outputs = list(result) if isinstance(result, tuple) else [result]
    made["outputs"] = [plain(each) for each in outputs]
    if grads:
        dy = floats(*outputs[0].shape, high=1.0)
        dx = tape.gradient(outputs[0], watched, output_gradients=dy)
        made["grads"] = [{"dy": [plain(dy)], "dx": [None if each is None else plain(each) for each in dx]}]
    return {**made, "rtol": rtol, "atol": rtol, "derived": False}


def ranges(x, axis):
    """A low and a high for all of x, or for each slice."""
    count = () if axis < 0 else (x.shape[axis],)
    low, high = np.round(random.uniform(-4, 1, count), 2), np.round(random.uniform(1.5, 5, count), 2)
    return tf.constant(low, tf.float32), tf.constant(high, tf.float32)


def quantize():
    for n in range(60):
        x, kind = floats(*pick((5,), (3, 4), (2, 3, 2))), pick(*NAMES)
        mode = pick("MIN_COMBINED", "MIN_FIRST", "SCALED")
        axis = -1 if mode == "MIN_FIRST" else pick(-1, -1, 0, len(x.shape) - 1)  # TensorFlow has the others alone by axis
        low, high = ranges(x, axis)
        rounding = pick("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN") if mode == "SCALED" else "HALF_AWAY_FROM_ZERO"
        if kind == tf.qint32:  # beyond what float32 tells apart
            continue
        attrs = {"mode": mode, "round_mode": rounding, "narrow_range": mode == "SCALED" and pick(True, False), "axis": axis,
                 "ensure_minimum_range": pick(0.01, 0.1)}
        yield case("QuantizeV2", f"drawn_{n}", {"input": x, "min_range": low, "max_range": high}, attrs, {"T": kind}, rtol=1e-6)


def dequantize():
    for n in range(60):
        kind = pick(*[each for each in NAMES if each != tf.qint32])
        bits = 8 if "8" in NAMES[kind] else 16
        low_most, high_most = (0, 2**bits - 1) if "qu" in NAMES[kind] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        shape = pick((5,), (3, 4), (2, 3, 2))
        x = tf.bitcast(tf.constant(random.integers(low_most, high_most, shape), tf.as_dtype(NAMES[kind][1:])), kind)
        mode = pick("MIN_COMBINED", "MIN_FIRST", "SCALED")
        axis = -1 if mode == "MIN_FIRST" else pick(-1, -1, 0, len(shape) - 1)
        low, high = ranges(x, axis)
        attrs = {"mode": mode, "narrow_range": mode == "SCALED" and pick(True, False), "axis": axis}
        yield case("Dequantize", f"drawn_{n}", {"input": x, "min_range": low, "max_range": high}, attrs, {"T": kind, "dtype": tf.float32},
                   rtol=1e-5)


def quantize_and_dequantize(version):
    def make():
        for n in range(40):
            x = floats(*pick((5,), (3, 4), (2, 3, 2)))
            given = pick(True, False) or version == 4
            axis = -1 if given else pick(-1, 0, len(x.shape) - 1)  # TensorFlow refuses ranges for each slice
            low, high = ranges(x, axis)
            attrs = {"signed_input": pick(True, True, False), "range_given": given, "narrow_range": pick(True, False), "axis": axis}
            inputs = {"input": x, "input_min": low, "input_max": high}
            if version == 3:
                inputs["num_bits"] = tf.constant(pick(2, 4, 8))
            else:
                attrs.update({"num_bits": pick(2, 4, 8), "round_mode": pick("HALF_TO_EVEN", "HALF_UP")})
            yield case(f"QuantizeAndDequantizeV{version}", f"drawn_{n}", inputs, attrs, {"T": tf.float32}, rtol=1e-6)

    return make


def sparse(dtype, rows, rank):
    shape = (2,) * (rank - 2) + (rows, 4)
    places = sorted({tuple(int(random.integers(d)) for d in shape) for _ in range(6)})
    values = random.integers(0, 5, len(places))
    values = tf.constant([str(v) for v in values]) if dtype == tf.string else tf.constant(values, dtype)
    return tf.constant(places, tf.int64, (len(places), rank)), values, tf.constant(shape, tf.int64)


def dense(dtype, rows, rank):
    values = random.integers(0, 5, (2,) * (rank - 2) + (rows, int(random.integers(1, 5))))
    return tf.constant(np.vectorize(str)(values)) if dtype == tf.string else tf.constant(values, dtype)


def sets(op, kinds):
    def make():
        for n in range(24):
            dtype, rows, rank = pick(tf.int8, tf.int32, tf.int64, tf.uint16, tf.string), pick(1, 2, 3), pick(2, 2, 3)
            inputs = {}
            for k, kind in enumerate(kinds, 1):
                if kind == "dense":
                    inputs[f"set{k}"] = dense(dtype, rows, rank)
                else:
                    inputs[f"set{k}_indices"], inputs[f"set{k}_values"], inputs[f"set{k}_shape"] = sparse(dtype, rows, rank)
            attrs = {"set_operation": pick("a-b", "b-a", "intersection", "union", "Union"), "validate_indices": True}
            yield case(op, f"drawn_{n}", inputs, attrs, {"T": dtype})
        yield case(op, "unknown", inputs, {"set_operation": "xor", "validate_indices": True}, {"T": dtype})

    return make


def set_size():
    for n in range(12):
        dtype = pick(tf.int8, tf.int32, tf.int64, tf.string)
        indices, values, shape = sparse(dtype, pick(1, 2, 3), pick(2, 3))
        yield case("SetSize", f"drawn_{n}", {"set_indices": indices, "set_values": values, "set_shape": shape}, {"validate_indices": True},
                   {"T": dtype})


TEXTS = tf.constant([["a1b22", "", "no 7"], ["foo.bar", "Straße", "x\ny"]])
PATTERNS = [(r"(\d+)", r"<\1>"), (r"[aeiou]", ""), (r"(?i)STRASSE|ß", "ss"), (r"^|$", "|"), (r"(o)(o)?", r"\2-\1\\"), (r".", r"\0\0"), (r"b*", "#"), (r"(", "")]


def regex(op):
    def make():
        for n, (pattern, rewrite) in enumerate(PATTERNS):
            replaces = op.endswith("Replace")
            inputs, attrs = {"input": TEXTS}, {}
            if op.startswith("Static"):
                attrs = {"pattern": pattern, **({"rewrite": rewrite} if replaces else {})}
            else:
                inputs.update({"pattern": tf.constant(pattern), **({"rewrite": tf.constant(rewrite)} if replaces else {})})
            for every in (True, False) if replaces else (True,):
                yield case(op, f"pattern_{n}_{every}", inputs, {**attrs, **({"replace_global": every} if replaces else {})}, {})

    return make


def string_format():
    many = tf.reshape(tf.range(120), (3, 4, 10))
    for n, (template, inputs) in enumerate([
            ("x=%s", [tf.constant(3)]), ("%s", [tf.range(10)]), ("%s", [many]), ("%s and %s!", [tf.constant([0.1, 1e10, -2.5, 1.0]), tf.constant(True)]),
            ("none", []), ("%s", [tf.constant(["a", "b\n\"c\""])]), ("%s", [tf.constant([[1, 2], [3, 4]], tf.int64)])]):
        for summarize in (3, 1, -1):
            yield case("StringFormat", f"format_{n}_{summarize}", {"inputs": inputs},
                       {"template": template, "placeholder": "%s", "summarize": summarize}, {"T": [each.dtype for each in inputs]})
    yield case("StringFormat", "too_few", {"inputs": [tf.constant(1)]}, {"template": "%s %s", "placeholder": "%s", "summarize": 3}, {"T": [tf.int32]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "data" / "ops")
    options = parser.parse_args()
    makers = {"QuantizeV2": quantize, "Dequantize": dequantize, "SetSize": set_size, "StringFormat": string_format,
              "DenseToDenseSetOperation": sets("DenseToDenseSetOperation", ("dense", "dense")),
              "DenseToSparseSetOperation": sets("DenseToSparseSetOperation", ("dense", "sparse")),
              "SparseToSparseSetOperation": sets("SparseToSparseSetOperation", ("sparse", "sparse"))}
    makers.update({f"QuantizeAndDequantizeV{v}": quantize_and_dequantize(v) for v in (2, 3, 4)})
    makers.update({op: regex(op) for op in ("RegexReplace", "StaticRegexReplace", "RegexFullMatch", "StaticRegexFullMatch")})
    for op, make in makers.items():
        text = json.dumps({"op": op, "cases": list(make())})
        (options.out / f"{op}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        print(op, len(json.loads(text)["cases"]))


if __name__ == "__main__":
    main()

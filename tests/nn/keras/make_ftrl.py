#!/usr/bin/env python3
"""What TensorFlow's Ftrl ops make of drawn values, dense and by rows, into ftrl.json.gz beside this. All numbers are float32, written as
the integers that have their bits, because an order of additions shows in the last of them. Needs TensorFlow (2.21 made the file)."""

import gzip
import json
import pathlib

import numpy as np
import tensorflow as tf

ROWS, WIDTH = 5, 3


def bits(array):
    return np.asarray(array, np.float32).ravel().view(np.uint32).tolist()


def case(draw, op, settings):
    var, linear = (draw.normal(0, 1, (ROWS, WIDTH)).astype(np.float32) for _ in range(2))
    accum = draw.uniform(0.1, 2, (ROWS, WIDTH)).astype(np.float32)
    rows = np.array([4, 1, 2], np.int32) if "Sparse" in op else None
    grad = draw.normal(0, 1, (ROWS if rows is None else len(rows), WIDTH)).astype(np.float32)
    variables = [tf.Variable(value) for value in (var, accum, linear)]
    inputs = {name: np.float32(value) for name, value in settings.items() if name != "multiply_linear_by_lr"}
    if rows is not None:
        inputs["indices"] = rows
    getattr(tf.raw_ops, op)(var=variables[0].handle, accum=variables[1].handle, linear=variables[2].handle, grad=grad,
                            multiply_linear_by_lr=settings["multiply_linear_by_lr"], **inputs)
    return {"op": op, "rows": None if rows is None else rows.tolist(), "multiply_linear_by_lr": settings["multiply_linear_by_lr"],
            "settings": {name: bits(value)[0] for name, value in inputs.items() if name != "indices"}, "grad": bits(grad),
            "before": [bits(value) for value in (var, accum, linear)], "after": [bits(variable.numpy()) for variable in variables]}


def main():
    draw = np.random.default_rng(9)
    cases = []
    for op in ("ResourceApplyFtrl", "ResourceApplyFtrlV2", "ResourceSparseApplyFtrl", "ResourceSparseApplyFtrlV2"):
        for power in (-0.5, -0.6, -1.0, 0.0):
            for rate in (0.5, 1e-2, 1e-4):
                for multiply in (False, True):
                    settings = {"lr": rate, "l1": draw.choice([0.0, 0.01, 0.5]), "l2": draw.choice([0.0, 0.1]), "lr_power": power,
                                "multiply_linear_by_lr": multiply}
                    if op.endswith("V2"):
                        settings["l2_shrinkage"] = draw.choice([0.0, 0.05])
                    cases.append(case(draw, op, settings))
    path = pathlib.Path(__file__).resolve().parent / "ftrl.json.gz"
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps({"cases": cases}, separators=(",", ":")).encode())
    print(len(cases), "cases")


if __name__ == "__main__":
    main()

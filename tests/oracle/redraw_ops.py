#!/usr/bin/env python3
"""Golden ops with other inputs: what real TensorFlow computes for the cases of a folder when their values, and often a size in their shapes, are drawn anew.

    python3 redraw_ops.py [--from DIR] [--out DIR] [--seed N] [--filter TEXT]

Reads DIR/<Op>.json (plain or gzip; default: data/ops beside this file) and writes the same ops, in the same format (README.md), to
another folder, for `oracle_ops DIR`. Needs the package tensorflow-cpu. Cases whose outputs are not comparable (skip, derived) and whole graphs
are left out. Tolerances are those of the case that was drawn from. What differs is to be looked at, not to be trusted blindly: inputs may mean
nothing (a wild index, a size that no kernel was made for), and there two right answers can differ.

Each op has a process of its own, as TensorFlow may abort: what it had until then is kept.
"""

import argparse
import gzip
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import attr_value_pb2, tensor_shape_pb2  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SPECIAL = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
CODES = {3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 9: "FAILED_PRECONDITION", 11: "OUT_OF_RANGE", 12: "UNIMPLEMENTED", 13: "INTERNAL",
         8: "RESOURCE_EXHAUSTED", 10: "ABORTED", 1: "CANCELLED", 2: "UNKNOWN"}


# ---- drawing -----------------------------------------------------------------------------------------------------------------

class Draw:
    """Other values, and sizes, for the tensors of one case: a size that is drawn anew is so in all of them."""

    def __init__(self, random, tensors, resize):
        self.random, self.sizes = random, {}
        found = sorted({size for tensor in tensors for size in tensor["shape"] if size > 1})
        if resize and found:
            size = int(random.choice(found))
            self.sizes[size] = max(1, size + int(random.integers(-2, 4)))

    def tensor(self, tensor):
        shape = [self.sizes.get(size, size) for size in tensor["shape"]]
        count, data, dtype = int(np.prod(shape, dtype=np.int64)), tensor["data"], tensor["dtype"]
        if not data or dtype.startswith("q") or dtype in ("string", "bool") or dtype.startswith("complex"):
            drawn = [data[int(self.random.integers(len(data)))] for _ in range(count)] if data else []
        elif "int" in dtype:
            drawn = self.integers(data, count)
        else:
            drawn = self.floats(data, count)
        if dtype in ("float16", "bfloat16"):  # by values that these have
            drawn = [each if isinstance(each, str) else float(np.float32(each).astype(tf.as_dtype(dtype).as_numpy_dtype)) for each in drawn]
        return {"dtype": dtype, "shape": shape, "data": drawn}

    # Indices, axes and sizes are as often what they were.
    def integers(self, data, count):
        if self.random.random() < 0.5 and count == len(data):
            return list(data)
        low, high = min(data), max(data)
        return [int(data[int(self.random.integers(len(data)))]) if high - low > 1000 else low + int(self.random.integers(high - low + 1))
                for _ in range(count)]

    def floats(self, data, count):
        plain = [each for each in data if not isinstance(each, str)]
        if len(set(plain)) <= 1 or len(data) == 1:
            return [data[int(self.random.integers(len(data)))] for _ in range(count)]
        low, high = min(plain), max(plain)
        drawn = [low + (high - low) * float(each) for each in self.random.random(count)]
        drawn = [float(np.float32(round(each, 4))) if abs(each) < 1e30 else each for each in drawn]
        special = [each for each in data if isinstance(each, str)]
        for each in special:
            if count:
                drawn[int(self.random.integers(count))] = each
        return drawn


# ---- TensorFlow and the format -----------------------------------------------------------------------------------------------

def array(tensor):
    dtype, data = tensor["dtype"], tensor["data"]
    if dtype == "string":
        return np.array([each.encode() for each in data], object).reshape(tensor["shape"])
    if dtype.startswith("complex"):
        data = [complex(*[SPECIAL.get(part, part) for part in each]) for each in data]
    else:
        data = [SPECIAL.get(each, each) if isinstance(each, str) else each for each in data]
    kind = tf.as_dtype(dtype).as_numpy_dtype
    if dtype in ("float16", "bfloat16"):
        return np.array(data, np.float64).astype(np.float32).astype(kind).reshape(tensor["shape"])
    return np.array(data, kind).reshape(tensor["shape"])


def number(value, dtype):
    if dtype == "string":
        return value.decode("utf-8")
    if dtype == "bool":
        return bool(value)
    if dtype.startswith("complex"):
        return [number(value.real, "float64"), number(value.imag, "float64")]
    if "int" in dtype:
        return int(value)
    value = float(value)
    if not np.isfinite(value):
        return {"nan": "nan", "inf": "inf", "-inf": "-inf"}[str(value)]
    return float(f"{value:.9g}") if dtype == "float32" else value


def plain(value):
    dtype = "string" if value.dtype.kind in "OS" else value.dtype.name
    if value.dtype.names or dtype.startswith("void"):
        raise TypeError("a type that numpy does not have")
    return {"dtype": dtype, "shape": list(value.shape), "data": [number(each, dtype) for each in value.reshape(-1)]}


def shape_proto(dims):
    proto = tensor_shape_pb2.TensorShapeProto()
    if dims is None:
        proto.unknown_rank = True
    else:
        for size in dims:
            proto.dim.add().size = size
    return proto


def attr_proto(attr):
    kind, value, proto = attr["type"], attr["value"], attr_value_pb2.AttrValue()
    listed = kind.startswith("list(")
    if listed:
        proto.list.SetInParent()
    for one in value if listed else [value]:
        base = kind[5:-1] if listed else kind
        into = proto.list if listed else proto
        field = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}[base]
        if base == "type":
            one = tf.as_dtype(one).as_datatype_enum
        elif base == "shape":
            one = shape_proto(one)
        elif base == "string":
            one = one.encode()
        elif base == "float" and isinstance(one, str):
            one = SPECIAL[one]
        if listed:
            getattr(into, field).append(one)
        elif base == "shape":
            into.shape.CopyFrom(one)
        else:
            setattr(into, field, one)
    return proto


def code(error):
    return CODES.get(error.error_code, f"CODE {error.error_code}") if isinstance(error, tf.errors.OpError) else "INVALID_ARGUMENT"


def plain_session(graph):
    """One thread, and no graph that was rewritten."""
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return tf.compat.v1.Session(graph=graph, config=config)


def node(graph, op, inputs, attrs):
    return graph.create_op(op, inputs, attrs={name: attr_proto(value) for name, value in attrs.items() if value["type"] != "func"})


def with_error(made, error, at):
    return {**made, "error": code(error), "at": at, "rtol": 0.0, "atol": 0.0, "derived": False}


def redraw_case(op, case, random):
    draw = Draw(random, case["inputs"], random.random() < 0.4)
    made = {"name": case["name"], "attrs": case["attrs"], "inputs": [draw.tensor(each) for each in case["inputs"]]}
    if "input_lists" in case:
        made["input_lists"] = case["input_lists"]
    with tf.Graph().as_default() as graph:
        inputs = [tf.constant(array(each), tf.as_dtype(each["dtype"])) for each in made["inputs"]]
        try:
            done = node(graph, op, inputs, case["attrs"])
        except (ValueError, tf.errors.OpError) as error:
            return with_error(made, error, "build")
        with plain_session(graph) as session:
            try:
                outputs = session.run(list(done.outputs)) if done.outputs else session.run(done) or []
            except tf.errors.OpError as error:
                return with_error(made, error, "run")
            skipped = [isinstance(each, dict) and each.get("skip") for each in case.get("outputs", [])] or [False] * len(outputs)
            made["outputs"] = [{"skip": True} if skip else plain(np.asarray(each)) for skip, each in zip(skipped, outputs)]
            if case.get("grads"):
                grads = [gradient(session, done, inputs, outputs, each, random) for each in case["grads"]]
                made["grads"] = [each for each in grads if each]
    return {**made, "rtol": case.get("rtol", 1e-5), "atol": case.get("atol", 1e-6), "derived": False}


def gradient(session, done, inputs, outputs, old, random):
    dys = [None if dy is None else np.round(random.uniform(-1, 1, np.shape(out)), 3).astype(np.asarray(out).dtype)
           for dy, out in zip(old["dy"], outputs)]
    pairs = [(out, tf.constant(dy)) for out, dy in zip(done.outputs, dys) if dy is not None]
    try:
        made = tf.gradients([out for out, _ in pairs], inputs, grad_ys=[dy for _, dy in pairs])
        made = [each if value.dtype.is_floating or value.dtype.is_complex else None for each, value in zip(made, inputs)]
        dx = session.run([each for each in made if each is not None])
    except (LookupError, ValueError, tf.errors.OpError):
        return None
    values, result = iter(dx), []
    for each in made:
        one = None if each is None else next(values)
        if hasattr(one, "dense_shape"):  # rows
            one = {"indexed_slices": True, "values": plain(one.values), "indices": plain(one.indices),
                   "dense_shape": plain(np.asarray(one.dense_shape)) if one.dense_shape is not None else None}
        elif one is not None:
            one = plain(np.asarray(one))
        result.append(one)
    return {"dy": [None if dy is None else plain(dy) for dy in dys], "dx": result}


def redraw_script(op, script, random):
    """Values alone: the variables' first ones and the inputs of the steps."""
    draw = Draw(random, [], False)
    keep = script.get("uninitialized", [])
    made = {**script, "name": script["name"], "steps": [], "after": []}
    made["variables"] = {name: draw.tensor(each) for name, each in script.get("variables", {}).items()}
    definition = op_def_registry.get(op)
    if not made["variables"] or keep or script.get("handles") or any(step.get("same_node") for step in script["steps"]):
        return None
    with tf.Graph().as_default() as graph:
        handles = {name: tf.raw_ops.VarHandleOp(dtype=each["dtype"], shape=each["shape"], shared_name=name) for name, each in made["variables"].items()}
        assigns = [tf.raw_ops.AssignVariableOp(resource=handles[name], value=tf.constant(array(each))) for name, each in made["variables"].items()]
        reads = {name: tf.raw_ops.ReadVariableOp(resource=handles[name], dtype=each["dtype"]) for name, each in made["variables"].items()}
        with plain_session(graph) as session:
            session.run(assigns)
            for step in script["steps"]:
                redrawn = {"inputs": {name: draw.tensor(each) for name, each in step.get("inputs", {}).items()}}
                inputs = [tf.constant(array(redrawn["inputs"][arg.name])) if arg.name in redrawn["inputs"] else handles[arg.name]
                          for arg in definition.input_arg]
                try:
                    done = node(graph, op, inputs, {**script["attrs"], **step.get("attrs", {})})
                    outputs = session.run(list(done.outputs) or done)
                    if done.outputs:
                        redrawn["outputs"] = [plain(np.asarray(each)) for each in outputs]
                except (ValueError, tf.errors.OpError) as error:
                    redrawn["error"] = code(error)
                made["steps"].append({**{key: value for key, value in step.items() if key not in ("inputs", "outputs", "error", "run_error", "at")}, **redrawn})
                made["after"].append({name: plain(np.asarray(value)) for name, value in session.run(reads).items()})
    return made


# ---- files -------------------------------------------------------------------------------------------------------------------

def redraw(path, out, seed):
    text = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    held = json.loads(text)
    op, made = held["op"], {"op": held["op"], "cases": [], "scripts": []}
    target = out / (op + ".json")
    random = np.random.default_rng([seed, *op.encode()])
    if op_def_registry.get(op) is None or op == "DestroyResourceOp":
        return
    for kind, change in (("cases", redraw_case), ("scripts", redraw_script)):
        for case in held.get(kind, []):
            if case.get("derived") or any(attr["type"] == "func" for attr in case["attrs"].values()):
                continue
            try:
                one = change(op, case, random)
            except (UnicodeError, TypeError, KeyError, OverflowError) as error:
                print(f"{op} {case['name']}: left out, {type(error).__name__}: {error}")
                continue
            if one:
                made[kind].append(one)
                target.write_text(json.dumps({key: value for key, value in made.items() if key == "op" or value}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=HERE / "data" / "ops")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.source.glob("*.json*")):
        if options.filter not in path.name:
            continue
        child = os.fork()
        if child == 0:
            redraw(path, options.out, options.seed)
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            print(f"{path.name}: TensorFlow ended with {status}")


if __name__ == "__main__":
    sys.exit(main())

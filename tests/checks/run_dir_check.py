"""Opens the run directory of an example with other people's readers and holds the files against each other.

Usage: run_dir_check.py DIR [--min-accuracy 0.91] [--data FASHION_MNIST_DIR]

summary.json and run.json are read as JSON, model.safetensors with the safetensors package, the event files of each task (worker-0,
worker-1, ...) with TensorBoard's reader, checksums on. With --data, the network is computed again from the weights with NumPy, and the share of test images that it
gets right must be the one that the summary claims. Exits 0 when everything is as expected, 1 with a reason per line otherwise. Needs
the packages of tests/requirements.txt.
"""

import argparse
import glob
import gzip
import json
import math
import os
import sys

import numpy as np
from safetensors import safe_open
from tensorboard.backend.event_processing import plugin_event_accumulator, tag_types
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
from tensorboard.util import tensor_util

problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)
    return condition


def read_json(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        return json.load(file)


def check_summary(directory, min_accuracy):
    summary = read_json(directory, "summary.json")
    for key in ("accuracy", "loss", "steps", "seconds", "images_per_second", "epochs", "seed", "dataset"):
        expect(key in summary, f"summary.json has no {key}")
    expect(min_accuracy <= summary["accuracy"] <= 1, f"accuracy is {summary['accuracy']}, wanted at least {min_accuracy}")
    expect(math.isfinite(summary["loss"]), f"loss is {summary['loss']}")
    for key in ("steps", "seconds", "images_per_second", "epochs"):
        expect(summary[key] > 0, f"{key} is {summary[key]}")
    expect(sorted(summary["tasks"]) == sorted(f"worker/{i}" for i in range(summary["workers"])), f"tasks are {sorted(summary['tasks'])}")
    for name, task in summary["tasks"].items():
        for key in ("steps", "images", "seconds", "images_per_second"):
            expect(task[key] > 0, f"{key} of {name} is {task[key]}")
    run = read_json(directory, "run.json")
    expect(isinstance(run["arguments"], list) and run["arguments"], "run.json has no arguments")
    expect(run["seed"] == summary["seed"] and run["epochs"] == summary["epochs"], "run.json and summary.json disagree")
    expect(run["dtg_version"].count(".") == 2, f"dtg_version is {run['dtg_version']}")
    return summary


def check_weights(directory, summary):
    weights = {}
    with safe_open(os.path.join(directory, "model.safetensors"), framework="numpy") as file:
        expect("dtg.crc32c" in (file.metadata() or {}), "model.safetensors has no checksum in its metadata")
        for name in file.keys():
            weights[name] = file.get_tensor(name)
    expect(weights["conv2d/kernel"].shape == (3, 3, 1, 16), f"conv2d/kernel is {weights['conv2d/kernel'].shape}")
    expect(weights["conv2d_1/kernel"].shape == (3, 3, 16, 32), f"conv2d_1/kernel is {weights['conv2d_1/kernel'].shape}")
    expect(weights["dense/kernel"].shape[1] == 10, f"dense/kernel is {weights['dense/kernel'].shape}")
    for name, value in weights.items():
        if value.dtype.kind == "f":
            expect(np.isfinite(value).all(), f"{name} is not finite")
        if name.endswith("/Momentum"):
            expect(value.shape == weights[name[: -len("/Momentum")]].shape, f"{name} is {value.shape}")
    updates = int(weights["global_step"])
    steps = [int(task["steps"]) for task in summary["tasks"].values()]
    if summary["mode"] == "sync-replicas":  # a fast worker may give two gradients to an update, stale ones count for nothing
        expect(0 < updates <= sum(steps) / summary["workers"], f"global_step is {updates}, the workers made {steps} steps")
    else:
        expect(updates == (sum(steps) if summary["mode"] in ("async", "ssp") else summary["steps"]), f"global_step is {updates}, the workers made {steps} steps")
    return weights


def read_curves(directory, summary, tags):
    """The values of each curve that TensorBoard finds in a directory; all of `tags` must be there."""
    files = glob.glob(os.path.join(directory, "*tfevents*"))
    expect(files, f"no event file in {directory}")
    for path in files:
        reader = PyRecordReader_New(path)
        while True:
            try:
                reader.GetNext()
            except Exception as end:  # the end of the file is an exception too
                expect("OutOfRange" in type(end).__name__, f"{path}: {end!r}")
                break
    events = plugin_event_accumulator.EventAccumulator(directory, size_guidance={tag_types.TENSORS: 0})
    events.Reload()
    found = set(events.Tags()["tensors"])
    curves = {}
    for tag in tags:
        if not expect(tag in found, f"no curve {tag} in {directory}, only {sorted(found)}"):
            continue
        points = [(event.step, tensor_util.make_ndarray(event.tensor_proto).item()) for event in events.Tensors(tag)]
        steps = [step for step, _ in points]
        last = max(summary["steps"], *(task["steps"] for task in summary["tasks"].values()))
        expect(steps == sorted(set(steps)) and steps[-1] <= last, f"steps of {tag} are not in order")
        expect(all(math.isfinite(value) for _, value in points), f"{tag} is not finite")
        curves[tag] = [value for _, value in points]
    return curves


def check_events(directory, summary):
    # With a coordinator the curves are the chief's: workers are servers.
    coordinated = summary["mode"] == "coordinator"
    for worker in range(1 if coordinated else summary["workers"]):
        tags = ["loss", "accuracy", "learning_rate", "gradient_norm", "step_time"]
        tags += ["test_accuracy"] if worker == 0 else []
        tags += ["staleness"] if summary["ps"] > 0 and not coordinated else []
        curves = read_curves(os.path.join(directory, "chief-0" if coordinated else f"worker-{worker}"), summary, tags)
        if len(curves) < len(tags):
            continue
        expect(min(curves["step_time"]) > 0 and min(curves["gradient_norm"]) > 0, "step_time or gradient_norm is not positive")
        expect(curves["loss"][-1] < curves["loss"][0], f"loss went from {curves['loss'][0]} to {curves['loss'][-1]}")
        if worker == 0:
            expect(abs(curves["test_accuracy"][-1] - summary["accuracy"]) < 1e-5, "test_accuracy does not end where the summary says")
        if summary["mode"] == "sync" and summary["ps"] > 0:
            expect(set(curves["staleness"]) == {0}, f"synchronous training was stale: {curves['staleness']}")
    for ps in range(summary["ps"]):
        expect(glob.glob(os.path.join(directory, f"ps-{ps}", "*tfevents*")), f"ps/{ps} left no event file")


def read_idx(path):
    with gzip.open(path) as file:
        data = file.read()
    rank = data[3]
    dims = np.frombuffer(data, ">u4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(dims)


def convolve(x, kernel, bias):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = x.shape[1:3]
    y = sum(padded[:, i:i + height, j:j + width] @ kernel[i, j] for i in range(3) for j in range(3)) + bias
    y = np.maximum(y, 0)
    return y.reshape(len(y), height // 2, 2, width // 2, 2, -1).max(axis=(2, 4))


def check_again(weights, data, summary):
    images = read_idx(os.path.join(data, "t10k-images-idx3-ubyte.gz")).astype(np.float32)[..., None] / 255
    labels = read_idx(os.path.join(data, "t10k-labels-idx1-ubyte.gz"))
    right = 0
    for start in range(0, len(images), 500):
        x = convolve(images[start:start + 500], weights["conv2d/kernel"], weights["conv2d/bias"])
        x = convolve(x, weights["conv2d_1/kernel"], weights["conv2d_1/bias"])
        logits = x.reshape(len(x), -1) @ weights["dense/kernel"] + weights["dense/bias"]
        right += int((logits.argmax(axis=1) == labels[start:start + 500]).sum())
    # Sums in another order may turn a tie or two.
    expect(abs(right / len(images) - summary["accuracy"]) <= 2e-4, f"NumPy gets {right / len(images)} right, the summary says {summary['accuracy']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--min-accuracy", type=float, default=0.0)
    parser.add_argument("--data")
    arguments = parser.parse_args()
    summary = check_summary(arguments.directory, arguments.min_accuracy)
    weights = check_weights(arguments.directory, summary)
    check_events(arguments.directory, summary)
    if arguments.data and summary["dataset"] == "fashion-mnist":
        check_again(weights, arguments.data, summary)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"run directory: {len(weights)} tensors, accuracy {summary['accuracy']:.4f}, all as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Reads what a fit wrote for TensorBoard with TensorBoard's own reader, checksums on, and holds it against the rows of the same fit.

Usage: board_check.py RUN_DIRECTORY. Exits 0 when everything is as expected, 1 with a reason per line otherwise, 77 without the packages of
tests/requirements.txt.
"""

import json
import os
import sys

try:
    import numpy as np
    from tensorboard.backend.event_processing import plugin_event_accumulator, tag_types
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util
except ImportError as missing:
    print(f"board_check: {missing}")
    sys.exit(77)


def read(directory):
    run = plugin_event_accumulator.EventAccumulator(directory, size_guidance={tag_types.TENSORS: 0})
    run.Reload()
    return run


def points(run, tag):
    """Step and value. What an earlier process wrote beyond its last checkpoint is dropped by the reader, so that no step is there twice."""
    found = {}
    for event in run.Tensors(tag):
        if event.step in found:
            raise AssertionError(f"{tag} has two values at step {event.step}")
        found[event.step] = tensor_util.make_ndarray(event.tensor_proto)
    return found


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "metrics.jsonl"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    train, validation = (read(os.path.join(root, "tensorboard", role)) for role in ("train", "validation"))
    problems = []

    def same(run, tag, column):
        found = points(run, tag)
        wanted = {row["step"]: np.float32(row[column]) for row in rows if row.get(column) is not None}
        if {step: value.item() for step, value in found.items()} != {step: value.item() for step, value in wanted.items()}:
            problems.append(f"{tag}: {found}, and the rows have {wanted}")

    for name in ("loss", "accuracy"):
        same(train, f"epoch_{name}", name)
        same(validation, f"epoch_{name}", f"val_{name}")
    same(train, "epoch_learning_rate", "learning_rate")
    last = rows[-1]["step"]
    steps = sorted(points(train, "batch_loss"))
    if steps != list(range(1, last + 1)):
        problems.append(f"batch_loss is of the steps {steps}, there were {last}")
    for tag, wanted in (("dense/kernel", 18), ("dense/bias", 6)):
        tables = points(train, tag)
        if sorted(tables) != [row["step"] for row in rows if row["epoch"] % 2 == 0]:
            problems.append(f"histograms of {tag} are of the steps {sorted(tables)}")
        if any(table.shape[1] != 3 or table[:, 2].sum() != wanted for table in tables.values()):
            problems.append(f"a histogram of {tag} is not of {wanted} values")
    text = train.Tensors("configuration")[0].tensor_proto.string_val[0].decode()
    if "| optimizer | adam |" not in text or "| early_stopping |" in text:
        problems.append(f"the configuration is {text}")
    content = train.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    if abs(hparams["learning_rate"].number_value - 0.05) > 1e-6 or hparams["epochs"].number_value < 1:
        problems.append(f"the hyperparameters are {hparams}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

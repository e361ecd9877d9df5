#!/usr/bin/env python3
"""Golden values of losses and metrics, made with real Keras (3, on TensorFlow); tests/nn/losses_test.cc and metrics_test.cc read them.

    python3 make_losses.py [--seed N] [--rounds N]      writes losses.json.gz beside this file; needs the package tensorflow-cpu

Each loss has drawn shapes and settings, its value, and the gradient of sum(value * direction) with respect to the predictions. Each metric
has its result after each of one to five batches. Names of settings are those of our structs.
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

from make import Draw, plain  # noqa: E402


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def uniform(draw, *shape, low=0.0, high=1.0):
    return draw.random.uniform(low, high, size=shape).astype(np.float32)


def packed(array):
    array = np.asarray(array)
    made = plain(array)
    if array.dtype.kind in "iu":
        made["values"] = [int(v) for v in array.reshape(-1)]
        made["int"] = True
    return made


def loss_case(draw, kind, settings, fn, labels, predictions, weights=None, extra=None):
    """`fn` is a keras.losses.Loss of the drawn reduction, or anything called alike."""
    variable = tf.Variable(predictions)
    with tf.GradientTape() as tape:
        value = fn(labels, variable, weights)
        direction = draw.tensor(*value.shape)
        total = tf.reduce_sum(value * direction)
    gradient = tape.gradient(total, variable)
    made = {"loss": kind, "settings": settings, "labels": packed(labels), "predictions": packed(predictions), "value": packed(value),
            "direction": packed(direction), "gradient": packed(gradient)}
    if weights is not None:
        made["weights"] = packed(weights)
    made.update({key: packed(array) for key, array in (extra or {}).items()})
    return made


REDUCTIONS = ("sum_over_batch_size", "sum_over_batch_size", "sum", "none", "mean_with_sample_weight")


def weights_of(draw, *shape):
    return uniform(draw, *shape, high=2.0) if draw.pick(True, False) else None


def of_numbers(draw):
    name = draw.pick("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error",
                     "huber", "log_cosh", "cosine_similarity", "kl_divergence", "poisson", "hinge", "squared_hinge", "categorical_hinge")
    classes = {"mean_squared_error": "MeanSquaredError", "mean_absolute_error": "MeanAbsoluteError", "huber": "Huber", "log_cosh": "LogCosh",
               "mean_absolute_percentage_error": "MeanAbsolutePercentageError", "cosine_similarity": "CosineSimilarity",
               "mean_squared_logarithmic_error": "MeanSquaredLogarithmicError", "kl_divergence": "KLDivergence", "poisson": "Poisson",
               "hinge": "Hinge", "squared_hinge": "SquaredHinge", "categorical_hinge": "CategoricalHinge"}
    settings = {"reduction": draw.pick(*REDUCTIONS)}
    if name == "huber":
        settings["delta"] = draw.pick(0.5, 1.0, 2.0)
    rank = draw.int(1, 3)
    shape = [draw.int(2 if name == "cosine_similarity" else 1, 5) for _ in range(rank - 1)] + [draw.int(2, 5)]
    if name == "cosine_similarity" and rank > 1:
        settings["axis"] = draw.pick(-1, -2)
    labels, predictions = draw.tensor(*shape), draw.tensor(*shape)
    if name in ("kl_divergence",):
        labels, predictions = softmax(labels), softmax(predictions)
    elif name in ("poisson", "mean_squared_logarithmic_error"):
        labels, predictions = np.abs(labels), np.abs(predictions) + np.float32(0.1)
    elif "hinge" in name and draw.pick(True, False):
        labels = (labels > 0).astype(np.float32)
    elif "hinge" in name:
        labels = np.sign(labels)
    if draw.pick(True, False, False) and name.endswith("_error"):
        labels = np.round(labels * 3).astype(np.int32)
        if name == "mean_squared_logarithmic_error":
            labels = np.abs(labels)
    if rank == 2 and name == "mean_squared_error" and draw.pick(True, False):  # a vector against a column
        predictions = predictions[:, :1]
        labels = labels[:, 0]
    fn = getattr(keras.losses, classes[name])(**settings)
    inner = [d for i, d in enumerate(predictions.shape) if i != rank - 1 + (settings.get("axis", -1) + 1)]
    weights = weights_of(draw, *inner) if rank > 1 else None
    return loss_case(draw, name, settings, fn, labels, predictions, weights)


def binary(draw):
    focal = draw.pick(True, False)
    settings = {"reduction": draw.pick(*REDUCTIONS), "from_logits": draw.pick(True, False), "label_smoothing": draw.pick(0.0, 0.0, 0.1)}
    if focal:
        settings.update(gamma=draw.pick(2.0, 1.0, 1.5), alpha=draw.pick(0.25, 0.4), apply_class_balancing=draw.pick(True, False))
    shape = [draw.int(1, 5) for _ in range(draw.int(1, 2))] + [draw.int(1, 4)]
    if len(shape) == 2:
        settings["axis"] = draw.pick(-1, -1, -2)
    predictions = draw.tensor(*shape) * draw.pick(1, 8)
    if not settings["from_logits"]:
        predictions = (1 / (1 + np.exp(-predictions))).astype(np.float32)
    elif draw.pick(True, False):
        predictions[..., 0] = 0  # where a layer that begins with zeros stands
    labels = (draw.tensor(*shape) > 0).astype(draw.pick(np.float32, np.int32))
    fn = getattr(keras.losses, "BinaryFocalCrossentropy" if focal else "BinaryCrossentropy")(**settings)
    axis = settings.get("axis", -1) % len(shape)
    weights = weights_of(draw, *[d for i, d in enumerate(shape) if i != axis])
    name = "binary_focal_crossentropy" if focal else "binary_crossentropy"
    return loss_case(draw, name, settings, fn, labels, predictions, weights)


def categorical(draw):
    focal = draw.pick(True, False)
    settings = {"reduction": draw.pick(*REDUCTIONS), "from_logits": draw.pick(True, False), "label_smoothing": draw.pick(0.0, 0.0, 0.1)}
    if focal:
        settings.update(gamma=draw.pick(2.0, 1.0, 1.5), alpha=draw.pick(0.25, 0.4))
    shape = [draw.int(1, 5) for _ in range(draw.int(1, 2))] + [draw.int(2, 5)]
    if len(shape) == 3 and settings["label_smoothing"] == 0:
        settings["axis"] = draw.pick(-1, 1)
    axis = settings.get("axis", -1) % len(shape)
    logits = draw.tensor(*shape) * draw.pick(1, 5)
    predictions = logits if settings["from_logits"] else np.moveaxis(softmax(np.moveaxis(logits, axis, -1)), -1, axis).copy()
    if not settings["from_logits"] and draw.pick(True, False):
        predictions = predictions * np.float32(1.5)  # is made a distribution
    labels = np.moveaxis(softmax(np.moveaxis(draw.tensor(*shape), axis, -1)), -1, axis).copy()
    if draw.pick(True, False):
        labels = (labels == labels.max(axis, keepdims=True)).astype(np.float32)
    fn = getattr(keras.losses, "CategoricalFocalCrossentropy" if focal else "CategoricalCrossentropy")(**settings)
    weights = weights_of(draw, *[d for i, d in enumerate(shape) if i != axis])
    name = "categorical_focal_crossentropy" if focal else "categorical_crossentropy"
    return loss_case(draw, name, settings, fn, labels, predictions, weights)


def sparse(draw):
    classes = draw.int(2, 5)
    settings = {"reduction": draw.pick(*REDUCTIONS), "from_logits": draw.pick(True, False)}
    outer = [draw.int(2, 5) for _ in range(draw.int(1, 2))]
    logits = draw.tensor(*outer, classes) * draw.pick(1, 5)
    labels = draw.random.integers(0, classes, size=outer).astype(draw.pick(np.int32, np.int64))
    if draw.pick(True, False):
        settings["ignore_class"] = draw.pick(-1, 0, 255)
        labels[0] = settings["ignore_class"]
    weights = weights_of(draw, *outer)
    fn = keras.losses.SparseCategoricalCrossentropy(**settings)
    if "ignore_class" not in settings and draw.pick(True, False, False):
        labels = labels[..., None]
    predictions = logits if settings["from_logits"] else softmax(logits)
    return loss_case(draw, "sparse_categorical_crossentropy", settings, fn, labels, predictions, weights)


def ctc(draw):
    batch, length, steps, classes = draw.int(1, 3), draw.int(1, 3), draw.int(7, 9), draw.int(2, 5)
    labels = draw.random.integers(1, classes, size=(batch, length)).astype(np.int32)
    for row in labels:
        row[draw.int(0, length):] = 0
    logits = draw.tensor(batch, steps, classes)
    settings = {"reduction": draw.pick("sum_over_batch_size", "sum", "none")}
    if draw.pick(True, False):
        return loss_case(draw, "ctc", settings, keras.losses.CTC(**settings), labels, logits, weights_of(draw, batch))
    lengths = draw.random.integers(7, steps + 1, size=(batch,)).astype(np.int32)
    settings["reduction"] = "none"

    def fn(y_true, y_pred, _):
        count = tf.reduce_sum(tf.cast(y_true != 0, tf.int32), -1)
        return tf.nn.ctc_loss(y_true, y_pred, count, lengths, logits_time_major=False, blank_index=0)

    return loss_case(draw, "ctc", settings, fn, labels, logits, extra={"lengths": lengths})


def overlap(draw):
    name = draw.pick("dice", "tversky")
    shape = [draw.int(1, 3) for _ in range(draw.int(1, 3))] + [draw.int(2, 4)]
    settings = {"reduction": draw.pick("sum_over_batch_size", "sum", "none"), "per_example": draw.pick(True, False)}
    if name == "tversky":
        settings.update(alpha=draw.pick(0.5, 0.3), beta=draw.pick(0.5, 0.7))
    arguments = {key: value for key, value in settings.items() if key != "per_example"}
    axis = tuple(range(1, len(shape))) if settings["per_example"] else None
    fn = {"dice": keras.losses.Dice, "tversky": keras.losses.Tversky}[name](axis=axis, **arguments)
    labels = (draw.tensor(*shape) > 0).astype(draw.pick(np.float32, np.int32))
    weights = weights_of(draw, shape[0]) if settings["per_example"] else None
    return loss_case(draw, name, settings, fn, labels, uniform(draw, *shape), weights)


def weighted_classes(draw):
    """What Model.fit(class_weight=...) makes of classes: weights of samples."""
    batch, classes = draw.int(2, 6), draw.int(2, 4)
    by_class = uniform(draw, classes, high=3.0)
    numbers = draw.random.integers(0, classes, size=(batch,))
    logits = draw.tensor(batch, classes)
    settings = {"from_logits": True, "reduction": "sum_over_batch_size"}
    extra = {"class_weights": by_class}
    kind = draw.pick("sparse", "categorical", "binary")
    if kind == "sparse":
        inner = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        fn = lambda y, p, _: inner(y, p, by_class[numbers])  # noqa: E731
        return loss_case(draw, "sparse_categorical_crossentropy", settings, fn, numbers.astype(np.int32), logits, extra=extra)
    if kind == "categorical":
        inner = keras.losses.CategoricalCrossentropy(from_logits=True)
        fn = lambda y, p, _: inner(y, p, by_class[numbers])  # noqa: E731
        return loss_case(draw, "categorical_crossentropy", settings, fn, np.eye(classes, dtype=np.float32)[numbers], logits, extra=extra)
    two = numbers % 2
    inner = keras.losses.BinaryCrossentropy(from_logits=True)
    fn = lambda y, p, _: inner(y, p, by_class[two])  # noqa: E731
    return loss_case(draw, "binary_crossentropy", settings, fn, two[:, None].astype(np.float32), logits[:, :1], extra=extra)


def candidate(draw):
    """NCE and sampled softmax over classes that are given as drawn."""
    batch, width, classes, trues, samples = draw.int(1, 4), draw.int(1, 4), draw.int(8, 12), draw.int(1, 2), draw.int(2, 5)
    table, biases, inputs = draw.tensor(classes, width), draw.tensor(classes), draw.tensor(batch, width)
    labels = draw.random.integers(0, classes, size=(batch, trues)).astype(np.int64)
    sampled = draw.random.choice(classes, size=samples, replace=False).astype(np.int64)
    true_expected, sampled_expected = uniform(draw, batch, trues, low=0.1), uniform(draw, samples, low=0.1)
    hits = draw.pick(True, False)
    kind = draw.pick("nce", "sampled_softmax")
    variables = [tf.Variable(table), tf.Variable(biases), tf.Variable(inputs)]
    fn = tf.nn.nce_loss if kind == "nce" else tf.nn.sampled_softmax_loss
    with tf.GradientTape() as tape:
        value = fn(variables[0], variables[1], labels, variables[2], samples, classes, num_true=trues,
                   sampled_values=(sampled, true_expected, sampled_expected), remove_accidental_hits=hits)
        direction = draw.tensor(*value.shape)
        total = tf.reduce_sum(value * direction)
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(total, variables)]
    return {"kind": kind, "settings": {"classes": classes, "samples": samples, "trues": trues, "remove_accidental_hits": hits},
            "weights": packed(table), "biases": packed(biases), "inputs": packed(inputs), "labels": packed(labels),
            "sampled": packed(sampled), "true_expected": packed(true_expected), "sampled_expected": packed(sampled_expected),
            "value": packed(value), "direction": packed(direction), "gradients": [packed(g) for g in gradients]}


# ---- metrics ----

def fed(metric, batches):
    """Results after each batch. A matrix may come of it."""
    after = []
    for labels, predictions, weights in batches:
        if labels is None:
            metric.update_state(predictions, sample_weight=weights)
        else:
            metric.update_state(labels, predictions, sample_weight=weights)
        after.append(packed(np.asarray(metric.result())))
    return after


def metric_case(kind, settings, metric, batches):
    rows = []
    for labels, predictions, weights in batches:
        row = {"predictions": packed(predictions)}
        if labels is not None:
            row["labels"] = packed(labels)
        if weights is not None:
            row["weights"] = packed(weights)
        rows.append(row)
    made = {"metric": kind, "settings": settings, "batches": rows}
    for row, result in zip(rows, fed(metric, batches)):
        row["result"] = result
    return made


def batches_of(draw, make):
    weighted = draw.pick(True, False)
    made = []
    for _ in range(draw.int(1, 5)):
        size = draw.int(1, 6)
        labels, predictions = make(size)
        made.append((labels, predictions, uniform(draw, size, high=2.0) if weighted else None))
    return made


def metric_of_classes(draw):
    classes = draw.int(3, 6)
    k = draw.int(1, 3)
    kind = draw.pick("accuracy", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy", "top_k_categorical_accuracy",
                     "sparse_top_k_categorical_accuracy")
    one_hot = np.eye(classes, dtype=np.float32)

    def make(size):
        numbers = draw.random.integers(0, classes, size=size).astype(np.int32)
        scores = draw.tensor(size, classes)
        if kind == "accuracy":
            return numbers[:, None] % 2, (draw.tensor(size, 1) > 0).astype(np.float32)
        if kind == "binary_accuracy":
            return (numbers[:, None] % 2).astype(np.float32), uniform(draw, size, 1)
        return (numbers if "sparse" in kind else one_hot[numbers]), scores

    settings, metric = {}, None
    if kind == "binary_accuracy":
        settings["threshold"] = draw.pick(0.5, 0.3)
        metric = keras.metrics.BinaryAccuracy(threshold=settings["threshold"])
    elif "top_k" in kind:
        settings["k"] = k
        metric = (keras.metrics.SparseTopKCategoricalAccuracy if "sparse" in kind else keras.metrics.TopKCategoricalAccuracy)(k=k)
    else:
        metric = {"accuracy": keras.metrics.Accuracy, "categorical_accuracy": keras.metrics.CategoricalAccuracy,
                  "sparse_categorical_accuracy": keras.metrics.SparseCategoricalAccuracy}[kind]()
    return metric_case(kind, settings, metric, batches_of(draw, make))


def metric_of_numbers(draw):
    kind = draw.pick("mean", "sum", "mean_squared_error", "mean_absolute_error", "root_mean_squared_error", "r2_score", "log_loss")
    width = draw.int(1, 3)

    def make(size):
        if kind in ("mean", "sum"):
            return None, draw.tensor(size, width) if width > 1 else draw.tensor(size)
        if kind == "log_loss":
            return (draw.tensor(size, width) > 0).astype(np.float32), uniform(draw, size, width, low=0.01, high=0.99)
        return draw.tensor(size, width), draw.tensor(size, width)

    settings = {}
    metric = {"mean": keras.metrics.Mean, "sum": keras.metrics.Sum, "mean_squared_error": keras.metrics.MeanSquaredError,
              "mean_absolute_error": keras.metrics.MeanAbsoluteError, "root_mean_squared_error": keras.metrics.RootMeanSquaredError,
              "log_loss": keras.metrics.BinaryCrossentropy}.get(kind)
    if kind == "r2_score":
        settings["average"] = draw.pick("none", "uniform", "variance")
        metric = lambda: keras.metrics.R2Score(  # noqa: E731
            class_aggregation={"none": None, "uniform": "uniform_average", "variance": "variance_weighted_average"}[settings["average"]])
    batches = batches_of(draw, make)
    if kind == "r2_score":  # one row alone has no variance
        batches = [(l, p, w) for l, p, w in batches if len(p) > 1] or [(draw.tensor(3, width), draw.tensor(3, width), None)]
        weighted = batches[0][2] is not None
        batches = [(l, p, w if weighted else None) for l, p, w in batches]
    if kind != "r2_score":
        return metric_case(kind, settings, metric(), batches)
    keras.config.set_floatx("float64")  # a difference of sums of squares: float32 leaves little of it
    try:
        return metric_case(kind, settings, metric(), batches)
    finally:
        keras.config.set_floatx("float32")


def metric_of_decisions(draw):
    kind = draw.pick("precision", "recall", "true_positives", "false_positives", "true_negatives", "false_negatives", "auc", "auc", "auc")
    flat = draw.pick(True, False)

    def make(size):
        shape = (size,) if flat else (size, 2)
        labels = (draw.tensor(*shape) > 0).astype(np.float32)
        scores = np.clip(labels * 0.2 + uniform(draw, *shape), 0, 1).astype(np.float32)
        return labels, (scores * 6 - 3 if settings.get("from_logits") else scores)

    settings = {}
    if kind == "auc":
        settings = {"thresholds": draw.pick(200, 5, 20), "curve": draw.pick("ROC", "PR"), "from_logits": draw.pick(False, False, True),
                    "summation": draw.pick("interpolation", "interpolation", "minoring", "majoring")}
        metric = keras.metrics.AUC(num_thresholds=settings["thresholds"], curve=settings["curve"], summation_method=settings["summation"],
                                   from_logits=settings["from_logits"])
    else:
        settings = {"threshold": draw.pick(0.5, 0.25)}
        metric = {"precision": keras.metrics.Precision, "recall": keras.metrics.Recall, "true_positives": keras.metrics.TruePositives,
                  "false_positives": keras.metrics.FalsePositives, "true_negatives": keras.metrics.TrueNegatives,
                  "false_negatives": keras.metrics.FalseNegatives}[kind](thresholds=settings["threshold"])
    return metric_case(kind, settings, metric, batches_of(draw, make))


def metric_of_f1(draw):
    classes = draw.int(2, 4)
    settings = {"average": draw.pick("none", "micro", "macro", "weighted")}
    if draw.pick(True, False):
        settings["threshold"] = draw.pick(0.5, 0.3)
    metric = keras.metrics.F1Score(average=None if settings["average"] == "none" else settings["average"], threshold=settings.get("threshold"))

    def make(size):
        return (draw.tensor(size, classes) > 0).astype(np.float32), uniform(draw, size, classes, low=0.01)

    return metric_case("f1_score", settings, metric, batches_of(draw, make))


def metric_of_areas(draw):
    classes = draw.int(2, 4)
    kind = draw.pick("mean_iou", "confusion_matrix")
    sparse_predictions = draw.pick(True, False)
    settings = {"classes": classes}
    if kind == "mean_iou" and draw.pick(True, False):
        settings["ignore_class"] = 0

    def make(size):
        labels = draw.random.integers(0, classes, size=size).astype(np.int32)
        return labels, (draw.random.integers(0, classes, size=size).astype(np.int32) if sparse_predictions else draw.tensor(size, classes))

    batches = batches_of(draw, make)
    if kind == "mean_iou":
        metric = keras.metrics.MeanIoU(classes, dtype="float32", ignore_class=settings.get("ignore_class"), sparse_y_pred=sparse_predictions)
        return metric_case(kind, settings, metric, batches)
    made = {"metric": kind, "settings": settings, "batches": []}
    total = 0
    for labels, predictions, weights in batches:
        found = predictions if sparse_predictions else predictions.argmax(-1)
        total = total + tf.math.confusion_matrix(labels, found, classes, weights=weights, dtype=tf.float32).numpy()
        row = {"labels": packed(labels), "predictions": packed(predictions), "result": packed(total)}
        if weights is not None:
            row["weights"] = packed(weights)
        made["batches"].append(row)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "losses.json.gz")
    options = parser.parse_args()
    draw = Draw(options.seed)

    def made(makers):
        return [make(draw) for make, times in makers for _ in range(options.rounds * times)]

    found = {
        "keras": keras.__version__, "tensorflow": tf.__version__, "seed": options.seed,
        "losses": made([(of_numbers, 10), (binary, 5), (categorical, 5), (sparse, 4), (ctc, 2), (overlap, 2), (weighted_classes, 1)]),
        "candidates": made([(candidate, 2)]),
        "metrics": made([(metric_of_classes, 4), (metric_of_numbers, 4), (metric_of_decisions, 6), (metric_of_f1, 2), (metric_of_areas, 2)]),
    }
    options.out.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), mtime=0))
    print({key: len(value) for key, value in found.items() if isinstance(value, list)}, options.out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

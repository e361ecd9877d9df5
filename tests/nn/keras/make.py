#!/usr/bin/env python3
"""Golden values of layers, made with real Keras (3, on TensorFlow): tests/nn/keras_test.cc holds ours to them.

    python3 make.py [--seed N] [--rounds N]      writes layers.json.gz beside this file; needs the package tensorflow-cpu

Each case is a layer with random settings and shapes: its weights (drawn, not the initial ones), inputs, outputs, and the gradients of
sum(output * direction) with respect to inputs and weights. Where a layer keeps moving statistics, `after` has them after one step.
Names of settings are those of our structs, names of weights those of our variables.
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


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def int(self, low, high):
        return int(self.random.integers(low, high + 1))

    def pick(self, *choices):
        return choices[self.int(0, len(choices) - 1)]

    def tensor(self, *shape):
        return self.random.normal(size=shape).astype(np.float32)


def plain(array):
    array = np.asarray(array)
    return {"shape": list(array.shape), "values": [float(f"{v:.9g}") for v in array.reshape(-1)]}


def case(draw, name, settings, layer, inputs, names, call=None, ints=None, after=()):
    """`names` are ours for layer.trainable_weights (in Keras' order), `after` for the others."""
    call = call or (lambda values: layer(*values))
    call([tf.constant(v) for v in inputs.values()])  # builds it
    for weight in layer.weights:
        value = draw.tensor(*weight.shape) * 0.5
        if "variance" in weight.name or "gamma" in weight.name or weight.name == "scale":
            value = np.abs(value) + 0.5
        weight.assign(value)
    before = [weight.numpy() for weight in layer.weights]
    variables = [tf.Variable(value) for value in inputs.values()]
    with tf.GradientTape() as tape:
        outputs = tf.nest.flatten(call(variables))
        directions = [draw.tensor(*output.shape) for output in outputs]
        total = tf.add_n([tf.reduce_sum(output * direction) for output, direction in zip(outputs, directions)])
    trainable = [weight.value for weight in layer.trainable_weights]
    gradients = tape.gradient(total, variables + trainable)
    values = {weight.path: value for weight, value in zip(layer.weights, before)}
    fixed = [weight for weight in layer.weights if not weight.trainable and "seed" not in weight.path]
    assert len(names) == len(trainable), (name, [weight.path for weight in layer.trainable_weights])
    assert len(after) == len(fixed), (name, [weight.path for weight in fixed])
    made = {
        "layer": name,
        "settings": settings,
        "inputs": {key: plain(value) for key, value in inputs.items()},
        "weights": {our: plain(values[weight.path]) for our, weight in zip(names, layer.trainable_weights)},
        "outputs": [plain(output) for output in outputs],
        "directions": [plain(direction) for direction in directions],
        "gradients": {},
        "after": {our: plain(weight.numpy()) for our, weight in zip(after, fixed)},
    }
    made["weights"].update({our: plain(values[weight.path]) for our, weight in zip(after, fixed)})
    for key, gradient in zip(list(inputs) + list(names), gradients):
        made["gradients"][key] = plain(gradient)
    if ints:
        made["ints"] = {key: [int(v) for v in value] for key, value in ints.items()}
    return made


def batch_norm(draw):
    rank, channels = draw.int(2, 5), draw.int(1, 5)
    x = draw.tensor(*[draw.int(2, 4) for _ in range(rank - 1)], channels)
    settings = {"momentum": draw.pick(0.9, 0.5, 0.99), "epsilon": draw.pick(1e-3, 1e-2), "center": draw.pick(True, False),
                "scale": draw.pick(True, False), "training": draw.pick(True, True, False)}
    layer = keras.layers.BatchNormalization(**{key: settings[key] for key in ("momentum", "epsilon", "center", "scale")})
    names = ["gamma"] * settings["scale"] + ["beta"] * settings["center"]
    return case(draw, "batch_norm", settings, layer, {"x": x}, names, lambda v: layer(v[0], training=settings["training"]),
                after=("moving_mean", "moving_variance"))


def layer_norm(draw):
    x = draw.tensor(*[draw.int(1, 4) for _ in range(draw.int(1, 3))], draw.int(2, 6))
    settings = {"epsilon": draw.pick(1e-3, 1e-5), "center": draw.pick(True, False), "scale": draw.pick(True, False)}
    layer = keras.layers.LayerNormalization(**settings)
    return case(draw, "layer_norm", settings, layer, {"x": x}, ["gamma"] * settings["scale"] + ["beta"] * settings["center"])


def rms_norm(draw):
    x = draw.tensor(*[draw.int(1, 4) for _ in range(draw.int(1, 3))], draw.int(2, 6))
    settings = {"epsilon": draw.pick(1e-6, 1e-3)}
    return case(draw, "rms_norm", settings, keras.layers.RMSNormalization(**settings), {"x": x}, ["scale"])


def group_norm(draw):
    groups = draw.int(1, 3)
    x = draw.tensor(*[draw.int(2, 4) for _ in range(draw.int(2, 3))], groups * draw.int(1, 3))
    settings = {"groups": groups, "epsilon": draw.pick(1e-3, 1e-5), "center": draw.pick(True, False), "scale": draw.pick(True, False)}
    layer = keras.layers.GroupNormalization(**settings)
    return case(draw, "group_norm", settings, layer, {"x": x}, ["gamma"] * settings["scale"] + ["beta"] * settings["center"])


def recurrent(draw):
    kind, direction = draw.pick("lstm", "gru", "simple"), draw.pick("forward", "backward", "both")
    batch, steps, width, units = draw.int(1, 4), draw.int(1, 6), draw.int(1, 5), draw.int(1, 4)
    settings = {"kind": kind, "direction": direction, "units": units, "use_bias": draw.pick(True, True, False)}
    inner = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU, "simple": keras.layers.SimpleRNN}[kind]
    inner = inner(units, use_bias=settings["use_bias"], return_sequences=True, return_state=True, go_backwards=direction == "backward")
    layer = keras.layers.Bidirectional(inner) if direction == "both" else inner
    lengths = [draw.int(1, steps) for _ in range(batch)] if draw.pick(True, False) else None
    mask = None if lengths is None else np.arange(steps)[None, :] < np.array(lengths)[:, None]
    inputs = {"x": draw.tensor(batch, steps, width)}
    if direction != "both" and draw.pick(True, False):
        inputs["hidden"] = draw.tensor(batch, units)
        if kind == "lstm":
            inputs["cell"] = draw.tensor(batch, units)

    def call(values):
        state = {"initial_state": list(values[1:])} if len(values) > 1 else {}
        sequence, *states = layer(values[0], mask=mask, **state)
        if direction == "backward":
            sequence = tf.reverse(sequence, [1])  # Keras leaves it in the order of its work
        if direction == "both":
            states = [tf.concat(pair, 1) for pair in zip(states[: len(states) // 2], states[len(states) // 2:])]
        return [sequence, *states]

    names = ["kernel", "recurrent_kernel"] + ["bias"] * settings["use_bias"]
    if direction == "both":
        names = [f"{way}/{name}" for way in ("forward", "backward") for name in names]
    ints = {} if lengths is None else {"lengths": lengths}
    return case(draw, "recurrent", settings, layer, inputs, names, call, ints)


def attention(draw):
    batch, places, width = draw.int(1, 3), draw.int(1, 5), draw.int(2, 5)
    settings = {"heads": draw.int(1, 3), "key_width": draw.int(1, 4), "value_width": draw.pick(0, 3), "output_width": draw.pick(0, 4),
                "use_bias": draw.pick(True, False), "causal": draw.pick(True, False)}
    layer = keras.layers.MultiHeadAttention(settings["heads"], settings["key_width"], value_dim=settings["value_width"] or None,
                                            output_shape=settings["output_width"] or None, use_bias=settings["use_bias"])
    inputs = {"query": draw.tensor(batch, places, width)}
    keys = places
    if draw.pick(True, False):
        keys = draw.int(1, 5)
        inputs["value"] = draw.tensor(batch, keys, draw.int(2, 5))
    lengths = [draw.int(1, keys) for _ in range(batch)] if draw.pick(True, False) else None
    mask = None if lengths is None else np.broadcast_to((np.arange(keys)[None, :] < np.array(lengths)[:, None])[:, None, :],
                                                         (batch, places, keys))
    names = [f"{part}/{name}" for part in ("query", "key", "value", "attention_output") for name in ["kernel"] + ["bias"] * settings["use_bias"]]

    def call(values):
        return layer(values[0], values[-1], attention_mask=mask, use_causal_mask=settings["causal"])

    return case(draw, "attention", settings, layer, inputs, names, call, {} if lengths is None else {"lengths": lengths})


def convolution(draw):
    kind = draw.pick("conv1d", "conv3d", "conv2d_transpose", "depthwise_conv2d", "separable_conv2d")
    dims = {"conv1d": 1, "conv3d": 3}.get(kind, 2)
    kernel = [draw.int(1, 3) for _ in range(dims)]
    stride = [draw.int(1, 2)] * dims if kind != "conv2d_transpose" else [draw.int(1, 3) for _ in range(dims)]
    dilation = [draw.int(1, 2)] * dims if stride[0] == 1 and kind not in ("conv2d_transpose", "conv3d") else [1] * dims
    padding = draw.pick("valid", "same") if kind != "conv1d" else draw.pick("valid", "same", "causal")
    settings = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding, "use_bias": draw.pick(True, False),
                "filters": draw.int(1, 4), "multiplier": draw.int(1, 2) if "conv2d" in kind and kind != "conv2d_transpose" else 1}
    common = {"kernel_size": kernel, "strides": stride, "padding": padding, "use_bias": settings["use_bias"], "dilation_rate": dilation}
    if kind == "depthwise_conv2d":
        layer = keras.layers.DepthwiseConv2D(depth_multiplier=settings["multiplier"], **common)
    elif kind == "separable_conv2d":
        layer = keras.layers.SeparableConv2D(settings["filters"], depth_multiplier=settings["multiplier"], **common)
    else:
        layer = {"conv1d": keras.layers.Conv1D, "conv3d": keras.layers.Conv3D, "conv2d_transpose": keras.layers.Conv2DTranspose}[kind](
            settings["filters"], **common)
    x = draw.tensor(draw.int(1, 2), *[draw.int(5, 7) for _ in range(dims)], draw.int(1, 3))
    names = ["depthwise_kernel", "pointwise_kernel"] if kind == "separable_conv2d" else ["kernel"]
    return case(draw, kind, settings, layer, {"x": x}, names + ["bias"] * settings["use_bias"])


def resizing(draw):
    kind = draw.pick("global_average", "global_max", "up_sampling")
    if kind == "up_sampling":
        settings = {"high": draw.int(1, 3), "wide": draw.int(1, 3), "bilinear": draw.pick(True, False)}
        layer = keras.layers.UpSampling2D((settings["high"], settings["wide"]), interpolation="bilinear" if settings["bilinear"] else "nearest")
        x = draw.tensor(draw.int(1, 2), draw.int(1, 4), draw.int(1, 4), draw.int(1, 3))
        return case(draw, kind, settings, layer, {"x": x}, [])
    dims = draw.int(1, 3)
    settings = {"keep_dims": draw.pick(True, False)}
    prefix = "GlobalAveragePooling" if kind == "global_average" else "GlobalMaxPooling"
    layer = getattr(keras.layers, f"{prefix}{dims}D")(keepdims=settings["keep_dims"])
    x = draw.tensor(draw.int(1, 2), *[draw.int(1, 4) for _ in range(dims)], draw.int(1, 3))
    return case(draw, kind, settings, layer, {"x": x}, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "layers.json.gz")
    options = parser.parse_args()
    draw = Draw(options.seed)
    makers = [(batch_norm, 2), (layer_norm, 1), (rms_norm, 1), (group_norm, 1), (recurrent, 5), (attention, 2), (convolution, 4), (resizing, 2)]
    cases = [make(draw) for make, times in makers for _ in range(options.rounds * times)]
    text = json.dumps({"keras": keras.__version__, "tensorflow": tf.__version__, "seed": options.seed, "cases": cases}, separators=(",", ":"))
    options.out.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(cases)} cases, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()

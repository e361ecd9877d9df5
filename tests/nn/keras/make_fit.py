#!/usr/bin/env python3
"""Golden answers about fitting, made with real Keras 3: tests/train holds ours to them.

    KERAS_BACKEND=jax python3 make_fit.py [--seed N]      writes fit.json.gz beside this file; needs the packages keras and jax

`stopping` and `plateau`: the callbacks EarlyStopping and ReduceLROnPlateau with random settings, told random values of random sequences:
the epoch after which training stops (-1: never), the epoch whose weights are restored (-1: those at the end), and the learning rate after
each epoch. `curve`: Model.fit of a small net on 60 fixed batches, from given weights: the loss of each batch, and what each of 4 epochs
of 15 batches comes to.
"""

import argparse
import gzip
import json
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402
import numpy as np  # noqa: E402


def sequence(random):
    """Values of epochs: falling, with plateaus and steps back; some are no number, but none of the first that is looked at: Keras
    takes what is no number for the best where nothing is yet, and then nothing improves on it; we do not."""
    length = int(random.integers(1, 25))
    values = np.cumsum(random.choice([-0.5, -0.25, -0.125, 0.0, 0.0, 0.125, 0.25], size=length)) + random.choice([0.0, 1.0, 4.0])
    values = [float(value) for value in values]
    if length > 6 and random.random() < 0.3:
        values[int(random.integers(6, length))] = float("nan")
    return values


class Model:
    """What a callback sees of a model: its weights are the number of the epoch."""

    def __init__(self, rate):
        self.optimizer = keras.optimizers.SGD(rate)
        self.stop_training = False
        self.epoch = -1
        self.metrics = []

    def get_weights(self):
        return self.epoch

    def set_weights(self, epoch):
        self.epoch = epoch


def told(values):
    """JSON has no NaN."""
    return [None if value != value else value for value in values]


def stopping(random):
    settings = {"patience": int(random.integers(0, 5)), "min_delta": float(random.choice([0.0, 0.125, 0.25])),
                "greater": bool(random.random() < 0.4), "restores": bool(random.random() < 0.7), "from_epoch": int(random.choice([0, 0, 0, 2, 5])),
                "baseline": float(random.choice([-1.0, 0.0, 1.0])) if random.random() < 0.3 else None}
    values = sequence(random)
    callback = keras.callbacks.EarlyStopping(
        monitor="x", min_delta=settings["min_delta"], patience=settings["patience"], mode="max" if settings["greater"] else "min",
        baseline=settings["baseline"], restore_best_weights=settings["restores"], start_from_epoch=settings["from_epoch"])
    model = Model(0.5)
    callback.set_model(model)
    callback.on_train_begin()
    stopped = -1
    for epoch, value in enumerate(values):
        model.epoch = epoch
        callback.on_epoch_end(epoch, {"x": value})
        if model.stop_training:
            stopped = epoch
            break
    last = model.epoch
    model.epoch = -1
    callback.on_train_end()
    return settings | {"values": told(values), "stopped": stopped, "last": last, "restored": model.epoch}


def plateau(random):
    settings = {"patience": int(random.integers(1, 5)), "min_delta": float(random.choice([0.0, 0.125, 0.25])),
                "greater": bool(random.random() < 0.4), "factor": float(random.choice([0.5, 0.1, 0.3])), "cooldown": int(random.integers(0, 4)),
                "least_rate": float(random.choice([0.0, 0.01, 0.1])), "rate": float(random.choice([1.0, 0.1]))}
    values = sequence(random)
    callback = keras.callbacks.ReduceLROnPlateau(
        monitor="x", factor=settings["factor"], patience=settings["patience"], mode="max" if settings["greater"] else "min",
        min_delta=settings["min_delta"], cooldown=settings["cooldown"], min_lr=settings["least_rate"])
    model = Model(settings["rate"])
    callback.set_model(model)
    callback.on_train_begin()
    rates = []
    for epoch, value in enumerate(values):
        callback.on_epoch_end(epoch, {"x": value})
        rates.append(float(keras.ops.convert_to_numpy(model.optimizer.learning_rate)))
    return settings | {"values": told(values), "rates": rates}


def curve(random):
    """60 batches of 16, 4 epochs of 15: the same data in each epoch. The labels hang on the inputs."""
    rows, features, hidden, classes, batch = 15 * 16, 12, 10, 4, 16
    x = random.normal(size=(rows, features)).astype(np.float32)
    y = np.argmax(x @ random.normal(size=(features, classes)), axis=1).astype(np.int32)
    test_x = random.normal(size=(40, features)).astype(np.float32)
    test_y = random.integers(0, classes, size=40).astype(np.int32)
    model = keras.Sequential([keras.Input((features,)), keras.layers.Dense(hidden, activation="relu"), keras.layers.Dense(classes)])
    weights = [random.normal(scale=0.4, size=w.shape).astype(np.float32) for w in model.get_weights()]
    model.set_weights(weights)
    model.compile(keras.optimizers.Adam(0.01, epsilon=1e-8), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")])
    losses = []

    class Watch(keras.callbacks.Callback):
        """A batch's own loss, out of the running mean that Keras tells."""

        def on_epoch_begin(self, epoch, logs=None):
            self.sum = 0.0

        def on_train_batch_end(self, step, logs=None):
            losses.append(float(logs["loss"]) * (step + 1) - self.sum)
            self.sum = float(logs["loss"]) * (step + 1)

    history = model.fit(x, y, batch_size=batch, epochs=4, shuffle=False, verbose=0, validation_data=(test_x, test_y),
                        validation_batch_size=16, callbacks=[Watch()]).history
    flat = lambda array: {"shape": list(array.shape), "values": [float(value) for value in array.reshape(-1)]}  # noqa: E731
    whole = lambda array: {"shape": list(array.shape), "int": True, "values": [int(value) for value in array.reshape(-1)]}  # noqa: E731
    return {"x": flat(x), "y": whole(y), "test_x": flat(test_x), "test_y": whole(test_y), "weights": [flat(w) for w in weights],
            "losses": losses, "history": {name: [float(v) for v in values] for name, values in history.items()},
            "after": [flat(np.asarray(w)) for w in model.get_weights()]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=15)
    random = np.random.default_rng(parser.parse_args().seed)
    answers = {"keras": keras.__version__, "stopping": [stopping(random) for _ in range(300)],
               "plateau": [plateau(random) for _ in range(300)], "curve": curve(random)}
    text = json.dumps(answers, separators=(",", ":")).encode()
    path = pathlib.Path(__file__).resolve().parent / "fit.json.gz"
    path.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{path.name}: {len(text)} bytes; {sum(case['stopped'] >= 0 for case in answers['stopping'])} stopped")


if __name__ == "__main__":
    main()

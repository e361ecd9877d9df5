#!/usr/bin/env python3
"""Golden values of optimizers and schedules, made with real Keras (3, on TensorFlow) and TensorFlow: tests/nn/keras_optimizer_test.cc holds
ours to them.

    python3 make_optimizers.py [--seed N] [--rounds N]      writes optimizers.json.gz beside this file; needs the package tensorflow-cpu

Each case is an optimizer with random settings over some steps: variables, their gradients in each step, dense or rows (equal indices
among them), and what variables and slots are in the end. Dense ones are Keras' (but LARS, which Keras does not have), with decay, clipping,
averages and accumulation; rows are those of tf.compat.v1.train where the op for rows leaves others alone, and Keras' otherwise. Names of
settings are those of our structs, names of slots those of our variables. First values in which we follow TensorFlow are set to that.
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

v1 = tf.compat.v1.train
STEPS = 10
ADAM = ["beta1", "beta2"]
# Keras' attributes for our slots.
SLOTS = {
    "adam": {"Adam": "_momentums", "Adam_1": "_velocities"},
    "adam_w": {"Adam": "_momentums", "Adam_1": "_velocities"},
    "adagrad": {"Adagrad": "_accumulators"},
    "rms_prop": {"RMSProp": "_velocities"},
    "adadelta": {"Adadelta": "_accumulated_grads", "Adadelta_1": "_accumulated_delta_vars"},
    "adamax": {"Adamax": "_m", "Adamax_1": "_u"},
    "nadam": {"Nadam": "_momentums", "Nadam_1": "_velocities"},
    "ftrl": {"Ftrl": "_accumulators", "Ftrl_1": "_linears"},
    "lion": {"Lion": "_momentums"},
    "lamb": {"LAMB": "_momentums", "LAMB_1": "_velocities"},
}
# tf.compat.v1's names of slots.
V1_SLOTS = {
    "sgd": {},
    "momentum": {"Momentum": "momentum"},
    "adam": {"Adam": "m", "Adam_1": "v"},
    "adagrad": {"Adagrad": "accumulator"},
    "rms_prop": {"RMSProp": "rms", "RMSProp_1": "momentum"},
    "rms_prop_centered": {"RMSProp": "rms", "RMSProp_1": "mg", "RMSProp_2": "momentum"},
    "adadelta": {"Adadelta": "accum", "Adadelta_1": "accum_update"},
    "ftrl": {"Ftrl": "accum", "Ftrl_1": "linear"},
}
KINDS = ["sgd", "momentum", "adam", "adagrad", "rms_prop", "adam_w", "adadelta", "adamax", "nadam", "ftrl", "lion", "lamb", "lars", "adafactor"]


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def int(self, low, high):
        return int(self.random.integers(low, high + 1))

    def pick(self, *choices):
        return choices[self.int(0, len(choices) - 1)]

    def real(self, low, high):
        return float(np.float32(self.random.uniform(low, high)))

    def tensor(self, *shape):
        return self.random.normal(size=shape).astype(np.float32)


def plain(array):
    array = np.asarray(array, np.float32)
    return {"shape": list(array.shape), "values": [float(str(x)) for x in array.ravel()]}


def settings_of(draw, kind):
    s = {"kind": kind, "rate": draw.real(0.01, 0.2)}
    if kind in ("momentum", "lars"):
        s.update(momentum=draw.real(0.3, 0.95), nesterov=draw.pick(True, False))
    if kind in ("adam", "adam_w", "adamax", "nadam", "lamb", "lion"):
        s.update(beta1=draw.real(0.7, 0.95), beta2=draw.real(0.8, 0.99))
    if kind in ("adam", "adam_w"):
        s["amsgrad"] = draw.pick(True, False)
    if kind in ("adam", "adam_w", "rms_prop", "adadelta", "adamax", "nadam", "lamb"):
        s["epsilon"] = draw.pick(1e-7, 1e-3)
    if kind == "adam_w":
        s["weight_decay"] = draw.real(0.01, 0.3)
    if kind in ("rms_prop", "adadelta"):
        s["decay"] = draw.real(0.6, 0.95)
    if kind == "rms_prop":
        s.update(momentum=draw.pick(0.0, 0.6), centered=draw.pick(True, False))
    if kind in ("adagrad", "ftrl"):
        s["initial_accumulator"] = draw.real(0.1, 0.5)
    if kind == "ftrl":
        s.update(l1=draw.pick(0.0, 0.05), l2=draw.pick(0.0, 0.1), l2_shrinkage=draw.pick(0.0, 0.05), ftrl_beta=draw.pick(0.0, 0.3),
                 rate_power=draw.pick(-0.5, -0.7))
    if kind == "lars":
        s.update(trust=draw.real(0.01, 0.1), weight_decay=draw.pick(0.0, 0.05))
    if kind == "adafactor":
        s.update(decay=draw.real(-0.9, -0.5), epsilon=draw.pick(1e-30, 1e-4), epsilon2=draw.real(0.001, 0.1), clip_threshold=draw.pick(1.0, 0.5))
    return s


def add_surroundings(draw, s):
    """What Keras does around the rule, of dense gradients."""
    if s["kind"] == "adam_w" or draw.pick(True, False):
        s["weight_decay"] = draw.real(0.01, 0.3)
        s["undecayed_names"] = draw.pick([], ["v1"])
    s.update(draw.pick({}, {"clip_norm": 1.5}, {"clip_each_norm": 1.0}, {"clip_value": 0.7}))
    if draw.int(0, 2) == 0:
        s.update(use_ema=True, ema_momentum=draw.real(0.5, 0.95), ema_overwrite_every=draw.pick(0, 3))
    if draw.int(0, 2) == 0:
        s["accumulation_steps"] = draw.int(2, 4)


def keras_of(s):
    kind = s["kind"]
    common = {"learning_rate": s["rate"], "weight_decay": s.get("weight_decay"), "clipvalue": s.get("clip_value"), "clipnorm": s.get("clip_each_norm"),
              "global_clipnorm": s.get("clip_norm"), "use_ema": s.get("use_ema", False), "ema_momentum": s.get("ema_momentum", 0.99),
              "ema_overwrite_frequency": s.get("ema_overwrite_every") or None, "gradient_accumulation_steps": s.get("accumulation_steps")}
    betas = {"beta_1": s.get("beta1"), "beta_2": s.get("beta2")}
    k = keras.optimizers
    makers = {
        "sgd": lambda: k.SGD(**common),
        "momentum": lambda: k.SGD(momentum=s["momentum"], nesterov=s["nesterov"], **common),
        "adam": lambda: k.Adam(epsilon=s["epsilon"], amsgrad=s["amsgrad"], **betas, **common),
        "adam_w": lambda: k.AdamW(epsilon=s["epsilon"], amsgrad=s["amsgrad"], **betas, **common),
        "adagrad": lambda: k.Adagrad(initial_accumulator_value=s["initial_accumulator"], epsilon=0.0, **common),
        "rms_prop": lambda: k.RMSprop(rho=s["decay"], momentum=s["momentum"], epsilon=s["epsilon"], centered=s["centered"], **common),
        "adadelta": lambda: k.Adadelta(rho=s["decay"], epsilon=s["epsilon"], **common),
        "adamax": lambda: k.Adamax(epsilon=s["epsilon"], **betas, **common),
        "nadam": lambda: k.Nadam(epsilon=s["epsilon"], **betas, **common),
        "ftrl": lambda: k.Ftrl(learning_rate_power=s["rate_power"], initial_accumulator_value=s["initial_accumulator"],
                               l1_regularization_strength=s["l1"], l2_regularization_strength=s["l2"],
                               l2_shrinkage_regularization_strength=s["l2_shrinkage"], beta=s["ftrl_beta"], **common),
        "lion": lambda: k.Lion(**betas, **common),
        "lamb": lambda: k.Lamb(epsilon=s["epsilon"], **betas, **common),
        "adafactor": lambda: k.Adafactor(beta_2_decay=s["decay"], epsilon_1=s["epsilon"], epsilon_2=s["epsilon2"],
                                         clip_threshold=s["clip_threshold"], **common),
    }
    return makers[kind]()


def merged(gradient, shape):
    indices, where = np.unique(gradient["indices"], return_inverse=True)
    values = np.zeros((len(indices),) + tuple(shape[1:]), np.float32)
    for row, value in zip(where, gradient["values"]):
        values[row] += value
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant(shape))


def as_tf(gradient, shape):
    return merged(gradient, shape) if isinstance(gradient, dict) else tf.constant(gradient)


def run_keras(s, first, gradients):
    variables = [keras.Variable(value, name=f"v{i}") for i, value in enumerate(first)]
    optimizer = keras_of(s)
    if s.get("undecayed_names"):
        optimizer.exclude_from_weight_decay(var_names=s["undecayed_names"])
    optimizer.build(variables)
    if s["kind"] == "rms_prop":
        for velocity in optimizer._velocities:
            velocity.assign(np.ones(velocity.shape))
    for step in gradients:
        optimizer.apply([as_tf(g, v.shape) for g, v in zip(step, variables)])
    slots = {}
    for name, attribute in SLOTS.get(s["kind"], {}).items():
        for i, value in enumerate(getattr(optimizer, attribute)):
            slots[f"v{i}/{name}"] = value.numpy()
    if s.get("amsgrad"):
        slots.update({f"v{i}/Adam_2": value.numpy() for i, value in enumerate(optimizer._velocity_hats)})
    if s["kind"] == "adafactor":
        for i, value in enumerate(first):
            factored = value.ndim >= 2
            slots[f"v{i}/Adafactor"] = (optimizer._r if factored else optimizer._v)[i].numpy()
            if factored:
                slots[f"v{i}/Adafactor_1"] = optimizer._c[i].numpy()
    if s.get("use_ema"):
        averages = optimizer._model_variables_moving_average
        slots.update({f"v{i}/ExponentialMovingAverage": value.numpy() for i, value in enumerate(averages)})
    return [v.numpy() for v in variables], slots


def run_v1(s, first, gradients):
    kind = s["kind"]
    makers = {
        "sgd": lambda: v1.GradientDescentOptimizer(s["rate"]),
        "momentum": lambda: v1.MomentumOptimizer(s["rate"], s["momentum"], use_nesterov=s["nesterov"]),
        "adam": lambda: v1.AdamOptimizer(s["rate"], s["beta1"], s["beta2"], s["epsilon"]),
        "adagrad": lambda: v1.AdagradOptimizer(s["rate"], s["initial_accumulator"]),
        "rms_prop": lambda: v1.RMSPropOptimizer(s["rate"], s["decay"], s["momentum"], s["epsilon"], centered=s["centered"]),
        "adadelta": lambda: v1.AdadeltaOptimizer(s["rate"], s["decay"], s["epsilon"]),
        "ftrl": lambda: v1.FtrlOptimizer(s["rate"], s["rate_power"], s["initial_accumulator"], s["l1"], s["l2"],
                                         l2_shrinkage_regularization_strength=s["l2_shrinkage"], beta=s["ftrl_beta"]),
    }
    optimizer = makers[kind]()
    variables = [tf.Variable(value, name=f"v{i}") for i, value in enumerate(first)]
    for step in gradients:
        optimizer.apply_gradients([(as_tf(g, v.shape.as_list()), v) for g, v in zip(step, variables)])
    names = V1_SLOTS[kind + "_centered" if s.get("centered") else kind]
    slots = {f"v{i}/{ours}": optimizer.get_slot(v, theirs).numpy() for i, v in enumerate(variables) for ours, theirs in names.items()}
    return [v.numpy() for v in variables], slots


def run_lars(s, first, gradients):
    """tf.contrib.opt.LARSOptimizer, from TensorFlow's ops."""
    variables = [tf.Variable(value) for value in first]
    momenta = [tf.Variable(np.zeros_like(value)) for value in first]
    for step in gradients:
        for g, v, m in zip(step, variables, momenta):
            g = tf.convert_to_tensor(as_tf(g, v.shape.as_list()))
            w_norm, g_norm = tf.norm(v), tf.norm(g)
            ratio = s["trust"] * w_norm / (g_norm + s["weight_decay"] * w_norm)
            ratio = tf.where(w_norm > 0, tf.where(g_norm > 0, ratio, 1.0), 1.0)
            tf.raw_ops.ResourceApplyMomentum(var=v.handle, accum=m.handle, lr=s["rate"] * ratio, grad=g + s["weight_decay"] * v,
                                             momentum=tf.constant(s["momentum"]), use_nesterov=s["nesterov"])
    return [v.numpy() for v in variables], {f"v{i}/LARS": m.numpy() for i, m in enumerate(momenta)}


def gradient_of(draw, shape, rows):
    if not rows:
        return draw.tensor(*shape)
    count = draw.int(1, 4)
    return {"indices": [draw.int(0, shape[0] - 1) for _ in range(count)], "values": draw.tensor(count, *shape[1:])}


def as_json(gradient):
    if isinstance(gradient, dict):
        return {"indices": gradient["indices"], "values": plain(gradient["values"])}
    return plain(gradient)


def case(draw, kind, rows):
    s = settings_of(draw, kind)
    own_rows = rows and kind in V1_SLOTS and not s.get("amsgrad")
    if kind != "lars" and not rows:
        add_surroundings(draw, s)
    shapes = [[draw.int(2, 4), draw.int(1, 3)], [draw.int(2, 5)]]
    if draw.int(0, 3) == 0:
        shapes[0].insert(0, 2)
    first = [draw.tensor(*shape) for shape in shapes]
    gradients = [[gradient_of(draw, shape, rows) for shape in shapes] for _ in range(STEPS)]
    run = run_lars if kind == "lars" else run_v1 if own_rows else run_keras
    after, slots = run(s, first, gradients)
    return {"settings": s, "rows": rows, "first": [plain(v) for v in first], "gradients": [[as_json(g) for g in step] for step in gradients],
            "after": [plain(v) for v in after], "slots": {name: plain(value) for name, value in slots.items()}}


def schedule(draw, kind):
    k = keras.optimizers.schedules
    s = {"kind": kind, "rate": draw.real(0.01, 1.0), "steps": draw.int(3, 20)}
    if kind in ("exponential_decay", "inverse_time_decay"):
        s.update(decay_rate=draw.real(0.2, 0.95), staircase=draw.pick(True, False))
        made = (k.ExponentialDecay if kind == "exponential_decay" else k.InverseTimeDecay)(s["rate"], s["steps"], s["decay_rate"], s["staircase"])
    elif kind == "polynomial_decay":
        s.update(end_rate=draw.pick(0.0, 0.003), power=draw.pick(1.0, 0.5, 2.0), cycle=draw.pick(True, False))
        made = k.PolynomialDecay(s["rate"], s["steps"], s["end_rate"], s["power"], s["cycle"])
    elif kind == "cosine_decay":
        s.update(alpha=draw.pick(0.0, 0.2), warms_up=draw.pick(True, False), warmup_target=draw.real(0.5, 2), warmup_steps=draw.int(1, 8))
        made = k.CosineDecay(s["rate"], s["steps"], s["alpha"], warmup_target=s["warmup_target"] if s["warms_up"] else None,
                             warmup_steps=s["warmup_steps"])
    elif kind == "cosine_decay_restarts":
        s.update(t_mul=draw.pick(1.0, 1.5, 2.0), m_mul=draw.pick(1.0, 0.7), alpha=draw.pick(0.0, 0.1))
        made = k.CosineDecayRestarts(s["rate"], s["steps"], s["t_mul"], s["m_mul"], s["alpha"])
    else:
        bounds = sorted(draw.random.choice(np.arange(1, 40), draw.int(1, 3), replace=False).tolist())
        s.update(boundaries=bounds, values=[draw.real(0.01, 1) for _ in range(len(bounds) + 1)])
        made = k.PiecewiseConstantDecay(s["boundaries"], s["values"])
    at = sorted({0, 1, s["steps"] - 1, s["steps"] + 1, *(draw.int(0, 60) for _ in range(8)), 1000})
    return {"settings": s, "at": at, "rates": [float(str(np.float32(made(tf.constant(n, tf.int64)).numpy()))) for n in at]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "optimizers.json.gz")
    options = parser.parse_args()
    draw = Draw(options.seed)
    cases = []
    for kind in KINDS:
        for round in range(options.rounds):
            for rows in (False, True):
                cases.append(case(draw, kind, rows))
    kinds = ["exponential_decay", "inverse_time_decay", "polynomial_decay", "piecewise_constant", "cosine_decay", "cosine_decay_restarts"]
    schedules = [schedule(draw, kind) for kind in kinds for _ in range(options.rounds * 2)]
    made = {"keras": keras.__version__, "tensorflow": tf.__version__, "seed": options.seed, "cases": cases, "schedules": schedules}
    text = json.dumps(made, separators=(",", ":"))
    options.out.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(cases)} cases, {len(schedules)} schedules, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()

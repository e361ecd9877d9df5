"""The models of capi/examples/models as one writes them with TensorFlow and Keras, from the same first weights and batches.

    peer_tensorflow.py losses MODEL DIR       the losses of the batches in DIR, which `example_models MODEL --dump DIR N` wrote: JSON lists
    peer_tensorflow.py exact MODEL DIR        the same in float64, which tells rounding from mistakes
    peer_tensorflow.py speed MODEL DIR        for each number of seconds on a line of its input: steps per second on those batches

Layers are numbered as they come, by kind, as the library and Keras do: that is how weights are found. Optimizers are TensorFlow's own
(tf.compat.v1.train), whose first values and epsilons the library has.
"""

import json
import os
import pathlib
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras  # noqa: E402
import safetensors.numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

from keras import layers  # noqa: E402

v1 = tf.compat.v1.train


class Net:
    """Layers by name, made at the first call with the weights of the file."""

    def __init__(self, weights):
        self.weights, self.layers, self.counts, self.own = weights, {}, {}, {}

    def begin(self):
        self.counts = {}

    def name(self, kind):
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return f"{kind}_{number}" if number else kind

    def __call__(self, kind, make, *args, name=None, **settings):
        name = name or self.name(kind)
        if name not in self.layers:
            layer = make()
            layer(*args, **settings)
            prefix = layer.weights[0].path.split("/")[0]
            for weight in layer.weights:
                if "seed_generator" not in weight.path:  # the cell of a recurrent layer has a scope of its own in Keras
                    weight.assign(self.weights[name + weight.path[len(prefix):].replace(f"/{kind}_cell", "")])
            self.layers[name] = layer
        return self.layers[name](*args, **settings)

    def variable(self, name):
        if name not in self.own:
            self.own[name] = tf.Variable(self.weights[name], name=name)
        return self.own[name]

    def variables(self, choose=lambda name: True):
        found = [v for name, layer in self.layers.items() if choose(name) for v in layer.trainable_variables]
        # Keras wraps; TensorFlow's optimizers want what is inside.
        return [getattr(v, "value", v) for v in found] + [v for name, v in self.own.items() if choose(name)]

    # ---- short forms, as in work.c ----

    def conv(self, x, filters, kernel, stride=1, activation=None, padding="same"):
        return self("conv2d", lambda: layers.Conv2D(filters, kernel, stride, padding, activation=activation), x)

    def dense(self, x, units, activation=None):
        return self("dense", lambda: layers.Dense(units, activation), x)

    def batch_norm(self, x):
        return self("batch_normalization", lambda: layers.BatchNormalization(momentum=0.9), x, training=True)


def classes(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


class Model:
    """A loss, and what makes it less. Two of them where two networks take turns: `phases` gives (loss, variables, optimizer) of each."""

    # Share of the rate that trains best. Where rectifiers bend, float32 libraries part after a few steps at that, as far as TensorFlow itself
    # in float32 and in float64; slower they stay together for the steps that are compared. The same stands in the C program.
    calm = 0.1

    def __init__(self, weights):
        self.net = Net(weights)

    def trained(self, _phase):
        return self.net.variables()


class Lenet(Model):
    optimizers = [lambda calm: v1.MomentumOptimizer(0.02 * calm, 0.9)]

    def loss(self, batch, _phase):
        net = self.net
        x = tf.nn.max_pool2d(net.conv(batch["images"], 6, 5, activation="relu"), 2, 2, "VALID")
        x = tf.nn.max_pool2d(net.conv(x, 16, 5, activation="relu", padding="valid"), 2, 2, "VALID")
        x = net.dense(layers.Flatten()(x), 120, "relu")
        return classes(batch["labels"], net.dense(net.dense(x, 84, "relu"), 10))


class Resnet(Model):
    calm = 0.0005
    optimizers = [lambda calm: v1.MomentumOptimizer(0.01 * calm, 0.9)]

    def block(self, x, filters, stride):
        net = self.net
        y = tf.nn.relu(net.batch_norm(net.conv(x, filters, 3, stride)))
        y = net.batch_norm(net.conv(y, filters, 3))
        return tf.nn.relu((net.conv(x, filters, 1, stride) if stride > 1 else x) + y)

    def loss(self, batch, _phase):
        net = self.net
        x = tf.nn.relu(net.batch_norm(net.conv(batch["images"], 16, 3)))
        for stage in range(3):
            for k in range(3):
                x = self.block(x, 16 << stage, 2 if stage and k == 0 else 1)
        x = net.dense(tf.reduce_mean(x, [1, 2]), 10)
        kernels = [v for v in net.variables() if len(v.shape) > 1]
        return classes(batch["labels"], x) + 1e-4 * tf.add_n([tf.reduce_sum(v * v) for v in kernels])


class Mobilenet(Model):
    calm = 0.01
    optimizers = [lambda calm: v1.RMSPropOptimizer(0.001 * calm, 0.9, 0.9, 1e-8)]

    def block(self, x, filters, stride):
        net = self.net
        x = net("depthwise_conv2d", lambda: layers.DepthwiseConv2D(3, stride, "same", use_bias=False), x)
        x = net.conv(tf.nn.relu6(net.batch_norm(x)), filters, 1)
        return tf.nn.relu6(net.batch_norm(x))

    def loss(self, batch, _phase):
        net = self.net
        x = tf.nn.relu6(net.batch_norm(net.conv(batch["images"], 16, 3, 2)))
        for filters, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
            x = self.block(x, filters, stride)
        return classes(batch["labels"], net.dense(tf.reduce_mean(x, [1, 2]), 10))


class Unet(Model):
    optimizers = [lambda calm: v1.AdamOptimizer(0.002 * calm)]

    def twice(self, x, filters):
        return self.net.conv(self.net.conv(x, filters, 3, activation="relu"), filters, 3, activation="relu")

    def loss(self, batch, _phase):
        fine = self.twice(batch["images"], 8)
        coarse = self.twice(tf.nn.max_pool2d(fine, 2, 2, "VALID"), 16)
        x = self.twice(tf.nn.max_pool2d(coarse, 2, 2, "VALID"), 32)
        x = self.net("conv2d_transpose", lambda: layers.Conv2DTranspose(16, 2, 2, "same"), x)
        x = self.twice(tf.concat([coarse, x], 3), 16)
        x = layers.UpSampling2D(2, interpolation="bilinear")(x)
        x = self.twice(tf.concat([fine, x], 3), 8)
        return classes(tf.reshape(batch["labels"], [-1]), tf.reshape(self.net.conv(x, 3, 1), [-1, 3]))


class Vae(Model):
    optimizers = [lambda calm: v1.AdamOptimizer(0.002 * calm)]

    def loss(self, batch, _phase):
        net, x = self.net, batch["images"]
        y = net.dense(x, 128, "relu")
        mean, log_variance = net.dense(y, 8), net.dense(y, 8)
        y = mean + tf.exp(0.5 * log_variance) * batch["chance"]
        y = net.dense(net.dense(y, 128, "relu"), 256)
        cost = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(x, y), 1)
        far = -0.5 * tf.reduce_sum(1 + log_variance - mean * mean - tf.exp(log_variance), 1)
        return tf.reduce_mean(cost) + tf.reduce_mean(far)


class Gan(Model):
    optimizers = [lambda calm: v1.AdamOptimizer(0.001 * calm, beta1=0.5)] * 2

    def loss(self, batch, phase):
        net = self.net
        x = tf.reshape(net.dense(batch["chance"], 256, "elu"), [-1, 4, 4, 16])
        for filters, activation in ((8, "elu"), (1, "tanh")):
            x = net("conv2d_transpose", lambda f=filters, a=activation: layers.Conv2DTranspose(f, 4, 2, "same", activation=a), x)
        x = tf.concat([batch["images"], x], 0)
        x = net.conv(net.conv(x, 8, 4, 2, "elu"), 16, 4, 2, "elu")
        real, fake = tf.split(net.dense(layers.Flatten()(x), 1), 2)
        if phase:
            return tf.reduce_mean(tf.nn.softplus(-fake))
        return tf.reduce_mean(tf.nn.softplus(-real)) + tf.reduce_mean(tf.nn.softplus(fake))

    def trained(self, phase):
        painter = lambda name: name == "dense" or name.startswith("conv2d_transpose")  # noqa: E731
        return self.net.variables(painter if phase else lambda name: not painter(name))


class Word2vec(Model):
    optimizers = [lambda calm: v1.AdagradOptimizer(0.2 * calm)]
    calm = 1
    scope, sampled_loss = "nce", staticmethod(tf.nn.nce_loss)

    def loss(self, batch, _phase):
        table, weights, biases = (self.net.variable(name) for name in ("embedding/embeddings", f"{self.scope}/weights", f"{self.scope}/biases"))
        return tf.reduce_mean(self.sampled_loss(
            weights, biases, tf.cast(batch["context"], tf.int64)[:, None], tf.nn.embedding_lookup(table, batch["words"]), 20, 200,
            sampled_values=(batch["sampled"], batch["true_expected"], batch["sampled_expected"]), remove_accidental_hits=True))


class Word2vecSoftmax(Word2vec):
    scope, sampled_loss = "sampled_softmax", staticmethod(tf.nn.sampled_softmax_loss)


class Lstm(Model):
    optimizers = [lambda calm: v1.AdamOptimizer(0.005 * calm)]
    calm = 1
    kind, layer = "lstm", layers.LSTM

    def loss(self, batch, _phase):
        net = self.net
        x = net("embedding", lambda: layers.Embedding(29, 16), batch["letters"])
        mask = tf.sequence_mask(batch["lengths"], 48)
        x = net.dense(net(self.kind, lambda: self.layer(64, return_sequences=True), x, mask=mask), 29)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["next"], x)
        return tf.reduce_sum(each * batch["mask"]) / tf.reduce_sum(batch["mask"])


class Gru(Lstm):
    kind, layer = "gru", layers.GRU


class Transformer(Model):
    optimizers = [lambda calm: v1.AdamOptimizer(0.003 * calm)]

    def embed(self, x):
        net = self.net
        x = net("embedding", lambda: layers.Embedding(12, 32), x)
        return x + net("embedding", lambda: layers.Embedding(8, 32), tf.range(8))

    def norm(self, x):
        return self.net("layer_normalization", layers.LayerNormalization, x)

    def attend(self, x, value=None, lengths=None, causal=False):
        y = self.norm(x)
        mask = None if lengths is None else tf.sequence_mask(lengths, 8)[:, None, :]
        make = lambda: layers.MultiHeadAttention(2, 16)  # noqa: E731
        return x + self.net("multi_head_attention", make, y, y if value is None else value, attention_mask=mask, use_causal_mask=causal)

    def think(self, x):
        return x + self.net.dense(self.net.dense(self.norm(x), 64, "gelu"), 32)

    def loss(self, batch, _phase):
        lengths = batch["lengths"]
        x = self.norm(self.think(self.attend(self.embed(batch["source"]), lengths=lengths)))
        y = self.attend(self.embed(batch["written"]), causal=True)
        y = self.norm(self.think(self.attend(y, x, lengths)))
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["next"], self.net.dense(y, 12))
        return tf.reduce_sum(each * batch["mask"]) / tf.reduce_sum(batch["mask"])


class WideDeep(Model):
    calm = 1
    optimizers = [lambda calm: v1.FtrlOptimizer(0.1 * calm, l1_regularization_strength=0.001), lambda calm: v1.AdagradOptimizer(0.05 * calm)]

    def loss(self, batch, _phase):
        net = self.net
        if not hasattr(self, "table"):
            keys = tf.lookup.KeyValueTensorInitializer([str(k) for k in range(5)], tf.range(5, dtype=tf.int64))
            self.table = tf.lookup.StaticHashTable(keys, 5)
        site = tf.strings.to_hash_bucket_fast(tf.strings.as_string(batch["site"]), 50)
        kind = self.table.lookup(tf.strings.as_string(batch["kind"]))
        rows = [tf.nn.embedding_lookup(net.variable("embedding" + end + "/embeddings"), ids)
                for end, ids in (("", site), ("_1", kind), ("_2", site), ("_3", kind))]
        x = net.dense(net.dense(tf.concat([batch["numbers"], *rows[2:]], 1), 32, "relu"), 16, "relu")
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(batch["clicks"], net.dense(x, 1) + rows[0] + rows[1]))

    def trained(self, phase):
        wide = ("embedding/embeddings", "embedding_1/embeddings")
        return self.net.variables(lambda name: (name in wide) == (phase == 0))


class Dlrm(Model):
    calm = 1
    optimizers = [lambda calm: v1.AdagradOptimizer(0.1 * calm)]

    def loss(self, batch, _phase):
        net = self.net
        x = net.dense(net.dense(batch["numbers"], 16, "relu"), 8, "relu")
        tables = [net.variable("embedding" + end + "/embeddings") for end in ("", "_1", "_2")]
        bags = [tf.reduce_mean(tf.nn.embedding_lookup(table, batch[f"bag_{k}"]), 1) for k, table in enumerate(tables)]
        vectors = tf.stack([x, *bags], 1)
        products = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), [-1, 16])
        x = tf.concat([x, tf.gather(products, [1, 2, 3, 6, 7, 11], axis=1)], 1)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(batch["clicks"], net.dense(net.dense(x, 16, "relu"), 1)))


class Policy(Model):
    calm = 1
    optimizers = [lambda calm: v1.AdamOptimizer(0.01 * calm)]

    def loss(self, batch, _phase):
        x = self.net.dense(self.net.dense(batch["states"], 16, "tanh"), 2)
        return tf.reduce_mean(batch["advantages"] * tf.nn.sparse_softmax_cross_entropy_with_logits(batch["actions"], x))


MODELS = {"lenet": Lenet, "resnet": Resnet, "mobilenet": Mobilenet, "unet": Unet, "vae": Vae, "gan": Gan, "word2vec": Word2vec,
          "word2vec_softmax": Word2vecSoftmax, "lstm": Lstm, "gru": Gru, "transformer": Transformer, "wide_deep": WideDeep, "dlrm": Dlrm,
          "policy": Policy}


def load(path):
    """What is in a file; numbers have the precision of the run."""
    return {key: value.astype(keras.config.floatx()) if value.dtype == "float32" else value for key, value in safetensors.numpy.load_file(path).items()}


def prepare(name, folder, calm=True):
    """The step of a model as a function of its batch, and the batches."""
    folder = pathlib.Path(folder)
    model = MODELS[name](load(folder / "weights.safetensors"))
    batches = [{key: tf.constant(value) for key, value in load(path).items()} for path in sorted(folder.glob("batch_*"))]
    optimizers = [make(model.calm if calm else 1) for make in model.optimizers]
    for phase in range(len(optimizers)):
        model.net.begin()
        model.loss(batches[0], phase)

    def one(batch, phase):
        with tf.GradientTape() as tape:
            model.net.begin()
            loss = model.loss(batch, phase)
        variables = model.trained(phase)
        gradients = tape.gradient(loss, variables)
        optimizers[phase].apply_gradients([pair for pair in zip(gradients, variables) if pair[0] is not None])
        return loss

    phases = [tf.function(lambda batch, phase=phase: one(batch, phase)) for phase in range(len(optimizers))]
    return lambda batch: [phase(batch) for phase in phases], batches


def main():
    tf.config.threading.set_intra_op_parallelism_threads(2)
    what, name, folder = sys.argv[1:4]
    if what == "exact":
        keras.config.set_floatx("float64")
    step, batches = prepare(name, folder, what != "speed")
    if what != "speed":
        for batch in batches:
            print(json.dumps([float(f"{float(loss):.9g}") for loss in step(batch)]), flush=True)
        return
    step(batches[0])
    for line in sys.stdin:
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < float(line):
            for loss in step(batches[done % len(batches)]):
                float(loss)
            done += 1
        print(done / (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    main()

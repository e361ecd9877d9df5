"""TensorFlow: a v1 session with prepared callables, tf.function, XLA. `tf_peer.py THREADS [NAME]` as bench_ours; oneDNN is
switched by TF_ENABLE_ONEDNN_OPTS in the environment."""

import os
import sys

THREADS = int(sys.argv[1])
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import serve  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(1)


def session_config():
    config = v1.ConfigProto(intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=1)
    return config


def v1_add():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [])
        y = x + 1.0
        session = v1.Session(graph=graph, config=session_config())
        call = session.make_callable(y, feed_list=[x])
    one = np.float32(1)
    return lambda: call(one), 1


def v1_chain():
    graph = tf.Graph()
    with graph.as_default():
        x, step = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
        y = x
        for _ in range(1000):
            y = y + step
        config = session_config()
        rewrite = config.graph_options.rewrite_options
        rewrite.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        session = v1.Session(graph=graph, config=config)
        call = session.make_callable(y, feed_list=[x, step])
    one = np.float32(1)
    return lambda: call(one, one), 1000


class Model:
    """The variables of a network, made once; `loss` applies them."""

    def __init__(self, image, width, hidden, layers, classes):
        self.image = image
        self.parts = []
        if image:
            self.parts += [self.variables([5, 5, 1, 32]), self.variables([5, 5, 32, 64])]
            width = 7 * 7 * 64
        for _ in range(layers):
            self.parts.append(self.variables([width, hidden]))
            width = hidden
        self.parts.append(self.variables([width, classes]))

    @staticmethod
    def variables(shape):
        rng = np.random.default_rng(1)
        kernel = (rng.random(shape, np.float32) - 0.5) * 0.1
        return tf.Variable(kernel), tf.Variable(np.zeros(shape[-1:], np.float32))

    def trainable(self):
        return [variable for pair in self.parts for variable in pair]

    def loss(self, x, labels):
        for i, (kernel, bias) in enumerate(self.parts):
            if kernel.shape.rank == 4:
                x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias)), 2, 2, "VALID")
                continue
            if x.shape.rank == 4:
                x = tf.reshape(x, [x.shape[0], -1])
            x = tf.nn.bias_add(tf.matmul(x, kernel), bias)
            if i + 1 < len(self.parts):
                x = tf.nn.relu(x)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))


SIZES = {"tiny": (4, False, 8, 8, 1, 2), "mlp": (128, False, 784, 512, 2, 10), "lenet": (128, True, 0, 1024, 1, 10)}


def data(name):
    batch, image, width, _, _, classes = SIZES[name]
    shape = (batch, 28, 28, 1) if image else (batch, width)
    return np.random.default_rng(2).random(shape, np.float32), np.arange(batch, dtype=np.int64) * 7 % classes


def v1_training(name):
    x, labels = data(name)
    graph = tf.Graph()
    with graph.as_default():
        v1.enable_resource_variables()
        model = Model(*SIZES[name][1:])
        fed = v1.placeholder(tf.float32, x.shape), v1.placeholder(tf.int64, labels.shape)
        loss = model.loss(*fed)
        gradients = v1.gradients(loss, model.trainable())
        updates = [v1.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=0.01, delta=g)
                   for v, g in zip(model.trainable(), gradients)]
        session = v1.Session(graph=graph, config=session_config())
        session.run(v1.global_variables_initializer())
        with tf.control_dependencies(updates):
            done = tf.no_op()
        call = session.make_callable([loss, done], feed_list=list(fed))
    return lambda: call(x, labels), 1


def function_training(name, xla):
    x, labels = (tf.constant(each) for each in data(name))
    model = Model(*SIZES[name][1:])

    @tf.function(jit_compile=xla)
    def step(x, labels):
        with tf.GradientTape() as tape:
            loss = model.loss(x, labels)
        for variable, gradient in zip(model.trainable(), tape.gradient(loss, model.trainable())):
            variable.assign_sub(0.01 * gradient)
        return loss

    concrete = step.get_concrete_function(x, labels)
    return lambda: concrete(x, labels).numpy(), 1


MAKERS = {"call": v1_add, "call_new": v1_add, "chain": v1_chain}
for each in SIZES:
    MAKERS[each] = lambda name=each: v1_training(name)
    MAKERS[each + ":function"] = lambda name=each: function_training(name, False)
    MAKERS[each + ":xla"] = lambda name=each: function_training(name, True)

if len(sys.argv) > 2:
    MAKERS[sys.argv[2]]()[0]()
    print("ready", flush=True)
    os._exit(0)
serve.Peer(MAKERS).serve()

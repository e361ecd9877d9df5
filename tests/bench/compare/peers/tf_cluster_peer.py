"""TensorFlow's v1 Server: grpc between processes. What is asked of it and by whom is as in ours_cluster.c.

    tf_cluster_peer.py serve CLUSTER THREADS             the first parameter server, until the end of its input
    tf_cluster_peer.py client CLUSTER THREADS            answers requests as in serve.py
    tf_cluster_peer.py start CLUSTER THREADS JOB TASK    one task of a cluster; a worker makes one synchronous step

CLUSTER is "ps=HOST:PORT;worker=HOST:PORT,...". THREADS 0 leaves the choice to TensorFlow."""

import os
import sys

MODE, CLUSTER, THREADS = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["GRPC_VERBOSITY"] = "NONE"

import threading  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
import serve  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.enable_resource_variables()
JOBS = {job: tasks.split(",") for job, tasks in (part.split("=") for part in CLUSTER.split(";"))}
PS, HERE = "/job:ps/task:0", "/job:worker/task:%d"
BATCH, PIXELS, HIDDEN, CLASSES, WORKERS = 128, 784, 512, 10, 2


def config():
    return v1.ConfigProto(intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=THREADS)


def server(job, task):
    return v1.train.Server(v1.train.ClusterSpec(JOBS), job_name=job, task_index=task, config=config())


class Worker:
    """The worker's own server in this process, made with the first workload."""

    made = None

    @classmethod
    def target(cls):
        cls.made = cls.made or server("worker", 0)
        return cls.made.target


def session_at(form, graph):
    """":direct" asks the parameter server itself, other forms go through a worker's server in this process."""
    target = "grpc://" + JOBS["ps"][0] if form == "direct" else Worker.target()
    return v1.Session(target, graph=graph, config=config())


def count(form):
    graph = tf.Graph()
    with graph.as_default(), v1.device(PS):
        variable = v1.get_variable("count", [], tf.float32, v1.zeros_initializer())
        more = variable.assign_add(1.0, read_value=False)
        session = session_at(form, graph)
        session.run(variable.initializer)
        return session.make_callable(more), 1


def pull(form, megabytes):
    """The value in this process: as a numpy array, or (":device") on the worker's device, which saves TensorFlow a copy."""
    graph = tf.Graph()
    with graph.as_default():
        with v1.device(PS):
            variable = v1.get_variable(f"pull{megabytes}", [megabytes << 18], tf.float32, v1.ones_initializer())
        session = session_at(form, graph)
        session.run(variable.initializer)
        if form != "device":
            return session.make_callable(variable.read_value()), 1
        with v1.device(PS):
            value = variable.read_value()
        with v1.device(HERE % 0):
            return session.make_callable(tf.identity(value).op), 1


def push(form, megabytes):
    """A value of this process becomes the variable's: fed, or (":device") from a variable of the worker."""
    graph = tf.Graph()
    with graph.as_default():
        shape, ones = [megabytes << 18], v1.ones_initializer()
        with v1.device(PS):
            variable = v1.get_variable(f"push{megabytes}", shape, tf.float32, ones)
        with v1.device(HERE % 0 if form == "device" else PS):
            if form == "device":
                source = v1.get_variable(f"source{megabytes}", shape, tf.float32, ones)
                value = source.read_value()
            else:
                source = value = v1.placeholder(tf.float32, shape)
        with v1.device(PS):
            assign = variable.assign(value, read_value=False)
        session = session_at(form, graph)
        session.run(v1.global_variables_initializer())
        if form == "device":
            return session.make_callable(assign), 1
        call, fed = session.make_callable(assign, feed_list=[source]), np.ones(shape, np.float32)
        return lambda: call(fed), 1


# ---- training ----------------------------------------------------------------------------------------------------------------

def network(worker):
    """Variables on the parameter server, everything else on this worker."""
    with v1.device(v1.train.replica_device_setter(ps_tasks=1, worker_device=HERE % worker)):
        fed = v1.placeholder(tf.float32, [BATCH, PIXELS]), v1.placeholder(tf.int64, [BATCH])
        x, width = fed[0], PIXELS
        for i, units in enumerate((HIDDEN, HIDDEN, CLASSES)):
            kernel = v1.get_variable(f"kernel{i}", [width, units], tf.float32, v1.glorot_uniform_initializer())
            bias = v1.get_variable(f"bias{i}", [units], tf.float32, v1.zeros_initializer())
            x, width = tf.nn.bias_add(tf.matmul(x, kernel), bias), units
            x = tf.nn.relu(x) if units == HIDDEN else x
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=fed[1], logits=x))
        return fed, loss, v1.train.get_or_create_global_step()


def batch():
    return np.full([BATCH, PIXELS], 0.5, np.float32), np.arange(BATCH, dtype=np.int64) * 7 % CLASSES


def training(_form):
    graph = tf.Graph()
    with graph.as_default():
        fed, loss, step = network(0)
        train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, step)
        session = session_at("", graph)
        session.run(v1.global_variables_initializer())
        call, data = session.make_callable([loss, train], feed_list=list(fed)), batch()
        return lambda: call(*data), 1


def synchronous_step(target, worker):
    """SyncReplicasOptimizer by hand: MonitoredTrainingSession would look for the chief every 30 seconds only."""
    fed, loss, step = network(worker)
    optimizer = v1.train.SyncReplicasOptimizer(v1.train.GradientDescentOptimizer(0.01), WORKERS, total_num_replicas=WORKERS)
    train = optimizer.apply_gradients(optimizer.compute_gradients(loss), step)
    tokens = optimizer.get_init_tokens_op() if worker == 0 else None
    init, missing = v1.global_variables_initializer(), v1.report_uninitialized_variables(v1.global_variables())
    narrow = config()
    narrow.device_filters.extend(["/job:ps", HERE % worker])
    session = v1.Session(target, config=narrow)
    if worker == 0:
        session.run(init)
        session.run(optimizer.chief_init_op)
        updates = optimizer.get_chief_queue_runner().create_threads(session, daemon=True, start=True)
        session.run(tokens)
        assert updates
    else:
        while len(session.run(missing)):
            time.sleep(0.005)
        session.run(optimizer.local_step_init_op)
    session.run([loss, train], dict(zip(fed, batch())))


def start(job, task):
    print("loaded", flush=True)
    sys.stdin.readline()
    running = server(job, task)
    if job == "worker":
        synchronous_step(running.target, task)
        print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


class Makers(dict):
    """"count:1:direct", "pull:64:device", "mlp:1"."""

    KINDS = {"count": lambda _number, form: count(form), "pull": lambda number, form: pull(form, number),
             "push": lambda number, form: push(form, number), "mlp": lambda _number, form: training(form)}

    def __missing__(self, request):
        kind, number, form = (request + "::").split(":")[:3]
        return lambda: self.KINDS[kind](int(number), form)


if MODE == "start":
    start(sys.argv[4], int(sys.argv[5]))
elif MODE == "serve":
    running = server("ps", 0)
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()
    running.join()
else:
    serve.Peer(Makers()).serve()
    os._exit(0)

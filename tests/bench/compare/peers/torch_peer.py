"""PyTorch: eager, and compiled where that works. `torch_peer.py THREADS [NAME]` as bench_ours."""

import os
import sys

THREADS = int(sys.argv[1])
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(THREADS)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import serve  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(THREADS)
torch.manual_seed(1)
nn = torch.nn


def eager_add():
    a, b = torch.ones(()), torch.ones(())
    return lambda: a + b, 1


def in_place_add():
    a, b = torch.ones(()), torch.ones(())

    def chain():
        for _ in range(1000):
            a.add_(b)

    return chain, 1000


def add_and_differentiate():
    x, step, seed = torch.ones(()), torch.ones((), requires_grad=True), torch.ones(())

    def chain():
        step.grad = None
        y = x
        for _ in range(1000):
            y = y + step
        y.backward(seed)
        return step.grad

    return chain, 1000


def add_into():
    a, b, c = torch.ones(()), torch.ones(()), torch.ones(())
    return lambda: torch.add(a, b, out=c), 1


def mlp(width, hidden, layers, classes):
    parts, last = [], width
    for _ in range(layers):
        parts += [nn.Linear(last, hidden), nn.ReLU()]
        last = hidden
    return nn.Sequential(*parts, nn.Linear(last, classes))


def lenet(channels_last):
    net = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(), nn.Linear(1024, 10))
    return net.to(memory_format=torch.channels_last) if channels_last else net


def training(net, x, classes, compiled=False):
    labels = torch.arange(x.shape[0]) * 7 % classes
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, foreach=False)
    forward = torch.compile(net) if compiled else net

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(forward(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, 1


def images(channels_last):
    x = torch.rand(128, 1, 28, 28)
    return x.to(memory_format=torch.channels_last) if channels_last else x


PEER = serve.Peer({
    "call_new": eager_add,
    "call": add_into,
    "chain": in_place_add,
    "chain_gradient": add_and_differentiate,
    "tiny": lambda: training(mlp(8, 8, 1, 2), torch.rand(4, 8), 2),
    "mlp": lambda: training(mlp(784, 512, 2, 10), torch.rand(128, 784), 10),
    "mlp:compiled": lambda: training(mlp(784, 512, 2, 10), torch.rand(128, 784), 10, compiled=True),
    "lenet": lambda: training(lenet(False), images(False), 10),
    "lenet:channels_last": lambda: training(lenet(True), images(True), 10),
})

if len(sys.argv) > 2:
    PEER.makers[sys.argv[2]]()[0]()
    print("ready", flush=True)
    os._exit(0)
PEER.serve()

"""PyTorch's collectives over gloo: one rank. `gloo_peer.py PORT SIZE RANK`; answers as in ranks.h.

Workloads: "reduce:BYTES"; "mlp:BATCH", DistributedDataParallel with so many rows here, and "mlp_one_bucket:BATCH", the same with all
gradients in one bucket."""

import os
import sys
import time

PORT, SIZE, RANK = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(1)
nn = torch.nn


def reduction(count):
    values = torch.zeros(count // 4)
    return lambda: dist.all_reduce(values)


def training(batch, **options):
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    net = nn.parallel.DistributedDataParallel(net, **options)
    x, labels = torch.full((batch, 784), 0.5), torch.arange(batch) * 7 % 10
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, foreach=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(x), labels).backward()
        optimizer.step()

    return step


MAKERS = {"reduce": reduction, "mlp": training,
          "mlp_one_bucket": lambda batch: training(batch, bucket_cap_mb=100, gradient_as_bucket_view=True)}


def main():
    answers, sys.stdout = sys.stdout, sys.stderr
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{PORT}", rank=RANK, world_size=SIZE)
    print("ready", file=answers, flush=True)
    made = {}
    for line in sys.stdin:
        name, steps = line.split()
        if name not in made:
            what, number = name.split(":")
            made[name] = MAKERS[what](int(number))
            for _ in range(3):
                made[name]()
        call, steps = made[name], int(steps)
        dist.barrier()
        start, used = time.perf_counter(), time.process_time()
        for _ in range(steps):
            call()
        end = (time.perf_counter() - start) / steps
        print(f"{end:.4e} {(time.process_time() - used) / steps:.4e}", file=answers, flush=True)


main()

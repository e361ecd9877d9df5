"""The models of capi/examples/models as one writes them with PyTorch, from the same first weights and batches.

    peer_pytorch.py losses MODEL DIR              the losses of the batches in DIR, which `example_models MODEL --dump DIR N` wrote: JSON lists
    peer_pytorch.py speed MODEL DIR               for each number of seconds on a line of its input: steps per second on those batches
    peer_pytorch.py check EXAMPLE_MODELS [MODEL]  the first 20 losses of all models, or of these, against TensorFlow's in losses.json

Weights have PyTorch's layouts, images and kernels channels_last: faster for resnet and mobilenet, the same within noise elsewhere. What PyTorch
does best was tried per model on two busy processors:

- The whole step (loss, gradients, update) of the small models is one program of torch.compile, which makes them two to four times as fast (gan
  by a quarter) and takes ten seconds to a minute each the first time. It makes lenet a tenth and mobilenet a fifth faster on one thread, for
  a minute of compiling; resnet and lstm were given up after two to three minutes. The convolutional ones are not compiled. lstm and gru would
  be unrolled over time; PyTorch's own recurrent kernels serve.
- Updates are _foreach functions. The fused optimizers of torch.optim are no faster beside these networks, and their formulas are others.
- What is compiled has one thread: its parallel loops are too short. For the rest one thread and all processors' are tried before the first turn,
  and the faster stays.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import safetensors.torch
import torch

from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
CHECKED, TOLERANCE = 20, 1e-3


# ---- optimizers: TensorFlow's formulas, over all variables at once ----


class Momentum:
    def __init__(self, rate, momentum):
        self.rate, self.momentum = rate, momentum

    def begin(self, variables):
        self.before = [torch.zeros_like(v) for v in variables]

    def update(self, variables, gradients):
        torch._foreach_mul_(self.before, self.momentum)
        torch._foreach_add_(self.before, gradients)
        torch._foreach_add_(variables, self.before, alpha=-self.rate)


class RmsProp:
    """The mean of squares begins at one, and epsilon stands under the root."""

    def __init__(self, rate, decay, momentum, epsilon):
        self.rate, self.decay, self.momentum, self.epsilon = rate, decay, momentum, epsilon

    def begin(self, variables):
        self.squares, self.before = [torch.ones_like(v) for v in variables], [torch.zeros_like(v) for v in variables]

    def update(self, variables, gradients):
        torch._foreach_mul_(self.squares, self.decay)
        torch._foreach_addcmul_(self.squares, gradients, gradients, 1 - self.decay)
        roots = torch._foreach_add(self.squares, self.epsilon)
        torch._foreach_sqrt_(roots)
        torch._foreach_mul_(self.before, self.momentum)
        torch._foreach_addcdiv_(self.before, gradients, roots, self.rate)
        torch._foreach_sub_(variables, self.before)


class Adam:
    """Epsilon is added to the root before the bias is corrected."""

    def __init__(self, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon

    def begin(self, variables):
        self.means, self.squares = [torch.zeros_like(v) for v in variables], [torch.zeros_like(v) for v in variables]
        self.powers = torch.ones(2)
        self.betas = torch.tensor([self.beta1, self.beta2])

    def update(self, variables, gradients):
        self.powers.mul_(self.betas)
        rate = -self.rate * (1 - self.powers[1]).sqrt() / (1 - self.powers[0])
        torch._foreach_lerp_(self.means, gradients, 1 - self.beta1)
        torch._foreach_mul_(self.squares, self.beta2)
        torch._foreach_addcmul_(self.squares, gradients, gradients, 1 - self.beta2)
        roots = torch._foreach_sqrt(self.squares)
        torch._foreach_add_(roots, self.epsilon)
        steps = torch._foreach_div(self.means, roots)
        torch._foreach_mul_(steps, rate)
        torch._foreach_add_(variables, steps)


class Adagrad:
    """Without epsilon; sums begin at 0.1."""

    def __init__(self, rate):
        self.rate = rate

    def begin(self, variables):
        self.sums = [torch.full_like(v, 0.1) for v in variables]

    def update(self, variables, gradients):
        torch._foreach_addcmul_(self.sums, gradients, gradients)
        torch._foreach_addcdiv_(variables, gradients, torch._foreach_sqrt(self.sums), -self.rate)


class Ftrl:
    """Of tables: a row that no gradient reaches stays as it is, as with TensorFlow's gradients of rows."""

    def __init__(self, rate, l1):
        self.rate, self.l1 = rate, l1

    def begin(self, variables):
        self.sums, self.linear = [torch.full_like(v, 0.1) for v in variables], [torch.zeros_like(v) for v in variables]

    def update(self, variables, gradients):
        for v, g, total, linear in zip(variables, gradients, self.sums, self.linear):
            before = total.sqrt()
            total.addcmul_(g, g)
            root = total.sqrt()
            linear.add_(g - (root - before) / self.rate * v)
            fresh = (linear.clamp(-self.l1, self.l1) - linear) * self.rate / root
            v.copy_(torch.where(g != 0, fresh, v))


# ---- layers, numbered as they come, by kind, as the library and Keras do: that is how weights are found ----


class Net:
    def __init__(self, weights):
        self.weights, self.counts = weights, {}

    def name(self, kind):
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return f"{kind}_{number}/" if number else f"{kind}/"

    def named(self, kind, *parts):
        name = self.name(kind)
        return [self.weights[name + part] for part in parts]

    def conv(self, x, stride=1, padding="same"):
        kernel, bias = self.named("conv2d", "kernel", "bias")
        return convolve(x, kernel, bias, stride, padding)

    def depthwise(self, x, stride):
        kernel, = self.named("depthwise_conv2d", "kernel")
        return convolve(x, kernel, None, stride, "same", x.shape[1])

    def conv_transpose(self, x, padding):
        kernel, bias = self.named("conv2d_transpose", "kernel", "bias")
        return F.conv_transpose2d(x, kernel, bias, 2, padding)

    def dense(self, x):
        return F.linear(x, *self.named("dense", "kernel", "bias"))

    def embedding(self, x):
        return F.embedding(x, *self.named("embedding", "embeddings"))

    def batch_norm(self, x):
        gamma, beta, mean, variance = self.named("batch_normalization", "gamma", "beta", "moving_mean", "moving_variance")
        return F.batch_norm(x, mean, variance, gamma, beta, True, 0.1, 1e-3)

    def layer_norm(self, x):
        gamma, beta = self.named("layer_normalization", "gamma", "beta")
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-3)


def convolve(x, kernel, bias, stride, padding, groups=1):
    """With padding "same": where there is a stride, what is odd of it stands at the end, as in TensorFlow."""
    if stride == 1:
        return F.conv2d(x, kernel, bias, 1, padding, groups=groups)
    around = [max((-(-n // stride) - 1) * stride + k - n, 0) for n, k in zip(x.shape[2:], kernel.shape[2:])]
    if all(each % 2 == 0 for each in around):
        return F.conv2d(x, kernel, bias, stride, [each // 2 for each in around], groups=groups)
    x = F.pad(x, [part for each in reversed(around) for part in (each // 2, each - each // 2)])
    return F.conv2d(x, kernel, bias, stride, groups=groups)


def torch_layout(name, value):
    kind, part = name.split("/")[0].rstrip("_0123456789"), name.split("/")[-1]
    if kind == "gru":  # Keras has the gates z, r, h; PyTorch r, z, n
        z, r, h = value.chunk(3, -1)
        value = torch.cat([r, z, h], -1)
    if value.dim() == 4:
        order = {"conv2d": (3, 2, 0, 1), "depthwise_conv2d": (2, 3, 0, 1), "conv2d_transpose": (3, 2, 0, 1)}[kind]
        return value.permute(order).clone(memory_format=torch.channels_last)
    if kind == "multi_head_attention":
        ahead = name.split("/")[1] != "attention_output"
        value = value.flatten(1) if part == "kernel" and ahead else value.flatten(0, 1) if part == "kernel" else value.flatten()
    return value.t().contiguous() if part in ("kernel", "recurrent_kernel") else value.clone()


def classes(labels, logits, weights=None):
    if weights is None:
        return F.cross_entropy(logits, labels)
    each = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
    return each.dot(weights.flatten()) / weights.sum()


def guess(clicks, logits):
    return F.binary_cross_entropy_with_logits(logits, clicks)


# ---- the models ----


class Model:
    """A loss of the layers and a batch, and what makes it less: an optimizer, or two that take turns, each with the variables it has."""

    calm = 0.1  # as in peer_tensorflow.py
    compiled = True

    def prepare(self, batch):
        """What a data loader would do with a batch."""
        return batch

    def trained(self, _phase, _name):
        return True


class Images(Model):
    def prepare(self, batch):
        return {**batch, "images": batch["images"].permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)}


def flat(x):
    """In the order of channels last."""
    return x.permute(0, 2, 3, 1).flatten(1)


class Lenet(Images):
    compiled = False
    optimizers = [lambda calm: Momentum(0.02 * calm, 0.9)]

    def loss(self, net, batch, _phase):
        x = F.max_pool2d(F.relu(net.conv(batch["images"])), 2)
        x = F.max_pool2d(F.relu(net.conv(x, padding="valid")), 2)
        x = F.relu(net.dense(F.relu(net.dense(flat(x)))))
        return classes(batch["labels"], net.dense(x))


class Resnet(Images):
    compiled = False
    calm = 0.0005
    optimizers = [lambda calm: Momentum(0.01 * calm, 0.9)]

    def block(self, net, x, stride):
        y = F.relu(net.batch_norm(net.conv(x, stride)))
        y = net.batch_norm(net.conv(y))
        return F.relu((net.conv(x, stride) if stride > 1 else x) + y)

    def loss(self, net, batch, _phase):
        x = F.relu(net.batch_norm(net.conv(batch["images"])))
        for stage in range(3):
            for k in range(3):
                x = self.block(net, x, 2 if stage and k == 0 else 1)
        x = net.dense(x.mean((2, 3)))
        kernels = [v for name, v in net.weights.items() if name.endswith("/kernel")]
        return classes(batch["labels"], x) + 1e-4 * sum((v * v).sum() for v in kernels)


class Mobilenet(Images):
    compiled = False
    calm = 0.01
    optimizers = [lambda calm: RmsProp(0.001 * calm, 0.9, 0.9, 1e-8)]

    def loss(self, net, batch, _phase):
        x = F.relu6(net.batch_norm(net.conv(batch["images"], 2)))
        for stride in (1, 2, 1, 2):
            x = F.relu6(net.batch_norm(net.depthwise(x, stride)))
            x = F.relu6(net.batch_norm(net.conv(x)))
        return classes(batch["labels"], net.dense(x.mean((2, 3))))


class Unet(Images):
    compiled = False
    optimizers = [lambda calm: Adam(0.002 * calm)]

    def twice(self, net, x):
        return F.relu(net.conv(F.relu(net.conv(x))))

    def loss(self, net, batch, _phase):
        fine = self.twice(net, batch["images"])
        coarse = self.twice(net, F.max_pool2d(fine, 2))
        x = self.twice(net, F.max_pool2d(coarse, 2))
        x = self.twice(net, torch.cat([coarse, net.conv_transpose(x, 0)], 1))
        x = F.interpolate(x, scale_factor=2, mode="bilinear")
        x = net.conv(self.twice(net, torch.cat([fine, x], 1)))
        return classes(batch["labels"].flatten(), x.permute(0, 2, 3, 1).reshape(-1, 3))


class Vae(Model):
    optimizers = [lambda calm: Adam(0.002 * calm)]

    def loss(self, net, batch, _phase):
        x = batch["images"]
        y = F.relu(net.dense(x))
        mean, log_variance = net.dense(y), net.dense(y)
        y = mean + (0.5 * log_variance).exp() * batch["chance"]
        y = net.dense(F.relu(net.dense(y)))
        cost = F.binary_cross_entropy_with_logits(y, x, reduction="sum")
        far = -0.5 * (1 + log_variance - mean * mean - log_variance.exp()).sum()
        return (cost + far) / len(x)


class Gan(Images):
    optimizers = [lambda calm: Adam(0.001 * calm, beta1=0.5)] * 2

    def loss(self, net, batch, phase):
        x = F.elu(net.dense(batch["chance"])).reshape(-1, 4, 4, 16).permute(0, 3, 1, 2)
        x = torch.tanh(net.conv_transpose(F.elu(net.conv_transpose(x, 1)), 1))
        x = torch.cat([batch["images"], x])
        x = F.elu(net.conv(F.elu(net.conv(x, 2)), 2))
        real, fake = net.dense(flat(x)).chunk(2)
        if phase:
            return F.softplus(-fake).mean()
        return F.softplus(-real).mean() + F.softplus(fake).mean()

    def trained(self, phase, name):
        painter = name.startswith(("dense/", "conv2d_transpose"))
        return painter == (phase == 1)


class Word2vec(Model):
    optimizers = [lambda calm: Adagrad(0.2 * calm)]
    calm = 1
    scope = "nce"

    def logits(self, net, batch):
        """Of the true word, and of the sampled ones; a sampled word that is the true one does not count."""
        table, weights, biases = (net.weights[name] for name in ("embedding/embeddings", f"{self.scope}/weights", f"{self.scope}/biases"))
        x, context, sampled = F.embedding(batch["words"], table), batch["context"], batch["sampled"]
        true = (x * F.embedding(context, weights)).sum(1, True) + biases[context][:, None] - batch["true_expected"].log()
        others = torch.addmm(biases[sampled] - batch["sampled_expected"].log(), x, weights[sampled].t())
        return true, others.masked_fill(context[:, None] == sampled, torch.finfo(torch.float32).min)

    def loss(self, net, batch, _phase):
        true, others = self.logits(net, batch)
        return (F.softplus(-true).sum() + F.softplus(others).sum()) / len(true)


class Word2vecSoftmax(Word2vec):
    scope = "sampled_softmax"

    def loss(self, net, batch, _phase):
        true, others = self.logits(net, batch)
        return (torch.cat([true, others], 1).logsumexp(1) - true[:, 0]).mean()


class Lstm(Model):
    """What comes after the end of a text has no weight in the loss, and nothing that has comes after it: no need to pack."""

    optimizers = [lambda calm: Adam(0.005 * calm)]
    calm = 1
    compiled = False

    def recurrent(self, net, x):
        kernel, recurrent, bias = net.named("lstm", "kernel", "recurrent_kernel", "bias")
        start = x.new_zeros(1, len(x), 64)
        return torch.lstm(x, (start, start), (kernel, recurrent, bias, torch.zeros_like(bias)), True, 1, 0.0, True, False, True)[0]

    def loss(self, net, batch, _phase):
        x = self.recurrent(net, net.embedding(batch["letters"]))
        return classes(batch["next"], net.dense(x), batch["mask"])


class Gru(Lstm):
    def recurrent(self, net, x):
        kernel, recurrent, bias = net.named("gru", "kernel", "recurrent_kernel", "bias")
        return torch.gru(x, x.new_zeros(1, len(x), 64), (kernel, recurrent, bias[0], bias[1]), True, 1, 0.0, True, False, True)[0]


class Transformer(Model):
    optimizers = [lambda calm: Adam(0.003 * calm)]

    def prepare(self, batch):
        return {**batch, "seen": (torch.arange(8) < batch["lengths"][:, None])[:, None, None, :]}

    def embed(self, net, x):
        return net.embedding(x) + net.named("embedding", "embeddings")[0]

    def attend(self, net, x, value=None, seen=None):
        name, w, y = net.name("multi_head_attention"), net.weights, net.layer_norm(x)
        value = y if value is None else value
        heads = [F.linear(source, w[f"{name}{part}/kernel"], w[f"{name}{part}/bias"]).unflatten(2, (2, 16)).transpose(1, 2)
                 for part, source in (("query", y), ("key", value), ("value", value))]
        y = F.scaled_dot_product_attention(*heads, attn_mask=seen, is_causal=seen is None).transpose(1, 2).flatten(2)
        return x + F.linear(y, w[name + "attention_output/kernel"], w[name + "attention_output/bias"])

    def think(self, net, x):
        return x + net.dense(F.gelu(net.dense(net.layer_norm(x))))

    def loss(self, net, batch, _phase):
        seen = batch["seen"]
        x = net.layer_norm(self.think(net, self.attend(net, self.embed(net, batch["source"]), seen=seen)))
        y = self.attend(net, self.embed(net, batch["written"]))
        y = net.layer_norm(self.think(net, self.attend(net, y, x, seen)))
        return classes(batch["next"], net.dense(y), batch["mask"])


def bucket(number, buckets=50):
    """tf.strings.to_hash_bucket_fast of a number's digits: FarmHash of up to three bytes."""
    text, last = str(number).encode(), (1 << 64) - 1
    y, z = text[0] + (text[len(text) // 2] << 8), len(text) + (text[-1] << 2)
    mixed = y * 0x9AE16A3B2F90404F & last ^ z * 0xC3A5C85C97CB3127 & last
    return ((mixed ^ mixed >> 47) * 0x9AE16A3B2F90404F & last) % buckets


class WideDeep(Model):
    """PyTorch has no strings: which bucket a site's number hashes to is looked up, and so is the vocabulary."""

    calm = 1
    optimizers = [lambda calm: Ftrl(0.1 * calm, 0.001), lambda calm: Adagrad(0.05 * calm)]
    buckets = torch.tensor([bucket(number) for number in range(500)])

    def loss(self, net, batch, phase):
        site, kind = self.buckets[batch["site"]], batch["kind"].clamp(max=5)
        wide = net.embedding(site) + net.embedding(kind)
        x = torch.cat([batch["numbers"], net.embedding(site), net.embedding(kind)], 1)
        x = net.dense(F.relu(net.dense(F.relu(net.dense(x)))))
        return guess(batch["clicks"], x + wide)

    def trained(self, phase, name):
        return name.startswith(("embedding/", "embedding_1/")) == (phase == 0)


class Dlrm(Model):
    calm = 1
    optimizers = [lambda calm: Adagrad(0.1 * calm)]
    pairs = torch.tensor([1, 2, 3, 6, 7, 11])

    def loss(self, net, batch, _phase):
        x = F.relu(net.dense(F.relu(net.dense(batch["numbers"]))))
        bags = [F.embedding(batch[f"bag_{k}"], *net.named("embedding", "embeddings")).mean(1) for k in range(3)]
        vectors = torch.stack([x, *bags], 1)
        products = (vectors @ vectors.transpose(1, 2)).flatten(1)
        x = F.relu(net.dense(torch.cat([x, products[:, self.pairs]], 1)))
        return guess(batch["clicks"], net.dense(x))


class Policy(Model):
    calm = 1
    optimizers = [lambda calm: Adam(0.01 * calm)]

    def loss(self, net, batch, _phase):
        x = net.dense(torch.tanh(net.dense(batch["states"])))
        return F.cross_entropy(x, batch["actions"], reduction="none").dot(batch["advantages"].flatten()) / len(x)


MODELS = {"lenet": Lenet, "resnet": Resnet, "mobilenet": Mobilenet, "unet": Unet, "vae": Vae, "gan": Gan, "word2vec": Word2vec,
          "word2vec_softmax": Word2vecSoftmax, "lstm": Lstm, "gru": Gru, "transformer": Transformer, "wide_deep": WideDeep, "dlrm": Dlrm,
          "policy": Policy}
SLOTS = ("Momentum", "RMSProp", "Adam", "Adagrad", "Ftrl")


def load(path):
    """What is in a file; PyTorch wants its numbers of rows and classes in 64 bits."""
    return {key: value.long() if value.dtype == torch.int32 else value for key, value in safetensors.torch.load_file(path).items()}


def prepare(name, folder, calm=True):
    """The step of a model as a function of its batch, and the batches."""
    folder = pathlib.Path(folder)
    torch.set_num_threads(1 if MODELS[name].compiled else os.cpu_count())
    weights = {key: torch_layout(key, value) for key, value in load(folder / "weights.safetensors").items()
               if "/" in key and not key.split("/")[-1].startswith(SLOTS)}
    model = MODELS[name]()
    batches = [model.prepare(load(path)) for path in sorted(folder.glob("batch_*"))]
    phases = [phase_of(model, weights, phase, make(model.calm if calm else 1)) for phase, make in enumerate(model.optimizers)]
    return lambda batch: [phase(batch) for phase in phases], batches


def phase_of(model, weights, phase, optimizer):
    """One optimizer's part of a step: compiled, loss, gradients and update are one program."""
    names = [name for name in weights if model.trained(phase, name) and "/moving_" not in name]
    variables = [weights[name] for name in names]
    optimizer.begin(variables)

    def one(batch):
        leaves = [v.detach().requires_grad_() for v in variables]
        with torch.enable_grad():
            loss = model.loss(Net({**weights, **dict(zip(names, leaves))}), batch, phase)
            gradients = torch.autograd.grad(loss, leaves)
        optimizer.update(variables, gradients)
        return loss.detach()

    return torch.compile(one, fullgraph=True, dynamic=False) if model.compiled else one


def steps_per_second(step, batches, seconds):
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for loss in step(batches[done % len(batches)]):
            float(loss)
        done += 1
    return done / (time.perf_counter() - start)


def choose_threads(model, step, batches):
    """One or all processors', whichever is faster, for what is not compiled."""
    if model.compiled:
        return
    speeds = {}
    for threads in (1, os.cpu_count()) * 2:
        torch.set_num_threads(threads)
        step(batches[0])
        speeds[threads] = max(speeds.get(threads, 0), steps_per_second(step, batches, 0.5))
    torch.set_num_threads(max(speeds, key=speeds.get))


def differs(program, name, expected):
    """The largest relative difference of the first losses from TensorFlow's."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, name, "--dump", folder, str(CHECKED)], check=True)
        torch.compiler.reset()  # the compiler keeps a few programs per function, and all models have one
        step, batches = prepare(name, folder)
        found = [[float(loss) for loss in step(batch)] for batch in batches]
    return max(abs(a - b) / abs(b) for ours, theirs in zip(found, expected, strict=True) for a, b in zip(ours, theirs, strict=True))


def check(program, names):
    expected, failed = json.loads((HERE / "losses.json").read_text()), 0
    for name in names or MODELS:
        far = differs(pathlib.Path(program).resolve(), name, expected[name][:CHECKED])
        failed += not far <= TOLERANCE
        print(f"{name}: {'as TensorFlow' if far <= TOLERANCE else 'WRONG'}, {far:.1e} apart", flush=True)
    return 1 if failed else 0


def main():
    torch.set_grad_enabled(False)
    torch._dynamo.config.trace_autograd_ops = True
    what, name, *more = sys.argv[1:]
    if what == "check":
        return check(name, more)
    step, batches = prepare(name, more[0], what != "speed")
    if what == "losses":
        for batch in batches:
            print(json.dumps([float(f"{float(loss):.9g}") for loss in step(batch)]), flush=True)
        return 0
    step(batches[0])
    choose_threads(MODELS[name], step, batches)
    for line in sys.stdin:
        print(steps_per_second(step, batches, float(line)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

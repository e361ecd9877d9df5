#!/usr/bin/env python3
"""What the transformer of a models example writes, greedily and by beam search in a loop of the graph, against the same by NumPy alone.

    decode_test.py EXAMPLE_MODELS [--before WORD ...]      in a Python with tests/requirements.txt, or DTG_PYTHON names one

The program trains some steps, writes rows and keeps its weights; here the whole decoder looks at all it wrote anew for each place, without
a cache, and the beams are plain Python. Rows must be equal, and scores to 1e-3. --before: what the program is run by.
"""

import argparse
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import safetensors.numpy
except ImportError:
    judge = os.environ.get("DTG_PYTHON")
    if not judge or os.environ.get("DTG_JUDGED"):
        print("SKIPPED models_decode: NumPy and safetensors are missing; pip install -r tests/requirements.txt, and name that Python in DTG_PYTHON")
        sys.exit(77)
    os.environ["DTG_JUDGED"] = "1"
    os.execv(judge, [judge, *sys.argv])

STEPS = 200
LONGEST, START, FIRST, EMPTY = 8, 1, 2, 0
NEVER = -1e9
ERF = numpy.vectorize(math.erf)


class Transformer:
    """The layers that the example has, in float64, by their names in the file."""

    def __init__(self, weights):
        self.w = {name: value.astype(numpy.float64) for name, value in weights.items()}

    def dense(self, name, x):
        return x @ self.w[f"{name}/kernel"] + self.w[f"{name}/bias"]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / numpy.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3) * self.w[f"{name}/gamma"] + self.w[f"{name}/beta"]

    def attend(self, name, query, value, seen):
        q, k, v = (numpy.einsum("ti,ihw->thw", x, self.w[f"{name}/{part}/kernel"]) + self.w[f"{name}/{part}/bias"]
                   for part, x in (("query", query), ("key", value), ("value", value)))
        scores = numpy.where(seen, numpy.einsum("qhw,khw->hqk", q, k) / math.sqrt(q.shape[-1]), NEVER)
        shares = numpy.exp(scores - scores.max(-1, keepdims=True))
        looked = numpy.einsum("hqk,khw->qhw", shares / shares.sum(-1, keepdims=True), v)
        return numpy.einsum("qhw,hwo->qo", looked, self.w[f"{name}/attention_output/kernel"]) + self.w[f"{name}/attention_output/bias"]

    def embed(self, tokens, places, ids):
        return self.w[f"{tokens}/embeddings"][ids] + self.w[f"{places}/embeddings"][: len(ids)]

    def think(self, first, second, x):
        y = self.dense(first, x)
        return self.dense(second, 0.5 * y * (1 + ERF(y / math.sqrt(2))))

    def read(self, row):
        x = self.embed("embedding", "embedding_1", numpy.array(row + [EMPTY] * (LONGEST - len(row))))
        y = self.norm("layer_normalization", x)
        x = x + self.attend("multi_head_attention", y, y, numpy.arange(LONGEST) < len(row))
        x = x + self.think("dense", "dense_1", self.norm("layer_normalization_1", x))
        return self.norm("layer_normalization_2", x)

    def go_on(self, read, length, written):
        """Logarithms of the probabilities of what comes behind `written`."""
        x = self.embed("embedding_2", "embedding_3", numpy.array([START] + written))
        y = self.norm("layer_normalization_3", x)
        x = x + self.attend("multi_head_attention_1", y, y, numpy.tri(len(x), dtype=bool))
        x = x + self.attend("multi_head_attention_2", self.norm("layer_normalization_4", x), read, numpy.arange(LONGEST) < length)
        x = x + self.think("dense_2", "dense_3", self.norm("layer_normalization_5", x))
        logits = self.dense("dense_4", self.norm("layer_normalization_6", x))[-1]
        return logits - numpy.log(numpy.exp(logits - logits.max()).sum()) - logits.max()

    def write(self, row, beams):
        """The best row, and its score; None where two were so close that rounding decides."""
        read, kept, narrow = self.read(row), [(0.0, [])], False
        for _ in row:
            ways = [(score + p, written + [token])
                    for score, written in kept for token, p in enumerate(self.go_on(read, len(row), written))]
            ways.sort(key=lambda way: -way[0])
            narrow = narrow or ways[beams - 1][0] - ways[beams][0] < 1e-3
            kept = ways[:beams]
        narrow = narrow or (beams > 1 and kept[0][0] - kept[1][0] < 1e-3)
        return None if narrow else kept[0]


def rows_of(text):
    """{beams: [(row, written, score)]} of what the program printed."""
    found = {}
    for line in text.splitlines():
        if line.startswith("beams: "):
            found[int(line.split()[1])] = rows = []
        elif match := re.fullmatch(r"(\d+) -> ([\d?!]+)  (-?[\d.]+)", line):
            row, written, score = match.groups()
            rows.append(([FIRST + int(digit) for digit in row], ["?!0123456789".index(digit) for digit in written], float(score)))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--before", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        weights = pathlib.Path(folder) / "weights.safetensors"
        command = [*options.before, options.program, "transformer", "--steps", str(STEPS), "--save", str(weights)]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        model = Transformer(safetensors.numpy.load_file(weights))
    found, wrong, compared = rows_of(text), [], 0
    for beams, rows in found.items():
        for row, written, score in rows:
            best = model.write(row, beams)
            if best is None:
                continue
            compared += 1
            if best[1] != written or abs(best[0] - score) > 1e-3:
                wrong.append(f"{beams} beams, {row}: {written} of {score}, but it is {best[1]} of {best[0]:.5f}")
    print("\n".join(wrong) or f"{compared} rows as by NumPy")
    differ = sum(a[1] != b[1] for a, b in zip(*found.values()))
    if len(found) != 2 or compared < 24 or differ == 0:
        print(f"of {list(found)} beams {compared} rows were compared, and {differ} differ between them: this says too little\n{text}")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""The op table as the generators see it: read from `dtg ops --json`, with everything decided that all languages share.

An attribute is one of three things: inferred (the inputs tell it: types, counts), required (a parameter of the wrapper) or
optional (it has a default; an option of the wrapper).
"""

import dataclasses
import json
import re
import textwrap


@dataclasses.dataclass
class Arg:
    """An input or an output."""

    name: str
    type: str  # an element type ("float32"), or the attribute that tells it ("T")
    number: str = ""  # the attribute that says how many there are; "": one
    list: bool = False  # True: `type` is an attribute that lists the types, one value each

    @property
    def many(self):
        return bool(self.number or self.list)


@dataclasses.dataclass
class Attr:
    name: str
    kind: str  # int float bool type shape string tensor, and list(...) of them
    has_default: bool
    default: object = None  # types by name; a shape as a list of dimensions, None: unknown rank
    types: list = dataclasses.field(default_factory=list)
    strings: list = dataclasses.field(default_factory=list)
    inferred: bool = False


@dataclasses.dataclass
class Op:
    name: str
    doc: str
    inputs: list
    outputs: list
    attrs: list
    stateful: bool
    differentiable: bool
    kernels: str

    @property
    def snake(self):
        """MatMul: mat_mul, Conv2D: conv2d, AddV2: add_v2; as TensorFlow's Python names them."""
        return snake(self.name)

    @property
    def required(self):
        return [attr for attr in self.attrs if not attr.inferred and not attr.has_default]

    @property
    def optional(self):
        return [attr for attr in self.attrs if not attr.inferred and attr.has_default]

    def count(self, output):
        """How many values an output that is many has: ("attr", Attr) for the value of a required int attribute, ("length", Attr) for
        the length of a required list attribute, or ("input", Arg) for as many as that input."""
        name = output.type if output.list else output.number
        for attr in self.required:
            if attr.name == name:
                return ("length" if output.list else "attr", attr)
        for arg in self.inputs:
            if name == (arg.type if arg.list else arg.number):
                return ("input", arg)
        raise ValueError(f"{self.name}: nothing tells how many {output.name} there are")

    def facts(self):
        """The sentences that every wrapper's documentation ends with."""
        out = ["Its gradient is known." if self.differentiable else "It has no gradient."]
        if self.stateful:
            out.append("Stateful: runs are never merged or folded away.")
        return out


def snake(name):
    name = re.sub(r"([a-z0-9])([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    name = name.replace("Conv2_D", "Conv2D")
    return re.sub(r"(?<!_)V(\d)$", r"_V\1", name).lower()


def describe_attr(attr):
    """One line on an attribute: kind, what it may be, its default."""
    text = {"type": "element type", "list(type)": "element types", "list(int)": "integers", "list(float)": "numbers", "list(shape)": "shapes", "list(string)": "strings"}.get(
        attr.kind, attr.kind
    )
    if attr.strings:
        text = "one of " + ", ".join(f'"{word}"' for word in attr.strings)
    if attr.has_default:
        text += f"; default {json.dumps(attr.default)}"
    return text


def wrap(text, prefix, width=120):
    """`text` in lines that begin with `prefix`."""
    return textwrap.wrap(text, width, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False, break_on_hyphens=False)


def parse(text):
    """The ops of `dtg ops --json`, in order of name."""
    ops = []
    for raw in json.loads(text):
        # Functions are made and called with the functions of dtg/function.h.
        if any(attr["kind"] in ("func", "list(func)") for attr in raw["attributes"]):
            continue
        inputs = [Arg(**arg) for arg in raw["inputs"]]
        told = {name for arg in inputs for name in (arg.type, arg.number)}
        attrs = [Attr(**attr, inferred=attr["name"] in told) for attr in raw["attributes"]]
        outputs = [Arg(**arg) for arg in raw["outputs"]]
        ops.append(Op(raw["name"], raw["doc"], inputs, outputs, attrs, raw["stateful"], raw["differentiable"], raw["kernels"]))
    return sorted(ops, key=lambda op: op.name)

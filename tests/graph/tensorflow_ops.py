#!/usr/bin/env python3
"""The names of all ops that TensorFlow has, one a line, for planned_test.cc.

    python3 tensorflow_ops.py [--out FILE]    writes FILE (default: tensorflow_ops.txt beside this one); needs the package tensorflow-cpu

Its own record of what is registered, so also ops that its Python does not show. Left out are names that begin with an underscore, which
are private there, too, and the ops that are only there for TensorFlow's own tests.
"""

import argparse
import inspect
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.python.client import pywrap_tf_session  # noqa: E402
from tensorflow.python.framework import test_ops  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_suffix(".txt"))
    out = parser.parse_args().out
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    tests = inspect.getsource(test_ops)
    names = sorted(op.name for op in ops.op if op.name.isidentifier() and not op.name.startswith("_") and f'"{op.name}"' not in tests)
    out.write_text(f"# The ops of TensorFlow {tf.__version__}: tensorflow_ops.py\n" + "\n".join(names) + "\n")


if __name__ == "__main__":
    main()

"""Reads an event directory with TensorBoard's own readers, checksums on, and compares what they found.

Usage: events_check.py DIR [--serve], where DIR was written by the test EventFile.TensorBoardReadsIt. Exits 0 when everything is as expected,
1 with a reason per line otherwise, 77 without the packages of tests/requirements.txt.

Two readers look at the files: the Python loader (which always verifies checksums) and, when it starts here, the data server with
--checksum, asked over its RPC, because it is what users of TensorBoard meet first. With --serve the whole of TensorBoard is started, once
with each reader, and asked over HTTP what its pages would ask; that takes a while.
"""

import glob
import os
import sys

try:
    import numpy as np
    from tensorboard.backend.event_processing import plugin_event_accumulator, tag_types
    from tensorboard.compat.proto import event_pb2, graph_pb2
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util
except ImportError as missing:
    print(f"events_check: {missing}")
    sys.exit(77)

problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)


def close(got, wanted):
    return abs(got - wanted) < 1e-6


def check_records(directory):
    """Every record, by the reader that raises on a bad checksum; all message fields must be known ones."""
    count = 0
    for path in sorted(glob.glob(os.path.join(directory, "*", "*tfevents*"))):
        reader = PyRecordReader_New(path)
        first = True
        while True:
            try:
                reader.GetNext()
            except Exception as end:  # the end of the file is an exception too
                expect("OutOfRange" in type(end).__name__, f"{path}: {end!r}")
                break
            event = event_pb2.Event.FromString(reader.record())
            if first:
                expect(event.file_version == "brain.Event:2", f"{path}: first record is {event}")
            first = False
            count += 1
    expect(count > 50, f"only {count} records found")


def accumulate(directory):
    accumulator = plugin_event_accumulator.EventAccumulator(directory, size_guidance={tag_types.TENSORS: 0})
    accumulator.Reload()
    return accumulator


def tensors(accumulator, tag):
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in accumulator.Tensors(tag)]


def check_chief(directory):
    run = accumulate(os.path.join(directory, "chief"))
    tags = set(run.Tags()["tensors"])
    wanted = {"__run_graph__", "train/loss", "train/accuracy", "weights", "constant", "note", "pixels"}
    expect(tags == wanted | {"_hparams_/session_start_info", "_hparams_/session_end_info"}, f"tags are {sorted(tags)}")
    loss = tensors(run, "train/loss")
    expect([step for step, _ in loss] == list(range(20)), f"steps of train/loss: {[step for step, _ in loss]}")
    expect(all(close(value.item(), 1 / (step + 1)) for step, value in loss), "values of train/loss")

    weights = tensors(run, "weights")
    expect([step for step, _ in weights] == [0, 5, 10, 15], "steps of weights")
    for _, table in weights:
        expect(table.shape == (30, 3) and table.dtype == np.float64, f"histogram is {table.dtype}{table.shape}")
        expect(table[:, 2].sum() == 1000, f"histogram counts {table[:, 2].sum()} values")
        expect(close(table[0, 0], 0) and close(table[-1, 1], 0.99), "histogram range")
    constant = tensors(run, "constant")[0][1]
    expect(constant.tolist() == [[2.0, 3.0, 7.0]], f"constant histogram: {constant.tolist()}")
    expect(tensors(run, "note")[0][1].tolist() == [b"**hello** dtg"], "text")

    width, height, png = tensors(run, "pixels")[0][1].tolist()
    expect((width, height) == (b"6", b"4") and png[:8] == b"\x89PNG\r\n\x1a\n", "image")

    plugins = {tag: run.SummaryMetadata(tag).plugin_data.plugin_name for tag in tags}
    expect(plugins["train/loss"] == "scalars" and plugins["weights"] == "histograms", f"plugins: {plugins}")
    expect(plugins["note"] == "text" and plugins["pixels"] == "images", f"plugins: {plugins}")

    def hparams(tag):
        return plugin_data_pb2.HParamsPluginData.FromString(run.SummaryMetadata("_hparams_/" + tag).plugin_data.content)

    settings = hparams("session_start_info").session_start_info.hparams
    expect(settings["learning_rate"].number_value == 0.25 and settings["optimizer"].string_value == "adam"
           and settings["augment"].bool_value is True and len(settings) == 3, f"hparams: {settings}")
    expect(hparams("session_end_info").session_end_info.status == 1, "hparams: end status")

    graph = graph_pb2.GraphDef.FromString(run.Graph().SerializeToString())
    devices = {node.name: node.device for node in graph.node}
    expect(devices == {"ps/w": "/job:ps/task:0/device:CPU:0", "read": "/job:worker/task:0/device:CPU:0"}, f"graph: {devices}")


def check_resumed(directory):
    loss = tensors(accumulate(os.path.join(directory, "resumed")), "loss")
    steps = [(step, value.item()) for step, value in loss]
    expect(steps == [(i, i) for i in range(10)] + [(10, 110), (11, 111)], f"after a restart: {steps}")


def check_data_server(directory):
    """The Rust server that TensorBoard starts by default, with checksums switched on."""
    import subprocess
    import tempfile
    import time

    import grpc
    import tensorboard_data_server
    from tensorboard.data.proto import data_provider_pb2, data_provider_pb2_grpc

    binary = tensorboard_data_server.server_binary()
    if binary is None:
        print("events_check: no data server for this platform; skipped")
        return
    with tempfile.TemporaryDirectory() as scratch:
        port_file = os.path.join(scratch, "port")
        server = subprocess.Popen([binary, "--logdir", directory, "--port", "0", "--port-file", port_file, "--checksum", "--die-after-stdin",
                                   "--reload", "once"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            for _ in range(200):
                if os.path.exists(port_file):
                    break
                time.sleep(0.05)
            port = open(port_file).read().strip()
            channel = grpc.insecure_channel(f"localhost:{port}")
            stub = data_provider_pb2_grpc.TensorBoardDataProviderStub(channel)
            request = data_provider_pb2.ListScalarsRequest()
            request.plugin_filter.plugin_name = "scalars"
            found = {}
            for _ in range(100):
                reply = stub.ListScalars(request, timeout=10)
                found = {(run.run_name, tag.tag_name): tag.metadata.max_step for run in reply.runs for tag in run.tags}
                if len(found) == 3:
                    break
                time.sleep(0.1)
            wanted = {("chief", "train/loss"): 19, ("chief", "train/accuracy"): 19, ("resumed", "loss"): 11}
            expect(found == wanted, f"data server found {found}")
        finally:
            server.stdin.close()
            server.kill()
            log = server.stderr.read().decode()
            server.wait()
        expect("ChecksumError" not in log and "BadCrc" not in log, f"data server complains: {log}")


def check_served(directory, loader):
    """TensorBoard itself on a free port of the loopback; `loader` are the flags that choose the reader."""
    import json
    import re
    import subprocess
    import threading
    import urllib.request

    flags = ["--logdir", directory, "--host", "127.0.0.1", "--port", "0", "--reload_interval", "1", *loader]
    server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", *flags], stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(120, server.kill)
    watchdog.start()
    try:
        port = None
        while port is None:
            line = server.stderr.readline()
            if not line:
                expect(False, f"tensorboard {loader} did not start")
                return
            found = re.search(r"http://127.0.0.1:(\d+)/", line)
            port = found and found.group(1)
        threading.Thread(target=server.stderr.read, daemon=True).start()

        def ask(path, body=None):
            data = json.dumps(body).encode() if body is not None else None
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"http://127.0.0.1:{port}/data/{path}", data, headers)
            with urllib.request.urlopen(request, timeout=60) as reply:
                content = reply.read()
            if content[:1] == b"\x89":
                return content
            text = content.decode()
            return json.loads(text) if text[:1] in "[{" else text

        runs = {}
        for _ in range(100):
            runs = ask("plugin/scalars/tags")
            if len(runs) == 2 and "train/loss" in runs.get("chief", {}) and "loss" in runs.get("resumed", {}):
                break
            threading.Event().wait(0.2)
        expect(sorted(runs.get("chief", {})) == ["train/accuracy", "train/loss"], f"{loader}: scalar tags {runs}")
        points = ask("plugin/scalars/scalars?run=chief&tag=train/loss")
        expect(len(points) == 20 and close(points[19][2], 0.05), f"{loader}: scalars {points}")
        resumed = ask("plugin/scalars/scalars?run=resumed&tag=loss")
        expect([point[1:] for point in resumed][-3:] == [[9, 9.0], [10, 110.0], [11, 111.0]], f"{loader}: resumed {resumed}")
        histograms = ask("plugin/histograms/histograms?run=chief&tag=weights")
        expect(len(histograms) == 4 and len(histograms[0][2]) == 30, f"{loader}: histograms")
        images = ask("plugin/images/images?run=chief&tag=pixels&sample=0")
        expect([image["step"] for image in images] == [4], f"{loader}: images {images}")
        png = ask("plugin/images/individualImage?" + images[0]["query"])
        expect(png[:8] == b"\x89PNG\r\n\x1a\n", f"{loader}: image {png[:20]}")
        text = ask("plugin/text/text?run=chief&tag=note")
        expect("<strong>hello</strong>" in text[0]["text"], f"{loader}: text {text}")
        graph = ask("plugin/graphs/graph?run=chief")
        expect("/job:ps/task:0/device:CPU:0" in graph, f"{loader}: graph {graph}")
        experiment = ask("plugin/hparams/experiment", {"experimentName": ""})
        names = {info["name"] for info in experiment["hparamInfos"]}
        expect(names == {"learning_rate", "optimizer", "augment"}, f"{loader}: hparams {experiment}")
    finally:
        watchdog.cancel()
        server.kill()
        server.wait()


def main():
    directory = sys.argv[1]
    check_records(directory)
    check_chief(directory)
    check_resumed(directory)
    try:
        check_data_server(directory)
    except ImportError as missing:
        print(f"events_check: data server not asked: {missing}")
    if "--serve" in sys.argv[2:]:
        check_served(directory, ["--load_fast=false"])
        check_served(directory, ["--load_fast=true", "--extra_data_server_flags=--checksum"])
    for problem in problems:
        print(f"events_check: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
